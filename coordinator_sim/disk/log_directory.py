"""A broker's log directory: one owner at a time, a folder per partition, checkpoints, the journal.

Every start compares the directory with its inventory. After a clean shutdown, partitions are opened
on first use; otherwise all are recovered first, and what was cut off is reported.

Source: kafka trunk, LogManager.scala (lockLogDirs, loadLogs, shutdown), KafkaRaftServer.scala.
"""

import errno
import os
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.disk.checkpoint_writer import CheckpointWriter
from coordinator_sim.disk.checkpoints import (
    CLEAN_SHUTDOWN,
    LOCK,
    META_PROPERTIES,
    MetaProperties,
    clean_shutdown_bytes,
    id_text,
    meta_properties_bytes,
)
from coordinator_sim.disk.file_store import FileStore
from coordinator_sim.disk.files import OPEN_FILES, Files, OpenFiles, free_name
from coordinator_sim.disk.folder_checks import FolderChecks, Place, find_folders
from coordinator_sim.disk.inventory import (
    INVENTORY,
    Inventory,
    PartitionEntry,
    SegmentEntry,
    inventory_bytes,
    segment_entries,
)
from coordinator_sim.disk.journal import Journal, JournalExtent
from coordinator_sim.disk.left_files import read_left_files
from coordinator_sim.disk.losses import WHOLE_TOPICS, Loss, refusal
from coordinator_sim.disk.partition_folder import log_sizes, open_store
from coordinator_sim.disk.recovery_report import RecoveryReport
from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.log.contract import SegmentSettings

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


METADATA_JOURNAL: Final = "metadata.log"
_LEFT: Final = "-delete"
_STRAY: Final = "-stray"

T = TypeVar("T")


class DirectorySettings(Struct, frozen=True, kw_only=True):
    """How a directory is opened.

    Args:
        path: Path of the directory; created if absent.
        node_id: Node id for a new `meta.properties`.
        new_id: Draws 16 bytes, for the ids of a new directory.
        node_ids: Node ids that the directory may have; None for any.
        cluster_id: Cluster id that the directory must have; None for any.
        new_cluster_id: Cluster id for a new directory; None draws one.
        open_file_limit: Number of segments open at once.
        sync_always: Whether every append is on disk before it is answered.
        accept_loss: Whether to go on without lost acknowledged data.
        elapsed_ms: Milliseconds on any clock, for the report.
    """

    path: str
    node_id: int
    new_id: Callable[[], bytes]
    node_ids: tuple[int, ...] | None = None
    cluster_id: str | None = None
    new_cluster_id: str | None = None
    open_file_limit: int = OPEN_FILES
    sync_always: bool = False
    accept_loss: bool = False
    elapsed_ms: Callable[[], int] = lambda: 0


