"""Draws requests of share groups, and what their share coordinator does.

Members are drawn as clients behave, with slips: they join, repeat their epoch, change their topics,
leave and come back.
"""

from typing import Any, Final

from coordinator_sim_conformance.differ.memory import Memory

Json = dict[str, Any]
Call = tuple[str, int, Json]

_VERSION: Final = 1
_IDS: Final = ("m1", "m2", "m3", "m4", "m5", "m6", "größe")
_SUBSCRIPTIONS: Final = (
    *(("t",),) * 4,
    *(("t", "u"),) * 3,
    ("u",),
    ("u", "v"),
    ("v", "u", "t"),
    ("nope",),
    ("t", "nope"),
    ("t", "t"),
    (),
)
_ERRORS: Final = (
    *("NONE",) * 6,
    "COORDINATOR_NOT_AVAILABLE",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "UNKNOWN_SERVER_ERROR",
)


def heartbeat(memory: Memory) -> Call:
    """Draw a ShareGroupHeartbeat: of a newcomer, of a member, or with a slip."""
    return "ShareGroupHeartbeat", _VERSION, _beat(memory)


def _beat(memory: Memory) -> Json:
    group_id = memory.group_id()
    members = memory.shares.of(group_id)
    kind = memory.random.random()
    if not members or kind < 0.22:
        data = _fields(group_id, memory.pick(_IDS), 0)
        data["rackId"] = memory.pick((None, None, "r1"))
        data["subscribedTopicNames"] = list(memory.pick(_SUBSCRIPTIONS))
        return data
    member_id = memory.pick(list(members))
    data = _fields(group_id, member_id, members[member_id])
    if kind < 0.80:
        if memory.chance(0.15):
            data["subscribedTopicNames"] = list(memory.pick(_SUBSCRIPTIONS))
        if memory.chance(0.05):
            data["rackId"] = memory.pick(("r1", "r2"))
    elif kind < 0.87:
        data["memberEpoch"] = -1
    elif kind < 0.93:
        data["memberEpoch"] += memory.pick((-1, -1, -2, 1))
    elif kind < 0.96:
        data["memberId"] = memory.pick(_IDS)
    else:
        data |= memory.pick(_SLIPS)
    return data


_SLIPS: Final[tuple[Json, ...]] = (
    {"memberId": " "},
    {"memberId": ""},
    {"groupId": ""},
    {"rackId": ""},
    {"memberEpoch": -2},
    {"memberEpoch": 0},
    {"memberEpoch": 0, "subscribedTopicNames": []},
    {"groupId": "other"},
)
"""Fields that break a rule of the request's form, or name a group that is not there."""


def _fields(group_id: str, member_id: str, epoch: int) -> Json:
    return {
        "groupId": group_id,
        "memberId": member_id,
        "memberEpoch": epoch,
        "rackId": None,
        "subscribedTopicNames": None,
    }


def describe(memory: Memory) -> Call:
    """Draw a ShareGroupDescribe, sometimes of groups that are none."""
    names = memory.random.choices((*memory.fetchable, ""), k=memory.pick((1, 1, 2)))
    data = {"groupIds": names, "includeAuthorizedOperations": False}
    return "ShareGroupDescribe", _VERSION, data


def alter_offsets(memory: Memory) -> Call:
    """Draw an AlterShareGroupOffsets, sometimes of a group or of partitions that are none."""
    topics = memory.random.sample(("t", "u", "v", "nope"), k=memory.pick((1, 1, 2)))
    data = {
        "groupId": _any_group(memory),
        "topics": [
            {
                "topicName": name,
                "partitions": [
                    {"partitionIndex": index, "startOffset": memory.pick((0, 5, 100))}
                    for index in memory.random.sample(range(8), k=memory.pick((0, 1, 2, 3)))
                ],
            }
            for name in topics
        ],
    }
    return "AlterShareGroupOffsets", 0, data


def delete_offsets(memory: Memory) -> Call:
    """Draw a DeleteShareGroupOffsets."""
    topics = memory.random.choices(("t", "t", "u", "v", "nope"), k=memory.pick((0, 1, 1, 2, 3)))
    data = {"groupId": _any_group(memory), "topics": [{"topicName": name} for name in topics]}
    return "DeleteShareGroupOffsets", 0, data


def _any_group(memory: Memory) -> str:
    """A group in play, or another, or none."""
    return memory.group_id() if memory.chance(0.9) else memory.pick(("other", ""))


def persister(memory: Memory) -> Json:
    """Let the share coordinator hold its calls, or answer some that it holds."""
    known = memory.shares
    if not known.holds or memory.chance(0.15):
        known.holds = not known.holds
        return {"op": "persister", "hold": known.holds}
    error = memory.pick(_ERRORS)
    return {
        "op": "persister",
        "answer": error,
        "count": memory.pick((1, 1, 2, 5)),
        "throws": error != "NONE" and memory.chance(0.4),
    }
