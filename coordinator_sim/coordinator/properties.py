"""A coordinator's configuration from broker properties, by Kafka's names, and back."""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.errors import ConfigError

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
    "offsets.commit.timeout.ms": "offsets_commit_timeout_ms",
    _RETENTION: "offsets_retention_ms",
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
        if name == _RETENTION:
            fields[field] *= _MS_PER_MINUTE
    return replace(base, **fields)


def properties_of(config: CoordinatorConfig) -> dict[str, str]:
    """What a configuration says otherwise than Kafka, as properties.

    A retention that is no whole number of minutes is left out: Kafka has no word for it.
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
    return found
