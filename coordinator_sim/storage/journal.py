"""An append-only file of entries, each in a frame with its checksum: the journal of metadata.

What an entry means is its owner's business; it is a msgspec type, kept as MessagePack. A frame is
the length of the entry, the CRC-32C of its bytes, and these bytes. A process that dies while it
writes leaves a frame cut short: the next opening cuts it off, and tells.
"""

import struct
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

import crc32c
import msgspec
from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim.storage.files import Files

T = TypeVar("T")

FORMAT_VERSION: Final = 1
_HEADER: Final = struct.Struct(">4sHH")
_MAGIC: Final = b"CSMJ"
_FRAME: Final = struct.Struct(">II")
_MAX_ENTRY_BYTES: Final = 1 << 26
"""A length beyond it is damage: no change of metadata is that large."""
_SMALL_BYTES: Final = 1 << 20
"""A journal below it is read in milliseconds, and not worth a rewriting."""
_GROWTH: Final = 4


class JournalCut(Struct, frozen=True, kw_only=True):
    """What was cut off the end of a journal.

    Args:
        position: Where it ends now.
        cut_bytes: From there to its former end.
        reason: What is wrong there.
    """

    position: int
    cut_bytes: int
    reason: str


class Journal(Generic[T]):
    """Entries of one type in the order in which they were appended.

    Args:
        path: Of the file; made if absent.
        decoder: Of the entries.
        files: The file system.
        sync: Whether an entry is on the medium when `append` returns.

    Attributes:
        cut: What was cut off when it was opened; None when it was whole.

    Raises:
        DataError: The file is no journal, or one of a newer version.
    """

    __slots__ = (
        "_decoder",
        "_encoder",
        "_fd",
        "_files",
        "_path",
        "_rewritten",
        "_size",
        "_sync",
        "cut",
    )

    def __init__(
        self, path: str, decoder: msgspec.msgpack.Decoder[T], files: Files, *, sync: bool = False
    ) -> None:
        self._path, self._files, self._sync = path, files, sync
        self._decoder = decoder
        self._encoder = msgspec.msgpack.Encoder()
        self.cut: JournalCut | None = None
        self._fd: int | None = None
        self._size = self._rewritten = _HEADER.size

    def read(self) -> list[T]:
        """Open it: all entries, once; a damaged end is cut off.

        Raises:
            DataError: The file is no journal, or one of a newer version.
            OSError: It cannot be read or mended.
        """
        data = self._files.read_whole(self._path)
        if data is None or len(data) < _HEADER.size:
            self._files.replace(self._path, _header())
            data = _header()
        magic, version, _ = _HEADER.unpack_from(data)
        if magic != _MAGIC or version > FORMAT_VERSION:
            raise DataError(
                f"{self._path} is no journal of version {FORMAT_VERSION}: it begins "
                f"with {data[:8]!r}"
            )
        self._fd = self._files.open(self._path)
        payloads, self._size, reason = _frames(data)
        if reason is not None:
            self._files.truncate(self._fd, self._size)
            self.cut = JournalCut(
                position=self._size, cut_bytes=len(data) - self._size, reason=reason
            )
        self._rewritten = self._size
        return [self._decoded(payload) for payload in payloads]

    def _decoded(self, payload: bytes) -> T:
        try:
            return self._decoder.decode(payload)
        except msgspec.DecodeError as error:
            raise DataError(
                f"{self._path}: an entry that this version does not know: {error}"
            ) from error

    def append(self, entry: T) -> None:
        """Write one entry behind the others.

        Raises:
            OSError: It could not be written, and is not in the journal.
        """
        fd = self._opened()
        frame = _frame(self._encoder.encode(entry))
        try:
            self._files.truncate(fd, self._size)
            self._files.write_all(fd, frame, self._size)
            if self._sync:
                self._files.sync(fd)
        except OSError:
            self._forget_tail(fd)
            raise
        self._size += len(frame)

    def _forget_tail(self, fd: int) -> None:
        try:
            self._files.truncate(fd, self._size)
        except OSError:
            return  # The next append cuts before it writes; an opening cuts what is no frame.

    @property
    def is_grown(self) -> bool:
        """Whether it holds so much more than when it was opened that a rewriting pays."""
        return self._size > max(_SMALL_BYTES, _GROWTH * self._rewritten)

    def rewrite(self, entries: Iterable[T]) -> None:
        """Let it hold these entries, which come to the same, instead of all; in one step.

        Raises:
            OSError: They could not be written; the journal is as it was.
        """
        data = _header() + b"".join(_frame(self._encoder.encode(entry)) for entry in entries)
        self._files.replace(self._path, data, sync=True)
        self._size = self._rewritten = len(data)
        self.close()  # The next append opens the new file.

    def flush(self) -> None:
        """Return when the medium has it."""
        self._files.sync(self._opened())

    def close(self) -> None:
        """Let go of the file."""
        fd, self._fd = self._fd, None
        if fd is not None:
            self._files.close(fd)

    def _opened(self) -> int:
        if self._fd is None:
            self._fd = self._files.open(self._path)
        return self._fd


def _header() -> bytes:
    return _HEADER.pack(_MAGIC, FORMAT_VERSION, 0)


def _frame(payload: bytes) -> bytes:
    return _FRAME.pack(len(payload), crc32c.crc32c(payload)) + payload


def _frames(data: bytes) -> tuple[list[bytes], int, str | None]:
    """The entries' bytes, where the good ones end, and what is wrong there."""
    payloads: list[bytes] = []
    position = _HEADER.size
    while position < len(data):
        start = position + _FRAME.size
        if start > len(data):
            return payloads, position, "the last frame is cut short"
        length, crc = _FRAME.unpack_from(data, position)
        if not 0 < length <= _MAX_ENTRY_BYTES:
            return payloads, position, f"a frame of {length} bytes"
        payload = data[start : start + length]
        if len(payload) < length:
            return payloads, position, "the last frame is cut short"
        if crc32c.crc32c(payload) != crc:
            return payloads, position, "a frame's CRC is wrong"
        payloads.append(payload)
        position = start + length
    return payloads, position, None
