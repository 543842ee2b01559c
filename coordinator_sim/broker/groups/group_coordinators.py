"""The group coordinators of the living brokers: requests, offsets partitions, time."""

from collections.abc import Callable
from typing import Final

from msgspec import structs

from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call, Handlers, Instants
from coordinator_sim.broker.groups.group_apis import GroupApis
from coordinator_sim.broker.groups.group_checks import GroupProtocols, Offers
from coordinator_sim.broker.groups.internal_topics import InternalTopics
from coordinator_sim.broker.groups.offsets_topic import OffsetsTopic
from coordinator_sim.broker.hosting import Hosting
from coordinator_sim.broker.metadata.changes import ConfigsChanged, FeatureSet, OffsetNodeWritten
from coordinator_sim.broker.metadata.image import (
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    PartitionState,
)
from coordinator_sim.broker.metadata.zookeeper_offsets import ZooKeeperOffsets
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.scheduler import Task
from coordinator_sim.clock.clock import TRUE, WallClock
from coordinator_sim.coordinator.contract import (
    CoordinatorConfig,
    CoordinatorResult,
    DeletedTopic,
    IdSource,
    TransactionVerifier,
)
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.coordinator.modern.share.persister import PersisterAnswer, PersisterCall
from coordinator_sim.coordinator.properties import PROPERTIES, configured
from coordinator_sim.coordinator.topics import KnownTopic
from coordinator_sim.kafka.completion import CompleteTransaction
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for
from coordinator_sim.kafka.roles import FOLLOWER, LEADER
from coordinator_sim.messages.requests import GROUP_COORDINATOR_APIS, GroupRequest

IdsOf = Callable[[int], IdSource]
"""Gives the source of the member ids that a broker's coordinator hands out, by broker id."""
CallPersister = Callable[["BrokerCoordinator", PersisterCall], None]
"""Carries out a call to the share coordinators; its answer goes to `persister_answered`."""

_OF_GROUPS: Final = "group."
"""A setting of a group has this before its name among those of brokers."""


