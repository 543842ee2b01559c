"""Own assignors of one test are none of the next, nor of the strategies in the same process."""

from collections.abc import Iterator
from contextlib import contextmanager

from coordinator_sim.assignors.foreign.line_process import stop_processes
from coordinator_sim.assignors.registry import _KNOWN


@contextmanager
def own_assignors_forgotten() -> Iterator[None]:
    """Forget at the end what was registered in the block, and stop its processes."""
    before, of_consumers = dict(_KNOWN._own), set(_KNOWN._of_consumers)
    try:
        yield
    finally:
        _KNOWN._own, _KNOWN._of_consumers = before, of_consumers
        stop_processes()
