"""What moved between generations, and how balanced they are."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the columns extra")

from coordinator_sim.trace.schema import GenerationRow
from tests.reports.groups import generation as dense
from tests.reports.groups import group, rows

Test = Callable[..., None]
STORIES: dict[str, tuple[Sequence[GenerationRow], Sequence[str]]] = {}
"""Generations and resource names by the name of a test."""


def generation(number: int, members: str, owners: Sequence[int], **columns: Any) -> GenerationRow:  # noqa: ANN401
    """A dense row of a sticky group; members are letters."""
    return dense(number, members, owners, **{"protocol_name": "sticky", **columns})


def story(*generations: GenerationRow, names: Sequence[str] = ()) -> Callable[[Test], Test]:
    """Give a test the comparison of these generations as `compared`."""

    def remembered(test: Test) -> Test:
        STORIES[test.__name__] = (generations, names)
        return test

    return remembered


@pytest.fixture
def compared(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """The rows of the moves table for a test's story, by generation and kind."""
    generations, names = STORIES[request.node.name]
    found = rows(group(dense=generations, names=names), "moves")
    return sorted(found, key=lambda row: (row["generation"], row["kind"]))


def pick(row: dict[str, Any], *names: str) -> tuple[Any, ...]:
    """Some columns of a row."""
    return tuple(row[name] for name in names)


@story(generation(1, "ab", [0, 1, 0, 1, 0, 1, 0]), generation(2, "abc", [0, 1, 0, 1, 0, 2, 2]))
def test_third_member_joins_a_sticky_group(compared: list[dict[str, Any]]) -> None:
    """Seven partitions, two members and a third: two moves, as few as balance allows."""
    (row,) = compared
    assert pick(row, "kept", "moved", "orphaned", "voluntary", "added", "dropped") == (
        5,
        2,
        0,
        2,
        0,
        0,
    )
    assert pick(row, "lb_sizes", "lb_balanced", "excess_moves") == (2, 2, 0)
    assert row["stickiness"] == pytest.approx(5 / 7)
    assert row["relative_stickiness"] == pytest.approx(1.0)


@story(
    generation(1, "ab", [0, 1, 0, 1, 0, 1, 0], protocol_name="cooperative-sticky"),
    generation(2, "abc", [0, 1, 0, 1, 0, -1, -1], protocol_name="cooperative-sticky"),
    generation(3, "abc", [0, 1, 0, 1, 0, 2, 2], protocol_name="cooperative-sticky"),
)
def test_a_cooperative_hand_over_is_compared_end_to_end(compared: list[dict[str, Any]]) -> None:
    """Two partitions are taken away in one generation and given out in the next: two moves."""
    (row,) = compared
    assert pick(row, "generation", "previous_generation", "chain_generations") == (3, 1, 2)
    assert pick(row, "kept", "moved", "added", "dropped") == (5, 2, 0, 0)


@story(generation(1, "abc", [0, 1, 1, 2, 2]), generation(2, "bc", [0, 0, 0, 1, 1]))
def test_partitions_of_a_lost_member_are_orphaned(compared: list[dict[str, Any]]) -> None:
    """What a member that left had must move; indexes into other member lists do not mislead."""
    (row,) = compared
    assert pick(row, "kept", "moved", "orphaned", "voluntary") == (4, 1, 1, 0)
    assert pick(row, "held_by_survivors", "stickiness", "lb_balanced") == (4, 1.0, 1)


@story(generation(1, "ab", [0, 0, 1]), generation(2, "ab", [0, -1, 1, 1]))
def test_new_and_vanished_partitions_are_no_moves(compared: list[dict[str, Any]]) -> None:
    """A partition that appears is added, one that nobody gets is dropped."""
    (row,) = compared
    assert pick(row, "kept", "moved", "added", "dropped") == (2, 0, 1, 1)
    assert pick(row, "held_by_survivors", "stickiness") == (2, 1.0)


@story(generation(1, "ab", [0, 0, 0, 0, 0, 1]), generation(2, "ab", [0, 0, 0, 0, 1, 1]))
def test_an_unbalanced_result_is_judged_by_its_own_sizes(compared: list[dict[str, Any]]) -> None:
    """Fewer moves than balance needs leave no negative excess."""
    (row,) = compared
    assert pick(row, "moved", "lb_sizes", "lb_balanced", "excess_moves") == (1, 1, 2, 0)


