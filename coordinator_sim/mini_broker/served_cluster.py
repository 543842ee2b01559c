"""A whole cluster behind its connections: one metadata image, one log a partition, N brokers.

Verbs come in with the instants of both clocks; what they cause leaves as answers to the requests
of connections (`connection`) and as events for the trace. Replicas are labels.
"""

from collections.abc import Callable
from typing import Final

from msgspec import structs

from coordinator_sim.broker.authorizer import Authorizer
from coordinator_sim.broker.discovery import TRANSACTIONS_TOPIC
from coordinator_sim.broker.passage import Access
from coordinator_sim.broker.topics import Topic, Topics, topic_id_for
from coordinator_sim.coordinator.contract import CoordinatorResult
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.mini_broker.changes import Change, TopicCreated
from coordinator_sim.mini_broker.contract import Call, Family, Handler, Instants, Timed
from coordinator_sim.mini_broker.discovery_api import DiscoveryApi
from coordinator_sim.mini_broker.image import ClusterImage
from coordinator_sim.mini_broker.living_broker import LivingBroker
from coordinator_sim.mini_broker.metadata_api import MetadataApi
from coordinator_sim.mini_broker.offered import offered
from coordinator_sim.mini_broker.offsets_topic import OffsetsTopic
from coordinator_sim.mini_broker.settings import ClusterSettings, Endpoint
from coordinator_sim.mini_broker.slots import Slot
from coordinator_sim.mini_broker.versions_api import VersionsApi
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import RequestContext
from coordinator_sim.protocol.partitioning import OFFSETS_TOPIC
from coordinator_sim.protocol.requests import GroupRequest
from coordinator_sim.protocol.seeded_ids import SeededIds
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.wire.schema import Data

GROUP_COORDINATOR_APIS: Final = frozenset(
    {
        ApiKey.OFFSET_COMMIT,
        ApiKey.OFFSET_FETCH,
        ApiKey.JOIN_GROUP,
        ApiKey.HEARTBEAT,
        ApiKey.LEAVE_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.DESCRIBE_GROUPS,
        ApiKey.LIST_GROUPS,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.DELETE_GROUPS,
        ApiKey.OFFSET_DELETE,
    }
)
"""What the group coordinator of a broker answers, in typed messages."""

TraceSink = Callable[[int, tuple[TraceEvent, ...]], None]
"""Takes the events that a verb caused at the broker of that id."""


