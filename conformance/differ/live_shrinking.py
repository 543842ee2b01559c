"""Shrinks a program that an endpoint answers otherwise: many shorter ones are played at once."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, Final

from coordinator_sim_conformance.differ.comparison import Difference
from coordinator_sim_conformance.differ.live_comparison import TimedScript, expected
from coordinator_sim_conformance.differ.live_loop import SIDE_BY_SIDE, LiveSession
from coordinator_sim_conformance.differ.loop import Exchange
from coordinator_sim_conformance.differ.shrinking import Shrinker, Unit, flat
from coordinator_sim_conformance.differ.timed_programs import Clearance, paced

Json = dict[str, Any]

BUDGET_S: Final = 120.0
"""Time after which no shorter program is tried."""


def shrunk(session: LiveSession, exchanges: Sequence[Exchange], wanted: str) -> list[Json]:
    """Return a small program that an endpoint still answers otherwise; at worst the given one.

    Args:
        session: Plays the programs.
        exchanges: The program, with both sides.
        wanted: Signature of the difference to keep.

    Raises:
        MissingDependencyError: Hypothesis is not installed.
    """
    pace_ms = Clearance().pace_ms
    told = [
        each
        for each in exchanges
        if each.command["op"] != "advance" or each.command["ms"] > pace_ms
    ]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        trial = _Trial(session, time.monotonic() + BUDGET_S)
        commands = _LiveShrinker(trial, wanted, pool).shrink(told)
    return paced(commands, Clearance())


class _Trial:
    """Plays a program that may lack parts.

    Args:
        session: Plays it.
        end_s: Instant of the real clock from which on nothing is played any more.
    """

    def __init__(self, session: LiveSession, end_s: float) -> None:
        self._session = session
        self._end_s = end_s

    def __call__(self, commands: Sequence[Json]) -> tuple[int, Difference | None]:
        """Return how many commands were run up to the difference, and that difference."""
        if time.monotonic() > self._end_s:
            return len(commands), None
        script = TimedScript.of(paced(commands, Clearance()))
        clear = expected(script, self._session.reference.profile, Clearance()).clear
        if clear < len(script.commands):
            return len(commands), None
        judged = self._session.played(script, 1)
        if judged.difference is None:
            return len(commands), None
        asked = [each.command["id"] for each in judged.exchanges if each.command["op"] == "call"]
        return _count_through(commands, asked[-1]), judged.difference


def _count_through(commands: Sequence[Json], call_id: int) -> int:
    """Return the number of commands up to a request and the wait behind it."""
    count = next(at for at, each in enumerate(commands, 1) if each.get("id") == call_id)
    while count < len(commands) and commands[count]["op"] == "advance":
        count += 1
    return count


class _LiveShrinker(Shrinker):
    """Shrinks a program by trying several removals concurrently, each on a program of its own.

    Args:
        trial: Plays a program.
        wanted: Signature of the difference to keep.
        pool: Plays several.
    """

    def __init__(
        self,
        trial: Callable[[Sequence[Json]], tuple[int, Difference | None]],
        wanted: str,
        pool: Executor,
    ) -> None:
        super().__init__(trial, wanted)
        self._pool = pool

    def _remove_units(self, units: list[Unit]) -> list[Unit]:
        """Remove all runs of units that can go, ever shorter ones.

        Terminates because every round makes the program or the runs shorter.
        """
        size = max(1, len(units) // 2)
        while True:
            starts = range(1, len(units), size)
            without = [units[:start] + units[start + size :] for start in starts]
            kept = list(self._pool.map(self._cut, without))
            free = [start for start, left in zip(starts, kept, strict=True) if left is not None]
            shortest = min(filter(None, kept), key=lambda left: len(flat(left)), default=None)
            if shortest is not None:
                staying = [
                    unit
                    for index, unit in enumerate(units)
                    if not any(start <= index < start + size for start in free)
                ]
                units = self._cut(staying) or shortest
            elif size == 1:
                return units
            size = max(1, size // 2)
