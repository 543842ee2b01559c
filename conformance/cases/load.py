"""Partitions taken over and given up, as members see it."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "LOAD",
    """
LOAD-001 While a partition loads, a sync is told to rejoin, and others to wait; heartbeats pass
  @ S model
  @ scala GroupCoordinatorTest.testRequestHandlingWhileLoadingInProgress
  stable A
  group other
  commit - t-0=1
  group g
  resign group=g
  load begin
  --
  join A                | A COORDINATOR_LOAD_IN_PROGRESS
  sync A                | A REBALANCE_IN_PROGRESS
  heartbeat A           | A NONE
  leave A               | leave COORDINATOR_LOAD_IN_PROGRESS
  describe              | describe error=COORDINATOR_LOAD_IN_PROGRESS
  list                  | list COORDINATOR_LOAD_IN_PROGRESS groups=other
  delete                | delete g=COORDINATOR_LOAD_IN_PROGRESS
  log none
LOAD-002 While a partition loads, all are told so; heartbeats pass
  @ J model
  @ java GroupCoordinatorServiceTest.testHeartbeatCoordinatorNotAvailableException
  @ java GroupCoordinatorServiceTest.testListGroupsWithFailure
  @ java GroupCoordinatorService.syncGroup
  stable A
  group other
  commit - t-0=1
  group g
  resign group=g
  load begin
  --
  join A                | A COORDINATOR_LOAD_IN_PROGRESS
  sync A                | A COORDINATOR_LOAD_IN_PROGRESS
  heartbeat A           | A NONE
  list                  | list COORDINATOR_LOAD_IN_PROGRESS groups=-
  log none
LOAD-NOT-OWNED In 0.10.2 a partition that loads is not owned yet: NOT_COORDINATOR
  @ L model quirk
  @ 0.10.2 GroupMetadataManager.loadGroupsForPartition
  stable A
  group other
  commit - t-0=1
  group g
  resign group=g
  load begin
  --
  join A                | A NOT_COORDINATOR
  sync A                | A NOT_COORDINATOR
  heartbeat A           | A NOT_COORDINATOR
  leave A               | leave NOT_COORDINATOR
  commit A t-0=1        | A t-0=NOT_COORDINATOR
  fetch t-0 v=2         | fetch error=NOT_COORDINATOR
  describe              | describe error=NOT_COORDINATOR
  list                  | list COORDINATOR_LOAD_IN_PROGRESS groups=other
  log none
LOAD-INACTIVE A coordinator that was not started answers COORDINATOR_NOT_AVAILABLE
  @ LSJ model
  @ 0.10.2 GroupCoordinator.isActive
  @ scala GroupCoordinator.validateGroupStatus
  @ java GroupCoordinatorServiceTest.testJoinGroupWhenNotStarted
  broker started=no
  join A                | A COORDINATOR_NOT_AVAILABLE
  sync A gen=1 id=a     | A COORDINATOR_NOT_AVAILABLE
  heartbeat A gen=1 id=a | A COORDINATOR_NOT_AVAILABLE
  leave A id=a          | leave COORDINATOR_NOT_AVAILABLE
  commit - t-0=1        | - t-0=COORDINATOR_NOT_AVAILABLE
  fetch t-0 v=2         | fetch error=COORDINATOR_NOT_AVAILABLE
  [SJ] delete           | delete g=COORDINATOR_NOT_AVAILABLE
  [SJ] erase t-0        | erase COORDINATOR_NOT_AVAILABLE
  [SJ] txn - t-0=1 pid=1000 | - t-0=COORDINATOR_NOT_AVAILABLE
  describe              | describe error=COORDINATOR_NOT_AVAILABLE
  list                  | list COORDINATOR_NOT_AVAILABLE groups=-
  log none
  startup
  elect
  stable A
LOAD-INACTIVE.name Only Scala's coordinator looks at the group id before it was started
  broker started=no
  group -
  [LJ] join A           | A COORDINATOR_NOT_AVAILABLE
  [S] join A            | A INVALID_GROUP_ID
LOAD-INACTIVE.session A coordinator that was not started looks at no session timeout
  broker started=no session_max=1000
  join A session=5000   | A COORDINATOR_NOT_AVAILABLE
LOAD-INACTIVE.order Scala's coordinator refuses deletions in the order of a map of the names
  broker started=no
  [J] delete o-5 o-1 o-3 o-4 o-2 | delete order=o-5,o-1,o-3,o-4,o-2 o-1=COORDINATOR_NOT_AVAILABLE
  [S] delete o-5 o-1 o-3 o-4 o-2 | delete order=o-1,o-3,o-2,o-5,o-4 o-1=COORDINATOR_NOT_AVAILABLE
