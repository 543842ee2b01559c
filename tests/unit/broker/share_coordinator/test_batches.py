"""State batches that overlap: what is kept of each record, in both of Kafka's ways."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.broker.share_coordinator.batches import combined
from coordinator_sim.messages.share_state_records import StateBatch

Plain = tuple[int, int, int, int]

PLAIN = st.tuples(
    st.integers(0, 30), st.integers(0, 9), st.sampled_from((0, 2, 4)), st.integers(1, 3)
).map(lambda each: (each[0], each[0] + each[1], each[2], each[3]))


def combine(
    so_far: list[Plain], new: list[Plain], start_offset: int = -1, *, sweeps: bool
) -> list[Plain]:
    """Batches as tuples: first offset, last offset, state, count."""
    kept = combined(
        [StateBatch(*each) for each in so_far],
        [StateBatch(*each) for each in new],
        start_offset,
        sweeps=sweeps,
    )
    return [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in kept
    ]


@pytest.mark.parametrize("sweeps", [True, False])
@pytest.mark.parametrize(
    ("so_far", "new", "expected"),
    [
        ([], [], []),
        ([(0, 9, 0, 1)], [(3, 5, 2, 1)], [(0, 2, 0, 1), (3, 5, 2, 1), (6, 9, 0, 1)]),
        ([(0, 9, 2, 1)], [(3, 5, 0, 1)], [(0, 9, 2, 1)]),
        ([(0, 9, 2, 1)], [(3, 12, 0, 2)], [(0, 2, 2, 1), (3, 12, 0, 2)]),
        ([(0, 4, 2, 2)], [(0, 9, 0, 1)], [(0, 4, 2, 2), (5, 9, 0, 1)]),
        ([(0, 4, 0, 1)], [(0, 9, 0, 2)], [(0, 9, 0, 2)]),
        ([(0, 4, 0, 1)], [(0, 4, 2, 1)], [(0, 4, 2, 1)]),
        ([(0, 4, 2, 1)], [(5, 9, 2, 1)], [(0, 9, 2, 1)]),
        ([(0, 4, 2, 1)], [(6, 9, 2, 1)], [(0, 4, 2, 1), (6, 9, 2, 1)]),
    ],
)
def test_more_deliveries_win_then_the_higher_state(
    so_far: list[Plain], new: list[Plain], expected: list[Plain], *, sweeps: bool
) -> None:
    """Neighbours alike become one."""
    assert combine(so_far, new, sweeps=sweeps) == expected


@pytest.mark.parametrize("sweeps", [True, False])
def test_what_lies_before_the_start_is_dropped(*, sweeps: bool) -> None:
    """A batch that the start offset lies in begins there."""
    kept = combine([(0, 4, 2, 1), (5, 9, 0, 2)], [(10, 11, 0, 1)], 7, sweeps=sweeps)
    assert kept == [(7, 9, 0, 2), (10, 11, 0, 1)]
    assert combine([(0, 4, 2, 1)], [], 5, sweeps=sweeps) == []


@given(st.lists(PLAIN, max_size=8), st.lists(PLAIN, max_size=8), st.integers(-1, 35))
def test_every_record_keeps_its_strongest_batch(
    so_far: list[Plain], new: list[Plain], start_offset: int
) -> None:
    """Said record by record, both ways agree, and nothing overlaps."""
    strongest: dict[int, tuple[int, int]] = {}
    for first, last, state, count in so_far + new:
        for offset in range(max(first, start_offset), last + 1):
            strongest[offset] = max(strongest.get(offset, (0, 0)), (count, state))
    for sweeps in (True, False):
        kept = combine(so_far, new, start_offset, sweeps=sweeps)
        said = [
            (offset, (count, state))
            for first, last, state, count in kept
            for offset in range(first, last + 1)
        ]
        assert said == sorted(strongest.items())


@given(st.lists(PLAIN, min_size=2, max_size=9))
def test_a_sweep_leaves_no_neighbours_alike(batches: list[Plain]) -> None:
    """Since 4.4; in pairs some are left, as Kafka leaves them."""
    kept = combine(batches, [], sweeps=True)
    for before, after in pairwise(kept):
        assert before[1] + 1 < after[0] or before[2:] != after[2:]


def test_pairs_may_leave_neighbours_alike() -> None:
    """Up to 4.3 a batch that was done with is not looked at again."""
    batches = [(0, 2, 2, 1), (0, 1, 2, 2), (2, 3, 2, 2)]
    assert combine(batches, [], sweeps=False) == [(0, 1, 2, 2), (2, 3, 2, 2)]
    assert combine(batches, [], sweeps=True) == [(0, 3, 2, 2)]


@pytest.mark.parametrize("sweeps", [True, False])
def test_a_batch_that_ends_before_it_begins_is_dropped(*, sweeps: bool) -> None:
    """Kafka would go on for ever, or throw."""
    assert combine([(0, 10, 0, 1)], [(5, 3, 2, 2)], sweeps=sweeps) == [(0, 10, 0, 1)]
