"""A broker's log directory: one owner at a time, a folder a partition, checkpoints, the journal.

A directory that was left in order opens without a look at its partitions; each is opened when it
is asked for. One that was not is recovered first, every partition, and what was cut is reported.

Source: kafka trunk, core/.../log/LogManager.scala: lockLogDirs, loadLogs, shutdown;
core/.../server/KafkaRaftServer.scala (meta.properties).
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.storage.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOCK,
    LOG_STARTS,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    MetaProperties,
    TopicPartitionOffsets,
    clean_shutdown_bytes,
    id_text,
    meta_properties_bytes,
    meta_properties_of,
    offsets_checkpoint_bytes,
    offsets_of_checkpoint,
    topic_id_of,
)
from coordinator_sim.storage.contract import SegmentSettings
from coordinator_sim.storage.file_store import FileStore, put_aside_name
from coordinator_sim.storage.files import OPEN_FILES, Files, OpenFiles
from coordinator_sim.storage.journal import Journal, JournalCut
from coordinator_sim.storage.partition_folder import (
    FolderRecovery,
    Opening,
    SegmentCut,
    open_store,
)

METADATA_JOURNAL: Final = "metadata.log"
METADATA_TOPIC: Final = "__cluster_metadata"
"""Of a KRaft broker, in a format of its own; none of ours."""

_PARTITION: Final = re.compile(r"([A-Za-z0-9._-]{1,249})-(\d{1,9})")
_LEFT: Final = "-delete"
_STRAY: Final = "-stray"

T = TypeVar("T")


class RecoveryReport(Struct, kw_only=True):
    """What the opening of a directory found and did.

    Attributes:
        path: Of the directory.
        was_clean: Whether who had it before left in order, or nobody had it.
        partition_count: Partitions that it holds.
        elapsed_ms: That the opening took, without the journal.
        scanned_bytes: Of batches whose CRCs were checked.
        cuts: What segments lost, by partition and offset.
        rebuilt: Segments whose indexes were missing or damaged.
        removed: Files and folders of work that had not been finished.
        strays: Folders of partitions that no topic knows, by their new names.
        journal_cut: What the journal lost; None when it was whole.
    """

    path: str
    was_clean: bool = True
    partition_count: int = 0
    elapsed_ms: int = 0
    scanned_bytes: int = 0
    cuts: list[SegmentCut] = []
    rebuilt: list[str] = []
    removed: list[str] = []
    strays: list[str] = []
    journal_cut: JournalCut | None = None

    def add(self, recovery: FolderRecovery) -> None:
        """Tell of one partition."""
        self.scanned_bytes += recovery.scanned_bytes
        self.cuts += recovery.cuts
        self.rebuilt += recovery.rebuilt
        self.removed += recovery.removed

    def lines(self) -> list[str]:
        """For a server's log; empty when there is nothing to tell."""
        found = []
        if not self.was_clean:
            found.append(
                f"{self.path}: not left in order; {self.partition_count} partitions, "
                f"{self.scanned_bytes} bytes checked in {self.elapsed_ms} ms"
            )
        found += [f"{path}: unfinished work, removed" for path in self.removed]
        found += [f"{path}: kept under this name, no topic knows it" for path in self.strays]
        found += [f"{path}: indexes made anew" for path in self.rebuilt]
        found += [
            f"{cut.path}: {cut.reason}; cut at byte {cut.position}, {cut.cut_bytes} bytes are gone"
            for cut in self.cuts
        ]
        if self.journal_cut is not None:
            cut = self.journal_cut
            found.append(
                f"{self.path}/{METADATA_JOURNAL}: {cut.reason}; cut at byte {cut.position}, "
                f"{cut.cut_bytes} bytes are gone"
            )
        return found


class DirectorySettings(Struct, frozen=True, kw_only=True):
    """How a directory is opened.

    Args:
        path: Of it; made if absent.
        node_id: For a new `meta.properties`.
        new_id: Draws 16 bytes, for the ids of a new directory.
        cluster_id: That it has to be of; None takes what it says.
        new_cluster_id: For a new directory; None draws one.
        open_file_limit: Segments open at once.
        sync_always: Whether every append is on the medium before it is answered.
        elapsed_ms: Milliseconds on any clock, for the report.
    """

    path: str
    node_id: int
    new_id: Callable[[], bytes]
    cluster_id: str | None = None
    new_cluster_id: str | None = None
    open_file_limit: int = OPEN_FILES
    sync_always: bool = False
    elapsed_ms: Callable[[], int] = lambda: 0


