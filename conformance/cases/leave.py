"""LeaveGroup: alone, in batches, parked, pending."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "LEAVE",
    """
LEAVE-001 A group whose last member leaves is Empty, in the next generation
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
LEAVE-002 Where one of two members leaves, the other is told to rejoin
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinator.removeMemberAndUpdateGroup
  stable A B
  --
  leave B                   | leave NONE
  heartbeat A               | A REBALANCE_IN_PROGRESS
  state PreparingRebalance gen=2
  log none
LEAVE-003 From version 3 on, leaving an unknown group is an error of each member
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testLeaveGroupUnknownGroup
  @ scala GroupCoordinatorTest.testStaticMembersUnknownGroupBatchLeaveGroup
  @ java GroupMetadataManagerTest.testStaticMembersLeaveUnknownGroup
  @ java GroupCoordinatorServiceTest.testLeaveGroupThrowsUnknownMemberIdException
  leave x y                 | leave NONE entries=UNKNOWN_MEMBER_ID,UNKNOWN_MEMBER_ID
  state none
LEAVE-004 Up to version 2, leaving an unknown group is UNKNOWN_MEMBER_ID
  @ LSJ must seen=0.10.2-4.4
  @ 0.10.2 GroupCoordinatorResponseTest.testLeaveGroupUnknownGroup
  @ clients LeaveGroupResponse
  leave x v=2               | leave UNKNOWN_MEMBER_ID
  state none
LEAVE-005 Leaving as an unknown member is UNKNOWN_MEMBER_ID, and changes nothing
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
LEAVE-007 Leaving a Dead group is COORDINATOR_NOT_AVAILABLE
  @ SJ model since=2.3
  @ scala GroupCoordinatorTest.testSingleLeaveDeadGroup
  @ scala GroupCoordinatorTest.testBatchLeaveDeadGroup
  @ java GroupMetadataManagerTest.testLeaveDeadGroup
  stable A B
  force Dead
  leave A                   | leave COORDINATOR_NOT_AVAILABLE entries=-
  leave A B                 | leave COORDINATOR_NOT_AVAILABLE entries=-
LEAVE-008 A member that leaves while its JoinGroup is parked gets UNKNOWN_MEMBER_ID for that
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinator.removeMemberAndUpdateGroup
  stable A B
  join A                    | -
  leave A                   | leave NONE; A UNKNOWN_MEMBER_ID id=-
LEAVE-PARKED Up to 2.0 the parked JoinGroup of a member that leaves is never answered
  @ L must seen=0.10.2
  @ 0.10.2 GroupCoordinator.removeMemberAndUpdateGroup
  stable A B
  join A                    | -
  leave A                   | leave NONE
  state PreparingRebalance members=B
LEAVE-PARKED.completed The rebalance ends without the answer of a member that left
  stable A
  join B                    | -
  leave B                   | leave NONE
  join A                    | A NONE gen=2 members=A
  wait 60000
LEAVE-009 A leave ends a join phase that waited for nobody else
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupCoordinator.removeMemberAndUpdateGroup
  stable A B
  join C                    | -
  join A                    | -
  --
  leave B                   | leave NONE; A NONE gen=3; C NONE gen=3
  state AwaitingSync
  log none
LEAVE-011 Leaving with another member's instance id is FENCED_INSTANCE_ID
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testLeaveGroupWithFencedInstanceId
  @ java GroupMetadataManagerTest.testLeaveGroupWithFencedInstanceId
  stable L:i1
  leave some:i1             | leave NONE entries=FENCED_INSTANCE_ID
LEAVE-012 An administrator removes a static member by its instance id alone
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testLeaveGroupStaticMemberWithUnknownMemberId
  @ java GroupMetadataManagerTest.testLeaveGroupStaticMemberWithUnknownMemberId
  stable L:i1
  leave :i1                 | leave NONE entries=NONE
  state Empty
