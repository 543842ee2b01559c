"""LeaveGroup: alone, in batches, parked, pending."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "LEAVE",
    """
LEAVE-001 a member leaves
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testValidLeaveGroup
  @ java GroupMetadataManagerTest.testValidLeaveGroup
  @ 0.10.2 GroupCoordinatorResponseTest.testValidLeaveGroup
  stable A
  --
  [L] leave A               | leave NONE
  [SJ] leave A              | leave NONE entries=NONE
  state Empty gen=2
  log group gen=2 type=consumer protocol=- leader=- members=-
LEAVE-002 one of two leaves
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinator.removeMemberAndUpdateGroup
  stable A B
  --
  leave B                   | leave NONE
  heartbeat A               | A REBALANCE_IN_PROGRESS
  state PreparingRebalance gen=2
  log none
LEAVE-003 an unknown group
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testLeaveGroupUnknownGroup
  @ scala GroupCoordinatorTest.testStaticMembersUnknownGroupBatchLeaveGroup
  @ java GroupMetadataManagerTest.testStaticMembersLeaveUnknownGroup
  @ java GroupCoordinatorServiceTest.testLeaveGroupThrowsUnknownMemberIdException
  leave x y                 | leave NONE entries=UNKNOWN_MEMBER_ID,UNKNOWN_MEMBER_ID
  state none
LEAVE-004 an unknown group, versions 0 to 2
  @ LSJ must seen=0.10.2-4.4
  @ 0.10.2 GroupCoordinatorResponseTest.testLeaveGroupUnknownGroup
  @ clients LeaveGroupResponse
  leave x v=2               | leave UNKNOWN_MEMBER_ID
  state none
LEAVE-005 an unknown member
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinatorTest.testLeaveGroupUnknownConsumerExistingGroup
  @ java GroupMetadataManagerTest.testLeaveGroupUnknownMemberIdExistingGroup
  @ 0.10.2 GroupCoordinatorResponseTest.testLeaveGroupUnknownConsumerExistingGroup
  stable A
  --
  leave x v=2               | leave UNKNOWN_MEMBER_ID
  [SJ] leave x              | leave NONE entries=UNKNOWN_MEMBER_ID
  state Stable gen=1
  log none
LEAVE-007 a Dead group
  @ SJ model since=2.3
  @ scala GroupCoordinatorTest.testSingleLeaveDeadGroup
  @ scala GroupCoordinatorTest.testBatchLeaveDeadGroup
  @ java GroupMetadataManagerTest.testLeaveDeadGroup
  stable A B
  force Dead
  leave A                   | leave COORDINATOR_NOT_AVAILABLE entries=-
  leave A B                 | leave COORDINATOR_NOT_AVAILABLE entries=-
LEAVE-008 leaving while parked in JoinGroup
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinator.removeMemberAndUpdateGroup
  stable A B
  join A                    | -
  leave A                   | leave NONE; A UNKNOWN_MEMBER_ID id=-
LEAVE-PARKED leaving while parked in JoinGroup, which up to 2.0 is never answered
  @ L must seen=0.10.2
  @ 0.10.2 GroupCoordinator.removeMemberAndUpdateGroup
  stable A B
  join A                    | -
  leave A                   | leave NONE
  state PreparingRebalance members=B
LEAVE-009 leaving completes a waiting join phase
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinator.removeMemberAndUpdateGroup
  stable A B
  join C                    | -
  join A                    | -
  --
  leave B                   | leave NONE; A NONE gen=3; C NONE gen=3
  state AwaitingSync
  log none
LEAVE-011 a fenced static member
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testLeaveGroupWithFencedInstanceId
  @ java GroupMetadataManagerTest.testLeaveGroupWithFencedInstanceId
  stable L:i1
  leave some:i1             | leave NONE entries=FENCED_INSTANCE_ID
LEAVE-012 an administrator removes by instance id
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testLeaveGroupStaticMemberWithUnknownMemberId
  @ java GroupMetadataManagerTest.testLeaveGroupStaticMemberWithUnknownMemberId
  stable L:i1
  leave :i1                 | leave NONE entries=NONE
  state Empty
LEAVE-013 a batch of static members
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testStaticMembersValidBatchLeaveGroup
  @ java GroupMetadataManagerTest.testStaticMembersValidBatchLeaveGroup
  stable L:i1 F:i2
  --
  leave :i1 :i2             | leave NONE entries=NONE,NONE
  state Empty gen=3
  log group gen=3 protocol=- leader=- members=-
LEAVE-014 a batch with one fenced
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testStaticMembersFencedInstanceBatchLeaveGroup
  @ java GroupMetadataManagerTest.testStaticMembersFencedInstanceBatchLeaveGroup
  stable L:i1 F:i2
  --
  leave :i1 invalid:i2      | leave NONE entries=NONE,FENCED_INSTANCE_ID
  state PreparingRebalance gen=2
  log none
LEAVE-015 a batch with one unknown instance
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testStaticMembersUnknownInstanceBatchLeaveGroup
  @ java GroupMetadataManagerTest.testStaticMembersUnknownInstanceBatchLeaveGroup
  stable L:i1 F:i2
  --
  leave :unknown :i2        | leave NONE entries=UNKNOWN_MEMBER_ID,NONE
  state PreparingRebalance gen=2
  log none
LEAVE-016 a batch with a pending member
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testPendingMemberBatchLeaveGroup
  @ java GroupMetadataManagerTest.testPendingMemberBatchLeaveGroup
  stable A B
  join C v=9
  join A                    | -
  join B                    | -
  --
  leave :unknown C          | leave NONE entries=UNKNOWN_MEMBER_ID,NONE; A NONE; B NONE
  state AwaitingSync
  log none
LEAVE-018 the whole batch leaves
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinator.handleLeaveGroup
  @ java GroupMetadataManager.classicGroupLeaveToClassicGroup
  stable A B C
  --
  leave A B C               | leave NONE entries=NONE,NONE,NONE
  state Empty gen=4
  log group gen=4 protocol=- leader=- members=-
LEAVE-019 the same member twice in a batch
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinator.handleLeaveGroup
  stable A B
  --
  leave A A                 | leave NONE entries=NONE,UNKNOWN_MEMBER_ID
  state PreparingRebalance
  log none
LEAVE-024 leaving while parked in SyncGroup
  @ LSJ must quirk seen=0.10.2-4.4
  @ scala GroupCoordinator.removeMemberAndUpdateGroup
  completing A B
  sync B                    | -
  --
  leave B                   | leave NONE
  state PreparingRebalance
  wait 300000               | -
LEAVE-026 the leader leaves
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupMetadata.remove
  stable A B
  --
  leave A                   | leave NONE
  join B                    | B NONE gen=3 leader=B members=B
  state AwaitingSync gen=3
  log none
LEAVE-PENDING a pending member leaves an Empty group
  @ SJ must
  @ GroupMetadataManager.classicGroupLeaveToClassicGroup
  @ GroupCoordinator.removePendingMemberAndUpdateGroup
  join A v=9            | A MEMBER_ID_REQUIRED
  leave A               | leave NONE entries=NONE
  state Empty gen=0 pending=-
LEAVE-PENDING.stable a pending member that leaves rebalances a Stable group
  stable A
  join B v=9            | B MEMBER_ID_REQUIRED
  leave B               | leave NONE entries=NONE
  [S] state Stable gen=1
  [J] state PreparingRebalance gen=1
""",
)
