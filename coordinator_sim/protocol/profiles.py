"""Which Kafka a coordinator behaves like: named switches, each with its origin.

A profile is plain data. Code asks for a switch, never for a version number. Profiles are named
after the Kafka they behave like; a family name stands for its newest member.
"""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import ConfigError
from coordinator_sim.protocol.log_words import LogWords
from coordinator_sim.protocol.offset_maps import OffsetMaps
from coordinator_sim.protocol.table_order import HashOrder


class Profile(Struct, frozen=True, kw_only=True):
    """The switches of one Kafka's group coordinator. Defaults are those of Kafka 4.4.

    Args:
        name: The Kafka it behaves like.
        records_new_group: A JoinGroup that creates a group appends an empty GroupMetadata record.
            Source: GroupMetadataManager.classicGroupJoinToClassicGroup; absent in the Scala
            coordinator.
        member_id_required: JoinGroup 4+ without an id is first given one. Source: KIP-394, 2.2.
        initial_rebalance_delay: Joins into an empty group wait for more. Source: KIP-134, 0.11.0.
        extends_initial_delay_only_at_generation_0: Scala rule of who may extend the delay; Java
            asks whether the group came from Empty. Source: GroupCoordinator.addMemberAndRebalance.
        expiry_completes_initial_join: A member or pending id that expires completes an initial
            rebalance early. Source: GroupMetadataManager.removeMemberAndUpdateClassicGroup.
        sync_extends_session: SyncGroup in Stable restarts the session. Source: GroupCoordinator
            .doSyncGroup (Scala) restarts it, classicGroupSyncToClassicGroup does not.
        null_protocol_is_consistent: SyncGroup's protocol type and name are compared only with
            known ones. Source: GroupMetadataManager.isProtocolInconsistent.
        empty_group_refuses_sync_first: SyncGroup to an Empty group is UNKNOWN_MEMBER_ID before
            any other check. Source: GroupMetadataManager.classicGroupSync.
        sync_timeout: Members that do not sync are evicted. Source: KAFKA-12890, 2.8.1 and 3.0.
        new_member_timeout_ms: Limit of a new member's parked JoinGroup; 0 for none.
            Source: KAFKA-7610, 2.1; GroupCoordinator.NewMemberJoinTimeoutMs.
        refreshes_timeouts: A rejoining member's timeouts replace the old ones.
            Source: KAFKA-14009, 3.3.
        rechecks_join_after_size_refusal: A refusal by group.max.size lets the join complete.
            Source: GroupCoordinator.doJoinGroup; the Java coordinator does not.
        leave_batch_rebalances_once: A LeaveGroup's removals are followed by one check, not one
            each. Source: GroupMetadataManager.classicGroupLeaveToClassicGroup.
        pending_leave_rebalances: LeaveGroup of a pending id starts a rebalance of a Stable group.
            Source: classicGroupLeaveToClassicGroup counts it among the members that left.
        sync_loading_is_rebalance: SyncGroup while loading answers REBALANCE_IN_PROGRESS.
            Source: GroupCoordinator.handleSyncGroup; Java answers COORDINATOR_LOAD_IN_PROGRESS.
        append_timeout_is_not_available: A write that times out is COORDINATOR_NOT_AVAILABLE.
            Source: GroupMetadataManager.appendGroupMetadataErrorToResponseError.
        has_coordinator_runtime: The coordinator is Java's, whose state follows its partition's log:
            offsets change as soon as the log has taken their records, and back when it refuses
            them, and any answer waits for the partition's earlier writes. In Scala offsets are
            pending until their own append is through, in one slot a partition, and only what
            appended waits. Groups go the same way as their offsets. Source: CoordinatorRuntime
            .CoordinatorContext.append; GroupMetadata.prepareOffsetCommit (Scala).
        checks_ids_of_simple_commit: OffsetCommit without a generation must name no member of an
            Empty group. No profile has it; it is set by hand for 3.0 to 3.2. Source:
            GroupCoordinator.validateOffsetCommit of 3.0 to 3.2; KAFKA-14201 took it back.
        commit_checks_member_first: OffsetCommit while the leader's assignment is awaited tells a
            stranger and a wrong generation so, and only then REBALANCE_IN_PROGRESS.
            Source: GroupCoordinator.doCommitOffsets up to 2.3, validateOffsetCommit since.
        offsets_carry_expiry: An offset is stored with the instant after which it goes, whatever
            its group does. Source: KafkaApis.handleOffsetCommitRequest and
            GroupMetadata.removeExpiredOffsets up to 2.0; KIP-211.
        overlong_metadata_stays_pending: A partition that is refused for its metadata stays pending
            when another of its OffsetCommit is stored.
            Source: GroupMetadataManager.storeOffsets; KAFKA-16371, 3.7.
        unknown_group_commit_is_not_found: OffsetCommit 9+ with a generation to an unknown group
            is GROUP_ID_NOT_FOUND. Source: OffsetMetadataManager.validateOffsetCommit.
        answers_by_partition: DescribeGroups, ListGroups and DeleteGroups go through the offsets
            partitions one by one, and DeleteGroups is a write of each. Source:
            GroupCoordinatorService.describeGroups, listGroups and deleteGroups; Scala goes from
            group to group, and appends tombstones without waiting for them.
        deletes_share_groups_first: DeleteGroups of a partition begins with a write for its share
            groups, and so waits twice. Source: GroupCoordinatorService.deleteGroups, 4.1.
        describes_old_assignment: DescribeGroups shows the last assignment outside Stable too.
            Source: ClassicGroupMember.describeNoMetadata; Scala's summaryNoMetadata hides it.
        loading_hides_groups: ListGroups fails as a whole while a partition is loading.
            Source: GroupCoordinatorService.listGroups; Scala's handleListGroups lists the others.
        state_filter_is_trimmed: Blanks around a state in ListGroups' filter do not count.
            Source: GroupMetadataManager.listGroups.
        state_filter_is_exact: The states in ListGroups' filter count with their case.
            Source: GroupCoordinator.handleListGroups of 2.8; later ones ignore the case.
        awaiting_sync_name: What clients see of the state in which the leader's assignment is
            awaited. Source: GroupMetadata.scala; renamed in 1.1.
        conceals_topics: A topic that may not be described looks like an unknown one.
            Source: KafkaApis of 0.10.2; TOPIC_AUTHORIZATION_FAILED since 0.11.
        commit_checks_partitions: OffsetCommit refuses partitions that do not exist, not only
            topics. Source: KafkaApis.handleOffsetCommitRequest; not in 0.10.2.
        fetch_needs_read: OffsetFetch asks for READ on the group, later for DESCRIBE.
            Source: KafkaApis of 0.10.2; KIP-163, 1.0.
        list_needs_cluster: ListGroups without DESCRIBE on the cluster is refused as a whole, later
            it lists the groups that may be described. Source: KafkaApis of 0.10.2; 2.1.
        group_has_configs: Groups have configurations, and operations on these are among the
            authorised ones. Source: AclEntry.supportedOperations, 4.0.
        group_value_version: Schema version of GroupMetadata values. Source:
            GroupMetadataManager.groupMetadataValue (Scala), GroupCoordinatorRecordHelpers.
        offset_value_version: Schema version of OffsetCommit values without an expiry; those with
            one are version 1. Source: GroupCoordinatorRecordHelpers.newOffsetCommitRecord.
        static_membership: Group instance ids are honoured. Source: KIP-345, 2.3.
        counts_stable_generations: Completed rebalances are counted when a generation becomes
            Stable; else when its leader brings the assignment. Source: GroupMetadataManager
            .classicGroupSyncToClassicGroup; GroupCoordinator.doSyncGroup (Scala).
        counts_committed_offsets: Offset commits are counted by offset; else by request. Source:
            OffsetMetadataManager.commitOffset; GroupMetadataManager.storeOffsets (Scala), which
            records the number of partitions of the log.
        counts_expiry_records: The metric of expired offsets grows, with each group that a run looks
            at, by all tombstones of the run so far. Source: OffsetMetadataManager
            .cleanupExpiredOffsets, 4.1; before, by the group's offsets.
        log_words: How its log lines read. Source: see `LogWords`.
        log_magic: Format of the offsets log's batches. Source: log.message.format.version.
        append_linger_ms: How long records wait for others to be appended with; -1 until nothing
            else is to be done. Source: GroupCoordinatorConfig
            .GROUP_COORDINATOR_APPEND_LINGER_MS_DEFAULT; Scala appends at once.
        deletes_offsets_by_topic_id: A deleted topic takes the offsets stored under its id or none
            with it, whatever their partition; before, those of its name's partitions. Source:
            OffsetMetadataManager.onTopicsDeleted, 4.3; onPartitionsDeleted.
        log_sequences_every_batch: Batches of groups and tombstones carry base sequence 0 as those
            of offsets do. Source: CoordinatorRuntime.maybeAllocateNewBatch;
            GroupMetadataManager.storeGroup has none.
        join_error_generation: What a refused JoinGroup says of the generation.
            Source: GroupCoordinator.joinError; -1 since 2.2.
        dead_group_is_unknown: Requests to a Dead group are UNKNOWN_MEMBER_ID. Source: the handlers
            of GroupCoordinator up to 2.2; COORDINATOR_NOT_AVAILABLE since KAFKA-7862, 2.3.
        heartbeats_count_while_syncing: A heartbeat while the leader's assignment is awaited is
            checked and restarts the session; before, it was REBALANCE_IN_PROGRESS at once.
            Source: GroupCoordinator.handleHeartbeat; KAFKA-10134, 2.6.1 and 2.7.
        empty_group_takes_any_protocol: A JoinGroup into an Empty group may come without protocol
            type and protocols. Source: GroupMetadata.supportsProtocols; KAFKA-6005, 1.0.
        loading_is_not_coordinator: A partition that is loading is not led yet.
            Source: GroupMetadataManager.loadGroupsForPartition, which adds it to the owned
            partitions last; ownership is asked first.
        removed_joiner_is_answered: A member that is removed while its JoinGroup is parked is told
            UNKNOWN_MEMBER_ID. Source: GroupCoordinator.removeMemberAndUpdateGroup; KAFKA-7610, 2.1.
        stale_session_rebalances: The session of a member that did not rejoin in time runs on, and
            starts another rebalance when it ends. Source: GroupCoordinator.onCompleteJoin and
            onExpireHeartbeat; KAFKA-7196, 2.1.
        own_answer_last: KafkaApis hears of a request's own answer when the coordinator has
            returned, after the others that the request caused. Source: GroupCoordinatorAdapter and
            GroupCoordinatorService give futures; up to 3.2 answers are sent by callback.
        unknown_instance_passes: A group instance id that the group does not know is not looked at,
            but by JoinGroup. Source: GroupMetadata.isStaticMemberFenced of 2.4 to 2.8; later
            GroupCoordinator.validateCurrentMember.
        pending_leaver_may_not_be_static: LeaveGroup of a pending id with an instance id fails as a
            whole. Source: GroupCoordinator.handleLeaveGroup of 2.4 to 2.8.
        size_refusal_keeps_pending_id: A pending id that is refused for the group's size stays
            pending. Source: GroupMetadata.remove of 2.8.
        sync_expiry_stops_at_replaced_member: Evicting the members that have not synced breaks off
            at a static member's former id, and nothing follows. Source:
            GroupCoordinator.onExpirePendingSync of 2.8, GroupMetadata.get.
        txn_ids_count_when_set: TxnOffsetCommit checks a member id and a generation where they are
            set, in any state. Source: GroupCoordinator.doTxnCommitOffsets of 2.5 to 2.8.
        checks_group_id_first: An empty group id is refused as such even by a coordinator that is
            not active. Source: GroupCoordinator.validateGroupStatus of 2.0 to 3.9.
        only_join_checks_group_id: An empty group id is refused by JoinGroup alone, before anything
            else. Source: GroupCoordinator.validGroupId of 0.10.2; validateGroupStatus since 2.0.
        appends_empty_commits: An OffsetCommit of which nothing may be stored appends nothing, but
            waits for it. Source: GroupMetadataManager.prepareStoreOffsets up to 1.0.
        empty_load_forgets_protocol_type: A group loaded without members has no protocol type.
            Source: GroupMetadataManager.readGroupMessageValue of 0.10.2; GroupMetadata.loadGroup.
        default_retention_ms: `offsets.retention.minutes` where nothing is set, in ms.
            Source: KafkaConfig; KIP-186 made a week of a day in 2.0.
        default_max_session_timeout_ms: `group.max.session.timeout.ms` where nothing is set.
            Source: KafkaConfig; 300,000 up to 2.2.
        limits_group_size: `group.max.size` is obeyed. Source: KIP-389, 2.2.
        offset_maps: The maps that the offsets of requests and answers pass through, whose order
            shows in records and answers. Source: see `OffsetMaps`.
        describes_each_group_once: DescribeGroups answers are gathered in a Map by group.
            Source: KafkaApis.handleDescribeGroupRequest of 0.10.2.
        gauge_interval_ms: How often a partition's groups are counted by a timer; 0 for never.
            Source: GroupCoordinatorShard.DEFAULT_GROUP_GAUGES_UPDATE_INTERVAL_MS; Scala counts
            when a gauge is read.
        hash_order: The hash maps whose order decides ties, new leaders and lists.
            Source: ClassicGroup on java.util.HashMap; GroupMetadata on Scala's mutable.HashMap.
        replaces_static_member_in_place: A static member's new id is given to the very member, which
            so stays "new" if it was, and answers for what it parked under any id.
            Source: GroupMetadata.replaceStaticMember; ClassicGroup makes another member.
        failed_replacement_restores_protocols: A static replacement that could not be stored takes
            the old protocols back, too. Source: GroupCoordinator.updateStaticMemberAndRebalance
            reads them when they are replaced already.
        parked_member_keeps_session: A heartbeat of a member that waits for the coordinator arms
            its session. Source: GroupMetadataManager.rescheduleClassicGroupMemberHeartbeat; in
            Scala a DelayedHeartbeat that is satisfied already is never watched.
        pending_leave_cancels_timer: The timer of a handed-out id goes with the id.
            Source: classicGroupLeaveToClassicGroup; in Scala it runs out in vain.
        sessions_outlive_group: Session timers of a group that is unloaded or deleted run on, to
            be told of when they end. Source: GroupCoordinator.onExpireHeartbeat of a Dead group;
            CoordinatorTimerImpl.cancelAll.
        ownership_first: A partition that is not led or is loading is told before JoinGroup's
            session timeout and TxnOffsetCommit's transaction are looked at. Source:
            GroupCoordinator.validateGroupStatus; GroupCoordinatorService asks the runtime last.
        refused_join_names_member: A JoinGroup refused for its partition is told its own id.
            Source: GroupCoordinator.handleJoinGroup; GroupCoordinatorService does not.
        under_replicated_append_is_not_available: A record stored by too few replicas
            (NOT_ENOUGH_REPLICAS_AFTER_APPEND) is COORDINATOR_NOT_AVAILABLE.
            Source: GroupMetadataManager.storeGroup (Scala).
        epochs_outlive: The leader epoch of a partition is remembered when it is unloaded: an older
            one never loads it again, an equal one does.
            Source: GroupMetadataManager.maybeUpdateCoordinatorEpoch (Scala).
        over_capacity_rebalances_first: A group loaded over capacity rebalances before its
            members' sessions start. Source: GroupCoordinator.onGroupLoaded.
        uses_zookeeper: Topics and settings are changed by the controller of ZooKeeper's days,
            which checks in another order and says other words; ZooKeeper also keeps the offsets of
            version 0 of OffsetCommit and OffsetFetch, which are UNSUPPORTED_VERSION without it.
            Source: ZkAdminManager (AdminManager up to 2.8), MetadataSupport.requireZkOrThrow; 3.9
            has both, here it runs without.
        uses_zkclient: Offsets of version 0 go through zkclient to a ZooKeeper of 3.4: of the
            characters that no path may have, those at the ends of their ranges are taken, and a
            node without data is an error. Source: ZkUtils.readDataMaybeNull; PathUtils.validatePath
            of 3.4.9; KafkaZkClient.getConsumerOffset of 2.8.
        caps_min_isr: `min.insync.replicas` above a partition's number of replicas asks for all of
            them, not for more than there are. Source: KAFKA-15583, 3.7; Partition.effectiveMinIsr.
        names_invalid_records: Records that a broker does not take are INVALID_RECORD; before they
            were CORRUPT_MESSAGE. Source: KIP-467, 2.4.
        refuses_unknown_positions: Negative timestamps of ListOffsets that stand for no position
            are UNSUPPORTED_VERSION; before they were times. Source: KIP-734, 3.0;
            ReplicaManager.isListOffsetsTimestampUnsupported.
        cordons_log_dirs: A refused replication factor speaks of cordoned log directories.
            Source: StripedReplicaPlacer; KIP-1066, 4.3.
        bumps_transaction_epochs: Every end of a transaction may bump the producer's epoch, which
            is version 2 of transactions (KIP-890). Source: TransactionVersion.java.
    """

    name: str = "4.4"
    records_new_group: bool = True
    member_id_required: bool = True
    initial_rebalance_delay: bool = True
    extends_initial_delay_only_at_generation_0: bool = False
    expiry_completes_initial_join: bool = True
    sync_extends_session: bool = False
    null_protocol_is_consistent: bool = True
    empty_group_refuses_sync_first: bool = True
    sync_timeout: bool = True
    new_member_timeout_ms: int = 300_000
    refreshes_timeouts: bool = True
    rechecks_join_after_size_refusal: bool = False
    leave_batch_rebalances_once: bool = True
    pending_leave_rebalances: bool = True
    sync_loading_is_rebalance: bool = False
    append_timeout_is_not_available: bool = True
    has_coordinator_runtime: bool = True
    checks_ids_of_simple_commit: bool = False
    commit_checks_member_first: bool = True
    offsets_carry_expiry: bool = False
    overlong_metadata_stays_pending: bool = False
    unknown_group_commit_is_not_found: bool = True
    answers_by_partition: bool = True
    deletes_share_groups_first: bool = True
    describes_old_assignment: bool = True
    loading_hides_groups: bool = True
    state_filter_is_trimmed: bool = True
    state_filter_is_exact: bool = False
    awaiting_sync_name: str = "CompletingRebalance"
    conceals_topics: bool = False
    commit_checks_partitions: bool = True
    fetch_needs_read: bool = False
    list_needs_cluster: bool = False
    group_has_configs: bool = True
    group_value_version: int = 3
    offset_value_version: int = 4
    static_membership: bool = True
    counts_stable_generations: bool = True
    counts_committed_offsets: bool = True
    counts_expiry_records: bool = True
    log_words: LogWords = LogWords.JAVA
    log_magic: int = 2
    append_linger_ms: int = -1
    deletes_offsets_by_topic_id: bool = True
    log_sequences_every_batch: bool = True
    join_error_generation: int = -1
    dead_group_is_unknown: bool = False
    heartbeats_count_while_syncing: bool = True
    empty_group_takes_any_protocol: bool = False
    loading_is_not_coordinator: bool = False
    removed_joiner_is_answered: bool = True
    stale_session_rebalances: bool = False
    own_answer_last: bool = True
    unknown_instance_passes: bool = False
    pending_leaver_may_not_be_static: bool = False
    size_refusal_keeps_pending_id: bool = False
    sync_expiry_stops_at_replaced_member: bool = False
    txn_ids_count_when_set: bool = False
    checks_group_id_first: bool = False
    only_join_checks_group_id: bool = False
    appends_empty_commits: bool = False
    empty_load_forgets_protocol_type: bool = False
    default_retention_ms: int = 10_080 * 60_000
    default_max_session_timeout_ms: int = 1_800_000
    limits_group_size: bool = True
    offset_maps: OffsetMaps = OffsetMaps.LISTS
    describes_each_group_once: bool = False
    gauge_interval_ms: int = 60_000
    hash_order: HashOrder = HashOrder.JAVA
    replaces_static_member_in_place: bool = False
    failed_replacement_restores_protocols: bool = True
    parked_member_keeps_session: bool = True
    pending_leave_cancels_timer: bool = True
    sessions_outlive_group: bool = False
    ownership_first: bool = False
    refused_join_names_member: bool = False
    under_replicated_append_is_not_available: bool = False
    epochs_outlive: bool = False
    over_capacity_rebalances_first: bool = False
    uses_zookeeper: bool = False
    uses_zkclient: bool = False
    caps_min_isr: bool = True
    names_invalid_records: bool = True
    refuses_unknown_positions: bool = True
    cordons_log_dirs: bool = True
    bumps_transaction_epochs: bool = True


