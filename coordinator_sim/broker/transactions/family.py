"""All APIs of transactions as one family of a served cluster."""

from typing import Final, Protocol

from msgspec import convert

from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.contract import Answers, Handlers, Instants
from coordinator_sim.broker.jobs import NO_TOKEN, Jobs
from coordinator_sim.broker.metadata.changes import Change
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.pending_answer import AnswerPlace
from coordinator_sim.broker.replicas.log_manager import LogManager
from coordinator_sim.broker.replicas.state_topic import HostedLogs, StateTopic
from coordinator_sim.broker.scheduler import Scheduler
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.broker.transactions.apis import TransactionApis
from coordinator_sim.broker.transactions.brokers import OffsetsVerifier, TransactionBrokers
from coordinator_sim.broker.transactions.logs import CompletesOffsets, MarkerDelivery
from coordinator_sim.broker.transactions.marker_api import MarkerApi
from coordinator_sim.broker.transactions.ports import TransactionConfig
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import TRANSACTIONS_TOPIC

_SETTINGS: Final = {
    "transactional_id_expiration_ms": "transactional.id.expiration.ms",
    "transaction_max_timeout_ms": "transaction.max.timeout.ms",
    "abort_interval_ms": "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    "expiration_interval_ms": "transaction.remove.expired.transaction.cleanup.interval.ms",
    "two_phase_commit_enable": "transaction.two.phase.commit.enable",
    "partition_verification_enable": "transaction.partition.verification.enable",
}
"""The broker setting of each field of `TransactionConfig`."""


class RunningBrokers(CompletesOffsets, Protocol):
    """The brokers with their group coordinators."""

    def is_running(self, broker_id: int) -> bool:
        """Whether a broker's process lives, and its time does not stand still."""
        ...


class ClusterParts(Answers, Protocol):
    """The parts of a cluster that transactions use; see `Cluster`."""

    settings: ClusterSettings
    configs: Configs
    image: MetadataImage
    cluster_events: ClusterEvents
    access: Access
    logs: LogManager
    latest: Instants
    jobs: Jobs
    scheduler: Scheduler

    @property
    def hosted(self) -> HostedLogs:
        """The logs as the brokers may use them."""
        ...

    @property
    def groups(self) -> RunningBrokers:
        """The brokers, and who writes markers for groups."""
        ...

    @property
    def append_failure(self) -> ErrorCode:
        """The error of every append, on purpose; NONE as a rule."""
        ...

    def change(self, change: Change, /) -> None:
        """Change the metadata."""
        ...

    def admit(self, pending: AnswerPlace, /) -> int:
        """Give a request the token that names its answer."""
        ...


def _config_of(cluster: ClusterParts) -> TransactionConfig:
    """The brokers' config; settings that a release lacks keep their defaults.

    A release without the setting of the verification does not verify: Kafka does since 3.5.
    """
    configs = cluster.configs
    given = {"partition_verification_enable": False} | {
        field: configs.broker_value(name)
        for field, name in _SETTINGS.items()
        if name in configs.broker
    }
    return convert(
        {
            **given,
            "transaction_state_log_num_partitions": cluster.settings.transaction_partitions,
            "bumps_epochs": cluster.settings.profile.bumps_transaction_epochs,
        },
        TransactionConfig,
    )


class Transactions:
    """The family of transaction APIs.

    Args:
        cluster: The cluster; its logs, groups and metadata must exist already.

    Attributes:
        brokers: The coordinators, which also verify transactions for Produce.
        verifier: Verifies transactions for the group coordinators.
    """

    __slots__ = ("_families", "_jobs", "brokers", "verifier")

    def __init__(self, cluster: ClusterParts) -> None:
        self._jobs = cluster.jobs
        config = _config_of(cluster)
        groups = cluster.groups
        state_topic = StateTopic(
            TRANSACTIONS_TOPIC,
            cluster.image,
            cluster.hosted,
            touched=cluster.cluster_events.touched,
            append_failure=lambda: cluster.append_failure,
        )
        delivery = MarkerDelivery(
            cluster.image,
            cluster.hosted,
            groups,
            admit=cluster.admit,
            is_running=groups.is_running,
            touched=cluster.cluster_events.touched,
        )
        self.brokers = TransactionBrokers(
            config,
            cluster.image,
            state_topic,
            delivery,
            change=cluster.change,
            is_running=groups.is_running,
            scheduler=cluster.scheduler,
        )
        offsets_partitions = cluster.settings.coordinator.offsets_topic_num_partitions
        self.verifier = OffsetsVerifier(
            self.brokers,
            offsets_partitions=offsets_partitions,
            log_of=cluster.logs.log_of,
            present=lambda: cluster.latest,
        )
        self._families = (
            TransactionApis(
                cluster.image,
                cluster.access,
                self.brokers.coordinator,
                cluster.jobs,
                offsets_partitions=offsets_partitions,
                bumps_epochs=config.bumps_epochs,
            ),
            MarkerApi(cluster.image, cluster.access, cluster.jobs, delivery),
        )

    def handlers(self) -> Handlers:
        """Handlers of all APIs of transactions."""
        return {api: each for family in self._families for api, each in family.handlers().items()}

    def listen(self, cluster_events: ClusterEvents) -> None:
        """Subscribe to changes of leaders and topics."""
        self.brokers.listen(cluster_events)

    def expire(self, now: Instants) -> None:
        """Run due aborts, expiry of ids and retries of markers."""
        for due in self.brokers.expire(now):
            self._jobs.start(NO_TOKEN, due)

    def arm(self) -> None:
        """Arm the scheduler for the earliest sweep and the earliest retry of a marker."""
        self.brokers.arm()

    def next_group_deadline_ms(self) -> int | None:
        """The earliest sweep that will find something to do."""
        return self.brokers.next_group_deadline_ms()
