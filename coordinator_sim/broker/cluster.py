"""A whole cluster behind its connections: one metadata image, one log a partition, N brokers.

Verbs come with the instants of both clocks, and cause answers and events. Replicas are labels.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from coordinator_sim.broker.apis.administration import Administration
from coordinator_sim.broker.apis.families import administration_apis
from coordinator_sim.broker.apis.features_api import feature_changes
from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.configs.log_settings import LogSettings
from coordinator_sim.broker.contract import Call, Family, Handler, Instants
from coordinator_sim.broker.draws import DrawBytes, chance, drawn_bytes, drawn_ids
from coordinator_sim.broker.error_answers import error_answer
from coordinator_sim.broker.faults.fault_checks import check_fits
from coordinator_sim.broker.faults.faults import Faults
from coordinator_sim.broker.groups.discovery_api import DiscoveryApi
from coordinator_sim.broker.groups.group_coordinators import GroupCoordinators, IdsOf
from coordinator_sim.broker.groups.offsets_topic import OffsetsTopic
from coordinator_sim.broker.groups.old_offsets import old_offsets
from coordinator_sim.broker.groups.streams_checks import TopologyDescriptions
from coordinator_sim.broker.jobs import Jobs, Waiting
from coordinator_sim.broker.metadata.changes import (
    Change,
    ClusterStarted,
    ConfigsChanged,
    FeatureSet,
    QuotaSet,
)
from coordinator_sim.broker.metadata.image import NO_LEADER, MetadataImage
from coordinator_sim.broker.metadata.kept import Kept
from coordinator_sim.broker.metadata.leadership import Leadership
from coordinator_sim.broker.metadata.topic_operations import INTERNAL_TOPICS, TopicOperations
from coordinator_sim.broker.offered import first_levels, offered, offered_features
from coordinator_sim.broker.operations import Operations
from coordinator_sim.broker.pending_answer import AnswerPlace
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.quotas.quotas import Quotas
from coordinator_sim.broker.records.families import DataApis, DataSettings
from coordinator_sim.broker.replicas.log_maintenance import LogMaintenance
from coordinator_sim.broker.replicas.log_manager import LogManager, NewStore
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.broker.scheduler import Scheduler
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import Authorizer
from coordinator_sim.broker.security.sasl_api import SaslApi
from coordinator_sim.broker.security.security import Security
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.broker.share_coordinator.family import ShareCoordination
from coordinator_sim.broker.shares.family import Shares
from coordinator_sim.broker.transactions.family import Transactions
from coordinator_sim.broker.versions_api import VersionsApi
from coordinator_sim.coordinator.contract import CoordinatorResult
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.seeded_ids import SeededIds
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.trace.events import TraceEvent

TraceSink = Callable[[int, tuple[TraceEvent, ...]], None]
"""Takes the events that a verb caused at the broker of that id."""


class Cluster:
    """The cluster. Its parts do the work; requests, time and changes come in here.

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
        image: The metadata. Changed by `change` alone.
        configs: Settings of topics, brokers and groups.
        security: Who may come in.
        topics: Creates and deletes topics.
        groups: The group coordinators of the living brokers.
        leadership: Elects leaders.
        cluster_events: Who is told of what.
        versions: What is offered.
        fenced: Brokers that the cluster has given up; clients are not sent to them.
        logs: Of all partitions.
        hosted: These logs, as the brokers may use them.
        transactions: The transaction coordinators of the brokers.
        share_coordinators, shares: Their share coordinators and share partitions.
        data: The APIs about records.
        jobs: Requests that take long, and what waits behind others.
        quotas: How much clients may use.
        faults: What is done to requests on purpose.
        scheduler: Its tasks and deadlines.
        operations: What is done to the cluster from outside.
        trace: Takes events; None drops them.
        latest: The newest instants that a request, a fault rule or a deadline saw.
    """

    groups: GroupCoordinators

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
        self.settings = settings
        self.image = MetadataImage() if kept is None else kept.image
        self.configs = Configs(
            settings.profile, settings.given, self.image, implied=settings.properties()
        )
        self.cluster_events = ClusterEvents()
        self.security = Security(
            self.configs, self.image, settings.users, draw_bytes or drawn_bytes(settings.seed)
        )
        self.access = Access(authorizer or self.security.authorizer())
        self.fenced: dict[int, None] = {}
        self.faults = Faults(chance(settings.seed))
        self.scheduler = Scheduler()
        self.jobs = Jobs(self)
        self.operations = Operations(self)
        self.latest = Instants(0, 0)
        self._endpoint = endpoint
        self._kept = kept
        self.trace = trace
        self._pending: dict[int, AnswerPlace] = {}
        self._next_token = 0
        self.topics = TopicOperations(
            settings,
            self.image,
            change=self.change,
            living=lambda: sorted(self.groups.living),
            cluster_events=self.cluster_events,
        )
        log_settings = LogSettings(
            self.configs, self.image, settings.profile, in_memory=kept is None
        )
        self.logs = LogManager(
            self.image, new_store if kept is None else kept.new_store, log_settings.of
        )
        self.groups = self._group_coordinators(settings, ids_of)
        self.faults.role_of = self.groups.role_of
        self.groups.traces = trace is not None
        self.groups.authorizer = self.access.authorizer
        self.leadership = Leadership(
            self.image,
            change=self.change,
            is_living=lambda each: each in self.groups.living and each not in self.fenced,
            cluster_events=self.cluster_events,
        )
        self._listen()
        self.hosted = self._replica_manager(log_settings)
        self.transactions = Transactions(self)
        self.transactions.listen(self.cluster_events)
        self.groups.verifier = self.transactions.verifier
        self.data = self._data_apis()
        self.scheduler.watch(self.groups, self.data, self.transactions, self._upkeep())
        self._handlers: dict[ApiKey, Handler] = {}
        self.versions = self._serve_families()
        for broker_id in settings.broker_ids:
            self.groups.start(broker_id)
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
        self.shares = Shares(self, self.share_coordinators.persister)
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

    def begin(self, now: Instants) -> None:
        """Go on with what was kept: every partition has a leader again, coordinators load."""
        if (kept := self._kept) is None:
            return
        self.cluster_events.topic_deleted.append(kept.topic_deleted)
        kept.storage_failed = self._storage_failed
        kept.trouble = self._trouble
        kept.schedule(self.scheduler)
        self.cluster_events.readable.append(kept.log_changed)
        self.logs.changed.append(kept.log_changed)
        self.latest = now
        self.topics.restore()
        self.change(ClusterStarted(self.settings.broker_ids))
        for name in INTERNAL_TOPICS:
            state = self.image.topics.get(name)
            for partition in range(len(state.partitions) if state else 0):
                for told in self.cluster_events.leader_changed:
                    told(name, partition, now)

    def leave(self) -> None:
        """Leave what is kept as the next process wants it.

        Raises:
            OSError: something could not be written; the next process recovers.
        """
        self.logs.close()
        if self._kept is not None:
            self._kept.close()

    def _group_coordinators(
        self, settings: ClusterSettings, ids_of: IdsOf | None
    ) -> GroupCoordinators:
        """The group coordinators, which write the offsets topic's log."""
        ids = SeededIds(settings.seed + (self.image.start_count << 32))
        offsets_topic = OffsetsTopic(
            settings.profile,
            self.image,
            self.logs.log_of,
            medium_failed=self._offsets_failed,
            cluster_events=self.cluster_events,
        )
        groups = GroupCoordinators(
            settings,
            self.image,
            offsets_topic,
            catalogue=self.topics.catalogue,
            deliver=self.deliver,
            ids_of=ids_of or (lambda _broker_id: ids),
            scheduler=self.scheduler,
            configs=self.configs,
        )
        groups.cluster = self
        limit = settings.coordinator.offset_metadata_max_bytes
        groups.old_offsets = old_offsets(
            limit, self.image, change=self.change, trouble=self._trouble
        )
        return groups

    def _replica_manager(self, log_settings: LogSettings) -> ReplicaManager:
        return ReplicaManager(
            self.image,
            self.logs.log_of,
            endpoint=self.endpoint,
            storage_failed=self._storage_failed,
            wanted_in_sync=log_settings.wanted_in_sync,
            trouble=self._trouble,
        )

    def _data_apis(self) -> DataApis:
        """The APIs about records, told of what happens, and the quotas that some obey."""
        self.quotas = Quotas(self, self._pending.get)
        return DataApis(
            self.hosted,
            self.access,
            self.jobs,
            draw=drawn_ids(self.settings.seed),
            cluster_events=self.cluster_events,
            gate=self.transactions.brokers,
            quotas=self.quotas,
            scheduler=self.scheduler,
            settings=DataSettings.of(self.configs, self.settings.profile),
        )

    def _upkeep(self) -> LogMaintenance:
        upkeep = LogMaintenance(
            self.logs, self.configs, self._storage_failed, self._trouble, self.scheduler
        )
        upkeep.listen(self.cluster_events)
        return upkeep

    def _storage_failed(self, place: Place, error: OSError) -> None:
        """A partition's leader cannot write any more, and resigns."""
        self.logs.broken(*place)
        state = self.image.partition(*place)
        if state is not None and state.leader_id != NO_LEADER:
            self._trouble(f"{place[0]}-{place[1]}: {error}; its leader resigns")
            self.leadership.elect(*place, NO_LEADER, self.latest)

    def _trouble(self, text: str) -> None:
        for told in self.cluster_events.trouble:
            told(text)

    def _offsets_failed(self, place: Place, error: OSError) -> None:
        """Let the leader resign as soon as the coordinator that met the error is done."""
        self.scheduler.at_wall_ms(0, lambda _now: self._storage_failed(place, error))

    def _families(self) -> tuple[Family, ...]:
        """Everything that answers requests beside the group coordinators."""
        admin = Administration(
            image=self.image,
            settings=self.settings,
            configs=self.configs,
            access=self.access,
            endpoint=self.endpoint,
            registered=self._endpoint,
            topics=self.topics,
            leadership=self.leadership,
            quotas=self.quotas,
            change=self.change,
            jobs=self.jobs,
        )
        return (
            self.groups,
            self.data,
            *administration_apis(admin),
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

    # -- requests --------------------------------------------------------------------------

    def new_token(self) -> int:
        """Draw a name for the answer to a request, or to one request of a connection at a time."""
        self._next_token += 1
        return self._next_token

    def admit(self, place: AnswerPlace) -> int:
        """Draw the token of a request of the cluster's own, whose answer goes to that place."""
        token = self.new_token()
        self._pending[token] = place
        return token

    @property
    def waiting_count(self) -> int:
        """Requests that have not been answered."""
        return len(self._pending)

    def forget(self, token: int) -> None:
        """Drop the answer to that request when it comes."""
        self._pending.pop(token, None)

    def handle(self, call: Call[Any], place: AnswerPlace) -> None:
        """Take a request, whose answer goes to that place, now or later."""
        self.latest = call.now
        is_measured = self.quotas.is_on
        if is_measured:
            place = self.quotas.watched(call, place)
        self._pending[call.context.token] = place
        try:
            response = self._handlers[call.api](call)
        except OSError as error:
            response = self._unkept(call, error)
        except Exception:
            # A DataError Kafka finds when it reads the request. There is no answer.
            self.scheduler.arm()
            self._pending.pop(call.context.token, None)
            raise
        if response is not None:
            self.answer(call.context.token, response)
        elif is_measured:
            self.quotas.parked(call.context.token)

    def _unkept(self, call: Call[Any], error: OSError) -> Struct:
        """The answer of a request whose change could not be kept."""
        self.scheduler.arm()
        self._trouble(f"{call.api.name}: {error}; refused")
        version = call.context.api_version
        return error_answer(call.api, version, call.request, ErrorCode.KAFKA_STORAGE_ERROR)

    def answer(self, token: int, response: Struct | None) -> None:
        """Answer a pending request; None completes it without a reply. Ignores unknown tokens."""
        pending = self._pending.pop(token, None)
        if pending is not None:
            pending.answered(response)

    def close(self, token: int) -> None:
        """End the connection of the request of that token."""
        if (pending := self._pending.pop(token, None)) is not None:
            pending.closed()

    def deliver(self, broker_id: int, result: CoordinatorResult) -> None:
        """Send what a verb of a group coordinator caused, complete as it is."""
        for reply in result.replies:
            pending = self._pending.pop(reply.token, None)
            if pending is not None:
                pending.answered(reply.response)
        if result.persister_calls:
            self.shares.carry_out(broker_id, result.persister_calls)
        if result.events and self.trace is not None:
            self.trace(broker_id, result.events)

    def has_more(self, connection: Waiting) -> None:
        """A connection may go on, when the verb that answered it is over."""
        self.jobs.unmuted.append(connection)

    def go_on(self, now: Instants) -> None:
        """Work on some of what waited for answers; every driver's verb ends with this."""
        self.jobs.go_on(now)

    @property
    def has_work(self) -> bool:
        """Whether a request is worked on that takes long, or some wait for their turn."""
        return self.jobs.has_work

    def work(self, now: Instants) -> None:
        """Do a slice of such work, some milliseconds; others have their turn in between.

        Raises:
            Exception: The request met a bug; its connection is closed.
        """
        self.latest = now
        try:
            self.jobs.work(now)
        finally:
            self.go_on(now)

    # -- time ------------------------------------------------------------------------------

    def expire(self, now: Instants) -> None:
        """Fire everything that is due on either clock.

        Raises:
            ExceptionGroup: All failures, after everything else has run.
        """
        self.latest = now
        try:
            self.scheduler.expire(now)
        finally:
            self.go_on(now)

    def next_group_deadline_ms(self) -> int | None:
        """When `expire` is due by the group clock, or earlier; None if nothing is armed."""
        return self.scheduler.group_ms

    def exact_group_deadline_ms(self) -> int | None:
        """When `expire` is due by the group clock, exactly; expensive."""
        return self.scheduler.exact_group_deadline_ms()

    def next_wall_deadline_ms(self) -> int | None:
        """When `expire` is due by the wall clock, or earlier; None if nothing is armed."""
        return self.scheduler.wall_ms

    # -- metadata --------------------------------------------------------------------------

    def endpoint(self, broker_id: int, listener: str) -> Endpoint | None:
        """Where a broker is reached on a listener; None when the cluster has given it up."""
        return None if broker_id in self.fenced else self._endpoint(broker_id, listener)

    def change(self, change: Change) -> None:
        """Change the metadata: journal first, then the image."""
        if self._kept is not None:
            self._kept.journal(change)
        self.image.apply(change)
        if type(change) is ConfigsChanged:
            self.groups.settings_changed(change)
        elif type(change) is FeatureSet:
            self.shares.features_changed()
        elif type(change) is QuotaSet:
            self.quotas.changed()

    @property
    def append_failure(self) -> ErrorCode:
        """What every append fails with, on purpose; NONE as a rule."""
        return self.hosted.append_failure

    @append_failure.setter
    def append_failure(self, error: ErrorCode) -> None:
        self.hosted.append_failure = error
        self.groups.offsets_topic.failure = error

    def disconnected(self, connection: int, now: Instants | None = None) -> None:
        """A client is gone; others may have waited for what it had. None: at the latest instant."""
        self.latest = now = now or self.latest
        for told in self.cluster_events.disconnected:
            told(connection)
        self.go_on(now)
