"""An assignor of one's own: everybody keeps what it has, up to its share; the rest goes by load."""

from collections.abc import Mapping, Sequence
from typing import Any

Partition = tuple[str, int]


def keep_share(
    topics: Mapping[str, Sequence[tuple[str, ...]]], members: Sequence[Any]
) -> dict[str, list[Partition]]:
    """Return the partitions of each member.

    Args:
        topics: For each topic a list with an entry a partition: the racks of its replicas.
        members: Each with `id`, `topics`, `owned`, `generation`, `instance` and `rack`.
    """
    left = {(topic, n): None for topic, racks in topics.items() for n in range(len(racks))}
    share, larger = divmod(len(left), len(members))
    given: dict[str, list[Partition]] = {}
    for member in members:
        owned = [tuple(each) for each in member.owned if tuple(each) in left]
        is_larger = len(owned) > share and larger > 0
        larger -= is_larger
        given[member.id] = owned[: share + is_larger]
        for partition in given[member.id]:
            del left[partition]
    for partition in left:
        readers = [member.id for member in members if partition[0] in member.topics]
        given[min(readers, key=lambda each: (len(given[each]), each))].append(partition)
    return given


def everything_twice(
    topics: Mapping[str, Sequence[tuple[str, ...]]], members: Sequence[Any]
) -> dict[str, list[Partition]]:
    """Return a wrong assignment: every member gets every partition."""
    every = [(topic, n) for topic, racks in topics.items() for n in range(len(racks))]
    return {member.id: every for member in members}
