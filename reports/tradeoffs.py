"""Candidates of a sweep: what each combination of choices costs, by several objectives.

A candidate is on the front if no other is at least as good in all objectives and better in one.
"""

import re
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from msgspec import Struct

Row = Mapping[str, Any]

OBJECTIVES: Final = ("moved", "unowned_s", "imbalance")
"""Columns of the costs of runs that a candidate is judged by; less is better."""


class Spread(Struct, frozen=True):
    """One objective of a candidate over the drawn worlds: its values by seed, in their order."""

    values: tuple[float, ...]

    @property
    def middle(self) -> float:
        """The median."""
        return median(self.values)


class Candidate(Struct, frozen=True, kw_only=True):
    """One combination of choices, over all scenarios of a sweep.

    Args:
        number: From 1, in reading order among those of the same unit.
        name: Assignor or protocol, membership, processing time and settings.
        unit: What moves: `partition` or `task`.
        runs: Number of runs.
        spreads: For each objective, and further figures if asked for: the sum over the scenarios of
            one seed, of imbalance the mean.
        is_best: Whether it is on the front.
    """

    number: int
    name: str
    unit: str
    runs: int
    spreads: dict[str, Spread]
    is_best: bool


def candidates(
    costs: Sequence[Row], objectives: Sequence[str] = OBJECTIVES, figures: Sequence[str] = ()
) -> list[Candidate]:
    """Return the candidates of a sweep, by unit, each unit in the order of its first run.

    Args:
        costs: Rows of `transforms.choice_costs.run_costs`, in the order of the grid.
        objectives: Columns that decide who is on the front.
        figures: Further columns whose spreads are wanted.
    """
    found: list[Candidate] = []
    for unit in ("partition", "task"):
        by_name: dict[str, list[Row]] = {}
        for row in costs:
            if (row["membership"] == "") == (unit == "task"):
                by_name.setdefault(name_of(row), []).append(row)
        spreads = {name: _spreads(rows, (*objectives, *figures)) for name, rows in by_name.items()}
        best = _front({name: _point(each, objectives) for name, each in spreads.items()})
        found += [
            Candidate(
                number=number,
                name=name,
                unit=unit,
                runs=len(by_name[name]),
                spreads=spreads[name],
                is_best=name in best,
            )
            for number, name in enumerate(by_name, 1)
        ]
    return found


def name_of(row: Row) -> str:
    """Return the name of a run's candidate."""
    return " ".join(parts_of(row))


def parts_of(row: Row) -> tuple[str, ...]:
    """Return what the name of a run's candidate consists of, each setting a part."""
    pace = "" if row["processing_ms"] is None else f"{row['processing_ms']} ms"
    settings = re.split(r" (?=[^ =]+=)", row["settings"])
    return tuple(part for part in (row["choice"], row["membership"], pace, *settings) if part)


def _spreads(rows: Sequence[Row], columns: Sequence[str]) -> dict[str, Spread]:
    by_seed: dict[int, list[Row]] = {}
    for row in rows:
        by_seed.setdefault(row["seed"], []).append(row)
    found = {}
    for objective in columns:
        sums = [
            sum(float(row[objective]) for row in own) / (len(own) if _is_mean(objective) else 1)
            for own in by_seed.values()
        ]
        found[objective] = Spread(tuple(sorted(sums)))
    return found


def _is_mean(objective: str) -> bool:
    return objective == "imbalance"


def _point(spreads: Mapping[str, Spread], objectives: Sequence[str]) -> tuple[float, ...]:
    return tuple(spreads[objective].middle for objective in objectives)


def _front(points: Mapping[str, tuple[float, ...]]) -> dict[str, None]:
    """Return the names of the points that no other dominates."""
    return {
        name: None
        for name, point in points.items()
        if not any(_dominates(other, point) for other in points.values())
    }


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def candidate_rows(found: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Return the candidates as rows of a table: median, least and most of each objective."""
    return [
        {
            "unit": each.unit,
            "number": each.number,
            "candidate": each.name,
            "runs": each.runs,
            "is_best": each.is_best,
            **{
                f"{objective}{suffix}": value
                for objective, spread in each.spreads.items()
                for suffix, value in (
                    ("", spread.middle),
                    ("_low", spread.values[0]),
                    ("_high", spread.values[-1]),
                )
            },
        }
        for each in found
    ]
