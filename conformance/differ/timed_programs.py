"""Programs for real time: no request comes near the end of a timer that it could race.

A program is drawn on the simulator alone, in virtual time. After each request some milliseconds
pass, so that an endpoint keeps pace, and as many more as it takes to be clear of every deadline.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim_conformance.differ.programs import Program
from coordinator_sim_conformance.differ.references import Reference
from coordinator_sim_conformance.differ.sides import Simulator

Json = dict[str, Any]

PROGRAM_REQUESTS: Final = 40
"""Default number of requests of one program."""
_LONGEST_MS: Final = 20_000
"""Script time after which a program ends early."""
_RACED: Final = frozenset({TimerKind.SESSION, TimerKind.REPEAT, TimerKind.JOIN, TimerKind.SYNC})
"""Timers whose end a request may race."""
_MOST_MOVES: Final = 40
"""How often an instant is moved before no better one is looked for."""
_SHORTEST_SESSION: Final = "group.min.session.timeout.ms"
_SPANS: Final = ("sessionTimeoutMs", "rebalanceTimeoutMs")
"""Fields of requests that last longer in a stretched program."""


class Clearance(Struct, frozen=True):
    """How far apart things are in real time.

    Args:
        factor: What everything is multiplied with; more for a program that is played again.
    """

    factor: int = 1

    @property
    def pace_ms(self) -> int:
        """Least time from a request to the next one."""
        return 40 * self.factor

    @property
    def slack_ms(self) -> int:
        """How late a request may be sent, and a reply may come."""
        return 70 * self.factor

    @property
    def margin_ms(self) -> int:
        """Least time between a request and a timer's end; more than what real time is off."""
        return 150 * self.factor


class TimedWorld:
    """The simulator under a program; joins the answers of waits in a row.

    Args:
        profile: Kafka that it is.
        clearance: Distances to keep.
    """

    def __init__(self, profile: str, clearance: Clearance) -> None:
        self.side = Simulator(profile, has_edge=True)
        self.clearance = clearance

    @property
    def now_ms(self) -> int:
        """Virtual time."""
        return self.side.world.now_ms

    def advance(self, ms: int) -> Json:
        """Let time pass."""
        return self.side.answer({"op": "advance", "ms": ms})

    def next_end_ms(self, until_ms: int) -> int | None:
        """Return the last of the instants, up to one, at which a timer of a group ends."""
        ends = [
            timer.deadline_ms
            for timer in self.side.world.timers()
            if timer.key.kind in _RACED and timer.deadline_ms <= until_ms
        ]
        return max(ends, default=None)

    def clear(self, wait_ms: int) -> Iterator[Json]:
        """Let time pass until a request may come: so long, or longer; yield the answers."""
        margin_ms = self.clearance.margin_ms
        target_ms = self.now_ms + wait_ms
        for _ in range(_MOST_MOVES):
            yield self.advance(max(0, target_ms - margin_ms - self.now_ms))
            end_ms = self.next_end_ms(target_ms + margin_ms)
            if end_ms is None:
                break
            target_ms = end_ms + margin_ms + 1
        yield self.advance(target_ms - self.now_ms)

    def is_clear_after(self, wait_ms: int) -> tuple[bool, Json]:
        """Let time pass; return whether a request may come then, and the answer of the wait."""
        margin_ms = self.clearance.margin_ms
        target_ms = self.now_ms + wait_ms
        first = self.advance(max(0, wait_ms - margin_ms))
        end_ms = self.next_end_ms(target_ms + margin_ms)
        second = self.advance(target_ms - self.now_ms)
        return end_ms is None, joined(first, second)


def drawn(
    reference: Reference, seed: int, requests: int, without: Sequence[str] = ()
) -> list[Json]:
    """Return the commands of a program; each request is followed by an `advance`.

    Args:
        reference: What it is drawn for.
        seed: Seed of all draws.
        requests: Number of requests; fewer come when the program gets long.
        without: Kinds of requests to leave out.
    """
    program = Program(reference, seed, without)
    world = TimedWorld(reference.profile, Clearance())
    commands = program.opening()
    for command in commands:
        world.side.answer(command)
    start_ms = world.now_ms
    asked = 0
    number = len(commands)
    while asked < requests and world.now_ms - start_ms < _LONGEST_MS:
        command = program.next(number)
        number += 1
        wait_ms = world.clearance.pace_ms
        if command["op"] == "call":
            commands.append(command)
            program.learn(world.side.answer(command))
            asked += 1
        else:
            wait_ms = command["ms"]
        before_ms = world.now_ms
        for answer in world.clear(wait_ms):
            program.learn(answer)
        _wait(commands, world.now_ms - before_ms)
    return commands


def paced(commands: Sequence[Json], clearance: Clearance) -> list[Json]:
    """Return a program in which time passes after each request, in one `advance`."""
    result: list[Json] = []
    for command in commands:
        if command["op"] == "advance":
            _wait(result, command["ms"])
            continue
        if result and result[-1]["op"] == "call":
            _wait(result, clearance.pace_ms)
        result.append(command)
    if result and result[-1]["op"] == "call":
        _wait(result, clearance.pace_ms)
    for before, after in pairwise(result):
        if before["op"] == "call":
            after["ms"] = max(after["ms"], clearance.pace_ms)
    return result


def _wait(commands: list[Json], ms: int) -> None:
    """Append a wait, or make the one at the end longer."""
    if commands and commands[-1]["op"] == "advance":
        ms += commands.pop()["ms"]
    commands.append({"op": "advance", "ms": ms})


def stretched(commands: Sequence[Json], factor: int) -> list[Json]:
    """Return a program in which waits and timeouts last so many times as long.

    A session timeout that is refused for being short stays so.
    """
    config = commands[0].get("config", {}) if commands else {}
    shortest = {"sessionTimeoutMs": int(config.get(_SHORTEST_SESSION, 0))}
    return [_stretched(command, factor, shortest) for command in commands]


def _stretched(command: Json, factor: int, shortest: Mapping[str, int]) -> Json:
    if command["op"] == "advance":
        return {**command, "ms": command["ms"] * factor}
    data = command.get("data", {})
    longer = {
        name: data[name] * factor
        for name in _SPANS
        if name in data and data[name] >= shortest.get(name, 0)
    }
    return {**command, "data": {**data, **longer}} if longer else command


def joined(first: Json, second: Json) -> Json:
    """Return two answers of one command as one."""
    both = {**first, **second}
    for name in ("replies", "records"):
        if name in first or name in second:
            both[name] = [*first.get(name, ()), *second.get(name, ())]
    return both
