"""One broker: answers what any broker may, and routes the rest to its group coordinator."""

from collections.abc import Callable
from typing import Protocol, cast

from coordinator_sim.broker.view import ClusterView
from coordinator_sim.coordinator.contract import CoordinatorResult, Reply
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    FindCoordinatorRequest,
    MetadataRequest,
    RequestContext,
)
from coordinator_sim.protocol.records import LogBatch
from coordinator_sim.protocol.requests import GroupRequest, Request


class Coordinator(Protocol):
    """The verbs of a group coordinator that a broker uses; see `GroupCoordinator`."""

    def handle(
        self, request: GroupRequest, context: RequestContext, now_ms: int
    ) -> CoordinatorResult:
        """Take one request."""
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


Handler = Callable[[Request, RequestContext, int], CoordinatorResult]
"""Takes a request with its context and the present instant in ms."""


class Broker:
    """A living broker process.

    Args:
        broker_id: Its id, 1 or more.
        view: The metadata image that all brokers share.
        coordinator: Its group coordinator, empty at first.
    """

    __slots__ = ("_own_handlers", "_view", "broker_id", "coordinator")

    def __init__(self, broker_id: int, view: ClusterView, coordinator: Coordinator) -> None:
        self.broker_id = broker_id
        self.coordinator = coordinator
        self._view = view
        self._own_handlers = {
            MetadataRequest: cast("Handler", self._metadata),
            FindCoordinatorRequest: cast("Handler", self._find_coordinator),
        }

    def handler_of(self, request_type: type[Request]) -> Handler:
        """Who takes requests of that type: the group coordinator, or the broker itself."""
        own = self._own_handlers.get(request_type)
        return cast("Handler", self.coordinator.handle) if own is None else own

    def _metadata(
        self, request: MetadataRequest, context: RequestContext, _now_ms: int
    ) -> CoordinatorResult:
        return CoordinatorResult(replies=(Reply(context.token, self._view.metadata(request)),))

    def _find_coordinator(
        self, request: FindCoordinatorRequest, context: RequestContext, _now_ms: int
    ) -> CoordinatorResult:
        response = self._view.find_coordinator(request)
        return CoordinatorResult(replies=(Reply(context.token, response),))
