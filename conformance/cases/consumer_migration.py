"""Consumer groups (KIP-848) with classic members, and groups that change their type."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "CONSUMER",
    """
CG-143 A JoinGroup that waits for others is told to join again when its group is upgraded
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupHeartbeatWithPreparingRebalanceClassicGroup
  broker migration=bidirectional
  join A topics=foo     | A NONE gen=1
  sync A A=foo:0-5      | A NONE has=foo:0-5
  join B topics=foo     | -
  beat C                | B REBALANCE_IN_PROGRESS; C NONE number=2 has=none
  heartbeat A           | A REBALANCE_IN_PROGRESS
CG-143.up A classic group becomes a consumer group at a heartbeat, and its members go on
  broker migration=bidirectional
  join A topics=foo     | A NONE gen=1
  sync A A=foo:0-5      | A NONE has=foo:0-5
  --
  beat C                | C NONE number=2 has=none
  [4.0] log group gone=yes; member of=A names=foo; topics topics=foo; epoch; target of=A shall=foo:0-5; target-epoch; current of=A state=stable has=foo:0-5; member of=C; epoch; target; target; target-epoch; current of=C
  [4.1 4.2 4.3 4.4] log group gone=yes; member of=A names=foo; epoch; target of=A shall=foo:0-5; target-epoch; current of=A state=stable has=foo:0-5; member of=C; epoch; target; target; target-epoch; current of=C
  join A own=none       | A NONE gen=2
  sync A                | A NONE has=foo:0-2
  beat C                | C NONE number=2 has=foo:3-5
  inspect               | inspect NONE state=Stable members=A,C A.kind=0 C.kind=1
CG-149 A group with more classic members than group.max.size stays a consumer group
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testNoConversionWhenSizeExceedsClassicMaxGroupSize
  broker size=1 migration=downgrade
  beat C                | C NONE
  join A topics=foo     | A NONE
  join B topics=foo     | B NONE
  beat C e=-1           | C NONE epoch=-1
  inspect               | inspect NONE members=A,B A.kind=0 B.kind=0
CG-149.down A group that is left with classic members alone is a classic group, and rebalances
  broker migration=bidirectional
  beat C                | C NONE
  join A topics=foo     | A NONE
  --
  beat C e=-1           | C NONE epoch=-1
  log current gone=yes; current gone=yes; target gone=yes; target gone=yes; target-epoch gone=yes; member gone=yes; member gone=yes; topics gone=yes; epoch gone=yes; group leader=A members=A
  heartbeat A           | A REBALANCE_IN_PROGRESS
  list                  | list NONE groups=g g.type=classic g.state=PreparingRebalance
CG-149.silent A session that ends downgrades a group like a member that leaves
  broker migration=bidirectional
  join A topics=foo session=100000 rebalance=100000
  sync A A=foo:0-5
  beat C                | C NONE
  join A                | A NONE gen=2
  sync A                | A NONE
  wait 45001
  inspect               | inspect GROUP_ID_NOT_FOUND
  heartbeat A           | A REBALANCE_IN_PROGRESS
CG-149.disabled From 4.3 on, a consumer group takes classic members where the policy allows them
  broker migration=disabled
  beat C                | C NONE
  [4.0 4.1 4.2] join A topics=foo | A NONE
  [4.0 4.1 4.2] beat C e=-1       | C NONE
  [4.0 4.1 4.2] inspect           | inspect NONE members=A
  [4.3 4.4] join A topics=foo | A INCONSISTENT_GROUP_PROTOCOL
CG-150 A classic member that replaces the last other one, a static one, has its target
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testLastStaticConsumerProtocolMemberReplacedByClassicProtocolMember
  broker migration=bidirectional
  beat C:i1             | C NONE epoch=E has=foo:0-5
  join A topics=foo     | A NONE
  beat C own=all        | C NONE epoch=E has=foo:0-2
  beat C own=all        | C NONE epoch=E+1
  heartbeat A           | A REBALANCE_IN_PROGRESS
  join A                | A NONE
  sync A                | A NONE has=foo:3-5
  join D:i1 topics=foo own=foo:0-2 | D NONE
  list                  | list NONE groups=g g.type=classic g.state=Stable
  heartbeat A           | A NONE
  heartbeat D           | D NONE
  sync D                | D NONE has=foo:0-2
CG-150.other The group rebalances where the newcomer subscribes to other topics
  broker migration=bidirectional
  beat C:i1             | C NONE
  join A topics=foo     | A NONE
  join D:i1 topics=bar  | D NONE
  list                  | list NONE groups=g g.type=classic g.state=PreparingRebalance
  heartbeat A           | A REBALANCE_IN_PROGRESS
CG-152 A member without a protocol of all classic members is INCONSISTENT_GROUP_PROTOCOL
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testJoiningConsumerGroupThrowsExceptionIfProtocolIsNotSupported
  broker migration=bidirectional
  beat C                | C NONE
  join A topics=foo protocols=range | A NONE
  join B topics=foo protocols=roundrobin | B INCONSISTENT_GROUP_PROTOCOL
  join B topics=foo protocols=roundrobin,range | B NONE
