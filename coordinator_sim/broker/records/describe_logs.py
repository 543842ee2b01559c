"""DescribeLogDirs and DescribeProducers: log sizes and producer states of brokers.

Source: kafka trunk, KafkaApis.handleDescribeLogDirsRequest and handleDescribeProducersRequest;
ReplicaManager.describeLogDirs and activeProducerState; Topic.validate.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.broker.scheduler import Jobs
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.topic_names import complaint
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from coordinator_sim.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


class LogVolume(Struct, frozen=True, gc=False):
    """The one log directory of a broker, and the volume that holds it.

    Args:
        path: Absolute path of the directory.
        total_bytes: Size of the volume; -1 unknown.
        usable_bytes: Free bytes of the volume; -1 unknown.
    """

    path: str
    total_bytes: int = -1
    usable_bytes: int = -1


_A_LOG: Final = 100
"""Cost of looking at a log: 40 us where it is opened (measured); see `log.format.steps`."""


class DescribeLogsApi:
    """Answers DescribeLogDirs and DescribeProducers.

    Args:
        partitions: The partitions that the brokers host.
        access: Authorizes requests.
        jobs: Runs long work in steps.
        volume: Gives the log directory of a broker by its id.
    """

    __slots__ = ("_access", "_jobs", "_partitions", "_volume")

    def __init__(
        self,
        partitions: ReplicaManager,
        access: Access,
        jobs: Jobs,
        volume: Callable[[int], LogVolume],
    ) -> None:
        self._jobs = jobs
        self._partitions = partitions
        self._access = access
        self._volume = volume

    def handlers(self) -> Handlers:
        """Handlers of DescribeLogDirs and DescribeProducers."""
        return {
            ApiKey.DESCRIBE_LOG_DIRS: self._jobs.handler(self._log_dirs),
            ApiKey.DESCRIBE_PRODUCERS: self._jobs.handler(self._producers),
        }

    # -- DescribeLogDirs -------------------------------------------------------------------

    def _log_dirs(self, call: Call[DescribeLogDirsRequest]) -> Steps[DescribeLogDirsResponse]:
        if not self._access.allows(
            call.context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME
        ):
            return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        volume = self._volume(call.broker_id)
        topics: dict[str, list[DescribeLogDirsPartition]] = {}
        for place in self._asked(call):
            told = self._sizes(call, place)
            if told is not None:
                topics.setdefault(place[0], []).append(told)
            yield _A_LOG
        result = DescribeLogDirsResult(
            log_dir=volume.path,
            topics=tuple(DescribeLogDirsTopic(name, tuple(told)) for name, told in topics.items()),
            total_bytes=volume.total_bytes,
            usable_bytes=volume.usable_bytes,
        )
        return DescribeLogDirsResponse(results=(result,))

    def _asked(self, call: Call[DescribeLogDirsRequest]) -> list[Place]:
        asked = call.request.topics
        if asked is None:
            return [
                (topic.name, index)
                for topic in self._partitions.image.topics.values()
                for index in range(len(topic.partitions))
            ]
        named = ((topic.topic, index) for topic in asked for index in topic.partitions)
        return list(dict.fromkeys(named))

    def _sizes(
        self, call: Call[DescribeLogDirsRequest], place: Place
    ) -> DescribeLogDirsPartition | None:
        log = self._partitions.hosted(call.broker_id, place)
        if isinstance(log, ErrorCode):
            return None
        return DescribeLogDirsPartition(
            partition_index=place[1],
            partition_size=log.size_bytes,
            offset_lag=max(log.high_watermark - log.end_offset, 0),
        )

    # -- DescribeProducers -----------------------------------------------------------------

    def _producers(self, call: Call[DescribeProducersRequest]) -> Steps[DescribeProducersResponse]:
        topics: list[TopicResponse] = []
        for topic in call.request.topics:
            error, message = self._topic_error(call, topic.name)
            told: list[PartitionResponse] = []
            for index in topic.partition_indexes:
                if error is ErrorCode.NONE:
                    told.append(self._active_producers(call, (topic.name, index)))
                else:
                    told.append(PartitionResponse(index, error, message))
                yield _A_LOG
            topics.append(TopicResponse(topic.name, tuple(told)))
        return DescribeProducersResponse(topics=tuple(topics))

    def _topic_error(
        self, call: Call[DescribeProducersRequest], name: str
    ) -> tuple[ErrorCode, str | None]:
        message = complaint(name)
        if message is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION, message
        error = ErrorCode.NONE
        if not self._access.allows(call.context, Operation.READ, ResourceType.TOPIC, name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif name not in self._partitions.image.topics:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return error, None if error is ErrorCode.NONE else error_message(error)

    def _active_producers(
        self, call: Call[DescribeProducersRequest], place: Place
    ) -> PartitionResponse:
        log = self._partitions.hosted(call.broker_id, place)
        if isinstance(log, ErrorCode):
            return PartitionResponse(partition_index=place[1], error_code=log)
        return PartitionResponse(
            partition_index=place[1],
            active_producers=tuple(
                ProducerState(
                    producer_id=each.producer_id,
                    producer_epoch=each.producer_epoch,
                    last_sequence=each.last_sequence,
                    last_timestamp=each.last_timestamp_ms,
                    coordinator_epoch=each.coordinator_epoch,
                    current_txn_start_offset=each.current_txn_start_offset,
                )
                for each in log.producers()
            ),
        )
