"""Writes the inventory of a log directory: while it is served, and when it is left in order."""

from collections.abc import Iterable, Mapping

from coordinator_sim.storage.checkpoints import MetaProperties
from coordinator_sim.storage.file_store import FileStore
from coordinator_sim.storage.files import Files
from coordinator_sim.storage.folder_checks import FolderChecks, Place
from coordinator_sim.storage.inventory import (
    INVENTORY,
    Inventory,
    PartitionEntry,
    SegmentEntry,
    inventory_bytes,
    segment_entries,
)
from coordinator_sim.storage.journal import JournalExtent
from coordinator_sim.storage.losses import WHOLE_TOPICS
from coordinator_sim.storage.partition_folder import log_sizes

TopicIds = Mapping[Place, bytes | None]
"""The topic id of each partition."""
Stores = Mapping[Place, FileStore]
"""The partitions that were opened."""


class InventoryWriter:
    """The file `log-inventory` of one directory.

    Args:
        path: Of the directory.
        files: The file system.
        meta: Whose it is.
        checks: What is known of partitions that nobody has opened.
    """

    def __init__(self, path: str, files: Files, meta: MetaProperties, checks: FolderChecks) -> None:
        self._path = path
        self._files = files
        self._meta = meta
        self._checks = checks

    def keep(self, topic_ids: TopicIds, grown: Stores, journal: JournalExtent | None) -> None:
        """Write what the partitions hold at least.

        Args:
            topic_ids: All partitions.
            grown: Those that hold more than was written before.
            journal: What the journal of metadata holds; None where it may come to hold less.

        Raises:
            OSError: The medium refuses it; the old inventory is there.
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
        """Write what the partitions hold exactly; nobody writes to them any more.

        Args:
            topic_ids: All partitions.
            stores: Those that were opened, closed again.
            journal: What the journal of metadata holds.
            mark: The mark of the clean shutdown, which is written next.

        Raises:
            OSError: A partition cannot be read, or the medium refuses the inventory.
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
