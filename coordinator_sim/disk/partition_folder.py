"""Opening of a partition's folder: undo unfinished work, cut off damage, and report both.

Source: kafka trunk, storage/.../internals/log/LogLoader.java, in its order.
"""

import errno
import os
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from msgspec import Struct

from coordinator_sim.disk.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    epochs_of_checkpoint,
)
from coordinator_sim.disk.file_store import CLEANED, SIDE_FILES, SWAP, FileStore
from coordinator_sim.disk.files import Files, OpenFiles
from coordinator_sim.disk.inventory import PartitionEntry
from coordinator_sim.disk.losses import Loss, meaning_of
from coordinator_sim.disk.recovery_report import FolderRecovery, SegmentCut
from coordinator_sim.disk.segment_file import SegmentFile
from coordinator_sim.errors import DataError
from coordinator_sim.log.contract import AbortedTransaction, EpochStart, SegmentSettings
from coordinator_sim.log.format.segments import Damage
from coordinator_sim.log.indexes import aborted_from_bytes

_DELETED: Final = ".deleted"
_FILE: Final = re.compile(
    r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.cleaned|\.swap|\.deleted)?"
)
_NAMED: Final = (LEADER_EPOCHS, PARTITION_METADATA)
_TEMPORARY: Final = ".tmp"

_LOG: Final = (".log", "")

_Found = dict[tuple[int, str, str], int]
"""(offset, kind, `.cleaned` or `.swap` or empty) -> size in bytes, in order of names."""


class Opening(Struct, frozen=True, kw_only=True):
    """How a folder is opened.

    Args:
        folder: Folder of the partition.
        settings: Settings of its segments.
        topic_id: Topic id for a new folder.
        log_start_offset: Log start in the checkpoint; 0 without one.
        recovery_point: Offset before which everything is on disk.
        is_clean: Whether the last shutdown was clean: then only indexes are checked, and no write
            can be torn.
        scans_all: Whether every batch is checked, regardless of `recovery_point`.
        place: Topic and partition, for messages.
        known: Least contents of the partition; None if unknown.
        is_exact: Whether `known` is exact.
        accepts_loss: Whether to go on without lost acknowledged batches; else a folder with losses
            stays unchanged, and its store cannot be used.
    """

    folder: str
    settings: SegmentSettings = SegmentSettings()
    topic_id: bytes | None = None
    log_start_offset: int = 0
    recovery_point: int = 0
    is_clean: bool = True
    scans_all: bool = False
    place: tuple[str, int] = ("", 0)
    known: PartitionEntry | None = None
    is_exact: bool = False
    accepts_loss: bool = True


def open_store(opening: Opening, open_files: OpenFiles) -> tuple[FileStore, FolderRecovery]:
    """Open the store of a folder, and recover it if needed.

    Returns:
        The store, which is empty and must not be used if the recovery has losses that are not
        accepted; and the recovery.

    Raises:
        OSError: The folder or a file in it cannot be read or repaired.
    """
    recovery = FolderRecovery()
    store = FileStore(opening.folder, open_files, opening.settings, topic_id=opening.topic_id)
    store.log_start_offset = opening.log_start_offset
    files = open_files.files
    found = _finish_swaps(opening.folder, _files_in(opening.folder, files), files, recovery)
    segments, scanned_from = _Loading(opening, open_files, recovery).segments(found)
    if recovery.losses and not opening.accepts_loss:
        return store, recovery
    found = _without_orphans(opening.folder, _files_in(opening.folder, files), files, recovery)
    snapshots = [base for base, kind, _ in found if kind == ".snapshot"]
    if scanned_from is not None:
        snapshots = _trusted(opening.folder, snapshots, scanned_from, open_files.files)
    epochs = _epochs_in(opening.folder, open_files.files)
    store.learns_epochs = epochs is None and bool(segments)
    store.expects_snapshot = opening.is_clean and opening.is_exact and scanned_from is None
    epochs = epochs if segments or epochs else []
    store.adopt(
        segments,
        aborted=_aborted_in(opening.folder, found, scanned_from, open_files.files),
        epochs=epochs or (),
        snapshots=snapshots if epochs is not None else (),
    )
    store.flushed_offset = min(opening.recovery_point, store.next_offset)
    for segment in segments:
        segment.is_unsynced = segment.next_offset > opening.recovery_point
    return store, recovery


