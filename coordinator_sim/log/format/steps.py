"""Work in small steps, so that the caller can do other work in between.

A generator does the work. Each yield gives the cost of its step, in units of checking one record:
about half a microsecond. The generator returns the result.
"""

from collections.abc import Generator
from typing import Final, TypeVar

T = TypeVar("T")
Steps = Generator[int, None, T]
"""Work with a result of type T."""

SLICE: Final = 10_000
"""Cost of one slice of work: five to ten milliseconds (measured)."""
_A_CHUNK: Final = 8
_BYTES_A_UNIT: Final = 256


def chunk_cost(chunk: bytes) -> int:
    """Cost of decompressing a chunk: a fixed part, and a gigabyte per second."""
    return _A_CHUNK + len(chunk) // _BYTES_A_UNIT


def do_slice(steps: Steps[T]) -> None:
    """Run one slice of some work.

    Raises:
        StopIteration: The work is finished; the exception's value is the result.
    """
    left = SLICE
    while left > 0:
        left -= next(steps)


def finished(steps: Steps[T]) -> T:
    """Run all steps without a pause; return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: T = done.value
            return result
