"""The share coordinators as one family of a served cluster, and how its parts ask them."""

from collections.abc import Callable
from typing import Final, Protocol

from msgspec import convert

from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.configs.configs import NO_PERSISTER, Configs
from coordinator_sim.broker.contract import Answers, Handlers, Instants
from coordinator_sim.broker.jobs import Jobs
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.metadata.topic_operations import TopicOperations
from coordinator_sim.broker.replicas.state_topic import HostedLogs, StateTopic
from coordinator_sim.broker.scheduler import Scheduler
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.broker.share_coordinator.apis import ShareStateApis
from coordinator_sim.broker.share_coordinator.brokers import ShareCoordinators
from coordinator_sim.broker.share_coordinator.persister import StatePersister
from coordinator_sim.broker.share_coordinator.ports import ShareCoordinatorConfig
from coordinator_sim.broker.shares.persister import NoOpPersister, Persister
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import SHARE_STATE_TOPIC

_SETTINGS: Final = {
    "updates_per_snapshot": "share.coordinator.snapshot.update.records.per.snapshot",
    "write_timeout_ms": "share.coordinator.write.timeout.ms",
    "append_linger_ms": "share.coordinator.append.linger.ms",
    "prune_interval_ms": "share.coordinator.state.topic.prune.interval.ms",
    "cold_interval_ms": "share.coordinator.cold.partition.snapshot.interval.ms",
}
"""The broker setting of each field of `ShareCoordinatorConfig`."""


class RunningBrokers(Protocol):
    """The brokers of a cluster."""

    def is_running(self, broker_id: int) -> bool:
        """Whether a broker's process lives, and its time does not stand still."""
        ...


class ClusterParts(Answers, Protocol):
    """The parts of a cluster that share coordinators use; see `Cluster`."""

    settings: ClusterSettings
    configs: Configs
    image: MetadataImage
    cluster_events: ClusterEvents
    access: Access
    topics: TopicOperations
    scheduler: Scheduler
    latest: Instants
    jobs: Jobs

    @property
    def hosted(self) -> HostedLogs:
        """The logs as the brokers may use them."""
        ...

    @property
    def groups(self) -> RunningBrokers:
        """The brokers."""
        ...

    @property
    def append_failure(self) -> ErrorCode:
        """The error of every append, on purpose; NONE as a rule."""
        ...


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


def _keeps_state(configs: Configs) -> bool:
    """Whether the brokers have a persister. Source: BrokerServer.createShareStatePersister."""
    name = "group.share.persister.class.name"
    return name not in configs.broker or configs.broker_value(name) not in NO_PERSISTER


class ShareCoordination:
    """The family; it hears of the cluster's events, and has its deadlines met.

    Args:
        cluster: The cluster; its logs, groups and metadata must exist already.
        draw: Gives a number from 0 up to, and without, 1.

    Attributes:
        brokers: The coordinators.
        persister: How share partitions and group coordinators ask them.
    """

    __slots__ = ("_apis", "_is_known", "_scheduler", "brokers", "persister")

    def __init__(self, cluster: ClusterParts, draw: Callable[[], float]) -> None:
        groups = cluster.groups
        self._is_known = cluster.settings.profile.share_groups
        log = StateTopic(
            SHARE_STATE_TOPIC,
            cluster.image,
            cluster.hosted,
            touched=cluster.cluster_events.touched,
            append_failure=lambda: cluster.append_failure,
            is_slowed=True,
        )
        self.brokers = ShareCoordinators(
            _config_of(cluster),
            cluster.image,
            log,
            is_running=groups.is_running,
            present=lambda: cluster.latest,
            wake_by=cluster.scheduler.wake_by_group_ms,
        )
        self.persister: Persister = (
            StatePersister(
                self.brokers,
                cluster.image,
                cluster.scheduler,
                create_topic=cluster.topics.create_asked_for,
                is_running=groups.is_running,
                present=lambda: cluster.latest,
                draw=draw,
            )
            if _keeps_state(cluster.configs)
            else NoOpPersister()
        )
        self._apis = ShareStateApis(cluster.access, self.brokers.coordinator, cluster.jobs)
        self.brokers.listen(cluster.cluster_events)
        self._scheduler = cluster.scheduler
        self._scheduler.watch(self)

    def handlers(self) -> Handlers:
        """Handlers of the APIs of the share coordinator; none in a Kafka without share groups."""
        return self._apis.handlers() if self._is_known else {}

    def expire(self, now: Instants) -> None:
        """Run due upkeep, timeouts and loads."""
        self.brokers.expire(now)

    def arm(self) -> None:
        """Arm the scheduler for the earliest of them; the persister's retries are tasks."""
        self._scheduler.wake_by_group_ms(self.next_group_deadline_ms())

    def next_group_deadline_ms(self) -> int | None:
        """The earliest of them that will find something to do."""
        return self.brokers.next_deadline_ms()