def log_sizes(folder: str) -> dict[int, int]:
    """Base offset -> length of each `.log` file of a folder, by offset.

    Raises:
        OSError: The folder cannot be read, or another folder has the name of one of its files.
    """
    found: dict[int, int] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            match = _FILE.fullmatch(entry.name)
            if match is not None or entry.name in _NAMED:
                _require_file(entry)
            if match is not None and match[2] == ".log" and not match[3]:
                found[int(match[1])] = entry.stat().st_size
    return dict(sorted(found.items()))


def _require_file(entry: os.DirEntry[str]) -> None:
    if entry.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder, and a file belongs there", entry.path)


def _files_in(folder: str, files: Files) -> _Found:
    """The segments' files; temporary files of an interrupted write are removed."""
    found: _Found = {}
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            name = entry.name.removesuffix(_TEMPORARY)
            match = _FILE.fullmatch(name)
            if match is None and name not in _NAMED:
                continue
            _require_file(entry)
            if name != entry.name:
                files.remove(entry.path)
            elif match is not None:
                found[int(match[1]), match[2], match[3] or ""] = entry.stat().st_size
    return found


def _path(folder: str, base: int, kind: str, state: str = "") -> str:
    return f"{folder}/{base:020d}{kind}{state}"


def _finish_swaps(folder: str, found: _Found, files: Files, recovery: FolderRecovery) -> _Found:
    """Undo a cleaning whose `.swap` files are incomplete; finish one whose are complete.

    Source: LogLoader.load, removeTempFilesAndCollectSwapFiles.
    """
    unfinished = [name for name in found if name[2] in {CLEANED, _DELETED}]
    cleaned = [base for base, _, state in unfinished if state == CLEANED]
    if cleaned:
        unfinished += [name for name in found if name[2] == SWAP and name[0] >= min(cleaned)]
    for base, kind, state in unfinished:
        _remove(folder, (base, kind, state), files, recovery)
    swaps = [name for name in found if name[2] == SWAP and name not in unfinished]
    for base, kind, _ in swaps:
        if kind == ".log":
            _drop_replaced(folder, found, base, files)
    for base, kind, _ in swaps:
        files.rename(_path(folder, base, kind, SWAP), _path(folder, base, kind))
    return _files_in(folder, files) if unfinished or swaps else found


def _drop_replaced(folder: str, found: _Found, base: int, files: Files) -> None:
    """Remove the segments that a swapped one replaces."""
    segment = SegmentFile(OpenFiles(files), folder, base, SegmentSettings())
    segment.path = f"{segment.path}{SWAP}"
    segment.load_unindexed(found[base, ".log", SWAP])
    end = max(segment.next_offset, base + 1)
    segment.close()
    for other, kind, state in found:
        if not state and base <= other < end and kind != ".snapshot":
            files.remove(_path(folder, other, kind))


def _without_orphans(folder: str, found: _Found, files: Files, recovery: FolderRecovery) -> _Found:
    """Remove indexes without batches. Source: LogLoader.loadSegmentFiles."""
    for base, kind, state in list(found):
        if kind in SIDE_FILES and (base, ".log", "") not in found:
            _remove(folder, (base, kind, state), files, recovery)
            del found[base, kind, state]
    return found


def _remove(
    folder: str, name: tuple[int, str, str], files: Files, recovery: FolderRecovery
) -> None:
    path = _path(folder, *name)
    files.remove(path)
    recovery.removed.append(path)


