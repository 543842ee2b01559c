"""One partition of a topic as a share group's members share it: who works on which records.

The leader of the partition has one for each group. It knows no clock and no log: what was fetched
is handed to it, and what became of the records goes to the share coordinator by the `Persister`.
An answer may come before a call returns, or later; records whose change is being written stay in
between, and go back where the write fails.

Source: kafka 4.3.1, core/.../share/SharePartition.java.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.shares.acknowledging import Acknowledging
from coordinator_sim.broker.shares.acquiring import Acquisition, Locking
from coordinator_sim.broker.shares.acquisition_locks import AcquisitionLocks
from coordinator_sim.broker.shares.archiving import move_log_start
from coordinator_sim.broker.shares.dead_letters import (
    Change,
    DeadLetterCause,
    DeadLetterQueue,
    DeadLetters,
)
from coordinator_sim.broker.shares.in_flight_batch import InFlightBatch
from coordinator_sim.broker.shares.in_flight_records import InFlightRecords
from coordinator_sim.broker.shares.in_flight_state import (
    DeliveryLimit,
    InFlightState,
    RecordState,
)
from coordinator_sim.broker.shares.persisted_state import (
    dead_letters_in,
    persister_refusal,
    take_read_state,
)
from coordinator_sim.broker.shares.persister import (
    Persister,
    ReadState,
    SharePartitionKey,
    StateBatch,
    StateRead,
    StateWritten,
    WriteState,
)
from coordinator_sim.broker.shares.share_values import (
    Acknowledgement,
    Acquired,
    AcquireRequest,
    LogOffsets,
    PartitionState,
    Progress,
    ShareSettings,
    Watch,
)
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.errors import InvariantViolation, OperationAborted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.java_durations import duration_ns

Then = Callable[[Refusal | None], None]
"""Told how a call ended; None is success."""


class SharePartition:
    """The records of one partition, for one share group.

    Args:
        key: Group, topic and partition.
        leader_epoch: Of the partition's leader; the share coordinator fences older ones.
        topic: The topic's name.
        settings: Answers the group's settings, as they are now.
        persister: Where the state is kept.
        offsets: Where a group that never read the partition may begin.
        locks: The wheel of the broker's locks.
        on_fetchable: Called when fetches that wait for this partition may have records now.
        dead_letters: Where groups' dead letters go; None for a release that knows of none.
        watch: Called with changes of records; None for nobody.
    """

    def __init__(  # noqa: PLR0913 - what Kafka's is made of
        self,
        key: SharePartitionKey,
        leader_epoch: int,
        *,
        topic: str,
        settings: Callable[[], ShareSettings],
        persister: Persister,
        offsets: LogOffsets,
        locks: AcquisitionLocks,
        on_fetchable: Callable[[], None],
        dead_letters: DeadLetterQueue | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.key = key
        self._leader_epoch = leader_epoch
        self._topic = topic
        self._settings = settings
        self._persister = persister
        self._offsets = offsets
        self._locks = locks
        self._on_fetchable = on_fetchable
        self._dead_letters = dead_letters
        self._watch = watch
        self._records = InFlightRecords()
        self._state = PartitionState.EMPTY
        self._state_epoch = 0
        self._fetch_lock: object = None

    @property
    def _place(self) -> str:
        topic_id = urlsafe_b64encode(self.key.topic_id).decode().rstrip("=")
        return f"{topic_id}:{self._topic}-{self.key.partition}"

    @property
    def _name(self) -> str:
        return f"{self.key.group_id}-{self._place}"

    @property
    def leader_epoch(self) -> int:
        """The epoch of the partition's leader."""
        return self._leader_epoch

    @property
    def state(self) -> PartitionState:
        """Whether the partition can be used."""
        return self._state

    @property
    def state_epoch(self) -> int:
        """The group's epoch when the state was initialized."""
        return self._state_epoch

    @property
    def start_offset(self) -> int:
        """The first offset that is not done with."""
        return self._records.start_offset

    @property
    def end_offset(self) -> int:
        """The last offset in flight; the next one to fetch where nothing is."""
        return self._records.end_offset

    @property
    def delivery_complete_count(self) -> int:
        """Records from the start offset on that are acknowledged or archived."""
        return self._records.delivery_complete_count

    @property
    def records(self) -> InFlightRecords:
        """The records in flight, for reading."""
        return self._records

    def maybe_initialize(self, now: Instants, then: Then) -> None:
        """Read the partition's state, unless that has been done.

        Source: SharePartition.maybeInitialize.
        """
        if self._state is PartitionState.ACTIVE:
            then(None)
            return
        refusal = self._not_initializable()
        if refusal is not None:
            then(refusal)
            return
        self._state = PartitionState.INITIALIZING

        def read(answer: StateRead) -> None:
            refusal = self._initialize(answer, now)
            if refusal is not None:
                self._state = PartitionState.FAILED
            then(refusal)
            if refusal is None:
                self._tell(())
                self._bury(dead_letters_in(self._records, self._settings()), now)

        self._persister.read(ReadState(self.key, self._leader_epoch), read, now)

    def _not_initializable(self) -> Refusal | None:
        """Why the state is not read now. Source: SharePartition.initializedOrThrowException."""
        match self._state:
            case PartitionState.FAILED:
                text = f"Share partition failed to load {self._name}"
                return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, text)
            case PartitionState.INITIALIZING:
                text = f"Share partition is already initializing {self._name}"
                return Refusal(ErrorCode.LEADER_NOT_AVAILABLE, text)
            case PartitionState.FENCED:
                text = f"Share partition is fenced {self._name}"
                return Refusal(ErrorCode.LEADER_NOT_AVAILABLE, text)
            case _:
                return None

    def _initialize(self, answer: StateRead, now: Instants) -> Refusal | None:
        refusal = persister_refusal(answer.error, answer.message)
        if refusal is not None:
            return refusal
        start_offset: int | Refusal = answer.start_offset
        if start_offset == -1:
            reset = self._settings().auto_offset_reset
            start_offset = reset_offset(reset, self._offsets, self._place, now)
        if isinstance(start_offset, Refusal):
            return start_offset
        self._state_epoch = answer.state_epoch
        if not take_read_state(self._records, start_offset, answer.batches):
            text = f"Failed to initialize the share partition {self._name}"
            return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, text)
        # QUIRK: a partition that was fenced while its state was read is usable again.
        self._state = PartitionState.ACTIVE
        return None

    def next_fetch_offset(self) -> int:
        """Where the log is read next: the first available record, else after the end offset."""
        return self._records.next_fetch_offset()

    def can_acquire_records(self) -> bool:
        """Whether a fetch may bring records. Source: SharePartition.canAcquireRecords."""
        if self.next_fetch_offset() != self._records.end_offset + 1:
            return True
        return self._records.count < self._settings().partition_max_record_locks

    def maybe_acquire_fetch_lock(self, fetch_id: object) -> bool:
        """Begin a fetch, unless another one is under way; return whether it may begin."""
        if self._state is not PartitionState.ACTIVE or self._fetch_lock is not None:
            return False
        self._fetch_lock = fetch_id
        return True

    def release_fetch_lock(self, fetch_id: object) -> None:
        """End a fetch.

        QUIRK: whoever ends one that is not under way ends the one that is.
        Source: SharePartition.releaseFetchLock.
        """
        del fetch_id
        self._fetch_lock = None

    def acquire(self, request: AcquireRequest, now: Instants) -> Acquired:
        """Hand what was fetched to a member, as far as it may have it.

        Raises:
            OperationAborted: Kafka throws here, and the fetch fails.
        """
        if self._state is not PartitionState.ACTIVE:
            return Acquired()
        settings = self._settings()
        locking = self._locking(request.member_id, settings, now)
        return Acquisition(self._records, request, settings, locking).run()

    def _locking(self, member_id: str, settings: ShareSettings, now: Instants) -> Locking:
        self._locks.start(now)
        deadline_ms = now.group_ms + settings.record_lock_duration_ms
        return Locking(self._locks, partial(self.lock_timed_out, member_id), member_id, deadline_ms)

    def _limit(self, settings: ShareSettings) -> DeliveryLimit:
        letters = self._dead_letters
        has_queue = letters is not None and letters.is_enabled(self.key.group_id)
        at_limit = RecordState.ARCHIVING if has_queue else RecordState.ARCHIVED
        return DeliveryLimit(settings.delivery_count_limit, at_limit)

    def acknowledge(
        self, member_id: str, batches: Iterable[Acknowledgement], now: Instants, then: Then
    ) -> None:
        """Do with a member's records what it says. Source: SharePartition.acknowledge.

        Raises:
            OperationAborted: Kafka throws here, and the request fails; `then` is not called.
        """
        settings = self._settings()
        locking = self._locking(member_id, settings, now)
        call = Acknowledging(self._records, settings, self._limit(settings), locking)
        self._conclude(call.acknowledge(batches), call.changes, now, then)

    def release_acquired_records(self, member_id: str, now: Instants, then: Then) -> None:
        """Take all records from a member whose session ended.

        Source: SharePartition.releaseAcquiredRecords.
        """
        settings = self._settings()
        locking = self._locking(member_id, settings, now)
        call = Acknowledging(self._records, settings, self._limit(settings), locking)
        call.release()
        self._conclude(None, call.changes, now, then)

    def update_cache_and_offsets(self, log_start_offset: int) -> None:
        """The log begins later now. Source: SharePartition.updateCacheAndOffsets."""
        move_log_start(self._records, log_start_offset)

    def mark_fenced(self) -> None:
        """The partition is used no more: its leader or its group's state is another."""
        self._state = PartitionState.FENCED

    def expire(self, now: Instants) -> None:
        """Run what is due of the broker's locks, whatever partition they are of."""
        self._locks.expire(now)

    def next_deadline_ms(self) -> int | None:
        """An instant not after the earliest deadline of the broker's locks; None without locks."""
        return self._locks.next_deadline_ms()

    def lock_timed_out(self, member_id: str, offsets: tuple[int, int], now: Instants) -> None:
        """Take records from a member whose time is over, also where that cannot be written.

        Source: SharePartition.releaseAcquisitionLockOnTimeout.
        """
        changes = release_timed_out(self._records, offsets, self._limit(self._settings()))
        if not changes:
            return
        batches = [change.batch for change in changes]
        self._tell(batches, member_id)

        def written(_: Refusal | None) -> None:
            has_advanced = self._advance()
            self._tell(batches)
            if has_advanced is not None:
                self._bury(changes, now)

        self._write(batches, now, written)
        self._on_fetchable()

    def _tell(self, batches: Sequence[StateBatch], holder: str | None = None) -> None:
        if self._watch is not None:
            locked_ms = 0 if holder is None else self._settings().record_lock_duration_ms
            start_offset = self._records.start_offset
            told = Progress(self.key, self._topic, start_offset, tuple(batches), holder, locked_ms)
            self._watch(told)

    def _advance(self) -> bool | None:
        """Move the start offset, and return whether it moved.

        QUIRK: None where Kafka throws, which nobody hears of: what would follow does not.
        """
        try:
            return self._records.advance_start_offset()
        except OperationAborted:
            return None

    def _bury(self, changes: Iterable[Change], now: Instants) -> None:
        """Give dead letters to their queue, and archive them when it has them.

        Source: kafka 4.4.0, SharePartition.initiateDLQAndArchive.
        """
        queue = self._dead_letters
        if queue is None:
            return
        for state, batch, cause, _ in changes:
            if cause is not None and state.state is RecordState.ARCHIVING:
                letters = DeadLetters(
                    self.key,
                    self._topic,
                    batch.first_offset,
                    batch.last_offset,
                    batch.delivery_count,
                    cause,
                )
                queue.enqueue(letters, partial(self._buried, state, letters), now)

    def _buried(self, state: InFlightState, letters: DeadLetters, now: Instants) -> None:
        state.archive()
        first, last = letters.first_offset, letters.last_offset
        self._records.delivery_complete_count += self._records.count_from_start(first, last)

        batch = StateBatch(first, last, RecordState.ARCHIVED, letters.delivery_count)

        def written(_: Refusal | None) -> None:
            has_advanced = self._advance()
            self._tell((batch,))
            if has_advanced:
                self._on_fetchable()

        self._write([batch], now, written)

    def _conclude(
        self, refusal: Refusal | None, changes: Sequence[Change], now: Instants, then: Then
    ) -> None:
        """Write the transitions of a call, or undo them.

        Source: SharePartition.rollbackOrProcessStateUpdates.
        """
        if refusal is not None:
            self._undo(changes)
            then(refusal)
            return
        if not changes:
            then(None)
            return

        def written(refusal: Refusal | None) -> None:
            if refusal is not None:
                self._undo(changes)
                then(refusal)
                return
            for change in changes:
                for _, _, state in change.parts():
                    state.complete_transition(is_written=True)
                    if state.state is RecordState.AVAILABLE:
                        self._records.has_released = True
            _merge(changes)
            has_advanced = self._advance()
            self._tell([change.batch for change in changes])
            then(None)
            if has_advanced:
                self._on_fetchable()
            if has_advanced is not None:
                self._bury(changes, now)

        self._write([change.batch for change in changes], now, written)

    def _undo(self, changes: Iterable[Change]) -> None:
        records = self._records
        for change in changes:
            was_terminal = RecordState(change.batch.delivery_state).is_terminal
            for first, last, state in change.parts():
                state.complete_transition(is_written=False)
                if state.state is RecordState.AVAILABLE:
                    records.has_released = True
                if was_terminal and not state.state.is_terminal:
                    records.delivery_complete_count -= records.count_from_start(first, last)

    def _write(self, batches: Sequence[StateBatch], now: Instants, then: Then) -> None:
        """Write what changed. Source: SharePartition.writeShareGroupState."""

        def written(answer: StateWritten) -> None:
            then(persister_refusal(answer.error, answer.message))

        request = WriteState(
            key=self.key,
            state_epoch=self._state_epoch,
            leader_epoch=self._leader_epoch,
            start_offset=self._records.start_offset,
            delivery_complete_count=self._records.delivery_complete_count,
            batches=tuple(batches),
        )
        self._persister.write(request, written, now)


