"""A worker's membership in its group, as the herder's thread uses it: calls that block.

The port of WorkerCoordinator returns callbacks as effects; here they run inside `poll`, on the
polling thread, as Java's rebalance listener does.

Source: kafka trunk, connect/runtime/.../distributed/WorkerGroupMember.java.
"""

from collections import deque
from collections.abc import Sequence
from typing import Protocol

from coordinator_sim.clients.effects import CallbackKind, Closed, Effects, PollReturned, RunCallback
from coordinator_sim.clients.exceptions import WAKEUP
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.clients.worker_coordinator import WorkerCoordinator
from coordinator_sim.connect.exceptions import JavaException, WakeupException, thrown
from coordinator_sim.connect.thread import Blocking, Outbox, Pending, Wait
from coordinator_sim.kafka.resources import ConnectorTaskId


class RebalanceListener(Protocol):
    """Callbacks of the group membership to the herder, on the herder's thread."""

    def on_assigned(self) -> Blocking[None]:
        """Handle a new assignment, which `GroupMember.coordinator.assignment` holds."""
        ...

    def on_revoked(
        self, connectors: Sequence[str], tasks: Sequence[ConnectorTaskId]
    ) -> Blocking[None]:
        """Stop this work before the membership goes on."""
        ...

    def on_poll_timeout_expiry(self) -> None:
        """The herder has not polled for its whole rebalance timeout; the group is left."""
        ...


class GroupMember:
    """The port of WorkerGroupMember.

    Args:
        coordinator: The port of WorkerCoordinator: the group membership itself.
        outbox: The worker's outbox.
        listener: The herder's callbacks.
    """

    def __init__(
        self, coordinator: WorkerCoordinator, outbox: Outbox, listener: RebalanceListener
    ) -> None:
        self.coordinator = coordinator
        self._outbox = outbox
        self._listener = listener
        self._callbacks: deque[RunCallback] = deque()
        self._returned: PollReturned | None = None
        self._moved: Pending[object] = Pending()

    # What the herder's thread calls.

    def ensure_active(self) -> Blocking[None]:
        """Be an active member of the group, and look at the network once.

        Raises:
            WakeupException: the wait was interrupted.
            JavaException: the membership failed for good.
        """
        yield from self.poll(0)

    def poll(self, timeout_ms: int = FOREVER) -> Blocking[None]:
        """Maintain the membership for the given time, without limit by default.

        Args:
            timeout_ms: Time limit; ignored while the worker is out of the group.

        Raises:
            WakeupException: the wait was interrupted.
            JavaException: the membership failed for good.
        """
        self._returned = None
        self.carry_out(self.coordinator.poll(self._outbox.now_ms, timeout_ms))
        while (returned := self._returned) is None:
            if self._callbacks:
                yield from self._run_callback(self._callbacks.popleft())
            else:
                self._moved = Pending()
                yield Wait(self._moved)
        if returned.error == WAKEUP:
            raise WakeupException
        if returned.error is not None:
            raise thrown(returned.error)

    def _run_callback(self, callback: RunCallback) -> Blocking[None]:
        outcome: str | None = None
        try:
            if callback.kind is CallbackKind.WORK_ASSIGNED:
                yield from self._listener.on_assigned()
            else:
                yield from self._listener.on_revoked(callback.connectors, callback.tasks)
        except JavaException as exception:
            outcome = exception.name
        now_ms = self._outbox.now_ms
        self.carry_out(self.coordinator.callback_completed(callback.token, outcome, now_ms))

    def revoke_assignment(
        self, connectors: Sequence[str], tasks: Sequence[ConnectorTaskId]
    ) -> Blocking[None]:
        """Have the herder stop this work, as if the group had revoked it."""
        yield from self._listener.on_revoked(connectors, tasks)

    def request_rejoin(self) -> None:
        """Rejoin at the next poll."""
        self.coordinator.request_rejoin("connect worker requested rejoin")

    def maybe_leave_group(self, reason: str) -> None:
        """Leave the group now."""
        self.carry_out(self.coordinator.leave_group(reason, self._outbox.now_ms))

    # What any thread may call.

    def wakeup(self) -> None:
        """Interrupt the present poll, or the next one."""
        self.carry_out(self.coordinator.wakeup(self._outbox.now_ms))

    def stop(self) -> None:
        """Leave the group without waiting."""
        self.carry_out(self.coordinator.close(self._outbox.now_ms, 0))

    def carry_out(self, effects: Effects) -> None:
        """Send the coordinator's effects to the driver; keep those that concern the herder."""
        for effect in effects:
            match effect:
                case RunCallback(kind=CallbackKind.POLL_TIMEOUT):
                    self._listener.on_poll_timeout_expiry()
                case RunCallback():
                    self._callbacks.append(effect)
                    self._moved.complete()
                case PollReturned():
                    self._returned = effect
                    self._moved.complete()
                case Closed():
                    pass  # the herder itself reports the end of its process
                case _:
                    self._outbox.tell(effect)

    def owner_url(self, resource: str | ConnectorTaskId) -> str | None:
        """Return the URL of the owner of a connector or task, if this worker leads and knows it."""
        return self.coordinator.owner_url(resource)
