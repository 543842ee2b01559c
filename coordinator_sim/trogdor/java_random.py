"""java.util.Random, number for number, and Java's way from a double to an int.

Source: the specification in the documentation of java.util.Random; of logarithms, the method of
fdlibm, which that documentation (StrictMath) requires.
"""

import sys
from array import array
from math import frexp, sqrt
from typing import Final

_MULTIPLIER: Final = 0x5DEECE66D
_ADDEND: Final = 0xB
_BITS: Final = 48
_MASK: Final = (1 << _BITS) - 1
_LN2_HIGH: Final = 6.93147180369123816490e-01
_LN2_LOW: Final = 1.90821492927058770002e-10
_EVEN: Final = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)
_ODD: Final = (
    6.666666666666735130e-01,
    2.857142874366239149e-01,
    1.818357216161805012e-01,
    1.479819860511658591e-01,
)
"""Coefficients of the series of the logarithm. Source: fdlibm, e_log."""

_MIN_INT: Final = -(2**31)
_MAX_INT: Final = 2**31 - 1


class JavaRandom:
    """A generator of pseudo-random numbers.

    Args:
        seed: Any whole number; its low 48 bits count.
    """

    def __init__(self, seed: int) -> None:
        self._state = 0
        self._second_gaussian: float | None = None
        self.set_seed(seed)

    def set_seed(self, seed: int) -> None:
        """Begin anew from a seed."""
        self._state = (seed ^ _MULTIPLIER) & _MASK
        self._second_gaussian = None

    def _next(self, bits: int) -> int:
        """The next number of so many bits, without a sign."""
        self._state = (self._state * _MULTIPLIER + _ADDEND) & _MASK
        return self._state >> (_BITS - bits)

    def next_int(self, bound: int) -> int:
        """A number from 0 to below `bound`, which is 1 to 2^31 - 1."""
        if bound & (bound - 1) == 0:
            return (bound * self._next(31)) >> 31
        # Ends because at least half of all numbers are taken.
        while True:
            drawn = self._next(31)
            found = drawn % bound
            if drawn - found + bound - 1 <= _MAX_INT:
                return found

    def next_bytes(self, count: int) -> bytes:
        """Draw `count` random bytes; four at a time, so that what remains of a word is lost."""
        words = ((count + 3) // 4) if count > 0 else 0
        drawn = array("I", (self._next(32) for _ in range(words)))
        if sys.byteorder == "big":
            drawn.byteswap()
        return drawn.tobytes()[:count]

    def next_double(self) -> float:
        """A number from 0 to below 1, with 53 random bits."""
        high = self._next(26) << 27
        return float(high + self._next(27)) * 2.0**-53

    def next_gaussian(self) -> float:
        """A number of the normal distribution with mean 0 and deviation 1.

        The polar method gives two numbers at once; the second is kept for the next call.
        """
        if self._second_gaussian is not None:
            kept, self._second_gaussian = self._second_gaussian, None
            return kept
        # Ends because more than three in four pairs are inside the circle.
        while True:
            x, y = 2 * self.next_double() - 1, 2 * self.next_double() - 1
            square = x * x + y * y
            if 0 < square < 1:
                factor = sqrt(-2 * strict_log(square) / square)
                self._second_gaussian = y * factor
                return x * factor


def strict_log(value: float) -> float:
    """The natural logarithm to the last bit as StrictMath.log has it, of normal numbers above 0.

    A platform's own logarithm differs in the last bit now and then.
    """
    mantissa, exponent = frexp(value)
    # The upper 20 bits of the fraction choose the branch.
    high = int(mantissa * 2**21) - 2**20
    doubled = high < 0x6A09C  # noqa: PLR2004 (the fraction of the square root of 2)
    fraction = 2 * mantissa - 1 if doubled else mantissa - 1
    twos = float(exponent - 1 if doubled else exponent)
    if (high + 2) & 0xFFFFF < 3:  # noqa: PLR2004 (within 2^-20 of a power of two)
        rest = fraction * fraction * (0.5 - 0.33333333333333333 * fraction)
        return twos * _LN2_HIGH - ((rest - twos * _LN2_LOW) - fraction)
    ratio = fraction / (2.0 + fraction)
    square = ratio * ratio
    fourth = square * square
    series = square * (_ODD[0] + fourth * (_ODD[1] + fourth * (_ODD[2] + fourth * _ODD[3])))
    series += fourth * (_EVEN[0] + fourth * (_EVEN[1] + fourth * _EVEN[2]))
    if 0x6147A <= high <= 0x6B851:  # noqa: PLR2004 (near the square root of 2)
        half = 0.5 * fraction * fraction
        return twos * _LN2_HIGH - ((half - (ratio * (half + series) + twos * _LN2_LOW)) - fraction)
    return twos * _LN2_HIGH - ((ratio * (fraction - series) - twos * _LN2_LOW) - fraction)


def java_int(value: float) -> int:
    """A double as an int: without its fraction, at most the largest int; 0 for no number."""
    if value != value:  # noqa: PLR0124 (is it no number)
        return 0
    return _MIN_INT if value <= _MIN_INT else _MAX_INT if value >= _MAX_INT else int(value)


def gaussian_size(random: JavaRandom, average: int, deviation: float, least: int) -> int:
    """A normally distributed number, at least `least`; the sum overflows as Java's ints do."""
    drawn = java_int(random.next_gaussian() * deviation) + average
    return max((drawn - _MIN_INT) % (1 << 32) + _MIN_INT, least)
