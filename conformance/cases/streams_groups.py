"""Streams groups (KIP-1071): their members, topologies and tasks."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "STREAMS",
    """
ST-001 A heartbeat without a member id is INVALID_REQUEST: clients make their ids
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid
  stream A id=none      | A INVALID_REQUEST says=MemberId_can't_be_empty.
ST-002 A member that joins without a topology is INVALID_REQUEST
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid
  stream A topics=-     | A INVALID_REQUEST says=Topology_must_be_non-null_when_(re-)joining.
ST-003 A member that joins with tasks is INVALID_REQUEST
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid
  stream A active=0:0   | A INVALID_REQUEST says=ActiveTasks_must_be_empty_when_(re-)joining.
ST-004 A topology in any other heartbeat than a join is INVALID_REQUEST
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsInvalid
  stream A
  stream A topics=foo   | A INVALID_REQUEST says=Topology_can_only_be_provided_when_(re-)joining.
ST-005 The first member is given a task for each partition of each subtopology
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.streamsGroupHeartbeat
  broker topics=foo:6,bar:3 first_target_delay=0
  stream A topics=foo,bar | A NONE epoch=E every=5000 active=0:0-5,1:0-2 standby=none warmup=none status=none
  streams               | streams NONE state=Stable epoch=E target=E members=A A=E A.active=0:0-5,1:0-2
ST-006 A second member waits with nothing while the first is told to give up its share
  @ J must since=4.2 seen=4.2-4.4
  @ java streams.CurrentAssignmentBuilder.build
  running A
  stream B              | B NONE epoch=E+1 active=none
  stream A active=all   | A NONE epoch=E
  streams               | streams NONE state=Reconciling A=E B=E+1
ST-007 Tasks that a member does not report any more go to the one that waits for them
  @ J must since=4.2 seen=4.2-4.4
  @ java streams.CurrentAssignmentBuilder.build
  running A
  stream B
  stream A active=all
  stream A active=all   | A NONE epoch=E+1
  stream B active=none  | B NONE epoch=E+1
  streams               | streams NONE state=Stable epoch=E+1 A.count=3 B.count=3
ST-008 A member that does not give up what it must within its rebalance timeout is removed
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.scheduleStreamsGroupRebalanceTimeout
  running A rebalance=10000
  stream B
  stream A active=all
  wait 9999
  stream A              | A NONE epoch=E
  wait 2
  stream A              | A UNKNOWN_MEMBER_ID
  streams               | streams NONE members=B
ST-009 A member epoch above 0 finds no group: GROUP_ID_NOT_FOUND
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.getStreamsGroupOrThrow
  stream A e=5          | A GROUP_ID_NOT_FOUND
ST-010 A member epoch above 0 of an unknown member is UNKNOWN_MEMBER_ID
  @ J must since=4.2 seen=4.2-4.4
  @ java StreamsGroup.getMemberOrThrow
  stream A
  stream B e=1          | B UNKNOWN_MEMBER_ID
ST-011 A member epoch greater than the member's is FENCED_MEMBER_EPOCH
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.throwIfStreamsGroupMemberEpochIsInvalid
  stream A
  stream A e=200        | A FENCED_MEMBER_EPOCH
ST-012 A member that leaves is gone at once, and the last one leaves an Empty group
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.streamsGroupLeave
  stream A
  stream A e=-1         | A NONE epoch=-1
  streams               | streams NONE state=Empty members=-
ST-013 A member whose session ends is removed, and the others get its tasks
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.scheduleStreamsGroupSessionTimeout
  running A B
  wait 30000
  stream A
  wait 15001
  stream A              | A NONE active=0:0-5
  stream B              | B UNKNOWN_MEMBER_ID
ST-014 A source topic that does not exist leaves the group NotReady, and members are told
  @ J must since=4.2 seen=4.2-4.4
  @ java streams.topics.TopicManager.configureTopics
  broker first_target_delay=0
  stream A topics=foo,nope | A NONE active=none status=missing-source-topics
  streams               | streams NONE state=NotReady members=A
ST-015 Another topology of the same epoch is INVALID_REQUEST
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.maybeUpdateTopology
  broker topics=foo:6,bar:3
  stream A
  stream B topics=bar   | B INVALID_REQUEST
ST-016 The first target may wait for other members, and they are told
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.streamsGroupHeartbeat
  broker first_target_delay=3000
  stream A              | A NONE active=none status=assignment-delayed
  wait 1000
  stream B              | B NONE active=none status=assignment-delayed
  wait 2500
  stream A
  stream B
  streams               | streams NONE state=Stable A.count=3 B.count=3
ST-017 A member that shuts the application down has all members told
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.streamsGroupHeartbeat
  running A B
  stream A e=-1 shutdown=yes
  stream B              | B NONE status=shutdown-application
ST-018 Members of other types are turned away
  @ J must since=4.2 seen=4.2-4.4
  @ java GroupMetadataManager.getOrMaybeCreateConsumerGroup
  @ java GroupMetadataManager.classicGroupJoin
  stream A
  beat B                | B GROUP_ID_NOT_FOUND
  share C               | C GROUP_ID_NOT_FOUND
  join D                | D INCONSISTENT_GROUP_PROTOCOL
  list types=streams    | list NONE groups=g g.type=streams
ST-019 A streams group with members is not deleted; an Empty one is
  @ J must since=4.2 seen=4.2-4.4
  @ java StreamsGroup.validateDeleteGroup
  stream A
  delete                | delete g=NON_EMPTY_GROUP
  stream A e=-1
  delete                | delete g=NONE
  streams               | streams GROUP_ID_NOT_FOUND
ST-020 Offsets are committed at the member's epoch
  @ J must since=4.2 seen=4.2-4.4
  @ java StreamsGroup.validateOffsetCommit
  stream A
  commit A foo-0=5 v=9  | A foo-0=NONE
  commit A foo-0=6 v=9 gen=200 | A foo-0=STALE_MEMBER_EPOCH
  fetch foo-0           | fetch NONE foo-0=5
ST-FAILOVER A failover keeps a streams group with its tasks
  @ J model since=4.2
  @ GroupMetadataManager.onLoaded
  running A
  resign
  elect
  streams               | streams NONE state=Stable epoch=E members=A A.active=0:0-5
  stream A active=all   | A NONE epoch=E
ST-FAILOVER.unrevoked A failover begins the rebalance timeout of a member that is to give up
  running A rebalance=10000
  stream B
  stream A active=all
  resign
  elect
  wait 9999
  stream A              | A NONE epoch=E
  wait 2
  stream A              | A UNKNOWN_MEMBER_ID
ST-NOT-READY A group that is NotReady is listed by the name not_ready
  @ J must since=4.2
  @ StreamsGroup.StreamsGroupState
  stream A topics=nope
  list types=consumer   | list NONE groups=-
  list states=not_ready | list NONE groups=g g.state=NotReady
  list states=NotReady  | list NONE groups=-
""",
)
