"""The sentence that a comparison begins with: who wins, by how much, and what it costs elsewhere.

One choice is better than another in a figure where it is better in every world that both met; where
the worlds disagree their spread covers the difference, and nobody is better.
"""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, Final

from msgspec import Struct

from coordinator_sim_reports.formats import terse_seconds, whole

Row = Mapping[str, Any]

_NAMED: Final = 3
"""Choices that a list of them names."""
_NEAR: Final = 1.02
"""Rivals within two percent of each other count as equally near."""


class Figure(Struct, frozen=True, kw_only=True):
    """A figure that choices are compared in; less is better.

    Args:
        column: Its name in the worlds.
        did: What a choice did, with `{}` for the value and its unit.
        at_none: What it did where the figure is 0; empty for no words of its own.
        unit: Follows a value.
        form: Formats a value.
    """

    column: str
    did: str
    at_none: str = ""
    unit: str = ""
    form: Callable[[float], str] = whole

    def text(self, value: float) -> str:
        """A value with its unit."""
        return f"{self.form(value)}{self.unit}"


class Choice(Struct, frozen=True, kw_only=True):
    """One choice, with the values of each figure in the same worlds and order as the others'.

    Args:
        name: What it is called; of several with equal values all names.
        values: By column.
        short: The first of its names; by default its name.
    """

    name: str
    values: dict[str, tuple[float, ...]]
    short: str = ""

    @property
    def short_name(self) -> str:
        """The first name, for comparisons of others with it."""
        return self.short or self.name

    def middle(self, figure: Figure) -> float:
        """The median over the worlds."""
        return median(self.values[figure.column])

    def is_better_than(self, other: "Choice", column: str) -> bool:
        """Whether it is better in every world."""
        pairs = zip(self.values[column], other.values[column], strict=True)
        return all(own < their for own, their in pairs)


def figures_of(what: str, columns: Sequence[str]) -> tuple[Figure, ...]:
    """Return the figures of these columns, of a group that shares partitions or tasks.

    Args:
        what: What it shares, in the plural.
        columns: The weightier ones first.
    """
    known = {
        "moved": (f"moved {{}} {what}", f"moved no {what}"),
        "unowned_s": (f"left {what} unowned for {{}}", f"left no {what} unowned"),
        "stopped_s": ("stopped everybody for {}", "stopped nobody"),
        "interrupted": (f"interrupted {what} {{}} times", f"interrupted no {what}"),
        "duplicates": ("processed {} records again", "processed no record again"),
    }
    return tuple(
        Figure(column=column, did=did, at_none=at_none, unit=" s", form=terse_seconds)
        if column.endswith("_s")
        else Figure(column=column, did=did, at_none=at_none)
        for column in columns
        for did, at_none in (known[column],)
    )


def choices_of(named: Sequence[tuple[str, Row]], columns: Sequence[str]) -> list[Choice]:
    """Return the choices of named rows whose `worlds` have a seed and these columns.

    Returns:
        None at all where the rows did not meet the same worlds, or a figure is not known: there is
        nothing that a comparison would rest on.
    """
    worlds = [sorted(row["worlds"], key=lambda world: world["seed"] or 0) for _, row in named]
    seeds = [[world["seed"] for world in own] for own in worlds]
    told = [world[column] for own in worlds for world in own for column in columns]
    is_paired = all(own == seeds[0] for own in seeds) and len({*seeds[0]}) == len(seeds[0])
    if None in told or not is_paired or None in seeds[0]:
        return []
    return [
        Choice(
            name=name,
            values={column: tuple(world[column] for world in own) for column in columns},
        )
        for (name, _), own in zip(named, worlds, strict=True)
    ]


def is_best(choice: Choice, choices: Sequence[Choice], column: str) -> bool:
    """Whether a choice is better than some other in a figure, and none is better than it."""
    is_better = any(choice.is_better_than(other, column) for other in choices)
    return is_better and not is_beaten(choice, choices, column)


def is_beaten(choice: Choice, choices: Sequence[Choice], column: str) -> bool:
    """Whether some other choice is better in a figure."""
    return any(other.is_better_than(choice, column) for other in choices)


def drawn_worlds(choices: Sequence[Choice]) -> tuple[str, str]:
    """Return how the worlds of choices are called, and what they prove."""
    count = max((len(own) for each in choices for own in each.values.values()), default=0)
    if count == 1:
        return "this world", "One world tells nothing of the spread: draw more (--seeds)."
    return (
        f"these {count} worlds",
        f"Differences hold in each of the {count} drawn worlds; figures are their medians.",
    )


