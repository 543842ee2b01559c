"""One broker: answers what any broker can, and routes other requests to its group coordinator."""

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
from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.messages.requests import GroupRequest, Request
from coordinator_sim.messages.write_txn_markers import WriteTxnMarkersRequest
from coordinator_sim.protocol.completion import CompleteTransaction
from coordinator_sim.protocol.context import RequestContext
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.profiles import DEFAULT_PROFILE, Profile
from coordinator_sim.protocol.records import LogBatch
from coordinator_sim.protocol.resources import TopicPartition

_FENCED_UNDERSTOOD: Final = 2


class Coordinator(Protocol):
    """The methods of a group coordinator that a broker uses; see `GroupCoordinator`."""

    def handle(
        self, request: GroupRequest, context: RequestContext, now_ms: int
    ) -> CoordinatorResult:
        """Handle one request."""
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
        """Resign as leader of the partition."""
        ...

    def metrics(self) -> CoordinatorMetrics:
        """The coordinator's metrics now."""
        ...

    def hold_high_watermark(self, hold: bool, partition: int | None = None) -> None:
        """Set whether records appended to the partition stay uncommitted from now on."""
        ...

    def advance_high_watermark(self, partition: int, offset: int, now_ms: int) -> CoordinatorResult:
        """Commit records up to `offset`, or up to the log's end if that is lower."""
        ...

    def end_offset(self, partition: int) -> int:
        """End offset of an offsets partition."""
        ...


Handler = Callable[[Request, RequestContext, int], CoordinatorResult]
"""Takes a request with its context and the present instant in ms."""


class Services(Struct, frozen=True):
    """Services that the brokers of one cluster share.

    Args:
        profile: Kafka version of all brokers.
        authorizer: Authorizes requests; None allows everything.
        transactions: Transactions of all producers.
        offsets_logs: Append policy of all coordinators; refuses fenced producers.
        data_logs: Logs of ordinary topics by topic and partition.
        old_offsets: Offsets of version 0 commits.
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
        offsets_partitions: Number of partitions of the offsets topic.
        profile: Kafka version of all brokers.
        authorizer: Authorizes requests; None allows everything.
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
        broker_id: Id of the broker, 1 or more.
        view: The metadata image that all brokers share.
        coordinator: The broker's group coordinator, empty at first.
        services: Services shared with the other brokers.
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
        """The handler of a request type: the broker itself, its edge, or the coordinator.

        The handler's result must go through `pass_on`.
        """
        own = self._own_handlers.get(request_type)
        if own is not None:
            return own
        if self._apis.asks_nothing_of(request_type):
            return cast("Handler", self.coordinator.handle)
        return self._apis.handle

    def pass_on(self, result: CoordinatorResult) -> CoordinatorResult:
        """Complete the result of a handler or of a method of the coordinator."""
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
        """Answer AddOffsetsToTxn. Source: KafkaApis.handleAddOffsetsToTxnRequest."""
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
