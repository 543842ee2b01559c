"""Records that arrive at a log: their circumstances, and the validation of single records.

Source: kafka trunk, storage/.../internals/log/LogValidator.java (validateRecord and below).
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.compression import ContentTooLarge
from coordinator_sim.log.format.record_batches import NO_ID
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.log_values import Prepared, RecordError, Refused

_BOUNDS: Final = "send less in one batch, or set the server's simulator.batch.max.* higher"
MAX_TOLD_ERRORS: Final = 10_000
"""How many bad records one answer names at most."""
_SHOWN_ERRORS: Final = 3
"""How many of them the message shows. Source: LogValidator.processRecordErrors."""


class Arrival(Struct, frozen=True, kw_only=True):
    """The circumstances in which records arrive at a log.

    Args:
        place: Topic and partition as messages name them, `t-0`.
        now_ms: The present of the log's timestamps.
        config: Config of the topic.
    """

    place: str
    now_ms: int
    config: LogConfig


class Ending(Struct, frozen=True, gc=False):
    """The end of a log, where records are placed.

    Args:
        offset: Offset of the first record once it is appended.
        leader_epoch: Epoch of the partition's leader.
    """

    offset: int
    leader_epoch: int


Placing = Callable[[Ending], Prepared]
"""Assigns offsets to checked records; all long work is done before."""
Checked = Placing | Refused
"""Result of checking records."""


def invalid_record(reason: str) -> Refused:
    """A refusal with INVALID_RECORD and no message for the client."""
    return Refused(error=ErrorCode.INVALID_RECORD, reason=reason)


def too_large(place: str, error: ContentTooLarge) -> Refused:
    """A refusal with MESSAGE_TOO_LARGE beyond our own bounds; producers then split the batch."""
    message = f"{place}: {error.args[0]}; {_BOUNDS}"
    return Refused(error=ErrorCode.MESSAGE_TOO_LARGE, message=message, names_log_start=False)


class RecordErrors:
    """Collects the errors of single records (KIP-467).

    DEVIATION: a timestamp whose delta leads beyond 64 bits is refused as invalid; Kafka lets it
    wrap around, and refuses most of the results.

    DEVIATION: if more than 10,000 records of one batch are bad, the answer names the first 10,000
    and counts all; Kafka names each. librdkafka sends no more in one batch by default.

    Source: LogValidator.validateKey, validateTimestamp and processRecordErrors.

    Args:
        arrival: Circumstances of the arrival.
        claims_append: Whether the batch has timestamp type LogAppendTime.
    """

    __slots__ = ("_arrival", "_claims_append", "_count", "_errors", "_has_bad_time")

    def __init__(self, arrival: Arrival, *, claims_append: bool) -> None:
        self._arrival = arrival
        self._claims_append = claims_append
        self._errors: list[RecordError] = []
        self._count = 0
        self._has_bad_time = False

    def look_at(self, index: int, time_ms: int, offset: int, *, has_key: bool) -> None:
        """Check the next record.

        Args:
            index: Index of the record in its batch, from 0.
            time_ms: Timestamp as sent.
            offset: Offset as sent.
            has_key: Whether the record has a key.
        """
        arrival = self._arrival
        if arrival.config.is_compacted and not has_key:
            message: str | None = (
                "Compacted topic cannot accept message without key in topic partition "
                f"{arrival.place}"
            )
        else:
            message = _time_refusal(time_ms, offset, arrival, claims_append=self._claims_append)
            self._has_bad_time = self._has_bad_time or message is not None
        if message is not None:
            self._count += 1
            if len(self._errors) < MAX_TOLD_ERRORS:
                self._errors.append(RecordError(index, message))

    def refusal(self) -> Refused | None:
        """The refusal of the batch; None when all records are valid."""
        if not self._errors:
            return None
        if self._has_bad_time:
            return Refused(
                error=ErrorCode.INVALID_TIMESTAMP,
                message="One or more records have been rejected due to invalid timestamp",
                record_errors=tuple(self._errors),
            )
        shown = ", ".join(
            f"RecordError(batchIndex={error.index}, message={_quoted(error.message)})"
            for error in self._errors[:_SHOWN_ERRORS]
        )
        return Refused(
            error=ErrorCode.INVALID_RECORD,
            message=f"One or more records have been rejected due to {self._count} record errors in "
            f"total, and only showing the first three errors at most: [{shown}]",
            record_errors=tuple(self._errors),
        )


def _quoted(message: str) -> str:
    return f"'{message}'"


def _time_refusal(
    time_ms: int, offset: int, arrival: Arrival, *, claims_append: bool
) -> str | None:
    config = arrival.config
    if not is_long(time_ms):
        return f"Timestamp of message with offset {offset} is no 64-bit number: {time_ms}"
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


def is_long(value: int) -> bool:
    """Whether Java's long holds a value."""
    return -(2**63) <= value < 2**63


def _as_long(value: int) -> int:
    """Wrap a value around as Java's long does."""
    return (value + 2**63) % 2**64 - 2**63
