"""Java's number types as annotations: what a field of a spec or a message holds.

A plain `int` is a long: 64 bits, signed. The bounds are those of Java's types; only reading from
JSON checks them.
"""

from struct import pack, unpack
from typing import Annotated, Final

from msgspec import Meta

LONG_BITS: Final = 64
_LONG_DIGITS: Final = 19

Int = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
"""A Java int."""

Short = Annotated[int, Meta(ge=-(2**15), le=2**15 - 1)]
"""A Java short."""


def as_long(value: int) -> int:
    """The number that 64 signed bits keep of `value`: Java's sums overflow without a word."""
    half = 1 << (LONG_BITS - 1)
    return (value + half) % (1 << LONG_BITS) - half


def as_single(value: float) -> float:
    """A number with the precision of a Java float."""
    rounded: float = unpack("f", pack("f", value))[0]
    return rounded


def shortest_single(value: float) -> float:
    """The double with the fewest digits that rounds to the same Java float.

    Args:
        value: A number with the precision of a float, see `as_single`.
    """
    digits = 1
    while as_single(float(f"{value:.{digits}g}")) != value:
        digits += 1
    return float(f"{value:.{digits}g}")


def whole_number(text: str) -> int | None:
    """The number that a sign and digits say, however many; None for more digits than a long has.

    Python's own `int` fails on more than a few thousand digits.
    """
    digits = text.lstrip("+-0") or "0"
    if len(digits) > _LONG_DIGITS:
        return None
    return -int(digits) if text.startswith("-") else int(digits)