LEAVE-013 An administrator removes several static members at once
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testStaticMembersValidBatchLeaveGroup
  @ java GroupMetadataManagerTest.testStaticMembersValidBatchLeaveGroup
  stable L:i1 F:i2
  --
  leave :i1 :i2             | leave NONE entries=NONE,NONE
  state Empty gen=3
  log group gen=3 protocol=- leader=- members=-
LEAVE-014 A fenced entry of a batch does not keep the others from leaving
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testStaticMembersFencedInstanceBatchLeaveGroup
  @ java GroupMetadataManagerTest.testStaticMembersFencedInstanceBatchLeaveGroup
  stable L:i1 F:i2
  --
  leave :i1 invalid:i2      | leave NONE entries=NONE,FENCED_INSTANCE_ID
  state PreparingRebalance gen=2
  log none
LEAVE-015 An unknown instance in a batch does not keep the others from leaving
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinatorTest.testStaticMembersUnknownInstanceBatchLeaveGroup
  @ java GroupMetadataManagerTest.testStaticMembersUnknownInstanceBatchLeaveGroup
  stable L:i1 F:i2
  --
  leave :unknown :i2        | leave NONE entries=UNKNOWN_MEMBER_ID,NONE
  state PreparingRebalance gen=2
  log none
LEAVE-016 A batch removes ids that have not joined, too, which can end the join phase
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
LEAVE-018 Where all leave in one batch, the group is Empty in the next generation
  @ SJ must since=2.4 seen=2.8-4.4
  @ scala GroupCoordinator.handleLeaveGroup
  @ java GroupMetadataManager.classicGroupLeaveToClassicGroup
  stable A B C
  --
  leave A B C               | leave NONE entries=NONE,NONE,NONE
  state Empty gen=4
  log group gen=4 protocol=- leader=- members=-
LEAVE-019 A member that a batch names twice leaves once
  @ SJ must seen=2.8-4.4
  @ scala GroupCoordinator.handleLeaveGroup
  stable A B
  --
  leave A A                 | leave NONE entries=NONE,UNKNOWN_MEMBER_ID
  state PreparingRebalance
  log none
LEAVE-024 The parked SyncGroup of a member that leaves is never answered
  @ LSJ must quirk seen=0.10.2-4.4
  @ scala GroupCoordinator.removeMemberAndUpdateGroup
  completing A B
  sync B                    | -
  --
  leave B                   | leave NONE
  state PreparingRebalance
  wait 300000               | -
LEAVE-026 Where the leader leaves, another member leads the next generation
  @ LSJ must seen=0.10.2-4.4
  @ scala GroupMetadata.remove
  stable A B
  --
  leave A                   | leave NONE
  join B                    | B NONE gen=3 leader=B members=B
  state AwaitingSync gen=3
  log none
LEAVE-PENDING An id that has not joined can leave
  @ SJ must
  @ GroupMetadataManager.classicGroupLeaveToClassicGroup
  @ GroupCoordinator.removePendingMemberAndUpdateGroup
  join A v=9            | A MEMBER_ID_REQUIRED
  leave A               | leave NONE entries=NONE
  state Empty gen=0 pending=-
LEAVE-PENDING.stable Only Java's coordinator rebalances when an id that has not joined leaves
  stable A
  join B v=9            | B MEMBER_ID_REQUIRED
  leave B               | leave NONE entries=NONE
  [S] state Stable gen=1
  [J] state PreparingRebalance gen=1
LEAVE-PENDING.static Before 3.0 an id that leaves with an instance id fails the request
  join A v=9                | A MEMBER_ID_REQUIRED
  [2.8] leave A:i           | leave UNKNOWN_SERVER_ERROR
  [3.9 J] leave A:i         | leave NONE entries=NONE
LEAVE-HELD Only Java's coordinator answers the last member's leave once its record is replicated
  @ SJ model
  @ GroupCoordinator.handleLeaveGroup
  @ GroupMetadataManager.classicGroupLeave
  stable A
  hold
  [S] leave A               | leave NONE
  [S] release               | -
  [J] leave A               | -
  [J] release               | leave NONE
""",
)
