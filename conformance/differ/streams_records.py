"""Records of streams groups that another leader wrote: members whose tasks have any role.

No release's assignor hands out warm-up tasks, so they come to a group by its log alone.
"""

from typing import Any, Final

from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim_conformance.differ.memory import Memory
from coordinator_sim_conformance.differ.streams_requests import TOPOLOGIES

Json = dict[str, Any]

_ROLES: Final = ("activeTasks", "standbyTasks", "warmupTasks")
_TASK_COUNT: Final = 4
_STATES: Final = (1, 2, 2, 3, 3, 3, 3, 9)
_METADATA: Final = 19
_TARGET: Final = 21
_ASSIGNMENT: Final = 22
_TOPOLOGY: Final = 23


def append_roles(memory: Memory) -> Json | None:
    """Write members with tasks of any role to a resigned partition; None when there is none.

    Where a group of another type has such an id, the partition is given up.
    """
    streams = memory.streams
    if not streams.is_smooth and memory.chance(0.7):
        return None
    places = [
        (group_id, partition_for(group_id, memory.partitions))
        for group_id in streams.topologies
        if streams.of(group_id)
    ]
    places = [place for place in places if place[1] in memory.resigned]
    if not places:
        return None
    group_id, partition = memory.pick(places)
    memory.ends.pop(partition, None)
    parts = TOPOLOGIES[streams.topologies[group_id]]
    names = [part["subtopologyId"] for part in parts]
    value: Json = {"epoch": 0, "subtopologies": parts}
    records = [_record(_TOPOLOGY, {"groupId": group_id}, value)]
    members = list(streams.of(group_id))
    for member_id in memory.random.sample(members, k=min(len(members), memory.pick((1, 2)))):
        records += _member(memory, group_id, member_id, names)
    return {"op": "append", "partition": partition, "records": records}


def _record(kind: int, key: Json, value: Json) -> Json:
    return {"key": {"type": kind, "data": key}, "value": {"version": 0, "data": value}}


def _member(memory: Memory, group_id: str, member_id: str, names: list[str]) -> list[Json]:
    key = {"groupId": group_id, "memberId": member_id}
    known = memory.streams.of(group_id)[member_id]
    metadata: Json = {
        "instanceId": known.instance,
        "rackId": None,
        "clientId": "c1",
        "clientHost": "/127.0.0.1",
        "rebalanceTimeoutMs": 5_000,
        "topologyEpoch": 0,
        "processId": memory.pick(("p1", "p2")),
        "userEndpoint": None,
        "clientTags": [],
    }
    held = _tasks(memory, names)
    state = memory.pick(_STATES)
    pending = _tasks(memory, names) if state == 2 else {role: [] for role in _ROLES}
    assignment: Json = {
        "memberEpoch": known.epoch,
        "previousMemberEpoch": known.epoch - 1,
        "state": state,
        **held,
        **{f"{role}PendingRevocation": tasks for role, tasks in pending.items()},
    }
    return [
        _record(_METADATA, key, metadata),
        _record(_ASSIGNMENT, key, assignment),
        _record(_TARGET, key, _tasks(memory, names)),
    ]


def _tasks(memory: Memory, names: list[str]) -> dict[str, list[Json]]:
    """Tasks, each in one role or in none."""
    found: dict[str, dict[str, list[int]]] = {role: {} for role in _ROLES}
    for name in names:
        for number in range(_TASK_COUNT):
            role = memory.pick((*_ROLES, None, None))
            if role is not None:
                found[role].setdefault(name, []).append(number)
    return {
        role: [{"subtopologyId": name, "partitions": numbers} for name, numbers in tasks.items()]
        for role, tasks in found.items()
    }
