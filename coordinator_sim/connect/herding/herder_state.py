"""State shared by the parts of a herder: configuration, stores, and the fields of Java's class.

Pure state: no decision is made here. Functions that take a `HerderState` run on the herder's
thread unless they say otherwise.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, the fields;
ExtendedAssignment.java.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.exceptions import ConnectException
from coordinator_sim.connect.herding.group_member import GroupMember
from coordinator_sim.connect.herding.refusals import RebalanceNeededException
from coordinator_sim.connect.herding.request_queue import Action, RequestQueue
from coordinator_sim.connect.herding.requests import ConnectorPlugins, Outcome
from coordinator_sim.connect.herding.running_work import RunningWork
from coordinator_sim.connect.rest.internal_requests import InternalRequests
from coordinator_sim.connect.settings.worker_config import DistributedConfig, ExactlyOnceSupport
from coordinator_sim.connect.stores.config_records import RestartRequest, SessionKey
from coordinator_sim.connect.stores.config_state import EMPTY_CONFIG_STATE, ClusterConfigState
from coordinator_sim.connect.stores.config_store import ConfigStore
from coordinator_sim.connect.stores.offset_store import OffsetStore
from coordinator_sim.connect.stores.status_store import Statuses, StatusStore
from coordinator_sim.connect.thread import Blocking, Outbox, Pending, Threads, Wait
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.embedded.contents import ConnectAssignment, ConnectError

BACKOFF_RETRIES: Final = 5
"""DistributedHerder.BACKOFF_RETRIES."""


class HeldAssignment:
    """An assignment shared by herder and group membership: stopped work is removed from it.

    Args:
        assignment: The assignment as received.
    """

    def __init__(self, assignment: ConnectAssignment | None = None) -> None:
        given = assignment or ConnectAssignment(version=0)
        self.leader = given.leader
        self.leader_url = given.leader_url
        self.offset = given.config_offset
        self.failed = given.error is not ConnectError.NO_ERROR
        self.delay_ms = given.delay_ms
        self.connectors = dict.fromkeys(given.connectors)
        self.tasks = dict.fromkeys(given.tasks)
        self.revoked_connectors = given.revoked_connectors
        self.revoked_tasks = given.revoked_tasks


class TickStage(Struct, frozen=True, gc=False):
    """What the herder's thread is doing, shown to callers whose request times out.

    Args:
        description: A phrase without a subject, such as "sleeping for 250ms".
        started_ms: When the stage began.
        completed_ms: When the stage ended; None while it lasts.
    """

    description: str
    started_ms: int
    completed_ms: int | None = None


class ZombieFencing:
    """A round of fencing in progress.

    Args:
        connector: The connector whose old tasks are fenced.
        tasks_to_fence: Number of old tasks that may have a producer.
        tasks_to_record: Number of present tasks.
        task_generation: Generation of the present task configurations.
    """

    def __init__(
        self, connector: str, *, tasks_to_fence: int, tasks_to_record: int, task_generation: int
    ) -> None:
        self.connector = connector
        self.tasks_to_fence = tasks_to_fence
        self.tasks_to_record = tasks_to_record
        self.task_generation = task_generation
        self.followup: Pending[Outcome] = Pending()
        """Done when the new task count is written, or must no longer be written."""
        self.ended: Pending[Outcome] = Pending()
        """Done when the whole round is over."""


class HerderParts(Struct, frozen=True, kw_only=True):
    """Components that a herder is built from.

    Args:
        config: The worker's configuration.
        outbox: The worker's outbox.
        threads: The worker's threads.
        config_store: Store on the config topic.
        status_store: Store on the status topic.
        offset_store: Store on the offset topic.
        plugins: The connector classes installed on this worker.
        requests: Sends requests to other workers.
        worker_id: Host and port of the worker's advertised URL.
        random_bytes: Makes session keys; randomness comes from outside.
    """

    config: DistributedConfig
    outbox: Outbox
    threads: Threads
    config_store: ConfigStore
    status_store: StatusStore
    offset_store: OffsetStore
    plugins: ConnectorPlugins
    requests: InternalRequests
    worker_id: str
    random_bytes: Callable[[int], bytes]


class HerderState:
    """The fields of one herder.

    Args:
        parts: Components that the herder is built from.
    """

    member: GroupMember
    """The group membership; set once, by the herder that listens to it."""

    def __init__(self, parts: HerderParts) -> None:
        self.config = parts.config
        self.outbox = parts.outbox
        self.threads = parts.threads
        self.config_store = parts.config_store
        self.status_store = parts.status_store
        self.offset_store = parts.offset_store
        self.plugins = parts.plugins
        self.requests = parts.requests
        self.random_bytes = parts.random_bytes
        self.statuses = Statuses(
            parts.status_store, parts.worker_id, lambda: self.generation, self._version_of
        )
        self.work = RunningWork(
            parts.outbox,
            parts.threads,
            plugins=parts.plugins,
            listener=self.statuses,
            task_shutdown_graceful_timeout_ms=parts.config.member.task_shutdown_graceful_timeout_ms,
        )
        self.queue = RequestQueue()
        self.forward_requests = OneThread(parts.threads)
        self.config_state: ClusterConfigState = EMPTY_CONFIG_STATE
        self.assignment: HeldAssignment | None = None
        self.running_assignment = HeldAssignment()
        self.generation = 0
        self.protocol_version: int = parts.config.member.connect_protocol
        self.rebalance_resolved = True
        self.can_read_configs = True
        self.fenced_from_config_topic = False
        self.scheduled_rebalance_ms = FOREVER
        self.backoff_retries = BACKOFF_RETRIES
        self.session_key: SessionKey | None = None
        self.key_expiration_ms = FOREVER
        # Sets in Java; keys keep the order of arrival.
        self.needs_reconfig_rebalance = False
        self.connector_config_updates: dict[str, None] = {}
        self.connector_target_state_changes: dict[str, None] = {}
        self.task_config_updates: dict[ConnectorTaskId, None] = {}
        self.tasks_to_restart: dict[ConnectorTaskId, None] = {}
        self.pending_restart_requests: dict[str, RestartRequest] = {}
        self.active_zombie_fencings: dict[str, ZombieFencing] = {}
        self.logger_levels: dict[str, str] = {}
        self.stopping = False
        self.interrupted: Pending[object] = Pending()
        self.is_ready = False
        self.stage = TickStage("awaiting startup", 0)
        self.poll_timeout_stage: TickStage | None = None
        """What the herder's thread did when it last missed its rebalance timeout."""

    @property
    def now_ms(self) -> int:
        """The present instant."""
        return self.outbox.now_ms

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads the generation of its last assignment."""
        assignment = self.assignment
        return assignment is not None and self.member.coordinator.member_id == assignment.leader

    @property
    def leader_url(self) -> str | None:
        """The leader's REST URL, as the last assignment named it."""
        return None if self.assignment is None else self.assignment.leader_url

    def held(self) -> HeldAssignment:
        """Return the last assignment.

        Raises:
            ConnectException: there has been no assignment yet.
        """
        if self.assignment is None:
            raise ConnectException("This worker has not been given an assignment yet")
        return self.assignment

    def _version_of(self, connector: str) -> str | None:
        config = self.config_state.connector_config(connector)
        return None if config is None else self.plugins.version(dict(config))

    def check_rebalance_needed(self) -> None:
        """Refuse a request that would be decided on stale knowledge of owners.

        Raises:
            RebalanceNeededException: a rebalance is about to begin.
        """
        if self.needs_reconfig_rebalance:
            raise RebalanceNeededException(
                "Request cannot be completed because a rebalance is expected"
            )

    def remove(
        self,
        held: HeldAssignment,
        connectors: Iterable[str],
        tasks: Iterable[ConnectorTaskId],
    ) -> None:
        """Remove work from an assignment.

        QUIRK: Java's running work and the assignment reported to the leader are one object
        once the work has started; so removed work is no longer reported either.
        """
        for connector in tuple(connectors):
            held.connectors.pop(connector, None)
        for task in tuple(tasks):
            held.tasks.pop(task, None)
        if held is self.assignment:
            self.member.coordinator.retain(held.connectors, held.tasks)

    @property
    def exactly_once_source_enabled(self) -> bool:
        """Whether source tasks write in transactions."""
        return self.config.exactly_once is ExactlyOnceSupport.ENABLED

    # Any thread may call these.

    def add_request(
        self, action: Action, answer: Pending[Outcome] | None = None, *, delay_ms: int = 0
    ) -> Pending[Outcome]:
        """Queue an action for the herder's thread, and wake it up for it if need be.

        Args:
            action: What to do.
            answer: Completed with the outcome; a new one by default.
            delay_ms: Time to wait before the action may run.
        """
        pending: Pending[Outcome] = Pending() if answer is None else answer
        if self.queue.add(self.now_ms + delay_ms, action, pending):
            self.member.wakeup()
        return pending

    @contextmanager
    def in_stage(self, description: str) -> Iterator[None]:
        """Show a description of the current stage while the body runs."""
        started_ms = self.now_ms
        self.stage = TickStage(description, started_ms)
        try:
            yield
        finally:
            self.stage = TickStage(description, started_ms, self.now_ms)

    def sleep(self, for_ms: int) -> Blocking[None]:
        """Sleep for the given time, or until the thread is interrupted."""
        yield Wait(self.interrupted, until_ms=self.now_ms + for_ms)


class OneThread:
    """An executor with one thread: jobs run one after another."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._jobs: list[Callable[[], Blocking[None]]] = []
        self._is_running = False

    def submit(self, job: Callable[[], Blocking[None]]) -> None:
        """Run a job after those submitted before."""
        self._jobs.append(job)
        if not self._is_running:
            self._is_running = True
            self._threads.start(self._run())

    def _run(self) -> Blocking[None]:
        while self._jobs:
            yield from self._jobs.pop(0)()
        self._is_running = False
