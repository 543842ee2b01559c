"""The group coordinators of the living brokers: requests, offsets partitions, time."""

from collections.abc import Callable

from msgspec import structs

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.contract import Call, Handlers, Instants
from coordinator_sim.broker.groups.broker import Broker
from coordinator_sim.broker.groups.cluster_news import ClusterNews
from coordinator_sim.broker.groups.group_protocols import GroupProtocol, GroupProtocols
from coordinator_sim.broker.groups.internal_topics import InternalTopics, TakesRequests
from coordinator_sim.broker.groups.offsets_topic import OffsetsTopic
from coordinator_sim.broker.metadata.changes import ConfigsChanged
from coordinator_sim.broker.metadata.image import (
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    MetadataImage,
    PartitionState,
)
from coordinator_sim.broker.metadata.topic_ids import Topics
from coordinator_sim.broker.metadata.zookeeper_offsets import ZooKeeperOffsets
from coordinator_sim.broker.scheduler import Scheduler, Task, earliest
from coordinator_sim.broker.security.authorizer import Authorizer
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.clock.wall_clock import TRUE, WallClock
from coordinator_sim.coordinator.contract import (
    CoordinatorConfig,
    CoordinatorResult,
    DeletedTopic,
    IdSource,
    TransactionVerifier,
)
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.coordinator.share.persister import PersisterAnswer, PersisterCall
from coordinator_sim.kafka.completion import CompleteTransaction
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.roles import FOLLOWER, LEADER
from coordinator_sim.messages.requests import GROUP_COORDINATOR_APIS, GroupRequest

Deliver = Callable[[int, CoordinatorResult], None]
"""Takes what a coordinator caused, complete as it is, with the broker's id."""
IdsOf = Callable[[int], IdSource]
"""Gives the source of the member ids that a broker's coordinator hands out, by broker id."""


