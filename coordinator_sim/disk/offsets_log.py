"""The offsets log as a broker keeps it on disk: a folder per partition, with its segments.

Only `.log` files are read and written; a broker rebuilds the other files from them.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from coordinator_sim.errors import DataError, WireFormatError
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.log.format.log_batches import (
    DEFAULT_FORM,
    BatchForm,
    decode_batches,
    encode_log,
)
from coordinator_sim.log.format.segments import SEGMENT_BYTES, base_offset_of, roll_segments
from coordinator_sim.messages.records import LogBatch

_PARTITION: Final = re.compile(rf"{OFFSETS_TOPIC}-(\d{{1,9}})")


def partition_folder(partition: int) -> str:
    """The name of a partition's folder in `log.dirs`."""
    return f"{OFFSETS_TOPIC}-{partition}"


def write_log(
    directory: Path,
    batches: Iterable[LogBatch],
    form: BatchForm = DEFAULT_FORM,
    segment_bytes: int = SEGMENT_BYTES,
) -> list[Path]:
    """Write the segments of every partition that has batches.

    Segments of an older log in those folders are removed; other folders stay.

    Args:
        directory: Directory as in `log.dirs`; created if absent.
        batches: Batches; those of one partition are in order of offsets.
        form: Fields that the broker adds to each batch.
        segment_bytes: `segment.bytes` of the topic, in bytes.

    Returns:
        The files written, by partition and offset.
    """
    logs: dict[int, list[LogBatch]] = {}
    for batch in batches:
        logs.setdefault(batch.partition, []).append(batch)
    written = []
    for partition in sorted(logs):
        folder = directory / partition_folder(partition)
        folder.mkdir(parents=True, exist_ok=True)
        for old in _segments(folder):
            old.unlink()
        for name, data in roll_segments(encode_log(logs[partition], form), segment_bytes):
            (folder / name).write_bytes(data)
            written.append(folder / name)
    return written


def partition_of(name: str) -> int | None:
    """The partition that a folder is named for; None for another name."""
    match = _PARTITION.fullmatch(name)
    return None if match is None else int(match[1])


def partition_folders(directory: Path) -> dict[int, Path]:
    """The partition folders in a directory, in ascending order."""
    found = {}
    for path in directory.iterdir():
        partition = partition_of(path.name)
        if partition is not None and path.is_dir():
            found[partition] = path
    return dict(sorted(found.items()))


def read_log(directory: Path) -> Iterator[LogBatch]:
    """All batches of the partitions in a directory, one partition after another.

    Raises:
        DataError: A segment is damaged, or not of the offsets log; the message names it.
            Batches before the damage have been yielded.
    """
    for partition, folder in partition_folders(directory).items():
        for segment in _segments(folder):
            try:
                yield from decode_batches(segment.read_bytes(), partition)
            except WireFormatError as error:
                raise DataError(f"{segment}: {error}") from error


def segment_files(path: Path) -> list[Path]:
    """The segments of a path: the file itself, those in the folder, or those of its partitions."""
    if not path.is_dir():
        return [path]
    folders = partition_folders(path)
    return [found for folder in (folders.values() or (path,)) for found in _segments(folder)]


def _segments(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.log") if _is_segment(path.name))


def _is_segment(name: str) -> bool:
    try:
        base_offset_of(name)
    except ValueError:
        return False
    return True
