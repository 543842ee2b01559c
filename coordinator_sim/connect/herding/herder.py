"""The herder of a distributed Connect worker: its thread, its tick, and its public methods.

The herder drives the group membership and answers requests, and does all real work on its one
thread. Each step is in the module named after it.

Handling of a new assignment: catch up with the config topic, then start the work.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, run, tick, halt, stop;
connect/runtime/.../distributed/DistributedHerder.java, handleRebalanceCompleted, startWork,
assignmentDifference.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from coordinator_sim.clients.config import ConnectProtocolCompatibility
from coordinator_sim.clients.effects import Closed
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.clients.worker_coordinator import ConfigSnapshot, WorkerCoordinator
from coordinator_sim.connect.effects import Died, Ready
from coordinator_sim.connect.exceptions import ConnectException, JavaException, WakeupException
from coordinator_sim.connect.herding.config_topic import (
    CONFIG_TOPIC_WRITE_PRIVILEGES_BACKOFF_MS,
    backoff,
    read_config_to_end,
)
from coordinator_sim.connect.herding.config_updates import (
    ConfigUpdateListener,
    process_config_updates,
)
from coordinator_sim.connect.herding.group_member import GroupMember
from coordinator_sim.connect.herding.herder_requests import submit
from coordinator_sim.connect.herding.herder_state import HeldAssignment, HerderParts, HerderState
from coordinator_sim.connect.herding.key_rotation import (
    check_for_key_rotation,
    distribute_new_key,
    is_request_validation_enabled,
)
from coordinator_sim.connect.herding.rebalance_listener import on_assigned, on_revoked
from coordinator_sim.connect.herding.reconfiguration import request_task_reconfiguration
from coordinator_sim.connect.herding.refusals import failure_of
from coordinator_sim.connect.herding.requests import Outcome, Request
from coordinator_sim.connect.herding.restarts import process_restart_requests
from coordinator_sim.connect.herding.running_work import CONNECTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS
from coordinator_sim.connect.herding.starting import (
    connector_starting_callable,
    start_and_stop,
    task_starting_callable,
)
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.orders.iteration_order import connector_task_hash, java_hash_order
from coordinator_sim.kafka.resources import ConnectorTaskId


def handle_rebalance_completed(herder: HerderState) -> Blocking[bool]:
    """Handle the last assignment; return whether it is resolved, so that the tick may go on."""
    if herder.rebalance_resolved:
        return True
    assignment = herder.held()
    is_behind = herder.config_state.offset < assignment.offset
    needs_rejoin = assignment.failed
    # A leader that could not assign leads the next round as well: it must be up to date first.
    needs_read_to_end = is_behind or (assignment.failed and herder.is_leader)
    if herder.scheduled_rebalance_ms <= herder.now_ms:
        needs_rejoin = True
        herder.scheduled_rebalance_ms = FOREVER
    if needs_read_to_end:
        herder.can_read_configs = yield from read_config_to_end(herder)
        needs_rejoin = needs_rejoin or not herder.can_read_configs
    if needs_rejoin:
        herder.member.request_rejoin()
        return False
    if herder.config_state.offset != assignment.offset:
        # The snapshot is past the assignment, which may name deleted work: nothing is started.
        herder.member.request_rejoin()
        return False
    yield from _start_work(herder, assignment)
    herder.rebalance_resolved = True
    if assignment.revoked_connectors or assignment.revoked_tasks:
        # Revoked work is assigned to others by a rebalance of its own.
        assignment.revoked_connectors, assignment.revoked_tasks = (), ()
        herder.member.coordinator.forget_revoked()
        herder.member.request_rejoin()
        return False
    return True


def _start_work(herder: HerderState, assignment: HeldAssignment) -> Blocking[None]:
    """Start assigned work that does not run yet."""
    running = herder.running_assignment
    connectors = _difference(assignment.connectors, running.connectors)
    # Tasks stopped because of new configurations start again if they are still assigned here.
    herder.remove(running, (), herder.tasks_to_restart)
    herder.tasks_to_restart.clear()
    tasks = _task_difference(assignment.tasks, running.tasks)
    callables = [connector_starting_callable(herder, connector) for connector in connectors]
    callables += [task_starting_callable(herder, task) for task in tasks]
    yield from start_and_stop(
        herder,
        callables,
        f"starting {len(callables)} connector(s) and task(s) after a rebalance",
    )
    is_eager = herder.member.coordinator.connect_protocol is ConnectProtocolCompatibility.EAGER
    herder.running_assignment = HeldAssignment() if is_eager else assignment


def _difference(update: Iterable[str], running: dict[str, None]) -> Iterable[str]:
    """Return the new connectors, in the order of Java's set unless nothing runs."""
    if not running:
        return tuple(update)
    return java_hash_order([each for each in update if each not in running])


