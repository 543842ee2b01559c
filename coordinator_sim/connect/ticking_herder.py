"""The herder of a distributed Connect worker, as far as group membership moves it.

One `poll` is one tick of Java's herder thread. The herder owns a `WorkerCoordinator`, answers its
callbacks itself, and asks its driver to start (`WORK_ASSIGNED`) and stop (`WORK_REVOKED`)
connectors and tasks; those names are only what is to be started or stopped now. Requests, keys,
fencing and REST are not here.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, tick (steps 1, 2 and
7 to 9), handleRebalanceCompleted, RebalanceListener.
"""

from typing import Final

from coordinator_sim.assignors.contract import WorkerLoad
from coordinator_sim.clients.backoff import NO_JITTER, Jitter
from coordinator_sim.clients.config import ConnectProtocolCompatibility, WorkerConfig
from coordinator_sim.clients.effects import (
    CallbackKind,
    Closed,
    Effects,
    PollReturned,
    RunCallback,
)
from coordinator_sim.clients.exceptions import WAKEUP
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.clients.worker_coordinator import ConfigSnapshot, WorkerCoordinator
from coordinator_sim.connect.config_log import ConfigChange, ConfigLog, change_between
from coordinator_sim.connect.config_reader import Answer, ConfigReader
from coordinator_sim.connect.work_keeper import Phase
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.protocol.embedded import ConnectError
from coordinator_sim.protocol.messages import Node
from coordinator_sim.protocol.requests import Response

_EAGER: Final = ConnectProtocolCompatibility.EAGER


