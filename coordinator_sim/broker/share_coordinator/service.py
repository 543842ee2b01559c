"""The share coordinator of one broker: requests in parts, one for each share partition.

A request is answered when all of its parts are; each may be of another partition of the topic.

Source: kafka 4.3, share-coordinator/.../ShareCoordinatorService.java; coordinator-common/.../
CoordinatorOperationExceptionHelper.java.
"""

from collections.abc import Callable, Collection
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.scheduler import WakeBy
from coordinator_sim.broker.share_coordinator import operations
from coordinator_sim.broker.share_coordinator.jobs import PeriodicJobs
from coordinator_sim.broker.share_coordinator.ports import (
    KnownTopics,
    ShareCoordinatorConfig,
    StateLog,
)
from coordinator_sim.broker.share_coordinator.runtime import Operation, ShareCoordinatorRuntime
from coordinator_sim.broker.share_coordinator.shard import Refusal, ShareCoordinatorShard
from coordinator_sim.broker.shares.persister import SharePartitionKey
from coordinator_sim.broker.shares.share_values import state_partition
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import integer_hash, uuid_hash
from coordinator_sim.kafka.orders.java_map import JavaHashMap
from coordinator_sim.log.format.steps import Steps

Answer = Callable[[operations.StateResponse], None]
"""Takes the answer of a request, at once or later."""

