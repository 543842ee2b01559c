"""Writes the checkpoints of a log directory: recovery points, log starts and high watermarks.

Checkpoints name partitions only by topic and number, so a deleted partition must be removed from
them before another one gets its name.
"""

from collections.abc import Container, Iterable, Mapping

from coordinator_sim.disk import checkpoints
from coordinator_sim.disk.file_store import FileStore
from coordinator_sim.disk.files import Files
from coordinator_sim.disk.inventory import PartitionEntry
from coordinator_sim.disk.left_files import LeftFiles

Place = tuple[str, int]
"""Topic and partition."""


class CheckpointWriter:
    """The three checkpoints of one directory.

    Args:
        path: Path of the directory.
        files: The file system.
        left: Current contents of the checkpoints; kept up to date.
    """

    def __init__(self, path: str, files: Files, left: LeftFiles) -> None:
        self._path = path
        self._files = files
        self._left = left

    def keep_log_start(self, place: Place, offset: int) -> None:
        """Write a new log start of a partition.

        Raises:
            OSError: The checkpoint could not be written; the old one is unchanged.
        """
        self._left.log_starts[place] = offset
        self._write(checkpoints.LOG_STARTS, self._left.log_starts)

    def make_room(self, place: Place, there: Container[Place]) -> None:
        """Remove a partition that is about to be created, and all deleted ones.

        Deleted ones are removed all at once, so recreating a topic with many partitions costs one
        write.

        Args:
            place: The new partition, which has no folder yet.
            there: The partitions that have a folder.

        Raises:
            OSError: A checkpoint could not be written; the old one is unchanged.
        """
        left = self._left
        for name, offsets in (
            (checkpoints.LOG_STARTS, left.log_starts),
            (checkpoints.RECOVERY_POINTS, left.recovery_points),
        ):
            if place in offsets:
                for gone in [each for each in offsets if each not in there]:
                    del offsets[gone]
                self._write(name, offsets)

    def write(
        self,
        known: Iterable[PartitionEntry],
        stores: Mapping[Place, FileStore],
        there: Container[Place],
    ) -> None:
        """Write all checkpoints.

        Args:
            known: Partitions that may not have been opened.
            stores: Stores of the opened partitions, flushed.
            there: The partitions that have a folder.

        Raises:
            OSError: A checkpoint could not be written; the old one is unchanged.
        """
        left = self._left
        for entry in known:
            left.ends[entry.topic, entry.partition] = entry.end_offset
        for place, store in stores.items():
            left.recovery_points[place] = store.flushed_offset
            left.ends[place] = store.next_offset
        for name, offsets in (
            (checkpoints.RECOVERY_POINTS, left.recovery_points),
            (checkpoints.LOG_STARTS, left.log_starts),
            (checkpoints.HIGH_WATERMARKS, left.ends),
        ):
            self._write(name, {place: at for place, at in offsets.items() if place in there})

    def _write(self, name: str, offsets: checkpoints.TopicPartitionOffsets) -> None:
        self._files.replace(f"{self._path}/{name}", checkpoints.offsets_checkpoint_bytes(offsets))
