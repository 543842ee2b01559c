"""Share groups (KIP-932) that are asked for what other groups do."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "CONSUMER",
    """
CG-190 A member of the consumer protocol is turned away from a share group
  @ J must seen=4.2-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupHeartbeatOnShareGroup
  share A               | A NONE epoch=E has=none
  beat B                | B GROUP_ID_NOT_FOUND says=Group_g_is_not_a_consumer_group.
  share A               | A NONE
CG-191 JoinGroup, SyncGroup and LeaveGroup are refused by a share group
  @ J must seen=4.2-4.4
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
