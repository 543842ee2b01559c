"""Records that come to a log: under which circumstances, and what each one must be like.

Source: kafka trunk, storage/.../internals/log/LogValidator.java (validateRecord and below).
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.storage.log_config import LogConfig
from coordinator_sim.storage.log_values import RecordError, Refused
from coordinator_sim.wire.record_batches import NO_ID

_SHOWN_ERRORS: Final = 3
"""Of all in the message. Source: LogValidator.processRecordErrors."""


class Arrival(Struct, frozen=True, kw_only=True):
    """Under which circumstances records come to a log.

    Args:
        place: Topic and partition as messages name them, `t-0`.
        offset: Of the first record once it is in.
        now_ms: The present of the log's timestamps.
        leader_epoch: Of the partition's leader.
        config: Of the topic.
    """

    place: str
    offset: int
    now_ms: int
    leader_epoch: int
    config: LogConfig


def invalid_record(reason: str) -> Refused:
    """INVALID_RECORD without a word to the client."""
    return Refused(error=ErrorCode.INVALID_RECORD, reason=reason)


def record_refusal(
    times: list[tuple[int, int]],
    keyless: set[int],
    arrival: Arrival,
    *,
    claims_append: bool,
) -> Refused | None:
    """What KIP-467 tells of the records that are to blame; None when none is.

    Source: LogValidator.validateKey, validateTimestamp and processRecordErrors.

    Args:
        times: Timestamp and offset, as they came, of each record.
        keyless: Indexes of the records that must have a key and have none.
        arrival: Where and when.
        claims_append: Whether the batch says that its log stamped it.
    """
    errors: list[RecordError] = []
    has_bad_time = False
    for index, (time_ms, offset) in enumerate(times):
        if index in keyless:
            errors.append(
                RecordError(
                    index,
                    "Compacted topic cannot accept message without key in topic partition "
                    f"{arrival.place}",
                )
            )
            continue
        message = _time_refusal(time_ms, offset, arrival, claims_append=claims_append)
        if message is not None:
            has_bad_time = True
            errors.append(RecordError(index, message))
    if not errors:
        return None
    if has_bad_time:
        return Refused(
            error=ErrorCode.INVALID_TIMESTAMP,
            message="One or more records have been rejected due to invalid timestamp",
            record_errors=tuple(errors),
        )
    shown = ", ".join(
        f"RecordError(batchIndex={error.index}, message={_quoted(error.message)})"
        for error in errors[:_SHOWN_ERRORS]
    )
    return Refused(
        error=ErrorCode.INVALID_RECORD,
        message=f"One or more records have been rejected due to {len(errors)} record errors in "
        f"total, and only showing the first three errors at most: [{shown}]",
        record_errors=tuple(errors),
    )


def _quoted(message: str) -> str:
    return f"'{message}'"


def _time_refusal(
    time_ms: int, offset: int, arrival: Arrival, *, claims_append: bool
) -> str | None:
    config = arrival.config
    if not config.stamps and time_ms != NO_ID:
        lowest = arrival.now_ms - config.message_timestamp_before_max_ms
        highest = arrival.now_ms + config.message_timestamp_after_max_ms
        if lowest <= time_ms <= highest:
            return None
        return (
            f"Timestamp {time_ms} of message with offset {offset} is out of range. The timestamp "
            f"should be within [{_as_long(lowest)}, {_as_long(highest)}]"
        )
    if claims_append:
        return (
            f"Invalid timestamp type in message at offset {offset}. Producer should not set "
            "timestamp type to LogAppendTime."
        )
    return None


def _as_long(value: int) -> int:
    """As Java's long wraps around."""
    return (value + 2**63) % 2**64 - 2**63
