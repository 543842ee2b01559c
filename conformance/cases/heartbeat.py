"""Heartbeat: what it answers and whether it keeps the session."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "HEARTBEAT",
    """
HB-002 A heartbeat to an unknown group is UNKNOWN_MEMBER_ID
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testHeartbeatUnknownGroup
  @ java GroupMetadataManagerTest.testHeartbeatUnknownGroup
  @ 0.10.2 GroupCoordinatorResponseTest.testHeartbeatUnknownGroup
  heartbeat A gen=1 id=a    | A UNKNOWN_MEMBER_ID
  state none
HB-003 A heartbeat of an unknown member is UNKNOWN_MEMBER_ID
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testHeartbeatUnknownConsumerExistingGroup
  @ java GroupMetadataManagerTest.testHeartbeatUnknownMemberExistingGroup
  @ 0.10.2 GroupCoordinatorResponseTest.testHeartbeatUnknownConsumerExistingGroup
  stable A
  heartbeat A id=x          | A UNKNOWN_MEMBER_ID
  state Stable gen=1
HB-004 A heartbeat of another generation is ILLEGAL_GENERATION
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testHeartbeatIllegalGeneration
  @ java GroupMetadataManagerTest.testHeartbeatIllegalGeneration
  @ 0.10.2 GroupCoordinatorResponseTest.testHeartbeatIllegalGeneration
  stable A
  heartbeat A gen=2         | A ILLEGAL_GENERATION
  state Stable gen=1
HB-005 A heartbeat in the join phase is REBALANCE_IN_PROGRESS, and keeps the session
  @ LSJ must seen=0.10.2-4.4
  @ java GroupMetadataManagerTest.testHeartbeatDuringPreparingRebalance
  @ scala GroupCoordinatorTest.testHeartbeatDuringRebalanceCausesRebalanceInProgress
  stable A
  join B
  wait 9000
  heartbeat A               | A REBALANCE_IN_PROGRESS
  wait 9000
  state PreparingRebalance gen=1 members=A,B
HB-006 A heartbeat in the sync phase is accepted, and keeps the session
  @ SJ must since=2.6 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testHeartbeatRebalanceInProgress
  @ java GroupMetadataManagerTest.testHeartbeatDuringCompletingRebalance
  completing A
  wait 9000
  heartbeat A               | A NONE
  wait 9000
  state AwaitingSync gen=1 members=A
HB-007 Up to 2.5 a heartbeat in the sync phase is REBALANCE_IN_PROGRESS, and keeps no session
  @ L must seen=0.10.2
  @ 0.10.2 GroupCoordinatorResponseTest.testHeartbeatRebalanceInProgress
  @ 0.10.2 GroupCoordinator.handleHeartbeat
  completing A
  wait 6000
  heartbeat A               | A REBALANCE_IN_PROGRESS
  heartbeat A gen=77        | A REBALANCE_IN_PROGRESS
  state AwaitingSync gen=1 members=A
  wait 3999
  state AwaitingSync gen=1 members=A
  wait 1
  state Empty gen=2
HB-007.unknown In the sync phase the member is checked first, and no generation
  completing A
  heartbeat A gen=77        | A REBALANCE_IN_PROGRESS
  heartbeat A id=ghost      | A UNKNOWN_MEMBER_ID
HB-009 A heartbeat to an Empty group is UNKNOWN_MEMBER_ID
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testHeartbeatEmptyGroup
  @ java GroupMetadataManagerTest.testHeartbeatEmptyGroup
  stable A
  leave A
  heartbeat A gen=2         | A UNKNOWN_MEMBER_ID
  state Empty
HB-010 A heartbeat to a Dead group is COORDINATOR_NOT_AVAILABLE
  @ SJ model since=2.3
  @ scala GroupCoordinatorTest.testHeartbeatDeadGroup
  @ java GroupMetadataManagerTest.testHeartbeatDeadGroup
  stable A
  force Dead
  heartbeat A               | A COORDINATOR_NOT_AVAILABLE
HB-DEAD Up to 2.2 a heartbeat to a Dead group is UNKNOWN_MEMBER_ID
  @ L model
  @ 0.10.2 GroupCoordinator.handleHeartbeat
  stable A
  force Dead
  heartbeat A               | A UNKNOWN_MEMBER_ID
HB-013 Heartbeats keep the session
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testHeartbeatMaintainsSession
  @ java GroupMetadataManagerTest.testClassicGroupMemberHeartbeatMaintainsSession
  @ 0.10.2 GroupCoordinatorResponseTest.testHeartbeatMaintainsSession
  stable A
  wait 5000
  heartbeat A               | A NONE
  wait 5100
  heartbeat A               | A NONE
  state Stable gen=1
HB-014 A refused heartbeat does not keep the session
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinator.handleHeartbeat
  stable A
  --
  wait 3333
  heartbeat A gen=99        | A ILLEGAL_GENERATION
  wait 3333
  heartbeat A gen=99        | A ILLEGAL_GENERATION
  wait 3334
  heartbeat A gen=99        | A UNKNOWN_MEMBER_ID
  state Empty gen=2
  log group gen=2 protocol=- leader=- members=-
HB-015 Commits keep the session
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testCommitMaintainsSession
  @ 0.10.2 GroupCoordinatorResponseTest.testCommitMaintainsSession
  stable A
  --
  wait 5000
  commit A t-0=1            | A t-0=NONE
  wait 5100
  heartbeat A               | A NONE
  log offset t-0=1
HB-021 An absent static member gets a fresh session when the join phase ends
  @ SJ must quirk since=2.3 seen=2.8-4.4
  @ scala GroupCoordinator.onCompleteJoin
  stable L:i1 F:i2 session=1000 rebalance=600
  join L                    | -
  wait 600                  | L NONE gen=3
  --
  wait 500
  state AwaitingSync members=F,L
  log none
HB-EMPTY A heartbeat of a member that an Empty group holds by a bug is UNKNOWN_MEMBER_ID
  @ J model
  @ GroupMetadataManager.classicGroupHeartbeatToClassicGroup
  stable A
  force Empty
  heartbeat A               | A UNKNOWN_MEMBER_ID
HB-INSTANCE Only Kafka before 3.0 passes over an instance id that nobody has
  @ SJ must since=2.4
  @ GroupCoordinator.validateCurrentMember
  stable A
  [2.8] heartbeat A i=nobody | A NONE
  [3.9 J] heartbeat A i=nobody | A UNKNOWN_MEMBER_ID
HB-GROUP-ID In 0.10.2 a heartbeat to the empty group id is UNKNOWN_MEMBER_ID
  @ L must
  @ 0.10.2 GroupCoordinator.handleHeartbeat
  group -
  heartbeat A id=m gen=1    | A UNKNOWN_MEMBER_ID
""",
)
