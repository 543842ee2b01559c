"""The share coordinators of all brokers: who leads which partition of the topic, and deadlines.

Source: kafka 4.3, BrokerMetadataPublisher.scala (elections, resignations, deleted topics);
ShareCoordinatorService.onMetadataUpdate.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import NO_LEADER, MetadataImage
from coordinator_sim.broker.replicas.state_topic import StateTopic
from coordinator_sim.broker.scheduler import WakeBy, earliest
from coordinator_sim.broker.share_coordinator.ports import ShareCoordinatorConfig
from coordinator_sim.broker.share_coordinator.service import ShareCoordinator
from coordinator_sim.kafka.partitioning import SHARE_STATE_TOPIC

FEATURE: Final = "share.version"
"""The feature that switches share groups on; level 0 is off."""


class _Led(Struct, frozen=True):
    """The leader of a partition: broker, broker epoch and leader epoch."""

    broker_id: int
    broker_epoch: int
    leader_epoch: int


class _Topics:
    """The cluster's topics, by id; implements `KnownTopics`."""

    __slots__ = ("_image",)

    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    def partition_count(self, topic_id: bytes) -> int | None:
        """How many partitions a topic has; None where there is no such topic."""
        name = self._image.topic_names.get(topic_id)
        return None if name is None else len(self._image.topics[name].partitions)


class ShareCoordinators:
    """All share coordinators.

    Args:
        config: Settings of every broker.
        image: The cluster's metadata.
        log: The topic.
        is_running: Whether a broker is alive and not frozen.
        present: The instants of what is under way.
        wake_by: Arms the alarm for a deadline, by the group clock.
    """

    __slots__ = (
        "_config",
        "_image",
        "_is_running",
        "_led",
        "_log",
        "_members",
        "_present",
        "_seen_version",
        "_topics",
        "_wake_by",
    )

    def __init__(
        self,
        config: ShareCoordinatorConfig,
        image: MetadataImage,
        log: StateTopic,
        *,
        is_running: Callable[[int], bool],
        present: Callable[[], Instants],
        wake_by: WakeBy,
    ) -> None:
        self._config = config
        self._image = image
        self._log = log
        self._is_running = is_running
        self._present = present
        self._wake_by = wake_by
        self._topics = _Topics(image)
        self._members: dict[int, tuple[int, ShareCoordinator]] = {}
        self._led: dict[int, _Led] = {}
        self._seen_version = -1

    def coordinator(self, broker_id: int, now: Instants) -> ShareCoordinator:
        """The coordinator of a broker, with all partitions loaded, or loading, that it leads."""
        self.sync(now)
        return self._member(broker_id, now)

    def _member(self, broker_id: int, now: Instants) -> ShareCoordinator:
        """The coordinator of a broker, made anew and empty when its broker epoch changed."""
        broker_epoch = self._image.broker_epochs.get(broker_id, 0)
        known = self._members.get(broker_id)
        if known is not None and known[0] == broker_epoch:
            return known[1]
        coordinator = ShareCoordinator(self._own_config(), self._log, self._topics, self._wake_by)
        coordinator.startup()
        coordinator.enable(is_enabled=self._is_enabled(), now_ms=now.group_ms)
        self._members[broker_id] = (broker_epoch, coordinator)
        return coordinator

    def _own_config(self) -> ShareCoordinatorConfig:
        """A broker asks at its start how many partitions there are; a topic that is there counts.

        Source: BrokerMetadataPublisher.initializeManagers.
        """
        topic = self._image.topics.get(SHARE_STATE_TOPIC)
        if topic is None:
            return self._config
        return replace(self._config, state_topic_partitions=len(topic.partitions))

    def _is_enabled(self) -> bool:
        return self._image.features.get(FEATURE, 0) > 0

    # -- what happens -------------------------------------------------------------------------

    def listen(self, cluster_events: ClusterEvents) -> None:
        """Subscribe to changes of leaders and topics, and to what is written."""
        cluster_events.leader_changed.append(lambda _topic, _partition, now: self.sync(now))
        cluster_events.topic_created.append(lambda _name, now: self.sync(now))
        cluster_events.topic_deleted.append(self._topic_deleted)
        cluster_events.readable.append(self._readable)

    def _topic_deleted(self, _name: str, topic_id: bytes, _count: int, now: Instants) -> None:
        self.sync(now)
        for coordinator in self._running():
            coordinator.topics_deleted((topic_id,), now.group_ms)

    def _readable(self, topic: str, partition: int) -> None:
        """A partition's high watermark may have moved."""
        led = self._led.get(partition) if topic == SHARE_STATE_TOPIC else None
        known = None if led is None else self._members.get(led.broker_id)
        if known is not None:
            committed = self._log.high_watermark(partition)
            known[1].committed(partition, committed, self._present().group_ms)

    def sync(self, now: Instants) -> None:
        """Follow the metadata: load what each broker leads now, unload the others."""
        if self._seen_version == self._image.version:
            return
        self._seen_version = self._image.version
        topic = self._image.topics.get(SHARE_STATE_TOPIC)
        partitions = topic.partitions if topic is not None else []
        for number in [each for each in self._led if each >= len(partitions)]:
            self._resign(number, self._led.pop(number), None, now)
        for number, state in enumerate(partitions):
            broker_epoch = self._image.broker_epochs.get(state.leader_id, 0)
            leads = _Led(state.leader_id, broker_epoch, state.leader_epoch)
            led = self._led.get(number)
            if leads == led:
                continue
            self._led[number] = leads
            if led is not None:
                self._resign(number, led, state.leader_epoch, now)
            if state.leader_id != NO_LEADER:
                member = self._member(state.leader_id, now)
                member.on_election(number, state.leader_epoch, now.group_ms)
        for coordinator in self._running():
            coordinator.enable(is_enabled=self._is_enabled(), now_ms=now.group_ms)

    def _resign(self, number: int, led: _Led, leader_epoch: int | None, now: Instants) -> None:
        known = self._members.get(led.broker_id)
        if known is not None and known[0] == led.broker_epoch:
            known[1].on_resignation(number, leader_epoch, now.group_ms)

    # -- time ---------------------------------------------------------------------------------

    def expire(self, now: Instants) -> None:
        """Run what is due at every running broker."""
        self.sync(now)
        for coordinator in self._running():
            coordinator.expire(now.group_ms)

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline of a running broker, on the group clock."""
        return earliest(each.next_deadline_ms() for each in self._running())

    def _running(self) -> list[ShareCoordinator]:
        return [
            coordinator
            for broker_id, (broker_epoch, coordinator) in self._members.items()
            if self._is_running(broker_id)
            and broker_epoch == self._image.broker_epochs.get(broker_id, 0)
        ]
