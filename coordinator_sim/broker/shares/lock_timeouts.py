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
        if (
            batch.offsets is None
            and batch.state.state is RecordState.ACQUIRED
            and batch.is_split_by(records.start_offset)
        ):
            batch.split()
        if batch.offsets is None:
            parts = [(batch.first_offset, batch.last_offset, batch.state)]
        else:
            parts = [
                (offset, offset, state)
                for offset, state in batch.offsets.items()
                if lock.first_offset <= offset <= lock.last_offset
            ]
        for first, last, state in parts:
            found = _release(records, (first, last), state, limit)
            if found is not None:
                changed.append(found)
    return changed


def _release(
    records: InFlightRecords,
    offsets: tuple[int, int],
    state: InFlightState,
    limit: DeliveryLimit,
) -> Change | None:
    """Take records with one state from their member; behind the start offset they are archived.

    Source: SharePartition.releaseAcquisitionLockOnTimeoutForCompleteBatch and ForPerOffsetBatch.
    """
    first, last = offsets
    if not state.is_acquired:
        return None
    to = RecordState.ARCHIVED if last < records.start_offset else RecordState.AVAILABLE
    if not state.give_up(to, limit):
        return None
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
