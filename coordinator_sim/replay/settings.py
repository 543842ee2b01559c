"""Settings given by the user where the trace does not tell them, by their Kafka names."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ConfigError
from coordinator_sim.replay.plan import NEVER_MS


class Settings(Struct, frozen=True, kw_only=True):
    """Known configuration of the group and the broker; None is unknown.

    Timeouts and delays are milliseconds. An unknown timeout never fires first: it fires only
    where a line of the trace says that it did.
    """

    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    group_initial_rebalance_delay_ms: int | None = None
    group_max_size: int | None = None

    @property
    def given(self) -> dict[str, int]:
        """Known settings, by their Kafka names."""
        return {
            name: value
            for name, field in _FIELDS.items()
            if name in _SHOWN and (value := getattr(self, field)) is not None
        }

    @property
    def slack_ms(self) -> int:
        """Time after the last line in which known timers may still change the outcome."""
        return max(
            self.session_timeout_ms or 0,
            self.rebalance_timeout_ms or 0,
            self.group_initial_rebalance_delay_ms or 0,
        )

    @property
    def is_empty(self) -> bool:
        """Whether no setting was given."""
        return not self.given


UNKNOWN: Final = Settings()
"""No settings: a replay of the trace unchanged."""

INITIAL_DELAY: Final = "group.initial.rebalance.delay.ms"

_FIELDS: Final = {
    "session.timeout.ms": "session_timeout_ms",
    "max.poll.interval.ms": "rebalance_timeout_ms",
    "rebalance.timeout.ms": "rebalance_timeout_ms",
    INITIAL_DELAY: "group_initial_rebalance_delay_ms",
    "group.max.size": "group_max_size",
}
"""Kafka's names and ours; a consumer's rebalance timeout is its `max.poll.interval.ms`."""
_SHOWN: Final = frozenset(_FIELDS) - {"max.poll.interval.ms"}
_LEAST: Final = {"group_initial_rebalance_delay_ms": 0}


def parse_settings(texts: Iterable[str]) -> Settings:
    """Parse settings from `key=value` texts; the last of a key counts.

    Raises:
        ConfigError: a text is no `key=value`, its key is unknown, or its value is no number in
            the key's bounds.
    """
    values: dict[str, int] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        field = _FIELDS.get(key.strip())
        if not equals or field is None:
            known = ", ".join(_FIELDS)
            raise ConfigError(f"--set {text}: give key=value with one of {known}")
        values[field] = _number(key.strip(), value.strip(), _LEAST.get(field, 1))
    return Settings(**values)


def _number(key: str, text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ConfigError(f"{key}={text}: give a whole number from {least} to {NEVER_MS}") from None
    if not least <= value <= NEVER_MS:
        raise ConfigError(f"{key}={value}: must be from {least} to {NEVER_MS}")
    return value