def _task_difference(
    update: Iterable[ConnectorTaskId], running: dict[ConnectorTaskId, None]
) -> Iterable[ConnectorTaskId]:
    if not running:
        return tuple(update)
    new = [each for each in update if each not in running]
    return java_hash_order(new, hash_of=connector_task_hash)


_SHUTDOWN_SLACK_MS: Final = 10_000
"""Time that herderExecutorTimeoutMs adds to the known waits."""

MakeCoordinator = Callable[[Callable[[], ConfigSnapshot]], WorkerCoordinator]
"""Makes the group membership, given a function that takes a snapshot of the config topic."""


class Herder:
    """The port of DistributedHerder.

    Args:
        parts: Stores, plugins and settings of the herder.
        make_coordinator: Makes the coordinator of the group membership.
    """

    def __init__(self, parts: HerderParts, make_coordinator: MakeCoordinator) -> None:
        self.state = HerderState(parts)
        self._ended: Pending[object] = Pending()
        coordinator = make_coordinator(lambda: parts.config_store.snapshot().assignable())
        self.state.member = GroupMember(coordinator, parts.outbox, self)
        parts.config_store.set_update_listener(ConfigUpdateListener(self.state))

    # What others may ask.

    def start(self) -> None:
        """Begin the herder's thread."""
        self.state.threads.start(self.run())

    def submit(self, request: Request) -> Pending[Outcome]:
        """Submit a request; the result is completed with its outcome."""
        return submit(self.state, request)

    def request_task_reconfiguration(self, connector: str) -> None:
        """Ask a connector for new task configurations, as the connector requested."""
        request_task_reconfiguration(self.state, connector)

    def stop(self) -> None:
        """Stop all work, leave the group, and end the thread; returns before that is done."""
        herder = self.state
        if not herder.stopping:
            herder.stopping = True
            herder.member.wakeup()
            herder.threads.start(self._interrupt_late())

    def _interrupt_late(self) -> Blocking[None]:
        """Interrupt a thread that does not end by itself, as the executor's shutdown does."""
        group = self.state.config.member
        patience_ms = (
            group.worker_sync_timeout_ms
            + group.task_shutdown_graceful_timeout_ms
            + CONNECTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS
            + _SHUTDOWN_SLACK_MS
        )
        yield Wait(self._ended, until_ms=self.state.now_ms + patience_ms)
        self.state.interrupted.complete()
        yield Wait(self._ended, until_ms=self.state.now_ms + patience_ms)
        self._end(Closed())

    # The rebalance listener.

    def on_assigned(self) -> Blocking[None]:
        """Handle a new assignment."""
        yield from on_assigned(self.state)

    def on_revoked(
        self, connectors: Sequence[str], tasks: Sequence[ConnectorTaskId]
    ) -> Blocking[None]:
        """Stop the revoked work."""
        yield from on_revoked(self.state, connectors, tasks)

    def on_poll_timeout_expiry(self) -> None:
        """Keep the stage in which the thread was busy for its whole rebalance timeout."""
        self.state.poll_timeout_stage = self.state.stage

    # The thread.

    def run(self) -> Blocking[None]:
        """Start the services, tick until told to stop, and halt. An exception ends the process."""
        herder = self.state
        try:
            with herder.in_stage("initializing and reading to the end of internal topics"):
                yield from self._start_services()
            while not herder.stopping:
                yield from tick(herder)
                if not herder.is_ready:
                    herder.is_ready = True
                    herder.outbox.tell(Ready())
            yield from self._halt()
        except JavaException as exception:
            # Work is not stopped, but the group is left: stopServices ends the membership too.
            yield from self._stop_services()
            self._end(Died(str(exception)))
        else:
            self._end(Closed())

    def _end(self, effect: Died | Closed) -> None:
        """End the process, unless it has ended already."""
        if not self._ended.done:
            self._ended.complete()
            self.state.outbox.tell(effect)

    def _start_services(self) -> Blocking[None]:
        """Start the offset store, the status store and the config store, in this order."""
        yield from self.state.offset_store.start()
        yield from self.state.status_store.start()
        yield from self.state.config_store.start()

    def _halt(self) -> Blocking[None]:
        """Stop the running work, refuse the queued requests, and leave the group last."""
        herder = self.state
        with herder.in_stage("shutting down"):
            yield from herder.work.stop_and_await_connectors()
            yield from herder.work.stop_and_await_tasks()
            refusal = failure_of(ConnectException("Worker is shutting down"))
            while herder.queue.first is not None:
                herder.queue.take().answer.complete(refusal)
            yield from self._stop_services()

    def _stop_services(self) -> Blocking[None]:
        """Close the stores, then the membership."""
        for store in (self.state.status_store, self.state.config_store, self.state.offset_store):
            with suppress(JavaException):  # Java closes all of them, and logs what goes wrong
                yield from store.stop()
        self.state.member.stop()

    @property
    def ended(self) -> Pending[object]:
        """Done when the thread is over."""
        return self._ended


