"""The parts of a cluster that its API families share: metadata, logs, time, pending answers.

Families are made with a `ClusterParts`; `cluster` makes the families. No family is known here.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.configs.configs import Configs, LogSettings
from coordinator_sim.broker.contract import AnswerPlace, Call, Handler, Instants
from coordinator_sim.broker.error_answers import error_answer
from coordinator_sim.broker.hosting import RunningBrokers
from coordinator_sim.broker.metadata.changes import Change, QuotaSet
from coordinator_sim.broker.metadata.image import NO_LEADER, MetadataImage
from coordinator_sim.broker.metadata.kept import Kept
from coordinator_sim.broker.metadata.leadership import Leadership
from coordinator_sim.broker.metadata.topic_operations import TopicOperations
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.quotas.quotas import Quotas
from coordinator_sim.broker.replicas.log_manager import LogManager, NewStore
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.broker.scheduler import Jobs, Scheduler, Waiting
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import (
    CLUSTER_NAME,
    Authorizer,
    Operation,
    ResourceType,
)
from coordinator_sim.broker.security.security import Security
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.catalogue import newest_version
from coordinator_sim.trace.events import TraceEvent

TraceSink = Callable[[int, tuple[TraceEvent, ...]], None]
"""Takes the events that a verb caused at the broker of that id."""


class ClusterParts:
    """What all families of a cluster act on.

    Args:
        settings: How it starts.
        endpoint: Where a broker is reached on a listener.
        kept: What outlives the process; None for nothing.
        new_store: Makes the store of a partition's log where nothing is kept.
        authorizer: None for what the settings say.
        draw_bytes: Draws bytes that nobody can guess.
        trace: Takes events; None spends nothing on them.

    Attributes:
        settings: See above.
        image: The metadata. Changed by `change` alone.
        configs: Settings of topics, brokers and groups.
        cluster_events: The listeners of each event.
        security: Who may come in.
        access: Authorizes requests.
        registered: The address of a broker, also of one that the cluster has fenced.
        brokers: Which brokers run.
        fenced: Brokers that the cluster has given up; clients are not sent to them.
        scheduler: Its tasks and deadlines.
        jobs: Requests that take long, and what waits behind others.
        go_on: Works on some of what waited for answers; every verb of a driver ends with this.
        latest: The newest instants that a request, a fault rule or a deadline saw.
        topics: Creates and deletes topics.
        leadership: Elects leaders.
        logs: Of all partitions.
        hosted: These logs, as the brokers may use them.
        quotas: How much clients may use.
        trace: Takes events; None drops them.
    """

    def __init__(  # noqa: PLR0913 - what a cluster is made of, by keyword
        self,
        settings: ClusterSettings,
        *,
        endpoint: Callable[[int, str], Endpoint | None],
        kept: Kept | None,
        new_store: NewStore,
        authorizer: Authorizer | None,
        draw_bytes: Callable[[int], bytes],
        trace: TraceSink | None,
    ) -> None:
        self.settings = settings
        self.image = MetadataImage() if kept is None else kept.image
        self.configs = Configs(
            settings.profile, settings.given, self.image, implied=settings.properties()
        )
        self.cluster_events = ClusterEvents()
        self.security = Security(self.configs, self.image, settings.users, draw_bytes)
        self.access = Access(authorizer or self.security.authorizer())
        self.brokers = RunningBrokers()
        self.fenced: dict[int, None] = {}
        self.scheduler = Scheduler()
        self.jobs = Jobs(self)
        self.go_on = self.jobs.go_on
        self.latest = Instants(0, 0)
        self.registered = endpoint
        self._kept = kept
        self.trace = trace
        self._handlers: dict[ApiKey, Handler] = {}
        self._pending: dict[int, AnswerPlace] = {}
        self._next_token = 0
        self.topics = TopicOperations(
            settings,
            self.image,
            change=self.change,
            living=lambda: sorted(self.brokers.living),
            cluster_events=self.cluster_events,
        )
        self.leadership = Leadership(
            self.image,
            change=self.change,
            is_living=lambda each: each in self.brokers.living and each not in self.fenced,
            cluster_events=self.cluster_events,
        )
        log_settings = LogSettings(
            self.configs, self.image, settings.profile, in_memory=kept is None
        )
        self.logs = LogManager(
            self.image, new_store if kept is None else kept.new_store, log_settings.of
        )
        self.hosted = ReplicaManager(
            self.image,
            self.logs.log_of,
            endpoint=self.endpoint,
            storage_failed=self.storage_failed,
            wanted_in_sync=log_settings.wanted_in_sync,
            trouble=self.trouble,
        )
        self.quotas = Quotas(
            settings.profile,
            self.image,
            self.configs,
            present=lambda: self.latest,
            place_of=self._pending.get,
        )
        self.cluster_events.changed[QuotaSet].append(self.quotas.changed)
        self.brokers.stopped.append(self.quotas.forget_broker)

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

    def send(
        self,
        broker_id: int,
        request: Any,  # noqa: ANN401 - any request of a broker's own
        context: RequestContext,
        answered: Callable[[Any], None],
    ) -> None:
        """Send a broker's own request to a broker, at the newest version of its API.

        Args:
            broker_id: The broker that handles it.
            request: A struct of `messages` whose API is always answered.
            context: Of its sender; token and version are replaced.
            answered: Takes the response, now or later.
        """
        api = request.api_key
        version = newest_version(api)
        own = replace(context, token=self.new_token(), api_version=version)
        call = Call(broker_id=broker_id, api=api, request=request, context=own, now=self.latest)
        self.handle(call, _OwnAnswer(answered))

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
        self.trouble(f"{call.api.name}: {error}; refused")
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

    def has_more(self, connection: Waiting) -> None:
        """A connection may go on, when the verb that answered it is over."""
        self.jobs.unmuted.append(connection)

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

    # -- metadata --------------------------------------------------------------------------

    def endpoint(self, broker_id: int, listener: str) -> Endpoint | None:
        """Where a broker is reached on a listener; None when the cluster has given it up."""
        return None if broker_id in self.fenced else self.registered(broker_id, listener)

    def change(self, change: Change) -> None:
        """Change the metadata: journal first, then the image."""
        if self._kept is not None:
            self._kept.journal(change)
        self.image.apply(change)
        for listener in self.cluster_events.changed.get(type(change), ()):
            listener(change)

    def living_ids(self) -> list[int]:
        """Ids of the brokers that live and are not fenced, ascending."""
        return [each for each in self.settings.broker_ids if self.leadership.is_living(each)]

    # -- rights ----------------------------------------------------------------------------

    def allows_cluster(self, call: Call[Any], operation: Operation) -> bool:
        """Whether the sender may do the operation on the cluster."""
        kind = ResourceType.CLUSTER
        return self.access.allows(call.context, operation, kind, CLUSTER_NAME)

    def allows_topic(self, call: Call[Any], operation: Operation, name: str) -> bool:
        """Whether the sender may do the operation on a topic."""
        return self.access.allows(call.context, operation, ResourceType.TOPIC, name)

    # -- disks -----------------------------------------------------------------------------

    def storage_failed(self, place: Place, error: OSError) -> None:
        """Let the leader of a partition resign, because it cannot write any more."""
        self.logs.broken(*place)
        state = self.image.partition(*place)
        if state is not None and state.leader_id != NO_LEADER:
            self.trouble(f"{place[0]}-{place[1]}: {error}; its leader resigns")
            self.leadership.elect(*place, NO_LEADER, self.latest)

    def trouble(self, text: str) -> None:
        """Report a failure of the disk, one sentence, to its listeners."""
        for listener in self.cluster_events.trouble:
            listener(text)

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

    def disconnected(self, connection: int, now: Instants | None = None) -> None:
        """A client is gone; others may have waited for what it had. None: at the latest instant."""
        self.latest = now = now or self.latest
        for listener in self.cluster_events.disconnected:
            listener(connection)
        self.go_on(now)


class _OwnAnswer(Struct, frozen=True):
    """Where the answer to a broker's own request goes."""

    answered: Callable[[Any], None]

    def throttled(self, throttle_time_ms: int) -> None:
        """A broker's own requests have no connection to mute."""

    def closed(self) -> None:
        """A request that `send` takes is always answered."""