class ServedCluster:
    """The cluster.

    Args:
        settings: How it starts.
        endpoint: Where a broker is reached on a listener.
        journal: Keeps each change before it takes effect; None where nothing outlives the process.
        trace: Takes events; None spends nothing on them.
        authorizer: None to allow everything.

    Attributes:
        image: The metadata. Changed by `change` alone.
        catalogue: The same topics, as the group coordinators look at them.
        brokers: The living broker processes by id.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        *,
        endpoint: Callable[[int, str], Endpoint | None],
        journal: Callable[[Change], None] | None = None,
        trace: TraceSink | None = None,
        authorizer: Authorizer | None = None,
    ) -> None:
        self.settings = settings
        self.image = ClusterImage()
        self.catalogue = Topics()
        self.offsets_topic = OffsetsTopic()
        self.access = Access(authorizer)
        self.brokers: dict[int, LivingBroker] = {}
        self._ids = SeededIds(settings.seed)
        self._endpoint = endpoint
        self._journal = journal
        self._trace = trace
        self._slots: dict[int, Slot] = {}
        self._next_token = 1
        self._timed: list[Timed] = []
        self._handlers: dict[ApiKey, Handler] = {}
        for broker_id in settings.broker_ids:
            self.brokers[broker_id] = self._new_broker(broker_id)
        for family in self._families():
            self._handlers.update(family.handlers())
        self.versions = VersionsApi(
            offered(
                settings.profile,
                [ApiKey.API_VERSIONS, *self._handlers, *GROUP_COORDINATOR_APIS],
            )
        )
        self._handlers.update(self.versions.handlers())

    def _families(self) -> tuple[Family, ...]:
        """Everything that answers requests beside the group coordinators."""
        return (
            MetadataApi(
                self.image,
                self.settings,
                endpoint=self.endpoint,
                auto_create=self._create_asked_for,
            ),
            DiscoveryApi(
                self.image,
                self.access,
                endpoint=self.endpoint,
                create_internal=self.create_internal_topic,
            ),
        )

    # -- requests --------------------------------------------------------------------------

    def admit(self, slot: Slot) -> int:
        """Give a request the token that names its answer."""
        token = self._next_token
        self._next_token += 1
        self._slots[token] = slot
        return token

    def handle_group(
        self, broker_id: int, request: GroupRequest, context: RequestContext, now: Instants
    ) -> None:
        """Take a request for the group coordinator of a broker."""
        broker = self.brokers[broker_id]
        self.deliver(broker, broker.handle(request, context, now.group_ms))
        self._settle(broker, now.group_ms)

    def handle(self, call: Call) -> None:
        """Take any other request."""
        response = self._handlers[call.api](call)
        if response is not None:
            self.answer(call.context.token, response)

    def answer(self, token: int, response: Data | None) -> None:
        """Answer the request of that token; None sends nothing. Nobody waits for it: nothing."""
        slot = self._slots.pop(token, None)
        if slot is not None:
            slot.answered(response)

    def deliver(self, broker: LivingBroker, result: CoordinatorResult) -> None:
        """Send what a verb of a group coordinator caused, complete as it is."""
        for reply in result.replies:
            slot = self._slots.pop(reply.token, None)
            if slot is not None:
                slot.answered_by_group(reply.response)
        if result.events and self._trace is not None:
            self._trace(broker.broker_id, result.events)

    # -- time ------------------------------------------------------------------------------

    def expire(self, now: Instants) -> None:
        """Fire everything that is due on either clock."""
        for broker in list(self.brokers.values()):
            wake_up_ms = broker.coordinator.wake_up_ms()
            if wake_up_ms is not None and wake_up_ms <= now.group_ms:
                result = broker.coordinator.expire(now.group_ms)
                self.deliver(broker, broker.pass_on(result))
        for timed in self._timed:
            timed.expire(now)

    def next_group_deadline_ms(self) -> int | None:
        """When `expire` has something to do by the group clock, or a little before."""
        found = [broker.coordinator.wake_up_ms() for broker in self.brokers.values()]
        found += [timed.next_group_deadline_ms() for timed in self._timed]
        return min((each for each in found if each is not None), default=None)

    def next_wall_deadline_ms(self) -> int | None:
        """When `expire` has something to do by the wall clock."""
        found = (timed.next_wall_deadline_ms() for timed in self._timed)
        return min((each for each in found if each is not None), default=None)

    # -- metadata --------------------------------------------------------------------------

    def endpoint(self, broker_id: int, listener: str) -> Endpoint | None:
        """Where a living broker is reached on a listener; None when it is not alive."""
        return self._endpoint(broker_id, listener) if broker_id in self.brokers else None

    def change(self, change: Change) -> None:
        """Change the metadata: journal first, then the image."""
        if self._journal is not None:
            self._journal(change)
        self.image.apply(change)

    def create_topic(
        self,
        name: str,
        partitions: int,
        *,
        replication_factor: int,
        now_ms: int,
        configs: dict[str, str] | None = None,
    ) -> None:
        """Create a topic that there is not, its leaders spread over the living brokers."""
        replicas = self._spread(partitions, replication_factor)
        change = TopicCreated(name, topic_id_for(name, self.image.version), replicas, configs or {})
        self.change(change)
        self.catalogue.put(name, Topic(change.topic_id, partitions))
        if name == OFFSETS_TOPIC:
            for partition in range(partitions):
                self._load(partition, now_ms)

    def create_internal_topic(self, name: str, now_ms: int) -> None:
        """Create `__consumer_offsets` or `__transaction_state` as configured."""
        settings = self.settings
        partitions = settings.transaction_partitions
        if name != TRANSACTIONS_TOPIC:
            partitions = settings.coordinator.offsets_topic_num_partitions
        factor = min(settings.internal_replication_factor, len(settings.broker_ids))
        configs = {"cleanup.policy": "compact", "segment.bytes": "104857600"}
        self.create_topic(
            name, partitions, replication_factor=factor, now_ms=now_ms, configs=configs
        )

    def _create_asked_for(self, name: str, now_ms: int) -> None:
        if name in {OFFSETS_TOPIC, TRANSACTIONS_TOPIC}:
            self.create_internal_topic(name, now_ms)
            return
        settings = self.settings
        factor = settings.default_replication_factor
        self.create_topic(name, settings.num_partitions, replication_factor=factor, now_ms=now_ms)

    def _spread(self, partitions: int, replication_factor: int) -> tuple[tuple[int, ...], ...]:
        """Replicas of new partitions, beginning with another broker for each."""
        ids = sorted(self.brokers)
        return tuple(
            tuple(ids[(partition + place) % len(ids)] for place in range(replication_factor))
            for partition in range(partitions)
        )

    # -- group coordinators ----------------------------------------------------------------

    def _new_broker(self, broker_id: int) -> LivingBroker:
        config = structs.replace(
            self.settings.coordinator, broker_id=broker_id, trace=self._trace is not None
        )
        coordinator = GroupCoordinator(
            config, self.settings.profile, ids=self._ids, append_policy=self.offsets_topic
        )
        return LivingBroker(
            broker_id,
            coordinator,
            self.settings.profile,
            topics=self.catalogue,
            authorizer=self.access.authorizer,
        )

    def _load(self, partition: int, now_ms: int) -> None:
        """Let the leader of an offsets partition load it."""
        state = self.image.topics[OFFSETS_TOPIC].partitions[partition]
        broker = self.brokers.get(state.leader_id)
        if broker is None:
            return
        coordinator = broker.coordinator
        began = coordinator.begin_load(partition, state.leader_epoch, now_ms)
        self.deliver(broker, broker.pass_on(began))
        for batch in self.offsets_topic.batches(partition):
            coordinator.replay(partition, batch)
        loaded = coordinator.finish_load(partition, ErrorCode.NONE, now_ms)
        self.deliver(broker, broker.pass_on(loaded))

    def _settle(self, broker: LivingBroker, now_ms: int) -> None:
        """Fire what is due already: a delay of 0 ms ends within the verb that armed it."""
        wake_up_ms = broker.coordinator.wake_up_ms()
        if wake_up_ms is not None and wake_up_ms <= now_ms:
            self.deliver(broker, broker.pass_on(broker.coordinator.expire(now_ms)))
