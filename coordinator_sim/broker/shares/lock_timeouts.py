"""Records whose member's time is over: available again, or archived.

Source: kafka 4.3.1, core/.../share/SharePartition.java, releaseAcquisitionLockOnTimeout.
"""

from coordinator_sim.broker.shares.dead_letters import Change, DeadLetterCause
from coordinator_sim.broker.shares.in_flight_batch import InFlightBatch
from coordinator_sim.broker.shares.in_flight_records import InFlightRecords
from coordinator_sim.broker.shares.in_flight_state import DeliveryLimit, InFlightState, RecordState
from coordinator_sim.broker.shares.persister import StateBatch


def release_timed_out(
    records: InFlightRecords, offsets: tuple[int, int], limit: DeliveryLimit
) -> list[Change]:
    """Take the records of a lock from its member for good, and return what is to be written.

    Records in a transition are left: its end looks at the lock.
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