@story(generation(1, "ab", [0, 1]), generation(2, "ab", [1, 1], subscriptions_equal=False))
def test_unequal_subscriptions_have_no_balanced_bound(compared: list[dict[str, Any]]) -> None:
    """The bound of equal subscriptions is never used for others."""
    (row,) = compared
    assert pick(row, "lb_balanced", "excess_moves", "ideal_stickiness") == (None, None, None)
    assert row["lb_sizes"] == 1


@story(
    generation(1, "a", [0, 0, 0, 0], protocol_type="connect", protocol_name="default"),
    generation(2, "ab", [0, 1, 0, 1], protocol_type="connect", protocol_name="default"),
    names=["c:x", "c:y", "t:x-0", "t:y-0"],
)
def test_connectors_and_tasks_are_compared_apart(compared: list[dict[str, Any]]) -> None:
    """Connect balances connectors and tasks each for itself, and so are the bounds."""
    assert [pick(row, "kind", "resource_count", "moved", "lb_balanced") for row in compared] == [
        ("connector", 2, 1, 1),
        ("task", 2, 1, 1),
    ]


@story(
    generation(1, "ab", [0, 1], protocol_type="connect", protocol_name="sessioned"),
    generation(2, "a", [0, -1], delay_ms=5_000, protocol_type="connect", protocol_name="sessioned"),
    generation(3, "a", [0, -1], delay_ms=3_000, protocol_type="connect", protocol_name="sessioned"),
    generation(4, "a", [0, 0], protocol_type="connect", protocol_name="sessioned"),
    names=["t:x-0", "t:x-1"],
)
def test_a_scheduled_delay_keeps_a_chain_open(compared: list[dict[str, Any]]) -> None:
    """While Connect waits for a lost worker, its tasks are on their way, not dropped."""
    tasks = [row for row in compared if row["kind"] == "task"]
    assert [
        pick(row, "previous_generation", "generation", "moved", "orphaned") for row in tasks
    ] == [(1, 4, 1, 1)]


@story(
    generation(1, "a", [0, 0]),
    generation(2, "", [-1, -1], protocol_name=None, subscriptions_equal=None),
    generation(3, "b", [0, 0]),
)
def test_an_emptied_group_ends_a_chain(compared: list[dict[str, Any]]) -> None:
    """Everything is dropped when a group empties, and added when members return."""
    assert [pick(row, "moved", "dropped", "added", "stickiness") for row in compared] == [
        (0, 2, 0, 1.0),
        (0, 0, 2, 1.0),
    ]


@story(generation(1, "a", [0]), generation(1, "b", [0], incarnation=1))
def test_incarnations_are_not_compared(compared: list[dict[str, Any]]) -> None:
    """A group that died and came back starts afresh."""
    assert compared == []


@story(
    generation(1, "a", [0, 0], protocol_name=None), generation(2, "a", [0, -1], protocol_name=None)
)
def test_an_unnamed_protocol_is_eager(compared: list[dict[str, Any]]) -> None:
    """A generation without a protocol's name still ends its chain."""
    assert [pick(row, "chain_generations", "dropped") for row in compared] == [(1, 1)]


def balances(*generations: GenerationRow, end: float) -> list[dict[str, Any]]:
    """The rows of the table of imbalance."""
    return rows(group(dense=generations, end=end), "imbalance")


def test_imbalance_of_known_shares() -> None:
    """Shares 0, 2 and 4: spread 4, Gini 4/9, weighed by how long they lasted."""
    found = balances(
        generation(1, "abc", [1, 1, 2, 2, 2, 2]), generation(3, "abc", [0, 1, 2]), end=10
    )
    assert [pick(row, "spread", "lasted_us") for row in found] == [(4, 2_000_000), (0, 7_000_000)]
    assert found[0]["gini"] == pytest.approx(4 / 9)
    assert found[0]["cv"] == pytest.approx((8 / 3) ** 0.5 / 2)
    assert pick(found[1], "gini", "cv") == (pytest.approx(0.0), 0.0)


def test_imbalance_of_nothing_owned_is_zero() -> None:
    """Members that own nothing are balanced."""
    (row,) = balances(generation(1, "ab", [-1]), end=2)
    assert pick(row, "spread", "cv", "gini") == (0, 0.0, 0.0)
