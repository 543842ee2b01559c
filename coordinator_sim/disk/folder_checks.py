"""Checks of a log directory's folders at the opening: found contents against expected contents.

Damage that Kafka repairs by itself is repaired and reported; missing acknowledged data becomes a
`Loss`. A folder with losses stays unchanged unless they are accepted.
"""

import os
import re
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.disk.checkpoints import (
    LOG_STARTS,
    PARTITION_METADATA,
    id_text,
    partition_metadata_bytes,
    topic_id_of,
)
from coordinator_sim.disk.files import Files, OpenFiles
from coordinator_sim.disk.inventory import PartitionEntry, SegmentEntry, segment_entries
from coordinator_sim.disk.left_files import LeftFiles
from coordinator_sim.disk.losses import WHOLE_TOPICS, Loss, meaning_of
from coordinator_sim.disk.partition_folder import Opening, log_sizes, open_store
from coordinator_sim.disk.recovery_report import RecoveryReport
from coordinator_sim.errors import DataError
from coordinator_sim.log.contract import SegmentSettings

METADATA_TOPIC: Final = "__cluster_metadata"
"""The metadata topic of KRaft brokers, in its own format; never served."""
_CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
_PARTITION: Final = re.compile(r"([A-Za-z0-9._-]{1,249})-(0|[1-9]\d{0,8})")
_DELETED: Final = re.compile(r"\S+\.([0-9a-f]{32})?(\.\d+)?-delete")
"""Folders of deleted partitions. Other names are not ours. Source: LocalLog.DeleteDirPattern."""

Place = tuple[str, int]
"""Topic and partition."""


class Folders(Struct, kw_only=True):
    """The folders of a directory.

    Attributes:
        partitions: Place -> the topic's id; None if the folder has none.
        bad_ids: Place -> problem of its `partition.metadata`.
        removed: Folders of unfinished deletions.
        is_brokers: Whether a Kafka broker has served the directory too.
    """

    partitions: dict[Place, bytes | None]
    bad_ids: dict[Place, str] = {}
    removed: list[str] = []
    is_brokers: bool = False


def find_folders(path: str, files: Files) -> Folders:
    """Find the partitions of a directory, and finish deletions.

    Raises:
        OSError: A folder cannot be read or removed.
    """
    found: dict[Place, bytes | None] = {}
    folders = Folders(partitions=found)
    with os.scandir(path) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir())
    folders.is_brokers = (
        f"{METADATA_TOPIC}-0" in names or Path(f"{path}/{_CLEANER_OFFSETS}").exists()
    )
    for name in names:
        match = _PARTITION.fullmatch(name)
        if _DELETED.fullmatch(name):
            files.remove_tree(f"{path}/{name}")
            folders.removed.append(f"{path}/{name}")
        elif match is not None and match[1] != METADATA_TOPIC:
            place = match[1], int(match[2])
            data = files.read_whole(f"{path}/{name}/{PARTITION_METADATA}")
            found[place] = None
            try:
                found[place] = (
                    None if data is None else topic_id_of(data.decode("utf-8", "replace"))
                )
            except DataError as error:
                folders.bad_ids[place] = str(error)
    folders.partitions = dict(sorted(found.items()))
    return folders


