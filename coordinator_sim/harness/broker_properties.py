"""A coordinator's configuration from broker properties, by Kafka's names."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.errors import ConfigError

_MS_PER_MINUTE: Final = 60_000

_FIELDS: Final = {
    "offsets.topic.num.partitions": "offsets_topic_num_partitions",
    "group.min.session.timeout.ms": "group_min_session_timeout_ms",
    "group.max.session.timeout.ms": "group_max_session_timeout_ms",
    "group.initial.rebalance.delay.ms": "group_initial_rebalance_delay_ms",
    "group.max.size": "group_max_size",
    "offset.metadata.max.bytes": "offset_metadata_max_bytes",
    "group.coordinator.append.linger.ms": "group_coordinator_append_linger_ms",
    "offsets.commit.timeout.ms": "offsets_commit_timeout_ms",
    "offsets.retention.minutes": "offsets_retention_ms",
    "offsets.retention.check.interval.ms": "offsets_retention_check_interval_ms",
}


def configured(base: CoordinatorConfig, properties: Mapping[str, str]) -> CoordinatorConfig:
    """The configuration with these properties set.

    Args:
        base: What the properties do not say.
        properties: By Kafka's names. Those that a group coordinator does not read are passed over,
            as a broker passes over what it does not know.

    Raises:
        ConfigError: A value is not a whole number.
    """
    fields: dict[str, int] = {}
    for name, value in properties.items():
        field = _FIELDS.get(name)
        if field is None:
            continue
        try:
            fields[field] = int(value)
        except ValueError:
            raise ConfigError(f"{name}={value}: must be a whole number") from None
    if "offsets_retention_ms" in fields:
        fields["offsets_retention_ms"] *= _MS_PER_MINUTE
    return replace(base, **fields)