class _Loading:
    """Loads the segments of one folder for a store."""

    def __init__(self, opening: Opening, open_files: OpenFiles, recovery: FolderRecovery) -> None:
        self._opening = opening
        self._open_files = open_files
        self._recovery = recovery
        known = opening.known
        self._known_end = 0 if known is None else known.end_offset
        self._known_sizes = {} if known is None else {s[0]: s[1] for s in _tuples(known)}

    def segments(self, found: _Found) -> tuple[list[SegmentFile], int | None]:
        """The good segments in order, and the offset from which on they were scanned.

        Source: LogLoader.recoverLog: segments after a cut are removed.
        """
        sizes = {base: size for (base, kind, at), size in found.items() if (kind, at) == _LOG}
        bases = list(sizes)
        self._miss_segments(sizes)
        scan_from = self._scan_from(bases)
        scanned_from: int | None = None
        kept: list[SegmentFile] = []
        for index, base in enumerate(bases):
            segment = SegmentFile(
                self._open_files, self._opening.folder, base, self._opening.settings
            )
            after = bases[index + 1] if index + 1 < len(bases) else None
            is_sound = segment.load(sizes[base], next_offset=after)
            kept.append(segment)
            is_due = scan_from is not None and base >= scan_from
            if is_sound and not is_due and not self._is_shorter(base, sizes[base]):
                continue
            scanned_from = base if scanned_from is None else scanned_from
            is_cut = self._is_cut(segment, sizes[base], after)
            if not is_sound and self._goes_on and (not is_due or self._opening.is_clean):
                self._recovery.rebuilt.append(segment.path)
            if is_cut:
                self._put_rest_aside(bases[index + 1 :], sizes)
                break
            if after is not None:
                segment.close_for_good()
        self._miss_end(kept)
        if kept and self._goes_on:
            kept[-1].reopen()
        return self._not_before_start(kept), scanned_from

    @property
    def _goes_on(self) -> bool:
        return self._opening.accepts_loss or not self._recovery.losses

    def _scan_from(self, bases: list[int]) -> int | None:
        """The base offset of the first segment that may be damaged; None when none is."""
        if not bases:
            return None
        if self._opening.scans_all:
            return bases[0]
        if self._opening.is_clean:
            return None
        before = [base for base in bases if base <= self._opening.recovery_point]
        return before[-1] if before else bases[0]

    def _is_shorter(self, base: int, size: int) -> bool:
        return size < self._known_sizes.get(base, 0)

    def _is_cut(self, segment: SegmentFile, size_bytes: int, after: int | None) -> bool:
        """Scan a segment; return whether it ends early, so that what follows cannot be used."""
        segment.size_bytes = size_bytes
        damage = segment.recover()
        segment.close()
        self._recovery.scanned_bytes += size_bytes
        if damage is None:
            if after is not None and self._is_shorter(segment.base_offset, size_bytes):
                self._lose(segment.path, _ends_at(segment.next_offset), segment.next_offset, after)
            return False
        is_loss = self._is_loss(segment, damage, after)
        if is_loss:
            end = max(self._known_end, segment.next_offset)
            finding = f"is damaged at byte {damage.position} ({damage.reason})"
            self._lose(segment.path, finding, segment.next_offset, end)
        if self._goes_on:
            self._cut(segment, damage, is_kept=not damage.is_torn or is_loss)
        return True

    def _is_loss(self, segment: SegmentFile, damage: Damage, after: int | None) -> bool:
        """Whether damage destroyed acknowledged data.

        An unacknowledged write can leave a torn batch only at the end of the newest segment, and
        only after an unclean shutdown.
        """
        if segment.next_offset < self._known_end or after is not None:
            return True
        if self._opening.is_exact:
            return False
        return self._opening.is_clean or not damage.is_torn

    def _cut(self, segment: SegmentFile, damage: Damage, *, is_kept: bool) -> None:
        files, kept_as = self._open_files.files, ""
        if is_kept:
            fd = self._open_files.fd(segment)
            kept_as = files.keep_aside(
                segment.path, files.read(fd, damage.invalid_bytes, damage.position)
            )
        segment.cut_damage()
        segment.close()
        self._recovery.cuts.append(
            SegmentCut(
                path=segment.path,
                position=damage.position,
                cut_bytes=damage.invalid_bytes,
                reason=damage.reason,
                kept_as=kept_as,
            )
        )

    def _put_rest_aside(self, bases: list[int], sizes: dict[int, int]) -> None:
        """Set the segments after a cut aside under other names; they leave the log."""
        if not self._goes_on:
            return
        files = self._open_files.files
        for base in bases:
            path = _path(self._opening.folder, base, ".log")
            kept_as = files.keep_aside(path)
            for kind in SIDE_FILES:
                files.remove(_path(self._opening.folder, base, kind))
            self._recovery.cuts.append(
                SegmentCut(
                    path=path,
                    position=0,
                    cut_bytes=sizes[base],
                    reason="a segment before it was cut",
                    kept_as=kept_as,
                )
            )

    def _miss_segments(self, sizes: dict[int, int]) -> None:
        """Report missing segments."""
        bases = [*self._known_sizes, self._known_end]
        for base, after in pairwise(bases):
            if base not in sizes and max(base, self._opening.log_start_offset) < after:
                self._lose(_path(self._opening.folder, base, ".log"), "is gone", base, after)

    def _miss_end(self, kept: list[SegmentFile]) -> None:
        """Report a log that ends too early without a damaged file."""
        end = kept[-1].next_offset if kept else 0
        start = max(end, self._opening.log_start_offset)
        if self._recovery.losses or start >= self._known_end:
            return
        if kept:
            path, finding = kept[-1].path, _ends_at(end)
        else:
            path, finding = self._opening.folder, "holds no segment"
        finding += f", and {self._known_end} were acknowledged"
        self._lose(path, finding, start, self._known_end)

    def _lose(self, path: str, finding: str, first: int, end: int) -> None:
        meaning = meaning_of(*self._opening.place, first, end)
        self._recovery.losses.append(Loss(path=path, finding=finding, meaning=meaning))

    def _not_before_start(self, kept: list[SegmentFile]) -> list[SegmentFile]:
        """The segments; none if they all end before the log start, where the log then continues.

        Source: LogLoader.deleteSegmentsIfLogStartGreaterThanLogEnd.
        """
        if not kept or kept[-1].next_offset >= self._opening.log_start_offset:
            return kept
        self._put_rest_aside(
            [s.base_offset for s in kept], {s.base_offset: s.size_bytes for s in kept}
        )
        return []


