"""A whole cluster behind its connections: one metadata image, one log a partition, N brokers.

Verbs come with the instants of both clocks, and cause answers and events. Replicas are labels.
"""

from collections.abc import Callable
from functools import partial

from coordinator_sim.broker.apis.acl_api import AclApi
from coordinator_sim.broker.apis.cluster_api import ClusterApi
from coordinator_sim.broker.apis.configs_api import ConfigsApi
from coordinator_sim.broker.apis.control_api import ControlApi
from coordinator_sim.broker.apis.features_api import FeaturesApi, feature_changes
from coordinator_sim.broker.apis.metadata_api import MetadataApi
from coordinator_sim.broker.apis.quotas_api import QuotasApi
from coordinator_sim.broker.apis.reassignment_api import ReassignmentApi
from coordinator_sim.broker.apis.scram_api import ScramApi
from coordinator_sim.broker.apis.topics_api import TopicsApi
from coordinator_sim.broker.cluster_parts import ClusterParts, TraceSink
from coordinator_sim.broker.contract import Family, Instants
from coordinator_sim.broker.draws import DrawBytes, chance, drawn_bytes, drawn_ids
from coordinator_sim.broker.faults.fault_checks import check_fits
from coordinator_sim.broker.faults.faults import Fault, Faults, FaultState
from coordinator_sim.broker.groups.discovery_api import DiscoveryApi
from coordinator_sim.broker.groups.group_checks import TopologyDescriptions
from coordinator_sim.broker.groups.group_coordinators import GroupCoordinators, IdsOf
from coordinator_sim.broker.metadata.changes import ClusterStarted
from coordinator_sim.broker.metadata.kept import Kept
from coordinator_sim.broker.metadata.topic_operations import INTERNAL_TOPICS
from coordinator_sim.broker.offered import first_levels, offered, offered_features
from coordinator_sim.broker.operations import Operations
from coordinator_sim.broker.records.families import DataApis, DataSettings
from coordinator_sim.broker.replicas.log_manager import LogMaintenance, NewStore
from coordinator_sim.broker.security.authorizer import Authorizer
from coordinator_sim.broker.security.sasl import SaslApi
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.broker.share_coordinator.family import ShareCoordination
from coordinator_sim.broker.shares.family import Shares
from coordinator_sim.broker.transactions.family import Transactions
from coordinator_sim.broker.versions_api import VersionsApi
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.seeded_ids import SeededIds
from coordinator_sim.log.memory_store import MemoryStore


def administration_apis(cluster: ClusterParts) -> tuple[Family, ...]:
    """The admin API families of one cluster."""
    return (
        MetadataApi(cluster),
        ClusterApi(cluster),
        ControlApi(cluster),
        TopicsApi(cluster),
        ReassignmentApi(cluster),
        ConfigsApi(cluster),
        QuotasApi(cluster),
        FeaturesApi(cluster),
        AclApi(cluster),
        ScramApi(cluster),
    )


