"""Everything that the Kafkas we follow do differently: a row a switch.

A row says from which release on, the name, what it does, and where Kafka says so. The code asks a
`Profile` for a switch by its name, and for no version.
"""

from typing import Final

from coordinator_sim.kafka.log_words import LogWords
from coordinator_sim.kafka.orders.iteration_order import HashOrder
from coordinator_sim.kafka.orders.offset_maps import OffsetMaps
from coordinator_sim.kafka.switch import (
    GIVEN_IDS,
    JAVA,
    KRAFT,
    SCALA,
    SIZE_LIMITS,
    STATIC_MEMBERS,
    SYNC_TIMEOUTS,
    ZOOKEEPER,
    Switch,
    before,
    by_hand,
    by_release,
    in_java,
    in_scala,
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


# A row is a line for the name, one for what it does and one for the source.
# fmt: off
SECTIONS: Final[dict[str, tuple[Switch, ...]]] = {
    "JoinGroup and the join phase": (
        since("2.2", "member_id_required",
            "JoinGroup 4+ without an id is first given one",
            "KIP-394"),
        in_java("records_new_group",
            "A JoinGroup that creates a group appends an empty GroupMetadata record",
            "GroupMetadataManager.classicGroupJoinToClassicGroup"),
        since("0.11", "initial_rebalance_delay",
            "Joins into an Empty group wait for more",
            "KIP-134"),
        in_scala("extends_initial_delay_only_at_generation_0",
            "A join extends the initial delay only at generation 0; else wherever the group came "
            "from Empty",
            "GroupCoordinator.addMemberAndRebalance"),
        in_java("expiry_completes_initial_join",
            "A member or pending id that expires completes an initial rebalance early",
            "GroupMetadataManager.removeMemberAndUpdateClassicGroup"),
        by_release({"0": 0, "2.1": 300_000},
            "new_member_timeout_ms",
            "How long a new member's JoinGroup is parked at most; 0 for no limit",
            "KAFKA-7610; GroupCoordinator.NewMemberJoinTimeoutMs"),
        since("3.3", "refreshes_timeouts",
            "A rejoining member's timeouts replace the old ones",
            "KAFKA-14009"),
        since("2.2", "limits_group_size",
            "`group.max.size` is obeyed",
            "KIP-389"),
        in_scala("rechecks_join_after_size_refusal",
            "A refusal by group.max.size lets the join complete",
            "GroupCoordinator.doJoinGroup", whose=SIZE_LIMITS),
        within("2.2", "3.0", "size_refusal_keeps_pending_id",
            "A pending id that is refused for the group's size stays pending",
            "GroupMetadata.remove of 2.8", whose=SIZE_LIMITS),
        before("1.0", "empty_group_takes_any_protocol",
            "A JoinGroup into an Empty group may come without protocol type and protocols",
            "GroupMetadata.supportsProtocols; KAFKA-6005"),
        by_release({"0": 0, "2.2": -1},
            "join_error_generation",
            "The generation that a refused JoinGroup names",
            "GroupCoordinator.joinError"),
        in_scala("refused_join_names_member",
            "A JoinGroup refused for its partition is told its own id",
            "GroupCoordinator.handleJoinGroup; GroupCoordinatorService does not"),
        in_scala("over_capacity_rebalances_first",
            "A group loaded over capacity rebalances before its members' sessions start",
            "GroupCoordinator.onGroupLoaded"),
    ),
    "SyncGroup": (
        in_scala("sync_extends_session",
            "SyncGroup in Stable restarts the session",
            "GroupCoordinator.doSyncGroup (Scala); classicGroupSyncToClassicGroup does not"),
        in_java("null_protocol_is_consistent",
            "SyncGroup's protocol type and name are compared only with known ones",
            "GroupMetadataManager.isProtocolInconsistent"),
        in_java("empty_group_refuses_sync_first",
            "SyncGroup to an Empty group is UNKNOWN_MEMBER_ID before any other check",
            "GroupMetadataManager.classicGroupSync"),
        since("2.8.1", "sync_timeout",
            "Members that do not sync are evicted",
            "KAFKA-12890, 2.8.1 and 3.0"),
        within("2.8.1", "3.0", "sync_expiry_stops_at_replaced_member",
            "Evicting the members that have not synced breaks off at a static member's former "
            "id, and nothing follows",
            "GroupCoordinator.onExpirePendingSync of 2.8, GroupMetadata.get", whose=SYNC_TIMEOUTS),
        in_scala("sync_loading_is_rebalance",
            "SyncGroup while loading answers REBALANCE_IN_PROGRESS; else "
            "COORDINATOR_LOAD_IN_PROGRESS",
            "GroupCoordinator.handleSyncGroup"),
    ),
    "Members that stay, leave or run out of time": (
        since("2.3", "static_membership",
            "Group instance ids are honoured",
            "KIP-345"),
        within("2.4", "3.0", "unknown_instance_passes",
            "A group instance id that the group does not know is not looked at, but by JoinGroup",
            "GroupMetadata.isStaticMemberFenced of 2.4 to 2.8; later "
            "GroupCoordinator.validateCurrentMember", whose=STATIC_MEMBERS),
        in_scala("replaces_static_member_in_place",
            "A static member's new id is given to the very member, which so stays `new` if it was, "
            "and answers for what it parked under any id",
            "GroupMetadata.replaceStaticMember; ClassicGroup makes another member",
            whose=STATIC_MEMBERS),
        in_java("failed_replacement_restores_protocols",
            "A static replacement that could not be stored takes the old protocols back, too",
            "GroupCoordinator.updateStaticMemberAndRebalance reads them when they are replaced "
            "already", whose=STATIC_MEMBERS),
        in_java("leave_batch_rebalances_once",
            "A LeaveGroup's removals are followed by one check, not one each",
            "GroupMetadataManager.classicGroupLeaveToClassicGroup"),
        in_java("pending_leave_cancels_timer",
            "The timer of a handed-out id goes with the id",
            "classicGroupLeaveToClassicGroup; in Scala it runs out in vain", whose=GIVEN_IDS),
        within("2.4", "3.0", "pending_leaver_may_not_be_static",
            "LeaveGroup of a pending id with an instance id fails as a whole",
            "GroupCoordinator.handleLeaveGroup of 2.4 to 2.8", whose=GIVEN_IDS),
        since("2.6.1", "heartbeats_count_while_syncing",
            "A heartbeat while the leader's assignment is awaited is checked and restarts the "
            "session; before, it was REBALANCE_IN_PROGRESS at once",
            "GroupCoordinator.handleHeartbeat; KAFKA-10134, 2.6.1 and 2.7"),
        in_java("parked_member_keeps_session",
            "A heartbeat of a member that waits for the coordinator arms its session",
            "GroupMetadataManager.rescheduleClassicGroupMemberHeartbeat; in Scala a "
            "DelayedHeartbeat that is satisfied already is never watched"),
        before("2.1", "stale_session_rebalances",
            "The session of a member that did not rejoin in time runs on, and starts another "
            "rebalance when it ends",
            "GroupCoordinator.onCompleteJoin and onExpireHeartbeat; KAFKA-7196"),
        in_scala("sessions_outlive_group",
            "Session timers of a group that is unloaded or deleted run on, to be told of when "
            "they end",
            "GroupCoordinator.onExpireHeartbeat of a Dead group; CoordinatorTimerImpl.cancelAll"),
        since("2.1", "removed_joiner_is_answered",
            "A member that is removed while its JoinGroup is parked is told UNKNOWN_MEMBER_ID",
            "GroupCoordinator.removeMemberAndUpdateGroup; KAFKA-7610"),
    ),
    "Offsets": (
        since("2.4", "commit_checks_member_first",
            "OffsetCommit while the leader's assignment is awaited tells a stranger and a wrong "
            "generation so, and only then REBALANCE_IN_PROGRESS",
            "GroupCoordinator.doCommitOffsets up to 2.3, validateOffsetCommit since"),
        by_hand("checks_ids_of_simple_commit",
            "OffsetCommit without a generation must name no member of an Empty group; to be set "
            "for 3.0 to 3.2",
            "GroupCoordinator.validateOffsetCommit of 3.0 to 3.2; KAFKA-14201 took it back"),
        within("2.5", "3.0", "txn_ids_count_when_set",
            "TxnOffsetCommit checks a member id and a generation where they are set, in any state",
            "GroupCoordinator.doTxnCommitOffsets of 2.5 to 2.8"),
        before("2.1", "offsets_carry_expiry",
            "An offset is stored with the instant after which it goes, whatever its group does",
            "KafkaApis.handleOffsetCommitRequest and GroupMetadata.removeExpiredOffsets up to "
            "2.0; KIP-211", whose=SCALA),
        before("3.7", "overlong_metadata_stays_pending",
            "A partition that is refused for its metadata stays pending when another of its "
            "OffsetCommit is stored",
            "GroupMetadataManager.storeOffsets; KAFKA-16371", whose=SCALA),
        before("1.1", "appends_empty_commits",
            "An OffsetCommit of which nothing may be stored appends nothing, but waits for it",
            "GroupMetadataManager.prepareStoreOffsets up to 1.0", whose=SCALA),
        since("4.3", "deletes_offsets_by_topic_id",
            "A deleted topic takes the offsets stored under its id or none with it, whatever "
            "their partition; before, those of its name's partitions",
            "OffsetMetadataManager.onTopicsDeleted; onPartitionsDeleted", whose=JAVA),
        by_release({"0": 1_440 * 60_000, "2.0": 10_080 * 60_000},
            "default_retention_ms",
            "`offsets.retention.minutes` where nothing is set, in ms",
            "KafkaConfig; KIP-186"),
        by_release({"0": 300_000, "2.3": 1_800_000},
            "default_max_session_timeout_ms",
            "`group.max.session.timeout.ms` where nothing is set",
            "KafkaConfig"),
        by_release({"0": OffsetMaps.JAVA, "2.8": OffsetMaps.PARTITIONS,
                    "3.9": OffsetMaps.TOPIC_IDS, "4.0": OffsetMaps.LISTS},
            "offset_maps",
            "The maps that the offsets of requests and answers pass through, whose order shows "
            "in records and answers",
            "see `OffsetMaps`"),
    ),
    "The offsets log": (
        in_java("has_coordinator_runtime",
            "Groups and offsets follow their partition's log: they change as soon as the log has "
            "taken their records and back when it refuses them, and any answer waits for the "
            "partition's earlier writes; else an offset is pending until its own append is "
            "through, in one slot a partition, and only what appended waits",
            "CoordinatorRuntime.CoordinatorContext.append; GroupMetadata.prepareOffsetCommit "
            "(Scala)"),
        in_java("append_timeout_is_not_available",
            "A write that times out is COORDINATOR_NOT_AVAILABLE",
            "GroupMetadataManager.appendGroupMetadataErrorToResponseError"),
        in_scala("under_replicated_append_is_not_available",
            "A record stored by too few replicas (NOT_ENOUGH_REPLICAS_AFTER_APPEND) is "
            "COORDINATOR_NOT_AVAILABLE",
            "GroupMetadataManager.storeGroup (Scala)"),
        by_release({"0": 1, "2.1": 2, "2.3": 3},
            "group_value_version",
            "Schema version of GroupMetadata values",
            "GroupMetadataManager.groupMetadataValue (Scala), GroupCoordinatorRecordHelpers"),
        by_release({"0": 1, "2.1": 3, "4.1": 4},
            "offset_value_version",
            "Schema version of OffsetCommit values without an expiry; those with one are version 1",
            "GroupCoordinatorRecordHelpers.newOffsetCommitRecord"),
        by_release({"0": 1, "0.11": 2},
            "log_magic",
            "Format of the offsets log's batches",
            "log.message.format.version"),
        in_java("log_sequences_every_batch",
            "Batches of groups and tombstones carry base sequence 0 as those of offsets do",
            "CoordinatorRuntime.maybeAllocateNewBatch; GroupMetadataManager.storeGroup has none"),
        by_release({"0": -1, "4.0": 5, "4.2": -1},
            "append_linger_ms",
            "How long records wait for others to be appended with; -1 until nothing else is to "
            "be done",
            "GroupCoordinatorConfig.GROUP_COORDINATOR_APPEND_LINGER_MS_DEFAULT", whose=JAVA),
        before("2.8", "loading_is_not_coordinator",
            "A partition that is loading is not led yet",
            "GroupMetadataManager.loadGroupsForPartition, which adds it to the owned partitions "
            "last; ownership is asked first"),
        before("2.8", "empty_load_forgets_protocol_type",
            "A group loaded without members has no protocol type",
            "GroupMetadataManager.readGroupMessageValue of 0.10.2; GroupMetadata.loadGroup"),
        in_scala("epochs_outlive",
            "The leader epoch of a partition is remembered when it is unloaded: an older one "
            "never loads it again, an equal one does",
            "GroupMetadataManager.maybeUpdateCoordinatorEpoch (Scala)"),
    ),
    "DescribeGroups, ListGroups and DeleteGroups": (
        in_java("answers_by_partition",
            "DescribeGroups, ListGroups and DeleteGroups go through the offsets partitions one "
            "by one, with a write of each to delete; else from group to group",
            "GroupCoordinatorService.describeGroups, listGroups and deleteGroups"),
        since("4.1", "deletes_share_groups_first",
            "DeleteGroups of a partition begins with a write for its share groups, and so waits "
            "twice",
            "GroupCoordinatorService.deleteGroups", whose=JAVA),
        in_java("describes_old_assignment",
            "DescribeGroups shows the last assignment outside Stable too",
            "ClassicGroupMember.describeNoMetadata; Scala's summaryNoMetadata hides it"),
        before("2.8", "describes_each_group_once",
            "DescribeGroups answers are gathered in a Map by group",
            "KafkaApis.handleDescribeGroupRequest of 0.10.2"),
        in_java("loading_hides_groups",
            "ListGroups fails as a whole while a partition is loading; else the others are listed",
            "GroupCoordinatorService.listGroups; GroupCoordinator.handleListGroups"),
        in_java("state_filter_is_trimmed",
            "Blanks around a state in ListGroups' filter do not count",
            "GroupMetadataManager.listGroups"),
        before("3.9", "state_filter_is_exact",
            "The states in ListGroups' filter count with their case",
            "GroupCoordinator.handleListGroups of 2.8"),
        by_release({"0": "AwaitingSync", "1.1": "CompletingRebalance"},
            "awaiting_sync_name",
            "What clients see of the state in which the leader's assignment is awaited",
            "GroupMetadata.scala"),
    ),
    **NEW_GROUPS,
    "Refusals and answers": (
        before("2.3", "dead_group_is_unknown",
            "Requests to a Dead group are UNKNOWN_MEMBER_ID; later COORDINATOR_NOT_AVAILABLE",
            "the handlers of GroupCoordinator; KAFKA-7862"),
        in_scala("ownership_first",
            "A partition that is not led or is loading is told before JoinGroup's session "
            "timeout and TxnOffsetCommit's transaction are looked at",
            "GroupCoordinator.validateGroupStatus; GroupCoordinatorService asks the runtime last"),
        within("2.0", "4.0", "checks_group_id_first",
            "An empty group id is refused as such even by a coordinator that is not active",
            "GroupCoordinator.validateGroupStatus"),
        before("2.0", "only_join_checks_group_id",
            "An empty group id is refused by JoinGroup alone, before anything else",
            "GroupCoordinator.validGroupId of 0.10.2; validateGroupStatus"),
        since("3.3", "own_answer_last",
            "KafkaApis hears of a request's own answer when the coordinator has returned, after "
            "the others that the request caused",
            "GroupCoordinatorAdapter and GroupCoordinatorService give futures; up to 3.2 answers "
            "are sent by callback"),
    ),
    "Metrics, log lines and orders": (
        in_java("counts_stable_generations",
            "Completed rebalances are counted when a generation becomes Stable; else when its "
            "leader brings the assignment",
            "GroupMetadataManager.classicGroupSyncToClassicGroup; GroupCoordinator.doSyncGroup "
            "(Scala)"),
        in_java("counts_committed_offsets",
            "Offset commits are counted by offset; else by request",
            "OffsetMetadataManager.commitOffset; GroupMetadataManager.storeOffsets (Scala), which "
            "records the number of partitions of the log"),
        since("4.1", "counts_expiry_records",
            "The metric of expired offsets grows, with each group that a run looks at, by all "
            "tombstones of the run so far; else by the group's offsets",
            "OffsetMetadataManager.cleanupExpiredOffsets", whose=JAVA),
        by_release({"0": LogWords.RESTABILIZE, "2.8": LogWords.DEPARTURES_FIRST,
                    "3.2": LogWords.CLIENT_REASONS, "4.0": LogWords.JAVA},
            "log_words",
            "How its log lines read",
            "see `LogWords`"),
        by_release({"0": HashOrder.SCALA_2_12, "2.8": HashOrder.SCALA_2_13, "4.0": HashOrder.JAVA},
            "hash_order",
            "The hash maps whose order decides ties, new leaders and lists",
            "ClassicGroup on java.util.HashMap; GroupMetadata on Scala's mutable.HashMap"),
    ),
    "The broker around the coordinator": (
        since("3.8", "keeps_overlapping_samples",
            "A window in which something was recorded within all windows' time counts as a whole "
            "for a quota",
            "SampledStat.purgeObsoleteSamples"),
        before("0.11", "conceals_topics",
            "A topic that may not be described looks like an unknown one; later it is "
            "TOPIC_AUTHORIZATION_FAILED",
            "KafkaApis of 0.10.2"),
        since("2.8", "commit_checks_partitions",
            "OffsetCommit refuses partitions that do not exist, not only topics",
            "KafkaApis.handleOffsetCommitRequest"),
        before("1.0", "fetch_needs_read",
            "OffsetFetch asks for READ on the group, later for DESCRIBE",
            "KafkaApis of 0.10.2; KIP-163"),
        before("2.1", "list_needs_cluster",
            "ListGroups without DESCRIBE on the cluster is refused as a whole; later it lists "
            "the groups that may be described",
            "KafkaApis of 0.10.2"),
        since("4.4", "tells_group_bounds",
            "A setting of a group beyond the brokers' bounds is told them; before, their names",
            "GroupConfig.validateValues"),
        in_java("group_has_configs",
            "Groups have configurations, and operations on these are among the authorised ones",
            "AclEntry.supportedOperations"),
        before("3.9", "uses_zookeeper",
            "Topics and settings are changed by the controller of ZooKeeper's days, which checks "
            "in another order and says other words, and ZooKeeper keeps the offsets of version 0 "
            "of OffsetCommit and OffsetFetch, which are UNSUPPORTED_VERSION without it",
            "ZkAdminManager (AdminManager up to 2.8), MetadataSupport.requireZkOrThrow; 3.9 has "
            "both, here it runs without"),
        before("2.8", "uses_zkclient",
            "Offsets of version 0 go through zkclient to a ZooKeeper of 3.4: of the characters "
            "that no path may have, those at the ends of their ranges are taken, and a node "
            "without data is an error",
            "ZkUtils.readDataMaybeNull; PathUtils.validatePath of 3.4.9; "
            "KafkaZkClient.getConsumerOffset of 2.8", whose=ZOOKEEPER),
        since("3.7", "caps_min_isr",
            "`min.insync.replicas` above a partition's number of replicas asks for all of them, "
            "not for more than there are",
            "Partition.effectiveMinIsr; KAFKA-15583"),
        since("2.4", "names_invalid_records",
            "Records that a broker does not take are INVALID_RECORD; before they were "
            "CORRUPT_MESSAGE",
            "KIP-467"),
        since("3.0", "refuses_unknown_positions",
            "Negative timestamps of ListOffsets that stand for no position are "
            "UNSUPPORTED_VERSION; before they were times",
            "KIP-734; ReplicaManager.isListOffsetsTimestampUnsupported"),
        before("3.9", "describes_internal_settings",
            "DescribeConfigs shows internal settings",
            "ConfigHelper.allConfigs of 2.8; AbstractConfig.nonInternalValues"),
        since("4.2", "describes_settings_in_java_order",
            "DescribeConfigs lists settings in the order of a HashMap, those that Kafka does not "
            "know first; before, in the order of one mutable.HashMap of Scala's",
            "ConfigHelperUtils.createResponseConfig; ConfigHelper.allConfigs"),
        since("4.1", "describes_client_metrics_defaults",
            "DescribeConfigs shows every setting of a client metrics subscription, with its type; "
            "before, what was set",
            "ConfigHelper.createClientMetricsConfigEntry", whose=KRAFT),
        since("4.3", "describes_group_synonyms",
            "DescribeConfigs shows the broker setting behind a group's; before, a group's own "
            "value alone, or its default",
            "ConfigHelper.createGroupConfigEntry", whose=KRAFT),
        since("4.1", "upgrades_kraft_version",
            "UpdateFeatures raises `kraft.version`, for good; before, it accepts a level and "
            "changes nothing",
            "FeatureControlManager.updateFeature; KIP-853", whose=KRAFT),
        since("4.3", "cordons_log_dirs",
            "A refused replication factor speaks of cordoned log directories",
            "StripedReplicaPlacer; KIP-1066", whose=KRAFT),
        in_java("bumps_transaction_epochs",
            "Every end of a transaction may bump the producer's epoch, which is version 2 of "
            "transactions (KIP-890)",
            "TransactionVersion.java"),
    ),
}
# fmt: on
"""The rows by subject."""

SWITCHES: Final = tuple(switch for rows in SECTIONS.values() for switch in rows)
"""Every row."""
