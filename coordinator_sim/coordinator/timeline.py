"""The order in which Kafka's timeline tables hand out their keys.

Groups of a partition and offsets of a group live in such tables, and their order shows: in the
answers at an unload, the timers of a load, an OffsetFetch of everything.

Source: kafka trunk, server-common/.../timeline/BaseHashTable.java and SnapshottableHashTable.java.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from coordinator_sim.protocol.partitioning import java_string_hash

K = TypeVar("K")

_MIN_CAPACITY = 2


def timeline_capacity(size: int) -> int:
    """The slots of a table made empty that grew to hold `size` keys: above 3/4 full it doubles."""
    capacity = _MIN_CAPACITY
    while size * 4 > capacity * 3:
        capacity *= 2
    return capacity


def timeline_order(
    keys: Iterable[K],
    capacity: int | None = None,
    *,
    hash_of: Callable[[K], int] = java_string_hash,  # type: ignore[assignment]
) -> list[K]:
    """The keys slot by slot; those that share a slot from the newest to the oldest.

    Args:
        keys: In order of insertion, without repetition.
        capacity: Slots of the table; by default those of one that grew to hold the keys.
        hash_of: The keys' Java hash; by default that of strings.
    """
    listed = list(keys)
    if len(listed) < 2:  # noqa: PLR2004 - nothing to order
        return listed
    slots = timeline_capacity(len(listed)) if capacity is None else capacity
    listed.reverse()
    return sorted(listed, key=lambda key: _slot(hash_of(key), slots))


def _slot(hashed: int, capacity: int) -> int:
    """The slot of a hash. Source: BaseHashTable.findSlot."""
    mixed = hashed * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF
    return mixed >> (65 - capacity.bit_length())
