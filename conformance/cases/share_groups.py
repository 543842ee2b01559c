"""Share groups (KIP-932): their members and what they are assigned; what other groups' APIs say."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

_ASKED_OTHERS: Final = read_cases(
    "CONSUMER",
    """
CG-190 A member of the consumer protocol is turned away from a share group
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupHeartbeatOnShareGroup
  share A               | A NONE epoch=E has=none
  beat B                | B GROUP_ID_NOT_FOUND says=Group_g_is_not_a_consumer_group.
  share A               | A NONE
CG-191 JoinGroup, SyncGroup and LeaveGroup are refused by a share group
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManagerTest.testClassicGroupJoinOnShareGroup
  @ java GroupMetadataManagerTest.testClassicGroupSyncOnShareGroup
  @ java GroupMetadataManagerTest.testClassicGroupLeaveOnShareGroup
  share A
  join B                | B INCONSISTENT_GROUP_PROTOCOL
  sync A gen=1          | A UNKNOWN_MEMBER_ID
  leave A               | leave entries=UNKNOWN_MEMBER_ID
  list types=share      | list NONE groups=g g.type=share g.state=Stable
""",
)
_MEMBERS: Final = read_cases(
    "SHARE",
    """
SG-001 A heartbeat without a member id is INVALID_REQUEST: clients make their ids
  @ J must since=4.2 seen=4.2-4.4
  @ scala KafkaApis.handleShareGroupHeartbeat
  @ java GroupCoordinatorService.throwIfShareGroupHeartbeatRequestIsInvalid
  share A id=none       | A INVALID_REQUEST
  share A id=blank      | A INVALID_REQUEST
SG-002 A member that joins without naming topics is INVALID_REQUEST
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupCoordinatorService.throwIfShareGroupHeartbeatRequestIsInvalid
  share A names=-       | A INVALID_REQUEST says=SubscribedTopicNames_must_be_set_in_first_request.
SG-003 A member epoch below -1 is INVALID_REQUEST: there are no static members
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupCoordinatorService.throwIfShareGroupHeartbeatRequestIsInvalid
  share A e=-2          | A INVALID_REQUEST says=MemberEpoch_is_invalid.
SG-004 The first member has nothing until state of the partitions is kept, and then all of them
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.shareGroupHeartbeat
  share A               | A NONE epoch=E has=none
  wait 500
  share A               | A NONE epoch=E+1 has=foo:0-5
  shares                | shares NONE state=Stable members=A A=E+1 A.has=foo:0-5
SG-005 Two members share the partitions, and nobody waits for another to give one up
  @ J must since=4.2 seen=4.2-4.4
  @ java SimpleAssignor
  share A
  wait 500
  share A
  share B               | B NONE epoch=E+2
  share A               | A NONE epoch=E+2
  shares                | shares NONE state=Stable A.count=3 B.count=3 shared=0
SG-006 Each member has a partition, where there are more members than partitions
  @ J must since=4.2 seen=4.2-4.4
  @ java SimpleAssignor
  broker topics=foo:1
  share A
  wait 500
  share A
  share B
  share C               | C NONE has=foo:0
  share B
  share A
  shares                | shares NONE state=Stable members=A,B,C A.has=foo:0 B.has=foo:0 C.has=foo:0 shared=2
SG-007 A member epoch above 0 finds no group: GROUP_ID_NOT_FOUND
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.getOrMaybeCreateShareGroup
  share A e=5           | A GROUP_ID_NOT_FOUND
SG-008 A member epoch above 0 of an unknown member is UNKNOWN_MEMBER_ID
  @ J must since=4.2 seen=4.2-4.4
  @ java ShareGroup.getOrMaybeCreateMember
  share A
  share B e=1           | B UNKNOWN_MEMBER_ID
SG-009 A member epoch greater than the member's is FENCED_MEMBER_EPOCH
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.throwIfShareGroupMemberEpochIsInvalid
  share A
  share A e=200         | A FENCED_MEMBER_EPOCH
SG-010 The member's previous epoch is taken: the answer to it may have been lost
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.throwIfShareGroupMemberEpochIsInvalid
  share A               | A NONE epoch=E
  wait 500
  share A               | A NONE epoch=E+1
  share A e=E           | A NONE epoch=E+1 has=-
SG-011 An epoch older than the previous one is FENCED_MEMBER_EPOCH
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.throwIfShareGroupMemberEpochIsInvalid
  share A               | A NONE epoch=E
  wait 500
  share A               | A NONE epoch=E+1
  share B               | B NONE epoch=E+2
  share A               | A NONE epoch=E+2
  share A e=E           | A FENCED_MEMBER_EPOCH
SG-012 A live member may join again, and is told what it has
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.throwIfShareGroupMemberEpochIsInvalid
  share A
  wait 500
  share A               | A NONE epoch=E+1 has=foo:0-5
  share A e=0           | A NONE epoch=E+1 has=foo:0-5
SG-013 A member that leaves is gone at once, and the last one leaves an Empty group
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.shareGroupLeave
  share A
  share A e=-1          | A NONE epoch=-1 has=-
  shares                | shares NONE state=Empty members=-
  share A e=-1 id=A     | A UNKNOWN_MEMBER_ID
SG-014 A member whose session ends is removed, and the others get what it had
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.scheduleShareGroupSessionTimeout
  share A
  wait 500
  share A
  share B
  share A
  wait 30000
  share A               | A NONE has=-
  wait 15001
  share A               | A NONE has=foo:0-5
  share B e=1           | B UNKNOWN_MEMBER_ID
SG-015 A full group takes no other member
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.throwIfShareGroupIsFull
  broker sharing_members=1
  share A
  share B               | B GROUP_MAX_SIZE_REACHED
  share A               | A NONE
SG-016 Another subscription is another epoch, and another assignment
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.hasMemberSubscriptionChanged
  broker topics=foo:2,bar:1
  share A
  wait 500
  share A               | A NONE epoch=E+1 has=foo:0-1
  share A names=bar
  wait 500
  share A               | A NONE has=bar:0
SG-017 The group of a consumer is no share group
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.getOrMaybeCreateShareGroup
  settled A
  share B               | B GROUP_ID_NOT_FOUND
  shares                | shares GROUP_ID_NOT_FOUND
SG-018 A group that does not exist is described as GROUP_ID_NOT_FOUND
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.shareGroupDescribe
  shares                | shares GROUP_ID_NOT_FOUND
SG-019 A share group with members is not deleted; an Empty one is
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupCoordinatorService.deleteGroups
  share A
  delete                | delete g=NON_EMPTY_GROUP
  share A e=-1
  delete                | delete g=NONE
  shares                | shares GROUP_ID_NOT_FOUND
SG-020 Offsets are neither committed to a share group nor fetched from it
  @ J must since=4.2 seen=4.2-4.4
  @ java OffsetMetadataManager.validateOffsetCommit
  share A
  commit - foo-0=5      | - foo-0=GROUP_ID_NOT_FOUND
  fetch foo-0           | fetch NONE foo-0=-1
SG-FAILOVER A failover keeps a share group with its partitions
  @ J model since=4.2
  @ GroupMetadataManager.onLoaded
  share A
  wait 500
  share A               | A NONE epoch=E+1 has=foo:0-5
  resign
  elect
  shares                | shares NONE state=Stable members=A A=E+1 A.has=foo:0-5
  share A               | A NONE epoch=E+1
""",
)
CASES: Final = (*_ASKED_OTHERS, *_MEMBERS)