class BrokerCoordinator:
    """The group coordinator of a living broker; a `HostedCoordinator` of the offsets topic.

    Args:
        broker_id: Its id.
        coordinator: Its group coordinator, empty at first.
        apis: The edge around the coordinator.
        groups: All group coordinators.

    Attributes:
        handle: Takes a group request (`GroupApis.handle`); what the coordinator causes is complete.
        wake_up_ms: The coordinator's, called after every request.
        has_stopped: Whether the process has ended.
        missed_elections: Partitions whose leader changed while this broker was frozen.
    """

    __slots__ = (
        "_cluster",
        "_groups",
        "_missed",
        "_pass_on",
        "broker_id",
        "coordinator",
        "handle",
        "has_stopped",
        "missed_elections",
        "wake_up_ms",
    )

    def __init__(
        self,
        broker_id: int,
        coordinator: GroupCoordinator,
        apis: GroupApis,
        groups: "GroupCoordinators",
    ) -> None:
        self.broker_id = broker_id
        self.coordinator = coordinator
        self.wake_up_ms = coordinator.wake_up_ms
        self.handle = apis.handle
        self._pass_on = apis.pass_on
        self._groups = groups
        self._cluster = groups.cluster
        self.has_stopped = False
        self.missed_elections: dict[int, None] = {}
        # Ends of loads, and answers of share coordinators, that came while the broker was frozen.
        self._missed: list[Task] = []

    @property
    def is_frozen(self) -> bool:
        """Whether the broker's time stands still: no timer fires, and it notices no election."""
        return self.broker_id in self._cluster.brokers.frozen

    def resume(self, now: Instants) -> None:
        """End the loads, and take the answers, that came while the broker was frozen."""
        missed, self._missed = self._missed, []
        for finish in missed:
            finish(now)

    # -- leadership ------------------------------------------------------------------------

    def on_election(self, partition: int, leader_epoch: int, now: Instants) -> None:
        """Begin to load a partition; the load ends after `ClusterSettings.load_ms`."""
        self.carry_out(self.coordinator.begin_load(partition, leader_epoch, now.group_ms))

        def finish(later: Instants) -> None:
            if self.has_stopped:
                return
            if self.is_frozen:
                self._missed.append(finish)
                return
            state = self._cluster.image.partition(OFFSETS_TOPIC, partition)
            if state is not None and state.leader_epoch == leader_epoch:
                self._finish_load(partition, later.group_ms)

        load_ms = self._cluster.settings.load_ms
        if load_ms and self._groups.offsets_topic.has_records(partition):
            self._cluster.scheduler.at_group_ms(now.group_ms + load_ms, finish)
        else:
            finish(now)

    def _finish_load(self, partition: int, now_ms: int) -> None:
        error = ErrorCode.KAFKA_STORAGE_ERROR
        if self._groups.offsets_topic.is_readable(self.broker_id, partition):
            try:
                for batch in self._groups.offsets_topic.batches(partition):
                    self.coordinator.replay(partition, batch)
                error = ErrorCode.NONE
            except OSError as failure:
                self._groups.offsets_topic.unreadable(partition, failure)
        self.carry_out(self.coordinator.finish_load(partition, error, now_ms))

    def on_resignation(self, partition: int, leader_epoch: int | None, now: Instants) -> None:
        """Unload a partition; `leader_epoch` is None where the topic is deleted."""
        self.carry_out(self.coordinator.unload(partition, leader_epoch, now.group_ms))

    # -- what the coordinator causes -------------------------------------------------------

    def persister_answered(
        self, call: PersisterCall, answer: PersisterAnswer, now: Instants
    ) -> None:
        """Pass the answer of the share coordinator to a call on."""
        if self.has_stopped:
            return
        if self.is_frozen:
            self._missed.append(lambda later: self.persister_answered(call, answer, later))
            return
        self.carry_out(self.coordinator.persister_answered(call.call_id, answer, now.group_ms))
        self.settle(now.group_ms)

    def carry_out(self, result: CoordinatorResult) -> None:
        """Deliver what a verb of the coordinator caused that is not a client's request."""
        self.deliver(self._pass_on(result))
        self._cluster.scheduler.wake_by_group_ms(self.wake_up_ms())

    def deliver(self, result: CoordinatorResult) -> None:
        """Send what the coordinator caused, complete as it is."""
        for reply in result.replies:
            self._cluster.answer(reply.token, reply.response)
        for call in result.persister_calls:
            self._groups.call_persister(self, call)
        if result.events and self._cluster.trace is not None:
            self._cluster.trace(self.broker_id, result.events)

    # -- time ------------------------------------------------------------------------------

    def settle(self, now_ms: int) -> None:
        """Fire what is due already: a delay of 0 ms ends within the verb that armed it."""
        if self.broker_id in self._cluster.brokers.frozen:
            return
        wake_up_ms = self.wake_up_ms()
        if wake_up_ms is not None and wake_up_ms <= now_ms:
            self.carry_out(self.coordinator.expire(now_ms))
        else:
            self._cluster.scheduler.wake_by_group_ms(wake_up_ms)

    def arm(self) -> None:
        """Arm the scheduler for the timers of the coordinator."""
        self._cluster.scheduler.wake_by_group_ms(self.wake_up_ms())

    def next_group_deadline_ms(self) -> int | None:
        """The earliest deadline of any group, None if there is none."""
        return self.coordinator.next_deadline_ms()


