"""What a share partition reads from the share coordinator and writes there.

Source: kafka 4.3.1, core/.../share/SharePartition.java.
"""

from collections.abc import Iterable
from typing import Final

from coordinator_sim.broker.shares.dead_letters import Change, DeadLetterCause
from coordinator_sim.broker.shares.in_flight_batch import InFlightBatch
from coordinator_sim.broker.shares.in_flight_records import GapWindow, InFlightRecords
from coordinator_sim.broker.shares.in_flight_state import NO_MEMBER, InFlightState, RecordState
from coordinator_sim.broker.shares.persister import StateBatch
from coordinator_sim.broker.shares.share_values import ShareSettings
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.kafka.errors import ErrorCode

_NO_GAP: Final = -1

_TOLD_AS: Final = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
_UNTOLD: Final = frozenset({ErrorCode.SASL_AUTHENTICATION_FAILED, ErrorCode.UNSUPPORTED_VERSION})


def persister_refusal(error: ErrorCode, text: str | None) -> Refusal | None:
    """The error a member gets for a share coordinator's response; None if that is no error.

    Source: SharePartition.fetchPersisterError.
    """
    if error is ErrorCode.NONE:
        return None
    if error in _UNTOLD:
        return Refusal(
            ErrorCode.UNKNOWN_SERVER_ERROR, "Unable to complete operation due to server error."
        )
    return Refusal(_TOLD_AS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR), text)


def take_read_state(
    records: InFlightRecords, start_offset: int, batches: Iterable[StateBatch]
) -> bool:
    """Begin with what was read; return whether that can be.

    Source: SharePartition.maybeInitialize, from the answer's state batches on.
    """
    records.start_offset = start_offset
    gap_start = _NO_GAP
    expected = start_offset
    for batch in batches:
        if batch.first_offset < start_offset or batch.last_offset < batch.first_offset:
            return False
        if gap_start == _NO_GAP and batch.first_offset > expected:
            gap_start = expected
        expected = batch.last_offset + 1
        try:
            state = RecordState(batch.delivery_state)
        except ValueError:
            return False
        records.batches.put(
            InFlightBatch(
                batch.first_offset,
                batch.last_offset,
                InFlightState(state, batch.delivery_count, NO_MEMBER),
            )
        )
        if state.is_terminal:
            records.delivery_complete_count += batch.last_offset - batch.first_offset + 1
    if not len(records.batches):
        records.end_offset = start_offset
        return True
    records.has_released = True
    records.end_offset = records.batches.last().last_offset
    if gap_start != _NO_GAP:
        records.gap_window = GapWindow(records.end_offset, gap_start)
    records.advance_start_offset()
    return True


def dead_letters_in(records: InFlightRecords, settings: ShareSettings) -> list[Change]:
    """The records that an earlier leader gave up and did not archive.

    Source: kafka 4.4.0, SharePartition.maybeResumeDlqArchiving.
    """
    return [
        Change(
            batch.state,
            StateBatch(
                batch.first_offset,
                batch.last_offset,
                batch.state.state,
                batch.state.delivery_count,
            ),
            DeadLetterCause.DELIVERY_COUNT_EXCEEDED
            if batch.state.delivery_count >= settings.delivery_count_limit
            else DeadLetterCause.CLIENT_REJECT,
        )
        for batch in records.batches
        if batch.state.state is RecordState.ARCHIVING
    ]
