"""Whole numbers in texts, as Java reads them: of any length, ASCII digits alone."""

import re
from typing import Final

_INTEGER: Final = re.compile(r"([+-]?)0*([0-9]{1,19})")
"""More digits than 19 fit no long. Python's `int` also refuses texts of more than 4,300."""


def java_int(text: str, bits: int = 32) -> int | None:
    """What Integer.parseInt, or with 64 bits Long.parseLong, makes of a text; None if it throws."""
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    number = int(found[1] + found[2])
    return number if -(1 << bits - 1) <= number < 1 << bits - 1 else None
