"""Stories: further happenings of a run, as simpy processes that users write.

A story is a generator function. It yields simpy events and acts on the world between them:

    def story(world):
        yield world.timeout("30s")
        world.crash("consumer-3")
        yield world.until("orders-app", "Stable") | world.timeout("1m")
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec
from simpy.events import Event, Process, ProcessGenerator, Timeout

from coordinator_sim.errors import ScenarioError
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.scenario import happenings
from coordinator_sim.sim.scenario.lengths import parse_length
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.sim.scenario.validation import check_happening
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.recorder import Recorder

_DEAD: Final = GroupState.DEAD.value
_ON_THE_WIRE: Final = {"CompletingRebalance": GroupState.AWAITING_SYNC.value}
_STATES: Final = (*(each.value for each in GroupState), "Assigning", "Reconciling", "NotReady")


class GroupWatch:
    """Passes events on, and tells the group of each while a story waits for one.

    Args:
        recorder: Takes the events.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.on_event: Callable[[str | None], None] | None = None
        """Called with the id of each event's group; None where it concerns no group, or many."""

    def record(self, event: TraceEvent) -> None:
        """Record the event."""
        self._recorder.record(event)
        if self.on_event is not None:
            self.on_event(event.group_id)


class StoryWorld:
    """The world as a story sees it.

    Args:
        world: Shared parts of the run.
        scenario: The realised scenario.
        perform: Carries a happening out now.
        watch: Tells of events of groups.

    Attributes:
        environment: The simpy environment, for its stores and resources; it counts microseconds.
    """

    def __init__(
        self,
        world: World,
        scenario: Scenario,
        perform: Callable[[happenings.Happening], None],
        watch: GroupWatch,
    ) -> None:
        self.environment: Environment = world.environment
        self._world = world
        self._scenario = scenario
        self._perform = perform
        self._watch = watch
        self._waiting: dict[str, list[tuple[str, Event]]] = {}
        self._looks_at: set[str] = set()

    @property
    def now_ms(self) -> int:
        """The present in milliseconds from the start of the run."""
        return self.environment.now_us // US_PER_MS

    def timeout(self, length: str) -> Timeout:
        """Return an event after a length of time such as `30s`, `500ms` or `1h30m`.

        Raises:
            ConfigError: it is no length.
        """
        return self.environment.timeout(parse_length("timeout", length) * US_PER_MS)

    def until(self, group_id: str, state: str) -> Event:
        """Return an event for a group's entering a state; it is triggered if the group is there.

        Args:
            group_id: The group; one that does not exist is Dead.
            state: As Kafka's tools show it: Empty, PreparingRebalance, CompletingRebalance
                (AwaitingSync), Stable, Dead; Assigning, Reconciling; NotReady.

        Raises:
            ScenarioError: the state is unknown.
        """
        wanted = _ON_THE_WIRE.get(state, state)
        if wanted not in _STATES:
            raise ScenarioError(f"state {state!r}: must be one of {', '.join(_STATES)}")
        event = self.environment.event()
        if self.state_of(group_id) == wanted:
            return event.succeed()
        self._waiting.setdefault(group_id, []).append((wanted, event))
        self._watch.on_event = self._look_soon
        return event

    def state_of(self, group_id: str) -> str:
        """Return the state of a group at its coordinator; Dead where no broker knows it."""
        for broker in self._world.cluster.groups.living.values():
            state = broker.coordinator.state_of(group_id)
            if state is not None:
                return state
        return _DEAD

    def process(self, story: ProcessGenerator) -> Process:
        """Start another story, which this one can wait for and interrupt."""
        return self.environment.process(story)

    def choose(self, what: str, options: int) -> int:
        """Draw a number from 0 to below `options`; it is kept on the tape of the run.

        Args:
            what: Names the choice: draws of one name do not disturb those of others.
            options: At least 1.
        """
        return self._world.choices.choose("story", what, options)

    def start(self, member: str, settings: Mapping[str, str] | None = None) -> None:
        """Start a member, unless it runs."""
        self.happen(happenings.StartMember, member=member, settings=dict(settings or {}))

    def stop(self, member: str) -> None:
        """Let a member close in an orderly way."""
        self.happen(happenings.StopMember, member=member)

    def crash(self, member: str) -> None:
        """Kill a member's process."""
        self.happen(happenings.CrashMember, member=member)

    def restart(self, member: str, *, down: str = "0s", graceful: bool = True) -> None:
        """Stop or kill a member, and start it again that long after it has ended."""
        down_ms = parse_length("down", down)
        self.happen(happenings.RestartMember, member=member, down_ms=down_ms, graceful=graceful)

    def happen(self, kind: type[happenings.Happening], **fields: Any) -> None:  # noqa: ANN401
        """Let a happening of the scenario language happen now.

        Args:
            kind: Its class, such as `PauseBroker`.
            fields: Its fields, without `at_ms`.

        Raises:
            ScenarioError: it cannot happen in this world; names the value, the bound and the fix.
        """
        try:
            happening = msgspec.convert(
                {"kind": kind.__name__, "at_ms": self.now_ms, **fields}, kind, strict=True
            )
        except msgspec.ValidationError as error:
            raise ScenarioError(f"{kind.__name__}: {error}") from error
        check_happening(self._scenario, happening)
        if kind is happenings.DenyAccess and not any(
            isinstance(each, happenings.DenyAccess) for each in self._scenario.happenings
        ):
            raise ScenarioError(
                "DenyAccess of a story: the brokers have no authorizer; give the scenario a "
                "DenyAccess too, at the end of the run if it is to deny nothing"
            )
        self._perform(happening)

    def _look_soon(self, group_id: str | None) -> None:
        """Look at the group, or at all, once what is being done at this instant is done."""
        for each in self._waiting if group_id is None else (group_id,):
            if each in self._waiting and each not in self._looks_at:
                self._looks_at.add(each)
                self.environment.call_at(self.environment.now_us, partial(self._look, each))

    def _look(self, group_id: str) -> None:
        self._looks_at.discard(group_id)
        state = self.state_of(group_id)
        waiting = self._waiting.pop(group_id, [])
        left = [each for each in waiting if each[0] != state]
        for wanted, event in waiting:
            if wanted == state:
                event.succeed()
        if left:
            self._waiting[group_id] = left
        elif not self._waiting:
            self._watch.on_event = None


Story = Callable[[StoryWorld], ProcessGenerator]
"""A generator function over the world."""
