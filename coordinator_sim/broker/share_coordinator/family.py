"""The share coordinators as one family of a served cluster, and how its parts ask them."""

from collections.abc import Callable
from typing import Final

from msgspec import convert
from msgspec.structs import replace

from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.configs.configs import NO_PERSISTER, Configs
from coordinator_sim.broker.contract import Call, Handlers, Instants
from coordinator_sim.broker.hosting import FollowingHosting
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.replicas.state_topic import StateTopic
from coordinator_sim.broker.security.authorizer import Operation
from coordinator_sim.broker.share_coordinator.operations import (
    StateRequest,
    StateResponse,
    failed_everywhere,
)
from coordinator_sim.broker.share_coordinator.persister import StatePersister
from coordinator_sim.broker.share_coordinator.ports import ShareCoordinatorConfig
from coordinator_sim.broker.share_coordinator.service import ShareCoordinator
from coordinator_sim.broker.shares.persister import NoOpPersister, Persister
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import SHARE_STATE_TOPIC
from coordinator_sim.log.format.steps import Steps

_SETTINGS: Final = {
    "updates_per_snapshot": "share.coordinator.snapshot.update.records.per.snapshot",
    "write_timeout_ms": "share.coordinator.write.timeout.ms",
    "append_linger_ms": "share.coordinator.append.linger.ms",
    "prune_interval_ms": "share.coordinator.state.topic.prune.interval.ms",
    "cold_interval_ms": "share.coordinator.cold.partition.snapshot.interval.ms",
}
"""The broker setting of each field of `ShareCoordinatorConfig`."""
FEATURE: Final = "share.version"
"""The feature that switches share groups on; level 0 is off."""

STATE_APIS: Final = (
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
)
"""The APIs of share coordinators, which brokers send each other."""


def _config_of(cluster: ClusterParts) -> ShareCoordinatorConfig:
    """The brokers' config; a release without cold snapshots makes none.

    Other settings that a release lacks keep their defaults: it has no share groups.
    """
    configs = cluster.configs
    given = {"cold_interval_ms": None} | {
        field: configs.broker_value(name)
        for field, name in _SETTINGS.items()
        if name in configs.broker
    }
    settings = cluster.settings
    return convert(
        {
            **given,
            "state_topic_partitions": settings.share_state_partitions,
            "profile": settings.profile,
            "load_ms": settings.load_ms,
        },
        ShareCoordinatorConfig,
    )


def _own_config(config: ShareCoordinatorConfig, image: MetadataImage) -> ShareCoordinatorConfig:
    """The config of one broker, which counts the partitions of an existing topic at its start.

    Source: BrokerMetadataPublisher.initializeManagers.
    """
    topic = image.topics.get(SHARE_STATE_TOPIC)
    return (
        config if topic is None else replace(config, state_topic_partitions=len(topic.partitions))
    )


def _keeps_state(configs: Configs) -> bool:
    """Whether the brokers have a persister. Source: BrokerServer.createShareStatePersister."""
    name = "group.share.persister.class.name"
    return name not in configs.broker or configs.broker_value(name) not in NO_PERSISTER


class _Topics:
    """The cluster's topics, by id; implements `KnownTopics`."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image

    def partition_count(self, topic_id: bytes) -> int | None:
        """How many partitions a topic has; None where there is no such topic."""
        name = self._image.topic_names.get(topic_id)
        return None if name is None else len(self._image.topics[name].partitions)


class ShareCoordination:
    """The family; it hears of the cluster's events, and has its deadlines met.

    Args:
        cluster: The parts of the cluster.
        draw: Gives a number from 0 up to, and without, 1.

    Attributes:
        hosting: The coordinators.
        persister: How share partitions and group coordinators ask them.
    """

    def __init__(self, cluster: ClusterParts, draw: Callable[[], float]) -> None:
        self._cluster = cluster
        self._log = StateTopic(
            SHARE_STATE_TOPIC,
            cluster.hosted,
            touched=cluster.cluster_events.touched,
            is_slowed=True,
        )
        config, topics = _config_of(cluster), _Topics(cluster.image)

        def make(now: Instants) -> ShareCoordinator:
            coordinator = ShareCoordinator(
                _own_config(config, cluster.image),
                self._log,
                topics,
                cluster.scheduler.wake_by_group_ms,
            )
            coordinator.startup()
            cluster.cluster_events.listen(self._readable)
            coordinator.enable(is_enabled=self._is_enabled(), now_ms=now.group_ms)
            return coordinator

        self.hosting = FollowingHosting(
            SHARE_STATE_TOPIC, cluster.image, cluster.brokers, make=make, followed=self._enable
        )
        self.persister: Persister = (
            StatePersister(self.hosting, cluster, draw)
            if _keeps_state(cluster.configs)
            else NoOpPersister()
        )
        self.hosting.listen(cluster.cluster_events)
        cluster.cluster_events.topic_deleted.append(self._topic_deleted)
        cluster.scheduler.watch(self)

    def handlers(self) -> Handlers:
        """Handlers of the APIs of the share coordinator; none in a Kafka without share groups.

        Whether share groups are on is not checked.
        """
        if not self._cluster.settings.profile.share_groups:
            return {}
        return dict.fromkeys(STATE_APIS, self._cluster.jobs.handler(self._steps))

    def _steps(self, call: Call[StateRequest]) -> Steps[StateResponse | None]:
        """Source: KafkaApis.handleInitializeShareGroupStateRequest and its four siblings."""
        if not self._cluster.allows_cluster(call, Operation.CLUSTER_ACTION):
            # Source: toGlobalErrorResponse of each response class.
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return failed_everywhere(call.request, error, error_message(error))
        token = call.context.token

        def answer(response: StateResponse) -> None:
            self._cluster.answer(token, response)

        coordinator = self.hosting.coordinator(call.broker_id, call.now)
        yield from coordinator.handle(call.request, answer, call.now.group_ms)
        return None

    def _is_enabled(self) -> bool:
        return self._cluster.image.features.get(FEATURE, 0) > 0

    # -- what happens -------------------------------------------------------------------------

    def _enable(self, now: Instants) -> None:
        """Source: ShareCoordinatorService.onMetadataUpdate."""
        for coordinator in self.hosting.running():
            coordinator.enable(is_enabled=self._is_enabled(), now_ms=now.group_ms)

    def _topic_deleted(self, _name: str, topic_id: bytes, _count: int, now: Instants) -> None:
        for coordinator in self.hosting.running():
            coordinator.topics_deleted((topic_id,), now.group_ms)

    def _readable(self, topic_partition: Place) -> None:
        """A partition's high watermark may have moved."""
        topic, partition = topic_partition
        if topic != SHARE_STATE_TOPIC:
            return
        coordinator = self.hosting.leader_of(partition)
        if coordinator is not None:
            committed = self._log.high_watermark(partition)
            coordinator.committed(partition, committed, self._cluster.latest.group_ms)

    # -- time ---------------------------------------------------------------------------------

    def expire(self, now: Instants) -> None:
        """Run due upkeep, timeouts and loads."""
        self.hosting.follow(now)
        for coordinator in self.hosting.running():
            coordinator.expire(now.group_ms)

    def arm(self) -> None:
        """Arm the scheduler for the earliest of them; the persister's retries are tasks."""
        self.hosting.arm()

    def next_group_deadline_ms(self) -> int | None:
        """The earliest of them that will find something to do."""
        return self.hosting.next_group_deadline_ms()
