"""The settings a scenario may give, by Kafka's names, with their bounds.

Broker settings reach the group coordinators, consumer settings the consumers, Connect settings
the workers. Anything else is refused with the nearest known names.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum, unique
from typing import Final

from msgspec import Struct

from coordinator_sim.clients.config import (
    BATCH_OPTIMIZED,
    CLASSIC,
    CONSUMER,
    RECORD_LIMIT,
    SHARE_REFUSED,
    check_protocol_settings,
)
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.java_numbers import java_int

INT_MAX: Final = 2_147_483_647
"""Upper bound of Kafka's INT settings."""
LONG_MAX: Final = 9_223_372_036_854_775_807
"""Upper bound of Kafka's LONG settings."""

MAX_OFFSETS_PARTITIONS: Final = 10_000
"""Two hundred times the default; each partition costs 1.5 KB of the simulator's memory."""


@unique
class Scope(Enum):
    """Readers of a setting."""

    BROKER = "broker"
    CONSUMER = "consumer"
    SHARE = "share consumer"
    SHARE_GROUP = "share group"
    CONNECT = "connect"


class IntSetting(Struct, frozen=True, kw_only=True):
    """A whole number within bounds, both included."""

    low: int = 0
    high: int = INT_MAX


class ChoiceSetting(Struct, frozen=True):
    """One of a few words."""

    words: tuple[str, ...]


Setting = IntSetting | ChoiceSetting

CONNECT_PROTOCOLS: Final = ("eager", "compatible", "sessioned")
"""Values of `connect.protocol`."""
_BOOLEAN: Final = ChoiceSetting(("true", "false"))
_POSITIVE: Final = IntSetting(low=1)
_COMMON_CLIENT: Final[dict[str, Setting]] = {
    "session.timeout.ms": _POSITIVE,
    "heartbeat.interval.ms": _POSITIVE,
    "request.timeout.ms": _POSITIVE,
    "retry.backoff.ms": IntSetting(),
    "retry.backoff.max.ms": IntSetting(),
    "reconnect.backoff.ms": IntSetting(),
    "reconnect.backoff.max.ms": IntSetting(),
    "metadata.max.age.ms": IntSetting(),
    "socket.connection.setup.timeout.ms": IntSetting(),
    "socket.connection.setup.timeout.max.ms": IntSetting(),
}

SETTINGS: Final[dict[Scope, dict[str, Setting]]] = {
    Scope.BROKER: {
        "offsets.topic.num.partitions": IntSetting(low=1, high=MAX_OFFSETS_PARTITIONS),
        "group.min.session.timeout.ms": IntSetting(),
        "group.max.session.timeout.ms": IntSetting(),
        "group.initial.rebalance.delay.ms": IntSetting(),
        "group.max.size": _POSITIVE,
        "offset.metadata.max.bytes": IntSetting(),
        "offsets.commit.timeout.ms": _POSITIVE,
        "group.coordinator.append.linger.ms": IntSetting(low=-1),
        "offsets.retention.minutes": _POSITIVE,
        "offsets.retention.check.interval.ms": IntSetting(low=1, high=LONG_MAX),
        "group.consumer.session.timeout.ms": _POSITIVE,
        "group.consumer.heartbeat.interval.ms": _POSITIVE,
        "group.consumer.max.size": _POSITIVE,
        "group.consumer.assignment.interval.ms": IntSetting(),
        "group.streams.session.timeout.ms": _POSITIVE,
        "group.streams.heartbeat.interval.ms": _POSITIVE,
        "group.streams.max.size": _POSITIVE,
        "group.streams.num.standby.replicas": IntSetting(),
        "group.streams.num.warmup.replicas": IntSetting(),
        "group.streams.initial.rebalance.delay.ms": IntSetting(),
        "group.streams.assignment.interval.ms": IntSetting(),
        "group.streams.task.offset.interval.ms": _POSITIVE,
        "group.streams.acceptable.recovery.lag": IntSetting(),
        "group.consumer.regex.refresh.interval.ms": IntSetting(low=10_000),
    },
    Scope.CONSUMER: {
        **_COMMON_CLIENT,
        "max.poll.interval.ms": _POSITIVE,
        "max.poll.records": _POSITIVE,
        "default.api.timeout.ms": IntSetting(),
        "enable.auto.commit": _BOOLEAN,
        "auto.commit.interval.ms": IntSetting(),
        "internal.leave.group.on.close": _BOOLEAN,
        "group.protocol": ChoiceSetting((CLASSIC, CONSUMER)),
        "group.remote.assignor": ChoiceSetting(("uniform", "range")),
    },
    Scope.SHARE: {
        **{name: each for name, each in _COMMON_CLIENT.items() if name not in SHARE_REFUSED},
        "max.poll.interval.ms": _POSITIVE,
        "default.api.timeout.ms": IntSetting(),
        "max.poll.records": _POSITIVE,
        "fetch.max.wait.ms": IntSetting(),
        "fetch.min.bytes": IntSetting(),
        "fetch.max.bytes": IntSetting(),
        "share.acquire.mode": ChoiceSetting((BATCH_OPTIMIZED, RECORD_LIMIT)),
    },
    Scope.SHARE_GROUP: {
        "share.auto.offset.reset": ChoiceSetting(("earliest", "latest")),
        "share.delivery.count.limit": IntSetting(low=2, high=10),
        "share.heartbeat.interval.ms": IntSetting(low=5_000, high=15_000),
        "share.isolation.level": ChoiceSetting(("read_uncommitted", "read_committed")),
        "share.partition.max.record.locks": IntSetting(low=100, high=10_000),
        "share.record.lock.duration.ms": IntSetting(low=15_000, high=60_000),
        "share.session.timeout.ms": IntSetting(low=45_000, high=60_000),
    },
    Scope.CONNECT: {
        **_COMMON_CLIENT,
        "rebalance.timeout.ms": _POSITIVE,
        "scheduled.rebalance.max.delay.ms": IntSetting(),
        "worker.sync.timeout.ms": IntSetting(),
        "worker.unsync.backoff.ms": IntSetting(),
        "task.shutdown.graceful.timeout.ms": IntSetting(high=LONG_MAX),
        "offset.flush.interval.ms": IntSetting(low=1),
        "exactly.once.source.support": ChoiceSetting(("disabled", "preparing", "enabled")),
    },
}
"""Every known setting of each scope, with its bounds.

`partition.assignment.strategy` and `connect.protocol` are fields of their groups instead.
"""