def verdict(
    choices: Sequence[Choice], figures: Sequence[Figure], where: str = "", proof: str = ""
) -> str:
    """Say who wins, with the margin; what the winner is worse in; or why nobody does.

    Args:
        choices: In reading order: the first stands for what is usual, and margins are told to it.
        figures: Weightier ones first.
        where: Where they were compared, as `these 3 worlds`; by default the drawn worlds.
        proof: Closing sentence: what a win rests on.

    Returns:
        An empty text without choices.
    """
    if not choices:
        return ""
    if not where:
        where, proof = drawn_worlds(choices)
    if len(choices) == 1:
        return f"Only {choices[0].name} was run: there is nothing to compare it with."
    apart = _distinct(choices)
    if len(apart) == 1:
        names = _listed([each.name for each in choices])
        return f"No difference in {where} between {names}: they {_predicates(apart, figures)}."
    found = max(apart, key=lambda each: _score(each, apart, figures))
    good = [each for each in figures if is_best(found, apart, each.column)]
    if not good:
        names = _listed([each.name for each in apart])
        return (
            f"No winner between {names}: the spread of {where} covers every difference. They "
            f"{_predicates(apart, figures)}."
        )
    bad = [
        figure
        for figure in figures
        for better in ([each for each in apart if each.is_better_than(found, figure.column)],)
        if any(
            figure.text(each.middle(figure)) != figure.text(found.middle(figure)) for each in better
        )
    ]
    rest = [
        each.at_none
        for each in figures
        if each.at_none and each not in (*good, *bad) and not any(found.values[each.column])
    ]
    told = _joined([*(_clause(found, apart, each) for each in good), *rest])
    if bad:
        worse = _joined([_clause(found, apart, each) for each in bad])
        return f"Trade-off: {found.name} {told}, but {worse}. {proof}".rstrip()
    equal = [each.name for each in apart if all(is_best(each, apart, one.column) for one in good)]
    if len(equal) > 1:
        tied = f"No winner between {_listed(equal)}: the spread of {where} covers the difference."
        return f"{tied} {found.name} {told}. {proof}".rstrip()
    return f"{found.name} {told}. {proof}".rstrip()


def _distinct(choices: Sequence[Choice]) -> list[Choice]:
    """Return choices with equal values as one."""
    names: dict[tuple[object, ...], list[Choice]] = {}
    for each in choices:
        names.setdefault(tuple(each.values.items()), []).append(each)
    return [
        Choice(
            name=_listed([each.name for each in same]), values=same[0].values, short=same[0].name
        )
        for same in names.values()
    ]


def _score(each: Choice, choices: Sequence[Choice], figures: Sequence[Figure]) -> tuple[int, ...]:
    """Count the figures it is best in, less those in which it is beaten; the weightiest decide."""
    best = [is_best(each, choices, figure.column) for figure in figures]
    beaten = sum(is_beaten(each, choices, figure.column) for figure in figures)
    led = [-sum(other.middle(f) < each.middle(f) for other in choices) for f in figures]
    return (sum(best) - beaten, *best, *led)


def _clause(found: Choice, choices: Sequence[Choice], figure: Figure) -> str:
    """Say one figure of a choice, and of its rivals: the usual one, the nearest, equal ones."""
    beaten = [each for each in choices if found.is_better_than(each, figure.column)]
    better = [each for each in choices if each.is_better_than(found, figure.column)]
    rivals = better or beaten
    nearest = min(rivals, key=lambda each: each.middle(figure))
    usual = nearest if better else rivals[0]
    told = [f"{usual.short_name} {figure.text(usual.middle(figure))}"]
    if nearest.middle(figure) * _NEAR < usual.middle(figure):
        told[0] += f", next {nearest.short_name} {figure.text(nearest.middle(figure))}"
    if not better:
        told += _equals(found, [each for each in choices if each not in (found, *beaten)], figure)
    did = _predicates([found], [figure])
    return f"{did} ({'; '.join(told)})"


def _equals(found: Choice, others: Sequence[Choice], figure: Figure) -> list[str]:
    """Name the choices that are neither better nor worse by one figure."""
    own = found.values[figure.column]
    same = [each.name for each in others if each.values[figure.column] == own]
    near = [
        f"{each.short_name} {figure.text(each.middle(figure))}"
        for each in others
        if each.values[figure.column] != own
    ]
    told = [f"like {_listed(same)}"] if same else []
    return [*told, f"within the spread: {_listed(near)}"] if near else told


def _predicates(choices: Sequence[Choice], figures: Sequence[Figure]) -> str:
    """Say each figure of these choices, from the least to the most of their medians."""
    told = []
    for figure in figures:
        if not any(value for each in choices for value in each.values[figure.column]):
            told += [figure.at_none] if figure.at_none else []
            continue
        middles = [each.middle(figure) for each in choices]
        texts = dict.fromkeys((figure.form(min(middles)), figure.form(max(middles))))
        told.append(figure.did.format(f"{' to '.join(texts)}{figure.unit}"))
    return _joined(told)


def _listed(names: Sequence[str]) -> str:
    """Name the first few."""
    more = len(names) - _NAMED
    return _joined([*names[:_NAMED], f"{more} more"] if more > 1 else names)


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