class GroupCoordinators:
    """All group coordinators.

    Args:
        cluster: The parts of the cluster.
        ids_of: See `IdsOf`.

    Attributes:
        cluster: See above.
        living: The brokers that live, by id.
        offers: The protocols of groups that are on now.
        call_persister: Asks the share coordinators for what a group coordinator wants of them.
        offsets_topic: The log that the coordinators write before they acknowledge.
        verifier: Asked about transactional commits by coordinators of brokers that start from now.
    """

    __slots__ = (
        "_deposed",
        "_dynamic",
        "_hosting",
        "_ids_of",
        "_image",
        "_old_offsets",
        "_traces",
        "_traces_heartbeats",
        "_wall_clocks",
        "call_persister",
        "cluster",
        "living",
        "offers",
        "offsets_topic",
        "verifier",
    )

    def __init__(self, cluster: ClusterParts, ids_of: IdsOf) -> None:
        settings = cluster.settings
        self.cluster = cluster
        self._image = cluster.image
        self._ids_of = ids_of
        self._traces = cluster.trace is not None
        self._traces_heartbeats = True
        self.offsets_topic = OffsetsTopic(
            settings.profile,
            cluster.hosted,
            cluster.logs.log_of,
            medium_failed=self._storage_failed,
            cluster_events=cluster.cluster_events,
        )
        protocols = GroupProtocols(settings.profile, cluster.image, cluster.configs)
        self.offers: Offers = protocols.offers
        configs = cluster.configs
        self._dynamic = [
            name for name in PROPERTIES if name in configs.broker and configs.broker[name].dynamic
        ]
        self._hosting: Hosting[BrokerCoordinator] = Hosting(cluster.brokers)
        self.living = self._hosting.coordinators
        # Leaders that were deposed and have not noticed yet, by partition.
        self._deposed: dict[int, list[int]] = {}
        self._wall_clocks: dict[int, WallClock] = {}
        self.verifier: TransactionVerifier | None = None
        self.call_persister: CallPersister = lambda _broker, _call: None
        self._old_offsets = ZooKeeperOffsets(
            settings.coordinator.offset_metadata_max_bytes,
            cluster.image.offset_nodes,
            self._write_offset_node,
        )
        cluster.brokers.started.append(self._started)
        cluster.brokers.stopped.append(self._stopped)
        cluster.cluster_events.changed[FeatureSet].append(protocols.update)
        cluster.cluster_events.changed[ConfigsChanged] += (protocols.update, self._configs_changed)

    def _storage_failed(self, place: Place, error: OSError) -> None:
        """Let the leader resign as soon as the coordinator that met the error is done."""
        cluster = self.cluster
        cluster.scheduler.at_wall_ms(0, lambda _now: cluster.storage_failed(place, error))

    def _write_offset_node(self, path: str, data: str) -> None:
        """Keep an offset of a version 0 commit, which is refused where that raises OSError."""
        try:
            self.cluster.change(OffsetNodeWritten(path, data))
        except OSError as error:
            self.cluster.trouble(f"{path}: {error}; refused")
            raise

    # -- brokers ---------------------------------------------------------------------------

    def _started(self, broker_id: int) -> None:
        """A broker process begins; it leads nothing yet."""
        cluster = self.cluster
        config = self._config_of(broker_id)
        profile = cluster.settings.profile
        coordinator = GroupCoordinator(
            config,
            profile,
            ids=self._ids_of(broker_id),
            partition_writer=self.offsets_topic.writer_of(broker_id),
            verifier=self.verifier,
        )
        coordinator.tell_heartbeats(self._traces_heartbeats)
        coordinator.set_wall_clock(self._wall_clocks.get(broker_id, TRUE))
        topics = [self._topic(name) for name in self._image.topics]
        coordinator.topics_changed(topics, (), self._image.version)
        self._reconfigure(coordinator, config)
        apis = GroupApis(
            coordinator,
            profile,
            topics=cluster.topics.catalogue,
            old_offsets=self._old_offsets,
            offers=self.offers,
            authorizer=cluster.access.authorizer,
            internal_topics=InternalTopics(broker_id, cluster),
        )
        coordinator.restrict_topics(apis.may_describe)
        self._hosting.add(broker_id, BrokerCoordinator(broker_id, coordinator, apis, self))

    def _config_of(self, broker_id: int) -> CoordinatorConfig:
        config = self.cluster.settings.coordinator
        return structs.replace(config, broker_id=broker_id, trace=self._traces)

    def _stopped(self, broker_id: int) -> None:
        """A broker process is gone, with all that its coordinator had not written."""
        self.living[broker_id].has_stopped = True
        self._hosting.remove(broker_id)
        for partition, deposed in self._deposed.items():
            if broker_id in deposed:
                deposed.remove(broker_id)
                self.offsets_topic.follow(broker_id, partition)

    def set_wall_clock(self, broker_id: int, clock: WallClock) -> None:
        """Set the wall clock of a broker's machine, which outlives its processes."""
        self._wall_clocks[broker_id] = clock
        broker = self.living.get(broker_id)
        if broker is not None:
            broker.coordinator.set_wall_clock(clock)

    def fire_overdue(self, broker_id: int, now: Instants) -> None:
        """Fire the deadlines of a frozen broker up to now: its timers go on first, or last."""
        broker = self.living[broker_id]
        broker.carry_out(broker.coordinator.expire(now.group_ms))

    def thaw(self, broker_id: int, now: Instants) -> None:
        """Let a broker's time go on; it ends its loads, and notices elections it has missed."""
        self.cluster.brokers.frozen.pop(broker_id, None)
        broker = self.living[broker_id]
        broker.resume(now)
        missed, broker.missed_elections = broker.missed_elections, {}
        for partition in missed:
            state = self._image.partition(OFFSETS_TOPIC, partition)
            if state is not None and state.leader_id == broker_id:
                self._take_over(partition, state, now)
            elif broker_id in self._deposed.get(partition, ()):
                self._resign(
                    broker_id, partition, None if state is None else state.leader_epoch, now
                )

    def tell_heartbeats(self, wanted: bool) -> None:
        """Whether coordinators that emit trace events emit those of heartbeats too."""
        self._traces_heartbeats = wanted
        for broker in self.living.values():
            broker.coordinator.tell_heartbeats(wanted)

    # -- requests --------------------------------------------------------------------------

    def handlers(self) -> Handlers:
        """Everything that a group coordinator answers."""
        return dict.fromkeys(GROUP_COORDINATOR_APIS, self._handle)

    def _handle(self, call: Call[GroupRequest]) -> None:
        """Take a request for one broker's coordinator; answers are delivered."""
        broker = self.living[call.broker_id]
        now_ms = call.now.group_ms
        broker.deliver(broker.handle(call.request, call.context, now_ms))
        broker.settle(now_ms)

    def complete_transaction(
        self, request: CompleteTransaction, context: RequestContext, now: Instants
    ) -> bool:
        """End a producer's transaction on an offsets partition; False when nobody leads it.

        Its answer, a `TransactionCompleted`, is delivered under the token of the context.
        """
        broker = self.leader_of(request.partition)
        if broker is None:
            return False
        broker.carry_out(broker.coordinator.complete_transaction(request, context, now.group_ms))
        broker.settle(now.group_ms)
        return True

    def _configs_changed(self, change: ConfigsChanged) -> None:
        """Pass settings of a broker or a group on, which clients have changed."""
        if change.resource_type not in {BROKER_RESOURCE, GROUP_RESOURCE}:
            return
        group_id = change.name if change.resource_type == GROUP_RESOURCE else None
        for broker in self.living.values():
            config = self._config_of(broker.broker_id)
            self._reconfigure(broker.coordinator, config, group_id)

    def _reconfigure(
        self, coordinator: GroupCoordinator, config: CoordinatorConfig, group_id: str | None = None
    ) -> None:
        """Pass a coordinator the settings of its broker, and of one group or all groups.

        Args:
            coordinator: The coordinator.
            config: The config with which its broker started.
            group_id: The group whose settings changed; None for all that have their own.

        Source: kafka 4.4, GroupConfigManager.updateGroupConfig; DynamicBrokerConfig.
        """
        values = [(name, self.cluster.configs.broker_value(name)) for name in self._dynamic]
        broker = configured(
            config, {name: str(value) for name, value in values if value is not None}
        )
        groups = [name for kind, name in self._image.configs if kind == GROUP_RESOURCE]
        if group_id is not None:
            groups = [group_id]
        coordinator.reconfigure(broker, {each: self._own(broker, each) for each in groups})

    def _own(self, broker: CoordinatorConfig, group_id: str) -> CoordinatorConfig | None:
        """The config of a group with settings of its own."""
        values = self._image.configs_of(GROUP_RESOURCE, group_id)
        own = {f"{_OF_GROUPS}{name}": text for name, text in values.items()}
        return configured(broker, own) if own else None

    # -- topics ----------------------------------------------------------------------------

    def _topic(self, name: str) -> KnownTopic:
        """A topic for coordinators; brokers here have no racks."""
        state = self._image.topic(name)
        return KnownTopic(name, state.topic_id, len(state.partitions))

    def topic_deleted(self, name: str, topic_id: bytes, partitions: int, now: Instants) -> None:
        """Offsets of a topic that is gone go too; without the offsets topic nobody leads."""
        if name == OFFSETS_TOPIC:
            for partition in list(self._hosting.leaders):
                self._hosting.resign(partition, None, now)
        for broker in self.living.values():
            broker.coordinator.topics_changed((), (name,), self._image.version)
        deleted = {name: DeletedTopic(topic_id=topic_id, partition_count=partitions)}
        for broker in list(self.living.values()):
            broker.carry_out(broker.coordinator.topics_deleted(deleted, now.group_ms))
            broker.settle(now.group_ms)

    # -- leadership ------------------------------------------------------------------------

    def leader_changed(self, topic: str, partition: int, now: Instants) -> None:
        """An offsets partition has another leader: the old one unloads, the new one loads."""
        if topic != OFFSETS_TOPIC:
            return
        state = self._image.topics[OFFSETS_TOPIC].partitions[partition]
        old = self.leader_of(partition)
        if old is not None and old.broker_id != state.leader_id:
            if old.is_frozen:
                self.depose_unaware(partition)
                old.missed_elections[partition] = None
            else:
                self._hosting.resign(partition, state.leader_epoch, now)
        elected = self.living.get(state.leader_id)
        if elected is not None and elected.is_frozen:
            elected.missed_elections[partition] = None
        else:
            self._take_over(partition, state, now)

    def _take_over(self, partition: int, state: PartitionState, now: Instants) -> None:
        """Let the leader of a partition, where there is one, begin to load it."""
        if state.leader_id in self._deposed.get(partition, ()):
            # It drops what it appended alone, and loads again.
            self._resign(state.leader_id, partition, state.leader_epoch, now)
        broker = self.living.get(state.leader_id)
        if broker is not None:
            self._hosting.elect(partition, broker, state, now)

    def topic_changed(self, name: str, _now: Instants) -> None:
        """A topic has more partitions."""
        topics = (self._topic(name),)
        for broker in self.living.values():
            broker.coordinator.topics_changed(topics, (), self._image.version)

    def topic_created(self, name: str, now: Instants) -> None:
        """A topic is there; the leaders of the offsets topic load it."""
        self.topic_changed(name, now)
        if name == OFFSETS_TOPIC:
            for partition in range(len(self._image.topics[name].partitions)):
                self.leader_changed(name, partition, now)

    def depose_unaware(self, partition: int) -> None:
        """Let the leader of a partition continue, unaware that it is deposed.

        What it appends from now on is on no other broker, and never committed. An election must
        follow; `notice` ends it.
        """
        leader = self._hosting.leaders.pop(partition, None)
        if leader is not None:
            coordinator = self.living[leader.broker_id].coordinator
            coordinator.hold_high_watermark(hold=True, partition=partition)
            self._deposed.setdefault(partition, []).append(leader.broker_id)
            self.offsets_topic.part(leader.broker_id, partition)

    def notice(self, partition: int, now: Instants) -> None:
        """Let deposed leaders of a partition learn of the new leader, and resign."""
        state = self._image.topics[OFFSETS_TOPIC].partitions[partition]
        for broker_id in list(self._deposed.get(partition, ())):
            self._resign(broker_id, partition, state.leader_epoch, now)

    def _resign(
        self, broker_id: int, partition: int, leader_epoch: int | None, now: Instants
    ) -> None:
        self._deposed[partition].remove(broker_id)
        self.offsets_topic.follow(broker_id, partition)
        self.living[broker_id].on_resignation(partition, leader_epoch, now)

    def hold_high_watermark(self, partition: int, *, hold: bool, now: Instants) -> None:
        """Leave the appends of a partition's leader uncommitted from now on, or commit them all."""
        leader = self.leader_of(partition)
        for broker in self.living.values():
            if not hold or broker is leader:
                broker.coordinator.hold_high_watermark(hold=hold, partition=partition)
        if leader is not None and not hold:
            self.advance_high_watermark(partition, leader.coordinator.end_offset(partition), now)

    def advance_high_watermark(self, partition: int, offset: int, now: Instants) -> None:
        """Commit the appends of a partition's leader that end at that offset or before."""
        leader = self.leader_of(partition)
        if leader is not None:
            released = leader.coordinator.advance_high_watermark(partition, offset, now.group_ms)
            leader.carry_out(released)

    def role_of(self, group_id: str, name: str) -> str | None:
        """`leader` or `follower`: what a member is in its group now; None for no member.

        Args:
            group_id: Its group.
            name: Its member id, or its group instance id.
        """
        for broker in self.living.values():
            group = broker.coordinator.group(group_id)
            if group is not None:
                member_id = group.static_members.get(name, name)
                if member_id in group.members:
                    return LEADER if member_id == group.leader_id else FOLLOWER
        return None

    def coordinates(self, broker_id: int, group_id: str) -> bool:
        """Whether a broker leads the offsets partition of a group."""
        topic = self._image.topics.get(OFFSETS_TOPIC)
        if topic is None:
            return False
        partition = partition_for(group_id, len(topic.partitions))
        return topic.partitions[partition].leader_id == broker_id

    def leader_of(self, partition: int) -> BrokerCoordinator | None:
        """The living broker that leads an offsets partition, None when there is none."""
        return self._hosting.leader_of(partition)

    # -- time ------------------------------------------------------------------------------

    def expire(self, now: Instants) -> None:
        """Fire every deadline up to now."""
        for broker in self._hosting.running():
            broker.settle(now.group_ms)

    def arm(self) -> None:
        """Arm the scheduler for the timers of the brokers whose time goes on."""
        self._hosting.arm()

    def next_group_deadline_ms(self) -> int | None:
        """The earliest deadline of any group, None if there is none."""
        return self._hosting.next_group_deadline_ms()
