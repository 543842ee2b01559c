"""Records whose member's time is over: available again, or archived.

Source: kafka 4.3.1, core/.../share/SharePartition.java, releaseAcquisitionLockOnTimeout.
"""

from coordinator_sim.broker.shares.acquisition_locks import AcquisitionLock
from coordinator_sim.broker.shares.in_flight_records import InFlightRecords
from coordinator_sim.broker.shares.in_flight_state import InFlightState, RecordState
from coordinator_sim.broker.shares.persister import StateBatch


def release_timed_out(
    records: InFlightRecords, lock: AcquisitionLock, delivery_count_limit: int
) -> list[StateBatch]:
    """Take the records of a lock from its member for good, and return what is to be written.

    Records in a transition are left: its end looks at the lock.
    """
    floor = records.batches.floor(lock.first_offset)
    if floor is None:
        return []
    changed: list[StateBatch] = []
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
            found = _release(records, (first, last), state, delivery_count_limit)
            if found is not None:
                changed.append(found)
    return changed


def _release(
    records: InFlightRecords,
    offsets: tuple[int, int],
    state: InFlightState,
    delivery_count_limit: int,
) -> StateBatch | None:
    """Take records with one state from their member; behind the start offset they are archived.

    Source: SharePartition.releaseAcquisitionLockOnTimeoutForCompleteBatch and ForPerOffsetBatch.
    """
    first, last = offsets
    if state.state is not RecordState.ACQUIRED:
        return None
    to = RecordState.ARCHIVED if last < records.start_offset else RecordState.AVAILABLE
    if not state.give_up(to, delivery_count_limit):
        return None
    state.clear_lock()
    if state.state.is_terminal:
        records.delivery_complete_count += records.count_from_start(first, last)
    else:
        records.has_released = True
    return StateBatch(first, last, state.state, state.delivery_count)
