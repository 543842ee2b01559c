"""A partition's folder when it is opened: half-done work undone, damage cut off, and told of.

Source: kafka trunk, storage/.../internals/log/LogLoader.java, in its order.
"""

import os
import re
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim.storage.checkpoints import LEADER_EPOCHS, epochs_of_checkpoint
from coordinator_sim.storage.contract import AbortedTransaction, EpochStart, SegmentSettings
from coordinator_sim.storage.file_store import CLEANED, SIDE_FILES, SWAP, FileStore
from coordinator_sim.storage.files import Files, OpenFiles
from coordinator_sim.storage.indexes import aborted_from_bytes
from coordinator_sim.storage.segment_file import SegmentFile

_FILE: Final = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.\w+)?")
_DELETED: Final = ".deleted"
_TEMPORARY: Final = ".tmp"

_Found = dict[tuple[int, str, str], int]
"""(offset, kind, `.cleaned` or `.swap` or nothing) -> size in bytes, in order of names."""


class SegmentCut(Struct, frozen=True, kw_only=True):
    """What recovery took from a segment.

    Args:
        path: Of its file.
        position: Where the file ends now; 0 for one that was removed whole.
        cut_bytes: From there to its former end.
        reason: What is wrong there.
    """

    path: str
    position: int
    cut_bytes: int
    reason: str


class FolderRecovery(Struct, kw_only=True):
    """What the opening of a partition's folder found and did.

    Attributes:
        scanned_bytes: Of batches whose CRCs were checked.
        cuts: By offset.
        rebuilt: Segments whose indexes were missing or damaged.
        removed: Files of work that had not been finished.
    """

    scanned_bytes: int = 0
    cuts: list[SegmentCut] = []
    rebuilt: list[str] = []
    removed: list[str] = []


class Opening(Struct, frozen=True, kw_only=True):
    """How a folder is opened.

    Args:
        folder: Of the partition.
        settings: Of its segments.
        topic_id: For a folder that is new.
        log_start_offset: As the checkpoint says; 0 unless it says more.
        recovery_point: Everything before it is on the medium.
        is_clean: Whether who had it open last left in order: then only indexes are looked at.
    """

    folder: str
    settings: SegmentSettings = SegmentSettings()
    topic_id: bytes | None = None
    log_start_offset: int = 0
    recovery_point: int = 0
    is_clean: bool = True


def open_store(opening: Opening, open_files: OpenFiles) -> tuple[FileStore, FolderRecovery]:
    """The store of a folder, recovered where that is due.

    Raises:
        OSError: The folder or a file in it cannot be read, or not be mended.
    """
    recovery = FolderRecovery()
    store = FileStore(opening.folder, open_files, opening.settings, topic_id=opening.topic_id)
    store.log_start_offset = opening.log_start_offset
    files = open_files.files
    found = _finish_swaps(opening.folder, _files_in(opening.folder, files), files, recovery)
    found = _without_orphans(opening.folder, found, files, recovery)
    segments, scanned_from = _Loading(opening, open_files, recovery).segments(found)
    snapshots = [base for base, kind, _ in found if kind == ".snapshot"]
    if scanned_from is not None:
        snapshots = _trusted(opening.folder, snapshots, scanned_from, open_files.files)
    epochs = _epochs_in(opening.folder, open_files.files)
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


def _files_in(folder: str, files: Files) -> _Found:
    """The segments' files; what was being written when a process died is removed."""
    found: _Found = {}
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            match = _FILE.fullmatch(entry.name)
            if entry.name.endswith(_TEMPORARY):
                files.remove(f"{folder}/{entry.name}")
            elif match is not None:
                found[int(match[1]), match[2], match[3] or ""] = entry.stat().st_size
    return found


def _path(folder: str, base: int, kind: str, state: str = "") -> str:
    return f"{folder}/{base:020d}{kind}{state}"


def _finish_swaps(folder: str, found: _Found, files: Files, recovery: FolderRecovery) -> _Found:
    """Undo a cleaning that had not come to its `.swap` files whole; finish one that had.

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
    """Remove the segments that a swapped one was made of."""
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
    """The segments of one folder on their way into a store."""

    def __init__(self, opening: Opening, open_files: OpenFiles, recovery: FolderRecovery) -> None:
        self._opening = opening
        self._open_files = open_files
        self._recovery = recovery

    def segments(self, found: _Found) -> tuple[list[SegmentFile], int | None]:
        """All that are good, in order, and from which offset on they were scanned.

        Source: LogLoader.recoverLog: after a cut, what follows is gone.
        """
        sizes = {base: size for (base, kind, _), size in found.items() if kind == ".log"}
        bases = list(sizes)
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
            if is_sound and (scan_from is None or base < scan_from):
                continue
            scanned_from = base if scanned_from is None else scanned_from
            if scan_from is None or base < scan_from:
                self._recovery.rebuilt.append(segment.path)
            if self._is_cut(segment, sizes[base]):
                self._remove_rest(bases[index + 1 :], sizes)
                break
            if after is not None:
                segment.close_for_good()
        if kept:
            kept[-1].reopen()
        return self._not_before_start(kept), scanned_from

    def _scan_from(self, bases: list[int]) -> int | None:
        """The base offset of the first segment that may be damaged; None when none is."""
        if self._opening.is_clean or not bases:
            return None
        before = [base for base in bases if base <= self._opening.recovery_point]
        return before[-1] if before else bases[0]

    def _is_cut(self, segment: SegmentFile, size_bytes: int) -> bool:
        segment.size_bytes = size_bytes
        damage = segment.recover()
        segment.close()
        self._recovery.scanned_bytes += size_bytes
        if damage is None:
            return False
        self._recovery.cuts.append(
            SegmentCut(
                path=segment.path,
                position=damage.position,
                cut_bytes=damage.invalid_bytes,
                reason=damage.reason,
            )
        )
        return True

    def _remove_rest(self, bases: list[int], sizes: dict[int, int]) -> None:
        for base in bases:
            path = _path(self._opening.folder, base, ".log")
            for kind in (".log", *SIDE_FILES):
                self._open_files.files.remove(_path(self._opening.folder, base, kind))
            self._recovery.cuts.append(
                SegmentCut(
                    path=path,
                    position=0,
                    cut_bytes=sizes[base],
                    reason="a segment before it was cut",
                )
            )

    def _not_before_start(self, kept: list[SegmentFile]) -> list[SegmentFile]:
        """None of them when they end before the log's start, which then is where it goes on.

        Source: LogLoader.deleteSegmentsIfLogStartGreaterThanLogEnd.
        """
        if not kept or kept[-1].next_offset >= self._opening.log_start_offset:
            return kept
        self._remove_rest(
            [s.base_offset for s in kept], {s.base_offset: s.size_bytes for s in kept}
        )
        return []


def _trusted(folder: str, snapshots: list[int], scanned_from: int, files: Files) -> list[int]:
    """Snapshots from before the part that was scanned; the others are of a time that is gone."""
    for offset in snapshots:
        if offset > scanned_from:
            files.remove(_path(folder, offset, ".snapshot"))
    return [offset for offset in snapshots if offset <= scanned_from]


def _aborted_in(
    folder: str, found: _Found, scanned_from: int | None, files: Files
) -> list[AbortedTransaction]:
    """The aborted transactions of segments that were not scanned, whose batches tell of theirs."""
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
    """The epochs of leaders; None, and they are to be learned anew, where that file is damaged."""
    data = files.read_whole(f"{folder}/{LEADER_EPOCHS}")
    try:
        return epochs_of_checkpoint((data or b"0\n0\n").decode("ascii", "replace"))
    except DataError:
        return None