class Herder(ConfigReader):
    """A worker's herder thread and its group membership, in the verb shape of a client port.

    Args:
        config: Timeouts and the Connect protocol.
        worker_name: Names the client in choices of chance.
        url: The REST URL told to the other workers.
        group_id: The Connect cluster.
        bootstrap: The brokers to ask first.
        config_log: This worker's view of the config topic.
        jitter: Where chance comes from.
    """

    __slots__ = (
        "_after_rebalance",
        "_bounced",
        "_rebalance_resolved",
        "_revocation",
        "_scheduled_rebalance_ms",
        "_seen",
        "_stopping",
        "_tick_deadline_ms",
    )

    def __init__(  # noqa: PLR0913 - everything a worker is configured with, by keyword
        self,
        config: WorkerConfig,
        *,
        worker_name: str,
        url: str,
        group_id: str,
        bootstrap: tuple[Node, ...],
        config_log: ConfigLog,
        jitter: Jitter = NO_JITTER,
    ) -> None:
        member = WorkerCoordinator(
            config,
            client_id=worker_name,
            group_id=group_id,
            url=url,
            config_snapshot=config_log.snapshot,
            bootstrap=bootstrap,
            jitter=jitter,
        )
        super().__init__(config, config_log, member)
        self._tick_deadline_ms = 0
        self._stopping = False
        self._bounced: tuple[str, ...] = ()
        self._revocation = (0, Phase.IDLE)
        self._after_rebalance: Answer | None = None
        self._rebalance_resolved = True
        self._scheduled_rebalance_ms = FOREVER
        self._seen: ConfigSnapshot | None = None

    # What the driver sees.

    @property
    def member(self) -> WorkerCoordinator:
        """The group membership, to look at; its verbs belong to the herder."""
        return self._member

    @property
    def state(self) -> MemberState:
        """Where the worker is in its join."""
        return self._member.state

    @property
    def generation_id(self) -> int:
        """The generation the worker believes to be in; -1 for none."""
        return self._member.generation_id

    @property
    def member_id(self) -> str:
        """The member id while STABLE, else empty."""
        return self._member.member_id

    @property
    def coordinator_node(self) -> int | None:
        """The broker that coordinates the group; None when unknown."""
        return self._member.coordinator_node

    @property
    def is_leader(self) -> bool:
        """Whether this worker leads the cluster now."""
        return self._member.is_leader

    @property
    def scheduled_rebalance_ms(self) -> int | None:
        """When the scheduled rebalance is due; None when there is none."""
        due_ms = self._scheduled_rebalance_ms
        return due_ms if due_ms < FOREVER else None

    def next_deadline_ms(self) -> int | None:
        """The one alarm to arm."""
        deadline_ms = self._member.next_deadline_ms()
        if deadline_ms is None or self._wake_ms < deadline_ms:
            deadline_ms = self._wake_ms
        return deadline_ms if deadline_ms < FOREVER else None

    # Verbs.

    def poll(self, now_ms: int, timeout_ms: int) -> Effects:
        """Run one tick; ends with `PollReturned`, and the driver calls again at once.

        Args:
            now_ms: The present instant.
            timeout_ms: Bound of the tick's wait for group activity; Java has none.

        Raises:
            InvariantViolation: a tick is in progress, or the herder is closed.
        """
        if self._phase is not Phase.IDLE:
            raise InvariantViolation(f"poll while {self._phase.value}: one tick at a time")
        if self._seen is None:
            # The log is read to its end before the herder starts; its listener hears of the rest.
            self._seen = self._config_log.snapshot()
        self._tick_deadline_ms = min(now_ms + timeout_ms, FOREVER)
        if self._can_read_configs:
            self._ensure_active(now_ms)
        else:
            self._read_config_to_end(now_ms, self._configs_read)
        return self._settle(now_ms)

    def expire(self, now_ms: int) -> Effects:
        """Fire the herder's own wait, and whatever is due in its membership."""
        if now_ms >= self._wake_ms:
            self._wake_ms = FOREVER
            if self._phase is Phase.READING:
                self._read_timed_out(now_ms)
            else:
                self._work_done(now_ms)
        self._queue.extend(self._member.expire(now_ms))
        return self._settle(now_ms)

    def on_connected(self, node_id: int, now_ms: int) -> Effects:
        """A connection that the membership asked for is open."""
        self._queue.extend(self._member.on_connected(node_id, now_ms))
        return self._settle(now_ms)

    def on_disconnected(self, node_id: int, now_ms: int) -> Effects:
        """A connection is gone, or could not be opened."""
        self._queue.extend(self._member.on_disconnected(node_id, now_ms))
        return self._settle(now_ms)

    def on_response(self, correlation_id: int, response: Response, now_ms: int) -> Effects:
        """A response arrived."""
        self._queue.extend(self._member.on_response(correlation_id, response, now_ms))
        return self._settle(now_ms)

    def callback_completed(self, token: int, outcome: str | None, now_ms: int) -> Effects:  # noqa: ARG002 - a failing start or stop is the work's own state, not the herder's
        """The driver has started or stopped the work it was asked to.

        A late answer, after the graceful timeouts ended the wait, is ignored.
        """
        if token == self._outstanding_token and self._work_then is not None:
            self._work_done(now_ms)
        return self._settle(now_ms)

    def wakeup(self, now_ms: int) -> Effects:
        """End the present wait for group activity, so that a new tick begins."""
        self._queue.extend(self._member.wakeup(now_ms))
        return self._settle(now_ms)

    def config_changed(self, now_ms: int, change: ConfigChange | None = None) -> Effects:
        """The worker read new records of the config topic; its log's snapshot has them.

        Args:
            now_ms: The present instant.
            change: What they were; None to tell from the snapshots.
        """
        old = self._seen
        if old is None:
            return ()
        new = self._seen = self._config_log.snapshot()
        self._hear(change or change_between(old, new), now_ms)
        if self._phase is Phase.READING and new.offset >= self._read_target:
            self._read_ended(now_ms)
        return self._settle(now_ms)

    def close(self, now_ms: int, timeout_ms: int) -> Effects:  # noqa: ARG002 - the contract's shape
        """Stop all work, leave the group, and end with `Closed`.

        The stop is bounded by the graceful timeouts, and the membership closes without waiting.

        Raises:
            InvariantViolation: the herder is closing or closed.
        """
        if self._stopping:
            raise InvariantViolation(f"close while {self._phase.value}")
        self._stopping = True
        match self._phase:
            case Phase.ENSURING_ACTIVE | Phase.POLLING:
                self._queue.extend(self._member.wakeup(now_ms))
            case Phase.IDLE | Phase.READING | Phase.SLEEPING:
                self._halt(now_ms)
            case _:
                # The tick ends after its present start or stop.
                self._queue.extend(self._member.wakeup(now_ms))
        return self._settle(now_ms)

    # The loop.

    def _settle(self, now_ms: int) -> Effects:
        queue = self._queue
        while queue:
            effect = queue.popleft()
            match effect:
                case RunCallback(kind=CallbackKind.WORK_ASSIGNED):
                    self._on_assigned(effect.token, now_ms)
                case RunCallback(kind=CallbackKind.WORK_REVOKED):
                    self._on_revoked(effect, now_ms)
                case PollReturned(error=error):
                    self._on_member_returned(error, now_ms)
                case Closed():
                    self._phase = Phase.CLOSED
                    self._out.append(effect)
                case _:
                    self._out.append(effect)
        if not self._out:
            return ()
        effects = tuple(self._out)
        self._out.clear()
        return effects

    def _end_tick(self, now_ms: int, error: str | None = None) -> None:
        self._phase = Phase.IDLE
        if self._stopping:
            self._halt(now_ms)
        else:
            self._out.append(PollReturned(error))

    def _halt(self, now_ms: int) -> None:
        """DistributedHerder.halt: stop the work, then the membership."""
        self._read_then = self._after_rebalance = None
        self._stop(self.running, then=self._close_member, now_ms=now_ms)

    def _close_member(self, now_ms: int) -> None:
        self._queue.extend(self._member.close(now_ms, 0))

    # Tick, step 1 and 2.

    def _configs_read(self, succeeded: bool, now_ms: int) -> None:
        if succeeded:
            self._can_read_configs = True
            self._ensure_active(now_ms)
        else:
            self._end_tick(now_ms)

    def _ensure_active(self, now_ms: int) -> None:
        self._phase = Phase.ENSURING_ACTIVE
        self._queue.extend(self._member.poll(now_ms, 0))

    def _on_member_returned(self, error: str | None, now_ms: int) -> None:
        if error is not None:
            # A wake-up begins the next tick; anything else ends the process in Java.
            self._end_tick(now_ms, None if error == WAKEUP else error)
        elif self._phase is Phase.ENSURING_ACTIVE:
            self._handle_rebalance_completed(now_ms, self._group_ensured)
        else:
            self._handle_rebalance_completed(now_ms, self._poll_ended)

    def _group_ensured(self, resolved: bool, now_ms: int) -> None:
        if resolved:
            self._schedule_tick(now_ms)
        else:
            self._end_tick(now_ms)

    # Tick, step 7 to 9.

    def _schedule_tick(self, now_ms: int) -> None:
        if self._scheduled_rebalance_ms < FOREVER:
            self._tick_deadline_ms = min(self._tick_deadline_ms, self._scheduled_rebalance_ms)
            # The completion is handled once more, now and after the poll.
            self._rebalance_resolved = False
        self._process_config_updates(now_ms)

    def _process_config_updates(self, now_ms: int) -> None:
        """Ask for a rebalance where the cluster's work changed; restart what changed in place."""
        if self._needs_reconfig_rebalance or self._connector_updates or self._task_updates:
            self._config_state = self._config_log.snapshot()
        if self._needs_reconfig_rebalance:
            self._member.request_rejoin("connect worker requested rejoin")
            if self._protocol is _EAGER:
                self._needs_reconfig_rebalance = False
                self._connector_updates.clear()
                self._task_updates.clear()
                self._end_tick(now_ms)
                return
        owned = self._assignment
        updated = self._connector_updates
        self._connector_updates = {}
        self._bounced = tuple(c for c in (owned.connectors if owned else ()) if c in updated)
        load = WorkerLoad(connectors=self._bounced)
        self._stop(load, then=self._restart_connectors, now_ms=now_ms)

    def _restart_connectors(self, now_ms: int) -> None:
        remaining = tuple(c for c in self._bounced if c in self._config_state.connectors)
        self._bounced = ()
        load = WorkerLoad(connectors=remaining)
        self._start(load, then=self._stop_reconfigured_tasks, now_ms=now_ms)

    def _stop_reconfigured_tasks(self, now_ms: int) -> None:
        owned = self._assignment
        updates = self._task_updates
        self._task_updates = {}
        eager = self._protocol is _EAGER
        tasks = () if eager or owned is None else tuple(t for t in owned.tasks if t[0] in updates)
        self._tasks_to_restart.update(dict.fromkeys(tasks))
        self._stop(WorkerLoad(tasks=tasks), then=self._poll_group, now_ms=now_ms)

    def _poll_group(self, now_ms: int) -> None:
        if self._needs_reconfig_rebalance or self._stopping:
            self._needs_reconfig_rebalance = False
            self._end_tick(now_ms)
            return
        self._phase = Phase.POLLING
        self._queue.extend(self._member.poll(now_ms, max(0, self._tick_deadline_ms - now_ms)))

    def _poll_ended(self, resolved: bool, now_ms: int) -> None:  # noqa: ARG002 - an Answer
        self._end_tick(now_ms)

    # The rebalance listener.

    def _on_assigned(self, token: int, now_ms: int) -> None:
        """Keep the assignment; the next tick handles it, because the poll is woken up."""
        self._protocol = self._member.connect_protocol
        assignment = self._assignment = self._member.assignment
        delay_ms = assignment.delay_ms if assignment is not None else 0
        self._scheduled_rebalance_ms = now_ms + delay_ms if delay_ms > 0 else FOREVER
        self._rebalance_resolved = False
        self._queue.extend(self._member.wakeup(now_ms))
        self._queue.extend(self._member.callback_completed(token, None, now_ms))

    def _on_revoked(self, callback: RunCallback, now_ms: int) -> None:
        """Stop the work, then let the membership go on; it waits inside its own poll."""
        self._revocation = (callback.token, self._phase)
        if self._rebalance_resolved or self._protocol is not _EAGER:
            load = WorkerLoad(connectors=callback.connectors, tasks=callback.tasks)
            self._stop(load, then=self._revoked_work_stopped, now_ms=now_ms)
        else:
            # Nothing of an eager assignment was started before it was resolved.
            self._revoked_work_stopped(now_ms)

    def _revoked_work_stopped(self, now_ms: int) -> None:
        token, self._phase = self._revocation
        self._queue.extend(self._member.callback_completed(token, None, now_ms))

    # handleRebalanceCompleted

    def _handle_rebalance_completed(self, now_ms: int, then: Answer) -> None:
        assignment = self._assignment
        if self._rebalance_resolved or assignment is None:
            then(True, now_ms)  # noqa: FBT003 - the continuation's one argument is the answer
            return
        self._after_rebalance = then
        failed = assignment.error is not ConnectError.NO_ERROR
        behind = self._config_state.offset < assignment.config_offset
        read_to_end = behind or (failed and self._member.is_leader)
        rejoin = failed
        if self._scheduled_rebalance_ms <= now_ms:
            rejoin = True
            self._scheduled_rebalance_ms = FOREVER
        if read_to_end:
            self._read_config_to_end(
                now_ms, self._caught_up_to_rejoin if rejoin else self._caught_up
            )
        elif rejoin:
            self._rebalance_unresolved(now_ms)
        else:
            self._start_work(now_ms)

    def _caught_up_to_rejoin(self, succeeded: bool, now_ms: int) -> None:
        self._can_read_configs = succeeded
        self._rebalance_unresolved(now_ms)

    def _caught_up(self, succeeded: bool, now_ms: int) -> None:
        self._can_read_configs = succeeded
        if succeeded:
            self._start_work(now_ms)
        else:
            self._rebalance_unresolved(now_ms)

    def _rebalance_unresolved(self, now_ms: int) -> None:
        self._member.request_rejoin("connect worker requested rejoin")
        self._answer_rebalance(resolved=False, now_ms=now_ms)

    def _answer_rebalance(self, *, resolved: bool, now_ms: int) -> None:
        then = self._after_rebalance
        self._after_rebalance = None
        if then is not None:
            then(resolved, now_ms)

    def _start_work(self, now_ms: int) -> None:
        assignment = self._assignment
        if assignment is None or self._config_state.offset != assignment.config_offset:
            # Past the assignment: it may name work that is gone, so start nothing.
            self._rebalance_unresolved(now_ms)
            return
        for task in self._tasks_to_restart:
            self._running_tasks.pop(task, None)
        self._tasks_to_restart.clear()
        connectors = tuple(c for c in assignment.connectors if c not in self._running_connectors)
        tasks = tuple(t for t in assignment.tasks if t not in self._running_tasks)
        load = WorkerLoad(connectors=connectors, tasks=tasks)
        self._start(load, then=self._work_started, now_ms=now_ms)

    def _work_started(self, now_ms: int) -> None:
        self._rebalance_resolved = True
        assignment = self._assignment
        if assignment is not None and (assignment.revoked_connectors or assignment.revoked_tasks):
            # What was given up is dealt out by a rebalance of its own.
            self._member.forget_revoked()
            self._assignment = self._member.assignment
            self._rebalance_unresolved(now_ms)
        else:
            self._answer_rebalance(resolved=True, now_ms=now_ms)
