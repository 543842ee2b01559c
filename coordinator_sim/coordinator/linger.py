"""Batches that wait for more records before they are appended.

The setting is `group.coordinator.append.linger.ms`.

An operation's records are applied at once, and lie in the partition's open batch until the linger
timer appends it, or a transactional write or a marker, or until it is full. Whoever writes, or only
waits, while the batch is open shares its fate. Here is nothing of how an append itself is done.

Source: kafka 4.1, CoordinatorRuntime.CoordinatorContext (append, maybeAllocateNewBatch,
waitForPendingWrites, flushCurrentBatch, maybeFlushCurrentBatch, failCurrentBatch).
"""

from collections.abc import Sequence
from typing import Final

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.effects import Write
from coordinator_sim.coordinator.partition import OpenBatch, Partition
from coordinator_sim.coordinator.runtime import Runtime, Scheduled
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.messages.records import LogBatch

ADAPTIVE: Final = -1
"""An open batch is appended when the partition has no other event: at once in virtual time."""


def linger_key(partition: Partition) -> TimerKey:
    """The name of a partition's linger timer."""
    return TimerKey(TimerKind.LINGER, "", str(partition.index))


def linger(runtime: Runtime, partition: Partition, write: Write) -> bool:
    """Put an operation into the partition's open batch; whether that was the place for it.

    An operation without records joins a batch that is open, and none is opened for it. A
    transactional one, and a marker, first append what is open: if that is refused, so are they.

    Source: CoordinatorContext.append and completeTransaction.
    """
    effect = write.effect
    is_alone = effect.marker is not None or (effect.transactional and bool(effect.records))
    if not is_alone:
        is_added = bool(effect.records) or partition.open_batch is not None
        if is_added:
            _add(runtime, partition, write)
        return is_added
    error = flush(runtime, partition)
    if error is not NO_ERROR:
        runtime.finish(write, error)
        return True
    if effect.marker is None and runtime.config.idle_timers:
        # Its own batch has a linger timer too, which ends with the write.
        runtime.timers.touch(runtime.now_ms + runtime.linger_ms)
    return False


def _add(runtime: Runtime, partition: Partition, write: Write) -> None:
    now_ms = runtime.now_ms
    batch = partition.open_batch
    if batch is None:
        batch = partition.open_batch = OpenBatch(partition, now_ms)
        if runtime.gathering is not None:
            runtime.gathering.append(partition)
        else:
            deadline_ms = now_ms + runtime.linger_ms
            runtime.timers.schedule(linger_key(partition), deadline_ms, now_ms=now_ms, data=batch)
    records = write.effect.records
    if records:
        wall_ms = runtime.wall_ms
        _apply(partition, batch, write, wall_ms)
        batch.records += records
        batch.times_ms += [wall_ms] * len(records)
    batch.writes.append(write)
    is_late = runtime.gathering is None and now_ms - batch.opened_ms >= runtime.linger_ms
    if records and is_late:
        flush(runtime, partition)
        runtime.release(partition)
    if not write.is_done:
        runtime.arm_write_timeout(write)


def _apply(partition: Partition, batch: OpenBatch, write: Write, wall_ms: int) -> None:
    """Apply an operation's records, which readers see when the batch is committed."""
    written = partition.end_offset
    added = LogBatch(
        partition=partition.index,
        base_offset=written + len(batch.records),
        timestamp_ms=wall_ms,
        records=write.effect.records,
    )
    partition.offsets.timeline.remember()
    if write.effect.apply is not None:
        write.effect.apply.applied(added, written)
    partition.offsets.lingering(added, written, offsets_alone=not write.effect.is_replayed)


def expire_linger(runtime: Runtime, batch: OpenBatch) -> None:
    """The batch has lingered long enough: append it, and answer those who wait."""
    flush(runtime, batch.partition)
    runtime.release(batch.partition)


def run_together(runtime: Runtime, steps: Sequence[Scheduled]) -> None:
    """Run events that wait together, and append what they left open once no other event waits.

    Source: CoordinatorContext.enqueueAdaptiveFlush.
    """
    gathering: list[Partition] = []
    runtime.gathering = gathering
    for step in steps:
        step.run(runtime)
    runtime.gathering = None
    for partition in gathering:
        flush(runtime, partition)
        runtime.release(partition)


def flush(runtime: Runtime, partition: Partition) -> ErrorCode:
    """Append the open batch, if there is one; its operations then wait for the high watermark.

    Returns:
        The error of a refused append, which has failed every operation of the batch.

    Source: CoordinatorContext.flushCurrentBatch.
    """
    batch = partition.open_batch
    if batch is None:
        return NO_ERROR
    error = runtime.append_open(partition, _appended(partition, batch))
    if error is not NO_ERROR:
        fail_open_batch(runtime, partition, error)
        return error
    runtime.timers.cancel(linger_key(partition))
    partition.open_batch = None
    partition.deferred.extend((partition.end_offset, write) for write in batch.writes)
    return NO_ERROR


def _appended(partition: Partition, batch: OpenBatch) -> LogBatch:
    times_ms = tuple(batch.times_ms)
    return LogBatch(
        partition=partition.index,
        base_offset=partition.end_offset,
        timestamp_ms=times_ms[0],
        records=tuple(batch.records),
        record_times_ms=times_ms if times_ms[-1] != times_ms[0] else (),
    )


def fail_open_batch(runtime: Runtime, partition: Partition, error: ErrorCode) -> None:
    """Take back what the open batch applied, and fail everyone who waits for it, in order.

    Source: CoordinatorContext.failCurrentBatch.
    """
    batch = partition.open_batch
    if batch is None:
        return
    partition.offsets.take_back(is_behind=partition.high_watermark < partition.end_offset)
    runtime.undo_groups(partition)
    runtime.timers.cancel(linger_key(partition))
    partition.open_batch = None
    for write in batch.writes:
        runtime.finish(write, error)
