"""Cuts a byte stream into frames; large frames that no rule reads are relayed in pieces."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import DataError

LENGTH_BYTES: Final = 4
_LONGEST: Final = 1 << 28
"""Bytes of a frame; a length above is none of Kafka's, TLS for example."""


class Piece(Struct, frozen=True):
    """Bytes of a frame, with its length in front where it begins.

    Args:
        data: The bytes.
        head: The first bytes behind the length; empty where the frame began before.
        frame: The whole frame without its length, if it was wanted.
    """

    data: bytes
    head: bytes
    frame: bytes | None = None


class Frames:
    """Cuts what comes into frames.

    Args:
        head_bytes: How much of a frame is needed to know what it is.
        is_wanted: Whether a frame with that head is looked into, and comes whole; asked often.
    """

    def __init__(self, head_bytes: int, is_wanted: Callable[[bytes], bool]) -> None:
        self._head_bytes = head_bytes
        self._is_wanted = is_wanted
        self._held = bytearray()
        self._passing = 0

    def released(self) -> bytes:
        """Return the bytes of an unfinished frame, which are no longer held."""
        return self._taken(len(self._held))

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yield what can go on.

        Raises:
            DataError: the bytes are no frames.
        """
        self._held += data
        while self._held:
            if self._passing:
                taken = self._taken(min(self._passing, len(self._held)))
                self._passing -= len(taken)
                yield Piece(taken, b"")
                continue
            if len(self._held) < LENGTH_BYTES + self._head_bytes:
                return
            length = int.from_bytes(self._held[:LENGTH_BYTES], "big", signed=True)
            if not self._head_bytes <= length <= _LONGEST:
                raise DataError(f"a frame of {length} bytes")
            head = bytes(self._held[LENGTH_BYTES : LENGTH_BYTES + self._head_bytes])
            if not self._is_wanted(head):
                self._passing = LENGTH_BYTES + length
                taken = self._taken(min(self._passing, len(self._held)))
                self._passing -= len(taken)
                yield Piece(taken, head)
            elif len(self._held) < LENGTH_BYTES + length:
                return
            else:
                taken = self._taken(LENGTH_BYTES + length)
                yield Piece(taken, head, taken[LENGTH_BYTES:])

    def _taken(self, size: int) -> bytes:
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken
