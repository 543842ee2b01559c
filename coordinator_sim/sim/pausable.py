"""A process of the simulated world, which lives, may be frozen for a while, and ends.

Subclasses define its work.
"""

from functools import partial

from coordinator_sim.clock import Action, Alarmed
from coordinator_sim.sim.world import US_PER_MS, World


class PausableProcess(Alarmed):
    """Runs actions after delays; while it is frozen they wait, and after its end none runs.

    Args:
        world: Shared parts of the run.
    """

    __slots__ = ("_environment", "_is_alive", "_is_paused", "_late", "_world")

    def __init__(self, world: World) -> None:
        super().__init__(world.environment)
        self._world = world
        self._environment = world.environment
        self._is_alive = True
        self._is_paused = False
        self._late: list[Action] = []

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._is_alive

    @property
    def busy_us(self) -> int:
        """Time in which it has processed records, in microseconds; 0 where that is not counted."""
        return 0

    def pause(self, for_us: int) -> None:
        """Freeze the process; events that arrive meanwhile are handled at its end, in order."""
        if not self._is_paused:
            self._is_paused = True
            self._later(for_us, self._thaw, even_if_paused=True)

    def _end(self) -> None:
        """Stop running actions for good."""
        self._is_alive = False
        self.switch_alarm_off()
        self._late.clear()

    def _now_ms(self) -> int:
        return self._world.environment.now_us // US_PER_MS

    def _later(self, delay_us: int, action: Action, *, even_if_paused: bool = False) -> None:
        """Run an action in this incarnation after a delay, or at the end of a pause then."""
        environment = self._world.environment
        guarded = action if even_if_paused else partial(self._unless_paused, action)
        environment.call_at(environment.now_us + delay_us, partial(self._if_alive, guarded))

    def _if_alive(self, action: Action) -> None:
        if self._is_alive:
            action()

    def _unless_paused(self, action: Action) -> None:
        if self._is_paused:
            self._late.append(action)
        else:
            action()

    def _thaw(self) -> None:
        self._is_paused = False
        late = self._late
        self._late = []
        # Both threads of a client read the network before they check their timers.
        for action in late:
            self._if_alive(action)
        self._if_alive(self._on_alarm)
