"""Members that do not sync in time."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "PENDINGSYNC",
    """
PSYN-001 Where nobody syncs within the rebalance timeout, the group is Empty
  @ SJ must since=2.8.1 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testRebalanceTimesOutWhenSyncRequestIsNotReceived
  @ java GroupMetadataManagerTest.testRebalanceTimesOutWhenSyncRequestIsNotReceived
  completing A B C rebalance=5000
  --
  wait 4999 beating=A,B,C   | -
  wait 1                    | -
  heartbeat A               | A UNKNOWN_MEMBER_ID
  heartbeat C               | C UNKNOWN_MEMBER_ID
  state Empty gen=4
  log group gen=4 protocol=- leader=- members=-
PSYN-003 A leader that does not sync within the rebalance timeout is removed
  @ SJ must since=2.8.1 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromLeaders
  @ java GroupMetadataManagerTest.testRebalanceTimesOutWhenSyncRequestIsNotReceivedFromLeaders
  completing A B C rebalance=5000
  sync B                    | -
  sync C                    | -
  --
  wait 4999 beating=A       | -
  wait 1                    | B REBALANCE_IN_PROGRESS; C REBALANCE_IN_PROGRESS
  heartbeat A               | A UNKNOWN_MEMBER_ID
  state PreparingRebalance gen=3
  log none
PSYN-004 Where all sync in time, the timer of the sync phase removes nobody
  @ SJ must since=2.8.1 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testRebalanceDoesNotTimeOutWhenAllSyncAreReceived
  @ java GroupMetadataManagerTest.testRebalanceDoesNotTimeOutWhenAllSyncAreReceived
  completing A B C rebalance=5000
  --
  sync A A=a B=b C=c        | A NONE
  sync B                    | B NONE
  sync C                    | C NONE
  wait 6000 beating=A,B,C   | -
  heartbeat B               | B NONE
  state Stable gen=3
  log group gen=3 leader=A members=A,B,C
PSYN-005 In 0.10.2 the sync phase waits for its leader as long as the session lasts
  @ L must seen=0.10.2
  @ 0.10.2 GroupCoordinator.doSyncGroup
  completing A B session=60000 rebalance=5000
  sync B                | -
  wait 59999            | -
  wait 1                | B REBALANCE_IN_PROGRESS
PSYN-006 A static member that does not sync within the rebalance timeout is removed, too
  @ SJ must since=2.8.1 seen=2.8-4.4
  @ scala GroupCoordinator.onExpirePendingSync
  stable L:i1 F:i2 session=60000 rebalance=5000
  join L                    | -
  wait 5000                 | L NONE gen=3 members=F,L
  sync L                    | L NONE
  --
  wait 5000                 | -
  heartbeat F gen=3         | F UNKNOWN_MEMBER_ID
  state PreparingRebalance gen=3 members=L
  log none
PSYN-008 The sync phase does not wait for a member that was removed
  @ SJ must since=3.0 seen=2.8-4.4
  @ scala GroupMetadataTest.testRemovalFromPendingSyncWhenMemberIsRemoved
  completing A B rebalance=5000
  leave B                   | leave NONE
  join A                    | A NONE gen=3
  --
  sync A A=a                | A NONE work=a
  wait 6000 beating=A       | -
  heartbeat A               | A NONE
  state Stable gen=3
  log group gen=3 leader=A members=A
""",
)