class Cluster(ClusterParts):
    """The cluster: makes the families of APIs.

    Requests, time and changes come in by the verbs of `ClusterParts`.

    Args:
        settings: How it starts.
        endpoint: Where a broker is reached on a listener.
        kept: What outlives the process, and `begin` goes on with; None for nothing.
        new_store: Makes the store of a partition's log where nothing is kept.
        trace: Takes events; None spends nothing on them.
        authorizer: None for what the settings say.
        draw_bytes: Bytes that nobody can guess; None to draw them from the seed.
        ids_of: Gives a coordinator's source of member ids; None to draw them from the seed.

    Attributes:
        groups: The group coordinators of the living brokers.
        versions: What is offered.
        transactions: The transaction coordinators of the brokers.
        share_coordinators, shares: Their share coordinators and share partitions.
        data: The APIs about records.
        faults: What is done to requests on purpose.
        operations: What is done to the cluster from outside.
    """

    def __init__(  # noqa: PLR0913 - what a cluster is made of, by keyword
        self,
        settings: ClusterSettings,
        *,
        endpoint: Callable[[int, str], Endpoint | None],
        kept: Kept | None = None,
        new_store: NewStore = lambda *_: MemoryStore(),
        trace: TraceSink | None = None,
        authorizer: Authorizer | None = None,
        draw_bytes: DrawBytes | None = None,
        ids_of: IdsOf | None = None,
    ) -> None:
        super().__init__(
            settings,
            endpoint=endpoint,
            kept=kept,
            new_store=new_store,
            authorizer=authorizer,
            draw_bytes=draw_bytes or drawn_bytes(settings.seed),
            trace=trace,
        )
        self.faults = Faults(chance(settings.seed))
        ids = SeededIds(settings.seed + (self.image.start_count << 32))
        self.groups = GroupCoordinators(self, ids_of or (lambda _broker_id: ids))
        self.faults.role_of = self.groups.role_of
        self.faults.coordinates = self.groups.coordinates
        self.operations = Operations(self, self.groups)
        self._listen()
        self.transactions = Transactions(self, self.groups.complete_transaction)
        self.groups.verifier = self.transactions.verifier
        self.data = self._data_apis()
        self.scheduler.watch(self.groups, self.data, self.transactions, self._upkeep())
        self.versions = self._serve_families()
        for broker_id in settings.broker_ids:
            self.brokers.start(broker_id)
        self.security.admit_users(self.change)

    def _listen(self) -> None:
        """Let the group coordinators and logs follow topics and leaders, in this order."""
        cluster_events = self.cluster_events
        cluster_events.topic_created.append(self.groups.topic_created)
        cluster_events.partitions_added.append(self.groups.topic_changed)
        cluster_events.topic_deleted += (self.groups.topic_deleted, self.logs.topic_deleted)
        cluster_events.leader_changed += (self.groups.leader_changed, self.logs.leader_changed)

    def _serve_families(self) -> VersionsApi:
        """Collect the handlers of all APIs, and compute the versions that are offered."""
        self.share_coordinators = ShareCoordination(self, chance(self.settings.seed + 1))
        self.shares = Shares(self, self.groups, self.share_coordinators.persister)
        for family in self._families():
            self._handlers.update(family.handlers())
        settings = self.settings
        features = offered_features(settings.profile, self.configs)
        for name, level in first_levels(features, settings.features).items():
            if name not in self.image.features:
                for change in feature_changes(name, level, self.configs, self.image):
                    self.change(change)
        ranges = offered(settings.profile, [ApiKey.API_VERSIONS, *self._handlers], self.configs)
        versions = VersionsApi(ranges, features, self.image, cluster_id=settings.cluster_id)
        self._handlers.update(versions.handlers())
        self.faults.check = partial(
            check_fits, ranges=versions.ranges, broker_ids=settings.broker_ids
        )
        return versions

    def add_fault(self, fault: Fault, now: Instants) -> FaultState:
        """Add a fault rule behind the existing ones, until its time is over.

        Raises:
            ConfigError: the rule could never act.
        """
        added = self.faults.add(fault)
        if fault.for_ms is not None:
            end_ms = now.wall_ms + fault.for_ms
            self.scheduler.at_wall_ms(end_ms, lambda _now: self.faults.end(added.fault_id))
        return added

    def begin(self, now: Instants) -> None:
        """Go on with what was kept: every partition has a leader again, coordinators load."""
        if (kept := self._kept) is None:
            return
        self.cluster_events.topic_deleted.append(kept.topic_deleted)
        kept.storage_failed = self.storage_failed
        kept.trouble = self.trouble
        kept.schedule(self.scheduler)
        self.cluster_events.readable.append(kept.log_changed)
        self.logs.changed.append(kept.log_changed)
        self.latest = now
        self.topics.restore()
        self.change(ClusterStarted(self.settings.broker_ids))
        for name in INTERNAL_TOPICS:
            state = self.image.topics.get(name)
            for partition in range(len(state.partitions) if state else 0):
                for listener in self.cluster_events.leader_changed:
                    listener(name, partition, now)

    def leave(self) -> None:
        """Leave what is kept as the next process wants it.

        Raises:
            OSError: something could not be written; the next process recovers.
        """
        self.logs.close()
        if self._kept is not None:
            self._kept.close()

    def _data_apis(self) -> DataApis:
        """The APIs about records, which hear what happens."""
        data = DataApis(
            self.hosted,
            self.access,
            self.jobs,
            draw=drawn_ids(self.settings.seed),
            cluster_events=self.cluster_events,
            gate=self.transactions.verifier,
            quotas=self.quotas,
            scheduler=self.scheduler,
            settings=DataSettings.of(self.configs, self.settings.profile),
        )
        self.brokers.stopped.append(data.fetches.forget_broker)
        return data

    def _upkeep(self) -> LogMaintenance:
        upkeep = LogMaintenance(
            self.logs, self.configs, self.storage_failed, self.trouble, self.scheduler
        )
        upkeep.listen(self.cluster_events)
        return upkeep

    def _families(self) -> tuple[Family, ...]:
        """All families of APIs but ApiVersions, which needs their list."""
        return (
            self.groups,
            self.data,
            *administration_apis(self),
            self.transactions,
            self.share_coordinators,
            self.shares,
            SaslApi(),
            TopologyDescriptions(self.access, self.groups.offers),
            DiscoveryApi(
                self.image,
                self.access,
                endpoint=self.endpoint,
                create_internal=self.topics.create_asked_for,
            ),
        )