class LogDirectory:
    """An open directory, locked against others.

    Args:
        settings: How it is opened.
        files: The file system.

    Attributes:
        meta: Whose it is.
        partitions: (topic, partition) -> the topic's id, None where a folder does not say.
        report: What opening found and did.

    Raises:
        ConfigError: Another process has it, it is no directory, of another cluster, or damaged
            above its partitions.
        OSError: It cannot be read or mended.
    """

    def __init__(self, settings: DirectorySettings, files: Files | None = None) -> None:
        self._settings = settings
        self._path = settings.path.rstrip("/") or "/"
        self._files = files or Files()
        self._stores: dict[tuple[str, int], FileStore] = {}
        self._open_files = OpenFiles(self._files, settings.open_file_limit)
        self._waiting: dict[tuple[str, int], FileStore] = {}
        self._journals: list[Journal[object]] = []
        self.partitions: dict[tuple[str, int], bytes | None] = {}
        self.report = RecoveryReport(path=self._path)
        try:
            self._files.make_folder(self._path)
        except (FileExistsError, NotADirectoryError) as error:
            raise ConfigError(f"{self._path} is no directory; choose another --log-dir") from error
        self._lock = self._locked()
        try:
            self._load()
        except DataError as error:
            self._unlock()
            raise ConfigError(f"{self._path}: {error}") from error
        except BaseException:
            self._unlock()
            raise

    # -- opening ---------------------------------------------------------------------------------

    def _locked(self) -> int:
        """Take the directory, from ours by one lock and from Kafka's by another."""
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
        began_ms = self._settings.elapsed_ms()
        self.meta, is_new = self._read_meta()
        marker = f"{self._path}/{CLEAN_SHUTDOWN}"
        self.report.was_clean = is_new or Path(marker).exists()
        self._files.remove(marker)
        self._recovery_points = self._checkpoint(RECOVERY_POINTS)
        self._log_starts = self._checkpoint(LOG_STARTS)
        self._find_partitions()
        if not self.report.was_clean:
            for topic, partition in self.partitions:
                store, recovery = open_store(
                    self._opening(topic, partition, SegmentSettings(), is_clean=False),
                    self._open_files,
                )
                store.let_go()
                self.report.add(recovery)
        self.report.partition_count = len(self.partitions)
        self.report.elapsed_ms = self._settings.elapsed_ms() - began_ms

    def _read_meta(self) -> tuple[MetaProperties, bool]:
        wanted = self._settings.cluster_id
        data = self._files.read_whole(f"{self._path}/{META_PROPERTIES}")
        if data is None:
            meta = MetaProperties(
                cluster_id=wanted
                or self._settings.new_cluster_id
                or id_text(self._settings.new_id()),
                node_id=self._settings.node_id,
                directory_id=id_text(self._settings.new_id()),
            )
            self._write(META_PROPERTIES, meta_properties_bytes(meta))
            return meta, True
        meta = meta_properties_of(data.decode("utf-8", "replace"))
        if wanted is not None and meta.cluster_id != wanted:
            raise ConfigError(
                f"{self._path} is of cluster {meta.cluster_id}, not {wanted}; "
                "choose another --log-dir or no cluster id"
            )
        return meta, False

    def _checkpoint(self, name: str) -> TopicPartitionOffsets:
        data = self._files.read_whole(f"{self._path}/{name}")
        return {} if data is None else offsets_of_checkpoint(data.decode("ascii", "replace"))

    def _find_partitions(self) -> None:
        found: dict[tuple[str, int], bytes | None] = {}
        with os.scandir(self._path) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
        for name in sorted(names):
            match = _PARTITION.fullmatch(name)
            if name.endswith(_LEFT):
                self._files.remove_tree(f"{self._path}/{name}")
                self.report.removed.append(f"{self._path}/{name}")
            elif match is not None and match[1] != METADATA_TOPIC:
                found[match[1], int(match[2])] = self._topic_id_in(name)
        self.partitions = dict(sorted(found.items()))

    def _topic_id_in(self, name: str) -> bytes | None:
        data = self._files.read_whole(f"{self._path}/{name}/{PARTITION_METADATA}")
        return None if data is None else topic_id_of(data.decode("utf-8", "replace"))

    # -- partitions ------------------------------------------------------------------------------

    def store(
        self,
        topic: str,
        partition: int,
        topic_id: bytes | None = None,
        settings: SegmentSettings = SegmentSettings(),  # noqa: B008 - it cannot change
    ) -> FileStore:
        """The store of a partition, made if there is none; the same one while it is open.

        A folder of a topic that had the name before is put aside.

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
        opening = self._opening(topic, partition, settings, topic_id=topic_id)
        store, recovery = open_store(opening, self._open_files)
        self.report.add(recovery)
        store.sync_always = self._settings.sync_always
        store.on_delete = lambda: self.delete(topic, partition)
        store.on_log_start = lambda offset: self._keep_log_start(place, offset)
        store.on_waiting = lambda: self._waiting.setdefault(place, store)
        self._stores[place] = store
        self.partitions[place] = topic_id if topic_id is not None else known
        return store

    def delete(self, topic: str, partition: int) -> None:
        """Delete a partition with all that is in it; nothing happens when there is none.

        Raises:
            OSError: Something of it is still there.
        """
        place = (topic, partition)
        if place not in self.partitions:
            return
        self._waiting.pop(place, None)
        store = self._stores.pop(place, None)
        if store is not None:
            store.let_go()
        gone = self._renamed(topic, partition, _LEFT)
        self._files.remove_tree(gone)

    def put_aside(self, topic: str, partition: int) -> None:
        """Give the folder of a partition that no topic knows another name, as Kafka does.

        Source: LogManager (stray logs).
        """
        self.report.strays.append(self._renamed(topic, partition, _STRAY))

    def _renamed(self, topic: str, partition: int, suffix: str) -> str:
        place = (topic, partition)
        topic_id = self.partitions.pop(place, None) or b""
        self._recovery_points.pop(place, None)
        self._log_starts.pop(place, None)
        folder = f"{self._path}/{topic}-{partition}"
        new = put_aside_name(folder, f".{topic_id.hex()}{suffix}")
        self._files.remove_tree(new)
        self._files.rename(folder, new)
        return new

    def _opening(
        self,
        topic: str,
        partition: int,
        settings: SegmentSettings,
        *,
        topic_id: bytes | None = None,
        is_clean: bool = True,
    ) -> Opening:
        place = (topic, partition)
        return Opening(
            folder=f"{self._path}/{topic}-{partition}",
            settings=settings,
            topic_id=topic_id,
            log_start_offset=self._log_starts.get(place, 0),
            recovery_point=self._recovery_points.get(place, 0),
            is_clean=is_clean,
        )

    # -- the journal -----------------------------------------------------------------------------

    def journal(self, decoder: msgspec.msgpack.Decoder[T]) -> tuple[Journal[T], list[T]]:
        """The journal of metadata, and all that it holds.

        Args:
            decoder: Of its entries.

        Raises:
            ConfigError: The file is no journal, or one of a newer version.
            OSError: It cannot be read or mended.
        """
        path = f"{self._path}/{METADATA_JOURNAL}"
        journal = Journal(path, decoder, self._files, sync=self._settings.sync_always)
        try:
            entries = journal.read()
        except DataError as error:
            raise ConfigError(str(error)) from error
        self._journals.append(journal)  # type: ignore[arg-type] # flushed and closed alone
        self.report.journal_cut = journal.cut
        return journal, entries

    def wipe(self) -> None:
        """Delete every partition, and let every journal be empty."""
        for topic, partition in list(self.partitions):
            self.delete(topic, partition)
        for journal in self._journals:
            journal.rewrite(())

    # -- flushing and leaving --------------------------------------------------------------------

    def flush_due(self, now_ms: int) -> list[tuple[tuple[str, int], OSError]]:
        """Flush the partitions whose `flush.ms` is over.

        Args:
            now_ms: On the clock of appends.

        Returns:
            Those that the medium refused to flush, and why.
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

    def next_flush_ms(self) -> int | None:
        """When `flush_due` has something to do; None when nothing waits."""
        found = (store.flush_deadline_ms() for store in self._waiting.values())
        return min((due_ms for due_ms in found if due_ms is not None), default=None)

    def checkpoint(self) -> None:
        """Write how far partitions are on the medium, where they start and where they end.

        Raises:
            OSError: A checkpoint could not be written; the old one is there.
        """
        ends = self._checkpoint(HIGH_WATERMARKS)
        for place, store in self._stores.items():
            self._recovery_points[place] = store.flushed_offset
            ends[place] = store.next_offset
        ends = {place: end for place, end in ends.items() if place in self.partitions}
        self._write(RECOVERY_POINTS, offsets_checkpoint_bytes(self._recovery_points))
        self._write(LOG_STARTS, offsets_checkpoint_bytes(self._log_starts))
        self._write(HIGH_WATERMARKS, offsets_checkpoint_bytes(ends))

    def close(self, broker_epoch: int = -1) -> None:
        """Leave in order: flush everything and say so, for a quick opening.

        The logs were closed before, so that their producers' snapshots are there.

        Args:
            broker_epoch: Of the broker, for the mark.

        Raises:
            OSError: Something could not be written; then the mark is not there.
        """
        try:
            for store in self._stores.values():
                store.close()
            self.checkpoint()
            for journal in self._journals:
                journal.flush()
            self._write(CLEAN_SHUTDOWN, clean_shutdown_bytes(broker_epoch))
            self._files.sync_folder(self._path)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of everything as it is; the next opening recovers."""
        for store in self._stores.values():
            store.let_go()
        for journal in self._journals:
            journal.close()
        self._stores.clear()
        self._journals.clear()
        self._unlock()

    def _keep_log_start(self, place: tuple[str, int], offset: int) -> None:
        self._log_starts[place] = offset
        self._write(LOG_STARTS, offsets_checkpoint_bytes(self._log_starts))

    def _write(self, name: str, data: bytes) -> None:
        self._files.replace(f"{self._path}/{name}", data)