def _tuples(known: PartitionEntry) -> Iterator[tuple[int, int]]:
    return ((segment.base_offset, segment.size_bytes) for segment in known.segments)


def _ends_at(offset: int) -> str:
    return f"ends at offset {offset}"


def _trusted(folder: str, snapshots: list[int], scanned_from: int, files: Files) -> list[int]:
    """Snapshots from before the scanned part; the others may be wrong, and are removed."""
    for offset in snapshots:
        if offset > scanned_from:
            files.remove(_path(folder, offset, ".snapshot"))
    return [offset for offset in snapshots if offset <= scanned_from]


def _aborted_in(
    folder: str, found: _Found, scanned_from: int | None, files: Files
) -> list[AbortedTransaction]:
    """The aborted transactions of segments that were not scanned; scans find the others again."""
    aborted: list[AbortedTransaction] = []
    for base, kind, _ in found:
        if kind != ".txnindex":
            continue
        path = _path(folder, base, kind)
        if scanned_from is not None and base >= scanned_from:
            files.remove(path)
            continue
        aborted += aborted_from_bytes(files.read_whole(path) or b"")
    return aborted


def _epochs_in(folder: str, files: Files) -> list[EpochStart] | None:
    """The leader epochs; None without a good file: they must be learned from the batches."""
    data = files.read_whole(f"{folder}/{LEADER_EPOCHS}")
    try:
        return epochs_of_checkpoint(data.decode("ascii", "replace")) if data else None
    except DataError:
        return None
