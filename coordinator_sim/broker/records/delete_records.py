"""DeleteRecords: move the start of logs forward.

Source: kafka trunk, KafkaApis.handleDeleteRecordsRequest; ReplicaManager.deleteRecords;
Partition.deleteRecordsOnLeader.
"""

from functools import partial
from typing import Final

from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.broker.scheduler import Jobs
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import Operation, ResourceType
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.topic_names import is_internal
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

_NO_LOW_WATERMARK: Final = -1
_A_DELETION: Final = 100
"""Cost of a partition: 40 us (measured); see `log.format.steps`."""


class DeleteRecordsApi:
    """Answers DeleteRecords.

    Args:
        partitions: The partitions that the brokers host.
        access: Authorizes requests.
        jobs: Runs long work in steps.
    """

    __slots__ = ("_access", "_jobs", "_partitions")

    def __init__(self, partitions: ReplicaManager, access: Access, jobs: Jobs) -> None:
        self._jobs = jobs
        self._partitions = partitions
        self._access = access

    def handlers(self) -> Handlers:
        """The handler of DeleteRecords."""
        return {ApiKey.DELETE_RECORDS: self._jobs.handler(self._deletions)}

    def _deletions(self, call: Call[DeleteRecordsRequest]) -> Steps[DeleteRecordsResponse]:
        """Answer without waiting: replicas share one log, so all delete in the same instant.

        UNSPECIFIED: Kafka's order of topics and partitions is that of a hash map; here it is the
        request's.
        """
        topics: dict[str, dict[int, DeleteRecordsPartitionResult]] = {}
        for topic in call.request.topics:
            told = topics.setdefault(topic.name, {})
            for each in topic.partitions:
                place = (topic.name, each.partition_index)
                outcome = self._deleted(call, place, each.offset)
                told[place[1]] = _result(place[1], outcome)
                yield _A_DELETION
        return DeleteRecordsResponse(
            topics=tuple(
                DeleteRecordsTopicResult(name, tuple(told.values()))
                for name, told in topics.items()
            )
        )

    def _deleted(
        self, call: Call[DeleteRecordsRequest], place: Place, offset: int
    ) -> int | ErrorCode:
        """The new start of the log, or the error."""
        if not self._access.allows(call.context, Operation.DELETE, ResourceType.TOPIC, place[0]):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if self._partitions.image.partition(*place) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if is_internal(place[0]):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        log = self._partitions.local_log(call.broker_id, place)
        if isinstance(log, ErrorCode):
            return log
        error = self._partitions.attempt(place, partial(log.delete_before, offset))
        return log.log_start_offset if error is ErrorCode.NONE else error


def _result(partition: int, outcome: int | ErrorCode) -> DeleteRecordsPartitionResult:
    # ErrorCode is an int as well, so look for it first.
    if isinstance(outcome, ErrorCode):
        return DeleteRecordsPartitionResult(partition, _NO_LOW_WATERMARK, outcome)
    return DeleteRecordsPartitionResult(partition, outcome)
