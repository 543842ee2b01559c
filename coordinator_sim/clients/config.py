"""Client settings under Kafka's names, with Kafka's defaults and bounds."""

from collections.abc import Mapping
from enum import Enum, IntEnum, unique
from typing import Final, Self

import msgspec
from msgspec import Struct

from coordinator_sim.clients.backoff import ExponentialBackoff
from coordinator_sim.errors import ConfigError

_INT_MAX: Final = 2_147_483_647
JOIN_GROUP_TIMEOUT_LAPSE_MS: Final = 5_000
"""Time a JoinGroup may take beyond the rebalance timeout (AbstractCoordinator)."""


@unique
class ConnectProtocolCompatibility(IntEnum):
    """The Connect sub-protocols, by their version number.

    Source: kafka trunk, connect/runtime/.../distributed/ConnectProtocolCompatibility.java.
    """

    EAGER = 0
    COMPATIBLE = 1
    SESSIONED = 2

    @property
    def protocol_name(self) -> str:
        """Name offered in JoinGroup; eager is called `default` there."""
        return _PROTOCOL_NAMES[self]

    @classmethod
    def from_protocol_name(cls, name: str) -> "ConnectProtocolCompatibility":
        """Return the sub-protocol that JoinGroup calls `name`.

        Raises:
            ConfigError: no sub-protocol has this name.
        """
        for member, protocol_name in _PROTOCOL_NAMES.items():
            if protocol_name == name:
                return member
        raise ConfigError(
            f"Connect protocol {name!r} is unknown; known are {', '.join(_PROTOCOL_NAMES.values())}"
        )


_PROTOCOL_NAMES: Final = {
    ConnectProtocolCompatibility.EAGER: "default",
    ConnectProtocolCompatibility.COMPATIBLE: "compatible",
    ConnectProtocolCompatibility.SESSIONED: "sessioned",
}


@unique
class OffsetReset(Enum):
    """Start position of a partition without a committed offset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


class GroupConfig(Struct, frozen=True, kw_only=True):
    """Settings of every group member. Durations in milliseconds.

    Source: kafka trunk, clients/.../internals/GroupRebalanceConfig.java, CommonClientConfigs.java.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    request_timeout_ms: int = 30_000
    metadata_max_age_ms: int = 300_000
    socket_connection_setup_timeout_ms: int = 10_000
    socket_connection_setup_timeout_max_ms: int = 30_000
    group_instance_id: str | None = None
    leave_group_on_close: bool = True

    def __post_init__(self) -> None:
        """Reject a heartbeat interval that a session could not survive (Heartbeat.java)."""
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigError(
                f"heartbeat.interval.ms={self.heartbeat_interval_ms} must be lower than "
                f"session.timeout.ms={self.session_timeout_ms}; a third of it is usual"
            )

    @property
    def join_request_timeout_ms(self) -> int:
        """Time limit for the answer to a JoinGroup; never beyond Java's int."""
        lapse = self.rebalance_timeout_ms + JOIN_GROUP_TIMEOUT_LAPSE_MS
        return max(
            self.request_timeout_ms, self.rebalance_timeout_ms if lapse > _INT_MAX else lapse
        )

    def retry_backoff(self) -> ExponentialBackoff:
        """Backoff of lookups, commits and failed heartbeats."""
        return ExponentialBackoff(self.retry_backoff_ms, self.retry_backoff_max_ms)

    def reconnect_backoff(self) -> ExponentialBackoff:
        """Backoff between connection attempts to one node."""
        return ExponentialBackoff(self.reconnect_backoff_ms, self.reconnect_backoff_max_ms)


CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
"""The values of `group.protocol`; with the second one the group's coordinator assigns (KIP-848)."""


IMPLICIT: Final = "implicit"
EXPLICIT: Final = "explicit"
"""The values of `share.acknowledgement.mode`."""
BATCH_OPTIMIZED: Final = "batch_optimized"
RECORD_LIMIT: Final = "record_limit"
"""The values of `share.acquire.mode`; the number of each on the wire is its place, from 0."""
SHARE_REFUSED: Final = (
    "auto.offset.reset",
    "enable.auto.commit",
    "group.instance.id",
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "group.protocol",
    "group.remote.assignor",
)
"""Settings of consumers with which a share consumer does not start."""


