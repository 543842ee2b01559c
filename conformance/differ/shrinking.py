"""Shrinks a failing program: fewer commands first, then simpler ones by Hypothesis.

A shortened program must name its members as before to fail the same way: so the id that each
JoinGroup drew is scripted in front of it, and removed with it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from coordinator_sim.errors import needing
from coordinator_sim_conformance.differ.comparison import Difference
from coordinator_sim_conformance.differ.loop import Exchange

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

Json = dict[str, Any]
Unit = tuple[Json, ...]
"""Commands that stay or go together: one, or a scripted id with the JoinGroup that draws it."""
Trial = Callable[[Sequence[Json]], tuple[int, Difference | None]]
"""Runs commands on both sides; returns how many were run, and the first difference."""

_DRAWN_ID: Final = re.compile(r"-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\Z")
_TRIES: Final = 400
"""Limit of programs that Hypothesis tries."""


def units_of(exchanges: Sequence[Exchange]) -> list[Unit]:
    """Group the commands, each JoinGroup with its drawn id; the first unit creates the world."""
    drawn = _drawn_ids(exchanges)
    units: list[Unit] = []
    for exchange in exchanges:
        command = exchange.command
        uuid = drawn.get(command.get("id"))
        before = () if uuid is None else ({"op": "uuids", "next": [uuid]},)
        units.append((*before, command))
    return units


def _drawn_ids(exchanges: Sequence[Exchange]) -> dict[object, str]:
    """Return command id -> the UUID drawn for it, as far as answers show."""
    drawn: dict[object, str] = {}
    seen: set[str] = set()
    for exchange in exchanges:
        for reply in exchange.ours.get("replies", ()):
            member_id = reply.get("data", {}).get("memberId", "")
            found = _DRAWN_ID.search(member_id) if reply["api"] == "JoinGroup" else None
            if found is not None and found[1] not in seen:
                seen.add(found[1])
                drawn[reply.get("id")] = found[1]
    return drawn


def flat(units: Sequence[Unit]) -> list[Json]:
    """Return the commands of units, in order."""
    return [command for unit in units for command in unit]


class Shrinker:
    """Searches for a smaller program with the same kind of difference.

    Args:
        trial: Runs a program.
        wanted: Signature of the difference to keep.
    """

    def __init__(self, trial: Trial, wanted: str) -> None:
        self._trial = trial
        self._wanted = wanted

    def shrink(self, exchanges: Sequence[Exchange]) -> list[Json]:
        """Return a small program that still shows the difference; at worst the given one.

        Raises:
            MissingDependencyError: Hypothesis is not installed.
        """
        units = self._cut(units_of(exchanges))
        if units is None:
            units = self._cut([(exchange.command,) for exchange in exchanges])
        if units is None:
            return [exchange.command for exchange in exchanges]
        return self._simplify(self._remove_units(units))

    def _cut(self, units: Sequence[Unit]) -> list[Unit] | None:
        """Return the units up to the difference, or None when they do not show it."""
        count, difference = self._trial(flat(units))
        if difference is None or difference.signature != self._wanted:
            return None
        kept: list[Unit] = []
        for unit in units:
            if count <= 0:
                break
            kept.append(unit)
            count -= len(unit)
        return kept

    def _remove_units(self, units: list[Unit]) -> list[Unit]:
        """Remove runs of units, ever shorter ones, for as long as that removes any.

        Terminates because every round makes the program or the runs shorter.
        """
        size = max(1, len(units) // 2)
        while True:
            removed = False
            start = len(units) - size
            while start > 0:
                kept = self._cut(units[:start] + units[start + size :])
                if kept is not None:
                    units, removed = kept, True
                start = min(start, len(units)) - size
            if size == 1 and not removed:
                return units
            size = max(1, size // 2)

    def _simplify(self, units: list[Unit]) -> list[Json]:
        """Let Hypothesis remove entries of lists, settings and milliseconds."""
        with needing("conformance", "shrinking", otherwise="or give --no-shrink"):
            from hypothesis import HealthCheck, Phase, find, settings
            from hypothesis import strategies as st
            from hypothesis.database import InMemoryExampleDatabase, choices_to_bytes
            from hypothesis.errors import NoSuchExample
        choices: list[bool | int] = []
        simplified(units, lambda whole: choices.append(whole) or whole)  # type: ignore[func-returns-value] # takes down what there is

        @st.composite
        def programs(draw: "DrawFn") -> list[Json]:
            def simpler(whole: bool | int) -> bool | int:
                if isinstance(whole, bool):
                    return draw(st.booleans())
                return draw(st.integers(0, whole))

            return simplified(units, simpler)

        database = InMemoryExampleDatabase()
        key = b"program"
        # Fields beside the actual key count as not shrunk yet.
        database.save(key + b".secondary", choices_to_bytes(tuple(choices)))
        try:
            return find(
                programs(),
                self._fails,
                settings=settings(
                    database=database,
                    phases=(Phase.reuse, Phase.shrink),
                    max_examples=_TRIES,
                    deadline=None,
                    suppress_health_check=list(HealthCheck),
                ),
                database_key=key,
            )
        except NoSuchExample:
            return flat(units)

    def _fails(self, commands: Sequence[Json]) -> bool:
        _, difference = self._trial(commands)
        return difference is not None and difference.signature == self._wanted


def simplified(units: Sequence[Unit], choose: Callable[[bool | int], bool | int]) -> list[Json]:
    """Return the program with parts left out as chosen.

    Args:
        units: The whole program; its first unit stays.
        choose: Given True for a part, says whether it stays; given a number, returns one up to it.
    """
    kept = []
    for index, unit in enumerate(units):
        if index == 0 or choose(True):  # noqa: FBT003 - the choice as it is in the whole program
            kept.append(unit)
    return [_simplified_command(command, choose) for command in flat(kept)]


def _simplified_command(command: Json, choose: Callable[[bool | int], bool | int]) -> Json:
    if command["op"] == "advance":
        return {**command, "ms": choose(command["ms"])}
    if command["op"] == "uuids":
        return command
    return {name: _simplified_value(value, choose) for name, value in command.items()}


def _simplified_value(value: object, choose: Callable[[bool | int], bool | int]) -> object:
    if isinstance(value, list):
        return list(_kept(value, choose))
    if isinstance(value, dict):
        return {name: _simplified_value(each, choose) for name, each in value.items()}
    return value


def _kept(values: Sequence[object], choose: Callable[[bool | int], bool | int]) -> Iterator[object]:
    for value in values:
        if choose(True):  # noqa: FBT003 - the choice as it is in the whole program
            yield _simplified_value(value, choose)
