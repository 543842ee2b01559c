"""Consumer groups (KIP-848): who leaves, time, static members, expressions, offsets, others."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "CONSUMER",
    """
CG-103 The last member leaves an Empty group behind, with another epoch
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.consumerGroupFenceMembers
  @ java KAFKA-20442
  settled A
  beat A e=-1           | A NONE epoch=-1
  [4.0 4.1 4.2 4.3] inspect | inspect NONE state=Empty members=- epoch=E+1 target=E
  [4.4] inspect         | inspect NONE state=Empty members=- epoch=E+1 target=E+1
  list types=consumer   | list NONE groups=g g=consumer g.state=Empty g.type=consumer
CG-104 A member whose session ends is removed, and the group has another epoch
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testSessionTimeoutExpiration
  settled A B
  wait 30000
  beat B
  --
  wait 15001
  log current of=A gone=yes; target of=A gone=yes; member of=A gone=yes; epoch epoch=E+2
  beat A                | A UNKNOWN_MEMBER_ID
  inspect               | inspect NONE members=B epoch=E+2
CG-107 A member that does not give up what it must within its rebalance timeout is removed
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testRebalanceTimeoutExpiration
  settled A rebalance=10000
  beat B
  beat A own=all        | A NONE epoch=E has=foo:0-2
  wait 6000
  beat A                | A NONE epoch=E has=-
  wait 3999
  beat A                | A NONE epoch=E has=-
  wait 2
  beat A                | A UNKNOWN_MEMBER_ID
  inspect               | inspect NONE members=B epoch=E+2
CG-110 A commit does not keep a member's session alive
  @ J must seen=4.0-4.4
  @ java OffsetMetadataManager.commitOffset
  settled A
  wait 44000
  commit A foo-0=5 v=9  | A NONE foo-0=NONE
  wait 1001
  beat A                | A UNKNOWN_MEMBER_ID
CG-115 A static member that leaves for a while keeps what it has
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testNoGroupEpochBumpWhenStaticMemberTemporarilyLeaves
  settled A B:i2
  --
  beat B e=-2           | B NONE id=B epoch=-2 every=0 has=-
  log current of=B epoch=-2 has=foo:3-5
  inspect               | inspect NONE state=Reconciling epoch=E+1 target=E+1 B=-2 B.has=foo:3-5
  beat A own=all        | A NONE epoch=E+1 has=-
CG-121 A static member that another has replaced is FENCED_INSTANCE_ID
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testShouldThrowFencedInstanceIdExceptionWhenStaticMemberWithDifferentMemberIdJoins
  settled A B:i2
  beat B e=-2
  beat C:i2             | C NONE epoch=E+1 has=foo:3-5
  beat B e=E+1          | B FENCED_INSTANCE_ID
CG-122 A static member that has left for a while and heartbeats all the same is fenced
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid
  settled A B:i2
  beat B e=-2
  beat B e=E+1          | B FENCED_MEMBER_EPOCH
CG-123 The session of a static member that leaves for a while goes on from its last heartbeat
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testSessionTimeoutExpirationStaticMember
  settled A B:i2
  wait 30000
  beat A
  beat B e=-2           | B NONE epoch=-2
  wait 14999
  inspect               | inspect NONE members=A,B epoch=E+1
  wait 2
  inspect               | inspect NONE members=A epoch=E+2
CG-125 From 4.4 on, a full group takes a member that replaces a static one
  @ J must quirk seen=4.0-4.4
  @ java GroupMetadataManager.throwIfConsumerGroupIsFull
  @ java KAFKA-20601
  broker members=2
  settled A B:i2
  beat B e=-2
  [4.0 4.1 4.2 4.3] beat C:i2 | C GROUP_MAX_SIZE_REACHED
  [4.4] beat C:i2       | C NONE epoch=E+1 has=foo:3-5
