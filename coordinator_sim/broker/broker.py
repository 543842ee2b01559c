"""One broker: answers what any broker may, and routes the rest to its group coordinator."""

from collections.abc import Callable
from typing import Final, Protocol, cast

from msgspec import Struct

from coordinator_sim.broker.authorizer import Authorizer, Operation, ResourceType
from coordinator_sim.broker.discovery import Discovery
from coordinator_sim.broker.group_apis import GroupApis
from coordinator_sim.broker.logs import DataLog, OffsetsLogs
from coordinator_sim.broker.marker_writer import MarkerWriter
from coordinator_sim.broker.passage import Access
from coordinator_sim.broker.transactions import TransactionCoordinator
from coordinator_sim.broker.view import ClusterView
from coordinator_sim.broker.zookeeper_offsets import ZooKeeperOffsets
from coordinator_sim.coordinator.contract import CoordinatorResult, Reply
from coordinator_sim.coordinator.metrics import CoordinatorMetrics
from coordinator_sim.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.requests import GroupRequest, Request
from coordinator_sim.messages.write_txn_markers import WriteTxnMarkersRequest
from coordinator_sim.protocol.cluster_view import MetadataRequest
from coordinator_sim.protocol.completion import CompleteTransaction
from coordinator_sim.protocol.context import RequestContext
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.profiles import DEFAULT_PROFILE, Profile
from coordinator_sim.protocol.records import LogBatch
from coordinator_sim.protocol.resources import TopicPartition

_FENCED_UNDERSTOOD: Final = 2


class Coordinator(Protocol):
    """The verbs of a group coordinator that a broker uses; see `GroupCoordinator`."""

    def handle(
        self, request: GroupRequest, context: RequestContext, now_ms: int
    ) -> CoordinatorResult:
        """Take one request."""
        ...

    def complete_transaction(
        self, request: CompleteTransaction, context: RequestContext, now_ms: int
    ) -> CoordinatorResult:
        """End a producer's transaction on one offsets partition."""
        ...

    def expire(self, now_ms: int) -> CoordinatorResult:
        """Fire every deadline up to now."""
        ...

    def wake_up_ms(self) -> int | None:
        """An instant not after the earliest deadline, or None."""
        ...

    def begin_load(self, partition: int, leader_epoch: int, now_ms: int) -> CoordinatorResult:
        """Become leader of an offsets partition and start to load it."""
        ...

    def replay(self, partition: int, batch: LogBatch) -> None:
        """Apply one batch of the partition's log."""
        ...

    def finish_load(self, partition: int, error: ErrorCode, now_ms: int) -> CoordinatorResult:
        """End the load and serve the partition."""
        ...

    def unload(self, partition: int, leader_epoch: int, now_ms: int) -> CoordinatorResult:
        """Give the partition up."""
        ...

    def metrics(self) -> CoordinatorMetrics:
        """What its metrics show now."""
        ...

    def hold_high_watermark(self, hold: bool, partition: int | None = None) -> None:
        """From now on, whether what is appended to the partition stays uncommitted."""
        ...

    def advance_high_watermark(self, partition: int, offset: int, now_ms: int) -> CoordinatorResult:
        """Replication caught up to `offset`, or as far as there is something."""
        ...

    def end_offset(self, partition: int) -> int:
        """Where the next record of that offsets partition goes."""
        ...


Handler = Callable[[Request, RequestContext, int], CoordinatorResult]
"""Takes a request with its context and the present instant in ms."""


class Services(Struct, frozen=True):
    """What the brokers of one cluster share, and what is asked before a request is worked on.

    Args:
        profile: The Kafka that all brokers are.
        authorizer: None to allow everything.
        transactions: Of all producers.
        offsets_logs: The append policy of every coordinator that is to refuse old producers.
        data_logs: Partitions of ordinary topics by their place.
        old_offsets: Those of version 0.
    """

    profile: Profile
    transactions: TransactionCoordinator
    offsets_logs: OffsetsLogs
    data_logs: dict[TopicPartition, DataLog]
    old_offsets: ZooKeeperOffsets
    authorizer: Authorizer | None = None


