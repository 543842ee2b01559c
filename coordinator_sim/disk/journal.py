"""An append-only file of entries, each in a frame with its checksum: the journal of metadata.

An entry is of any msgspec type, kept as MessagePack; only its owner interprets it. A frame is the
length of the entry, the CRC-32C of its bytes, and these bytes. A process that dies during a write
leaves a truncated frame: the next opening cuts it off, and reports it.
"""

import struct
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

import crc32c
import msgspec
from msgspec import Struct

from coordinator_sim.disk.files import Files
from coordinator_sim.disk.recovery_report import SegmentCut
from coordinator_sim.errors import UNREADABLE_JSON, DataError

T = TypeVar("T")

FORMAT_VERSION: Final = 1
_HEADER: Final = struct.Struct(">4sHH")
_MAGIC: Final = b"CSMJ"
_FRAME: Final = struct.Struct(">II")
_MAX_ENTRY_BYTES: Final = 1 << 26
"""A larger length means damage: no change of metadata is that large."""
_SMALL_BYTES: Final = 1 << 20
"""A smaller journal is read in milliseconds, and need not be rewritten."""
_GROWTH: Final = 4
_CUT_SHORT: Final = "the last frame is cut short"


_RESYNC_BYTES: Final = 1 << 16
_RESYNC_ENTRY_BYTES: Final = 4096
"""How far an entry is searched behind damage, and how long it may be: entries of metadata are
short, and the search takes under 0.1 s."""


class JournalExtent(Struct, frozen=True, array_like=True):
    """Length and checksum of a journal, to detect later whether these bytes are still there.

    Args:
        size_bytes: Length from the beginning of the file.
        crc: CRC-32C of these bytes, with the header as this version writes it.
    """

    size_bytes: int
    crc: int


class JournalDamage(Struct, frozen=True, kw_only=True):
    """Damage of a journal.

    Args:
        position: End of the good entries.
        left_bytes: Bytes from there to the end of the file.
        reason: What is wrong at the position.
        is_torn: Whether it looks like the torn write of a process that died.
    """

    position: int
    left_bytes: int
    reason: str
    is_torn: bool