CG-130 An expression that does not compile is refused, and nothing is written
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.maybeUpdateRegularExpressions
  beat A regex=[        | A INVALID_REGULAR_EXPRESSION
  log none
  inspect               | inspect GROUP_ID_NOT_FOUND
CG-131 What an expression matches is assigned at a heartbeat after the one that brought it
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.maybeUpdateRegularExpressions
  @ java GroupMetadataManager.handleRegularExpressionsResult
  broker topics=foo1:1,foo2:1,bar:1
  beat A regex=foo.*    | A NONE number=1 has=none
  wait 500
  beat A                | A NONE number=2 has=foo1:0,foo2:0
CG-133 A new topic is matched by an expression no sooner than 10 s after the last look
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.maybeUpdateRegularExpressions
  broker topics=foo1:1,foo2:1,bar:1
  beat A regex=foo.*
  wait 500
  beat A                | A NONE number=2 has=foo1:0,foo2:0
  topic add foo3 1
  beat A                | A NONE number=2 has=-
  wait 4000
  beat A                | A NONE number=2 has=-
  wait 5501
  beat A                | A NONE number=2 has=-
  wait 500
  beat A                | A NONE number=3 has=foo1:0,foo2:0,foo3:0
CG-140 An Empty classic group becomes a consumer group at a heartbeat, and keeps its offsets
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupHeartbeatWithEmptyClassicGroup
  commit - foo-0=10
  --
  beat A                | A NONE epoch=E has=foo:0-5
  [4.0] log group gone=yes; member of=A; topics topics=foo; epoch epoch=E; target of=A; target-epoch epoch=E; current of=A epoch=E
  [4.1 4.2 4.3 4.4] log group gone=yes; member of=A; epoch epoch=E; target of=A; target-epoch epoch=E; current of=A epoch=E
  fetch foo-0           | fetch NONE foo-0=10
  list                  | list NONE groups=g g.type=consumer
CG-141 An Empty consumer group becomes a classic group at a JoinGroup
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testClassicGroupJoinWithEmptyConsumerGroup
  settled A
  beat A e=-1
  --
  join L                | L NONE gen=1 leader=L
  log target-epoch gone=yes; topics gone=yes; epoch gone=yes; group gen=0
  sync L L=l            | L NONE work=l
  list                  | list NONE groups=g g.type=classic
  inspect               | inspect GROUP_ID_NOT_FOUND
CG-145 Where the policy forbids upgrades, a classic group with members is left alone
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupHeartbeatWithNonEmptyClassicGroup
  broker migration=disabled
  join L topics=foo     | L NONE gen=1
  sync L L=foo:0-5      | L NONE has=foo:0-5
  --
  beat A                | A GROUP_ID_NOT_FOUND
  log none
  heartbeat L           | L NONE
  list                  | list NONE groups=g g.type=classic g.state=Stable
CG-145.downgrade So it is where only downgrades are allowed
  broker migration=downgrade
  join L topics=foo     | L NONE gen=1
  sync L L=foo:0-5      | L NONE has=foo:0-5
  beat A                | A GROUP_ID_NOT_FOUND
  heartbeat L           | L NONE
CG-155 The classic Heartbeat and SyncGroup of a member of the new protocol are UNKNOWN_MEMBER_ID
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testClassicGroupHeartbeatToConsumerWithMemberNotUsingClassicProtocol
  settled A
  heartbeat A           | A UNKNOWN_MEMBER_ID
  sync A                | A UNKNOWN_MEMBER_ID
CG-161 Up to 4.2, a commit at any epoch but the member's is STALE_MEMBER_EPOCH
  @ J must until=4.2 seen=4.0-4.2
  @ java ConsumerGroupTest.testValidateOffsetCommit
  settled A B
  commit A foo-0=1 v=9 gen=E | A foo-0=STALE_MEMBER_EPOCH
  commit A foo-0=1 v=9 gen=E+2 | A foo-0=STALE_MEMBER_EPOCH
  commit A foo-0=1 v=9  | A foo-0=NONE
CG-164 An older epoch commits what the member had by then, and is to give up now
  @ J must since=4.3 seen=4.3-4.4
  @ java KIP-1251
  @ java ConsumerGroup.validateOffsetCommit
  settled A B
  beat C                | C NONE epoch=E+2
  beat A own=all        | A NONE epoch=E+1 has=foo:0-1
  commit A foo-2=5 v=9 gen=E | A foo-2=NONE
  commit A foo-3=5 v=9 gen=E | A foo-3=STALE_MEMBER_EPOCH
CG-165 A member of the new protocol that commits in an old version is UNSUPPORTED_VERSION
  @ J must seen=4.0-4.4
  @ java ConsumerGroupTest.testValidateOffsetCommit
  settled A
  commit A foo-0=1 v=8  | A foo-0=UNSUPPORTED_VERSION
COMMIT-037 A member of the new protocol commits with its id and its epoch, from version 9 on
  @ J must seen=4.0-4.4
  @ java OffsetMetadataManagerTest.testConsumerGroupOffsetCommitWithStaleMemberEpoch
  @ java ConsumerGroup.validateOffsetCommit
  settled A
  commit A foo-0=10 v=8 | A foo-0=UNSUPPORTED_VERSION
  commit A foo-0=10 v=9 gen=E+1 | A foo-0=STALE_MEMBER_EPOCH
  commit zzz foo-0=10 v=9 gen=E | zzz foo-0=UNKNOWN_MEMBER_ID
  commit A foo-0=10 v=9 | A foo-0=NONE
CG-166 An administrator may commit to an Empty group alone
  @ J must seen=4.0-4.4
  @ java ConsumerGroup.validateOffsetCommit
  settled A
  commit - foo-0=1 v=9  | - foo-0=UNKNOWN_MEMBER_ID
  beat A e=-1
  commit - foo-0=1 v=9  | - foo-0=NONE
CG-167 A commit of a member to no group is GROUP_ID_NOT_FOUND, up to version 8 ILLEGAL_GENERATION
  @ J must seen=4.0-4.4
  @ java OffsetMetadataManager.validateOffsetCommit
  commit A foo-0=1 v=9 id=A gen=1 | A foo-0=GROUP_ID_NOT_FOUND
  commit A foo-0=1 v=8 id=A gen=1 | A foo-0=ILLEGAL_GENERATION
CG-168 A stale epoch in a transaction is ILLEGAL_GENERATION
  @ J must seen=4.0-4.4
  @ java OffsetMetadataManager.validateTransactionalOffsetCommit
  settled A B
  txn A foo-3=1 pid=1000 v=5 gen=E | A foo-3=ILLEGAL_GENERATION
CG-169 Offsets are fetched at the member's epoch, or by nobody
  @ J must seen=4.0-4.4
  @ java ConsumerGroupTest.testValidateOffsetFetch
  settled A B
  commit A foo-0=7 v=9  | A foo-0=NONE
  fetch foo-0 v=9       | fetch NONE foo-0=7
  fetch foo-0 v=9 member=A epoch=E+1 | fetch NONE foo-0=7
  fetch foo-0 v=9 member=A epoch=E | fetch STALE_MEMBER_EPOCH
  fetch foo-0 v=9 member=X epoch=E+1 | fetch UNKNOWN_MEMBER_ID
  fetch foo-0 v=9 member= epoch=-1 | fetch UNKNOWN_MEMBER_ID
CG-175 A description of a classic group, and of no group, is GROUP_ID_NOT_FOUND; others are described
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupDescribeWithErrors
  settled A
  group h
  stable L
  inspect g h k         | inspect count=3 g/error=NONE g/state=Stable h/error=GROUP_ID_NOT_FOUND k/error=GROUP_ID_NOT_FOUND
CG-176 From 4.3 on, a description shows what a member is to give up among what it has
  @ J must seen=4.0-4.4
  @ java ConsumerGroupMember.asConsumerGroupDescribeMember
  @ java KAFKA-20431
  settled A
  beat B
  beat A own=all        | A NONE epoch=E has=foo:0-2
  [4.0 4.1 4.2] inspect | inspect NONE A.has=foo:0-2 A.shall=foo:0-2 A.topics=foo
  [4.3 4.4] inspect     | inspect NONE A.has=foo:0-5 A.shall=foo:0-2 A.topics=foo
CG-179 DescribeGroups shows a consumer group as Dead, from version 6 on as GROUP_ID_NOT_FOUND
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.describeGroups
  @ java KIP-1043
  settled A
  describe v=5          | describe NONE state=Dead members=-
  describe v=6          | describe GROUP_ID_NOT_FOUND state=Dead members=-
CG-180 ListGroups chooses groups by state, in any letter case, and by type
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testListGroups
  settled A
  group h
  stable L
  list states=sTaBle types=consumer | list NONE groups=g g.type=consumer g.state=Stable
  list states=sTaBle    | list NONE groups=g,h
CG-181 A consumer group with a member, even one that left for a while, is not deleted
  @ J must seen=4.0-4.4
  @ java ConsumerGroupTest.testValidateDeleteGroup
  settled A
  delete                | delete g=NON_EMPTY_GROUP
  group h
  beat B:i1
  beat B e=-2           | B NONE epoch=-2
  delete                | delete h=NON_EMPTY_GROUP
  group g
  beat A e=-1
  delete                | delete g=NONE
CG-FAILOVER A failover keeps a consumer group and begins its sessions
  @ J model
  @ GroupMetadataManager.onLoaded
  settled A
  resign
  elect
  inspect               | inspect NONE state=Stable members=A A=E A.has=foo:0-5
  wait 44999
  inspect               | inspect NONE members=A
  wait 1
  inspect               | inspect NONE state=Empty
CG-GROWN A topic that grows moves the group with the next heartbeat
  @ J must
  @ GroupMetadataManager.consumerGroupHeartbeat
  settled A
  topic add foo 8
  inspect               | inspect NONE epoch=E
  beat A own=all        | A NONE epoch=E+1 has=foo:0-7
CG-NOT-LED Only 4.0 checks that it leads the group before the form of a heartbeat
  @ J must
  @ GroupCoordinatorService.consumerGroupHeartbeat
  resign
  [4.0] beat A e=-3     | A NOT_COORDINATOR
  [4.1 4.2 4.3 4.4] beat A e=-3 | A INVALID_REQUEST
CG-EXPIRED An Empty consumer group goes with its last offset, which is kept from its commit on
  @ J must
  @ ModernGroup.offsetExpirationCondition
  broker retention=1 check=1000 partitions=1
  settled A
  beat A e=-1
  commit - foo-0=1 v=9  | - foo-0=NONE
  wait 59999
  inspect               | inspect NONE state=Empty
  wait 1000
  inspect               | inspect GROUP_ID_NOT_FOUND
CG-INTERVAL A target waits for its interval, and then for a heartbeat
  @ J must since=4.3
  @ GroupMetadataManager.maybeUpdateTargetAssignment
  broker interval=1000
  beat A                | A NONE epoch=E
  beat B                | B NONE epoch=E
  inspect               | inspect NONE state=Assigning
  wait 1000
  inspect               | inspect NONE state=Assigning
  beat B own=none       | B NONE epoch=E+1
""",
)
