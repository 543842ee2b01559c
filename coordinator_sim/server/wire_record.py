"""Record of the frames on the wire: their digest, and the first difference of two runs."""

import hashlib
import struct
from collections.abc import Sequence
from enum import IntEnum, unique
from typing import Final

from msgspec import Struct

_SIZE: Final = struct.Struct(">i")
_PLACE: Final = struct.Struct(">qibi")


@unique
class Side(IntEnum):
    """The side that wrote."""

    CLIENT = 0
    SERVER = 1


class WireFrame(Struct, frozen=True, gc=False):
    """One request or response.

    Args:
        at_us: When its last byte was written.
        connection: Number of the connection, in the order of their beginnings.
        side: The side that wrote the frame: a request is the client's.
        body: The frame without the four bytes of its length.
    """

    at_us: int
    connection: int
    side: Side
    body: bytes


class WireRecord:
    """Takes every write, and splits them into frames.

    Args:
        keep: Whether to keep the frames themselves, not only their digest.
    """

    def __init__(self, *, keep: bool = False) -> None:
        self.frames: list[WireFrame] = []
        self.frame_count = 0
        self._keep = keep
        self._unfinished: dict[tuple[int, Side], bytearray] = {}
        self._hash = hashlib.sha256()

    def write(self, at_us: int, connection: int, side: Side, data: bytes) -> None:
        """Take bytes that one side of a connection wrote at an instant."""
        buffer = self._unfinished.setdefault((connection, side), bytearray())
        buffer += data
        while len(buffer) >= _SIZE.size:
            end = _SIZE.size + _SIZE.unpack_from(buffer)[0]
            if len(buffer) < end:
                break
            self._take(WireFrame(at_us, connection, side, bytes(buffer[_SIZE.size : end])))
            del buffer[:end]

    def _take(self, frame: WireFrame) -> None:
        place = _PLACE.pack(frame.at_us, frame.connection, frame.side, len(frame.body))
        self._hash.update(place)
        self._hash.update(frame.body)
        self.frame_count += 1
        if self._keep:
            self.frames.append(frame)

    @property
    def digest(self) -> str:
        """SHA-256 over the frames so far, with their instants and connections, in order."""
        return self._hash.hexdigest()


def first_difference(one: Sequence[WireFrame], other: Sequence[WireFrame]) -> int | None:
    """The index of the first frame in which two runs differ; None if they are equal."""
    for index, (here, there) in enumerate(zip(one, other, strict=False)):
        if here != there:
            return index
    return None if len(one) == len(other) else min(len(one), len(other))