class Journal(Generic[T]):
    """Entries of one type in the order in which they were appended.

    Args:
        path: Path of the file; created if absent.
        decoder: Decoder of the entries.
        files: The file system.
        sync: Whether an entry is on disk when `append` returns.

    Attributes:
        damage: Damage found by `read`; None when there was none.
        difference: What is missing of the extent known to `read`; None when nothing is.
    """

    def __init__(
        self, path: str, decoder: msgspec.msgpack.Decoder[T], files: Files, *, sync: bool = False
    ) -> None:
        self._path, self._files, self._sync = path, files, sync
        self._decoder = decoder
        self._encoder = msgspec.msgpack.Encoder()
        self.damage: JournalDamage | None = None
        self.difference: str | None = None
        self._crc = crc32c.crc32c(_header())
        self._fd: int | None = None
        self._size = self._rewritten = _HEADER.size

    def read(self, known: JournalExtent | None = None) -> list[T]:
        """Read all entries, once, and set `damage` and `difference`; the file is not changed.

        Args:
            known: Extent that the journal had for certain.

        Raises:
            DataError: The file was written by a newer version.
            OSError: The file cannot be read.
        """
        data = self._files.read_whole(self._path)
        entries = self._entries_of(data)
        content = (data or b"")[_HEADER.size : self._size]
        self._crc = crc32c.crc32c(content, self._crc)
        if known is not None:
            self.difference = self._difference(content, known)
        return entries

    def _difference(self, content: bytes, known: JournalExtent) -> str | None:
        """Text on what is missing of an extent; None when nothing is.

        Args:
            content: All good entries.
            known: The extent.
        """
        if self._size < known.size_bytes:
            return f"ends at byte {self._size}, and {known.size_bytes} bytes were acknowledged"
        before = crc32c.crc32c(content[: known.size_bytes - _HEADER.size], crc32c.crc32c(_header()))
        if before != known.crc:
            return f"holds other changes in its first {known.size_bytes} bytes than acknowledged"
        return None

    def _entries_of(self, data: bytes | None) -> list[T]:
        if not data:
            if data is not None:
                self.damage = JournalDamage(
                    position=0, left_bytes=0, reason="the file is empty", is_torn=False
                )
            self._size = 0
            return []
        payloads, self._size, reason = _frames(data)
        if data[: _HEADER.size] != _header():
            return self._read_behind_bad_header(data, payloads)
        if reason is not None:
            is_torn = reason == _CUT_SHORT and not _has_frame(data, self._size + 1)
            self.damage = JournalDamage(
                position=self._size,
                left_bytes=len(data) - self._size,
                reason=reason,
                is_torn=is_torn,
            )
        return [self._decoded(payload) for payload in payloads]

    def _read_behind_bad_header(self, data: bytes, payloads: list[bytes]) -> list[T]:
        """The entries of a file with a damaged header; none if more than the header is damaged."""
        magic, version, _ = _HEADER.unpack(data[: _HEADER.size].ljust(_HEADER.size, b"\0"))
        if magic == _MAGIC and version > FORMAT_VERSION:
            raise DataError(
                f"{self._path} is of version {version}, and {FORMAT_VERSION} is the newest that "
                "is known: serve it with the coordinator-sim that wrote it"
            )
        if self._size != len(data) or not payloads:
            self._size, payloads = 0, []
        reason = f"no journal begins with {data[:8]!r}"
        self.damage = JournalDamage(
            position=self._size, left_bytes=len(data) - self._size, reason=reason, is_torn=False
        )
        return [self._decoded(payload) for payload in payloads]

    def begin(self) -> SegmentCut | None:
        """Make the file ready for appends; damage is cut off.

        Returns:
            What was cut off, and kept elsewhere unless it is a torn write; None if nothing was.

        Raises:
            OSError: The file cannot be repaired.
        """
        damage, cut = self.damage, None
        if damage is not None and damage.left_bytes:
            kept_as = ""
            if not damage.is_torn:
                data = self._files.read_whole(self._path) or b""
                kept_as = self._files.keep_aside(self._path, data[damage.position :])
            cut = SegmentCut(
                path=self._path,
                position=damage.position,
                cut_bytes=damage.left_bytes,
                reason=damage.reason,
                kept_as=kept_as,
            )
        if self._size < _HEADER.size:
            self._files.replace(self._path, _header())
            self._size = _HEADER.size
        fd = self._opened()
        if damage is not None:
            self._files.truncate(fd, self._size)
            self._files.write_all(fd, _header(), 0)
        self._rewritten = self._size
        return cut

    @property
    def extent(self) -> JournalExtent:
        """Length and checksum of the journal now."""
        return JournalExtent(max(self._size, _HEADER.size), self._crc)

    def _decoded(self, payload: bytes) -> T:
        try:
            return self._decoder.decode(payload)
        except UNREADABLE_JSON as error:
            raise DataError(
                f"{self._path}: an entry that this version does not know: {error}"
            ) from error

    def append(self, entry: T) -> None:
        """Append one entry.

        Raises:
            OSError: The entry could not be written, and is not in the journal.
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
        self._crc = crc32c.crc32c(frame, self._crc)

    def _forget_tail(self, fd: int) -> None:
        try:
            self._files.truncate(fd, self._size)
        except OSError:
            return  # The next append truncates before it writes; an opening cuts off bad frames.

    @property
    def is_grown(self) -> bool:
        """Whether the journal has grown so much since it was opened that a rewrite is due."""
        return self._size > max(_SMALL_BYTES, _GROWTH * self._rewritten)

    def rewrite(self, entries: Iterable[T]) -> None:
        """Replace all entries by others with the same effect, atomically.

        Raises:
            OSError: They could not be written; the journal is unchanged.
        """
        data = _header() + b"".join(_frame(self._encoder.encode(entry)) for entry in entries)
        self._files.replace(self._path, data, sync=True)
        self._size = self._rewritten = len(data)
        self._crc = crc32c.crc32c(data)
        self.close()  # The next append opens the new file.

    def flush(self) -> None:
        """Return when the journal is on disk."""
        self._files.sync(self._opened())

    def close(self) -> None:
        """Close the file."""
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
    """The bytes of the good entries, the position of their end, and what is wrong there."""
    payloads: list[bytes] = []
    position = _HEADER.size
    while position < len(data):
        start = position + _FRAME.size
        if start > len(data):
            return payloads, position, _CUT_SHORT
        length, crc = _FRAME.unpack_from(data, position)
        if not 0 < length <= _MAX_ENTRY_BYTES:
            return payloads, position, f"a frame of {length} bytes"
        payload = data[start : start + length]
        if len(payload) < length:
            return payloads, position, _CUT_SHORT
        if crc32c.crc32c(payload) != crc:
            return payloads, position, "a frame's CRC is wrong"
        payloads.append(payload)
        position = start + length
    return payloads, position, None


def _has_frame(data: bytes, position: int) -> bool:
    """Whether a good frame begins at a position or within 64 KiB after it."""
    for start in range(position, min(position + _RESYNC_BYTES, len(data) - _FRAME.size)):
        length, crc = _FRAME.unpack_from(data, start)
        if 0 < length <= _RESYNC_ENTRY_BYTES:
            payload = data[start + _FRAME.size : start + _FRAME.size + length]
            if len(payload) == length and crc32c.crc32c(payload) == crc:
                return True
    return False