def _merge(changes: Iterable[Change]) -> None:
    """Join what transitions that ended have left alike."""
    for change in changes:
        if change.holder is not None:
            change.holder.merge(change.batch.first_offset, change.batch.last_offset)


def release_timed_out(
    records: InFlightRecords, offsets: tuple[int, int], limit: DeliveryLimit
) -> list[Change]:
    """Take the records of a lock from its member for good, and return what is to be written.

    Records in a transition are left: its end looks at the lock.

    Source: SharePartition.releaseAcquisitionLockOnTimeout.
    """
    first_offset, last_offset = offsets
    floor = records.batches.floor(first_offset)
    if floor is None:
        return []
    changed: list[Change] = []
    for batch in records.batches.beginning_in(floor.first_offset, last_offset):
        if not batch.is_split:
            if not batch.state.is_acquired:
                continue
            if not batch.is_split_by(records.start_offset):
                range_ = batch.first_offset, batch.last_offset
                changed.append(_release(records, range_, batch.state, limit))
                continue
            batch.split()
        changed += _release_runs(records, batch, offsets, limit)
    return changed


def _release_runs(
    records: InFlightRecords, batch: InFlightBatch, offsets: tuple[int, int], limit: DeliveryLimit
) -> list[Change]:
    """Take records of a split batch from their member."""
    first_offset, last_offset = offsets
    if first_offset < records.start_offset <= last_offset:
        batch.cut((records.start_offset,))
    runs = batch.runs_in(first_offset, last_offset, singly=limit.has_queue)
    changed = [
        _release(records, (first, last), state, limit)._replace(holder=batch)
        for first, last, state in runs
        if state.is_acquired
    ]
    batch.merge(first_offset, last_offset)
    return changed


