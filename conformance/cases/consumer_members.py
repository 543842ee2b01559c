"""Consumer groups (KIP-848): heartbeats, epochs, answers, targets, and the way to them."""

from typing import Final

from coordinator_sim_conformance.script.play import read_cases

CASES: Final = read_cases(
    "CONSUMER",
    """
CG-002 An instance id of nothing but spaces is refused
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerHeartbeatRequestValidation
  beat A e=1 i=blank    | A INVALID_REQUEST says=InstanceId_can't_be_empty. id=- epoch=0 every=0
CG-004 A member that joins without a rebalance timeout is refused, and makes no group
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerHeartbeatRequestValidation
  beat A rebalance=-1   | A INVALID_REQUEST says=RebalanceTimeoutMs_must_be_provided_in_first_request.
  inspect               | inspect GROUP_ID_NOT_FOUND
CG-007 A member that joins with neither topics nor an expression is refused
  @ J must seen=4.0-4.4
  @ java GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid
  beat A names=-        | A INVALID_REQUEST says=Either_SubscribedTopicNames_or_SubscribedTopicRegex_must_be_non-null_when_(re-)joining.
  inspect               | inspect GROUP_ID_NOT_FOUND
CG-008 A member that joins with an empty list of topics is let in, and has nothing
  @ J must seen=4.0-4.4
  @ java GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid
  beat A names=none     | A NONE number=1 has=none
CG-009 A member epoch below -2 is refused
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerHeartbeatRequestValidation
  beat A e=-3           | A INVALID_REQUEST says=MemberEpoch_is_invalid.
CG-013 In version 0, a member that brings no id is given one
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testMemberIdGeneration
  beat A v=0 id=-       | A NONE id=A epoch=E
  beat A v=0            | A NONE id=A epoch=E
  inspect               | inspect NONE members=A
CG-015 Where the new protocol is off, its heartbeats are UNSUPPORTED_VERSION
  @ S must since=3.9 seen=3.9
  @ scala KafkaApis.handleConsumerGroupHeartbeat
  beat A v=0            | A UNSUPPORTED_VERSION
CG-020 The first member of a group is given everything with the answer to its join
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testMemberJoinsEmptyConsumerGroup
  broker topics=foo:6,bar:3
  beat A names=foo,bar  | A NONE epoch=E every=5000 has=bar:0-2,foo:0-5
CG-021 A first join writes the member, the epoch, its target, the target's epoch and what it has
  @ J model seen=4.0-4.4
  @ java GroupMetadataManagerTest.testMemberJoinsEmptyConsumerGroup
  beat A                | A NONE epoch=E
  [4.0] log member of=A names=foo; topics topics=foo; epoch epoch=E; target of=A shall=foo:0-5; target-epoch epoch=E; current of=A epoch=E before=0 state=stable has=foo:0-5 revokes=none
  [4.1 4.2 4.3 4.4] log member of=A names=foo; epoch epoch=E; target of=A shall=foo:0-5; target-epoch epoch=E; current of=A epoch=E before=0 state=stable has=foo:0-5 revokes=none
CG-022 The first assignment of a group has epoch 2, up to 4.2 epoch 1
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testMemberIdGeneration
  @ java KIP-1263
  [4.0 4.1 4.2] beat A  | A NONE number=1
  [4.3 4.4] beat A      | A NONE number=2
  inspect               | inspect NONE epoch=E target=E A=E
CG-023 A member epoch above 0 finds no group: GROUP_ID_NOT_FOUND
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testUnknownGroupId
  beat A e=5            | A GROUP_ID_NOT_FOUND
CG-024 A member epoch above 0 of an unknown member is UNKNOWN_MEMBER_ID
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testUnknownMemberIdJoinsConsumerGroup
  settled A
  beat B e=1            | B UNKNOWN_MEMBER_ID
CG-025 A second member waits with nothing while the first is told to give up its share
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testNewJoiningMemberTriggersNewTargetAssignment
  @ java GroupMetadataManagerTest.testReconciliationProcess
  settled A
  beat B                | B NONE epoch=E+1 has=none
  beat A own=all        | A NONE epoch=E has=foo:0-2
  inspect               | inspect NONE state=Reconciling A=E B=E+1
CG-026 Partitions that a member does not report any more go to the one that waits for them
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testReconciliationProcess
  settled A
  beat B
  beat A own=all
  beat A own=all        | A NONE epoch=E+1 has=-
  beat B own=none       | B NONE epoch=E+1 has=foo:3-5
  inspect               | inspect NONE state=Stable
CG-028 A group of the largest size takes no other member
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testNewMemberIsRejectedWithMaximumMembersIsReached
  broker members=2
  settled A B
  beat C                | C GROUP_MAX_SIZE_REACHED
  beat A                | A NONE
CG-029 A full group answers GROUP_MAX_SIZE_REACHED to an unknown member at any epoch
  @ J must quirk seen=4.0-4.4
  @ java GroupMetadataManager.consumerGroupHeartbeat
  broker members=2
  settled A B
  beat C e=3            | C GROUP_MAX_SIZE_REACHED
CG-032 Up to 4.1, a member that joins again with epoch 0 is fenced
  @ J must until=4.1 seen=4.0-4.1
  @ java GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid
  settled A B
  beat A e=0            | A FENCED_MEMBER_EPOCH
CG-040 A member epoch greater than the member's is fenced
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupMemberEpochValidation
  settled A
  [4.0 4.1 4.2] beat A e=200 | A FENCED_MEMBER_EPOCH says=The_consumer_group_member_has_a_greater_member_epoch_(200)_than_the_one_known_by_the_group_coordinator_(1)._The_member_must_abandon_all_its_partitions_and_rejoin.
  [4.3 4.4] beat A e=200 | A FENCED_MEMBER_EPOCH says=The_consumer_group_member_has_a_greater_member_epoch_(200)_than_the_one_known_by_the_group_coordinator_(2)._The_member_must_abandon_all_its_partitions_and_rejoin.
CG-042 The epoch before, without a word of what the member has, is fenced
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupMemberEpochValidation
  settled A B
  beat A                | A NONE epoch=E+1
  beat A e=E            | A FENCED_MEMBER_EPOCH
CG-043 The epoch before, with no more than the member has, makes good for a lost answer
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupMemberEpochValidation
  settled A B
  beat A e=E full own=foo:0-1 | A NONE epoch=E+1 has=foo:0-2
CG-044 The epoch before, with a partition that the member does not have, is fenced
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.isSubset
  settled A B
  beat A e=E full own=foo:0+3 | A FENCED_MEMBER_EPOCH
CG-045 The epoch before, with a partition that the member is to give up, is fenced
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.isSubset
  settled A B
  beat C                | C NONE epoch=E+2
  beat A own=all        | A NONE epoch=E+1 has=foo:0-1
  beat A e=E own=foo:0-2 | A FENCED_MEMBER_EPOCH
CG-046 A member whose epoch was refused stays, and its session is no longer for it
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.consumerGroupHeartbeat
  settled A B
  wait 40000
  beat A e=200          | A FENCED_MEMBER_EPOCH
  inspect               | inspect NONE members=A,B
  beat A                | A NONE epoch=E+1
  beat B e=200          | B FENCED_MEMBER_EPOCH
  wait 5001
  inspect               | inspect NONE members=A
CG-050 A heartbeat that says nothing and changes nothing is told nothing of partitions
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupHeartbeatFullResponse
  settled A
  beat A                | A NONE epoch=E has=-
CG-051 A heartbeat that says everything is told what the member has
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupHeartbeatFullResponse
  settled A
  beat A full           | A NONE epoch=E has=foo:0-5
CG-052 A heartbeat with topics and partitions, but no rebalance timeout, does not say everything
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.isFullRequest
  settled A
  beat A full rebalance=-1 | A NONE epoch=E has=-
CG-055 A member that leaves is answered with its id, the epoch -1 and no interval
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.consumerGroupLeave
  settled A
  beat A e=-1           | A NONE id=A epoch=-1 every=0 has=-
CG-061 Topics in another order, or named twice, are the same subscription
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.consumerGroupHeartbeat
  broker topics=foo:6,bar:3
  settled A names=foo,bar
  --
  beat A names=bar,foo,foo | A NONE epoch=E has=-
  inspect               | inspect NONE epoch=E state=Stable
  log none
CG-062 From 4.4 on, another assignor that the group would like is reason for a new epoch
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.hasMemberSubscriptionChanged
  @ java KAFKA-20434
  settled A assignor=uniform
  --
  [4.0 4.1 4.2 4.3] beat A assignor=range | A NONE epoch=E
  [4.0 4.1 4.2 4.3] log member of=A assignor=range
  [4.4] beat A assignor=range | A NONE epoch=E+1
  inspect               | inspect NONE assignor=range
CG-064 A topic that is created after a member subscribed to it is assigned at its next heartbeat
  @ J must seen=4.0-4.4
  @ java GroupMetadataManager.onNewMetadataImage
  beat A names=late     | A NONE epoch=E has=none
  topic add late 2
  beat A                | A NONE epoch=E+1 has=late:0-1
CG-069 A topic that a member gives up subscribing to is taken away before there is a new target
  @ J must since=4.3 seen=4.3-4.4
  @ java CurrentAssignmentBuilder.updateCurrentAssignment
  @ java GroupMetadataManager.hasSubscriptionChanged
  broker topics=foo:1,bar:1 interval=5000
  settled A names=foo,bar
  --
  beat A names=foo own=all | A NONE epoch=E has=foo:0
  log member of=A names=foo; epoch epoch=E+1; current of=A epoch=E state=unrevoked has=foo:0 revokes=bar:0
CG-072 The assignor that most members ask for is used
  @ J must seen=4.0-4.4
  @ java ConsumerGroupTest.testPreferredServerAssignor
  settled A B assignor=range
  beat C assignor=uniform
  inspect               | inspect NONE assignor=range
CG-073 The first assignor of the broker's list is used where nobody asks for one
  @ J must seen=4.0-4.4
  @ java ConsumerGroup.asDescribedGroup
  settled A
  inspect               | inspect NONE assignor=uniform
CG-078 A failing assignor is told to the member, and changes nothing
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testPartitionAssignorExceptionOnRegularHeartbeat
  broker assignors=failing
  beat A                | A UNKNOWN_SERVER_ERROR
  log none
  list                  | list NONE groups=-
CG-078.later Nor does it change a group that has members
  broker assignors=uniform,failing
  settled A
  --
  beat B assignor=failing | B UNKNOWN_SERVER_ERROR
  log none
  beat A                | A NONE epoch=E
  inspect               | inspect NONE members=A epoch=E
CG-074 The assignor range gives neighbouring partitions, in the order of the members' ids
  @ J must seen=4.0-4.4
  @ java RangeAssignor.assign
  broker topics=t:5
  settled B A names=t assignor=range
  inspect               | inspect NONE A.has=t:0-2 B.has=t:3-4
CG-085 A member is given what is free of its target at once, and the rest when it is given up
  @ J must seen=4.0-4.4
  @ java CurrentAssignmentBuilderTest.testStableToUnreleasedPartitions
  broker topics=foo:3
  settled A
  topic add foo 4
  --
  beat B                | B NONE epoch=E+1 has=foo:3
  beat A own=all        | A NONE epoch=E has=foo:0-1
  beat B own=all        | B NONE epoch=E+1 has=-
  inspect               | inspect NONE state=Reconciling B=E+1 B.has=foo:3 B.shall=foo:2-3
  beat A own=all        | A NONE epoch=E+1
  beat B own=all        | B NONE epoch=E+1 has=foo:2-3
  inspect               | inspect NONE state=Stable
CG-086 A member that does not report what it must give up goes to its target at once
  @ J must seen=4.0-4.4
  @ java CurrentAssignmentBuilderTest.testStableToUnreleasedPartitionsWithOwnedPartitionsNotHavingRevokedPartitions
  settled A
  beat B                | B NONE epoch=E+1 has=none
  beat A own=foo:0-2    | A NONE epoch=E+1 has=foo:0-2
  beat B                | B NONE epoch=E+1 has=foo:3-5
CG-087 Up to 4.1, a member that must give up more goes on from its next epoch
  @ J must until=4.1 seen=4.0-4.1
  @ java CurrentAssignmentBuilderTest.testUnrevokedPartitionsToUnrevokedPartitions
  settled A
  beat B                | B NONE epoch=E+1
  beat A own=all        | A NONE epoch=E has=foo:0-2
  beat C                | C NONE epoch=E+2
  --
  beat A own=foo:0-2    | A NONE epoch=E+1 has=foo:0-1
  log current of=A epoch=E+1 before=E state=unrevoked has=foo:0-1 revokes=foo:2
CG-088 From 4.2 on, a member that must give up more keeps its epoch
  @ J must since=4.2 seen=4.2-4.4
  @ java CurrentAssignmentBuilder.build
  settled A
  beat B                | B NONE epoch=E+1
  beat A own=all        | A NONE epoch=E has=foo:0-2
  beat C                | C NONE epoch=E+2
  --
  beat A own=foo:0-2    | A NONE epoch=E has=foo:0-1
  log current of=A epoch=E before=E state=unrevoked has=foo:0-1 revokes=foo:2
CG-089 A member gets back at once what it was to give up, when a newer target gives it that
  @ J must seen=4.0-4.4
  @ java CurrentAssignmentBuilder.computeNextAssignment
  settled A
  beat B                | B NONE epoch=E+1
  beat A own=all        | A NONE epoch=E has=foo:0-2
  beat B e=-1           | B NONE epoch=-1
  beat A own=none       | A NONE epoch=E+2 has=foo:0-5
  inspect               | inspect NONE state=Stable
CG-092 No partition has two owners, whatever members do
  @ J must seen=4.0-4.4
  @ java ConsumerGroup.addPartitionEpochs
  broker topics=foo:6,bar:3
  settled A B names=foo,bar
  beat C names=bar
  inspect               | inspect NONE shared=0
  beat A own=all
  inspect               | inspect NONE shared=0
  beat B own=all names=foo
  beat C own=none
  inspect               | inspect NONE shared=0
  beat A own=none
  beat D:i1 names=foo,bar
  inspect               | inspect NONE shared=0
  beat B e=-1
  beat C own=all
  beat D own=none
  inspect               | inspect NONE shared=0
  beat D e=-2
  beat F:i1 names=foo
  beat A own=all
  beat C own=all
  inspect               | inspect NONE shared=0
  beat A e=-1
  beat F own=all
  beat C own=all
  beat F own=all
  beat C own=all
  inspect               | inspect NONE shared=0 state=Stable members=C,F
CG-093 A group is Assigning, Reconciling, Stable or Empty, by its epochs and its members'
  @ J must seen=4.0-4.4
  @ java GroupMetadataManagerTest.testConsumerGroupStates
  @ java ConsumerGroupTest.testGroupState
  settled A
  inspect               | inspect NONE state=Stable
  beat B
  inspect               | inspect NONE state=Reconciling
  beat A own=all
  inspect               | inspect NONE state=Reconciling
  beat A own=all
  beat B own=none
  inspect               | inspect NONE state=Stable
  beat B e=-1
  inspect               | inspect NONE state=Assigning epoch=E+2 target=E+1
  beat A own=all
  inspect               | inspect NONE state=Stable
  beat A e=-1
  inspect               | inspect NONE state=Empty
""",
)
