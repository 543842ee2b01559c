"""The cleaner of one compacted log: it keeps the last record of each key.

A pass is work in steps (`log.format.steps`), so that the caller can do other work in between, also
within one batch. Unchanged batches keep their bytes.

Source: kafka trunk, core/.../log/LogCleanerManager.scala (cleanableOffsets); storage/.../log/
Cleaner.java (doClean, groupSegmentsBySize, cleanSegments).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from coordinator_sim.log.compaction import (
    AbortedStart,
    BatchCleaner,
    CleaningPass,
    LastOffsets,
    ProducerEnd,
)
from coordinator_sim.log.contract import (
    AbortedTransaction,
    SegmentInfo,
    SegmentStore,
    StoredSpan,
)
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.spans import batches_in, end_of

_STEP_BYTES: Final = 256 * 1024
"""Bytes of batches that are read at a time."""
_MAX_OFFSET_SPAN: Final = 2**31 - 1


def cleanable_before(
    segments: Sequence[SegmentInfo], stable_offset: int, oldest_allowed_ms: int
) -> int:
    """The base of the first segment that may not be cleaned.

    Args:
        segments: Segments of the log; the last one is active and never cleaned.
        stable_offset: The last stable offset; segments are cleaned only if they end before it.
        oldest_allowed_ms: A segment with a younger record is not cleaned, nor those after it.
    """
    for segment in segments[:-1]:
        if segment.next_offset > stable_offset or segment.max_timestamp_ms > oldest_allowed_ms:
            return segment.base_offset
    return segments[-1].base_offset


def is_dirty_enough(
    segments: Sequence[SegmentInfo], cleaned_to: int, bound: int, config: LogConfig, now_ms: int
) -> bool:
    """Whether a pass is worthwhile. Source: LogCleanerManager.grabFilthiestCompactedLog."""
    dirty = [one for one in segments if cleaned_to < one.next_offset and one.base_offset < bound]
    clean_bytes = sum(one.size_bytes for one in segments if one.next_offset <= cleaned_to)
    dirty_bytes = sum(one.size_bytes for one in dirty)
    if not dirty_bytes:
        return False
    oldest_ms = min((one.max_timestamp_ms for one in dirty), default=now_ms)
    if now_ms - oldest_ms > config.max_compaction_lag_ms:
        return True
    return dirty_bytes > config.min_cleanable_dirty_ratio * (dirty_bytes + clean_bytes)


class LogCleaning:
    """One pass over one log.

    Args:
        store: Store of the log. Segments that are deleted during the pass end it.
        config: Config of the topic.
        bound: Result of `cleanable_before`.
        active: The producers whose state is kept.
        now_ms: The instant of the pass.
    """

    __slots__ = ("_aborted", "_active", "_bound", "_config", "_pass", "_store")

    def __init__(
        self,
        store: SegmentStore,
        config: LogConfig,
        bound: int,
        active: Mapping[int, ProducerEnd],
        now_ms: int,
    ) -> None:
        self._store = store
        self._config = config
        self._bound = bound
        self._active = active
        self._aborted: dict[AbortedStart, AbortedTransaction] = {}
        self._pass = CleaningPass(
            now_ms=now_ms,
            delete_retention_ms=config.delete_retention_ms,
            clean_to=bound,
            producer_expiration_ms=config.producer_id_expiration_ms,
        )

    def steps(self, cleaned_to: int, log_start_offset: int) -> Steps[None]:
        """Run the pass, step by step.

        Args:
            cleaned_to: The offset before which an earlier pass cleaned everything.
            log_start_offset: Start of the log: earlier aborted transactions are ignored.

        Raises:
            WireFormatError: The records of a batch do not parse.
        """
        segments = [one for one in self._store.segments()[:-1] if one.next_offset <= self._bound]
        if not segments:
            return
        start = segments[0].base_offset
        self._aborted = {
            AbortedStart(entry.producer_id, entry.first_offset): entry
            for entry in self._store.aborted(max(start, log_start_offset), self._bound)
        }
        dirty_from = max(start, cleaned_to)
        keys = LastOffsets(
            (begun for begun, entry in self._aborted.items() if entry.last_offset >= dirty_from),
            dirty_from,
        )
        for data in self._chunks(dirty_from, self._bound):
            for batch in batches_in(data):
                yield from keys.add(batch)
        cleaner = BatchCleaner(self._pass, self._bound, keys.offsets, self._aborted, self._active)
        for group in _grouped(segments, self._config.segment_bytes):
            yield from self._clean_group(group, cleaner)

    def _clean_group(self, group: Sequence[SegmentInfo], cleaner: BatchCleaner) -> Steps[None]:
        parts: list[bytes] = []
        spans: list[StoredSpan] = []
        is_changed = len(group) > 1
        for data in self._chunks(group[0].base_offset, group[-1].next_offset):
            for batch in batches_in(data):
                left = yield from cleaner.clean(batch)
                is_changed = is_changed or left is not batch
                if left is None:
                    continue
                parts.append(bytes(left.raw()))
                spans.append(
                    StoredSpan(
                        base_offset=left.base_offset,
                        last_offset=left.last_offset,
                        max_timestamp_ms=left.max_timestamp_ms,
                        leader_epoch=left.leader_epoch,
                    )
                )
        bases = [segment.base_offset for segment in group]
        there = {segment.base_offset for segment in self._store.segments()[:-1]}
        if is_changed and there.issuperset(bases):
            first, end = bases[0], group[-1].next_offset
            aborted = [self._aborted[start] for start in cleaner.kept_aborted]
            self._store.replace(
                bases,
                b"".join(parts),
                spans,
                [entry for entry in aborted if first <= entry.last_offset < end],
            )

    def _chunks(self, offset: int, before_offset: int) -> Iterator[bytes]:
        while data := self._store.read(offset, _STEP_BYTES, before_offset=before_offset):
            yield data
            offset = end_of(data)


def _grouped(segments: Iterable[SegmentInfo], segment_bytes: int) -> Iterator[list[SegmentInfo]]:
    """Adjacent segments that fit into one. Source: Cleaner.groupSegmentsBySize."""
    group: list[SegmentInfo] = []
    size = 0
    for segment in segments:
        is_full = group and (
            size + segment.size_bytes > segment_bytes
            or segment.next_offset - group[0].base_offset > _MAX_OFFSET_SPAN
        )
        if is_full:
            yield group
            group, size = [], 0
        group.append(segment)
        size += segment.size_bytes
    if group:
        yield group
