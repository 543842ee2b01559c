"""Leaves calm time out of drawn worlds: a year of weekly deploys is simulated as its deploys.

In a drawn world latencies, pauses and the times of polls come from the seed, so that nothing in a
stretch without happenings can be computed in closed form (`elision`). But the group forgets: where
all members have been stable for a while, heartbeats, polls, commits and pauses come as they came
before, and no rebalance can follow from them. Such a stretch is lived through for
`Variety.calm_ms` after what happened and for as long before what happens next. What lies between
is left out: the clocks of members and brokers stand still, and the trace goes on at the instant
that the scenario says. Neither records nor commits nor heartbeats come in that time.

The rest is exact: the same run as of the scenario whose happenings are so much closer together,
with other instants. A stretch is never left out where a pause or a slow poll could cost a member
its place in the group.
"""

from bisect import bisect_right
from collections import deque
from types import MethodType
from typing import Final

import msgspec
from simpy.events import Timeout

from coordinator_sim.sim.brokers import ClusterDriver
from coordinator_sim.sim.consumers import ConsumerProcess
from coordinator_sim.sim.elision import Elided, owner_of
from coordinator_sim.sim.environment import Call, Scheduled
from coordinator_sim.sim.members import Member
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.sim.scenario.world import ConsumerGroupSpec
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import Event, OffsetEntry, TraceEvent
from coordinator_sim.trace.recorder import Recorder

_LOOK_US: Final = 1_000_137
"""From one look to the next; not a whole millisecond, as most messages are sent at one."""
_GRAIN_US: Final = 60_000_000
"""What is left out is a multiple of a minute: rhythms that divide it go on as if it had passed."""


class CalmRecorder:
    """Gives events the instants of the scenario, where the clocks have stood still meanwhile.

    Args:
        recorder: Takes the events.
    """

    __slots__ = ("_left_out_us", "_recorder", "_until_us")

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._until_us: list[int] = []
        self._left_out_us = [0]

    @property
    def left_out_us(self) -> int:
        """How far the clocks are behind."""
        return self._left_out_us[-1]

    def leave_out(self, now_us: int, for_us: int) -> None:
        """Let time pass that no clock shows.

        Args:
            now_us: What the clocks show.
            for_us: How long they stand still.
        """
        self._until_us.append(now_us)
        self._left_out_us.append(self.left_out_us + for_us)

    def record(self, event: TraceEvent) -> None:
        """Record the event at its instant of the scenario."""
        if self._until_us:
            latency_us = event.latency_us
            if latency_us is not None:
                latency_us += self.left_out_us - self._left_out_by(event.ts_us - latency_us)
            event = msgspec.structs.replace(
                event,
                ts_us=event.ts_us + self.left_out_us,
                latency_us=latency_us,
                offsets=tuple(map(self._retimed, event.offsets)),
            )
        self._recorder.record(event)

    def _retimed(self, entry: OffsetEntry) -> OffsetEntry:
        commit_us, expire_us = entry.commit_ts_us, entry.expire_ts_us
        if commit_us is None:
            return entry
        behind_us = self._left_out_by(commit_us)
        expires_us = None if expire_us is None else expire_us + behind_us
        return msgspec.structs.replace(
            entry, commit_ts_us=commit_us + behind_us, expire_ts_us=expires_us
        )

    def _left_out_by(self, at_us: int) -> int:
        """How far the clocks were behind when they showed an instant."""
        if at_us > self._until_us[-1]:
            return self.left_out_us
        return self._left_out_us[bisect_right(self._until_us, at_us)]


