"""How share partitions and group coordinators reach the share coordinators; implements `Persister`.

Each share partition is asked for by itself: at the broker that leads the partition of the topic,
which is looked up anew before each attempt. The topic is created when it is needed first; what
asked for it waits for the next attempt.

DEVIATION: several share partitions of one group go to a broker one by one, and at once. Kafka puts
those that wait into one request; each has its own result all the same.

DEVIATION: a broker that does not answer is known as one that is away. Kafka waits 30 seconds for
its answer.

Source: kafka 4.3, server-common/.../share/persister/PersisterStateManager.java and
DefaultStatePersister.java; ExponentialBackoff.java; ShareCoordinatorMetadataCacheHelperImpl.java.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.hosting import FollowingHosting
from coordinator_sim.broker.metadata.image import NO_LEADER
from coordinator_sim.broker.share_coordinator.operations import StateRequest, StateResponse
from coordinator_sim.broker.share_coordinator.service import ShareCoordinator
from coordinator_sim.broker.shares.persister import (
    ReadState,
    SharePartitionKey,
    StateBatch,
    StateRead,
    StateSummary,
    StateWritten,
    WriteState,
)
from coordinator_sim.broker.shares.share_values import state_partition
from coordinator_sim.coordinator.modern.share.persister import (
    DeleteState,
    InitializeState,
    PartitionOutcome,
    PersisterAnswer,
)
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import integer_hash, uuid_hash
from coordinator_sim.kafka.orders.java_map import JavaHashMap
from coordinator_sim.kafka.partitioning import SHARE_STATE_TOPIC
from coordinator_sim.log.format.steps import finished
from coordinator_sim.messages import delete_share_group_state as delete
from coordinator_sim.messages import initialize_share_group_state as initialize
from coordinator_sim.messages import read_share_group_state as read
from coordinator_sim.messages import read_share_group_state_summary as summary
from coordinator_sim.messages import write_share_group_state as write

MAX_ATTEMPTS: Final = 5
"""Attempts to find the coordinator, and as many to be answered by it. Source:
PersisterStateManager.MAX_FIND_COORD_ATTEMPTS."""
_BACKOFF_MS: Final = 1_000
_BACKOFF_MAX_MS: Final = 30_000
_JITTER: Final = 0.2
_RETRIABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NETWORK_EXCEPTION,
    }
)

Told = Callable[[Any, ErrorCode, str | None], None]
"""Hears once how a call ended: the partition's result, or an error with words."""


def backoff_ms(attempts: int, drawn: float) -> int:
    """How long to wait after so many attempts; `drawn` is from 0 up to, and without, 1."""
    factor = 1 - _JITTER + 2 * _JITTER * drawn
    return min(int(factor * min(_BACKOFF_MS << attempts, _BACKOFF_MAX_MS)), _BACKOFF_MAX_MS)


