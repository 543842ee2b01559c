"""The sentence that a comparison begins with."""

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim_reports.comparison import best_cells
from coordinator_sim_reports.formats import whole
from coordinator_sim_reports.winners import (
    Choice,
    Figure,
    choices_of,
    figure_of,
    figures_of,
    is_best,
    verdict,
)

COLUMNS = ("moved", "unowned_s", "stopped_s")
FIGURES = figures_of("partitions", COLUMNS)
RANGE = ((219, 172, 226), (689, 622, 752), (1.71, 0.35, 1.96))


def choice(name: str, *values: tuple[float, ...]) -> Choice:
    """A choice with what it moved, left unowned and stopped in each world."""
    return Choice(name=name, values=dict(zip(COLUMNS, values, strict=True)))


def test_winner_is_named_with_its_margin() -> None:
    """To the first choice, and to the nearest where that is much nearer."""
    told = [
        choice("range", *RANGE),
        choice("sticky", (91, 64, 111), (688, 613, 740), (1.71, 0.35, 1.96)),
        choice("cooperative-sticky", (75, 60, 84), (386, 301, 451), (0, 0, 0)),
    ]

    assert verdict(told, FIGURES) == (
        "cooperative-sticky moved 75 partitions (range 219, next sticky 91), left partitions "
        "unowned for 386 s (range 689 s) and stopped nobody (range 1.71 s). Differences hold in "
        "each of the 3 drawn worlds; figures are their medians."
    )


def test_rival_that_is_better_in_a_world_is_within_the_spread() -> None:
    """The winner of all figures together is no winner over it in this one."""
    told = [
        choice("range", *RANGE),
        choice("sticky", (91, 50, 111), (688, 613, 740), (1.71, 0.35, 1.96)),
        choice("cooperative-sticky", (75, 60, 84), (386, 301, 451), (0, 0, 0)),
    ]

    assert "moved 75 partitions (range 219; within the spread: sticky 91)" in verdict(told, FIGURES)


def test_what_the_best_in_one_figure_loses_in_another_is_a_trade_off() -> None:
    """Equal choices are one; nobody is the winner without a but."""
    incremental = ((52, 40, 53), (1669, 1300, 2323), (0, 0, 1.06))
    told = [
        choice("eager", (162, 162, 180), (1008, 920, 1185), (0.78, 0.39, 0.96)),
        choice("compatible", *incremental),
        choice("sessioned", *incremental),
    ]

    assert verdict(told, FIGURES).startswith(
        "Trade-off: compatible and sessioned moved 52 partitions (eager 162), but left partitions "
        "unowned for 1,669 s (eager 1,008 s). "
    )


def test_a_loss_that_no_figure_shows_is_no_trade_off() -> None:
    """A microsecond of standstill reads as none."""
    told = [
        choice("a", (9, 9), (9, 9), (0.001, 0.001)),
        choice("b", (1, 1), (1, 1), (0.002, 0.002)),
    ]

    assert verdict(told, FIGURES).startswith("b moved 1 partitions (a 9)")


def test_a_lead_that_no_figure_shows_is_no_win() -> None:
    """Neither in the sentence, whatever a third one does, nor in the marks of a table."""
    alike = [
        choice("range", (10, 10), (386.3, 386.4), (1, 1)),
        choice("sticky", (10, 10), (386.2, 386.1), (1, 1)),
    ]
    tied = "No winner between range and sticky: their figures read the same. "

    assert verdict(alike, FIGURES).startswith(f"{tied}They moved 10 partitions, left partitions un")
    third = choice("roundrobin", (10, 10), (700, 700), (1, 1))
    assert verdict([third, *alike], FIGURES).startswith(
        f"{tied}sticky left partitions unowned for 386 s (roundrobin 700 s; like range)."
    )
    assert not any(is_best(each, alike, figure_of("unowned_s")) for each in alike)

    def row(assignor: str, unowned_s: float) -> dict[str, object]:
        told = dict.fromkeys(("moved", "stopped_s", "excess_moves", "interrupted"), 1)
        worlds = [told | {"seed": seed, "unowned_s": unowned_s} for seed in (0, 1)]
        names = {"protocol_type": "consumer", "scenario": "deploy", "assignor": assignor}
        return names | {"worlds": worlds}

    assert not best_cells([row("range", 386.4), row("sticky", 386.1)])
    assert best_cells([row("range", 387), row("sticky", 386)])


def test_whoever_is_best_in_something_goes_before_who_never_differs() -> None:
    """Each wins a figure and loses two; the fourth is within the spread of all of them."""
    told = [
        choice("a", (1, 1), (9, 9), (9, 9)),
        choice("c", (9, 9), (1, 1), (9, 9)),
        choice("d", (9, 9), (9, 9), (1, 1)),
        choice("b", (0, 20), (0, 20), (0, 20)),
    ]

    assert verdict(told, FIGURES).startswith(
        "Trade-off: a moved 1 partitions (c 9; within the spread: b 10), but left partitions "
        "unowned for 9.00 s (c 1.00 s) and stopped everybody for 9.00 s (d 1.00 s). "
    )


def test_a_figure_without_words_for_none_is_told_as_nought() -> None:
    """Where all of them are, and where the best one is."""
    figures = tuple(Figure(column=name, did=f"{name} {{}} times") for name in COLUMNS[:2])
    none, one = (choice(name, (0,), (value,), (0,)) for name, value in (("a", 0), ("b", 1)))

    assert verdict([one, none], figures).startswith("a unowned_s 0 times (b 1). ")
    assert verdict([none, none], figures).endswith("they moved 0 times and unowned_s 0 times.")


def test_equal_choices_are_told_so() -> None:
    """No percentage of a difference that there is not."""
    told = [choice(f"session.timeout.ms={ms}", *RANGE) for ms in (6_000, 45_000)]

    assert verdict(told, FIGURES) == (
        "No difference in these 3 worlds between session.timeout.ms=6000 and "
        "session.timeout.ms=45000: they moved 219 partitions, left partitions unowned for 689 s "
        "and stopped everybody for 1.71 s."
    )


def test_worlds_that_disagree_have_no_winner() -> None:
    """The better median does not decide."""
    told = [
        choice("a", (10, 20, 30), (1, 2, 3), (0, 0, 0)),
        choice("b", (11, 12, 31), (2, 1, 4), (0, 0, 0)),
    ]

    assert verdict(told, FIGURES) == (
        "No winner between a and b: the spread of these 3 worlds covers every difference. They "
        "moved 12 to 20 partitions, left partitions unowned for 2.00 s and stopped nobody."
    )


def test_two_that_beat_a_third_do_not_beat_each_other() -> None:
    """The sentence says that there is no winner between them before it names the margin."""
    told = [
        choice("range", *RANGE),
        choice("a", (75, 60, 84), (386, 301, 451), (0, 0, 0)),
        choice("b", (70, 61, 90), (400, 300, 440), (0, 0, 0)),
    ]

    assert verdict(told, FIGURES).startswith(
        "No winner between a and b: the spread of these 3 worlds covers the difference. "
    )


def test_one_world_proves_no_spread() -> None:
    """The margin is told, and what it does not rest on."""
    told = [choice("range", (9,), (5,), (0,)), choice("sticky", (3,), (4,), (0,))]

    assert verdict(told, FIGURES) == (
        "sticky moved 3 partitions (range 9), left partitions unowned for 4.00 s (range 5.00 s) "
        "and stopped nobody. One world tells nothing of the spread: draw more (--seeds)."
    )


def test_one_choice_is_compared_with_nothing() -> None:
    """Nor are none."""
    assert "nothing to compare" in verdict([choice("range", *RANGE)], FIGURES)
    assert verdict([], FIGURES) == ""


@pytest.mark.parametrize("seeds", [(0, 2), (0, 0), (None, None), (0, 1, 2)])
def test_rows_of_different_worlds_are_not_compared(seeds: tuple[int | None, ...]) -> None:
    """Each difference is one of the same world; a world without a seed is any."""

    def row(seeds: tuple[int | None, ...]) -> dict[str, object]:
        return {"worlds": [{"seed": seed, "moved": 1} for seed in seeds]}

    assert choices_of([], ("moved",)) == []
    assert choices_of([("range", row((0, 1))), ("sticky", row((1, 0)))], ("moved",))
    assert not choices_of([("range", row((0, 1))), ("sticky", row(seeds))], ("moved",))


@pytest.mark.property
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=2, max_size=4))
def test_whoever_is_named_best_loses_to_nobody(values: list[tuple[int, ...]]) -> None:
    """Whatever the order of the choices; and where nobody is best, nobody beats anybody."""
    told = [Choice(name=f"c{number}", values={"moved": own}) for number, own in enumerate(values)]
    loses = {
        own: any(
            all(a < b for a, b in zip(other, own, strict=True))
            and whole(median(other)) != whole(median(own))
            for other in values
        )
        for own in values
    }
    best = [each.name for each in told if is_best(each, told, figure_of("moved"))]
    assert not [each for each in told if each.name in best and loses[each.values["moved"]]]
    assert best or not any(loses.values())
    sentence = verdict(told, figures_of("partitions", ("moved",)))
    assert sentence.startswith(("No ", *best))
