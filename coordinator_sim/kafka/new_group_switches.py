"""What Kafkas do differently with consumer, share and streams groups; see `switches`."""

from typing import Final

from coordinator_sim.kafka.switch import (
    JAVA,
    Switch,
    by_release,
    since,
    within,
)

# A row is a line for the name, one for what it does and one for the source.
# fmt: off
NEW_GROUPS: Final[dict[str, tuple[Switch, ...]]] = {
    "Consumer groups": (
        by_release({"0": 0, "4.3": 1},
            "consumer_first_epoch",
            "Epochs that a new consumer group begins with; its first assignment has the next one",
            "ModernGroup; KIP-1263", whose=JAVA),
        since("4.1", "consumer_form_first",
            "The form of a heartbeat is checked before its group's partition",
            "GroupCoordinatorService.consumerGroupHeartbeat", whose=JAVA),
        since("4.1", "consumer_hashes_topics",
            "A group's topics are a hash in the record of its epoch; before, a record of their own",
            "ModernGroup.computeMetadataHash; 4.0: computeSubscriptionMetadata", whose=JAVA),
        since("4.1", "consumer_cleared_regex_bumps",
            "A member that gives its expression up is reason for a new assignment",
            "GroupMetadataManager.maybeUpdateRegularExpressions", whose=JAVA),
        since("4.2", "consumer_rejoins_with_epoch_zero",
            "A heartbeat of epoch 0 from a live dynamic member is taken as a rejoin; before, it "
            "was fenced unless its previous epoch was 0",
            "GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid; KAFKA-19233",
            whose=JAVA),
        since("4.2", "consumer_keeps_epoch_on_revocation",
            "A member that gave its partitions up goes on from its epoch; before, from the next",
            "CurrentAssignmentBuilder.build", whose=JAVA),
        since("4.2", "consumer_trims_assignment",
            "What a target has of topics that a member does not subscribe to is left out, and a "
            "changed subscription takes such topics away before there is a new target",
            "CurrentAssignmentBuilder.updateCurrentAssignment", whose=JAVA),
        since("4.3", "consumer_trim_is_a_step",
            "When a changed subscription takes topics away, the member's epoch becomes its "
            "previous one too",
            "CurrentAssignmentBuilder.updateCurrentAssignment", whose=JAVA),
        since("4.3", "consumer_assignment_interval",
            "Targets are computed at most once in `group.consumer.assignment.interval.ms`, and "
            "the log says when the last one was",
            "GroupMetadataManager.maybeUpdateTargetAssignment; KIP-1263", whose=JAVA),
        since("4.3", "consumer_stores_assignment_epochs",
            "The epoch at which a member got a partition is stored, and older epochs than the "
            "member's commit what it had by then",
            "ConsumerGroup.validateOffsetCommit; KIP-1251", whose=JAVA),
        since("4.3", "consumer_describes_revocations",
            "ConsumerGroupDescribe shows partitions that a member must give up among those it has",
            "ConsumerGroupMember.asConsumerGroupDescribeMember; KAFKA-20431", whose=JAVA),
        within("4.3", "4.4", "old_txn_commit_needs_topics",
            "A transactional commit at an older epoch than the member's is refused as a whole "
            "where one of its topics does not exist",
            "OffsetMetadataManager.commitTransactionalOffset of 4.3", whose=JAVA),
        since("4.3", "classic_joins_need_migration",
            "A classic member is let into a consumer group with members only where the migration "
            "policy is not `disabled`; before, always",
            "GroupMetadataManager.throwIfClassicMemberCannotJoinConsumerGroup", whose=JAVA),
        since("4.3", "classic_members_await_target",
            "A classic member is told to join again when there is a target that it is not at; "
            "before, when the group's epoch is another",
            "GroupMetadataManager.classicGroupHeartbeatToConsumerGroup; KIP-1263", whose=JAVA),
        since("4.3", "downgrade_awaits_target",
            "A static classic member that replaces the last other one makes the group rebalance "
            "where its target is behind; before, where the member's subscription differs",
            "GroupMetadataManager.classicGroupJoinToConsumerGroup", whose=JAVA),
        since("4.3", "downgrade_takes_untargeted",
            "A group with a classic member that never had a target becomes a classic group; "
            "before, that failed, and whoever would leave stayed",
            "ClassicGroup.fromConsumerGroup", whose=JAVA),
        since("4.4", "malformed_subscription_is_inconsistent",
            "A malformed subscription of a classic member that joins a consumer group is an "
            "inconsistent protocol; before, an unknown error",
            "GroupMetadataManager.deserializeSubscription", whose=JAVA),
        since("4.4", "every_blob_fault_is_malformed",
            "A classic member's subscription or assignment with any fault is malformed; before, "
            "one in which a number is cut short, and other faults were unknown errors",
            "ConsumerProtocol.deserializeConsumerProtocolSubscription", whose=JAVA),
        since("4.4", "consumer_empty_group_is_assigned",
            "When the last member goes, the target's epoch follows the group's",
            "GroupMetadataManager.consumerGroupFenceMembers; KAFKA-20442", whose=JAVA),
        since("4.4", "consumer_assignor_change_bumps",
            "Another assignor that most members would like is reason for a new assignment",
            "GroupMetadataManager.hasPreferredServerAssignorChanged; KAFKA-20434", whose=JAVA),
        since("4.4", "consumer_full_group_takes_replacement",
            "A full group takes a member that replaces a static one",
            "GroupMetadataManager.throwIfConsumerGroupIsFull; KAFKA-20601", whose=JAVA),
        since("4.4", "consumer_target_follows_replacement",
            "The target of a replaced static member is not written again when a new target gives "
            "its successor the same",
            "UpdatedMembersAndTargetAssignmentView.addOrUpdateMember", whose=JAVA),
        since("4.4", "consumer_forgets_old_instance",
            "A member that names another instance id leaves the one it had",
            "ConsumerGroup.updateStaticMember", whose=JAVA),
        since("4.4", "uuids_without_dash",
            "A member id that the coordinator makes has no dash in it; before, it did not begin "
            "with one",
            "Uuid.randomUuid", whose=JAVA),
    ),
    "Share groups": (
        since("4.2", "share_groups",
            "Share groups are known; 4.1 had a preview of them, which is not",
            "ShareVersion; KIP-932", whose=JAVA),
        since("4.3", "share_pending_target_is_awaited",
            "Partitions that may be assigned and are not are reason for another epoch only where "
            "no target is outstanding",
            "GroupMetadataManager.shareGroupHeartbeat", whose=JAVA),
        since("4.3", "share_fetch_refuses_null_names",
            "ShareFetch and ShareAcknowledge without a group, or without a member, are "
            "INVALID_REQUEST; before, UNKNOWN_SERVER_ERROR",
            "KafkaApis.handleShareFetchRequest and isMemberIdValid", whose=JAVA),
        since("4.4", "share_fetch_tells_unknown_topics",
            "ShareFetch tells which topics there are not; before, one such topic makes the whole "
            "answer UNKNOWN_SERVER_ERROR",
            "KafkaApis.processShareFetchResponse", whose=JAVA),
        since("4.4", "share_new_partitions_begin_at_zero",
            "Partitions that a known topic gets are read from their first offset; before, from "
            "where the group's settings say",
            "GroupMetadataManager.buildInitializeShareGroupStateRequest", whose=JAVA),
        since("4.4", "share_dead_letters",
            "Records that are given up may go to a queue before they are archived, and a leader "
            "that finds such records half way archives them",
            "SharePartition.initiateDLQAndArchive; KIP-1191", whose=JAVA),
        since("4.3", "share_state_reads_unfenced",
            "A read of the share coordinator with leader epoch -1 is fenced by no other epoch",
            "ShareCoordinatorShard.maybeGetReadStateError", whose=JAVA),
        since("4.4", "share_state_refuses_negative_epochs",
            "The share coordinator refuses negative epochs; before, -1 fenced nobody",
            "ShareCoordinatorShard.maybeGetWriteStateError", whose=JAVA),
        since("4.4", "share_state_start_only_grows",
            "A write with an older start offset than the kept one keeps that, and its count",
            "ShareCoordinatorShard.generateShareStateRecord", whose=JAVA),
        since("4.4", "share_state_sweeps_batches",
            "State batches are combined in one pass over their offsets; before, in pairs, which "
            "may leave neighbours alike apart",
            "PersisterStateBatchCombiner.sweepMerge", whose=JAVA),
        by_release(
            {
                "0": "The share coordinator rejected the request because the share-group state "
                "epoch did not match.",
                "4.4": "The coordinator rejected the request because the state epoch did not "
                "match.",
            },
            "share_state_fenced_text",
            "What the share coordinator says of an older state epoch",
            "Errors.FENCED_STATE_EPOCH", whose=JAVA),
        since("4.4", "share_upkeep_begins_once",
            "Upkeep that is switched off and on again soon goes on once; before, twice as often",
            "ShareCoordinatorService.shouldRunPeriodicJobForGeneration", whose=JAVA),
    ),
    "Streams groups": (
        by_release({"0": 0, "4.3": 1},
            "streams_first_epoch",
            "Epochs that a new streams group begins with; its first assignment is one of epoch 2",
            "StreamsGroup; KIP-1263", whose=JAVA),
        by_release({"0": 0, "4.4": -1},
            "streams_first_validated_epoch",
            "The validated topology's epoch of a group whose log has no record of an epoch",
            "StreamsGroup", whose=JAVA),
        since("4.3", "streams_assignment_interval",
            "Targets are computed at most once in `group.streams.assignment.interval.ms`, and the "
            "log says when the last one was",
            "GroupMetadataManager.maybeUpdateStreamsTargetAssignment; KIP-1263", whose=JAVA),
        since("4.4", "streams_has_static_members",
            "Members may have instance ids",
            "GroupMetadataManager.getOrMaybeCreateStaticStreamsGroupMember", whose=JAVA),
        since("4.4", "streams_takes_offsets",
            "Members report how far their copies are, and are told how often they shall; tags that "
            "they lack are told",
            "GroupCoordinatorService.throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures",
            whose=JAVA),
        since("4.4", "streams_assigns_by_current_tasks",
            "The task assignor keeps the tasks that members have; before, those that they should",
            "streams.TargetAssignmentBuilder.createMemberMetadataAndState", whose=JAVA),
        since("4.4", "streams_swaps_roles",
            "A member turns a copy of its own into an active task, and back, in one step",
            "streams.CurrentAssignmentBuilder.computeNextAssignment", whose=JAVA),
        since("4.4", "streams_empty_group_is_assigned",
            "When the last member goes, the target is of the new epoch at once",
            "GroupMetadataManager.streamsGroupFenceMember", whose=JAVA),
        since("4.4", "streams_full_group_takes_members",
            "A full group takes members that join again",
            "GroupMetadataManager.throwIfStreamsGroupIsFull", whose=JAVA),
        since("4.4", "streams_join_says_endpoint",
            "A member that joins without an endpoint has none, and a changed endpoint is news",
            "GroupMetadataManager.streamsGroupHeartbeat", whose=JAVA),
        since("4.4", "streams_tells_exact_partitions",
            "An endpoint is told with the partitions that its tasks read, those of warm-ups too",
            "streams.topics.EndpointToPartitionsManager.topicPartitionListForTask", whose=JAVA),
        since("4.4", "streams_refines",
            "What members went towards first at an epoch counts for all of them",
            "GroupMetadataManager.refinedAssignmentForEpoch; KIP-1071", whose=JAVA),
    ),
}
# fmt: on
"""The rows by subject."""
