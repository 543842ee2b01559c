"""The time written in a log line, read as microseconds since the epoch.

A time without a zone is local to the broker: the caller names the zone. No clock is read.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from msgspec import Struct

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
_DATES: Final = (
    r"(?P<y>\d{4})[-/](?P<mo>\d\d)[-/](?P<d>\d\d)[T ]{1,2}",
    r"(?P<y>\d{4}) (?P<mon>[A-Z][a-z]{2}) (?P<d>\d\d?) ",
    r"(?P<d>\d\d?)[ /-](?P<mon>[A-Z][a-z]{2})[ /-](?P<y>\d{4})[: ]",
    r"(?P<mon>[A-Z][a-z]{2}) (?P<d>\d\d?), (?P<y>\d{4}),? ",
    r"(?<!\d)(?P<y>\d\d)/(?P<mo>\d\d)/(?P<d>\d\d) ",
)
_TIME: Final = (
    r"(?P<h>\d\d?):(?P<mi>\d\d):(?P<s>\d\d)(?:[.,:](?P<f>\d{1,9}))?"
    r"(?:[ \u202f]?(?P<ap>AM|PM))?(?: ?(?P<z>Z|UTC|GMT|[+-]\d\d:?\d\d)(?![\w-]))?"
)
_FORMATS: Final = tuple(re.compile(date + _TIME) for date in _DATES)
_QUICK: Final = re.compile(r"\d\d?:\d\d:\d\d")
_US: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLIS_FROM: Final = 100_000_000_000
"""Smallest number read as epoch milliseconds: in seconds it would be beyond the year 5000."""
_MILLIS_END: Final = 253_402_300_800_000
_UTC_NAMES: Final = ("Z", "UTC", "GMT")
_NOON: Final = 12
_MS_DIGITS: Final = 3
_CACHE_LIMIT: Final = 10_000


class Instant(Struct, frozen=True):
    """A point in time as written, and its place in the text.

    Args:
        ts_us: Microseconds since the epoch, UTC.
        err_us: 1 000 000 for whole seconds, 1 000 for milliseconds, 1 for finer ones.
        zoned: Whether the text itself names the zone.
        repeat_us: Time to add if the clocks had already gone back: not 0 in the hour that the end
            of summer time repeats.
        start: Index of its first character.
        end: Index past its last character.
    """

    ts_us: int
    err_us: int
    zoned: bool
    start: int = 0
    end: int = 0
    repeat_us: int = 0


class InstantReader:
    """Reads the instants of one log; local times are in the given zone.

    A local hour that a clock change repeats is read as its first occurrence, and marked.
    """

    def __init__(self, tz: tzinfo) -> None:
        self._tz = tz
        self._minutes: dict[tuple[str, ...], tuple[int, int]] = {}

    def find_all(self, text: str) -> list[Instant]:
        """Return every instant in the text, in order of position; empty when there is none."""
        if _QUICK.search(text) is None:
            return []
        found: list[Instant] = []
        for pattern in _FORMATS:
            for match in pattern.finditer(text):
                instant = self._instant(match)
                if instant is not None and not _overlaps(instant, found):
                    found.append(instant)
        return sorted(found, key=lambda instant: instant.start)

    def read_default(self, text: str) -> Instant | None:
        """Return the instant of a `yyyy-MM-dd HH:mm:ss,SSS` text, the layout of Kafka's files."""
        key = (text[:4], text[5:7], "", text[8:10], text[11:13], text[14:16], "", "")
        try:
            minute_us, repeat_us = self._minute_of(key)
        except (ValueError, OverflowError):
            return None
        ts_us = minute_us + int(text[17:19]) * _US + int(text[20:23]) * 1_000
        return Instant(ts_us, 1_000, zoned=False, start=0, end=len(text), repeat_us=repeat_us)

    def _instant(self, match: re.Match[str]) -> Instant | None:
        parts = match.groupdict()
        fraction = parts["f"] or ""
        try:
            minute_us, repeat_us = self._minute_of(
                tuple(
                    parts.get(name) or "" for name in ("y", "mo", "mon", "d", "h", "mi", "ap", "z")
                )
            )
        except (ValueError, OverflowError):
            return None
        fraction_us = int(fraction.ljust(6, "0")[:6]) if fraction else 0
        return Instant(
            minute_us + int(parts["s"]) * _US + fraction_us,
            _error_us(len(fraction)),
            parts["z"] is not None,
            match.start(),
            match.end(),
            repeat_us,
        )

    def _minute_of(self, key: tuple[str, ...]) -> tuple[int, int]:
        known = self._minutes.get(key)
        if known is None:
            if len(self._minutes) >= _CACHE_LIMIT:
                self._minutes.clear()
            known = self._minutes[key] = _to_minute_us(key, self._tz)
        return known


def from_number(value: float) -> Instant | None:
    """Return epoch seconds or milliseconds, told apart by size; None beyond the year 9999."""
    if not 0 <= value < _MILLIS_END:
        return None
    if value >= _MILLIS_FROM:
        return Instant(round(value * 1_000), 1_000, zoned=True)
    err_us = _US if isinstance(value, int) else 1_000
    return Instant(round(value * 1_000) * 1_000, err_us, zoned=True)


def _to_minute_us(key: tuple[str, ...], tz: tzinfo) -> tuple[int, int]:
    """Return a minute of the local clock, and the delay of its second occurrence; 0 for none."""
    year_text, month_text, month_name, day, hour_text, minute, half, zone = key
    year = int(year_text) + (2000 if len(year_text) == len("yy") else 0)
    month = int(month_text) if month_text else _MONTHS.get(month_name.lower(), 0)
    hour = int(hour_text)
    if half:
        hour = hour % _NOON + (_NOON if half == "PM" else 0)
    naive = datetime(year, month, int(day), hour, int(minute))  # noqa: DTZ001 - zone follows
    repeat = timedelta()
    if not zone:
        instant = naive.replace(tzinfo=tz)
        repeat = max(repeat, (instant.utcoffset() or repeat) - _second_offset(instant))
    elif zone in _UTC_NAMES:
        instant = naive.replace(tzinfo=UTC)
    else:
        digits = zone[1:].replace(":", "")
        offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
        instant = (naive - offset if zone[0] == "+" else naive + offset).replace(tzinfo=UTC)
    microsecond = timedelta(microseconds=1)
    return (instant - _EPOCH) // microsecond, repeat // microsecond


def _second_offset(instant: datetime) -> timedelta:
    """Return the UTC offset after a clock change that this local time may lie in."""
    return instant.replace(fold=1).utcoffset() or timedelta()


def _error_us(fraction_digits: int) -> int:
    if fraction_digits == 0:
        return _US
    return 1_000 if fraction_digits <= _MS_DIGITS else 1


def _overlaps(instant: Instant, found: list[Instant]) -> bool:
    return any(instant.start < other.end and other.start < instant.end for other in found)
