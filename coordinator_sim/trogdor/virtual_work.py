"""Work on a node of virtual time: what needs no process of a host.

Source: kafka trunk, trogdor/.../trogdor: task/NoOpTaskWorker.java, test task/SampleTaskWorker.java.
"""

from functools import partial
from typing import Final

from coordinator_sim.clock import Action, Clock
from coordinator_sim.trogdor.agent import NoWork, Progress, Work
from coordinator_sim.trogdor.contract import StartWork
from coordinator_sim.trogdor.fault_work import Platform, fault_work
from coordinator_sim.trogdor.specs import NoOpTaskSpec, SampleTaskSpec

_US_PER_MS: Final = 1_000


class SampleWork:
    """Does what a test asks of it.

    Args:
        node: Name of the node.
        clock: Its clock.
        spec: What is asked.
        progress: Takes what the work tells.
    """

    def __init__(self, node: str, clock: Clock, spec: SampleTaskSpec, progress: Progress) -> None:
        self._node = node
        self._clock = clock
        self._spec = spec
        self._progress = progress
        self._is_stopped = False

    def begin(self) -> None:
        """Start, after the time that it takes."""
        self._progress.status("active")
        if self._spec.start_takes_ms:
            self._after(self._spec.start_takes_ms, self._start)
        else:
            self._start()

    def _start(self) -> None:
        spec, progress = self._spec, self._progress
        if spec.start_throws:
            progress.started(spec.start_throws)
            return
        for after_ms, status in spec.status_script.items():
            self._after(
                int(after_ms), partial(self._unless_stopped, partial(progress.status, status))
            )
        exit_ms = spec.node_to_exit_ms.get(self._node)
        if exit_ms is not None:
            self._after(exit_ms, partial(self._unless_stopped, self._exit))
        if spec.halt_in_start:
            progress.halt(spec.halt_in_start)
        progress.started()

    def _exit(self) -> None:
        self._progress.status("halted")
        self._progress.halt(self._spec.error)

    def end(self) -> None:
        """Stop, after the time that it takes."""
        self._is_stopped = True
        if self._spec.stop_takes_ms:
            self._after(self._spec.stop_takes_ms, self._stop)
        else:
            self._stop()

    def _stop(self) -> None:
        throws = self._spec.stop_throws
        self._progress.stopped(throws.get(self._node, ""))

    def _unless_stopped(self, action: Action) -> None:
        if not self._is_stopped:
            action()

    def _after(self, delay_ms: int, action: Action) -> None:
        self._clock.call_at(self._clock.now_us + delay_ms * _US_PER_MS, action)


def virtual_work(
    platform: Platform, clock: Clock, start: StartWork, progress: Progress
) -> Work | None:
    """The work of a worker; None for a spec that needs more of a world.

    Raises:
        WorkFailed: the spec asks for it.
    """
    match start.spec:
        case NoOpTaskSpec():
            return NoWork(start, progress)
        case SampleTaskSpec() as spec:
            return SampleWork(platform.node, clock, spec, progress)
        case _:
            return fault_work(platform, start, progress)