def _release(
    records: InFlightRecords,
    offsets: tuple[int, int],
    state: InFlightState,
    limit: DeliveryLimit,
) -> Change:
    """Take records with one state from their member; behind the start offset they are archived.

    Source: SharePartition.releaseAcquisitionLockOnTimeoutForCompleteBatch and ForPerOffsetBatch.
    """
    first, last = offsets
    to = RecordState.ARCHIVED if last < records.start_offset else RecordState.AVAILABLE
    state.give_up(to, limit)
    state.clear_lock()
    if state.state.is_terminal:
        records.delivery_complete_count += records.count_from_start(first, last)
    elif state.is_acquirable:
        records.has_released = True
    is_dead = state.state is RecordState.ARCHIVING
    return Change(
        state,
        StateBatch(first, last, state.state, state.delivery_count),
        DeadLetterCause.DELIVERY_COUNT_EXCEEDED if is_dead else None,
    )


_NANOS_PER_MS: Final = 1_000_000


def reset_offset(
    reset: str, offsets: LogOffsets, topic_partition: str, now: Instants
) -> int | Refusal:
    """The first offset by `share.auto.offset.reset`, or why it cannot be said.

    DEVIATION: a duration counts back from when the state was asked for, not from when it came.

    Args:
        reset: `latest`, `earliest` or `by_duration:` with a duration.
        offsets: The log's.
        topic_partition: `topicId:topic-partition`, for words.
        now: When the state was asked for.

    Source: SharePartition.startOffsetDuringInitialization; ShareFetchUtils;
    ShareGroupAutoOffsetResetStrategy.
    """
    if reset == "latest":
        what, offset = "latest timestamp", offsets.latest_offset()
    elif reset == "earliest":
        what, offset = "earliest timestamp", offsets.earliest_offset()
    else:
        timestamp_ms = _timestamp_ms(reset, now)
        what = f"timestamp {timestamp_ms}"
        offset = offsets.offset_for_timestamp(timestamp_ms)
    if offset is None:
        text = f"Offset for {what} not found for topic partition: {topic_partition}"
        return Refusal(ErrorCode.OFFSET_NOT_AVAILABLE, text)
    return offset


def _timestamp_ms(reset: str, now: Instants) -> int:
    duration = duration_ns(reset.removeprefix("by_duration:"))
    if duration is None:
        raise InvariantViolation("no duration, though the setting was checked", reset)
    return (now.group_ms * _NANOS_PER_MS - duration) // _NANOS_PER_MS
