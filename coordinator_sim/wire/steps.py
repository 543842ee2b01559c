"""Work in small steps, so that whoever does it can do other things in between.

A generator does the work. Each yield says how much its step was, in units of one record that is
looked at: half a microsecond or so. What the work comes to is what the generator returns.
"""

from collections.abc import Generator
from typing import Final, TypeVar

T = TypeVar("T")
Steps = Generator[int, None, T]
"""Work that comes to a T."""

SLICE: Final = 10_000
"""Units of work that are done in one go: five to ten milliseconds (measured)."""
_A_CHUNK: Final = 8
_BYTES_A_UNIT: Final = 256


def chunk_cost(chunk: bytes) -> int:
    """What it takes to decompress a chunk: a gigabyte a second, and something for each."""
    return _A_CHUNK + len(chunk) // _BYTES_A_UNIT


def do_slice(steps: Steps[T]) -> None:
    """Do as much of some work as may be done in one go.

    Raises:
        StopIteration: The work is over; its value is what the work comes to.
    """
    left = SLICE
    while left > 0:
        left -= next(steps)


def finished(steps: Steps[T]) -> T:
    """What work comes to, done in one go."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
