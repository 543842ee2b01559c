"""Lengths of time as people type them: 30d, 90m, 8s, or a rhythm such as weekly."""

import re
from typing import Final

from coordinator_sim.errors import ConfigError

_UNITS_MS: Final = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 7 * 86_400_000,
    "y": 365 * 86_400_000,
}
_RHYTHMS: Final = {"hourly": "1h", "daily": "1d", "weekly": "1w"}
_PART: Final = re.compile(r"(\d{1,12})(ms|[smhdwy])")
_WHOLE: Final = re.compile(rf"({_PART.pattern})+")


def parse_length(option: str, text: str, *, low_ms: int = 0) -> int:
    """Milliseconds of a length such as `30d`, `1h30m` or `weekly`.

    Args:
        option: Where it was typed, for the error.
        text: What was typed.
        low_ms: The shortest allowed.

    Raises:
        ConfigError: It is no length, or is too short.
    """
    asked = _RHYTHMS.get(text, text)
    if _WHOLE.fullmatch(asked) is None:
        raise ConfigError(
            f"{option} {text!r}: wants a number with ms, s, m, h, d, w or y, as 30d, 1h30m or 8s, "
            f"or {', '.join(_RHYTHMS)}"
        )
    length_ms = sum(int(number) * _UNITS_MS[unit] for number, unit in _PART.findall(asked))
    if length_ms < low_ms:
        raise ConfigError(f"{option} {text}: must be at least {length_text(low_ms)}")
    return length_ms


def length_text(length_ms: int) -> str:
    """The length with its largest units, as `parse_length` reads it."""
    left, parts = length_ms, []
    for unit in ("d", "h", "m", "s", "ms"):
        count, left = divmod(left, _UNITS_MS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
