"""The newest version of each API that the broker implements, and the test that shows it.

Clients use every offered version: the newest one switches features on. So an API is offered only
if it has a row here, and no newer than the row says; `docs/api-versions.md` is generated from
these rows. Telemetry and delegation tokens have no row, because they are not implemented.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey


class Implemented(Struct, frozen=True, kw_only=True):
    """The implemented versions of one API.

    Args:
        newest: Newest version that is answered as Kafka answers it.
        brings: Features that a client switches on by the newest version.
        test: The pytest id of the test that shows it. test_offered.py shows for all APIs that every
            version is answered at all.
        cap: Why a newer version of Kafka's is not offered; empty when there is none.
    """

    newest: int
    brings: str
    test: str
    cap: str = ""


def _row(newest: int, brings: str, test: str, *, cap: str = "") -> Implemented:
    return Implemented(newest=newest, brings=brings, test=f"tests/unit/{test}", cap=cap)


_CONTROL_CAP: Final = (
    "0.10.2 alone offers it: a controller sends the newest version alone, and those of 2.8 are not "
    "implemented"
)

IMPLEMENTED: Final[Mapping[ApiKey, Implemented]] = MappingProxyType(
    {
        ApiKey.PRODUCE: _row(
            13,
            "topic ids; 12 has transactions of version 2, 10 tells the leader beside an error",
            "broker/test_produce.py::test_version_13_names_the_topic_by_its_id",
        ),
        ApiKey.FETCH: _row(
            18,
            "a high watermark that followers send; 16 tells leaders beside errors, 13 has topic "
            "ids, 7 sessions",
            "broker/test_fetch.py::test_an_older_epoch_is_fenced_and_told_the_leader",
        ),
        ApiKey.LIST_OFFSETS: _row(
            11,
            "the earliest offset that waits for upload; 8 and 9 know tiered offsets, 7 the largest "
            "timestamp",
            "broker/test_offset_lookup.py::test_positions_are_known_from_their_version_on",
        ),
        ApiKey.METADATA: _row(
            13,
            "an error of its own; 12 has topic ids",
            "broker/test_newest_versions.py::test_a_topic_is_found_by_its_id",
        ),
        ApiKey.LEADER_AND_ISR: _row(
            0,
            "the API itself, for controllers: leaders of partitions",
            "broker/test_control_api.py::test_control_requests_are_answered_as_by_a_real_broker",
            cap=_CONTROL_CAP,
        ),
        ApiKey.STOP_REPLICA: _row(
            0,
            "the API itself, for controllers: replicas that a broker gives up",
            "broker/test_control_api.py::test_control_requests_are_answered_as_by_a_real_broker",
            cap=_CONTROL_CAP,
        ),
        ApiKey.UPDATE_METADATA: _row(
            3,
            "names of listeners; 2 has racks, 1 many endpoints",
            "broker/test_control_api.py::test_control_requests_are_answered_as_by_a_real_broker",
            cap=_CONTROL_CAP,
        ),
        ApiKey.CONTROLLED_SHUTDOWN: _row(
            1,
            "a client id in its header",
            "broker/test_control_api.py::test_a_broker_that_shuts_down_gives_its_leaderships_away",
            cap=_CONTROL_CAP,
        ),
        ApiKey.OFFSET_COMMIT: _row(
            10, "topic ids", "broker/groups/test_group_apis.py::test_commit_by_topic_id"
        ),
        ApiKey.OFFSET_FETCH: _row(
            10,
            "topic ids; 9 names the member, 8 has many groups",
            "broker/groups/test_group_apis.py::test_fetch_by_topic_id",
        ),
        ApiKey.FIND_COORDINATOR: _row(
            6,
            "share coordinators; 4 has many keys",
            "broker/groups/test_discovery.py::test_other_key_types",
        ),
        ApiKey.JOIN_GROUP: _row(
            9,
            "leaders that skip the assignment; 8 tells reasons",
            "broker/test_connection.py::test_answer_behind_a_parked_join_waits_for_it",
        ),
        ApiKey.HEARTBEAT: _row(
            4,
            "tagged fields; 3 has static members",
            "messages/test_compiler.py::test_a_heartbeat_is_answered_in_every_version",
        ),
        ApiKey.LEAVE_GROUP: _row(
            5,
            "reasons; 3 takes many members",
            "broker/test_newest_versions.py::test_leavers_are_answered_one_by_one",
        ),
        ApiKey.SYNC_GROUP: _row(
            5,
            "the protocol, which both sides check",
            "broker/groups/test_group_apis.py::test_sync_5_names_its_protocol",
        ),
        ApiKey.DESCRIBE_GROUPS: _row(
            6,
            "an error for a group that there is not",
            "coordinator/test_administration.py::test_unknown_group_is_an_error_from_version_6",
        ),
        ApiKey.LIST_GROUPS: _row(
            5,
            "a filter by type; 4 has one by state",
            "broker/groups/test_group_apis.py::test_listing_rights",
        ),
        ApiKey.SASL_HANDSHAKE: _row(
            1,
            "SaslAuthenticate instead of bare tokens",
            "broker/test_sasl.py::test_mechanism_that_is_not_enabled_is_answered_with_those_that_are",
        ),
        ApiKey.API_VERSIONS: _row(
            5,
            "a check of cluster and broker; 4 tells features of level 0, 3 features at all",
            "broker/test_versions_api.py::test_a_client_at_the_wrong_broker_is_told_so",
        ),
        ApiKey.CREATE_TOPICS: _row(
            7,
            "the new topic's id; 5 tells its settings",
            "broker/test_topics_api.py::test_new_topic_is_described_with_its_settings",
        ),
        ApiKey.DELETE_TOPICS: _row(
            6, "topic ids", "broker/test_topics_api.py::test_topic_is_deleted_by_its_id"
        ),
        ApiKey.DELETE_RECORDS: _row(
            2,
            "tagged fields",
            "broker/test_offset_lookup.py::test_deleted_records_are_out_of_range",
        ),
        ApiKey.INIT_PRODUCER_ID: _row(
            6,
            "two-phase commit, in unstable versions; 5 has errors after which a transaction may be "
            "aborted, 3 takes up an epoch again",
            "broker/test_transaction_coordinator.py::test_two_phase_commit_is_off_unless_switched_on",
        ),
        ApiKey.OFFSET_FOR_LEADER_EPOCH: _row(
            4,
            "tagged fields; 2 fences by the reader's epoch",
            "broker/test_offset_lookup.py::test_the_end_of_an_epoch_is_where_the_next_begins",
        ),
        ApiKey.ADD_PARTITIONS_TO_TXN: _row(
            5,
            "errors after which a transaction may be aborted; from 4 on only brokers send it, for "
            "many at once",
            "broker/test_transaction_coordinator.py::test_the_first_partition_begins_a_transaction",
        ),
        ApiKey.ADD_OFFSETS_TO_TXN: _row(
            4,
            "errors after which a transaction may be aborted",
            "broker/test_transactions_served.py::test_partitions_and_groups_need_rights_of_their_own",
        ),
        ApiKey.END_TXN: _row(
            5,
            "transactions of version 2: the answer has the next epoch",
            "broker/test_transaction_coordinator.py::test_an_end_at_version_2_bumps_the_epoch",
        ),
        ApiKey.WRITE_TXN_MARKERS: _row(
            2,
            "the transaction's version",
            "broker/test_transactions_served.py::test_only_brokers_send_markers_and_batches",
        ),
        ApiKey.TXN_OFFSET_COMMIT: _row(
            6,
            "topic ids; 5 has transactions of version 2",
            "broker/groups/test_transactions.py::test_partition_that_was_not_added",
        ),
        ApiKey.DESCRIBE_ACLS: _row(
            3,
            "users as resources; 1 has patterns of names",
            "broker/test_acls.py::test_filter_by_match_finds_what_counts_for_a_name",
        ),
        ApiKey.CREATE_ACLS: _row(
            3,
            "users as resources; 1 has patterns of names",
            "broker/test_acls.py::test_denial_wins_over_permission",
        ),
        ApiKey.DELETE_ACLS: _row(
            3,
            "users as resources; 1 has patterns of names",
            "broker/test_acls.py::test_deleted_rule_counts_no_more",
        ),
        ApiKey.DESCRIBE_CONFIGS: _row(
            4,
            "tagged fields; 3 tells types and documentation, 1 synonyms",
            "broker/test_configs_api.py::test_setting_of_a_topic_comes_before_that_of_the_brokers",
        ),
        ApiKey.ALTER_CONFIGS: _row(
            2,
            "tagged fields",
            "broker/test_newest_versions.py::test_settings_are_replaced_as_a_whole",
        ),
        ApiKey.DESCRIBE_LOG_DIRS: _row(
            5,
            "cordoned directories; 4 tells sizes of volumes",
            "broker/test_offset_lookup.py::test_log_dirs_tell_the_sizes_of_all_replicas",
        ),
        ApiKey.SASL_AUTHENTICATE: _row(
            2,
            "tagged fields; 1 tells how long the session may last",
            "broker/test_sasl.py::test_session_is_prolonged_by_authenticating_again",
        ),
        ApiKey.CREATE_PARTITIONS: _row(
            3,
            "quota errors that may be tried again",
            "broker/test_topics_api.py::test_partitions_are_added_behind_the_others",
        ),
        ApiKey.DELETE_GROUPS: _row(
            3,
            "a message beside the error",
            "broker/groups/test_group_apis.py::test_deletion_rights",
        ),
        ApiKey.ELECT_LEADERS: _row(
            2,
            "tagged fields; 1 has unclean elections",
            "broker/test_newest_versions.py::test_a_leader_that_is_preferred_needs_no_election",
        ),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: _row(
            1, "tagged fields", "broker/test_configs_api.py::test_lists_gain_and_lose_entries"
        ),
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: _row(
            1,
            "a replication factor that may not change",
            "broker/test_newest_versions.py::test_replicas_that_there_are_not_take_no_partition",
        ),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: _row(
            0,
            "the API itself",
            "broker/test_newest_versions.py::test_replicas_that_there_are_not_take_no_partition",
        ),
        ApiKey.OFFSET_DELETE: _row(
            0, "the API itself", "broker/groups/test_group_apis.py::test_delete_merges_refusals"
        ),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: _row(
            1,
            "tagged fields",
            "broker/test_newest_versions.py::test_a_quota_is_found_by_its_user",
        ),
        ApiKey.ALTER_CLIENT_QUOTAS: _row(
            1,
            "tagged fields",
            "broker/test_newest_versions.py::test_a_quota_is_found_by_its_user",
        ),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: _row(
            0,
            "the API itself",
            "broker/test_newest_versions.py::test_a_user_is_described_without_its_secret",
        ),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _row(
            0,
            "the API itself",
            "broker/test_newest_versions.py::test_a_user_is_described_without_its_secret",
        ),
        ApiKey.UPDATE_FEATURES: _row(
            2,
            "one error for all features; 1 has dry runs",
            "broker/test_features_api.py::test_feature_goes_down_and_up_again",
        ),
        ApiKey.DESCRIBE_CLUSTER: _row(
            2,
            "brokers that are fenced",
            "broker/test_newest_versions.py::test_a_cluster_shows_its_brokers",
        ),
        ApiKey.DESCRIBE_PRODUCERS: _row(
            0,
            "the API itself",
            "broker/test_offset_lookup.py::test_producers_are_described_with_their_open_transactions",
        ),
        ApiKey.DESCRIBE_TRANSACTIONS: _row(
            0,
            "the API itself",
            "broker/test_transactions_served.py::test_what_may_not_be_described_is_not_listed",
        ),
        ApiKey.LIST_TRANSACTIONS: _row(
            2,
            "a pattern of ids; 1 has a filter by duration",
            "broker/test_transactions_served.py::test_what_may_not_be_described_is_not_listed",
        ),
        ApiKey.LIST_CONFIG_RESOURCES: _row(
            1,
            "resources of every type, not only client metrics",
            "broker/test_newest_versions.py::test_resources_are_listed_by_type",
        ),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: _row(
            0,
            "the API itself: topics page by page",
            "broker/test_newest_versions.py::test_topics_are_described_page_by_page",
        ),
        ApiKey.CONSUMER_GROUP_HEARTBEAT: _row(
            1,
            "regular expressions, and ids that members draw; 0 has consumer groups",
            "broker/groups/test_consumer_groups_served.py::test_a_member_joins_and_is_assigned",
        ),
        ApiKey.CONSUMER_GROUP_DESCRIBE: _row(
            1,
            "types of members; 0 has their epochs and targets",
            "broker/groups/test_consumer_groups_served.py::test_a_group_is_described",
        ),
        ApiKey.SHARE_GROUP_HEARTBEAT: _row(
            1,
            "share groups",
            "broker/groups/test_share_groups_served.py::test_a_member_joins_and_is_assigned",
        ),
        ApiKey.SHARE_GROUP_DESCRIBE: _row(
            1,
            "members of share groups and what they read",
            "broker/groups/test_share_groups_served.py::test_a_group_is_described",
        ),
        ApiKey.SHARE_FETCH: _row(
            2,
            "locks that are renewed, acquiring no more than asked for; 1 has records with locks",
            "broker/shares/test_shares_served.py::test_records_are_acquired_and_acknowledged",
        ),
        ApiKey.SHARE_ACKNOWLEDGE: _row(
            2,
            "locks that are renewed; 1 accepts, releases and rejects records",
            "broker/shares/test_shares_served.py::test_records_are_acquired_and_acknowledged",
        ),
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: _row(
            1,
            "how far a group lags behind; 0 tells where it is",
            "broker/shares/test_shares_served.py::test_offsets_are_described_with_their_lag",
        ),
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: _row(
            0,
            "the API itself",
            "broker/groups/test_share_groups_served.py::test_offsets_are_altered_topic_by_topic",
        ),
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: _row(
            0,
            "the API itself",
            "broker/groups/test_share_groups_served.py::test_offsets_are_deleted_topic_by_topic",
        ),
        ApiKey.STREAMS_GROUP_HEARTBEAT: _row(
            1,
            "static members, offsets of copies, missing tags; 0 has streams groups",
            "broker/groups/test_streams_groups_served.py::test_a_member_joins_and_is_assigned",
        ),
        ApiKey.STREAMS_GROUP_DESCRIBE: _row(
            1,
            "descriptions of topologies, which nobody stores here; 0 has tasks and topologies",
            "broker/groups/test_streams_groups_served.py::test_a_group_is_described",
        ),
        ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: _row(
            0,
            "the API itself, refused as by brokers without a plugin that stores descriptions",
            "broker/groups/test_streams_groups_served.py"
            "::test_topology_description_is_refused_without_a_plugin",
        ),
        ApiKey.INITIALIZE_SHARE_GROUP_STATE: _row(
            0,
            "the API itself, for brokers: state of a share partition begins",
            "broker/share_coordinator/test_share_state_served.py::test_state_is_kept",
        ),
        ApiKey.READ_SHARE_GROUP_STATE: _row(
            0,
            "the API itself, for brokers: a leader reads the state, and fences older ones",
            "broker/share_coordinator/test_share_state_served.py::test_state_is_kept",
        ),
        ApiKey.WRITE_SHARE_GROUP_STATE: _row(
            1,
            "how many records are done with; 0 has the state of share partitions",
            "broker/share_coordinator/test_share_state_served.py::test_state_is_kept",
        ),
        ApiKey.DELETE_SHARE_GROUP_STATE: _row(
            0,
            "the API itself, for brokers: state of a share partition ends",
            "broker/share_coordinator/test_share_state_served.py::test_state_is_deleted",
        ),
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: _row(
            1,
            "how many records are done with; 0 has start offsets",
            "broker/share_coordinator/test_share_state_served.py::test_state_is_kept",
        ),
    }
)
"""Rows by API. An API without a row is not offered."""

KRAFT_VERSION: Final = "kraft.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
METADATA_VERSION: Final = "metadata.version"
IMPLEMENTED_FEATURES: Final = (
    ELR_VERSION,
    "group.version",
    KRAFT_VERSION,
    METADATA_VERSION,
    "share.version",
    "streams.version",
    "transaction.version",
)
"""The features of KRaft clusters that are implemented.

`metadata.version` and `kraft.version` are offered because clients show them; they have no other
effect. DEVIATION: `eligible.leader.replicas.version` protects `min.insync.replicas` as in Kafka,
but no partition here has eligible leader replicas.
"""