CG-153 A SyncGroup gives what is free yet, and a Heartbeat tells when there is more
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testReconciliationInJoiningConsumerGroupWithCooperativeProtocol
  broker migration=bidirectional
  settled C D
  join A topics=foo     | A NONE
  beat C own=all        | C NONE has=foo:0-1
  beat C own=all        | C NONE has=-
  join A own=none       | A NONE
  sync A                | A NONE has=foo:2
  heartbeat A           | A NONE
  beat D own=all        | D NONE has=foo:3-4
  beat D own=all        | D NONE has=-
  heartbeat A           | A REBALANCE_IN_PROGRESS
  join A own=foo:2      | A NONE
  sync A                | A NONE has=foo:2+5
  heartbeat A           | A NONE
CG-154 A SyncGroup at an epoch that is over is REBALANCE_IN_PROGRESS, and the member has to join
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testClassicGroupSyncToConsumerGroupRebalanceInProgress
  broker migration=bidirectional
  beat C                | C NONE
  join A topics=foo rebalance=5000 | A NONE
  wait 1000
  beat D                | D NONE
  sync A                | A REBALANCE_IN_PROGRESS
  wait 3999
  heartbeat A           | A REBALANCE_IN_PROGRESS
  wait 2
  heartbeat A           | A UNKNOWN_MEMBER_ID
CG-156 A classic member that is told to join again and does not is removed in its rebalance timeout
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupMemberUsingClassicProtocolFencedWhenJoinTimeout
  broker migration=bidirectional
  beat C                | C NONE
  join A topics=foo rebalance=5000 | A NONE
  sync A                | A NONE
  beat D                | D NONE
  heartbeat A           | A REBALANCE_IN_PROGRESS
  wait 4999
  heartbeat A           | A REBALANCE_IN_PROGRESS
  wait 2
  heartbeat A           | A UNKNOWN_MEMBER_ID
  inspect               | inspect NONE members=C,D
CG-156.sync So is one that joins and does not sync
  broker migration=bidirectional
  beat C                | C NONE
  join A topics=foo rebalance=5000 | A NONE
  wait 4999
  heartbeat A           | A NONE
  wait 2
  heartbeat A           | A UNKNOWN_MEMBER_ID
CG-157 Members that leave by one LeaveGroup cause one new epoch
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupMemberUsingClassicProtocolBatchLeaveGroup
  broker migration=bidirectional
  beat C                | C NONE epoch=E
  join A topics=foo     | A NONE
  join B topics=foo     | B NONE
  leave A B ghost       | leave NONE entries=NONE,NONE,UNKNOWN_MEMBER_ID
  inspect               | inspect NONE members=C epoch=E+3
CG-178 A description says which protocol each member uses
  @ J must seen=4.0-4.4
  @ java ConsumerGroupMember.asConsumerGroupDescribeMember
  @ java KAFKA-17750
  broker migration=bidirectional
  beat C                | C NONE
  join A topics=foo     | A NONE
  inspect v=1           | inspect NONE members=A,C A.kind=0 C.kind=1
CG-GHOST A join by an unknown id forgets an Empty consumer group, and writes nothing of that
  @ J must quirk
  @ GroupMetadataManager.classicGroupJoin
  beat A
  beat A e=-1
  --
  join L id=ghost       | L UNKNOWN_MEMBER_ID
  log none
  beat B                | B NONE epoch=E
CG-MALFORMED A subscription that cannot be read is an error of its own from 4.4 on
  @ J must
  @ GroupMetadataManager.classicGroupJoinToConsumerGroup
  broker migration=bidirectional
  beat C
  [4.0 4.1 4.2 4.3] join A topics=- | A UNKNOWN_SERVER_ERROR
  [4.4] join A topics=- | A INCONSISTENT_GROUP_PROTOCOL
CG-MIGRATED A refused append takes the upgrade of a group back
  @ J model
  @ GroupMetadataManager.convertToConsumerGroup
  broker migration=bidirectional
  join A topics=foo     | A NONE gen=1
  sync A A=foo:0-5
  fail NOT_ENOUGH_REPLICAS
  beat C                | C COORDINATOR_NOT_AVAILABLE
  inspect               | inspect GROUP_ID_NOT_FOUND
  heartbeat A           | A NONE
CG-MIGRATED.down A refused append takes the downgrade of a group back
  broker migration=bidirectional
  beat C                | C NONE epoch=E
  join A topics=foo     | A NONE
  fail NOT_ENOUGH_REPLICAS
  beat C e=-1           | C COORDINATOR_NOT_AVAILABLE
  inspect               | inspect NONE members=A,C
  beat C e=E own=none   | C NONE
CG-MIGRATED.loaded A failover keeps the group after its upgrade and after its downgrade
  broker migration=bidirectional
  join A topics=foo     | A NONE gen=1
  sync A A=foo:0-5
  beat C                | C NONE
  resign
  elect
  inspect               | inspect NONE members=A,C A.kind=0 C.kind=1
  beat C e=-1           | C NONE
  resign
  elect
  heartbeat A gen=2     | A NONE
""",
)
