"""One broker process of a served cluster: its group coordinator and the edge around it."""

from coordinator_sim.broker.groups.group_apis import GroupApis
from coordinator_sim.broker.metadata.topic_ids import Topics
from coordinator_sim.broker.metadata.zookeeper_offsets import ZooKeeperOffsets
from coordinator_sim.broker.security.authorizer import Authorizer
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.kafka.profiles import Profile


class Broker:
    """A broker that runs.

    Args:
        broker_id: Its id.
        coordinator: Its group coordinator, empty at first.
        profile: Of the cluster.
        topics: What exists, shared by all brokers.
        old_offsets: Those of version 0, likewise.
        authorizer: None to allow everything.

    Attributes:
        handle: Takes a group request (`GroupApis.handle`); what the coordinator causes is complete.
        pass_on: Completes what another verb of the coordinator caused.
        use_authorizer: Asks another authorizer from now on; None allows everything.
        wake_up_ms: The coordinator's, asked after every request.
    """

    __slots__ = ("broker_id", "coordinator", "handle", "pass_on", "use_authorizer", "wake_up_ms")

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
        apis = GroupApis(
            coordinator, profile, topics=topics, old_offsets=old_offsets, authorizer=authorizer
        )
        self.handle = apis.handle
        self.pass_on = apis.pass_on
        self.use_authorizer = apis.use_authorizer
