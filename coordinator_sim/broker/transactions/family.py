"""All APIs of transactions as one family of a served cluster."""

from typing import Final

from msgspec import convert

from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Handlers, Instants
from coordinator_sim.broker.hosting import FollowingHosting
from coordinator_sim.broker.replicas.state_topic import StateTopic
from coordinator_sim.broker.scheduler import NO_TOKEN
from coordinator_sim.broker.transactions.apis import TransactionApis
from coordinator_sim.broker.transactions.coordinator import ProducerIds, TransactionCoordinator
from coordinator_sim.broker.transactions.logs import CompleteOffsets, MarkerDelivery
from coordinator_sim.broker.transactions.marker_api import MarkerApi
from coordinator_sim.broker.transactions.ports import TransactionConfig
from coordinator_sim.broker.transactions.states import TransactionStates
from coordinator_sim.broker.transactions.verification import AddPartitionsToTxnManager
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
        cluster: The parts of the cluster.
        complete_offsets: Writes the markers in `__consumer_offsets`.

    Attributes:
        verifier: Verifies transactions for Produce and for the group coordinators.
    """

    def __init__(self, cluster: ClusterParts, complete_offsets: CompleteOffsets) -> None:
        self._jobs = cluster.jobs
        image = cluster.image
        config = _config_of(cluster)
        log = StateTopic(TRANSACTIONS_TOPIC, cluster.hosted, touched=cluster.cluster_events.touched)
        self._delivery = delivery = MarkerDelivery(
            cluster.hosted,
            complete_offsets,
            admit=cluster.admit,
            is_running=cluster.brokers.is_running,
            touched=cluster.cluster_events.touched,
        )

        def make(now: Instants) -> TransactionCoordinator:
            return TransactionCoordinator(
                config,
                TransactionStates(config, image, log),
                ProducerIds(image, cluster.change),
                delivery,
                cluster.scheduler,
                now.group_ms,
            )

        self._hosting = FollowingHosting(
            TRANSACTIONS_TOPIC, image, cluster.brokers, make=make, followed=self._leaders_changed
        )
        offsets_partitions = cluster.settings.coordinator.offsets_topic_num_partitions
        self.verifier = AddPartitionsToTxnManager(
            config,
            image,
            self._hosting,
            offsets_partitions=offsets_partitions,
            log_of=cluster.logs.log_of,
            present=lambda: cluster.latest,
        )
        self._families = (
            TransactionApis(
                image,
                cluster.access,
                self._hosting.coordinator,
                cluster.jobs,
                offsets_partitions=offsets_partitions,
                bumps_epochs=config.bumps_epochs,
            ),
            MarkerApi(image, cluster.access, cluster.jobs, delivery),
        )
        self._hosting.listen(cluster.cluster_events)

    def handlers(self) -> Handlers:
        """Handlers of all APIs of transactions."""
        return {api: each for family in self._families for api, each in family.handlers().items()}

    def _leaders_changed(self, now: Instants) -> None:
        """Send markers again that waited for a leader."""
        self._delivery.leaders_changed()
        for coordinator in list(self._hosting.coordinators.values()):
            coordinator.markers.retry(now)

    def expire(self, now: Instants) -> None:
        """Run due aborts, expiry of ids and retries of markers."""
        self._hosting.follow(now)
        for coordinator in self._hosting.running():
            self._jobs.start(NO_TOKEN, coordinator.expire(now))

    def arm(self) -> None:
        """Arm the scheduler for the earliest sweep and the earliest retry of a marker."""
        self._hosting.arm()

    def next_group_deadline_ms(self) -> int | None:
        """The earliest sweep that will find something to do."""
        return self._hosting.next_group_deadline_ms()
