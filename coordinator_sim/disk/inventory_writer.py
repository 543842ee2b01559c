"""Writes the inventory of a log directory, while it is served and at a clean shutdown."""

from collections.abc import Iterable, Mapping

from coordinator_sim.disk.checkpoints import MetaProperties
from coordinator_sim.disk.file_store import FileStore
from coordinator_sim.disk.files import Files
from coordinator_sim.disk.folder_checks import FolderChecks, Place
from coordinator_sim.disk.inventory import (
    INVENTORY,
    Inventory,
    PartitionEntry,
    SegmentEntry,
    inventory_bytes,
    segment_entries,
)
from coordinator_sim.disk.journal import JournalExtent
from coordinator_sim.disk.losses import WHOLE_TOPICS
from coordinator_sim.disk.partition_folder import log_sizes

TopicIds = Mapping[Place, bytes | None]
"""The topic id of each partition."""
Stores = Mapping[Place, FileStore]
"""The stores of opened partitions."""


class InventoryWriter:
    """The file `log-inventory` of one directory.

    Args:
        path: Path of the directory.
        files: The file system.
        meta: Owner of the directory.
        checks: Known contents of partitions that were not opened.
    """

    def __init__(self, path: str, files: Files, meta: MetaProperties, checks: FolderChecks) -> None:
        self._path = path
        self._files = files
        self._meta = meta
        self._checks = checks

    def keep(self, topic_ids: TopicIds, grown: Stores, journal: JournalExtent | None) -> None:
        """Write the least contents of the partitions.

        Args:
            topic_ids: All partitions.
            grown: Partitions that have more records than was written before.
            journal: Extent of the metadata journal; None if it may shrink.

        Raises:
            OSError: The disk failed; the old inventory is unchanged.
        """
        known = self._checks.known
        for place, store in grown.items():
            segments = tuple(
                SegmentEntry(segment.base_offset, segment.size_bytes, 0)
                for segment in store.segments()
            )
            start, end = store.log_start_offset, store.next_offset
            known[place] = PartitionEntry(*place, topic_ids.get(place), start, end, segments)
        self._write(b"", (known[place] for place in topic_ids if place in known), journal)

    def seal(
        self, topic_ids: TopicIds, stores: Stores, journal: JournalExtent | None, mark: bytes
    ) -> None:
        """Write the exact contents of the partitions, after all writes have ended.

        Args:
            topic_ids: All partitions.
            stores: Stores of opened partitions, closed again.
            journal: Extent of the metadata journal.
            mark: The clean shutdown file, which is written next.

        Raises:
            OSError: A partition cannot be read, or the disk failed.
        """
        found = (self._exact(place, topic_ids[place], stores.get(place)) for place in topic_ids)
        self._write(mark, found, journal)

    def _exact(
        self, place: Place, topic_id: bytes | None, store: FileStore | None
    ) -> PartitionEntry:
        known = self._checks.known.get(place)
        if known is not None and place in self._checks.sealed:
            return known
        start, end = (known.log_start_offset, known.end_offset) if known is not None else (0, 0)
        if store is not None:
            start, end = store.log_start_offset, store.next_offset
        folder = f"{self._path}/{place[0]}-{place[1]}"
        is_whole = place[0] in WHOLE_TOPICS
        segments = segment_entries(folder, log_sizes(folder), self._files, whole=is_whole)
        return PartitionEntry(*place, topic_id, start, end, segments)

    def _write(
        self, mark: bytes, partitions: Iterable[PartitionEntry], journal: JournalExtent | None
    ) -> None:
        inventory = Inventory(
            meta=self._meta,
            mark=mark,
            journal=journal,
            partitions=tuple(partitions),
        )
        self._files.replace(
            f"{self._path}/{INVENTORY}", inventory_bytes(inventory), sync=bool(mark)
        )
