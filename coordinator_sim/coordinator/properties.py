"""A coordinator's configuration from broker properties, by Kafka's names, and back."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from coordinator_sim.assignors.registry import asked_assignors
from coordinator_sim.coordinator.contract import KAFKA_ASSIGNORS, CoordinatorConfig
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.migration_policy import MigrationPolicy

_ASSIGNORS: Final = "group.consumer.assignors"
_POLICY: Final = "group.consumer.migration.policy"
_TAGS: Final = "group.streams.rack.aware.assignment.tags"
_RETENTION: Final = "offsets.retention.minutes"
_MS_PER_MINUTE: Final = 60_000

_FIELDS: Final = {
    "offsets.topic.num.partitions": "offsets_topic_num_partitions",
    "group.min.session.timeout.ms": "group_min_session_timeout_ms",
    "group.max.session.timeout.ms": "group_max_session_timeout_ms",
    "group.initial.rebalance.delay.ms": "group_initial_rebalance_delay_ms",
    "group.max.size": "group_max_size",
    "offset.metadata.max.bytes": "offset_metadata_max_bytes",
    "group.coordinator.append.linger.ms": "group_coordinator_append_linger_ms",
    "group.consumer.session.timeout.ms": "group_consumer_session_timeout_ms",
    "group.consumer.heartbeat.interval.ms": "group_consumer_heartbeat_interval_ms",
    "group.consumer.max.size": "group_consumer_max_size",
    "group.consumer.assignment.interval.ms": "group_consumer_assignment_interval_ms",
    "group.consumer.regex.refresh.interval.ms": "group_consumer_regex_refresh_interval_ms",
    "group.share.session.timeout.ms": "group_share_session_timeout_ms",
    "group.share.heartbeat.interval.ms": "group_share_heartbeat_interval_ms",
    "group.share.max.size": "group_share_max_size",
    "group.share.assignment.interval.ms": "group_share_assignment_interval_ms",
    "group.share.initialize.retry.interval.ms": "group_share_initialize_retry_interval_ms",
    "group.streams.session.timeout.ms": "group_streams_session_timeout_ms",
    "group.streams.heartbeat.interval.ms": "group_streams_heartbeat_interval_ms",
    "group.streams.max.size": "group_streams_max_size",
    "group.streams.num.standby.replicas": "group_streams_num_standby_replicas",
    "group.streams.num.warmup.replicas": "group_streams_num_warmup_replicas",
    "group.streams.initial.rebalance.delay.ms": "group_streams_initial_rebalance_delay_ms",
    "group.streams.assignment.interval.ms": "group_streams_assignment_interval_ms",
    "group.streams.task.offset.interval.ms": "group_streams_task_offset_interval_ms",
    "group.streams.acceptable.recovery.lag": "group_streams_acceptable_recovery_lag",
    "offsets.commit.timeout.ms": "offsets_commit_timeout_ms",
    _RETENTION: "offsets_retention_ms",
    "offsets.retention.check.interval.ms": "offsets_retention_check_interval_ms",
}

PROPERTIES: Final = (*_FIELDS, _ASSIGNORS)
"""The broker properties that a group coordinator reads."""


def configured(base: CoordinatorConfig, properties: Mapping[str, str]) -> CoordinatorConfig:
    """The configuration with these properties set.

    Args:
        base: What the properties do not say.
        properties: By Kafka's names. Those that a group coordinator does not read are passed over,
            as a broker passes over what it does not know.

    Raises:
        ConfigError: A value is not a whole number, or no name of what there is.
    """
    fields: dict[str, int] = {}
    assignors = base.group_consumer_assignors
    policy = base.group_consumer_migration_policy
    tags = base.group_streams_rack_aware_assignment_tags
    for name, value in properties.items():
        if name == _ASSIGNORS:
            assignors = _assignors(value)
            continue
        if name == _POLICY:
            policy = _policy(value)
            continue
        if name == _TAGS:
            tags = tuple(tag.strip() for tag in value.split(",") if tag.strip())
            continue
        field = _FIELDS.get(name)
        if field is None:
            continue
        try:
            fields[field] = int(value)
        except ValueError:
            raise ConfigError(f"{name}={value}: must be a whole number") from None
        if name == _RETENTION:
            fields[field] *= _MS_PER_MINUTE
    return replace(
        base,
        group_consumer_assignors=assignors,
        group_consumer_migration_policy=policy,
        group_streams_rack_aware_assignment_tags=tags,
        **fields,
    )


def _policy(text: str) -> MigrationPolicy:
    """The migration policy of a name, upper or lower case.

    Raises:
        ConfigError: there is no such policy.
    """
    try:
        return MigrationPolicy(text.strip().lower())
    except ValueError:
        known = ", ".join(each.value for each in MigrationPolicy)
        raise ConfigError(f"{_POLICY}={text}: name one of {known}") from None


def _assignors(text: str) -> tuple[str, ...]:
    """The names in `group.consumer.assignors`, of assignors that a broker has.

    Raises:
        ConfigError: there is no such assignor, or none is named.
    """
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    known = (*KAFKA_ASSIGNORS, *asked_assignors())
    if not names or not set(names) <= set(known):
        raise ConfigError(f"{_ASSIGNORS}={text}: name one or more of {', '.join(known)}")
    return names


def properties_of(config: CoordinatorConfig) -> dict[str, str]:
    """The settings of a configuration that differ from Kafka's defaults, as broker properties.

    A retention that is not a whole number of minutes is omitted, because Kafka's property counts
    minutes.
    """
    usual = CoordinatorConfig()
    found: dict[str, str] = {}
    for name, field in _FIELDS.items():
        value = getattr(config, field)
        if value == getattr(usual, field):
            continue
        if name == _RETENTION:
            value, rest = divmod(value, _MS_PER_MINUTE)
            if rest:
                continue
        found[name] = str(value)
    if config.group_consumer_assignors != usual.group_consumer_assignors:
        found[_ASSIGNORS] = ",".join(config.group_consumer_assignors)
    if config.group_consumer_migration_policy is not usual.group_consumer_migration_policy:
        found[_POLICY] = config.group_consumer_migration_policy.value
    if config.group_streams_rack_aware_assignment_tags:
        found[_TAGS] = ",".join(config.group_streams_rack_aware_assignment_tags)
    return found