STRATEGY: Final = "partition.assignment.strategy"
"""Setting that is the field `assignors` of a consumer group; names separated by commas."""
CONNECT_PROTOCOL: Final = "connect.protocol"
"""Setting that is the field `connect_protocol` of a Connect cluster."""


def int_setting(settings: Mapping[str, str], name: str, default: int) -> int:
    """Return the value of a checked whole-number setting, or the default if not given."""
    value = settings.get(name)
    return default if value is None else int(value)


def known_names() -> tuple[str, ...]:
    """Return every setting name that any scope knows, sorted."""
    return tuple(
        sorted(
            {STRATEGY, CONNECT_PROTOCOL, *(name for scope in SETTINGS.values() for name in scope)}
        )
    )


def unknown_setting(name: str) -> ConfigError:
    """Return the error for a name that no scope knows, with the nearest existing names."""
    near = get_close_matches(name, known_names(), n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known_names())}"
    return ConfigError(f"unknown setting {name!r}: {hint}")


def check_settings(scope: Scope, settings: Mapping[str, str]) -> None:
    """Refuse settings that are unknown to the scope or outside their bounds.

    Raises:
        ConfigError: names setting, value and bound.
    """
    for name, value in settings.items():
        setting = SETTINGS[scope].get(name)
        if setting is None:
            raise _misplaced(scope, name)
        check_value(name, setting, value)
    if scope is Scope.CONSUMER:
        check_protocol_settings(settings)
    if "heartbeat.interval.ms" in SETTINGS[scope]:
        _check_heartbeat(scope, settings)


def check_value(name: str, setting: Setting, value: str) -> None:
    """Refuse a value outside the setting's bounds.

    Raises:
        ConfigError: names setting, value and bound.
    """
    match setting:
        case IntSetting(low=low, high=high):
            number = java_int(value, bits=64)
            if number is None:
                raise ConfigError(f"{name}={value}: must be a whole number from {low} to {high}")
            if not low <= number <= high:
                raise ConfigError(f"{name}={value}: must be from {low} to {high}")
        case ChoiceSetting(words=words):
            if value not in words:
                raise ConfigError(f"{name}={value}: must be one of {', '.join(words)}")


def _misplaced(scope: Scope, name: str) -> ConfigError:
    readers = [other.value for other in SETTINGS if name in SETTINGS[other]]
    if readers:
        return ConfigError(
            f"{name} is a {' and '.join(readers)} setting, not a {scope.value} one: move it there"
        )
    return unknown_setting(name)


def _check_heartbeat(scope: Scope, settings: Mapping[str, str]) -> None:
    # The clients refuse a heartbeat interval that is not below the session timeout.
    # Source: kafka trunk, clients Heartbeat constructor.
    default_session_ms = 45_000 if scope is Scope.CONSUMER else 10_000
    session_ms = int_setting(settings, "session.timeout.ms", default_session_ms)
    heartbeat_ms = int_setting(settings, "heartbeat.interval.ms", 3_000)
    if heartbeat_ms >= session_ms:
        raise ConfigError(
            f"heartbeat.interval.ms={heartbeat_ms}: must be below "
            f"session.timeout.ms={session_ms}; a third of it is usual"
        )