def tick(herder: HerderState) -> Blocking[None]:  # noqa: C901 - DistributedHerder.tick, whole
    """One round of the herder's thread.

    Raises:
        JavaException: the membership failed for good.
    """
    if not herder.can_read_configs:
        # Joining a group and leaving it for lack of configs would disturb all other members.
        if not (yield from read_config_to_end(herder)):
            return
        herder.can_read_configs = True
    try:
        with herder.in_stage("ensuring membership in the cluster"):
            yield from herder.member.ensure_active()
        if not (yield from handle_rebalance_completed(herder)):
            return
    except WakeupException:
        return
    if not (yield from _reclaim_write_privileges(herder)):
        return
    now_ms = herder.now_ms
    if check_for_key_rotation(herder, now_ms) and not (
        yield from distribute_new_key(herder, now_ms)
    ):
        return
    scheduled_tick_ms = yield from _run_due_requests(herder, now_ms)
    yield from process_restart_requests(herder)
    if herder.scheduled_rebalance_ms < FOREVER:
        scheduled_tick_ms = min(scheduled_tick_ms, herder.scheduled_rebalance_ms)
        # QUIRK: the completion is handled once more, now and after the poll; nothing is started
        # twice, but Kafka's metrics count one more rebalance.
        herder.rebalance_resolved = False
    if herder.is_leader and is_request_validation_enabled(herder):
        scheduled_tick_ms = min(scheduled_tick_ms, herder.key_expiration_ms)
    if (yield from process_config_updates(herder)):
        return
    try:
        with herder.in_stage("polling the group coordinator until interrupted"):
            yield from herder.member.poll(max(scheduled_tick_ms - herder.now_ms, 0))
        yield from handle_rebalance_completed(herder)
    except WakeupException:
        return  # a request, a record of the config topic, or the end of the worker


def _reclaim_write_privileges(herder: HerderState) -> Blocking[bool]:
    """Fence back a zombie that fenced this leader; return whether the tick may go on."""
    if not herder.fenced_from_config_topic:
        return True
    if herder.is_leader:
        try:
            with herder.in_stage("reclaiming write privileges for the config topic"):
                yield from herder.config_store.claim_write_privileges()
        except JavaException:
            yield from backoff(herder, CONFIG_TOPIC_WRITE_PRIVILEGES_BACKOFF_MS)
            return False
    herder.fenced_from_config_topic = False
    return True


def _run_due_requests(herder: HerderState, now_ms: int) -> Blocking[int]:
    """Run what was due when the tick began; return the next due instant, FOREVER for none."""
    while (request := herder.queue.first) is not None:
        if request.due_ms > now_ms:
            return request.due_ms
        herder.queue.take()
        yield from request.run()
    return FOREVER
