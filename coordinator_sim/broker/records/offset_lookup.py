"""ListOffsets and OffsetForLeaderEpoch: offsets by timestamp and by leader epoch.

Source: kafka trunk, KafkaApis.handleListOffsetRequest and handleOffsetForLeaderEpochRequest;
ReplicaManager.fetchOffset and lastOffsetForLeaderEpoch; Partition.fetchOffsetForTimestamp;
kafka 4.2 for version 11 of ListOffsets.
"""

from functools import partial
from typing import Any, Final

from coordinator_sim.broker.apis.administration import duplicates
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.replicas.replica_manager import NO_EPOCH, ReplicaManager
from coordinator_sim.broker.scheduler import Jobs
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.log.log_values import OffsetSpec, TimedOffset
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from coordinator_sim.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

EARLIEST_PENDING_UPLOAD: Final = -6
"""Position in tiered storage, like LATEST_TIERED; never found, as there is no tiered storage."""
CONSUMER_REPLICA_ID: Final = -1
DEBUGGING_REPLICA_ID: Final = -2

_A_PARTITION: Final = 100
"""Cost of looking for the log of a partition; see `log.format.steps`."""
_SPECIAL_SINCE: Final[dict[int, int]] = {
    OffsetSpec.EARLIEST: 1,
    OffsetSpec.LATEST: 1,
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""Timestamps that stand for a position, with the first version that knows them."""
_TIERED: Final = frozenset({int(OffsetSpec.LATEST_TIERED), EARLIEST_PENDING_UPLOAD})
_EARLIEST: Final = frozenset({int(OffsetSpec.EARLIEST), int(OffsetSpec.EARLIEST_LOCAL)})
_ONE_OFFSET_SINCE: Final = 1
_EPOCHS_SINCE: Final = 4
_NOT_AVAILABLE_SINCE: Final = 5
_READ_COMMITTED: Final = 1


class OffsetApi:
    """Answers ListOffsets and OffsetForLeaderEpoch.

    Args:
        partitions: The partitions that the brokers host.
        access: Authorizes requests.
        jobs: Runs long work in steps.
        conceals_topics: Whether topics without DESCRIBE are answered as unknown.
        refuses_unknown: Whether an unknown negative timestamp is refused, or taken as a time.
    """

    __slots__ = ("_access", "_conceals_topics", "_jobs", "_partitions", "_refuses_unknown")

    def __init__(
        self,
        partitions: ReplicaManager,
        access: Access,
        jobs: Jobs,
        *,
        conceals_topics: bool = False,
        refuses_unknown: bool = True,
    ) -> None:
        self._partitions = partitions
        self._access = access
        self._jobs = jobs
        self._conceals_topics = conceals_topics
        self._refuses_unknown = refuses_unknown

    def handlers(self) -> Handlers:
        """Handlers of ListOffsets and OffsetForLeaderEpoch."""
        return {
            ApiKey.LIST_OFFSETS: self._jobs.handler(self._listed),
            ApiKey.OFFSET_FOR_LEADER_EPOCH: self._jobs.handler(self._offsets_of_epochs),
        }

    def _may_describe(self, call: Call[Any], topic: str) -> bool:
        return self._access.allows(call.context, Operation.DESCRIBE, ResourceType.TOPIC, topic)

    def _denied(self) -> ErrorCode:
        if self._conceals_topics:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED

    # -- ListOffsets -----------------------------------------------------------------------

    def _listed(self, call: Call[ListOffsetsRequest]) -> Steps[ListOffsetsResponse]:
        """Answer ListOffsets; topics without DESCRIBE come last, repeated partitions once.

        DEVIATION: brokers up to 3.9 answer a partition that is named twice two times, with the
        same error.
        """
        topics: list[ListOffsetsTopicResponse] = []
        refused: list[ListOffsetsTopicResponse] = []
        twice = duplicates(
            (topic.name, each.partition_index)
            for topic in call.request.topics
            for each in topic.partitions
        )
        for topic in call.request.topics:
            name = topic.name
            may = self._may_describe(call, name)
            asked = {each.partition_index: each for each in topic.partitions}
            told = []
            for index, each in asked.items():
                yield _A_PARTITION
                error = ErrorCode.NONE if may else self._denied()
                if may and (name, index) in twice and call.context.api_version:
                    error = ErrorCode.INVALID_REQUEST
                if error is ErrorCode.NONE:
                    told.append((yield from self._offset_of(call, (name, index), each)))
                else:
                    told.append(_no_offset(index, error))
            (topics if may else refused).append(ListOffsetsTopicResponse(name, tuple(told)))
        return ListOffsetsResponse(topics=(*topics, *refused))

    def _offset_of(
        self, call: Call[ListOffsetsRequest], place: Place, asked: ListOffsetsPartition
    ) -> Steps[ListOffsetsPartitionResponse]:
        version = call.context.api_version
        if version < _ONE_OFFSET_SINCE:
            return self._old_offsets(call, place, asked)
        timestamp_ms = asked.timestamp
        is_unknown = timestamp_ms < 0 and version < _SPECIAL_SINCE.get(timestamp_ms, version + 1)
        if is_unknown and self._refuses_unknown:
            return _no_offset(place[1], ErrorCode.UNSUPPORTED_VERSION)
        replica_id = call.request.replica_id
        log = self._partitions.local_log(
            call.broker_id,
            place,
            max(asked.current_leader_epoch, NO_EPOCH),
            leader_only=replica_id != DEBUGGING_REPLICA_ID,
        )
        if isinstance(log, ErrorCode):
            return _no_offset(place[1], log)
        is_client = replica_id == CONSUMER_REPLICA_ID
        level = call.request.isolation_level if is_client else None
        find = self._found(log, timestamp_ms, level, place)
        found = yield from self._partitions.attempt_in_steps(place, find)
        if found is ErrorCode.OFFSET_NOT_AVAILABLE and version < _NOT_AVAILABLE_SINCE:
            found = ErrorCode.LEADER_NOT_AVAILABLE
        if isinstance(found, ErrorCode):
            return _no_offset(place[1], found)
        return ListOffsetsPartitionResponse(
            partition_index=place[1],
            timestamp=found.timestamp_ms,
            offset=found.offset,
            leader_epoch=found.leader_epoch if version >= _EPOCHS_SINCE else NO_EPOCH,
        )

    def _found(
        self, log: PartitionLog, timestamp_ms: int, level: int | None, place: Place
    ) -> Steps[TimedOffset | ErrorCode]:
        """The offset that the client may see; `level` is its isolation level, None for a broker."""
        bound = log.end_offset
        if level is not None:
            bound = log.last_stable_offset if level == _READ_COMMITTED else log.high_watermark
        # A new leader does not know yet which records of earlier epochs are committed.
        is_behind = level is not None and _epoch_start(log) > log.high_watermark
        if timestamp_ms == OffsetSpec.LATEST:
            if is_behind:
                return ErrorCode.OFFSET_NOT_AVAILABLE
            state = self._partitions.image.partition(*place)
            return TimedOffset(-1, bound, NO_EPOCH if state is None else state.leader_epoch)
        if timestamp_ms in _TIERED and self._refuses_unknown:
            return TimedOffset()
        if not log.config.message_format_magic and timestamp_ms not in _EARLIEST:
            return ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
        if not self._refuses_unknown and timestamp_ms < OffsetSpec.EARLIEST:
            timestamp_ms = 0  # The earliest possible time.
        is_committed = level == _READ_COMMITTED
        found = yield from log.finding_offset(timestamp_ms, read_committed=is_committed)
        is_hidden = found.offset < 0 and timestamp_ms not in _EARLIEST
        return ErrorCode.OFFSET_NOT_AVAILABLE if is_hidden and is_behind else found

    def _old_offsets(
        self, call: Call[ListOffsetsRequest], place: Place, asked: ListOffsetsPartition
    ) -> ListOffsetsPartitionResponse:
        """Base offsets of segments (version 0). Source: legacyFetchOffsetsForTimestamp."""
        if asked.timestamp < OffsetSpec.EARLIEST and self._refuses_unknown:
            return _no_offset(place[1], ErrorCode.UNSUPPORTED_VERSION)
        replica_id = call.request.replica_id
        leader_only = replica_id != DEBUGGING_REPLICA_ID
        log = self._partitions.local_log(call.broker_id, place, leader_only=leader_only)
        if isinstance(log, ErrorCode):
            return _no_offset(place[1], log)
        find = partial(
            log.offsets_before, asked.timestamp, asked.max_num_offsets, now_ms=call.now.group_ms
        )
        offsets = self._partitions.attempt(place, find)
        if isinstance(offsets, ErrorCode):
            return _no_offset(place[1], offsets)
        high_watermark = log.high_watermark
        found = tuple(offsets)
        if replica_id == CONSUMER_REPLICA_ID and any(each > high_watermark for each in found):
            found = (high_watermark, *(each for each in found if each <= high_watermark))
        return ListOffsetsPartitionResponse(partition_index=place[1], old_style_offsets=found)

    # -- OffsetForLeaderEpoch --------------------------------------------------------------

    def _offsets_of_epochs(
        self, call: Call[OffsetForLeaderEpochRequest]
    ) -> Steps[OffsetForLeaderEpochResponse]:
        """Answer OffsetForLeaderEpoch; brokers may ask for all topics, clients need DESCRIBE."""
        may_all = self._access.allows(
            call.context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
        )
        topics: list[OffsetForLeaderTopicResult] = []
        refused: list[OffsetForLeaderTopicResult] = []
        for topic in call.request.topics:
            name = topic.topic
            may = may_all or self._may_describe(call, name)
            told = []
            for each in topic.partitions:
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                told.append(
                    self._end_of(call, name, each) if may else _no_end(each.partition, error)
                )
                yield _A_PARTITION
            (topics if may else refused).append(OffsetForLeaderTopicResult(name, tuple(told)))
        return OffsetForLeaderEpochResponse(topics=(*topics, *refused))

    def _end_of(
        self, call: Call[OffsetForLeaderEpochRequest], topic: str, asked: OffsetForLeaderPartition
    ) -> EpochEndOffset:
        index = asked.partition
        epoch = max(asked.current_leader_epoch, NO_EPOCH)
        log = self._partitions.local_log(call.broker_id, (topic, index), epoch)
        if isinstance(log, ErrorCode):
            return _no_end(index, log)
        end = log.end_offset_for_epoch(asked.leader_epoch)
        return EpochEndOffset(
            partition=index, leader_epoch=end.leader_epoch, end_offset=end.end_offset
        )


def _epoch_start(log: PartitionLog) -> int:
    """The offset at which the current leader epoch began; -1 for the first epoch."""
    return log.end_offset_for_epoch(log.leader_epoch - 1).end_offset


def _no_offset(partition: int, error: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=partition, error_code=error)


def _no_end(partition: int, error: ErrorCode) -> EpochEndOffset:
    return EpochEndOffset(partition=partition, error_code=error)
