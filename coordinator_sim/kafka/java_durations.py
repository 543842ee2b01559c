"""Durations as text, as Java reads them.

Source: JDK 17, java.time.Duration.parse.
"""

import re
from typing import Final

_NANOS: Final = 1_000_000_000
_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]{1,19})D)?(T(?:([-+]?[0-9]{1,19})H)?(?:([-+]?[0-9]{1,19})M)?"
    r"(?:([-+]?[0-9]{1,19})(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
_MAX_SECONDS: Final = (1 << 63) - 1


def duration_ns(text: str) -> int | None:
    """The duration in nanoseconds, as in `P1DT2H3M4.5S`; None where the text is none."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    sign, days, time, hours, minutes, seconds, fraction = found.groups()
    if not any((days, hours, minutes, seconds)) or time in ("T", "t"):
        return None
    whole = (
        int(days or 0) * 86_400
        + int(hours or 0) * 3600
        + int(minutes or 0) * 60
        + int(seconds or 0)
    )
    if abs(whole) > _MAX_SECONDS:
        return None
    part = int((fraction or "").ljust(9, "0"))
    total = whole * _NANOS + (-part if (seconds or "").startswith("-") else part)
    return -total if sign == "-" else total
