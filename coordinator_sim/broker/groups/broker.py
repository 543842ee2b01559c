"""One broker process of a served cluster: its group coordinator and the edge around it."""

from coordinator_sim.broker.groups.group_apis import GroupApis
from coordinator_sim.broker.groups.group_protocols import Offers
from coordinator_sim.broker.groups.internal_topics import InternalTopics
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
        offers: Whether a protocol of groups is on now.
        authorizer: None to allow everything.
        internal_topics: Creates what streams groups need.

    Attributes:
        handle: Takes a group request (`GroupApis.handle`); what the coordinator causes is complete.
        pass_on: Completes what another verb of the coordinator caused.
        use_authorizer: Asks another authorizer from now on; None allows everything.
        may_describe: Whether the sender of a request may know of a topic.
        wake_up_ms: The coordinator's, asked after every request.
    """

    __slots__ = (
        "broker_id",
        "coordinator",
        "handle",
        "may_describe",
        "pass_on",
        "use_authorizer",
        "wake_up_ms",
    )

    def __init__(  # noqa: PLR0913 - what a broker is made of, by keyword
        self,
        broker_id: int,
        coordinator: GroupCoordinator,
        profile: Profile,
        *,
        topics: Topics,
        old_offsets: ZooKeeperOffsets,
        offers: Offers,
        authorizer: Authorizer | None = None,
        internal_topics: InternalTopics | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.coordinator = coordinator
        self.wake_up_ms = coordinator.wake_up_ms
        apis = GroupApis(
            coordinator,
            profile,
            topics=topics,
            old_offsets=old_offsets,
            offers=offers,
            authorizer=authorizer,
            internal_topics=internal_topics,
        )
        self.handle = apis.handle
        self.pass_on = apis.pass_on
        self.use_authorizer = apis.use_authorizer
        self.may_describe = apis.may_describe