class ConsumerConfig(GroupConfig, frozen=True, kw_only=True):
    """A consumer's settings; `rebalance_timeout_ms` is its `max.poll.interval.ms`."""

    max_poll_records: int = 500
    default_api_timeout_ms: int = 60_000
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    auto_offset_reset: OffsetReset = OffsetReset.LATEST
    exclude_internal_topics: bool = True
    client_rack: str = ""
    group_protocol: str = CLASSIC
    group_remote_assignor: str | None = None

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> Self:
        """Build from Kafka's setting names; absent settings keep Kafka's default.

        Raises:
            ConfigError: an unknown key, a value of the wrong kind, or one out of bounds.
        """
        check_protocol_settings(settings)
        return msgspec.convert(_parse(settings, _CONSUMER_SETTINGS), cls)


class ShareConsumerConfig(ConsumerConfig, frozen=True, kw_only=True):
    """A share consumer's settings; those in `SHARE_REFUSED` are the group's or have no sense."""

    enable_auto_commit: bool = False
    fetch_min_bytes: int = 1
    fetch_max_bytes: int = 52_428_800
    fetch_max_wait_ms: int = 500
    acknowledgement_mode: str = IMPLICIT
    acquire_mode: str = BATCH_OPTIMIZED

    @classmethod
    def from_settings(cls, settings: Mapping[str, str]) -> Self:
        """Build from Kafka's setting names; absent settings keep Kafka's default.

        Raises:
            ConfigError: an unknown or refused key, a value of the wrong kind or out of bounds.

        Source: kafka 4.4, ShareConsumerConfig.checkUnsupportedConfigsPreProcess.
        """
        for name in SHARE_REFUSED:
            if name in settings:
                raise ConfigError(f"{name} does not go with a share group: remove it")
        return msgspec.convert(_parse(settings, _SHARE_SETTINGS), cls)


class WorkerConfig(GroupConfig, frozen=True, kw_only=True):
    """A Connect worker's membership settings; workers never have a static membership.

    Read and checked by `connect.settings.worker_config`.
    """

    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 60_000
    request_timeout_ms: int = 40_000
    connect_protocol: ConnectProtocolCompatibility = ConnectProtocolCompatibility.SESSIONED
    scheduled_rebalance_max_delay_ms: int = 300_000
    worker_sync_timeout_ms: int = 3_000
    worker_unsync_backoff_ms: int = 300_000
    task_shutdown_graceful_timeout_ms: int = 5_000


class _IntSetting(Struct, frozen=True):
    field: str
    low: int
    high: int = _INT_MAX


class _BoolSetting(Struct, frozen=True):
    field: str


class _TextSetting(Struct, frozen=True):
    field: str


class _ResetSetting(Struct, frozen=True):
    field: str


class _ChoiceSetting(Struct, frozen=True):
    field: str
    words: tuple[str, ...]


_Setting = _IntSetting | _BoolSetting | _TextSetting | _ResetSetting | _ChoiceSetting

_CONSUMER_SETTINGS: Final[dict[str, _Setting]] = {
    "session.timeout.ms": _IntSetting("session_timeout_ms", 0),
    "heartbeat.interval.ms": _IntSetting("heartbeat_interval_ms", 0),
    "retry.backoff.ms": _IntSetting("retry_backoff_ms", 0),
    "retry.backoff.max.ms": _IntSetting("retry_backoff_max_ms", 0),
    "reconnect.backoff.ms": _IntSetting("reconnect_backoff_ms", 0),
    "reconnect.backoff.max.ms": _IntSetting("reconnect_backoff_max_ms", 0),
    "request.timeout.ms": _IntSetting("request_timeout_ms", 0),
    "metadata.max.age.ms": _IntSetting("metadata_max_age_ms", 0),
    "socket.connection.setup.timeout.ms": _IntSetting("socket_connection_setup_timeout_ms", 0),
    "socket.connection.setup.timeout.max.ms": _IntSetting(
        "socket_connection_setup_timeout_max_ms", 0
    ),
    "max.poll.interval.ms": _IntSetting("rebalance_timeout_ms", 1),
    "max.poll.records": _IntSetting("max_poll_records", 1),
    "default.api.timeout.ms": _IntSetting("default_api_timeout_ms", 0),
    "enable.auto.commit": _BoolSetting("enable_auto_commit"),
    "auto.commit.interval.ms": _IntSetting("auto_commit_interval_ms", 0),
    "auto.offset.reset": _ResetSetting("auto_offset_reset"),
    "exclude.internal.topics": _BoolSetting("exclude_internal_topics"),
    "group.instance.id": _TextSetting("group_instance_id"),
    "internal.leave.group.on.close": _BoolSetting("leave_group_on_close"),
    "client.rack": _TextSetting("client_rack"),
    "group.protocol": _ChoiceSetting("group_protocol", (CLASSIC, CONSUMER)),
    "group.remote.assignor": _TextSetting("group_remote_assignor"),
}


