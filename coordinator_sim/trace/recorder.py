"""The recorder protocol, through which drivers emit trace events, and recorders without files.

A recorder numbers events without a `seq` by their position in the run, so that the same run has the
same digest with any recorder.
"""

from typing import Protocol

import msgspec

from coordinator_sim.trace.digest import digest_of
from coordinator_sim.trace.events import TraceEvent


class Recorder(Protocol):
    """Takes events in emission order."""

    def record(self, event: TraceEvent) -> None:
        """Record the next event of the run."""


def numbered(event: TraceEvent, position: int) -> TraceEvent:
    """Return the event with its `seq`, which is its zero-based position unless already set."""
    return event if event.seq >= 0 else msgspec.structs.replace(event, seq=position)


class MemoryRecorder:
    """Keeps every event in memory: for tests, stories and short runs."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []
        """The numbered events, in emission order."""

    def record(self, event: TraceEvent) -> None:
        """Record the next event of the run."""
        self.events.append(numbered(event, len(self.events)))

    @property
    def digest(self) -> str:
        """Digest of the events so far; computed on each read."""
        return digest_of(self.events)


class NullRecorder:
    """Keeps no events."""

    def record(self, event: TraceEvent) -> None:
        """Drop the event."""
