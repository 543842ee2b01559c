"""Where a share group begins in a partition that it never read.

Source: kafka 4.3.1, core/.../share/SharePartition.java (startOffsetDuringInitialization) and
ShareFetchUtils.java; group-coordinator/.../group/ShareGroupAutoOffsetResetStrategy.java.
"""

from typing import Final

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.shares.share_values import LogOffsets
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.java_durations import duration_ns

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