_SHARE_SETTINGS: Final[dict[str, _Setting]] = {
    **{name: each for name, each in _CONSUMER_SETTINGS.items() if name not in SHARE_REFUSED},
    "fetch.min.bytes": _IntSetting("fetch_min_bytes", 0),
    "fetch.max.bytes": _IntSetting("fetch_max_bytes", 0),
    "fetch.max.wait.ms": _IntSetting("fetch_max_wait_ms", 0),
    "share.acknowledgement.mode": _ChoiceSetting("acknowledgement_mode", (IMPLICIT, EXPLICIT)),
    "share.acquire.mode": _ChoiceSetting("acquire_mode", (BATCH_OPTIMIZED, RECORD_LIMIT)),
}

_CLASSIC_ONLY: Final = ("session.timeout.ms", "heartbeat.interval.ms")
"""Source: kafka 4.4, ConsumerConfig.CONSUMER_PROTOCOL_UNSUPPORTED_CONFIGS."""
_CONSUMER_ONLY: Final = ("group.remote.assignor",)


def refused_by(group_protocol: str) -> tuple[str, ...]:
    """Return the settings with which a consumer of that `group.protocol` does not start."""
    return _CONSUMER_ONLY if group_protocol == CLASSIC else _CLASSIC_ONLY


def check_protocol_settings(settings: Mapping[str, str]) -> None:
    """Refuse settings that do not go with the group protocol, as Java's consumer does.

    Raises:
        ConfigError: names the setting, the protocol and the fix.

    Source: kafka 4.4, ConsumerConfig.checkUnsupportedConfigsPostProcess.
    """
    if settings.get("group.protocol", CLASSIC) == CLASSIC:
        if "group.remote.assignor" in settings:
            raise ConfigError(
                "group.remote.assignor needs group.protocol=consumer; the assignors of a classic "
                "group are its partition.assignment.strategy"
            )
        return
    for name in _CLASSIC_ONLY:
        if name in settings:
            raise ConfigError(
                f"{name} does not go with group.protocol=consumer: remove it; the brokers' "
                f"group.consumer.{name} holds for all members"
            )


def _parse(
    settings: Mapping[str, str], table: Mapping[str, _Setting]
) -> dict[str, int | bool | str]:
    parsed: dict[str, int | bool | str] = {}
    for name, text in settings.items():
        setting = table.get(name)
        if setting is None:
            names = ", ".join(sorted(table))
            raise ConfigError(f"setting {name!r} is unknown; known are {names}")
        parsed[setting.field] = _parse_value(name, text, setting)
    return parsed


def _parse_value(name: str, text: str, setting: _Setting) -> int | bool | str:
    match setting:
        case _IntSetting(_, low, high):
            return _parse_int(name, text, low=low, high=high)
        case _BoolSetting(_):
            if text not in ("true", "false"):
                raise ConfigError(f"{name}={text!r} is no boolean; write true or false")
            return text == "true"
        case _ResetSetting(_):
            return _parse_reset(name, text)
        case _ChoiceSetting(_, words) if text not in words:
            raise ConfigError(f"{name}={text!r} is unknown; write one of {', '.join(words)}")
    return text


def _parse_reset(name: str, text: str) -> str:
    known = [reset.value for reset in OffsetReset]
    if text.lower() not in known:
        raise ConfigError(f"{name}={text!r} is unknown; write one of {', '.join(known)}")
    return text.lower()


def _parse_int(name: str, text: str, *, low: int, high: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{name}={text!r} is no number; write whole milliseconds") from None
    if not low <= value <= high:
        raise ConfigError(f"{name}={value} is out of bounds; write {low} to {high}")
    return value
