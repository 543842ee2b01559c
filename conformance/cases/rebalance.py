"""How a rebalance takes its course, and whom it removes."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "REBALANCE",
    """
REB-003 A dynamic member that does not rejoin within the rebalance timeout is removed
  @ LSJ must seen=0.10.2-4.4
  @ 0.10.2 GroupCoordinatorResponseTest.testRebalanceCompletesBeforeMemberJoins
  @ java GroupMetadataManagerTest.testCompleteJoinRemoveNotYetRejoinedDynamicMembers
  stable A rebalance=5000
  join B rebalance=5000     | -
  --
  wait 4999 beating=A       | -
  wait 1                    | B NONE gen=2 leader=B members=B
  heartbeat A               | A UNKNOWN_MEMBER_ID
  state AwaitingSync gen=2
  log none
REB-004 The join phase lasts the largest rebalance timeout of the members
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupMetadata.rebalanceTimeoutMs
  stable A rebalance=3000
  join B rebalance=1000
  join A
  join C rebalance=1000     | -
  wait 2999 beating=A,B     | -
  wait 1                    | C NONE
REB-006 A session that expires during the join phase removes the member and ends the phase
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testSessionTimeoutDuringRebalance
  @ java GroupMetadataManagerTest.testClassicGroupMemberSessionTimeoutDuringRebalance
  @ 0.10.2 GroupCoordinatorResponseTest.testSessionTimeoutDuringRebalance
  completing A session=1000 rebalance=2000
  wait 1
  sync A A=a
  wait 1
  heartbeat A               | A NONE
  join B                    | -
  --
  wait 999                  | -
  wait 1                    | B NONE gen=2 members=B
  state AwaitingSync gen=2
  log none
REB-006.tie In 0.10.2 two timers of a member that end at one instant both fire
  @ L model
  @ 0.10.2 DelayedHeartbeat, GroupCoordinator.shouldKeepMemberAlive
  stable A session=1000 rebalance=2000
  join B                    | -
  wait 999                  | -
  wait 1                    | B NONE gen=2 members=B
  state PreparingRebalance
REB-007 Heartbeats keep a member that has not rejoined, until the rebalance timeout
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testRebalanceCompletesBeforeMemberJoins
  @ java GroupMetadataManagerTest.testRebalanceCompletesBeforeMemberJoins
  stable A session=1000 rebalance=5000
  join B
  --
  wait 500
  heartbeat A               | A REBALANCE_IN_PROGRESS
  wait 900
  heartbeat A               | A REBALANCE_IN_PROGRESS
  wait 900
  heartbeat A               | A REBALANCE_IN_PROGRESS
  state PreparingRebalance gen=1 members=A,B
  log none
REB-008 The session of a member whose JoinGroup is parked does not expire
  @ LSJ must seen=0.10.2-4.4
  @ scala MemberMetadata.hasSatisfiedHeartbeat
  stable A B session=1000 rebalance=5000
  join A                    | -
  --
  wait 3000 beating=B       | -
  state PreparingRebalance members=A,B
  log none
REB-009 A new member whose JoinGroup is parked for five minutes is removed
  @ SJ model since=2.1
  @ scala GroupCoordinatorTest.testNewMemberJoinExpiration
  @ java GroupMetadataManagerTest.testNewMemberJoinExpiration
  @ scala GroupCoordinatorTest.testNewMemberTimeoutCompletion
  stable A rebalance=600000
  join B                    | -
  --
  wait 299999 beating=A     | -
  wait 1                    | B UNKNOWN_MEMBER_ID id=-
  state PreparingRebalance members=A
  log none
REB-011 After the join phase the session timeout applies to members that joined in it
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinatorTest.testNewMemberFailureAfterJoinGroupCompletion
  @ java GroupMetadataManagerTest.testNewMemberFailureAfterJoinGroupCompletion
  @ scala GroupCoordinatorTest.testNewMemberFailureAfterSyncGroupCompletion
  completing A B
  --
  wait 10000                | -
  state Empty gen=3 members=-
  log group gen=3 members=-
REB-011.synced After the sync the session timeout applies to members that joined
  stable A B
  --
  wait 10000                | -
  state Empty members=-
  log group gen=3 members=-
REB-013 A group whose last member times out is Empty, in the next generation
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testSessionTimeout
  @ java GroupMetadataManagerTest.testClassicGroupMemberSessionTimeout
  @ 0.10.2 GroupCoordinatorResponseTest.testSessionTimeout
  stable A
  --
  wait 10000                | -
  heartbeat A               | A UNKNOWN_MEMBER_ID
  state Empty gen=2
  log group gen=2 protocol=- leader=- members=-
REB-014 A rebalance out of the sync phase answers parked syncs with REBALANCE_IN_PROGRESS
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinator.prepareRebalance
  completing A B
  sync B                    | -
  --
  join C                    | B REBALANCE_IN_PROGRESS work=-
  state PreparingRebalance gen=2
  log none
REB-015 The session timer of a removed member can start a rebalance much later
  @ L must quirk seen=0.10.2
  @ 0.10.2 GroupCoordinator.onMemberFailure
  stable A session=20000 rebalance=5000
  join B session=20000 rebalance=5000
  wait 4000
  heartbeat A               | A REBALANCE_IN_PROGRESS
  wait 1000                 | B NONE gen=2 members=B
  sync B                    | B NONE
  --
  wait 18999 beating=B      | -
  heartbeat B               | B NONE
  wait 1
  heartbeat B               | B REBALANCE_IN_PROGRESS
  state PreparingRebalance gen=2
  log none
REB-015.namesake The session timer of a removed member leaves a later group of that name alone
  broker check=60000 partitions=1
  stable A session=200000 rebalance=5000
  join B session=200000 rebalance=5000
  wait 5000                 | B NONE gen=2 members=B
  leave B
  wait 60000
  state none
  wait 100000
  stable C session=200000 rebalance=5000
  wait 100000               | -
  state Stable members=C
REB-016 The session timer of a removed member starts no rebalance
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinatorTest.testRebalanceCompletesBeforeMemberJoins
  stable A session=20000 rebalance=5000
  join B session=20000 rebalance=5000
  wait 5000 beating=A       | B NONE gen=2 members=B
  sync B                    | B NONE
  --
  wait 40000 beating=B      | -
  heartbeat B               | B NONE
  state Stable gen=2
  log none
REB-017 A group that empties counts its generation up
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupMetadataTest.testInitNextGenerationEmptyGroup
  @ java ClassicGroupTest.testInitNextGenerationEmptyGroup
  stable A
  --
  leave A                   | leave NONE
  state Empty gen=2
  log group gen=2 protocol=- leader=- members=-
REB-019 A generation that was never synced is lost by a failover
  @ LSJ model quirk
  @ scala GroupMetadataManager.doLoadGroupsAndOffsets
  stable A B
  join C
  join A
  join B                    | A NONE gen=3; B NONE gen=3; C NONE gen=3
  --
  resign
  elect
  state Stable gen=2 members=A,B
  sync B gen=2              | B NONE work=b
  log none
""",
)
