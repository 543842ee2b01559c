"""The sentence that a comparison begins with: who wins, by how much, and what it costs elsewhere.

One choice is better than another in a figure where it is better in every world that both met, and
their medians read differently; where the worlds disagree their spread covers the difference.
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
        did: What a choice did, with `{}` for the value and its unit; empty for marks without words.
        at_none: What it did where the figure is 0; empty for no words of its own.
        unit: Follows a value.
        form: Formats a value.
    """

    column: str
    did: str = ""
    at_none: str = ""
    unit: str = ""
    form: Callable[[float], str] = whole

    def text(self, value: float) -> str:
        """A value with its unit."""
        return f"{self.form(value)}{self.unit}"


class Choice(Struct, frozen=True, kw_only=True):
    """A choice and its figures in the drawn worlds.

    Args:
        name: What it is called; of several with equal values all names.
        values: By column, the values in each world; all choices have the same order of worlds.
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

    def text(self, figure: Figure) -> str:
        """The median as it is printed."""
        return figure.text(self.middle(figure))

    def is_better_than(self, other: "Choice", figure: Figure) -> bool:
        """Whether it is better in every world, and that is seen."""
        pairs = zip(self.values[figure.column], other.values[figure.column], strict=True)
        is_less = all(own < their for own, their in pairs)
        return is_less and self.text(figure) != other.text(figure)


def figure_of(column: str, did: str = "", at_none: str = "") -> Figure:
    """Return the figure of a column: seconds where its name ends in `_s`, otherwise a count."""
    if column.endswith("_s"):
        return Figure(column=column, did=did, at_none=at_none, unit=" s", form=terse_seconds)
    return Figure(column=column, did=did, at_none=at_none)


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
    return tuple(figure_of(column, *known[column]) for column in columns)


def choices_of(named: Sequence[tuple[str, Row]], columns: Sequence[str]) -> list[Choice]:
    """Return the choices of named rows whose `worlds` have a seed and these columns.

    Returns:
        None at all where the rows did not meet the same worlds, or a figure is not known: there is
        nothing that a comparison would rest on.
    """
    worlds = [sorted(row["worlds"], key=lambda world: world["seed"] or 0) for _, row in named]
    seeds = [[world["seed"] for world in own] for own in worlds]
    told = [world[column] for own in worlds for world in own for column in columns]
    is_paired = all(own == seeds[0] and len({*own}) == len(own) for own in seeds)
    if None in told or not is_paired or any(None in own for own in seeds):
        return []
    return [
        Choice(
            name=name,
            values={column: tuple(world[column] for world in own) for column in columns},
        )
        for (name, _), own in zip(named, worlds, strict=True)
    ]


def is_best(choice: Choice, choices: Sequence[Choice], figure: Figure) -> bool:
    """Whether a choice is better than some other in a figure, and none is better than it."""
    is_better = any(choice.is_better_than(other, figure) for other in choices)
    return is_better and not is_beaten(choice, choices, figure)


def is_beaten(choice: Choice, choices: Sequence[Choice], figure: Figure) -> bool:
    """Whether some other choice is better in a figure."""
    return any(other.is_better_than(choice, figure) for other in choices)


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
    good = [each for each in figures if is_best(found, apart, each)]
    if not good:
        tied = _tie(apart, figures, f"the spread of {where} covers every difference")
        return f"{tied} They {_predicates(apart, figures)}."
    bad = [each for each in figures if is_beaten(found, apart, each)]
    rest = [
        each.at_none
        for each in figures
        if each.at_none and each not in (*good, *bad) and not any(found.values[each.column])
    ]
    told = _joined([*(_clause(found, apart, each) for each in good), *rest])
    if bad:
        worse = _joined([_clause(found, apart, each) for each in bad])
        return f"Trade-off: {found.name} {told}, but {worse}. {proof}".rstrip()
    equal = [each for each in apart if all(is_best(each, apart, one) for one in good)]
    if len(equal) > 1:
        tied = _tie(equal, good, f"the spread of {where} covers the difference")
        return f"{tied} {found.name} {told}. {proof}".rstrip()
    return f"{found.name} {told}. {proof}".rstrip()


def _tie(choices: Sequence[Choice], figures: Sequence[Figure], spread: str) -> str:
    """Say why none of these choices wins: differences that are not seen, or the spread."""
    is_seen = any(each.text(one) != choices[0].text(one) for each in choices for one in figures)
    names = _listed([each.name for each in choices])
    return f"No winner between {names}: {spread if is_seen else 'their figures read the same'}."


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
    """Count the figures it is best in, less those in which it is beaten; the weightiest decide.

    Whoever is best in none stands behind all who are best in some.
    """
    best = [is_best(each, choices, figure) for figure in figures]
    beaten = sum(is_beaten(each, choices, figure) for figure in figures)
    led = [-sum(other.middle(f) < each.middle(f) for other in choices) for f in figures]
    return (any(best), sum(best) - beaten, *best, *led)


def _clause(found: Choice, choices: Sequence[Choice], figure: Figure) -> str:
    """Say one figure of a choice, and of its rivals: the usual one, the nearest, equal ones."""
    beaten = [each for each in choices if found.is_better_than(each, figure)]
    better = [each for each in choices if each.is_better_than(found, figure)]
    rivals = better or beaten
    nearest = min(rivals, key=lambda each: each.middle(figure))
    usual = nearest if better else rivals[0]
    told = [f"{usual.short_name} {usual.text(figure)}"]
    if nearest.middle(figure) * _NEAR < usual.middle(figure):
        told[0] += f", next {nearest.short_name} {nearest.text(figure)}"
    if not better:
        told += _equals(found, [each for each in choices if each not in (found, *beaten)], figure)
    did = _predicates([found], [figure])
    return f"{did} ({'; '.join(told)})"


def _equals(found: Choice, others: Sequence[Choice], figure: Figure) -> list[str]:
    """Name the choices that are neither better nor worse by one figure."""
    own = found.text(figure)
    same = [each.name for each in others if each.text(figure) == own]
    near = [f"{each.short_name} {each.text(figure)}" for each in others if each.text(figure) != own]
    told = [f"like {_listed(same)}"] if same else []
    return [*told, f"within the spread: {_listed(near)}"] if near else told


def _predicates(choices: Sequence[Choice], figures: Sequence[Figure]) -> str:
    """Say each figure of these choices, from the least to the most of their medians."""
    told = []
    some = [f for f in figures if any(value for each in choices for value in each.values[f.column])]
    for figure in [each for each in figures if each.at_none or each in some] or figures:
        if figure not in some and figure.at_none:
            told.append(figure.at_none)
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
