"""Where drivers hand their trace events: the protocol, and the recorders that keep no file.

A recorder numbers events that carry no `seq` of their own by their position in the run, so that
the same run has the same digest whichever recorder took it down.
"""

from typing import Protocol

import msgspec

from coordinator_sim.trace.digest import digest_of
from coordinator_sim.trace.events import TraceEvent


class Recorder(Protocol):
    """Takes events in emission order."""

    def record(self, event: TraceEvent) -> None:
        """Take the next event of the run."""


def numbered(event: TraceEvent, position: int) -> TraceEvent:
    """The event with `seq` at its zero-based position in the run, unless it has one already."""
    return event if event.seq >= 0 else msgspec.structs.replace(event, seq=position)


class MemoryRecorder:
    """Keeps every event in memory: for tests, stories and short runs."""

    __slots__ = ("events",)

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []
        """The numbered events, in emission order."""

    def record(self, event: TraceEvent) -> None:
        """Take the next event of the run."""
        self.events.append(numbered(event, len(self.events)))

    @property
    def digest(self) -> str:
        """The digest of the events so far; computed on each read."""
        return digest_of(self.events)


class NullRecorder:
    """Keeps nothing."""

    __slots__ = ()

    def record(self, event: TraceEvent) -> None:
        """Drop the event."""
