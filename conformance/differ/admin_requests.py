"""Draws requests of administrators: DescribeGroups, ListGroups, DeleteGroups."""

from collections.abc import Sequence
from typing import Any, Final

from coordinator_sim_conformance.differ.memory import Memory

Json = dict[str, Any]
Call = tuple[str, int, Json]

_STATES: Final = (
    "Stable",
    "stable",
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "AwaitingSync",
    "Dead",
    "Assigning",
    "no such state",
)
_TYPES: Final = ("classic", "Classic", "consumer", "share", "no such type")


def describe(memory: Memory) -> Call:
    """Draw a DescribeGroups, sometimes with a repeated name."""
    version = memory.version("DescribeGroups")
    names = _names(memory, (1, 1, 2, 4))
    data: Json = {"groups": names}
    if version >= 3:
        data["includeAuthorizedOperations"] = False
    return "DescribeGroups", version, data


def _names(memory: Memory, counts: Sequence[int]) -> list[str]:
    """Draw as many names of groups as one of the counts says."""
    drawn = memory.random.choices((*memory.fetchable, ""), k=memory.pick(counts))
    return [memory.own_group(name, memory.fetchable[0]) for name in drawn]


def list_groups(memory: Memory) -> Call:
    """Draw a ListGroups with filters of states and types, where the version has them."""
    version = memory.version("ListGroups")
    data: Json = {}
    if version >= 4:
        data["statesFilter"] = memory.random.choices(_STATES, k=memory.pick((0, 0, 1, 2)))
    if version >= 5:
        data["typesFilter"] = memory.random.choices(_TYPES, k=memory.pick((0, 0, 1, 2)))
    return "ListGroups", version, data


def delete_groups(memory: Memory) -> Call:
    """Draw a DeleteGroups, sometimes with a repeated name."""
    names = _names(memory, (1, 1, 2, 3))
    return "DeleteGroups", memory.version("DeleteGroups"), {"groupsNames": names}
