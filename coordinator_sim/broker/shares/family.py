"""The share partitions of all brokers as one family of APIs, told of what happens.

Source: kafka 4.3.1, BrokerServer and BrokerMetadataPublisher, which tell SharePartitionManager.
"""

from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Handlers, Instants
from coordinator_sim.broker.draws import chance
from coordinator_sim.broker.groups.group_coordinators import BrokerCoordinator, GroupCoordinators
from coordinator_sim.broker.metadata.changes import FeatureSet
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.scheduler import earliest
from coordinator_sim.broker.shares.dead_letter_queue import ShareGroupDeadLetters
from coordinator_sim.broker.shares.offsets_api import ShareOffsetsApi
from coordinator_sim.broker.shares.persister import Persister
from coordinator_sim.broker.shares.share_apis import ShareApis
from coordinator_sim.broker.shares.share_partition_manager import SharePartitionManager
from coordinator_sim.broker.shares.share_values import Watch
from coordinator_sim.coordinator.modern.share.persister import (
    InitializeState,
    PersisterAnswer,
    PersisterCall,
)
from coordinator_sim.kafka.states import GroupProtocol


class Shares:
    """The share partitions of all brokers.

    Args:
        cluster: The parts of the cluster.
        groups: The group coordinators.
        persister: Keeps the state of share partitions.

    Attributes:
        watch: Called with changes of records, if set before the first request.
    """

    def __init__(
        self, cluster: ClusterParts, groups: GroupCoordinators, persister: Persister
    ) -> None:
        self._cluster = cluster
        self._groups = groups
        groups.call_persister = self._call_persister
        self._persister = persister
        self.watch: Watch | None = None
        self._draw = chance(cluster.settings.seed + 2)
        self._brokers: dict[int, SharePartitionManager] = {}
        self._apis = (
            ShareApis(cluster, offers=groups.offers, brokers=self.of_broker),
            ShareOffsetsApi(
                groups,
                cluster.hosted,
                cluster.access,
                persister=persister,
                jobs=cluster.jobs,
            ),
        )
        self._listen()
        cluster.brokers.stopped.append(self._stopped)
        cluster.scheduler.watch(self)

    def handlers(self) -> Handlers:
        """The handlers of all its APIs."""
        return {api: each for family in self._apis for api, each in family.handlers().items()}

    def of_broker(self, broker_id: int) -> SharePartitionManager:
        """The share partitions of a broker that lives."""
        found = self._brokers.get(broker_id)
        if found is None:
            self._cluster.cluster_events.listen(self._readable)
            letters = None
            if self._cluster.settings.profile.share_dead_letters:
                letters = ShareGroupDeadLetters(broker_id, self._cluster, self._draw)
            found = self._brokers[broker_id] = SharePartitionManager(
                broker_id,
                self._cluster.hosted,
                self._cluster.configs,
                persister=self._persister,
                dead_letters=letters,
                scheduler=self._cluster.scheduler,
                watch=self.watch,
            )
        return found

    # -- group coordinators ----------------------------------------------------------------

    def _call_persister(self, broker: BrokerCoordinator, call: PersisterCall) -> None:
        """Ask the share coordinators for what a group coordinator wants of them."""

        def tell(answer: PersisterAnswer) -> None:
            broker.persister_answered(call, answer, self._cluster.latest)

        now = self._cluster.latest
        if isinstance(call.request, InitializeState):
            self._persister.initialize(call.request, tell, now)
        else:
            self._persister.delete(call.request, tell, now)

    # -- what happens ----------------------------------------------------------------------

    def _listen(self) -> None:
        """Subscribe to the events of partitions and connections."""
        cluster_events = self._cluster.cluster_events
        cluster_events.changed[FeatureSet].append(self._features_changed)
        cluster_events.leader_changed.append(self._leader_changed)
        cluster_events.topic_deleted.append(self._topic_deleted)
        cluster_events.disconnected.append(self._disconnected)

    def _stopped(self, broker_id: int) -> None:
        """Drop what a broker knew whose process has ended."""
        broker = self._brokers.pop(broker_id, None)
        if broker is not None:
            broker.stop()

    def _features_changed(self, _change: FeatureSet) -> None:
        """Features have other levels: without share groups nothing of them is left."""
        if GroupProtocol.SHARE not in self._groups.offers:
            for broker in self._brokers.values():
                broker.switched_off(self._cluster.latest)

    def _readable(self, topic_partition: Place) -> None:
        for broker in self._moving():
            broker.readable(topic_partition, self._cluster.latest)

    def _leader_changed(self, topic: str, partition: int, now: Instants) -> None:
        state = self._cluster.hosted.image.topics.get(topic)
        if state is None:
            return
        leader_id = state.partitions[partition].leader_id
        for broker_id, broker in self._brokers.items():
            if broker_id != leader_id:
                broker.not_leading(state.topic_id, (partition,), now)

    def _topic_deleted(self, _name: str, topic_id: bytes, count: int, now: Instants) -> None:
        for broker in self._brokers.values():
            broker.not_leading(topic_id, range(count), now)

    def _disconnected(self, connection: int) -> None:
        for broker in self._brokers.values():
            broker.disconnected(connection, self._cluster.latest)

    # -- time ------------------------------------------------------------------------------

    def expire(self, now: Instants) -> None:
        """Run what is due at every broker whose time goes on."""
        for broker in self._moving():
            broker.expire(now)

    def arm(self) -> None:
        """Arm the scheduler for the locks and fetches of brokers whose time goes on."""
        for broker in self._moving():
            broker.arm()

    def next_group_deadline_ms(self) -> int | None:
        """When the next lock on records runs out, or a little before."""
        return earliest(broker.next_group_deadline_ms() for broker in self._moving())

    def _moving(self) -> list[SharePartitionManager]:
        frozen = self._cluster.brokers.frozen
        return [broker for each, broker in self._brokers.items() if each not in frozen]
