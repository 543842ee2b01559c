"""Records whose member's time is over: available again, or archived.

Source: kafka 4.3.1, core/.../share/SharePartition.java, releaseAcquisitionLockOnTimeout.
"""

from coordinator_sim.broker.shares.acquisition_locks import AcquisitionLock
from coordinator_sim.broker.shares.dead_letters import Change, DeadLetterCause
from coordinator_sim.broker.shares.in_flight_records import InFlightRecords
from coordinator_sim.broker.shares.in_flight_state import DeliveryLimit, InFlightState, RecordState
from coordinator_sim.broker.shares.persister import StateBatch


def release_timed_out(
    records: InFlightRecords, lock: AcquisitionLock, limit: DeliveryLimit
) -> list[Change]:
    """Take the records of a lock from its member for good, and return what is to be written.

    Records in a transition are left: its end looks at the lock.
    """
    floor = records.batches.floor(lock.first_offset)
    if floor is None:
        return []
    changed: list[Change] = []
    for batch in records.batches.beginning_in(floor.first_offset, lock.last_offset):
        if batch.offsets is None:
            if not batch.state.is_acquired:
                continue
            if batch.is_split_by(records.start_offset):
                batch.split()
        is_whole = batch.offsets is None
        for first, last, state in batch.parts():
            is_locked = is_whole or lock.first_offset <= first <= lock.last_offset
            if is_locked and state.is_acquired:
                changed.append(_release(records, (first, last), state, limit))
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
