"""A member acquires records that were fetched for it: new ones, and those that others gave up.

Source: kafka 4.3.1, core/.../share/SharePartition.java, acquire and what it calls.
"""

from collections.abc import Iterable, Iterator, Sequence

from coordinator_sim.broker.shares import share_values
from coordinator_sim.broker.shares.acquisition_locks import (
    AcquisitionLock,
    AcquisitionLocks,
    TimedOut,
)
from coordinator_sim.broker.shares.archiving import archive_acquired, archive_stale
from coordinator_sim.broker.shares.delivery_throttle import DeliveryThrottle, acquire_offsets
from coordinator_sim.broker.shares.in_flight_batch import InFlightBatch
from coordinator_sim.broker.shares.in_flight_records import InFlightRecords
from coordinator_sim.broker.shares.in_flight_state import InFlightState, RecordState
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.share_types import ShareAcquireMode
from coordinator_sim.messages.share_fetch import AcquiredRecords


class Locking:
    """How the records of one call are locked: for whom, and until when.

    Args:
        locks: The wheel.
        timed_out: See `TimedOut`.
        member_id: The member.
        deadline_ms: When the time is over, on the group clock.
    """

    __slots__ = ("_deadline_ms", "_locks", "_timed_out", "member_id")

    def __init__(
        self, locks: AcquisitionLocks, timed_out: TimedOut, member_id: str, deadline_ms: int
    ) -> None:
        self._locks = locks
        self._timed_out = timed_out
        self.member_id = member_id
        self._deadline_ms = deadline_ms

    def lock(self, first_offset: int, last_offset: int) -> AcquisitionLock:
        """Lock records. Source: SharePartition.scheduleAcquisitionLockTimeout."""
        return self._locks.schedule(
            self._timed_out,
            self.member_id,
            (first_offset, last_offset),
            deadline_ms=self._deadline_ms,
        )

    def lock_each(self, records: InFlightBatch, first: int, last: int) -> AcquisitionLock:
        """Lock records of a split batch, each by itself."""
        return self._locks.schedule(
            self._timed_out,
            self.member_id,
            (first, last),
            deadline_ms=self._deadline_ms,
            locked_by=records.locked_by,
        )


