"""One broker process of a served cluster: its group coordinator and the edge around it."""

from coordinator_sim.broker.authorizer import Authorizer
from coordinator_sim.broker.group_apis import GroupApis
from coordinator_sim.broker.topics import Topics
from coordinator_sim.broker.zookeeper_offsets import ZooKeeperOffsets
from coordinator_sim.coordinator.contract import CoordinatorResult
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.messages.requests import GroupRequest
from coordinator_sim.protocol.context import RequestContext
from coordinator_sim.protocol.profiles import Profile


class LivingBroker:
    """A broker that runs.

    Args:
        broker_id: Its id.
        coordinator: Its group coordinator, empty at first.
        profile: Of the cluster.
        topics: What exists, shared by all brokers.
        old_offsets: Those of version 0, likewise.
        authorizer: None to allow everything.

    Attributes:
        wake_up_ms: The coordinator's, asked after every request.
    """

    __slots__ = ("_apis", "broker_id", "coordinator", "wake_up_ms")

    def __init__(
        self,
        broker_id: int,
        coordinator: GroupCoordinator,
        profile: Profile,
        *,
        topics: Topics,
        old_offsets: ZooKeeperOffsets,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.coordinator = coordinator
        self.wake_up_ms = coordinator.wake_up_ms
        self._apis = GroupApis(
            coordinator, profile, topics=topics, old_offsets=old_offsets, authorizer=authorizer
        )

    def handle(
        self, request: GroupRequest, context: RequestContext, now_ms: int
    ) -> CoordinatorResult:
        """Take a group request; what the coordinator causes is complete."""
        if self._apis.asks_nothing_of(type(request)):
            return self._apis.pass_on(self.coordinator.handle(request, context, now_ms))
        return self._apis.handle(request, context, now_ms)

    def pass_on(self, result: CoordinatorResult) -> CoordinatorResult:
        """Complete what another verb of the coordinator caused."""
        return self._apis.pass_on(result)

    def use_authorizer(self, authorizer: Authorizer | None) -> None:
        """Ask another authorizer from now on; None allows everything."""
        self._apis.use_authorizer(authorizer)
