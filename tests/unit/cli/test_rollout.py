"""`rollout`: what the command line asks for."""

import pytest

from coordinator_sim.cli.rollout import plans_of
from coordinator_sim.errors import ConfigError


def test_usual_plans_go_from_one_by_one_to_all_at_once() -> None:
    """A pause between batches; none where there is one batch."""
    plans = plans_of("", "", "listed", 37)
    assert [(plan.batch, plan.pause_ms) for plan in plans] == [
        (1, 10_000),
        (1, 60_000),
        (3, 10_000),
        (3, 60_000),
        (19, 10_000),
        (19, 60_000),
        (37, 0),
    ]
    assert [plan.batch for plan in plans_of("", "", "listed", 1)] == [1]


def test_plans_are_every_combination_of_what_is_asked_for() -> None:
    """Batches, pauses and orders."""
    plans = plans_of("2,all", "1m,90s", "listed,reversed", 4)
    assert [plan.name for plan in plans] == [
        "batch-2-pause-60s",
        "batch-2-pause-90s",
        "batch-4-pause-0s",
        "batch-2-pause-60s-reversed",
        "batch-2-pause-90s-reversed",
        "batch-4-pause-0s-reversed",
    ]


@pytest.mark.parametrize(
    ("batch", "pause", "order", "problem"),
    [
        ("5", "", "listed", "--batch '5': wants a number from 1 to 4"),
        ("0", "", "listed", "--batch '0': wants a number"),
        ("half", "", "listed", "--batch 'half': wants a number"),
        ("", "soon", "listed", "--pause 'soon': wants a number with ms"),
        ("", "", "random", "--order 'random': must be of listed, reversed"),
    ],
)
def test_what_is_no_plan_is_one_line(batch: str, pause: str, order: str, problem: str) -> None:
    """It names the option, the value and what would do."""
    with pytest.raises(ConfigError, match=problem):
        plans_of(batch, pause, order, 4)