_A_PARTITION: Final = 150
"""Cost of writing a share partition's state: 66 us (measured); see `log.format.steps`."""
_NOT_AVAILABLE: Final = "Share coordinator is not available."
_TOLD_AS: Final = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What an error of a write is told as. Source: handleOperationException."""


class _Parts:
    """The parts of one request, and who waits for all of them.

    Of a share partition that is named twice the last part counts, though all of them are done.
    """

    __slots__ = ("_answer", "_is_complete", "_missing_count", "_operation", "_topics")

    def __init__(self, operation: operations.ApiOperation, answer: Answer) -> None:
        self._operation = operation
        self._answer = answer
        self._is_complete = False
        self._missing_count = 0
        self._topics: JavaHashMap[bytes, JavaHashMap[int, _Part]] = JavaHashMap(uuid_hash)

    def add(self, topic_id: bytes, partition: int) -> "_Part":
        """One more part."""
        part = _Part(self, self._operation, partition)
        partitions = self._topics.compute(topic_id, lambda: JavaHashMap(integer_hash))
        replaced = partitions.get(partition)
        partitions.put(partition, part)
        if replaced is None or replaced.result is not None:
            self._missing_count += 1
        else:
            replaced.counts = False
        return part

    def complete(self) -> None:
        """All parts are there: answer as soon as they are done."""
        self._is_complete = True
        self._answer_if_done()

    def done(self) -> None:
        """One of the parts that count is done."""
        self._missing_count -= 1
        self._answer_if_done()

    def _answer_if_done(self) -> None:
        if not self._is_complete or self._missing_count:
            return
        self._is_complete = False
        operation = self._operation
        results = (
            operation.topic_result(topic_id, tuple(part.result for _, part in parts.items()))
            for topic_id, parts in self._topics.items()
        )
        self._answer(operation.response(tuple(results)))


class _Part(Struct, eq=False):
    """What becomes of one share partition of a request.

    Args:
        counts: Whether the request waits for it: not when it was named again since.
    """

    parts: _Parts
    operation: operations.ApiOperation
    partition: int
    result: Any = None
    counts: bool = True

    def told(self, result: Any, failure: Refusal | None) -> None:  # noqa: ANN401 - any API's
        """The operation has ended."""
        if failure is not None:
            words = f"Unable to {self.operation.words}: {failure.message}"
            error = _TOLD_AS.get(failure.error, failure.error)
            result = self.operation.partition_result(self.partition, error, words)
        self.result = result
        if self.counts:
            self.parts.done()


class ShareCoordinator:
    """One broker's share coordinator.

    Args:
        config: Settings of the broker.
        log: The topic.
        topics: What topics there are.
        wake_by: Arms the alarm for a deadline, by the group clock.

    Attributes:
        runtime: The partitions that it leads.
        jobs: What it does every few minutes.
    """

    def __init__(
        self, config: ShareCoordinatorConfig, log: StateLog, topics: KnownTopics, wake_by: WakeBy
    ) -> None:
        self._config = config
        self._is_active = False
        self.runtime = ShareCoordinatorRuntime(config, log, topics, wake_by)
        self.jobs = PeriodicJobs(config, self.runtime, log)
        self.runtime.idle = self.jobs.arm

    # -- life ---------------------------------------------------------------------------------

    def startup(self) -> None:
        """Take requests from now on."""
        self._is_active = True

    def shutdown(self, now_ms: int) -> None:
        """Take no requests any more, and give up all partitions."""
        self.runtime.now_ms = now_ms
        self._is_active = False
        self.jobs.enable(is_enabled=False)
        self.runtime.close()

    def on_election(self, partition: int, leader_epoch: int, now: Instants) -> None:
        """Load a partition that this broker leads from now on."""
        self._begin(now.group_ms)
        self.runtime.load(partition, leader_epoch)

    def on_resignation(self, partition: int, leader_epoch: int | None, now: Instants) -> None:
        """Give up a partition that another broker leads now; None where the topic is gone."""
        self._begin(now.group_ms)
        self.jobs.forget(partition)
        self.runtime.unload(partition, leader_epoch)

    def enable(self, *, is_enabled: bool, now_ms: int) -> None:
        """Whether the cluster has share groups: without them nothing is done periodically."""
        self._begin(now_ms)
        self.jobs.enable(is_enabled=is_enabled)

    def topics_deleted(self, topic_ids: Collection[bytes], now_ms: int) -> None:
        """Forget the share partitions of topics. Source: handleTopicsDeletion."""
        self._begin(now_ms)

        def act(shard: ShareCoordinatorShard) -> tuple[Any, None]:
            return shard.without_topics(topic_ids), None

        # What fails is told to nobody: Kafka logs it.
        self.runtime.write_all("on-topics-deleted", act, lambda _result, _failure: None)

    def committed(self, partition: int, offset: int, now_ms: int) -> None:
        """A partition's log is committed up to that offset."""
        self._begin(now_ms)
        self.runtime.committed(partition, offset)

    # -- requests -----------------------------------------------------------------------------

    def handle(self, request: operations.StateRequest, answer: Answer, now_ms: int) -> Steps[None]:
        """Work on a request, a share partition a step; see `Answer`."""
        self._begin(now_ms)
        operation = operations.API_OPERATIONS[type(request)]
        is_empty = (
            not request.group_id
            or not request.topics
            or (
                operation.wants_partitions and any(not topic.partitions for topic in request.topics)
            )
        )
        if not self._is_active and not (is_empty and operation.looks_before):
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            answer(operations.failed_everywhere(request, error, _NOT_AVAILABLE))
            return
        if is_empty:
            answer(operation.response())
            return
        parts = _Parts(operation, answer)
        for topic in request.topics:
            for asked in topic.partitions:
                key = SharePartitionKey(request.group_id, topic.topic_id, asked.partition)
                self._ask(operation, key, asked, parts.add(topic.topic_id, asked.partition))
                yield _A_PARTITION
        parts.complete()

    def _ask(
        self,
        operation: operations.ApiOperation,
        key: SharePartitionKey,
        asked: Any,  # noqa: ANN401 - what the API says of a partition
        part: _Part,
    ) -> None:
        def act(shard: ShareCoordinatorShard) -> tuple[Any, Any]:
            return operation.act(shard, key, asked, self.runtime.now_ms)

        place = state_partition(key, self._config.state_topic_partitions)
        name = f"CoordinatorWriteEvent(name={operation.name})"
        self.runtime.enqueue(Operation(place, name, act, part.told))

    # -- time ---------------------------------------------------------------------------------

    def _begin(self, now_ms: int) -> None:
        self.jobs.catch_up(now_ms)
        self.runtime.now_ms = max(self.runtime.now_ms, now_ms)

    def expire(self, now_ms: int) -> None:
        """Fire every deadline up to now."""
        self.jobs.catch_up(now_ms)
        self.runtime.expire(now_ms)

    def arm(self) -> None:
        """Arm the alarm for the earliest deadline."""
        self.runtime.wake_by(self.next_group_deadline_ms())

    def next_group_deadline_ms(self) -> int | None:
        """The earliest deadline that finds something to do."""
        return self.jobs.next_deadline_ms()
