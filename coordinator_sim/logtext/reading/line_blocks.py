"""Many lines at once: where each begins, and which may be a coordinator's or a client's."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from coordinator_sim.logtext.reading.text import TOKENS, has_token

_LINE_END: Final = 0x0A
_RETURN: Final = 0x0D
_WORD: Final = 8
_BEHIND: Final = 16_384
"""Places behind a block's end at which a form's text may be looked for."""
_MOST: Final = 4
"""Lines that are looked at one by one: a block's lines divided by this."""
_OFFSETS_TOPIC: Final = b"__consumer_offsets"
PLAIN: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/:@+=#$"
"""Characters of names and numbers: none that a log line sets around them."""
FREE: Final = PLAIN + b" ,;*!?&%"
"""Characters of free text and of lists."""

Places = NDArray[np.int64]


class LineBlock:
    """Whole lines of a log.

    Args:
        data: The lines in UTF-8, each with its line end; the last one's may be missing.
        first_number: Line number of the first, from 1.
    """

    def __init__(self, data: bytes, first_number: int) -> None:
        self.data = data
        self.first_number = first_number
        self.codes = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(self.codes == _LINE_END).astype(np.int64)
        self.nexts: Places = ends + 1
        """Where each line's successor begins."""
        if not len(ends) or ends[-1] != len(data) - 1:
            self.nexts = np.append(self.nexts, len(data))
            ends = np.append(ends, len(data))
        self.starts: Places = np.concatenate([np.zeros(1, np.int64), self.nexts[:-1]])
        if b"\r" in data:
            has_return = (ends > self.starts) & (self.codes[ends - 1] == _RETURN)
            ends -= has_return
        self.ends: Places = ends
        """Where each line ends, its line end excluded."""

    def __len__(self) -> int:
        return len(self.starts)

    def text(self, line: int) -> str:
        """Return a line with its line end, by its place in the block."""
        return self.data[self.starts[line] : self.nexts[line]].decode("utf-8", errors="replace")

    @cached_property
    def plain_stops(self) -> Places:
        """Places of the characters that are not `PLAIN`, and the block's end."""
        return self._places_without(PLAIN)

    @cached_property
    def first_stops(self) -> Places:
        """Numbers of the first of `plain_stops` in each line, or behind it."""
        stops = self.plain_stops[:-1]
        line_ends = np.flatnonzero(self.codes[stops] == _LINE_END) + 1
        return np.append(0, line_ends)[: len(self)]

    @cached_property
    def is_ascii(self) -> bool:
        """Whether all characters are of one byte."""
        return self.data.isascii()

    @cached_property
    def words(self) -> NDArray[np.uint64]:
        """The eight bytes that begin at each place, and at some behind the end."""
        return np.ndarray((len(self.data) + _BEHIND,), "<u8", self._padded, strides=(1,))

    def pieces(self, words: int) -> NDArray[Any]:
        """Return the bytes that begin at each place, so many words of them."""
        size = _WORD * words
        return np.ndarray((len(self._padded) - size + 1,), f"V{size}", self._padded, strides=(1,))

    @cached_property
    def _padded(self) -> bytes:
        return self.data + bytes(_BEHIND + _WORD)

    def _places_without(self, alphabet: bytes) -> Places:
        is_other = bytes(code not in alphabet for code in range(256))
        marks = np.frombuffer(self.data.translate(is_other), np.bool_)
        return np.append(np.flatnonzero(marks), len(self.data))

    def candidates(self, read: NDArray[np.bool_]) -> list[int]:
        """Return the places of the lines for which `has_token` holds, without those read already.

        Args:
            read: Whether each line was read already.
        """
        others = np.flatnonzero(~read)
        if len(others) * _MOST < len(self):
            return [line for line in others.tolist() if has_token(self.text(line))]
        found: set[int] = set()
        for token in TOKENS:
            found.update(self._lines_with(token.encode()))
        for line in self._lines_with(_OFFSETS_TOPIC):
            if line not in found and has_token(self.text(line)):
                found.add(line)
        return sorted(line for line in found if not read[line])

    def _lines_with(self, token: bytes) -> Iterator[int]:
        place = self.data.find(token)
        while place >= 0:
            line = int(np.searchsorted(self.nexts, place, side="right"))
            yield line
            place = self.data.find(token, int(self.nexts[line]))
