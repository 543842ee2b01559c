"""Settings given by the user where the trace does not tell them, by their Kafka names."""

from collections.abc import Iterable
from itertools import product
from typing import Final

from msgspec import Struct

from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
from coordinator_sim.clients.config import CLASSIC, CONSUMER, ConnectProtocolCompatibility
from coordinator_sim.clients.settings_advice import SERVER_ASSIGNORS
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.profiles import ALIASES, PROFILES
from coordinator_sim.replay.plan import NEVER_MS

STABLE: Final = "stable"
"""Value of `group.instance.id`: every member keeps one instance id over its restarts."""
DYNAMIC: Final = "none"
"""Value of `group.instance.id`: members have none."""
CONNECT_PROTOCOLS: Final = tuple(each.name.lower() for each in ConnectProtocolCompatibility)
"""Values of `connect.protocol`."""
MOST_COMBINATIONS: Final = 1_000
"""Largest grid: each combination replays the whole trace once more."""


class Settings(Struct, frozen=True, kw_only=True):
    """Known configuration of the group and the broker; None is unknown, or as in the trace.

    Timeouts and delays are milliseconds. An unknown timeout never fires first: it fires only
    where a line of the trace says that it did.

    Args:
        group_instance_id: `stable` or `none`.
        partition_assignment_strategy: Protocol name of a consumer assignor.
        connect_protocol: One of `CONNECT_PROTOCOLS`.
        group_protocol: `classic` or `consumer` (KIP-848).
        group_remote_assignor: Server-side assignor that members of the consumer protocol ask for.
        group_consumer_session_timeout_ms: The broker's, for members of the consumer protocol.
        group_consumer_heartbeat_interval_ms: As above.
        profile: Kafka release that the core behaves like.
    """

    session_timeout_ms: int | None = None
    heartbeat_interval_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    group_initial_rebalance_delay_ms: int | None = None
    group_max_size: int | None = None
    group_instance_id: str | None = None
    partition_assignment_strategy: str | None = None
    connect_protocol: str | None = None
    scheduled_rebalance_max_delay_ms: int | None = None
    group_protocol: str | None = None
    group_remote_assignor: str | None = None
    group_consumer_session_timeout_ms: int | None = None
    group_consumer_heartbeat_interval_ms: int | None = None
    profile: str | None = None

    @property
    def given(self) -> dict[str, int | str]:
        """Known settings, by their Kafka names; the release is `profile`."""
        named = {name: getattr(self, field) for name, field in _FIELDS.items() if name in _SHOWN}
        named[PROFILE] = self.profile
        return {name: value for name, value in named.items() if value is not None}

    @property
    def label(self) -> str:
        """The known settings as a user gives them; empty without any."""
        return " ".join(f"{name}={value}" for name, value in self.given.items())

    @property
    def slack_ms(self) -> int:
        """Time after the last line in which known timers may still change the outcome."""
        return max(
            self.session_timeout_ms or 0,
            self.rebalance_timeout_ms or 0,
            self.group_initial_rebalance_delay_ms or 0,
            self._epochs_slack_ms if self.is_consumer_protocol else 0,
        )

    @property
    def _epochs_slack_ms(self) -> int:
        """Time in which a dead member is removed, and what it had is handed over."""
        session_ms = self.group_consumer_session_timeout_ms or CONSUMER_SESSION_TIMEOUT_MS
        interval_ms = self.group_consumer_heartbeat_interval_ms or CONSUMER_HEARTBEAT_INTERVAL_MS
        return session_ms + _HANDOVER_BEATS * interval_ms

    @property
    def is_consumer_protocol(self) -> bool:
        """Whether the members are of the consumer protocol."""
        return self.group_protocol == CONSUMER

    @property
    def is_empty(self) -> bool:
        """Whether no setting was given."""
        return not self.given

    @property
    def makes_static(self) -> bool:
        """Whether members become static that are not so in the trace."""
        return self.group_instance_id == STABLE


