"""What a rebalance is, how long it takes, and what it is when it never settles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.trace.events import Event, TimeKind, TraceEvent
from coordinator_sim.trace.history import group_lines, rebalances_of
from coordinator_sim.trace.rebalances import NumberedRebalance, RebalanceOutcome, settling_us

S = 1_000_000
NAMES = {
    "P": Event.PREPARE_REBALANCE,
    "J": Event.JOIN_COMPLETE,
    "S": Event.SYNC_LEADER,
    "E": Event.GROUP_EMPTY,
    "U": Event.GROUP_UNLOADED,
}


def told(*lines: tuple[str, float, int]) -> list[NumberedRebalance]:
    """The rebalances of lines, each a letter, its seconds and its generation."""
    events = [
        TraceEvent(
            event=NAMES[letter], ts_us=round(at * S), seq=seq, group_id="g", generation=generation
        )
        for seq, (letter, at, generation) in enumerate(lines)
    ]
    return rebalances_of("g", group_lines(events).get("g", []))


def rows(*lines: tuple[str, float, int]) -> list[tuple[str, int | None]]:
    """Outcome and length of each rebalance."""
    return [(each.rebalance.outcome.value, each.rebalance.length_us) for each in told(*lines)]


def test_length_is_from_the_prepare_to_stable_or_empty() -> None:
    """Stable is where the leader assigns, Empty where the join phase ends without members."""
    assert rows(("P", 1, 0), ("J", 3, 1), ("S", 4, 1), ("P", 9, 1), ("E", 11, 2)) == [
        ("STABLE", 3 * S),
        ("EMPTY", 2 * S),
    ]


def test_one_that_never_settles_lasts_until_the_next_begins() -> None:
    """A leader that never assigns costs the group all the time to the next rebalance."""
    assert rows(("P", 0, 0), ("J", 1, 1), ("P", 60, 1), ("J", 61, 2), ("S", 62, 2)) == [
        ("NO_SYNC", 60 * S),
        ("STABLE", 2 * S),
    ]
    assert rows(("P", 0, 0), ("P", 5, 0), ("J", 6, 1)) == [("SUPERSEDED", 5 * S), ("OPEN", None)]


def test_one_whose_coordinator_moves_lasts_until_then() -> None:
    """The coordinator that gives the group up is its end."""
    assert rows(("P", 0, 0), ("U", 7, 0)) == [("COORDINATOR_MOVED", 7 * S)]


def test_one_without_start_or_end_has_no_length() -> None:
    """A trace that begins or ends inside a rebalance tells that it was, not how long."""
    assert rows(("J", 3, 5), ("S", 4, 5), ("P", 9, 5), ("J", 12, 6)) == [
        ("STABLE", None),
        ("OPEN", None),
    ]


def test_one_before_missing_lines_is_open() -> None:
    """Generation 1 cannot be followed by 7: its end is among the lines that are missing."""
    assert rows(("P", 0, 0), ("J", 1, 1), ("P", 90, 7), ("J", 91, 8), ("S", 92, 8)) == [
        ("OPEN", None),
        ("STABLE", 2 * S),
    ]


def test_time_that_runs_backwards_gives_no_negative_length() -> None:
    """The order of lines holds; what is timed by such a line is marked."""
    first, second = told(("P", 1, 0), ("J", 3, 1), ("S", 2.9, 1), ("P", 9, 1), ("E", 9, 2))
    assert (first.rebalance.sync_us, first.rebalance.length_us) == (0, 2 * S)
    assert (first.rebalance.is_exact, second.rebalance.is_exact) == (False, True)
    late = first.rebalance.sync
    assert late is not None
    assert (late.ts_kind, late.ts_err_us) == (TimeKind.INFERRED, 100_000)


def test_disturbance_settles_with_its_last_rebalance() -> None:
    """Rebalances less than 30 s apart are one disturbance; one that goes on has not settled."""
    chain = told(("P", 0, 0), ("J", 1, 1), ("S", 2, 1), ("P", 20, 1), ("J", 21, 2), ("S", 22, 2))
    assert [each.chain for each in chain] == [1, 1]
    assert settling_us([each.rebalance for each in chain]) == 22 * S
    goes_on = told(("P", 0, 0), ("J", 1, 1), ("S", 2, 1), ("P", 20, 1))
    assert settling_us([each.rebalance for each in goes_on]) is None


LINES = st.lists(
    st.tuples(st.sampled_from("PPJSEU"), st.integers(0, 90), st.integers(0, 3)), max_size=25
)


@given(lines=LINES)
def test_lengths_of_any_lines_never_overlap(lines: list[tuple[str, int, int]]) -> None:
    """Whatever the lines and their times: no negative length, and no time counted twice."""
    found = told(*lines)
    prepares = sum(letter == "P" for letter, _, _ in lines)
    assert sum(each.rebalance.start is not None for each in found) == prepares
    end_us = None
    for each in found:
        rebalance = each.rebalance
        if rebalance.start is not None and rebalance.ended is not None:
            assert rebalance.length_us is not None
            assert rebalance.length_us >= 0
            assert end_us is None or rebalance.start.ts_us >= end_us
            end_us = rebalance.ended.ts_us
        if rebalance.outcome is RebalanceOutcome.OPEN:
            assert rebalance.length_us is None


@pytest.mark.parametrize("count", [1, 3])
def test_unload_of_a_partition_ends_the_rebalances_of_its_groups(count: int) -> None:
    """A broker that gives a partition up tells it once for all groups of it, in its own file."""
    own = [
        TraceEvent(
            event=Event.PREPARE_REBALANCE,
            ts_us=at * S,
            group_id=f"g{at}",
            generation=0,
            offsets_partition=9,
            source_ref="a",
        )
        for at in range(count)
    ]
    gone = [
        TraceEvent(event=Event.UNLOAD_DONE, ts_us=50 * S, offsets_partition=9, source_ref=file)
        for file in ("b", "a")
    ]
    groups = group_lines([*own, *gone])
    for at in range(count):
        (only,) = rebalances_of(f"g{at}", groups[f"g{at}"])
        assert only.rebalance.outcome is RebalanceOutcome.COORDINATOR_MOVED
        assert only.rebalance.length_us == (50 - at) * S


def test_lines_of_no_incarnation_do_not_cut_a_history() -> None:
    """A late heartbeat, and a broker that gives the partition of a group's second life up."""
    own = {"group_id": "g", "incarnation": 1, "offsets_partition": 9}
    lines = [
        TraceEvent(event=Event.PREPARE_REBALANCE, ts_us=1 * S, generation=4, **own),
        TraceEvent(event=Event.HEARTBEAT, ts_us=2 * S, group_id="g", incarnation=0),
        TraceEvent(event=Event.UNLOAD_DONE, ts_us=6 * S, offsets_partition=9),
    ]
    (only,) = rebalances_of("g", group_lines(lines)["g"])
    assert only.rebalance.outcome is RebalanceOutcome.COORDINATOR_MOVED
    assert only.rebalance.length_us == 5 * S