LOAD-STOPPED A coordinator that was shut down answers COORDINATOR_NOT_AVAILABLE
  @ LSJ model
  @ 0.10.2 GroupCoordinator.shutdown
  @ java GroupCoordinatorService.shutdown
  stable A
  [LS] shutdown         | -
  [J] shutdown
  --
  heartbeat A           | A COORDINATOR_NOT_AVAILABLE
  commit A t-0=1        | A t-0=COORDINATOR_NOT_AVAILABLE
  describe              | describe error=COORDINATOR_NOT_AVAILABLE
  list                  | list COORDINATOR_NOT_AVAILABLE groups=-
  wait 300000           | -
  log none
LOAD-STOPPED.parked Only Java's coordinator answers what is parked when it is shut down
  stable A
  join B                | -
  [LS] shutdown         | -
  [J] shutdown          | B NOT_COORDINATOR
  wait 300000           | -
LOAD-STOPPED.again A second start does nothing, nor does one after the end of Java's coordinator
  broker started=no
  startup
  elect
  startup
  elect
  list                      | list NONE groups=-
  shutdown
  [J] startup
  list                      | list COORDINATOR_NOT_AVAILABLE groups=-
  join A                    | A COORDINATOR_NOT_AVAILABLE
LOAD-004 A Stable group survives a failover with members, generation and assignments
  @ LSJ must seen=3.9,4.4
  @ java GroupMetadataManagerTest.testReplayGroupMetadataRecords
  @ java GroupMetadataManagerTest.testOnLoadedSchedulesClassicGroupMemberHeartbeats
  stable A B
  resign
  elect
  --
  heartbeat A           | A NONE
  heartbeat B           | B NONE
  sync B                | B NONE work=b
  state Stable gen=2
  log none
LOAD-005 A failover takes a rebalancing group back to its last stored generation
  @ LSJ model
  @ scala GroupMetadataManager.doLoadGroupsAndOffsets
  stable A
  join B
  join A                | A NONE gen=2; B NONE gen=2
  resign
  elect
  --
  heartbeat A gen=2     | A ILLEGAL_GENERATION
  heartbeat A gen=1     | A NONE
  heartbeat B gen=2     | B UNKNOWN_MEMBER_ID
  join A                | A NONE gen=2
  state AwaitingSync gen=2
  log none
LOAD-006 A loaded group above group.max.size rebalances
  @ SJ model since=2.2
  @ java GroupMetadataManagerTest.testOnLoadedExceedGroupMaxSizeTriggersRebalance
  @ scala GroupCoordinator.onGroupLoaded
  broker size=1
  append group gen=1 members=A,B
  resign
  elect
  state PreparingRebalance gen=1 members=A,B
LOAD-007 A resignation answers parked JoinGroups with NOT_COORDINATOR
  @ LSJ model
  @ java GroupMetadataManagerTest.testClassicGroupOnUnloadedEmptyAndPreparingRebalance
  @ scala GroupCoordinator.onGroupUnloaded
  stable A B C
  join A                | -
  join B                | -
  resign                | A NOT_COORDINATOR id=A; B NOT_COORDINATOR id=B
LOAD-008 A resignation answers parked SyncGroups with NOT_COORDINATOR
  @ LSJ model
  @ java GroupMetadataManagerTest.testClassicGroupOnUnloadedCompletingRebalance
  @ scala GroupCoordinator.onGroupUnloaded
  @ scala GroupCoordinatorTest.testCompleteHeartbeatWithGroupDead
  @ scala GroupCoordinatorTest.testCompleteHeartbeatWithMemberAlreadyRemoved
  completing A B
  sync B                | -
  resign                | B NOT_COORDINATOR
  wait 300000           | -
LOAD-009 After a failover a follower that offers two protocols rebalances by its rejoin
  @ LSJ model quirk
  @ scala GroupMetadataManager.readGroupMessageValue
  stable A B protocols=range,roundrobin
  resign
  elect
  --
  join B                | -
  state PreparingRebalance
  log none
LOAD-010 A failover loses ids that have not joined
  @ SJ model
  @ scala GroupMetadataManager.doLoadGroupsAndOffsets
  stable A
  join C v=9            | C MEMBER_ID_REQUIRED
  resign
  elect
  join C                | C UNKNOWN_MEMBER_ID
""",
)