class GroupCoordinators:
    """All group coordinators.

    Args:
        settings: Of the cluster.
        image: Who leads the offsets partitions.
        offsets_topic: Their log.
        catalogue: What topics there are.
        deliver: Takes what a coordinator caused.
        ids_of: See `IdsOf`.
        scheduler: Ends loads that take time (`ClusterSettings.load_ms`), and wakes coordinators.
        configs: Settings of brokers and groups, as clients change them.

    Attributes:
        living: The brokers that live, by id.
        frozen: Those of them whose time stands still: no timer fires, and no election is heard of.
        offsets_topic: The log.
        verifier: Asked about transactional commits by coordinators of brokers that start from now.
        authorizer: Likewise; None allows everything.
        old_offsets: Those of version 0; likewise.
        cluster: Takes requests of brokers that start from now: to create topics.
        traces: Whether they tell what happens.
        tells_heartbeats: Whether that includes heartbeats; see `tell_heartbeats`.
    """

    __slots__ = (
        "_catalogue",
        "_deliver",
        "_deposed",
        "_ids_of",
        "_image",
        "_led",
        "_missed",
        "_missed_elections",
        "_news",
        "_protocols",
        "_scheduler",
        "_settings",
        "_wall_clocks",
        "authorizer",
        "cluster",
        "frozen",
        "living",
        "offsets_topic",
        "old_offsets",
        "tells_heartbeats",
        "traces",
        "verifier",
    )

    def __init__(  # noqa: PLR0913 - what a cluster is made of, by keyword
        self,
        settings: ClusterSettings,
        image: MetadataImage,
        offsets_topic: OffsetsTopic,
        *,
        catalogue: Topics,
        deliver: Deliver,
        ids_of: IdsOf,
        scheduler: Scheduler,
        configs: Configs,
    ) -> None:
        self._settings = settings
        self._image = image
        self.offsets_topic = offsets_topic
        self._catalogue = catalogue
        self._deliver = deliver
        self._ids_of = ids_of
        self._scheduler = scheduler
        self._protocols = GroupProtocols(settings.profile, image, configs)
        self._news = ClusterNews(image, configs)
        self._led: dict[int, int] = {}
        # Leaders that were deposed and do not know it yet, by partition.
        self._deposed: dict[int, list[int]] = {}
        # What frozen brokers have not heard of: ends of loads, answers of share coordinators, and
        # partitions with another leader.
        self._missed_elections: dict[int, dict[int, None]] = {}
        self._missed: dict[int, list[Task]] = {}
        self._wall_clocks: dict[int, WallClock] = {}
        self.living: dict[int, Broker] = {}
        self.frozen: dict[int, None] = {}
        self.verifier: TransactionVerifier | None = None
        self.authorizer: Authorizer | None = None
        self.cluster: TakesRequests | None = None
        self.old_offsets = ZooKeeperOffsets(settings.coordinator.offset_metadata_max_bytes)
        self.traces = False
        self.tells_heartbeats = True

    def offers(self, protocol: GroupProtocol) -> bool:
        """Whether a protocol of groups is on now."""
        return self._protocols.offers(protocol)

    # -- brokers ---------------------------------------------------------------------------

    def is_running(self, broker_id: int) -> bool:
        """Whether a broker's process lives, and its time does not stand still."""
        return broker_id in self.living and broker_id not in self.frozen

    def start(self, broker_id: int) -> None:
        """A broker process begins; it leads nothing yet."""
        config = self._config_of(broker_id)
        coordinator = GroupCoordinator(
            config,
            self._settings.profile,
            ids=self._ids_of(broker_id),
            append_policy=self.offsets_topic.policy_of(broker_id),
            verifier=self.verifier,
        )
        coordinator.tell_heartbeats(self.tells_heartbeats)
        coordinator.set_wall_clock(self._wall_clocks.get(broker_id, TRUE))
        self._news.tell_all(coordinator)
        self._news.tell_settings(coordinator, config)
        broker = self.living[broker_id] = Broker(
            broker_id,
            coordinator,
            self._settings.profile,
            topics=self._catalogue,
            old_offsets=self.old_offsets,
            offers=self._protocols.offers,
            authorizer=self.authorizer,
            internal_topics=self._internal_topics(broker_id),
        )
        coordinator.restrict_topics(broker.may_describe)

    def _internal_topics(self, broker_id: int) -> InternalTopics | None:
        cluster = self.cluster
        return None if cluster is None else InternalTopics(broker_id, cluster, self._scheduler)

    def _config_of(self, broker_id: int) -> CoordinatorConfig:
        return structs.replace(self._settings.coordinator, broker_id=broker_id, trace=self.traces)

    def stop(self, broker_id: int) -> None:
        """A broker process is gone, with all that its coordinator had not written."""
        del self.living[broker_id]
        self.frozen.pop(broker_id, None)
        self._missed_elections.pop(broker_id, None)
        self._missed.pop(broker_id, None)
        for partition in [each for each, leader in self._led.items() if leader == broker_id]:
            del self._led[partition]
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

    def freeze(self, broker_id: int) -> None:
        """Let a broker's time stand still, as that of a process that got SIGSTOP.

        Its coordinator does not hear that it leads a partition no more, or leads another one.
        """
        self.frozen[broker_id] = None

    def fire_overdue(self, broker_id: int, now: Instants) -> None:
        """Fire the deadlines of a frozen broker up to now: its timers go on first, or last."""
        broker = self.living[broker_id]
        self._carry_out(broker, broker.coordinator.expire(now.group_ms))

    def thaw(self, broker_id: int, now: Instants) -> None:
        """Let a broker's time go on; it ends its loads, and hears of elections it has missed."""
        self.frozen.pop(broker_id, None)
        for finish in self._missed.pop(broker_id, ()):
            finish(now)
        for partition in self._missed_elections.pop(broker_id, ()):
            state = self._image.partition(OFFSETS_TOPIC, partition)
            if state is not None and state.leader_id == broker_id:
                self._take_over(partition, state, now)
            elif broker_id in self._deposed.get(partition, ()):
                leader_epoch = None if state is None else state.leader_epoch
                self._resign(broker_id, partition, leader_epoch, now.group_ms)

    def tell_heartbeats(self, wanted: bool) -> None:
        """Whether coordinators that tell what happens tell of heartbeats too."""
        self.tells_heartbeats = wanted
        for broker in self.living.values():
            broker.coordinator.tell_heartbeats(wanted)

    def use_authorizer(self, authorizer: Authorizer | None) -> None:
        """Ask another authorizer from now on; None allows everything."""
        self.authorizer = authorizer
        for broker in self.living.values():
            broker.use_authorizer(authorizer)

    # -- requests --------------------------------------------------------------------------

    def handlers(self) -> Handlers:
        """Everything that a group coordinator answers."""
        return dict.fromkeys(GROUP_COORDINATOR_APIS, self._handle)

    def _handle(self, call: Call[GroupRequest]) -> None:
        """Take a request for one broker's coordinator; answers are delivered."""
        broker = self.living[call.broker_id]
        now_ms = call.now.group_ms
        self._deliver(call.broker_id, broker.handle(call.request, call.context, now_ms))
        self._settle(broker, now_ms)

    def persister_answered(
        self, broker: Broker, call: PersisterCall, answer: PersisterAnswer, now: Instants
    ) -> None:
        """Tell a broker's coordinator what became of what it asked of the share coordinator."""
        broker_id = broker.broker_id
        if broker_id in self.frozen:
            self._missed.setdefault(broker_id, []).append(
                lambda later: self.persister_answered(broker, call, answer, later)
            )
        elif self.living.get(broker_id) is broker:
            told = broker.coordinator.persister_answered(call.call_id, answer, now.group_ms)
            self._carry_out(broker, told)
            self._settle(broker, now.group_ms)

    def complete_transaction(
        self, request: CompleteTransaction, context: RequestContext, now: Instants
    ) -> bool:
        """End a producer's transaction on an offsets partition; False when nobody leads it.

        Its answer, a `TransactionCompleted`, is delivered under the token of the context.
        """
        broker = self.living.get(self._led.get(request.partition, -1))
        if broker is None:
            return False
        result = broker.coordinator.complete_transaction(request, context, now.group_ms)
        self._carry_out(broker, result)
        self._settle(broker, now.group_ms)
        return True

    def settings_changed(self, change: ConfigsChanged) -> None:
        """Clients changed the settings of a broker or a group."""
        if change.resource_type not in {BROKER_RESOURCE, GROUP_RESOURCE}:
            return
        group_id = change.name if change.resource_type == GROUP_RESOURCE else None
        for broker in self.living.values():
            config = self._config_of(broker.broker_id)
            self._news.tell_settings(broker.coordinator, config, group_id)

    def topic_deleted(self, name: str, topic_id: bytes, partitions: int, now: Instants) -> None:
        """Offsets of a topic that is gone go too; without the offsets topic nobody leads."""
        if name == OFFSETS_TOPIC:
            for partition in list(self._led):
                self._unload(partition, None, now.group_ms)
        for broker in self.living.values():
            self._news.tell_removed(broker.coordinator, name)
        gone = {name: DeletedTopic(topic_id=topic_id, partition_count=partitions)}
        for broker in list(self.living.values()):
            result = broker.coordinator.topics_deleted(gone, now.group_ms)
            self._carry_out(broker, result)
            self._settle(broker, now.group_ms)

    # -- leadership ------------------------------------------------------------------------

    def leader_changed(self, topic: str, partition: int, now: Instants) -> None:
        """An offsets partition has another leader: the old one unloads, the new one loads."""
        if topic != OFFSETS_TOPIC:
            return
        state = self._image.topics[OFFSETS_TOPIC].partitions[partition]
        old_id = self._led.get(partition)
        if old_id is not None and old_id != state.leader_id:
            if old_id in self.frozen:
                self.depose_unaware(partition)
                self._missed_elections.setdefault(old_id, {})[partition] = None
            else:
                self._unload(partition, state.leader_epoch, now.group_ms)
        if state.leader_id in self.frozen:
            self._missed_elections.setdefault(state.leader_id, {})[partition] = None
        else:
            self._take_over(partition, state, now)

    def _take_over(self, partition: int, state: PartitionState, now: Instants) -> None:
        """Let the leader of a partition, where there is one, begin to load it."""
        if state.leader_id in self._deposed.get(partition, ()):
            # It drops what it appended alone, and loads again.
            self._resign(state.leader_id, partition, state.leader_epoch, now.group_ms)
        if state.leader_id in self.living:
            self._begin_load(partition, state.leader_id, state.leader_epoch, now)

    def topic_changed(self, name: str, _now: Instants) -> None:
        """A topic has more partitions."""
        for broker in self.living.values():
            self._news.tell_topic(broker.coordinator, name)

    def topic_created(self, name: str, now: Instants) -> None:
        """A topic is there; the leaders of the offsets topic load it."""
        self.topic_changed(name, now)
        if name == OFFSETS_TOPIC:
            for partition in range(len(self._image.topics[name].partitions)):
                self.leader_changed(name, partition, now)

    def depose_unaware(self, partition: int) -> None:
        """Let the leader of a partition go on as one, unaware that it leads no more.

        What it appends from now on is on no other broker, and never committed. An election must
        follow; `notice` ends it.
        """
        leader_id = self._led.pop(partition, None)
        if leader_id is not None:
            coordinator = self.living[leader_id].coordinator
            coordinator.hold_high_watermark(hold=True, partition=partition)
            self._deposed.setdefault(partition, []).append(leader_id)
            self.offsets_topic.part(leader_id, partition)

    def notice(self, partition: int, now: Instants) -> None:
        """Let deposed leaders of a partition learn of the new leader, and resign."""
        state = self._image.topics[OFFSETS_TOPIC].partitions[partition]
        for broker_id in list(self._deposed.get(partition, ())):
            self._resign(broker_id, partition, state.leader_epoch, now.group_ms)

    def _resign(
        self, broker_id: int, partition: int, leader_epoch: int | None, now_ms: int
    ) -> None:
        self._deposed[partition].remove(broker_id)
        self.offsets_topic.follow(broker_id, partition)
        broker = self.living[broker_id]
        resigned = broker.coordinator.unload(partition, leader_epoch, now_ms)
        self._carry_out(broker, resigned)

    def hold_high_watermark(self, partition: int, *, hold: bool, now: Instants) -> None:
        """Leave the appends of a partition's leader uncommitted from now on, or commit them all."""
        for broker in self.living.values():
            if not hold or self._led.get(partition) == broker.broker_id:
                broker.coordinator.hold_high_watermark(hold=hold, partition=partition)
        leader = self.leader_of(partition)
        if leader is not None and not hold:
            self.advance_high_watermark(partition, leader.coordinator.end_offset(partition), now)

    def advance_high_watermark(self, partition: int, offset: int, now: Instants) -> None:
        """Commit the appends of a partition's leader that end at that offset or before."""
        leader = self.leader_of(partition)
        if leader is not None:
            released = leader.coordinator.advance_high_watermark(partition, offset, now.group_ms)
            self._carry_out(leader, released)

    def _unload(self, partition: int, leader_epoch: int | None, now_ms: int) -> None:
        old = self.living.get(self._led.pop(partition, -1))
        if old is not None:
            result = old.coordinator.unload(partition, leader_epoch, now_ms)
            self._carry_out(old, result)

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

    def leader_of(self, partition: int) -> Broker | None:
        """The living broker that leads an offsets partition, None when there is none."""
        return self.living.get(self._led.get(partition, -1))

    def _begin_load(self, partition: int, leader_id: int, leader_epoch: int, now: Instants) -> None:
        broker = self.living[leader_id]
        self._led[partition] = leader_id
        began = broker.coordinator.begin_load(partition, leader_epoch, now.group_ms)
        self._carry_out(broker, began)

        def finish(later: Instants) -> None:
            if leader_id in self.frozen:
                self._missed.setdefault(leader_id, []).append(finish)
                return
            state = self._image.partition(OFFSETS_TOPIC, partition)
            is_leader = self.living.get(leader_id) is broker
            if is_leader and state is not None and state.leader_epoch == leader_epoch:
                self._finish_load(broker, partition, later.group_ms)

        if self._settings.load_ms and self.offsets_topic.has_records(partition):
            self._scheduler.at_group_ms(now.group_ms + self._settings.load_ms, finish)
        else:
            finish(now)

    def _finish_load(self, broker: Broker, partition: int, now_ms: int) -> None:
        coordinator = broker.coordinator
        error = ErrorCode.KAFKA_STORAGE_ERROR
        if self.offsets_topic.is_readable(broker.broker_id, partition):
            try:
                for batch in self.offsets_topic.batches(partition):
                    coordinator.replay(partition, batch)
                error = ErrorCode.NONE
            except OSError as failure:
                self.offsets_topic.unreadable(partition, failure)
        loaded = coordinator.finish_load(partition, error, now_ms)
        self._carry_out(broker, loaded)

    # -- time ------------------------------------------------------------------------------

    def expire(self, now: Instants) -> None:
        """Fire every deadline up to now."""
        for broker in self._moving():
            self._settle(broker, now.group_ms)

    def arm(self) -> None:
        """Arm the scheduler for the timers of the brokers whose time goes on."""
        for broker in self._moving():
            self._scheduler.wake_by_group_ms(broker.wake_up_ms())

    def next_group_deadline_ms(self) -> int | None:
        """The earliest deadline of any group, None if there is none."""
        return earliest(broker.coordinator.next_deadline_ms() for broker in self._moving())

    def _moving(self) -> list[Broker]:
        living = self.living.values()
        return [each for each in living if each.broker_id not in self.frozen]

    def _carry_out(self, broker: Broker, result: CoordinatorResult) -> None:
        """Deliver what a verb of a coordinator caused that is not a client's request."""
        self._deliver(broker.broker_id, broker.pass_on(result))
        self._scheduler.wake_by_group_ms(broker.wake_up_ms())

    def _settle(self, broker: Broker, now_ms: int) -> None:
        """Fire what is due already: a delay of 0 ms ends within the verb that armed it."""
        if broker.broker_id in self.frozen:
            return
        wake_up_ms = broker.wake_up_ms()
        if wake_up_ms is not None and wake_up_ms <= now_ms:
            self._carry_out(broker, broker.coordinator.expire(now_ms))
        else:
            self._scheduler.wake_by_group_ms(wake_up_ms)