_JAVA: Final = Profile()
_SCALA: Final = replace(
    _JAVA,
    name="3.9",
    cordons_log_dirs=False,
    counts_stable_generations=False,
    counts_committed_offsets=False,
    counts_expiry_records=False,
    log_words=LogWords.CLIENT_REASONS,
    records_new_group=False,
    extends_initial_delay_only_at_generation_0=True,
    expiry_completes_initial_join=False,
    sync_extends_session=True,
    null_protocol_is_consistent=False,
    empty_group_refuses_sync_first=False,
    rechecks_join_after_size_refusal=True,
    leave_batch_rebalances_once=False,
    pending_leave_rebalances=False,
    sync_loading_is_rebalance=True,
    append_timeout_is_not_available=False,
    has_coordinator_runtime=False,
    checks_group_id_first=True,
    unknown_group_commit_is_not_found=False,
    answers_by_partition=False,
    describes_old_assignment=False,
    loading_hides_groups=False,
    state_filter_is_trimmed=False,
    group_has_configs=False,
    offset_value_version=3,
    log_sequences_every_batch=False,
    gauge_interval_ms=0,
    offset_maps=OffsetMaps.TOPIC_IDS,
    hash_order=HashOrder.SCALA_2_13,
    replaces_static_member_in_place=True,
    failed_replacement_restores_protocols=False,
    parked_member_keeps_session=False,
    pending_leave_cancels_timer=False,
    sessions_outlive_group=True,
    ownership_first=True,
    refused_join_names_member=True,
    under_replicated_append_is_not_available=True,
    epochs_outlive=True,
    over_capacity_rebalances_first=True,
    bumps_transaction_epochs=False,
)
_JAVA_BY_PARTITION: Final = replace(_JAVA, deletes_offsets_by_topic_id=False)

