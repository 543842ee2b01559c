"""When the threads of a workload go on."""

from collections.abc import Callable

from coordinator_sim.clock import Action
from coordinator_sim.connect.thread import Blocking, Wait
from coordinator_sim.trogdor.rates import Throttle
from coordinator_sim.trogdor.workloads.clients import Clients


def throttled(
    throttle: Throttle, clients: Clients, meanwhile: Callable[[], Blocking[None]] | None = None
) -> Blocking[None]:
    """Count one thing, as soon as it may happen.

    Args:
        throttle: What decides when.
        clients: Whose clock counts.
        meanwhile: What to do before each wait; the time that it takes is part of the wait.
    """
    while True:
        now_ms = clients.now_ms
        wait_ms = throttle.increment(now_ms)
        if not wait_ms:
            return
        if meanwhile is not None:
            yield from meanwhile()
        yield Wait(until_ms=now_ms + wait_ms)


def _never() -> bool:
    return False


def every(
    clients: Clients,
    period_ms: int,
    action: Action,
    *,
    first_ms: int | None = None,
    until: Callable[[], bool] = _never,
) -> Blocking[None]:
    """Do something at a fixed rate.

    Args:
        clients: Whose clock counts.
        period_ms: From one time to the next.
        action: What to do.
        first_ms: Until the first time; None for a period.
        until: Asked each time; when it holds, this is over.
    """
    due_ms = clients.now_ms + (period_ms if first_ms is None else first_ms)
    while True:
        yield Wait(until_ms=due_ms)
        if until():
            return
        action()
        due_ms += period_ms
