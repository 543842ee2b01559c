"""Applies fault rules to the requests of a connection; unused while there are no rules."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from coordinator_sim.broker.contract import Call
from coordinator_sim.broker.error_answers import error_answer, with_error
from coordinator_sim.broker.faults import faults
from coordinator_sim.broker.pending_answer import Output, PendingAnswer
from coordinator_sim.broker.scheduler import Task
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.codec.compiler import response_reader, response_writer

if TYPE_CHECKING:
    from coordinator_sim.broker.cluster import Cluster

_REASON: Final = "a fault rule"


class FaultDoor:
    """Passes one request and its answer through the fault rules; sits between slot and asker.

    Args:
        cluster: The cluster behind the connection.
        output: Output of the connection.
        call: The request.
        pending: Slot of the request's answer.
    """

    __slots__ = ("_asker", "_call", "_cluster", "_output", "_pending")

    def __init__(
        self, cluster: "Cluster", output: Output, call: Call[Any], pending: PendingAnswer
    ) -> None:
        self._cluster = cluster
        self._output = output
        self._call = call
        self._pending = pending
        self._asker = pending.asker
        pending.asker = self

    def pass_request(self, take: Task) -> None:
        """Apply the first rule that matches the request, or let the cluster take it.

        Args:
            take: Hands the request to the cluster.
        """

        def refuse(refusal: Struct) -> None:
            pending = self._pending
            write = response_writer(pending.api, pending.version)
            self._asker.answered(write(pending.correlation_id, refusal))

        pass_request(
            self._cluster,
            self._call,
            take,
            refuse=refuse,
            close=partial(self._output.close, _REASON),
        )

    def answered(self, frame: bytes | None) -> None:
        """Apply the first rule that matches the answer, or let it go; see `Asker.answered`."""
        cluster = self._cluster
        match cluster.faults.after(self._call):
            case faults.Drop():
                return
            case faults.Lose():
                self._asker.answered(None)
            case faults.Delay(ms):
                at_ms = cluster.latest.wall_ms + ms
                cluster.scheduler.at_wall_ms(at_ms, lambda _now: self._asker.answered(frame))
            case faults.Fail(error) if frame is not None:
                self._asker.answered(_tainted(self._pending, frame, faults.error_named(error)))
            case faults.Close():
                self._output.close(_REASON)
            case faults.Duplicate() if frame is not None:
                self._output.write(len(frame).to_bytes(4, "big") + frame)
                self._asker.answered(frame)
            case faults.Reorder(ms) if frame is not None:
                self._asker.overtaken(frame, ms)
            case _:
                self._asker.answered(frame)

    def overtaken(self, frame: bytes, within_ms: int) -> None:
        """Pass on an answer that is to be overtaken; see `Asker.overtaken`."""
        self._asker.overtaken(frame, within_ms)

    def throttled(self, throttle_time_ms: int) -> None:
        """Pass the muting on; see `Asker.throttled`."""
        self._asker.throttled(throttle_time_ms)

    def ended(self, reason: str) -> None:
        """Pass the end of the connection on, without asking the rules; see `Asker.ended`."""
        self._asker.ended(reason)


def pass_request(
    cluster: "Cluster",
    call: Call[Any],
    take: Task,
    *,
    refuse: Callable[[Struct], None],
    close: Callable[[], None],
) -> None:
    """Apply the first rule that matches a request, or let the cluster take it.

    Args:
        cluster: The cluster with the rules.
        call: The request.
        take: Hands the request to the cluster.
        refuse: Takes an answer that the cluster did not give.
        close: Closes the connection.
    """
    now = cluster.latest = call.now
    match cluster.faults.before(call):
        case None:
            take(now)
        case faults.Drop():
            return
        case faults.Delay(ms):
            cluster.scheduler.at_wall_ms(now.wall_ms + ms, take)
        case faults.Fail(error):
            code = faults.error_named(error)
            refuse(error_answer(call.api, call.context.api_version, call.request, code))
        case faults.Close():
            close()
        case faults.FailAppend(error):
            cluster.operations.taken_while_appends_fail(faults.error_named(error), take, now)
        case faults.SlowAppend(ms):
            cluster.operations.slow_appends.taken_while_slow(ms, take, now)
        case faults.MoveCoordinator(to):
            group_id = next(faults.groups_of(call.request), "")
            cluster.operations.taken_while_coordinator_moves(group_id, to, take, now)


def _tainted(pending: PendingAnswer, frame: bytes, error: ErrorCode) -> bytes:
    _, answer = response_reader(pending.api, pending.version)(frame)
    tainted = with_error(pending.api, pending.version, answer, error)
    return response_writer(pending.api, pending.version)(pending.correlation_id, tainted)
