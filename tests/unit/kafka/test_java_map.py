"""A live HashMap against the orders of maps that are filled at once, which Java was asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.kafka.orders.iteration_order import computed_hash_order, java_hash_order
from coordinator_sim.kafka.orders.java_map import JavaHashMap, sized_capacity
from coordinator_sim.kafka.partitioning import java_string_hash

keys = st.lists(st.text(max_size=3), max_size=60)


@pytest.mark.property
@given(keys)
def test_a_map_that_was_put_into(names: list[str]) -> None:
    """Keys stand in their buckets as they came; a repeated one stays where it was."""
    filled = JavaHashMap(java_string_hash, ((name, name) for name in names))
    assert list(filled) == java_hash_order(names)


@pytest.mark.property
@given(st.lists(st.text(max_size=3), max_size=60, unique=True))
def test_a_map_that_was_computed(names: list[str]) -> None:
    """A computed key comes to the head of its bucket."""
    filled: JavaHashMap[str, int] = JavaHashMap(java_string_hash)
    for place, name in enumerate(names):
        assert filled.compute(name, lambda place=place: place) == place  # type: ignore[misc]
    assert list(filled) == computed_hash_order(names, hash_of=java_string_hash)


def test_the_size_that_a_map_is_made_with() -> None:
    """Java takes the next power of two, and makes room when three quarters are taken."""
    assert [sized_capacity(size) for size in (0, 1, 2, 3, 4, 5, 17)] == [1, 1, 2, 4, 4, 8, 32]
