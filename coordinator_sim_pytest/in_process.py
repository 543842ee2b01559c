"""A group coordinator in the test's own process, with a recorded trace."""

from coordinator_sim.harness.group_driver import GroupDriver
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder


class RecordedGroup(GroupDriver):
    """One group, driven by hand.

    Args:
        profile: Profile of Kafka that it behaves like.
    """

    def __init__(self, profile: Profile) -> None:
        super().__init__(Harness(profile=profile))
        self._recorder = MemoryRecorder()
        self.harness.told = self._take

    @property
    def events(self) -> list[TraceEvent]:
        """Events of the coordinator so far."""
        return self._recorder.events

    def _take(self, events: tuple[TraceEvent, ...]) -> None:
        for event in events:
            self._recorder.record(event)
