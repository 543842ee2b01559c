"""Which Kafka a coordinator behaves like: named switches, set as in that release.

A profile is plain data. Code asks for a switch, never for a version number. Profiles are named
after the Kafka they behave like; a family name stands for its newest member. What a switch means,
its values and where Kafka says so are a row of `switches`; a new one is a row there and a field
here.
"""

from typing import Final

from msgspec import Struct, convert

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.log_words import LogWords
from coordinator_sim.kafka.orders.iteration_order import HashOrder
from coordinator_sim.kafka.orders.offset_maps import OffsetMaps
from coordinator_sim.kafka.releases import RELEASES
from coordinator_sim.kafka.switches import SWITCHES


class Profile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The switches of one Kafka's group coordinator, each explained by its row in `switches`.

    Args:
        name: The Kafka it behaves like.
    """

    name: str

    # JoinGroup and the join phase.
    member_id_required: bool
    records_new_group: bool
    initial_rebalance_delay: bool
    extends_initial_delay_only_at_generation_0: bool
    expiry_completes_initial_join: bool
    new_member_timeout_ms: int
    refreshes_timeouts: bool
    limits_group_size: bool
    rechecks_join_after_size_refusal: bool
    size_refusal_keeps_pending_id: bool
    empty_group_takes_any_protocol: bool
    join_error_generation: int
    refused_join_names_member: bool
    over_capacity_rebalances_first: bool
    # SyncGroup.
    sync_extends_session: bool
    null_protocol_is_consistent: bool
    empty_group_refuses_sync_first: bool
    sync_timeout: bool
    sync_expiry_stops_at_replaced_member: bool
    sync_loading_is_rebalance: bool
    # Members that stay, leave or run out of time.
    static_membership: bool
    unknown_instance_passes: bool
    replaces_static_member_in_place: bool
    failed_replacement_restores_protocols: bool
    leave_batch_rebalances_once: bool
    pending_leave_cancels_timer: bool
    pending_leaver_may_not_be_static: bool
    heartbeats_count_while_syncing: bool
    parked_member_keeps_session: bool
    stale_session_rebalances: bool
    sessions_outlive_group: bool
    removed_joiner_is_answered: bool
    # Offsets.
    commit_checks_member_first: bool
    checks_ids_of_simple_commit: bool
    txn_ids_count_when_set: bool
    offsets_carry_expiry: bool
    overlong_metadata_stays_pending: bool
    appends_empty_commits: bool
    deletes_offsets_by_topic_id: bool
    default_retention_ms: int
    default_max_session_timeout_ms: int
    offset_maps: OffsetMaps
    # The offsets log.
    has_coordinator_runtime: bool
    append_timeout_is_not_available: bool
    under_replicated_append_is_not_available: bool
    group_value_version: int
    offset_value_version: int
    log_magic: int
    log_sequences_every_batch: bool
    append_linger_ms: int
    loading_is_not_coordinator: bool
    empty_load_forgets_protocol_type: bool
    epochs_outlive: bool
    # DescribeGroups, ListGroups and DeleteGroups.
    answers_by_partition: bool
    deletes_share_groups_first: bool
    describes_old_assignment: bool
    describes_each_group_once: bool
    loading_hides_groups: bool
    state_filter_is_trimmed: bool
    state_filter_is_exact: bool
    awaiting_sync_name: str
    # Consumer groups.
    consumer_first_epoch: int
    consumer_form_first: bool
    consumer_hashes_topics: bool
    consumer_cleared_regex_bumps: bool
    consumer_rejoins_with_epoch_zero: bool
    consumer_keeps_epoch_on_revocation: bool
    consumer_trims_assignment: bool
    consumer_trim_is_a_step: bool
    consumer_assignment_interval: bool
    consumer_stores_assignment_epochs: bool
    consumer_describes_revocations: bool
    old_txn_commit_needs_topics: bool
    classic_joins_need_migration: bool
    classic_members_await_target: bool
    downgrade_awaits_target: bool
    downgrade_takes_untargeted: bool
    malformed_subscription_is_inconsistent: bool
    every_blob_fault_is_malformed: bool
    consumer_empty_group_is_assigned: bool
    consumer_assignor_change_bumps: bool
    consumer_full_group_takes_replacement: bool
    consumer_target_follows_replacement: bool
    consumer_forgets_old_instance: bool
    uuids_without_dash: bool
    # Share groups.
    share_groups: bool
    share_pending_target_is_awaited: bool
    share_fetch_refuses_null_names: bool
    share_fetch_tells_unknown_topics: bool
    share_new_partitions_begin_at_zero: bool
    share_dead_letters: bool
    share_state_reads_unfenced: bool
    share_state_refuses_negative_epochs: bool
    share_state_start_only_grows: bool
    share_state_sweeps_batches: bool
    share_state_fenced_text: str
    share_upkeep_begins_once: bool
    # Streams groups.
    streams_first_epoch: int
    streams_first_validated_epoch: int
    streams_assignment_interval: bool
    streams_has_static_members: bool
    streams_takes_offsets: bool
    streams_assigns_by_current_tasks: bool
    streams_swaps_roles: bool
    streams_empty_group_is_assigned: bool
    streams_full_group_takes_members: bool
    streams_join_says_endpoint: bool
    streams_tells_exact_partitions: bool
    streams_refines: bool
    # Refusals and answers.
    dead_group_is_unknown: bool
    ownership_first: bool
    checks_group_id_first: bool
    only_join_checks_group_id: bool
    own_answer_last: bool
    # Metrics, log lines and orders.
    counts_stable_generations: bool
    counts_committed_offsets: bool
    counts_expiry_records: bool
    log_words: LogWords
    hash_order: HashOrder
    # The broker around the coordinator.
    keeps_overlapping_samples: bool
    conceals_topics: bool
    commit_checks_partitions: bool
    fetch_needs_read: bool
    list_needs_cluster: bool
    tells_group_bounds: bool
    group_has_configs: bool
    uses_zookeeper: bool
    uses_zkclient: bool
    caps_min_isr: bool
    names_invalid_records: bool
    refuses_unknown_positions: bool
    describes_internal_settings: bool
    describes_settings_in_java_order: bool
    describes_client_metrics_defaults: bool
    describes_group_synonyms: bool
    upgrades_kraft_version: bool
    cordons_log_dirs: bool
    bumps_transaction_epochs: bool


def profile_of(release: str) -> Profile:
    """A release as the rows describe it; fields and rows that differ are an error here."""
    values = {switch.name: switch.value_in(release) for switch in SWITCHES}
    return convert({"name": release, **values}, Profile)


PROFILES: Final = {release: profile_of(release) for release in RELEASES}
"""Every profile by its name, oldest first."""

ALIASES: Final[dict[str, str]] = {
    "legacy-0.10.2": "0.10.2",
    "scala-3.x": "3.9",
    "java-4.x": RELEASES[-1],
}
"""Family names, and the profile each stands for."""

DEFAULT_PROFILE: Final = PROFILES[RELEASES[-1]]


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