PROFILES: Final[dict[str, Profile]] = {
    profile.name: profile
    for profile in (
        replace(
            _SCALA,
            name="0.10.2",
            uses_zookeeper=True,
            uses_zkclient=True,
            caps_min_isr=False,
            names_invalid_records=False,
            refuses_unknown_positions=False,
            log_words=LogWords.RESTABILIZE,
            member_id_required=False,
            initial_rebalance_delay=False,
            sync_timeout=False,
            new_member_timeout_ms=0,
            refreshes_timeouts=False,
            state_filter_is_exact=True,
            conceals_topics=True,
            commit_checks_partitions=False,
            commit_checks_member_first=False,
            offsets_carry_expiry=True,
            overlong_metadata_stays_pending=True,
            fetch_needs_read=True,
            list_needs_cluster=True,
            awaiting_sync_name="AwaitingSync",
            group_value_version=1,
            offset_value_version=1,
            static_membership=False,
            log_magic=1,
            hash_order=HashOrder.SCALA_2_12,
            own_answer_last=False,
            join_error_generation=0,
            dead_group_is_unknown=True,
            heartbeats_count_while_syncing=False,
            empty_group_takes_any_protocol=True,
            loading_is_not_coordinator=True,
            removed_joiner_is_answered=False,
            stale_session_rebalances=True,
            offset_maps=OffsetMaps.JAVA,
            checks_group_id_first=False,
            only_join_checks_group_id=True,
            appends_empty_commits=True,
            empty_load_forgets_protocol_type=True,
            default_retention_ms=1_440 * 60_000,
            default_max_session_timeout_ms=300_000,
            limits_group_size=False,
            describes_each_group_once=True,
        ),
        replace(
            _SCALA,
            name="2.8",
            uses_zookeeper=True,
            caps_min_isr=False,
            refuses_unknown_positions=False,
            own_answer_last=False,
            log_words=LogWords.DEPARTURES_FIRST,
            overlong_metadata_stays_pending=True,
            refreshes_timeouts=False,
            state_filter_is_exact=True,
            unknown_instance_passes=True,
            pending_leaver_may_not_be_static=True,
            size_refusal_keeps_pending_id=True,
            sync_expiry_stops_at_replaced_member=True,
            offset_maps=OffsetMaps.PARTITIONS,
            txn_ids_count_when_set=True,
        ),
        _SCALA,
        replace(
            _JAVA_BY_PARTITION,
            name="4.0",
            cordons_log_dirs=False,
            offset_value_version=3,
            deletes_share_groups_first=False,
            counts_expiry_records=False,
            append_linger_ms=5,
        ),
        replace(_JAVA_BY_PARTITION, name="4.1", append_linger_ms=5, cordons_log_dirs=False),
        replace(_JAVA_BY_PARTITION, name="4.2", cordons_log_dirs=False),
        replace(_JAVA, name="4.3"),
        _JAVA,
    )
}
"""Every profile by its name, oldest first."""

ALIASES: Final[dict[str, str]] = {
    "legacy-0.10.2": "0.10.2",
    "scala-3.x": "3.9",
    "java-4.x": "4.4",
}
"""Family names, and the profile each stands for."""

DEFAULT_PROFILE: Final = _JAVA


def profile_named(name: str) -> Profile:
    """The profile of that name or alias.

    Raises:
        ConfigError: no such profile; the message lists the known names.
    """
    profile = PROFILES.get(ALIASES.get(name, name))
    if profile is None:
        known = ", ".join((*PROFILES, *ALIASES))
        raise ConfigError(f"unknown profile {name!r}: use one of {known}")
    return profile
