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
    r"(?P<mon>[A-Z][a-z]{2}) (?P<d>\d\d?), (?P<y>\d{4})(?:,|,? @)? ",
    r"(?<!\d)(?P<y>\d\d)/(?P<mo>\d\d)/(?P<d>\d\d) ",
    r"(?<![\d/-])(?P<a>\d\d?)(?P<sep>[/-])(?P<b>\d\d?)(?P=sep)(?P<y>\d{4})(?:, ?|[T ]{1,2})",
    r"(?<![\d.])(?P<d>\d\d?)\.(?P<mo>\d\d?)\.(?P<y>\d{4})(?:, ?|[T ]{1,2})",
)
_ZONES: Final = (
    *((0, "Z UTC GMT WET"), (1, "WEST CET"), (2, "CEST EET"), (3, "EEST MSK"), (-4, "EDT")),
    *((-5, "EST CDT"), (-6, "MDT"), (-7, "MST PDT"), (-8, "PST AKDT"), (-9, "AKST"), (-10, "HST")),
    *((8, "SGT HKT AWST"), (9, "JST KST"), (9.5, "ACST"), (10, "AEST"), (10.5, "ACDT")),
    *((11, "AEDT"), (12, "NZST"), (13, "NZDT")),
)
"""Hours from UTC, and the abbreviations that name them.

A given zone that has the abbreviation itself wins: PST is also the time of Asia/Manila, and CDT
that of America/Havana. Source: IANA's time zone database, the abbreviations of 2025.
"""
_ZONE_HOURS: Final = {name: hours for hours, names in _ZONES for name in names.split()}
UNCLEAR_ZONES: Final = {
    "IST": ("Asia/Kolkata", "Asia/Jerusalem", "Europe/Dublin"),
    "CST": ("America/Chicago", "Asia/Shanghai", "America/Havana"),
    "BST": ("Europe/London", "Asia/Dhaka"),
    "AST": ("America/Halifax", "Asia/Riyadh"),
    "GST": ("Asia/Dubai", "Atlantic/South_Georgia"),
    "SST": ("Asia/Singapore", "Pacific/Pago_Pago"),
}
"""Abbreviations that several zones have."""
_TIME: Final = (
    r"(?P<h>\d\d?):(?P<mi>\d\d):(?P<s>\d\d)(?:[.,:](?P<f>\d{1,9}))?"
    r"(?:[ \u202f]?(?P<ap>AM|PM))?"
    rf"(?: ?(?P<z>{'|'.join((*_ZONE_HOURS, *UNCLEAR_ZONES))}|[+-]\d\d:?\d\d)(?![\w-]))?"
)
_FORMATS: Final = tuple(re.compile(date + _TIME) for date in _DATES)
_QUICK: Final = re.compile(r"\d\d?:\d\d:\d\d")
_US: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLIS_FROM: Final = 100_000_000_000
"""Smallest number read as epoch milliseconds: in seconds it would be beyond the year 5000."""
_MILLIS_END: Final = 253_402_300_800_000
_NOON: Final = 12
_MONTHS_OF_YEAR: Final = 12
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
        unclear_zone: Its abbreviation, if several zones have that, and not the given one.
        days_proven: Whether the day comes first in its date, as a number above 12 shows; None where
            there is none.
        days_unclear: Whether the order of days and months that was given decided its date.
    """

    ts_us: int
    err_us: int
    zoned: bool
    start: int = 0
    end: int = 0
    repeat_us: int = 0
    unclear_zone: str | None = None
    days_proven: bool | None = None
    days_unclear: bool = False


class InstantReader:
    """Reads the instants of one log; local times are in the given zone.

    A local hour that a clock change repeats is read as its first occurrence, and marked.

    Args:
        tz: Zone of the times that name none.
        day_first: Whether 03/04/2024 is in April; a date such as 13/04/2024 shows that by itself.
    """

    def __init__(self, tz: tzinfo, *, day_first: bool = False) -> None:
        self._tz = tz
        self._day_first = day_first
        self._minutes: dict[tuple[str, ...], tuple[int, int, str | None]] = {}

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
            minute_us, repeat_us, _ = self._minute_of(key)
        except (ValueError, OverflowError):
            return None
        ts_us = minute_us + int(text[17:19]) * _US + int(text[20:23]) * 1_000
        return Instant(ts_us, 1_000, zoned=False, start=0, end=len(text), repeat_us=repeat_us)

    def _instant(self, match: re.Match[str]) -> Instant | None:
        parts = match.groupdict()
        proven, is_unclear = None, False
        if "a" in parts:
            first, second = parts["a"], parts["b"]
            if max(int(first), int(second)) > _MONTHS_OF_YEAR:
                proven = int(first) > _MONTHS_OF_YEAR
            is_day_first = self._day_first if proven is None else proven
            parts["d"], parts["mo"] = (first, second) if is_day_first else (second, first)
            is_unclear = proven is None and first != second
        fraction = parts["f"] or ""
        try:
            minute_us, repeat_us, unclear_zone = self._minute_of(
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
            parts["z"] is not None and parts["z"] not in UNCLEAR_ZONES,
            match.start(),
            match.end(),
            repeat_us,
            unclear_zone,
            proven,
            is_unclear,
        )

    def _minute_of(self, key: tuple[str, ...]) -> tuple[int, int, str | None]:
        known = self._minutes.get(key)
        if known is None:
            if len(self._minutes) >= _CACHE_LIMIT:
                self._minutes.clear()
            is_unclear = key[-1] in UNCLEAR_ZONES and not _is_named_so(key, self._tz)
            minute = _to_minute_us(key, self._tz)
            known = self._minutes[key] = (*minute, key[-1] if is_unclear else None)
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
    zone = key[-1]
    naive = _local_minute(key)
    repeat = timedelta()
    if not zone or zone in UNCLEAR_ZONES or _is_named_so(key, tz):
        instant = naive.replace(tzinfo=tz)
        if not zone:
            second = instant.replace(fold=1).utcoffset() or repeat
            repeat = max(repeat, (instant.utcoffset() or repeat) - second)
        elif instant.tzname() != zone:
            # The abbreviation tells the two occurrences of a repeated hour apart.
            instant = instant.replace(fold=1)
    else:
        instant = (naive - _offset(zone)).replace(tzinfo=UTC)
    microsecond = timedelta(microseconds=1)
    return (instant - _EPOCH) // microsecond, repeat // microsecond


def _local_minute(key: tuple[str, ...]) -> datetime:
    year_text, month_text, month_name, day, hour_text, minute, half, _zone = key
    year = int(year_text) + (2000 if len(year_text) == len("yy") else 0)
    month = int(month_text) if month_text else _MONTHS.get(month_name.lower(), 0)
    hour = int(hour_text)
    if half:
        hour = hour % _NOON + (_NOON if half == "PM" else 0)
    return datetime(year, month, int(day), hour, int(minute))  # noqa: DTZ001 - zone follows


def _offset(zone: str) -> timedelta:
    if zone in _ZONE_HOURS:
        return timedelta(hours=_ZONE_HOURS[zone])
    digits = zone[1:].replace(":", "")
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return offset if zone[0] == "+" else -offset


def _is_named_so(key: tuple[str, ...], tz: tzinfo) -> bool:
    """Whether the abbreviation in a time is that of the zone then."""
    instant = _local_minute(key).replace(tzinfo=tz)
    return key[-1] in (instant.tzname(), instant.replace(fold=1).tzname())


def _error_us(fraction_digits: int) -> int:
    if fraction_digits == 0:
        return _US
    return 1_000 if fraction_digits <= _MS_DIGITS else 1


def _overlaps(instant: Instant, found: list[Instant]) -> bool:
    return any(instant.start < other.end and other.start < instant.end for other in found)
