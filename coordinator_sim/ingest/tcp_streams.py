"""TCP segments of captured connections put together into frames, each direction in its order.

A capture may begin within a connection, miss packets and have others twice. Bytes that came before
are passed over, and segments that came too early wait. Where packets are missing for good, or the
beginning is, reading goes on at the next segment that begins as a frame does.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

_SIZE_BYTES: Final = 4
_WAITING_LIMIT: Final = 500
"""Segments that may wait for a missing one, before it counts as lost."""
LARGEST_FRAME: Final = 100 * 1024 * 1024
"""Source: `socket.request.max.bytes` by default."""


class Segment(Struct, frozen=True):
    """The payload of one packet.

    Args:
        number: Of the packet in the capture, from 1.
        at_us: When it was captured.
        stream: Number of the connection.
        source: Address and port of the sender.
        target: Address and port of the receiver.
        sequence: Sequence number of the first byte, relative to the connection's first.
        opens: Whether the sender opens the connection with it.
        payload: Its bytes; may be empty.
    """

    number: int
    at_us: int
    stream: int
    source: tuple[str, int]
    target: tuple[str, int]
    sequence: int
    opens: bool
    payload: bytes


class Frame(Struct, frozen=True):
    """One message of a connection, without the bytes of its length.

    Args:
        number: Packet that completed it.
        at_us: When that was captured.
        body: The message.
    """

    number: int
    at_us: int
    body: bytes


@dataclass(slots=True)
class Direction:
    """What one end of a connection sends.

    Args:
        begins: Whether bytes, from the length field on, begin as a frame does.

    Attributes:
        lost_bytes: Bytes that belong to no whole frame.
        gaps: How often packets were missing.
    """

    begins: Callable[[bytes], bool]
    next_sequence: int | None = None
    is_in_step: bool = False
    lost_bytes: int = 0
    gaps: int = 0
    _held: bytearray = field(default_factory=bytearray)
    _waiting: dict[int, Segment] = field(default_factory=dict)

    def opened(self, sequence: int) -> None:
        """Note the beginning of the connection: what is missing from now on is known."""
        self.next_sequence = sequence + 1

    def take(self, segment: Segment) -> Iterator[Frame]:
        """Take the next captured segment; yield the frames that are whole now."""
        if self.next_sequence is None:
            self.next_sequence = segment.sequence
        early = segment.sequence - self.next_sequence
        if early > 0:
            self._waiting.setdefault(segment.sequence, segment)
            if len(self._waiting) > _WAITING_LIMIT:
                yield from self._give_up()
            return
        yield from self._add(segment)
        yield from self._add_waiting()

    def end(self) -> Iterator[Frame]:
        """Yield what is whole at the end of the capture; the rest is lost."""
        while self._waiting:
            yield from self._give_up()
        self.lost_bytes += len(self._held)
        self._held.clear()

    def _add_waiting(self) -> Iterator[Frame]:
        while self._waiting:
            first = min(self._waiting)
            if self.next_sequence is None or first > self.next_sequence:
                return
            yield from self._add(self._waiting.pop(first))

    def _give_up(self) -> Iterator[Frame]:
        """Go on behind what is missing."""
        self.gaps += 1
        self.lost_bytes += len(self._held)
        self._held.clear()
        self.is_in_step = False
        self.next_sequence = min(self._waiting)
        yield from self._add_waiting()

    def _add(self, segment: Segment) -> Iterator[Frame]:
        known = (self.next_sequence or segment.sequence) - segment.sequence
        payload = segment.payload[known:]
        if not payload:
            return
        self.next_sequence = segment.sequence + len(segment.payload)
        if not self.is_in_step:
            if not self.begins(payload):
                self.lost_bytes += len(payload)
                return
            self.is_in_step = True
        self._held += payload
        yield from self._frames(segment)

    def _frames(self, segment: Segment) -> Iterator[Frame]:
        start = 0
        while len(self._held) - start >= _SIZE_BYTES:
            size = int.from_bytes(self._held[start : start + _SIZE_BYTES], "big", signed=True)
            if not 0 <= size <= LARGEST_FRAME:
                self.lost_bytes += len(self._held) - start
                self._held.clear()
                self.is_in_step = False
                return
            end = start + _SIZE_BYTES + size
            if end > len(self._held):
                break
            yield Frame(segment.number, segment.at_us, bytes(self._held[start + _SIZE_BYTES : end]))
            start = end
        del self._held[:start]