UNKNOWN: Final = Settings()
"""No settings: a replay of the trace unchanged."""
CONSUMER_SESSION_TIMEOUT_MS: Final = 45_000
"""Kafka's default of `group.consumer.session.timeout.ms`."""
CONSUMER_HEARTBEAT_INTERVAL_MS: Final = 5_000
"""Kafka's default of `group.consumer.heartbeat.interval.ms`."""
_HANDOVER_BEATS: Final = 3
"""Heartbeats until a partition is handed over: one to hear of it, one to give, one to take."""

INITIAL_DELAY: Final = "group.initial.rebalance.delay.ms"
STRATEGY: Final = "partition.assignment.strategy"
CONNECT_PROTOCOL: Final = "connect.protocol"
SCHEDULED_DELAY: Final = "scheduled.rebalance.max.delay.ms"
INSTANCE_ID: Final = "group.instance.id"
PROFILE: Final = "profile"
GROUP_PROTOCOL: Final = "group.protocol"
REMOTE_ASSIGNOR: Final = "group.remote.assignor"

_FIELDS: Final = {
    "session.timeout.ms": "session_timeout_ms",
    "heartbeat.interval.ms": "heartbeat_interval_ms",
    "max.poll.interval.ms": "rebalance_timeout_ms",
    "rebalance.timeout.ms": "rebalance_timeout_ms",
    INITIAL_DELAY: "group_initial_rebalance_delay_ms",
    "group.max.size": "group_max_size",
    INSTANCE_ID: "group_instance_id",
    STRATEGY: "partition_assignment_strategy",
    CONNECT_PROTOCOL: "connect_protocol",
    SCHEDULED_DELAY: "scheduled_rebalance_max_delay_ms",
    GROUP_PROTOCOL: "group_protocol",
    REMOTE_ASSIGNOR: "group_remote_assignor",
    "group.consumer.session.timeout.ms": "group_consumer_session_timeout_ms",
    "group.consumer.heartbeat.interval.ms": "group_consumer_heartbeat_interval_ms",
}
"""Kafka's names and ours; a consumer's rebalance timeout is its `max.poll.interval.ms`."""
_SHOWN: Final = frozenset(_FIELDS) - {"max.poll.interval.ms"}
_LEAST: Final = {"group_initial_rebalance_delay_ms": 0, "scheduled_rebalance_max_delay_ms": 0}
_OF_CLASSIC: Final = (
    "session_timeout_ms",
    "heartbeat_interval_ms",
    "group_initial_rebalance_delay_ms",
    "partition_assignment_strategy",
    "connect_protocol",
    "scheduled_rebalance_max_delay_ms",
)
_OF_CONSUMER: Final = (
    "group_remote_assignor",
    "group_consumer_session_timeout_ms",
    "group_consumer_heartbeat_interval_ms",
)
"""Fields that mean nothing in the other group protocol."""
_INSTEAD: Final = {
    True: "the broker's group.consumer.session.timeout.ms, group.consumer.heartbeat.interval.ms "
    "and group.remote.assignor are the consumer protocol's",
    False: "add --set group.protocol=consumer",
}
_WORDS: Final = {
    "group_instance_id": (STABLE, DYNAMIC),
    "partition_assignment_strategy": tuple(CONSUMER_ASSIGNORS),
    "connect_protocol": CONNECT_PROTOCOLS,
    "group_protocol": (CLASSIC, CONSUMER),
    "group_remote_assignor": SERVER_ASSIGNORS,
}
"""Fields whose values are words, and which words."""


def parse_grid(texts: Iterable[str], profiles: str | None = None) -> list[Settings]:
    """Parse `key=value` texts, each with one value or several separated by commas.

    Args:
        texts: The last text of a key counts.
        profiles: Releases, separated by commas; None for the release that the trace tells.

    Returns:
        One entry for every combination of the values, the last key changing first; the single
        entry `UNKNOWN` without any text.

    Raises:
        ConfigError: a text is no `key=value`, its key is unknown, a value is impossible, values
            contradict each other, or there are too many combinations.
    """
    axes: dict[str, list[int | str]] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        field = _FIELDS.get(key.strip())
        if not equals or field is None:
            known = ", ".join(_FIELDS)
            raise ConfigError(f"--set {text}: give key=value with one of {known}")
        if field in axes:
            raise ConfigError(f"--set {text}: {key} is there twice; separate its values by commas")
        axes[field] = _values(key.strip(), field, value)
    if profiles is not None:
        axes["profile"] = [_known_profile(name) for name in _split("--profile", profiles)]
    count = 1
    for values in axes.values():
        count *= len(values)
    if count > MOST_COMBINATIONS:
        raise ConfigError(
            f"{count} combinations of settings: at most {MOST_COMBINATIONS} are replayed at once; "
            "give fewer values"
        )
    grid = [
        Settings(**dict(zip(axes, values, strict=True)))  # type: ignore[arg-type]
        for values in product(*axes.values())
    ]
    for settings in grid:
        _check_fit(settings)
    return grid


def _split(key: str, text: str) -> list[str]:
    values = list(dict.fromkeys(part.strip() for part in text.split(",")))
    if "" in values:
        raise ConfigError(f"{key}={text}: a value is empty; separate values by single commas")
    return values


def _values(key: str, field: str, text: str) -> list[int | str]:
    values = _split(key, text)
    words = _WORDS.get(field)
    if words is None:
        return [_number(key, value, _LEAST.get(field, 1)) for value in values]
    for value in values:
        if value not in words:
            raise ConfigError(f"{key}={value}: must be one of {', '.join(words)}")
    return list(values)


def _number(key: str, text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{key}={text}: give a whole number from {least} to {NEVER_MS}") from None
    if not least <= value <= NEVER_MS:
        raise ConfigError(f"{key}={value}: must be from {least} to {NEVER_MS}")
    return value


def _known_profile(name: str) -> str:
    if name not in PROFILES and name not in ALIASES:
        raise ConfigError(f"--profile {name}: must be one of {', '.join((*PROFILES, *ALIASES))}")
    return name


def _check_fit(settings: Settings) -> None:
    """Refuse values that no client starts with. Source: Java's Heartbeat constructor."""
    heartbeat_ms, session_ms = settings.heartbeat_interval_ms, settings.session_timeout_ms
    if heartbeat_ms is not None and session_ms is not None and heartbeat_ms >= session_ms:
        raise ConfigError(
            f"heartbeat.interval.ms={heartbeat_ms} with session.timeout.ms={session_ms}: clients "
            "do not start unless it is lower; a third of the session timeout is usual"
        )
    _check_protocol(settings)


def _check_protocol(settings: Settings) -> None:
    """Refuse settings of the other group protocol. Source: Java's ConsumerConfig, 4.0."""
    fields = _OF_CLASSIC if settings.is_consumer_protocol else _OF_CONSUMER
    named = {field: name for name, field in _FIELDS.items()}
    for field in fields:
        value = getattr(settings, field)
        if value is not None:
            other = CLASSIC if settings.is_consumer_protocol else CONSUMER
            raise ConfigError(
                f"{named[field]}={value} is a setting of group.protocol={other} alone; "
                f"{_INSTEAD[settings.is_consumer_protocol]}"
            )
    session_ms = settings.group_consumer_session_timeout_ms or CONSUMER_SESSION_TIMEOUT_MS
    interval_ms = settings.group_consumer_heartbeat_interval_ms or CONSUMER_HEARTBEAT_INTERVAL_MS
    if interval_ms >= session_ms:
        raise ConfigError(
            f"group.consumer.heartbeat.interval.ms={interval_ms} with "
            f"group.consumer.session.timeout.ms={session_ms}: a broker does not start unless it is "
            "lower; the defaults are 5000 and 45000"
        )
