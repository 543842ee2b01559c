"""Members of the scenario: the same consumer or worker over all its incarnations.

A member starts, stops, crashes and restarts processes; the process does the work.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from coordinator_sim.clock import Action
from coordinator_sim.sim.scenario.world import newly_configured
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import Event, TraceEvent


class MemberProcess(Protocol):
    """The interface of a running incarnation."""

    @property
    def busy_us(self) -> int:
        """Time in which it has processed records so far, in microseconds."""
        ...

    def start(self) -> None:
        """Begin to run."""
        ...

    def stop(self) -> None:
        """Close the client in an orderly way, and end."""
        ...

    def kill(self) -> None:
        """End at once."""
        ...

    def pause(self, for_us: int) -> None:
        """Freeze for the given time."""
        ...

    def be_slow(self, for_us: int) -> None:
        """Keep the application busy for the given time after its next poll."""
        ...

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Subscribe to other topics."""
        ...


ProcessFactory = Callable[[Action, Mapping[str, str]], MemberProcess]
"""Builds an incarnation, given a callback for its end and the changed settings."""


class Member:
    """One member over its incarnations.

    Args:
        world: Shared parts of the run.
        name: The member's name and client id.
        group_id: Group id for the trace.
        make_process: Builds the next incarnation.

    Attributes:
        on_exit: Called at the end of each process.
    """

    __slots__ = (
        "_down_us",
        "_make_process",
        "_name",
        "_process",
        "_settings",
        "_started_count",
        "_world",
        "group_id",
        "on_exit",
    )

    def __init__(
        self, world: World, name: str, *, group_id: str, make_process: ProcessFactory
    ) -> None:
        self._world = world
        self._name = name
        self.group_id = group_id
        self._make_process = make_process
        self._process: MemberProcess | None = None
        self._down_us: int | None = None
        self._settings: dict[str, str] = {}
        self._started_count = 0
        self.on_exit: Action | None = None

    @property
    def is_running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None

    @property
    def busy_us(self) -> int:
        """Time in which the process has processed records so far, in microseconds."""
        return 0 if self._process is None else self._process.busy_us

    def start(self, settings: Mapping[str, str] | None = None) -> None:
        """Start the process unless one runs.

        Args:
            settings: Client settings from now on, over those of the scenario.
        """
        if self._process is None:
            self._settings = newly_configured(self._settings, settings or {})
            self._started_count += 1
            self._record("started")
            self._process = self._make_process(self._gone, self._settings)
            self._process.start()

    def stop(self) -> None:
        """Close the client in an orderly way; ignored while the member does not run."""
        self._down_us = None
        if self._process is not None:
            self._record("stopping")
            self._process.stop()

    def crash(self) -> None:
        """Kill the process; ignored while the member does not run."""
        self._down_us = None
        if self._process is not None:
            self._record("crashed")
            self._process.kill()

    def restart(self, down_ms: int, *, graceful: bool, settings: Mapping[str, str]) -> None:
        """Stop or kill the process, and start a new one the given time after it has ended.

        A member that does not run is started after that time.

        Args:
            down_ms: Time without a process.
            graceful: Whether the old one is stopped rather than killed.
            settings: Client settings from the new process on, over the old ones.
        """
        self._settings = newly_configured(self._settings, settings)
        if self._process is None:
            self._start_after(down_ms * US_PER_MS)
            return
        if graceful:
            self.stop()
            self._down_us = down_ms * US_PER_MS
        else:
            self._record("crashed")
            self._down_us = down_ms * US_PER_MS
            self._process.kill()

    def pause(self, for_ms: int) -> None:
        """Freeze the process."""
        if self._process is not None:
            self._record("paused")
            environment = self._world.environment
            environment.call_at(
                environment.now_us + for_ms * US_PER_MS, partial(self._resumed, self._process)
            )
            self._process.pause(for_ms * US_PER_MS)

    def be_slow(self, for_ms: int) -> None:
        """Keep the application busy for the given time after its next poll."""
        if self._process is not None:
            self._process.be_slow(for_ms * US_PER_MS)

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Subscribe to other topics; later incarnations subscribe as the scenario says."""
        if self._process is not None:
            self._process.subscribe(topics)

    def _gone(self) -> None:
        self._process = None
        self._record("gone")
        down_us = self._down_us
        self._down_us = None
        if down_us is not None:
            self._start_after(down_us)
        if self.on_exit is not None:
            self.on_exit()

    def _resumed(self, process: MemberProcess) -> None:
        if self._process is process:
            self._record("resumed")

    def _start_after(self, down_us: int) -> None:
        environment = self._world.environment
        environment.call_at(environment.now_us + down_us, self.start)

    def _record(self, what: str) -> None:
        self._world.record(
            TraceEvent(
                event=Event.LIFECYCLE,
                ts_us=self._world.environment.now_us,
                group_id=self.group_id,
                client_id=self._name,
                reason_text=what,
                attrs={"process": str(self._started_count)},
            )
        )
