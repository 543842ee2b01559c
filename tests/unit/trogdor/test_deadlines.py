"""Instants of things: the earliest first, replaced, forgotten, and never more than there are."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.trogdor.deadlines import Deadlines

NAMES = st.integers(0, 5)
STEPS = st.lists(
    st.tuples(st.just("set"), NAMES, st.integers(0, 20))
    | st.tuples(st.just("discard"), NAMES, st.just(0))
    | st.tuples(st.just("pop"), st.just(0), st.integers(0, 20)),
    max_size=60,
)


@given(STEPS)
def test_deadlines_are_a_sorted_table(steps: list[tuple[str, int, int]]) -> None:
    """Like a dict of instants that is sorted whenever it is asked."""
    deadlines, table, count = Deadlines[int](), dict[int, tuple[int, int]](), 0
    for step, name, at_ms in steps:
        if step == "set":
            count += 1
            deadlines.set(name, at_ms)
            table[name] = (at_ms, count)
        elif step == "discard":
            deadlines.discard(name)
            table.pop(name, None)
        else:
            due = min(
                [each for each in table if table[each][0] <= at_ms], key=table.get, default=None
            )
            assert deadlines.pop_due(at_ms) == due
            if due is not None:
                del table[due]
        assert deadlines.next_ms() == min((each for each, _ in table.values()), default=None)


def test_what_was_forgotten_takes_no_memory() -> None:
    """A hundred thousand instants that were set and discarded, far ahead of one that stays."""
    deadlines = Deadlines[int]()
    deadlines.set(-1, 5)
    tracemalloc.start()
    for name in range(100_000):
        deadlines.set(name, 1_000 + name)
        deadlines.discard(name)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    assert grown < 50_000
    assert deadlines.pop_due(10_000_000) == -1
    assert deadlines.pop_due(10_000_000) is None