class Acquisition:
    """One call of `SharePartition.acquire`.

    Args:
        records: Changed by it.
        request: What was fetched, and for whom.
        settings: The group's.
        locking: Locks what is acquired.
    """

    __slots__ = (
        "_acquired",
        "_count",
        "_is_record_limit",
        "_last_offset",
        "_locking",
        "_max_records",
        "_records",
        "_request",
        "_settings",
    )

    def __init__(
        self,
        records: InFlightRecords,
        request: share_values.AcquireRequest,
        settings: share_values.ShareSettings,
        locking: Locking,
    ) -> None:
        self._records = records
        self._request = request
        self._settings = settings
        self._locking = locking
        self._is_record_limit = request.mode is ShareAcquireMode.RECORD_LIMIT
        self._acquired: list[AcquiredRecords] = []
        self._count = 0
        self._last_offset = request.batches[-1].last_offset if request.batches else -1
        self._max_records = request.max_fetch_records

    def run(self) -> share_values.Acquired:
        """Acquire what may be acquired. Source: SharePartition.acquire.

        Raises:
            OperationAborted: Kafka throws.
        """
        request = self._request
        records = self._records
        if not request.batches or self._last_offset < records.start_offset:
            return share_values.Acquired()
        self._bound()
        if self._max_records <= 0:
            return share_values.Acquired()
        base_offset = request.batches[0].base_offset
        archive_stale(records, request.fetch_offset, base_offset)
        first_offset = self._first_offset(base_offset)
        # Kafka looks from the lesser of the two: the first offset may be before or after the base.
        search_from = min(base_offset, first_offset)
        if search_from > self._last_offset:
            raise OperationAborted("inconsistent range")
        cached = records.batches.beginning_in(search_from, self._last_offset)
        if not cached:
            self._acquire_new(first_offset, self._last_offset)
        else:
            self._acquire_cached(cached, first_offset)
            self._acquire_rest(search_from)
            if not self._acquired:
                return share_values.Acquired((), self._count)
            records.shrink_gap_window(self._acquired[-1].last_offset + 1)
        return self._without_aborted()

    def _bound(self) -> None:
        """Bound the number of records and the last offset by the records in flight.

        A full partition hands out what it has again, and nothing after its end offset.

        Source: SharePartition.lastOffsetAndMaxRecordsToAcquire.
        """
        records = self._records
        request = self._request
        room = self._settings.partition_max_record_locks - records.count
        self._max_records = min(request.max_fetch_records, room)
        if self._max_records <= 0 and request.fetch_offset <= records.end_offset:
            self._max_records = min(
                request.max_fetch_records, records.end_offset - request.fetch_offset + 1
            )
            self._last_offset = min(self._last_offset, records.end_offset)

    def _first_offset(self, base_offset: int) -> int:
        """Where acquiring begins: at a cached batch, and not before the start offset."""
        floor = self._records.batches.floor(base_offset)
        if floor is None:
            return max(base_offset, self._records.start_offset)
        return floor.first_offset if floor.last_offset >= base_offset else base_offset

    @property
    def _remaining(self) -> int:
        return self._max_records - self._count

    def _acquire_cached(self, cached: Sequence[InFlightBatch], first_offset: int) -> None:
        """Acquire what is available of cached batches, and what the gaps before them may hold."""
        records = self._records
        gap_start = first_offset
        for batch in cached:
            if self._remaining <= 0:
                return
            if records.active_gap_window() is not None:
                if gap_start < batch.first_offset:
                    self._acquire_new(gap_start, batch.first_offset - 1)
                gap_start = batch.last_offset + 1
                if self._remaining <= 0:
                    return
            self._acquire_batch(batch)

    def _acquire_batch(self, batch: InFlightBatch) -> None:
        """Acquire what is available of one cached batch."""
        base_offset = self._request.batches[0].base_offset
        throttle = DeliveryThrottle(self._settings.delivery_count_limit)
        is_throttled = throttle.holds_back(batch, base_offset, self._last_offset)
        if is_throttled and self._count > 0:
            self._max_records = 0
            return
        is_part = not batch.is_within(base_offset, self._last_offset) or (
            self._is_record_limit and batch.size > self._remaining
        )
        if not batch.is_split and not batch.state.is_acquirable:
            return
        if is_part or batch.is_split or is_throttled:
            before = self._count
            batch.split()
            self._acquire_offsets(batch, throttle)
            if is_throttled and self._count > before:
                self._max_records = 0
            return
        batch.state.acquire(self._locking.member_id)
        batch.state.set_lock(self._locking.lock(batch.first_offset, batch.last_offset))
        self._acquired.append(
            AcquiredRecords(batch.first_offset, batch.last_offset, batch.state.delivery_count)
        )
        self._count += batch.size

    def _acquire_offsets(self, batch: InFlightBatch, throttle: DeliveryThrottle) -> None:
        """Acquire single records of a batch. Source: SharePartition.acquireSubsetBatchRecords."""
        found = acquire_offsets(
            batch,
            (self._request.batches[0].base_offset, self._last_offset),
            self._locking.member_id,
            throttle,
            self._remaining if self._is_record_limit else None,
        )
        acquired = []
        for first, last, state in found:
            state.set_lock(self._locking.lock_each(batch, first, last))
            acquired.append(AcquiredRecords(first, last, state.delivery_count))
            self._count += last - first + 1
        self._acquired.extend(merged(acquired))

    def _acquire_rest(self, search_from: int) -> None:
        """Acquire what was fetched after the last cached batch."""
        if self._remaining <= 0:
            return
        # Gaps may have become batches since; the last one is the same, or begins where it did.
        cached = self._records.batches.beginning_in(search_from, self._last_offset)
        end = cached[-1].last_offset
        if end < self._last_offset:
            self._acquire_new(end + 1, self._last_offset)

    def _acquire_new(self, first_offset: int, last_offset: int) -> None:
        """Acquire records that are not cached. Source: SharePartition.acquireNewBatchRecords."""
        records = self._records
        max_records = self._remaining
        if not len(records.batches):
            first_offset = max(first_offset, records.end_offset)
        last = last_offset
        if max_records < last - first_offset + 1:
            last = _end_of_batch_with(self._request.batches, first_offset + max_records - 1)
            if records.active_gap_window() is not None:
                last = min(last, last_offset)
        acquired = self._cache_new(first_offset, last, max_records)
        if records.batches.first().first_offset == first_offset:
            records.start_offset = first_offset
        records.end_offset = max(records.end_offset, last)
        if self._is_record_limit:
            last = acquired[0].last_offset
        records.shrink_gap_window(last + 1)
        self._acquired.extend(acquired)
        self._count += last - first_offset + 1

    def _cache_new(self, first: int, last: int, max_records: int) -> list[AcquiredRecords]:
        """Cache new batches. Source: SharePartition.createBatches and addBatches."""
        member_id = self._locking.member_id
        cache = self._records.batches
        if self._is_record_limit and last - first + 1 > max_records:
            last_acquired = first + max_records - 1
            batch = InFlightBatch(first, last, InFlightState(RecordState.ACQUIRED, 1, member_id))
            batch.split_after(last_acquired, self._locking.lock_each(batch, first, last_acquired))
            self._records.has_released = True
            cache.put(batch)
            return [AcquiredRecords(first, last_acquired, 1)]
        acquired = []
        for part_first, part_last in self._parts(first, last):
            lock = self._locking.lock(part_first, part_last)
            state = InFlightState(RecordState.ACQUIRED, 1, member_id, lock)
            cache.put(InFlightBatch(part_first, part_last, state))
            acquired.append(AcquiredRecords(part_first, part_last, 1))
        return acquired

    def _parts(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Cut a range at the beginnings of fetched batches, into parts of about the batch size."""
        size = self._request.batch_size
        if not self._is_record_limit and last - first + 1 > size:
            for batch in self._request.batches:
                if batch.base_offset > last:
                    break
                if batch.base_offset - first >= size:
                    yield first, batch.base_offset - 1
                    first = batch.base_offset
        yield first, last

    def _without_aborted(self) -> share_values.Acquired:
        """Leave out records of aborted transactions, and archive them.

        Source: SharePartition.maybeFilterAbortedTransactionalAcquiredRecords.
        """
        request = self._request
        if not request.is_read_committed or not request.aborted:
            return share_values.Acquired(tuple(self._acquired), self._count)
        cache = self._records.batches
        aborted = aborted_batches(request.batches, request.aborted)
        for batch in aborted:
            floor = cache.floor(batch.base_offset)
            if floor is None:
                raise OperationAborted(
                    "Batch record not found. The request batch offsets are not found in the cache."
                )
            archive_acquired(
                self._records,
                cache.beginning_in(floor.first_offset, batch.last_offset),
                (batch.base_offset, batch.last_offset),
            )
        kept = without_batches(self._acquired, aborted)
        return share_values.Acquired(
            tuple(kept), sum(one.last_offset - one.first_offset + 1 for one in kept)
        )


def _end_of_batch_with(batches: Iterable[share_values.FetchedBatch], offset: int) -> int:
    """The last offset of the fetched batch with an offset; that offset where there is none.

    Source: SharePartition.lastOffsetFromBatchWithRequestOffset.
    """
    found = None
    for batch in batches:
        if offset < batch.base_offset:
            break
        found = batch
    return offset if found is None else max(offset, found.last_offset)


def merged(acquired: Iterable[AcquiredRecords]) -> Iterator[AcquiredRecords]:
    """Neighbours with one delivery count as one.

    Source: ShareFetchUtils.accumulateAcquiredRecords.
    """
    present: AcquiredRecords | None = None
    for records in acquired:
        if present is None:
            present = records
        elif (
            records.first_offset == present.last_offset + 1
            and records.delivery_count == present.delivery_count
        ):
            present = AcquiredRecords(
                present.first_offset, records.last_offset, present.delivery_count
            )
        else:
            yield present
            present = records
    if present is not None:
        yield present


def aborted_batches(
    batches: Iterable[share_values.FetchedBatch], aborted: Iterable[share_values.Aborted]
) -> list[share_values.FetchedBatch]:
    """The batches that belong to aborted transactions, in order.

    Source: SharePartition.fetchAbortedTransactionRecordBatches.
    """
    waiting = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    producers: set[int] = set()
    found = []
    for batch in batches:
        if batch.producer_id == share_values.NO_PRODUCER:
            continue
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            producers.add(waiting.pop().producer_id)
        if batch.is_abort_marker:
            producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            found.append(batch)
    return found


def without_batches(
    acquired: Sequence[AcquiredRecords], batches: Sequence[share_values.FetchedBatch]
) -> list[AcquiredRecords]:
    """The acquired records that are in none of these batches; both are in ascending order.

    Source: SharePartition.filterRecordBatchesFromAcquiredRecords.
    """
    if not batches:
        return list(acquired)
    kept: list[AcquiredRecords] = []
    cutting = iter(batches)
    batch: share_values.FetchedBatch | None = next(cutting)
    for records in acquired:
        rest: AcquiredRecords | None = records
        while rest is not None:
            if batch is None:
                kept.append(rest)
                break
            last_offset = rest.last_offset
            rest = _cut(rest, batch, kept)
            if last_offset > batch.last_offset:
                batch = next(cutting, None)
    return kept


def _cut(
    records: AcquiredRecords, batch: share_values.FetchedBatch, kept: list[AcquiredRecords]
) -> AcquiredRecords | None:
    """Keep what is before a batch, and return what is after it."""
    if records.last_offset < batch.base_offset:
        kept.append(records)
        return None
    if records.first_offset > batch.last_offset:
        return records
    if records.first_offset < batch.base_offset:
        kept.append(
            AcquiredRecords(records.first_offset, batch.base_offset - 1, records.delivery_count)
        )
    if records.last_offset > batch.last_offset:
        return AcquiredRecords(batch.last_offset + 1, records.last_offset, records.delivery_count)
    return None