def make_services(
    offsets_partitions: int,
    profile: Profile = DEFAULT_PROFILE,
    authorizer: Authorizer | None = None,
    metadata_limit: int = 4_096,
) -> Services:
    """The services of a new cluster.

    Args:
        offsets_partitions: Of its offsets topic.
        profile: The Kafka that all brokers are.
        authorizer: None to allow everything.
        metadata_limit: `offset.metadata.max.bytes`.
    """
    return Services(
        profile,
        TransactionCoordinator(offsets_partitions),
        OffsetsLogs(),
        data_logs={},
        old_offsets=ZooKeeperOffsets(metadata_limit),
        authorizer=authorizer,
    )


class Broker:
    """A living broker process.

    Args:
        broker_id: Its id, 1 or more.
        view: The metadata image that all brokers share.
        coordinator: Its group coordinator, empty at first.
        services: Shared with the other brokers.
    """

    __slots__ = (
        "_access",
        "_apis",
        "_discovery",
        "_markers",
        "_own_handlers",
        "_services",
        "_view",
        "broker_id",
        "coordinator",
    )

    def __init__(
        self, broker_id: int, view: ClusterView, coordinator: Coordinator, services: Services
    ) -> None:
        self.broker_id = broker_id
        self.coordinator = coordinator
        self._view = view
        self._services = services
        self._access = Access(services.authorizer)
        self._apis = GroupApis(
            coordinator,
            services.profile,
            topics=view.catalogue,
            old_offsets=services.old_offsets,
            authorizer=services.authorizer,
        )
        self._discovery = Discovery(view, self._access)
        self._markers = MarkerWriter(coordinator, services.data_logs.get, self._access)
        self._own_handlers = {
            MetadataRequest: cast("Handler", self._metadata),
            FindCoordinatorRequest: cast("Handler", self._find_coordinator),
            AddOffsetsToTxnRequest: cast("Handler", self._add_offsets),
            WriteTxnMarkersRequest: cast("Handler", self._write_markers),
        }

    def handler_of(self, request_type: type[Request]) -> Handler:
        """Who takes requests of that type: the broker itself, its edge, or the coordinator.

        What the handler returns goes through `pass_on`.
        """
        own = self._own_handlers.get(request_type)
        if own is not None:
            return own
        if self._apis.asks_nothing_of(request_type):
            return cast("Handler", self.coordinator.handle)
        return self._apis.handle

    def pass_on(self, result: CoordinatorResult) -> CoordinatorResult:
        """Complete what a handler or a verb of the coordinator caused."""
        return self._markers.pass_on(self._apis.pass_on(result))

    def _metadata(
        self, request: MetadataRequest, context: RequestContext, _now_ms: int
    ) -> CoordinatorResult:
        return CoordinatorResult(replies=(Reply(context.token, self._view.metadata(request)),))

    def _find_coordinator(
        self, request: FindCoordinatorRequest, context: RequestContext, _now_ms: int
    ) -> CoordinatorResult:
        response = self._discovery.find(request, context)
        return CoordinatorResult(replies=(Reply(context.token, response),))

    def _add_offsets(
        self, request: AddOffsetsToTxnRequest, context: RequestContext, _now_ms: int
    ) -> CoordinatorResult:
        """Source: KafkaApis.handleAddOffsetsToTxnRequest."""
        error = self._add_offsets_error(request, context)
        if error is ErrorCode.PRODUCER_FENCED and context.api_version < _FENCED_UNDERSTOOD:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        response = AddOffsetsToTxnResponse(error_code=error)
        return CoordinatorResult(replies=(Reply(context.token, response),))

    def _add_offsets_error(
        self, request: AddOffsetsToTxnRequest, context: RequestContext
    ) -> ErrorCode:
        allows = self._access.allows
        transactional_id = request.transactional_id
        if not allows(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if not allows(context, Operation.READ, ResourceType.GROUP, request.group_id):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        return self._services.transactions.add_offsets(
            transactional_id, request.producer_id, request.producer_epoch, request.group_id
        )

    def _write_markers(
        self, request: WriteTxnMarkersRequest, context: RequestContext, now_ms: int
    ) -> CoordinatorResult:
        return self._markers.handle(request, context, now_ms)
