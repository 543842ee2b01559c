"""The file `log-inventory`: the contents of a log directory when last written, for the next start.

Kafka's own files tell how far partitions are flushed, not which segments exist. The inventory
lists each partition with its topic id, start, end and segments. It is rewritten at a clean
shutdown, and every few seconds while the directory is served; Kafka's brokers ignore it.

Entries written while the directory is served are lower bounds: a log only grows at its end, and
`FileStore.replace` is announced in advance. `folder_checks` judges differences.
"""

from collections.abc import Mapping
from typing import Final

import crc32c
import msgspec
from msgspec import Struct

from coordinator_sim.disk.checkpoints import MetaProperties
from coordinator_sim.disk.files import Files
from coordinator_sim.disk.journal import JournalExtent
from coordinator_sim.errors import UNREADABLE_JSON, DataError

INVENTORY: Final = "log-inventory"
_MAGIC: Final = b"CSMI"
_CRC_BYTES: Final = 4
_CHUNK_BYTES: Final = 1 << 20
TAIL_BYTES: Final = 4096
"""Bytes at the end of a segment that are compared at a start: Kafka reads about as many there, from
the last index entry on (`index.interval.bytes`)."""


class SegmentEntry(Struct, frozen=True, array_like=True, gc=False):
    """One `.log` file.

    Args:
        base_offset: Base offset, which names the file.
        size_bytes: Length of the file.
        crc: CRC-32C of the bytes that `segment_entries` read.
    """

    base_offset: int
    size_bytes: int
    crc: int


class PartitionEntry(Struct, frozen=True, array_like=True):
    """One partition.

    Args:
        topic: Name of the topic.
        partition: Number of the partition.
        topic_id: 16 bytes; None if its folder has none.
        log_start_offset: First offset that can be read.
        end_offset: Offset after the last record.
        segments: Segments in order of offsets; empty if unknown.
    """

    topic: str
    partition: int
    topic_id: bytes | None
    log_start_offset: int
    end_offset: int
    segments: tuple[SegmentEntry, ...] = ()


class Inventory(Struct, frozen=True, kw_only=True):
    """The contents of a directory.

    Args:
        meta: The content of `meta.properties`.
        mark: Bytes of the clean shutdown file that was written with this inventory; empty while
            the directory is served.
        journal: Least extent of the metadata journal; None if unknown.
        partitions: All partitions, in any order.
    """

    meta: MetaProperties
    mark: bytes = b""
    journal: JournalExtent | None = None
    partitions: tuple[PartitionEntry, ...] = ()


def inventory_bytes(inventory: Inventory) -> bytes:
    """The bytes of the file: four letters, the CRC-32C of what follows, and MessagePack."""
    body = msgspec.msgpack.encode(inventory)
    return _MAGIC + crc32c.crc32c(body).to_bytes(_CRC_BYTES, "big") + body


def inventory_of(data: bytes) -> Inventory:
    """Parse an inventory.

    Raises:
        DataError: The bytes are damaged, or were written by a version with another format.
    """
    head = len(_MAGIC) + _CRC_BYTES
    body = data[head:]
    if (
        data[: len(_MAGIC)] != _MAGIC
        or crc32c.crc32c(body).to_bytes(_CRC_BYTES, "big") != (data[len(_MAGIC) : head])
    ):
        raise DataError("damaged")
    try:
        return msgspec.msgpack.decode(body, type=Inventory)
    except UNREADABLE_JSON as error:
        raise DataError(f"written by another version: {error}") from error


def segment_entries(
    folder: str, sizes: Mapping[int, int], files: Files, *, whole: bool
) -> tuple[SegmentEntry, ...]:
    """The entries of a folder's segments as they are on disk.

    Args:
        folder: Folder of the partition.
        sizes: Base offset -> length of the `.log` file, in order.
        files: The file system.
        whole: Whether the CRC covers the whole file, else only its last `TAIL_BYTES`.

    Raises:
        OSError: A file cannot be read.
    """
    return tuple(
        SegmentEntry(base, size, _crc(f"{folder}/{base:020d}.log", size, files, whole=whole))
        for base, size in sizes.items()
    )


def _crc(path: str, size: int, files: Files, *, whole: bool) -> int:
    if not size:
        return 0
    position = 0 if whole else max(size - TAIL_BYTES, 0)
    crc = 0
    fd = files.open(path)
    try:
        while data := files.read(fd, min(_CHUNK_BYTES, size - position), position):
            crc = crc32c.crc32c(data, crc)
            position += len(data)
    finally:
        files.close(fd)
    return crc