class FolderChecks:
    """The comparison of folders with their expected contents.

    Args:
        path: Path of the directory.
        open_files: Cache of open descriptors.
        left: The files above the folders.
        folders: The folders.
        report: Collects findings and repairs.
        accepts_loss: Whether to go on without lost data.

    Attributes:
        known: Least contents of each partition.
        sealed: Partitions of which `known` has the exact contents.
        strays: Partitions to set aside, because no topic knows them.
    """

    def __init__(
        self,
        path: str,
        open_files: OpenFiles,
        *,
        left: LeftFiles,
        folders: Folders,
        report: RecoveryReport,
        accepts_loss: bool,
    ) -> None:
        self._path = path
        self._open_files = open_files
        self._left = left
        self._folders = folders
        self._report = report
        self._accepts_loss = accepts_loss
        self._entries = {(entry.topic, entry.partition): entry for entry in left.entries()}
        self.known: dict[Place, PartitionEntry] = {}
        self.sealed: dict[Place, None] = {}
        self.strays: list[Place] = []

    def run(self, expected: Mapping[Place, bytes] | None, gone: Container[bytes]) -> None:
        """Check all folders.

        Args:
            expected: Existing partitions, with their topics' ids; None to trust the folders.
            gone: Ids of topics that were deleted.

        Raises:
            OSError: A folder cannot be read or repaired.
        """
        found = self._folders.partitions
        for place, topic_id in found.items():
            if expected is not None and place not in expected:
                self._unknown(place, topic_id, gone)
                continue
            wanted = topic_id if expected is None else expected[place]
            if topic_id in (None, wanted) or self._is_same(place, topic_id, wanted, gone):
                self._check(place, wanted)
        for place in self._entries if expected is None else expected:
            if place not in found:
                self._missing(place, None if expected is None else expected[place])

    def opening(self, place: Place, settings: SegmentSettings | None = None) -> Opening:
        """The parameters that open a checked partition, with the facts known about it."""
        return Opening(
            folder=self._folder(place),
            settings=settings or SegmentSettings(),
            log_start_offset=self._left.log_starts.get(place, 0),
            recovery_point=self._left.recovery_points.get(place, 0),
            place=place,
            known=self.known.get(place),
            is_exact=place in self.sealed,
            accepts_loss=self._accepts_loss,
        )

    def forget(self, place: Place) -> None:
        """Forget a partition that is deleted, or whose name another one will get."""
        self.known.pop(place, None)
        self.sealed.pop(place, None)

    def forget_segments(self, topic: str) -> bool:
        """Forget the segments of a topic, but not the ends; return whether any were known."""
        places = [place for place, each in self.known.items() if place[0] == topic]
        places = [place for place in places if self.known[place].segments]
        for place in places:
            self.known[place] = replace(self.known[place], segments=())
            self.sealed.pop(place, None)
        return bool(places)

    # -- a folder that belongs to a topic --------------------------------------------------------

    def _check(self, place: Place, topic_id: bytes | None) -> None:
        """Compare a folder with the inventory, or recover it if the inventory is not exact."""
        entry = self._entry(place, topic_id)
        self._mend_id(place, topic_id)
        if self._left.is_sealed and entry is not None:
            if self._is_as_left(place, entry):
                self.known[place] = entry
                self.sealed[place] = None
            else:
                self._recover_left(place, entry)
            return
        if entry is not None and not self._left.has_mark and not self._folders.is_brokers:
            self._mend_start(place, entry.log_start_offset)
        opening = replace(
            self.opening(place),
            known=self._floor(place, topic_id, entry),
            is_clean=self._left.has_mark,
            scans_all=place[0] in WHOLE_TOPICS,
        )
        self._recover(opening, topic_id)

    def _mend_start(self, place: Place, start: int) -> None:
        """Take the log start from the inventory, where each change is written first."""
        first = min(log_sizes(self._folder(place)), default=0)
        if max(self._left.log_starts.get(place, 0), first) == max(start, first):
            return
        self._left.log_starts[place] = start
        line = f"{self._path}/{LOG_STARTS}: other offsets than the inventory; made anew"
        if line not in self._report.mended:
            self._report.mended.append(line)

    def _is_as_left(self, place: Place, entry: PartitionEntry) -> bool:
        folder, files = self._folder(place), self._open_files.files
        sizes = log_sizes(folder)
        known = {segment.base_offset for segment in entry.segments}
        for base in [base for base in sizes if base not in known]:
            path = f"{folder}/{base:020d}.log"
            self._report.mended.append(
                f"{path}: was not there when the directory was left; kept as "
                f"{files.keep_aside(path)}"
            )
            del sizes[base]
        is_whole = place[0] in WHOLE_TOPICS
        return segment_entries(folder, sizes, files, whole=is_whole) == entry.segments

    def _recover_left(self, place: Place, entry: PartitionEntry) -> None:
        """Find the damage of a folder that differs from its sealed inventory."""
        lost, told = len(self._report.losses), len(self._report.cuts)
        opening = replace(self.opening(place), known=entry, is_exact=True, scans_all=True)
        self._recover(opening, entry.topic_id)
        if len(self._report.losses) == lost and len(self._report.cuts) == told:
            self._report.losses.append(
                Loss(
                    path=self._folder(place),
                    finding="holds other bytes than it was left with, though every batch is good",
                    meaning=meaning_of(*place, entry.log_start_offset, entry.end_offset)
                    + " or others",
                )
            )

    def _recover(self, opening: Opening, topic_id: bytes | None) -> None:
        store, recovery = open_store(opening, self._open_files)
        self._report.add(recovery)
        if opening.accepts_loss or not recovery.losses:
            topic, partition = opening.place
            sizes = log_sizes(opening.folder)
            self.known[opening.place] = PartitionEntry(
                topic,
                partition,
                topic_id,
                store.log_start_offset,
                store.next_offset,
                tuple(SegmentEntry(base, size, 0) for base, size in sizes.items()),
            )
        store.let_go()

    def _floor(
        self, place: Place, topic_id: bytes | None, entry: PartitionEntry | None
    ) -> PartitionEntry:
        """The least contents of a partition, by the inventory and the checkpoints.

        A Kafka broker cleans and deletes segments without updating the inventory. After its clean
        shutdown the recovery points are the logs' ends. Source: LogManager.shutdown.
        """
        floor = entry or PartitionEntry(*place, topic_id, 0, 0)
        if self._folders.is_brokers or self._left.has_mark:
            floor = replace(floor, segments=())
        if self._left.has_mark:
            point = self._left.recovery_points.get(place, 0)
            floor = replace(floor, end_offset=max(floor.end_offset, point))
        return floor

    def _entry(self, place: Place, topic_id: bytes | None) -> PartitionEntry | None:
        """The inventory's entry of a partition, unless it has another topic id."""
        entry = self._entries.get(place)
        if entry is None or (topic_id or entry.topic_id) != (entry.topic_id or topic_id):
            return None
        return entry

    # -- names and ids ---------------------------------------------------------------------------

    def _is_same(
        self, place: Place, topic_id: bytes | None, wanted: bytes | None, gone: Container[bytes]
    ) -> bool:
        """Whether a folder with another topic id is the expected one nevertheless."""
        entry = self._entry(place, wanted)
        if self._left.is_sealed and entry is not None and self._is_as_left(place, entry):
            self._folders.bad_ids[place] = f"says topic id {id_text(topic_id or b'')}"
            return True
        self.strays.append(place)
        has_data = any(log_sizes(self._folder(place)).values())
        if (has_data or entry is not None) and topic_id not in gone:
            finding = (
                f"says topic id {id_text(topic_id or b'')}, and metadata.log "
                f"{id_text(wanted or b'')}"
            )
            path = f"{self._folder(place)}/{PARTITION_METADATA}"
            self._lose(place, path, finding, entry)
        return False

    def _mend_id(self, place: Place, topic_id: bytes | None) -> None:
        problem = self._folders.bad_ids.get(place)
        path = f"{self._folder(place)}/{PARTITION_METADATA}"
        if problem is None and self._left.is_sealed and self._folders.partitions[place] is None:
            problem = "missing"
        if problem is None or topic_id is None:
            return
        self._open_files.files.replace(path, partition_metadata_bytes(topic_id))
        self._folders.partitions[place] = topic_id
        self._report.mended.append(f"{path}: {problem}; made anew with {id_text(topic_id)}")

    def _unknown(self, place: Place, topic_id: bytes | None, gone: Container[bytes]) -> None:
        """Set a folder aside that no topic knows; its data may be a loss."""
        self.strays.append(place)
        entry = self._entry(place, topic_id)
        is_ours = entry is not None or not self._left.is_sealed
        has_data = any(log_sizes(self._folder(place)).values())
        if has_data and is_ours and topic_id is not None and topic_id not in gone:
            finding = "is of a topic that metadata.log does not know"
            self._lose(place, self._folder(place), finding, entry)

    def _missing(self, place: Place, topic_id: bytes | None) -> None:
        entry = self._entry(place, topic_id)
        folder = self._folder(place)
        is_file = Path(folder).exists()
        had_data = entry is not None and entry.end_offset > entry.log_start_offset
        if is_file or had_data:
            finding = "is a file, and a folder belongs there" if is_file else "is gone"
            self._lose(place, folder, finding, entry)
        if is_file and self._accepts_loss:
            self._open_files.files.keep_aside(folder)

    def _lose(self, place: Place, path: str, finding: str, entry: PartitionEntry | None) -> None:
        first, end = (entry.log_start_offset, entry.end_offset) if entry else (0, 0)
        meaning = meaning_of(*place, first, end)
        self._report.losses.append(Loss(path=path, finding=finding, meaning=meaning))

    def _folder(self, place: Place) -> str:
        return f"{self._path}/{place[0]}-{place[1]}"
