"""A hash table of short byte strings that looks up thousands of strings per call.

A string is read as 64-bit words from its buffer, and is compared word by word with the one in the
table, so that equal hashes do no harm. A string that is not in one of the first slots of its hash
is not found, and belongs in a dictionary of the caller: many strings of one hash stay cheap.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from coordinator_sim.log.columns.batch_scan import Ints
from coordinator_sim.log.columns.compiled import LOOPS

MISSING: Final = -3
"""Stands for a string that the table does not have."""

_WORD: Final = 8
_PLACES: Final = 16
"""Places of a hash that are looked at."""
_FIRST_BITS: Final = 12
_EMPTY: Final = -1
_SEED: Final = 0x9E3779B97F4A7C15
"""An odd number without a pattern in its bits."""
_ALL_EQUAL: Final = np.uint64(0x0101010101010101)

Words = NDArray[np.uint64]


class WordTable:
    """Numbers of strings of at most `width` bytes.

    Args:
        width: A multiple of 64.
    """

    __slots__ = (
        "_bits",
        "_count",
        "_factors",
        "_hashes",
        "_masks",
        "_numbers",
        "_places",
        "_sizes",
        "_words",
    )

    def __init__(self, width: int) -> None:
        columns = width // _WORD
        self._bits = _FIRST_BITS
        self._count = 0
        self._places = np.full(1 << self._bits, _EMPTY, np.int64)
        room = len(self._places) // 2
        self._words: Words = np.zeros((room, columns), np.uint64)
        self._hashes: Words = np.zeros(room, np.uint64)
        self._sizes = np.zeros(room, np.int64)
        self._numbers = np.zeros(room, np.int64)
        powers = [pow(_SEED, 2 * column + 1, 1 << 64) for column in range(columns)]
        self._factors = np.array(powers, np.uint64)
        kept = np.arange(width) < np.arange(width + 1)[:, None]
        self._masks: Words = (kept * np.uint8(0xFF)).astype(np.uint8).view(np.uint64)

    @property
    def width(self) -> int:
        """Bytes of the longest string."""
        return len(self._factors) * _WORD

    def find(self, content: bytes, starts: Ints, sizes: Ints) -> Ints:
        """The number of each string, or `MISSING`.

        Args:
            content: Bytes with at least `width` more behind each start.
            starts: Position of each string.
            sizes: Its size in bytes, at most `width`.
        """
        loops = LOOPS.current
        if loops is not None:
            numbers = np.full(len(starts), MISSING)
            every: Words = np.ndarray((len(content) - _WORD + 1,), np.uint64, content, strides=(1,))
            loops.find(every, starts, sizes, self._arrays(), self._bits, numbers)
            return numbers
        words = self._read(content, starts, sizes)
        mixed = self._mixed(words, sizes)
        found = self._first_of(mixed)
        is_found = found != _EMPTY
        entry = np.where(is_found, found, 0)
        is_found &= (self._sizes[entry] == sizes) & _same(self._words[entry], words)
        return np.where(is_found, self._numbers[entry], MISSING)

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        """The table as the compiled loop takes it."""
        return (
            self._factors,
            self._masks,
            self._places,
            self._hashes,
            self._words,
            self._sizes,
            self._numbers,
        )

    def _first_of(self, mixed: Words) -> Ints:
        """The entry with each hash; `_EMPTY` where it is in none of the hash's places."""
        place = self._home(mixed)
        entry = self._places[place]
        left = np.flatnonzero((entry != _EMPTY) & (self._hashes[entry] != mixed))
        place = place[left]
        for _ in range(_PLACES - 1):
            if not len(left):
                break
            place = self._next(place)
            entry[left] = self._places[place]
            is_other = (entry[left] != _EMPTY) & (self._hashes[entry[left]] != mixed[left])
            left, place = left[is_other], place[is_other]
        entry[left] = _EMPTY
        return entry

    def add(self, content: bytes, starts: Ints, sizes: Ints, numbers: Ints) -> None:
        """Add strings that are not in the table, each once; see `find`."""
        added = np.arange(self._count, self._count + len(starts))
        while (self._count + len(starts)) * 2 > len(self._places):
            self._grow()
        self._count += len(starts)
        words = self._read(content, starts, sizes)
        self._words[added] = words
        self._hashes[added] = self._mixed(words, sizes)
        self._sizes[added] = sizes
        self._numbers[added] = numbers
        self._place(added)

    def _read(self, content: bytes, starts: Ints, sizes: Ints) -> Words:
        width = self.width
        every: NDArray[Any] = np.ndarray(
            (len(content) - width + 1,), f"V{width}", content, strides=(1,)
        )
        words: Words = every[starts].view(np.uint64).reshape(len(starts), -1)
        words &= self._masks[sizes]
        return words

    def _mixed(self, words: Words, sizes: Ints) -> Words:
        """The hash of each string."""
        mixed: Words = words @ self._factors + sizes.astype(np.uint64)
        mixed *= self._factors[0]
        return mixed

    def _home(self, mixed: Words) -> Ints:
        """The first place of each hash."""
        return (mixed >> np.uint64(64 - self._bits)).astype(np.int64)

    def _next(self, place: Ints) -> Ints:
        return (place + 1) & (len(self._places) - 1)

    def _grow(self) -> None:
        """Double the table and place all strings anew."""
        self._bits += 1
        self._places = np.full(1 << self._bits, _EMPTY, np.int64)
        for name in ("_words", "_hashes", "_sizes", "_numbers"):
            old = getattr(self, name)
            setattr(self, name, np.concatenate((old, np.zeros_like(old))))
        self._place(np.arange(self._count))

    def _place(self, entries: Ints) -> None:
        """Give entries the first free one of their places; those without stay out."""
        place = self._home(self._hashes[entries])
        for _ in range(_PLACES):
            is_free = self._places[place] == _EMPTY
            self._places[place[is_free]] = entries[is_free]
            is_out = self._places[place] != entries
            entries, place = entries[is_out], self._next(place[is_out])
            if not len(entries):
                break


def _same(left: Words, right: Words) -> NDArray[np.bool_]:
    """Which rows are equal; eight truth values are compared as one number."""
    equal: NDArray[np.bool_] = np.equal((left == right).view(np.uint64), _ALL_EQUAL)
    return np.asarray(equal.all(axis=1)) if equal.shape[1] > 1 else equal[:, 0]
