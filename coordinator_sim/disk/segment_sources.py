"""Segments of the offsets log on disk, as sources of columns: which files make one log."""

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from msgspec import Struct

from coordinator_sim.disk.offsets_log import partition_of, segment_files
from coordinator_sim.log.format.segments import base_offset_of

_NO_OFFSET: Final = -1


class SegmentFile:
    """The bytes of one segment file, read where they are asked for.

    Args:
        path: The file; it may grow or shrink while it is read.

    Raises:
        OSError: The file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self.size = self._file.seek(0, 2)
        """Number of bytes when it was opened."""

    def read(self, position: int, count: int, /) -> bytes:
        """Return `count` bytes of the segment from a position on; fewer only at its end."""
        self._file.seek(position)
        parts = []
        left = min(count, max(0, self.size - position))
        while left:
            part = self._file.read(left)
            if not part:
                break
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()


class SegmentLog(Struct, frozen=True, kw_only=True):
    """The segments of one partition's log, or one file that stands for itself.

    Args:
        name: Folder of the segments, or the file.
        partition: Partition of `__consumer_offsets` that the folder is named for; None unknown.
        files: The segments in the order of their offsets.
    """

    name: str
    partition: int | None
    files: tuple[Path, ...]


class FoundLogs(Struct, frozen=True, kw_only=True):
    """What is to be read, and what is not.

    Args:
        logs: By partition, then by name.
        copies: Folders of a partition of which another folder reaches further: other brokers'
            replicas, whose records would be counted twice.
    """

    logs: tuple[SegmentLog, ...]
    copies: tuple[str, ...]


def find_logs(paths: Iterable[Path]) -> FoundLogs:
    """The logs of files and folders; a file that is named twice is read once.

    Args:
        paths: Segments, folders of partitions, or directories that hold such folders.

    Raises:
        OSError: A path cannot be looked at.
    """
    files = {found.resolve(): found for path in paths for found in segment_files(path)}
    folders: dict[Path, list[Path]] = {}
    for file in files.values():
        # A file with a name of its own, such as a copy, is no part of its folder's log.
        folders.setdefault(file.parent if _offset_of(file) >= 0 else file, []).append(file)
    logs = [
        SegmentLog(
            name=str(folder),
            partition=partition_of(folder.name),
            files=tuple(sorted(found, key=_offset_of)),
        )
        for folder, found in folders.items()
    ]
    best: dict[int, SegmentLog] = {}
    for log in sorted(logs, key=_reach):
        if log.partition is not None:
            best[log.partition] = log
    copies = [
        log.name for log in logs if log.partition is not None and best[log.partition] is not log
    ]
    return FoundLogs(
        logs=tuple(sorted((log for log in logs if log.name not in copies), key=_order)),
        copies=tuple(sorted(copies)),
    )


def _offset_of(file: Path) -> int:
    try:
        return base_offset_of(file.name)
    except ValueError:
        return _NO_OFFSET


def _reach(log: SegmentLog) -> tuple[int, int, str]:
    last = log.files[-1]
    return _offset_of(last), last.stat().st_size, log.name


def _order(log: SegmentLog) -> tuple[int, str]:
    return (2**31 if log.partition is None else log.partition), log.name