class StatePersister:
    """Asks the share coordinators of a cluster.

    Args:
        hosting: The coordinators.
        cluster: The parts of the cluster.
        draw: Gives a number from 0 up to, and without, 1.
    """

    def __init__(
        self,
        hosting: FollowingHosting[ShareCoordinator],
        cluster: ClusterParts,
        draw: Callable[[], float],
    ) -> None:
        self._hosting = hosting
        self._cluster = cluster
        self._image = cluster.image
        self._draw = draw
        self._failed_at: tuple[int, int] | None = None
        self._due_ms = 0

    # -- for share partitions -----------------------------------------------------------------

    def read(self, request: ReadState, then: Callable[[StateRead], None], now: Instants) -> None:
        """Read the state of a partition; see `Persister.read`."""
        key = request.key
        asked = read.PartitionData(key.partition, request.leader_epoch)
        topics = (read.ReadStateData(key.topic_id, (asked,)),)

        def told(found: Any, error: ErrorCode, message: str | None) -> None:  # noqa: ANN401 - see `Told`
            if error is not ErrorCode.NONE:
                then(StateRead(error=error, message=message))
                return
            batches = tuple(
                StateBatch(
                    each.first_offset, each.last_offset, each.delivery_state, each.delivery_count
                )
                for each in found.state_batches
            )
            then(StateRead(found.state_epoch, found.start_offset, batches))

        self._ask(key, read.ReadShareGroupStateRequest(key.group_id, topics), told, now)

    def write(
        self, request: WriteState, then: Callable[[StateWritten], None], now: Instants
    ) -> None:
        """Write changes of the state of a partition; see `Persister.write`."""
        key = request.key
        asked = write.PartitionData(
            partition=key.partition,
            state_epoch=request.state_epoch,
            leader_epoch=request.leader_epoch,
            start_offset=request.start_offset,
            delivery_complete_count=request.delivery_complete_count,
            state_batches=tuple(
                write.StateBatch(
                    each.first_offset, each.last_offset, each.delivery_state, each.delivery_count
                )
                for each in request.batches
            ),
        )
        topics = (write.WriteStateData(key.topic_id, (asked,)),)
        self._ask(
            key,
            write.WriteShareGroupStateRequest(key.group_id, topics),
            lambda _found, error, message: then(StateWritten(error, message)),
            now,
        )

    def summary(
        self, request: ReadState, then: Callable[[StateSummary], None], now: Instants
    ) -> None:
        """Read where a group is in a partition; see `Persister.summary`."""
        key = request.key
        asked = summary.PartitionData(key.partition, request.leader_epoch)
        topics = (summary.ReadStateSummaryData(key.topic_id, (asked,)),)

        def told(found: Any, error: ErrorCode, message: str | None) -> None:  # noqa: ANN401 - see `Told`
            if error is not ErrorCode.NONE:
                then(StateSummary(error=error, message=message))
                return
            then(
                StateSummary(
                    found.state_epoch,
                    found.leader_epoch,
                    found.start_offset,
                    found.delivery_complete_count,
                )
            )

        self._ask(key, summary.ReadShareGroupStateSummaryRequest(key.group_id, topics), told, now)

    # -- for group coordinators ---------------------------------------------------------------

    def initialize(
        self, request: InitializeState, then: Callable[[PersisterAnswer], None], now: Instants
    ) -> None:
        """Begin to keep the state of partitions; see `Persister.initialize`."""
        group_id = request.group_id
        calls: list[tuple[SharePartitionKey, StateRequest]] = []
        for topic_id, starts in request.topics:
            for start in starts:
                key = SharePartitionKey(group_id, topic_id, start.partition)
                asked = initialize.PartitionData(
                    start.partition, start.state_epoch, start.start_offset
                )
                topics = (initialize.InitializeStateData(topic_id, (asked,)),)
                calls.append((key, initialize.InitializeShareGroupStateRequest(group_id, topics)))
        self._ask_all(calls, request, then, now)

    def delete(
        self, request: DeleteState, then: Callable[[PersisterAnswer], None], now: Instants
    ) -> None:
        """Forget the state of partitions; see `Persister.delete`."""
        group_id = request.group_id
        calls: list[tuple[SharePartitionKey, StateRequest]] = []
        for topic_id, partitions in request.topics:
            for partition in partitions:
                key = SharePartitionKey(group_id, topic_id, partition)
                topics = (delete.DeleteStateData(topic_id, (delete.PartitionData(partition),)),)
                calls.append((key, delete.DeleteShareGroupStateRequest(group_id, topics)))
        self._ask_all(calls, request, then, now)

    def _ask_all(
        self,
        calls: list[tuple[SharePartitionKey, StateRequest]],
        request: InitializeState | DeleteState,
        then: Callable[[PersisterAnswer], None],
        now: Instants,
    ) -> None:
        places = request.partitions_by_topic()
        is_empty = not places or any(not partitions for _, partitions in places)
        if not request.group_id or is_empty or any(key.partition < 0 for key, _ in calls):
            # Kafka throws an IllegalArgumentException. Source: DefaultStatePersister.validate.
            then(PersisterAnswer(failure=ErrorCode.UNKNOWN_SERVER_ERROR))
            return
        outcomes = _Outcomes(calls, then)
        for key, call in calls:
            self._ask(key, call, outcomes.told_of(key), now)

    # -- attempts -----------------------------------------------------------------------------

    def _ask(
        self, key: SharePartitionKey, request: StateRequest, told: Told, now: Instants
    ) -> None:
        if not key.group_id or key.partition < 0:
            # Kafka throws an IllegalArgumentException. Source: DefaultStatePersister.validate.
            error = ErrorCode.UNKNOWN_SERVER_ERROR
            told(None, error, error_message(error))
            return
        self.attempt(_Call(key, request, told), now)

    def attempt(self, call: "_Call", now: Instants) -> None:
        """Look the coordinator up, and ask it. Source: SendThread.generateRequests."""
        leader_id = self._leader_of(call.key)
        if leader_id is None:
            if SHARE_STATE_TOPIC not in self._image.topics:
                self._cluster.topics.create_asked_for(SHARE_STATE_TOPIC, now)
            self._lookup_failed(call, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        call.lookups = 0
        if not self._cluster.brokers.is_running(leader_id):
            self._failed(call, ErrorCode.NETWORK_EXCEPTION, None)
            return
        coordinator = self._hosting.coordinator(leader_id, now)
        finished(
            coordinator.handle(
                call.request, lambda response: self._answered(call, response), now.group_ms
            )
        )

    def _leader_of(self, key: SharePartitionKey) -> int | None:
        state = self._image.topics.get(SHARE_STATE_TOPIC)
        if state is None:
            return None
        leader_id = state.partitions[state_partition(key, len(state.partitions))].leader_id
        return None if leader_id == NO_LEADER else leader_id

    def _lookup_failed(self, call: "_Call", error: ErrorCode) -> None:
        """Source: handleFindCoordinatorResponse."""
        call.lookups += 1
        if call.lookups < MAX_ATTEMPTS:
            self._again(call, call.lookups)
            return
        text = "Exhausted max retries to find coordinator without success."
        call.told(None, error, f"Error in find coordinator. {text}")

    def _answered(self, call: "_Call", response: StateResponse) -> None:
        """Source: handleRequestResponse of each API."""
        found: Any = response.results[0].partitions[0]
        if found.error_code is ErrorCode.NONE:
            call.told(found, ErrorCode.NONE, None)
            return
        self._failed(call, found.error_code, found.error_message)

    def _failed(self, call: "_Call", error: ErrorCode, message: str | None) -> None:
        call.attempts += 1
        words = _WORDS[type(call.request)]
        if error not in _RETRIABLE:
            text = message or error_message(error)
            call.told(None, error, f"Error in {words} RPC. {text}")
        elif call.attempts < MAX_ATTEMPTS:
            self._again(call, call.attempts)
        else:
            text = f"Exhausted max retries to complete {words} RPC without success."
            call.told(None, error, f"Error in {words} RPC. {text}")

    def _again(self, call: "_Call", attempts: int) -> None:
        """Try a call again after its backoff.

        DEVIATION: calls that fail in one instant are tried again in one instant, as many as they
        are; Kafka draws the jitter of each. Whoever waits for all of them waits as long.
        """
        failed = (self._cluster.latest.wall_ms, attempts)
        if failed != self._failed_at:
            self._failed_at = failed
            self._due_ms = failed[0] + backoff_ms(attempts, self._draw())
        self._cluster.scheduler.at_wall_ms(self._due_ms, lambda now: self.attempt(call, now))


_WORDS: Final[dict[type, str]] = {
    initialize.InitializeShareGroupStateRequest: "initialize state",
    read.ReadShareGroupStateRequest: "read state",
    write.WriteShareGroupStateRequest: "write state",
    delete.DeleteShareGroupStateRequest: "delete state",
    summary.ReadShareGroupStateSummaryRequest: "read state summary",
}
"""What a request is called in an error's words."""


class _Call(Struct, eq=False):
    """A request about one share partition.

    Args:
        lookups: Attempts to find the coordinator since it was found last.
        attempts: Attempts to be answered by it.
    """

    key: SharePartitionKey
    request: StateRequest
    told: Told
    lookups: int = 0
    attempts: int = 0


class _Outcomes:
    """Collects the results of one call's share partitions, in the order of Java's maps.

    Source: DefaultStatePersister.initializeResponsesToResult and deleteResponsesToResult.
    """

    __slots__ = ("_left", "_then", "_topics")

    def __init__(
        self,
        calls: list[tuple[SharePartitionKey, StateRequest]],
        then: Callable[[PersisterAnswer], None],
    ) -> None:
        self._then = then
        self._left = len(calls)
        self._topics: JavaHashMap[bytes, JavaHashMap[int, ErrorCode]] = JavaHashMap(uuid_hash)
        for key, _ in calls:
            partitions = self._topics.compute(key.topic_id, lambda: JavaHashMap(integer_hash))
            partitions.compute(key.partition, lambda: ErrorCode.NONE)

    def told_of(self, key: SharePartitionKey) -> Told:
        """The callback that records the result of one share partition."""

        def told(_found: object, error: ErrorCode, _message: str | None) -> None:
            partitions = self._topics.get(key.topic_id)
            if partitions is not None and partitions.get(key.partition) is ErrorCode.NONE:
                partitions.put(key.partition, error)
            self._left -= 1
            if self._left == 0:
                self._then(self._answer())

        return told

    def _answer(self) -> PersisterAnswer:
        return PersisterAnswer(
            tuple(
                (
                    topic_id,
                    tuple(PartitionOutcome(index, error) for index, error in partitions.items()),
                )
                for topic_id, partitions in self._topics.items()
            )
        )