class LogDirectory:
    """An open directory, locked against others.

    The owner reads journals first, and then calls `go_on`; until then another opening would find
    the same state.

    Args:
        settings: How the directory is opened.
        files: The file system.

    Attributes:
        meta: Owner of the directory.
        partitions: (topic, partition) -> the topic's id; None if a folder has none.
        report: Findings and repairs of the opening.
        on_report: Called with lines about partitions that are repaired when opened later.
        is_stale: Whether `keep_inventory` has changes to write.

    Raises:
        ConfigError: Another process has the directory, the path is no directory, or it is of
            another cluster or damaged above its partitions.
        OSError: The directory cannot be read or repaired.
    """

    def __init__(self, settings: DirectorySettings, files: Files | None = None) -> None:
        self._settings = settings
        self._path = settings.path.rstrip("/") or "/"
        self._files = files or Files()
        self._stores: dict[Place, FileStore] = {}
        self._open_files = OpenFiles(self._files, settings.open_file_limit)
        self._waiting: dict[Place, FileStore] = {}
        self._grown: dict[Place, FileStore] = {}
        self._journals: list[Journal[object]] = []
        self.partitions: dict[Place, bytes | None] = {}
        self.report = RecoveryReport(path=self._path)
        self.on_report: Callable[[list[str]], None] = lambda _lines: None
        self.is_stale = False
        try:
            self._files.make_folder(self._path)
        except (FileExistsError, NotADirectoryError) as error:
            raise ConfigError(f"{self._path} is no directory; choose another --log-dir") from error
        self._lock = self._locked()
        try:
            self._load()
        except BaseException:
            self._unlock()
            raise

    # -- opening ---------------------------------------------------------------------------------

    def _locked(self) -> int:
        """Lock the directory: one lock excludes our processes, the other Kafka's."""
        import fcntl  # Not there on Windows, where a cluster in memory can be served.

        fd = os.open(f"{self._path}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise ConfigError(
                f"{self._path} is in use by another process; stop it or choose another --log-dir"
            ) from error
        return fd

    def _unlock(self) -> None:
        os.close(self._lock)

    def _load(self) -> None:
        """Read the small files and find the partitions."""
        began_ms = self._settings.elapsed_ms()
        self._left = read_left_files(self._path, self._files)
        folders = find_folders(self._path, self._files)
        self.partitions = folders.partitions
        self.report.removed += folders.removed
        self.report.mended += self._left.mended
        has_journal = Path(f"{self._path}/{METADATA_JOURNAL}").exists()
        self._is_new = not (self._left.meta or self.partitions or has_journal)
        self.report.was_clean = self._is_new or self._left.has_mark
        self.meta = self._left.meta or self._new_meta()
        self._checks = FolderChecks(
            self._path,
            self._open_files,
            left=self._left,
            folders=folders,
            report=self.report,
            accepts_loss=self._settings.accept_loss,
        )
        self._checkpoints = CheckpointWriter(self._path, self._files, self._left)
        self._inventory = InventoryWriter(self._path, self._files, self.meta, self._checks)
        self.report.elapsed_ms = self._settings.elapsed_ms() - began_ms
        self._require_ids()
        if self._is_new:
            self._write(META_PROPERTIES, meta_properties_bytes(self.meta))

    def _require_ids(self) -> None:
        """Refuse a directory of another cluster or broker."""
        wanted, node_ids = self._settings.cluster_id, self._settings.node_ids
        if wanted is not None and self.meta.cluster_id != wanted:
            raise ConfigError(
                f"{self._path} is of cluster {self.meta.cluster_id}, not {wanted}; "
                "choose another --log-dir or no cluster id"
            )
        if node_ids is not None and self.meta.node_id not in node_ids:
            raise ConfigError(
                f"{self._path}/{META_PROPERTIES}: says node.id={self.meta.node_id}, and the "
                f"brokers here are {node_ids[0]} to {node_ids[-1]}: give --set "
                f"node.id={self.meta.node_id}"
            )

    def _new_meta(self) -> MetaProperties:
        settings = self._settings
        if not self._is_new:
            self.report.losses.append(
                Loss(
                    path=f"{self._path}/{META_PROPERTIES}",
                    finding="is gone, though the directory is in use",
                    meaning="the ids of its cluster and of its broker are lost, and others take "
                    "their place",
                )
            )
        return MetaProperties(
            cluster_id=settings.cluster_id or settings.new_cluster_id or id_text(settings.new_id()),
            node_id=settings.node_id,
            directory_id=id_text(settings.new_id()),
        )

    def go_on(
        self, expected: Mapping[Place, bytes] | None = None, gone: Container[bytes] = ()
    ) -> None:
        """Check the partitions, recover them if needed, and take the directory over.

        Args:
            expected: Existing partitions, with their topics' ids; None to trust the folders.
            gone: Ids of deleted topics, whose missing data is no loss.

        Raises:
            LossError: Acknowledged data is missing, and `accept_loss` is not set. Another opening
                finds the same.
            OSError: Something cannot be read or repaired.
        """
        began_ms = self._settings.elapsed_ms()
        self._checks.run(expected, gone)
        self.report.partition_count = len(self.partitions)
        self.report.elapsed_ms += self._settings.elapsed_ms() - began_ms
        if self.report.losses and not self._settings.accept_loss:
            raise refusal(self._path, self.report.losses)
        for place in self._checks.strays:
            self.put_aside(*place)
        if not self._left.has_meta:
            self._write(META_PROPERTIES, meta_properties_bytes(self.meta))
        if self._is_new or self.report.losses or not self._left.is_sealed:
            self.keep_inventory()
        self._files.remove(f"{self._path}/{CLEAN_SHUTDOWN}")

    # -- partitions ------------------------------------------------------------------------------

    def store(
        self,
        topic: str,
        partition: int,
        topic_id: bytes | None = None,
        settings: SegmentSettings = SegmentSettings(),  # noqa: B008 - it cannot change
    ) -> FileStore:
        """The store of a partition, created if absent; the same object while it is open.

        The folder of an earlier topic of that name is set aside.

        Raises:
            OSError: The folder cannot be read or made.
        """
        place = (topic, partition)
        store = self._stores.get(place)
        if store is not None and not store.is_closed:
            return store
        known = self.partitions.get(place)
        if known is not None and topic_id is not None and known != topic_id:
            self.put_aside(topic, partition)
        if place not in self.partitions:
            self._checkpoints.make_room(place, self.partitions)
        opening = replace(self._checks.opening(place, settings), topic_id=topic_id)
        store, recovery = open_store(opening, self._open_files)
        self.report.add(recovery)
        if recovery.losses and not opening.accepts_loss:
            store.let_go()
            loss = recovery.losses[0]
            raise OSError(errno.EIO, f"{loss.finding}: {loss.meaning}", loss.path)
        self.on_report([f"lost: {loss.line()}" for loss in recovery.losses] + recovery.lines())
        store.sync_always = self._settings.sync_always
        self._connect(store, place)
        self._stores[place] = store
        self._checks.sealed.pop(place, None)
        self.partitions[place] = topic_id if topic_id is not None else known
        return store

    def _connect(self, store: FileStore, place: Place) -> None:
        hooks = store.hooks
        hooks.delete = lambda: self.delete(*place)
        hooks.log_start = lambda offset: self._keep_log_start(place, offset)
        hooks.waiting = lambda: self._waiting.update({place: store})
        hooks.grown = lambda: self._grow(place, store)
        hooks.replace = lambda: self._segments_go(place[0])
        hooks.mended = lambda line: self.on_report([line])

    def delete(self, topic: str, partition: int) -> None:
        """Delete a partition with its data; nothing happens when there is none.

        Raises:
            OSError: Some of the data is still there.
        """
        place = (topic, partition)
        if place not in self.partitions:
            return
        self._waiting.pop(place, None)
        self._grown.pop(place, None)
        store = self._stores.pop(place, None)
        if store is not None:
            store.let_go()
        gone = self._renamed(topic, partition, _LEFT)
        self._files.remove_tree(gone)

    def put_aside(self, topic: str, partition: int) -> None:
        """Rename the folder of a partition that no topic knows, as Kafka does.

        Source: LogManager (stray logs).
        """
        self.report.strays.append(self._renamed(topic, partition, _STRAY))

    def _renamed(self, topic: str, partition: int, suffix: str) -> str:
        place = (topic, partition)
        topic_id = self.partitions.pop(place, None) or b""
        self._left.ends.pop(place, None)
        self._checks.forget(place)
        self.is_stale = True
        folder = f"{self._path}/{topic}-{partition}"
        new = free_name(folder, f".{topic_id.hex()}", suffix)
        self._files.rename(folder, new)
        return new

    # -- the journal -----------------------------------------------------------------------------

    def journal(self, decoder: msgspec.msgpack.Decoder[T]) -> tuple[Journal[T], list[T]]:
        """Open the metadata journal; return it with all its entries.

        Args:
            decoder: Decoder of the entries.

        Raises:
            ConfigError: The file is no journal, or of a newer version.
            OSError: The file cannot be read or repaired.
        """
        path = f"{self._path}/{METADATA_JOURNAL}"
        known = None if self._left.inventory is None else self._left.inventory.journal
        journal = Journal(path, decoder, self._files, sync=self._settings.sync_always)
        try:
            entries = journal.read(known)
        except DataError as error:
            raise ConfigError(str(error)) from error
        self._journals.append(journal)  # type: ignore[arg-type] # flushed and closed alone
        damage = journal.damage
        if damage is not None and damage.left_bytes == 0 and entries:
            self.report.mended.append(f"{path}: {damage.reason}; its beginning is written anew")
        elif damage is not None and (self.report.was_clean or not damage.is_torn):
            self.lose_metadata(f"is damaged at byte {damage.position} ({damage.reason})")
        elif known is not None and not Path(path).exists():
            self.lose_metadata("is gone")
        elif journal.difference is not None:
            self.lose_metadata(journal.difference)
        elif self._left.is_sealed and known not in (None, journal.extent):
            self.lose_metadata(f"goes on behind byte {known.size_bytes}, where it ended")
        if self._settings.accept_loss or not self.report.losses:
            cut = journal.begin()
            self.report.cuts += [] if cut is None else [cut]
        return journal, entries

    def lose_metadata(self, finding: str) -> None:
        """Report missing changes of metadata, before `go_on`."""
        self.report.losses.append(
            Loss(
                path=f"{self._path}/{METADATA_JOURNAL}",
                finding=finding,
                meaning="topics, settings, ACLs, users, quotas and producer ids from there on are "
                "lost; topics are found again by their folders",
            )
        )

    def rewrite(
        self, journal: Journal[T], entries: Iterable[T], *, keeps_old: bool = False
    ) -> None:
        """Replace the entries of a journal; the inventory forgets its extent first.

        Args:
            journal: A journal of this directory.
            entries: The new entries.
            keeps_old: Whether the old file is kept as `.damaged`.

        Raises:
            OSError: The disk failed; the journal is unchanged.
        """
        self._inventory.keep(self.partitions, {}, None)
        self.is_stale = True
        if keeps_old:
            path = f"{self._path}/{METADATA_JOURNAL}"
            self._files.keep_aside(path, self._files.read_whole(path))
        journal.rewrite(entries)

    def _extent(self) -> JournalExtent | None:
        return self._journals[0].extent if self._journals else None

    def wipe(self) -> None:
        """Delete every partition, and empty every journal."""
        self._inventory.keep({}, {}, None)
        for topic, partition in list(self.partitions):
            self.delete(topic, partition)
        for journal in self._journals:
            journal.rewrite(())

    # -- the inventory ---------------------------------------------------------------------------

    def keep_inventory(self) -> None:
        """Write the known contents to the inventory, for an opening after a crash.

        Raises:
            OSError: The disk failed; the old inventory is unchanged.
        """
        self._keep_inventory(self._grown)
        self.is_stale = False

    def _keep_inventory(self, grown: dict[Place, FileStore]) -> None:
        self._inventory.keep(self.partitions, grown, self._extent())
        for place, store in list(grown.items()):
            self._grown.pop(place, None)
            store.hooks.grown = lambda place=place, store=store: self._grow(place, store)

    def _grow(self, place: Place, store: FileStore) -> None:
        self._grown[place] = store
        self.is_stale = True

    def _segments_go(self, topic: str) -> None:
        """Remove a topic's segments from the inventory before the cleaner replaces them."""
        known = dict(self._checks.known)
        if not self._checks.forget_segments(topic):
            return
        try:
            self._keep_inventory({at: each for at, each in self._grown.items() if at[0] != topic})
        except OSError:
            self._checks.known.update(known)
            raise

    def flush_due(self, now_ms: int) -> list[tuple[tuple[str, int], OSError]]:
        """Flush the partitions whose `flush.ms` is over.

        Args:
            now_ms: Present on the clock of appends.

        Returns:
            The partitions that could not be flushed, each with its error.
        """
        failures = []
        for place, store in list(self._waiting.items()):
            due_ms = store.flush_deadline_ms()
            if due_ms is not None and due_ms > now_ms:
                continue
            del self._waiting[place]
            try:
                store.flush()
            except OSError as error:
                failures.append((place, error))
        return failures

    def flush_deadline_ms(self, topic: str, partition: int) -> int | None:
        """When the flush of one partition is due; None when it waits for none."""
        store = self._waiting.get((topic, partition))
        return None if store is None else store.flush_deadline_ms()

    def next_flush_ms(self) -> int | None:
        """When the next `flush_due` is due; None when nothing waits."""
        found = (store.flush_deadline_ms() for store in self._waiting.values())
        return min((due_ms for due_ms in found if due_ms is not None), default=None)

    def checkpoint(self) -> None:
        """Write the checkpoints: recovery points, log starts and ends of partitions.

        Raises:
            OSError: A checkpoint could not be written; the old one is unchanged.
        """
        self._checkpoints.write(self._checks.known.values(), self._stores, self.partitions)

    def close(self, broker_epoch: int = -1) -> None:
        """Shut down cleanly: flush everything, and write the clean shutdown file.

        The logs must be closed before, so that the snapshots of their producers exist.

        Args:
            broker_epoch: Epoch of the broker, for the clean shutdown file.

        Raises:
            OSError: Something could not be written; there is no clean shutdown file then.
        """
        try:
            for store in self._stores.values():
                store.close()
            self.checkpoint()
            for journal in self._journals:
                journal.flush()
            # Kafka brokers write no end of line, so the file tells who wrote it.
            mark = clean_shutdown_bytes(broker_epoch) + b"\n"
            self._inventory.seal(self.partitions, self._stores, self._extent(), mark)
            self._write(CLEAN_SHUTDOWN, mark)
            self._files.sync_folder(self._path)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close all files without flushing; the next opening recovers."""
        for store in self._stores.values():
            store.let_go()
        for journal in self._journals:
            journal.close()
        self._stores.clear()
        self._journals.clear()
        self._unlock()

    def _keep_log_start(self, place: Place, offset: int) -> None:
        """Write a log start to the inventory, which has a checksum, then to the checkpoint."""
        self._left.log_starts[place] = offset
        self._keep_inventory({place: self._stores[place]})
        self._checkpoints.keep_log_start(place, offset)

    def _write(self, name: str, data: bytes) -> None:
        self._files.replace(f"{self._path}/{name}", data)