class Calm:
    """Advances a world without most of its calm time.

    Args:
        world: Shared parts of the run; everything is scheduled.
        brokers: The driver of its cluster.
        scenario: The realised scenario.
        recorder: Its instants; the world's recorder, unless that keeps nothing.
        has_story: Whether a story is told too: when it acts is not known before.
    """

    def __init__(
        self,
        world: World,
        brokers: ClusterDriver,
        scenario: Scenario,
        recorder: CalmRecorder,
        *,
        has_story: bool = False,
    ) -> None:
        self._world = world
        self._brokers = brokers
        self._recorder = recorder
        self._ends_at_us = scenario.duration_ms * US_PER_MS
        variety = scenario.variety
        self._calm_us = 0 if variety is None else variety.calm_ms * US_PER_MS
        longest_ms = variety.pause_ms[-1] if variety is not None and variety.pause_ms else 0
        self._longest_pause_us = longest_ms * US_PER_MS
        self._dilation = 1
        if variety is not None and longest_ms:
            self._dilation += -(-longest_ms // variety.pause_gap_ms[0])
        self._looks_at_us = _LOOK_US
        self._since_us = 0
        self._stretches = 0
        self._reason = "a story is told" if has_story else _refusal(scenario)
        self._script = deque(
            sorted(entry for entry in world.environment.pending() if _is_scripted(entry[3]))
        )
        world.environment.withdraw(_is_scripted)

    def elided(self) -> Elided:
        """Return what was left out so far."""
        return Elided(self._stretches, self._recorder.left_out_us, 0, self._reason)

    @property
    def now_us(self) -> int:
        """The present instant of the scenario."""
        return self._world.environment.now_us + self._recorder.left_out_us

    def run_until(self, end_us: int) -> None:
        """Advance to an instant of the scenario; calm time may be left out beyond it."""
        environment = self._world.environment
        while self._script and self._script[0][0] <= end_us:
            self._live_until(self._script[0][0])
            if self._script[0][0] > self.now_us:
                return
            self._since_us = environment.now_us
            environment.put_back(self._script.popleft())
        self._live_until(end_us)
        left_us = end_us - self.now_us
        if left_us >= 0:
            environment.run_until(environment.now_us + left_us)

    def _live_until(self, end_us: int) -> None:
        """Go on up to an instant of the scenario, but not through what is due then."""
        environment = self._world.environment
        while self.now_us < end_us:
            until_us = end_us - self._recorder.left_out_us
            if self._looks_at_us >= until_us:
                environment.run_until(until_us - 1)
                environment.now_us = until_us
                return
            environment.run_until(self._looks_at_us)
            self._looks_at_us += _LOOK_US
            self._look()

    def _look(self) -> None:
        """Leave out calm time, if there is some, up to shortly before what happens next."""
        now_us = self._world.environment.now_us
        next_us = self._script[0][0] if self._script else self._ends_at_us
        spare_us = (next_us - self.now_us - self._calm_us) // _GRAIN_US * _GRAIN_US
        if self._reason or spare_us <= 0:
            return
        if self._is_stirred():
            self._since_us = now_us
        elif now_us - self._since_us >= self._calm_us and self._are_at_ease():
            until_us = str(self.now_us + spare_us)
            self._world.record(
                TraceEvent(event=Event.CALM_LEFT_OUT, ts_us=now_us, attrs={"until_us": until_us})
            )
            self._recorder.leave_out(now_us, spare_us)
            self._stretches += 1

    def _is_stirred(self) -> bool:
        """Whether something happens that other things follow from."""
        network, cluster = self._world.network, self._world.cluster
        return (
            not network.is_whole
            or network.degradations.is_on
            or cluster.faults.is_pending
            or bool(self._brokers.held)
            or any(self._world.slow_percents.values())
            or cluster.scheduler.has_tasks
            or any(type(event) is Timeout for *_, event in self._world.environment.pending())
            or any(
                each.coordinator.idle_sessions() is None for each in cluster.groups.living.values()
            )
        )

    def _are_at_ease(self) -> bool:
        """Whether every process is a stable member, and every member has a process."""
        consumers: set[ConsumerProcess] = set()
        for *_, event in self._world.environment.pending():
            owner = owner_of(event)
            if type(owner) is ConsumerProcess:
                consumers.add(owner)
            elif type(owner) is Member and _is_scripted(event):
                return False  # it is to be started
        living = [each for each in consumers if each.is_alive]
        if not all(each.is_at_ease for each in living):
            return False
        if not all(each.bears(self._longest_pause_us, self._dilation) for each in living):
            self._reason = "a pause or a slow poll may cost a member its place in the group"
            return False
        members = {each.member_key for each in living}
        known = [
            sessions.keys()
            for broker in self._world.cluster.groups.living.values()
            if (sessions := broker.coordinator.idle_sessions()) is not None
        ]
        return set().union(*known) == members


def _is_scripted(event: Scheduled) -> bool:
    """Whether an event is one of the scenario's own: a happening, or the start of a member."""
    if type(event) is not Call:
        return isinstance(event, Timeout)
    return type(owner_of(event)) is Member and type(event.action) is MethodType


def _refusal(scenario: Scenario) -> str:
    """Return why no time of a scenario is left out; empty where some may be."""
    if scenario.kubernetes:
        return "workloads of Kubernetes are scaled and restarted at any time"
    if scenario.tasks or scenario.workloads:
        return "workloads run beside the groups"
    if any(topic.load or topic.poison for topic in scenario.topics):
        return "a topic's load or poison goes by the clock, which would stand still"
    if not all(isinstance(group, ConsumerGroupSpec) for group in scenario.groups):
        return "groups of Connect, or share groups, have work that comes by itself"
    return ""
