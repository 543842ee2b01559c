"""Draws requests of consumer groups: heartbeats, descriptions, offsets at member epochs.

Members are drawn as clients behave, with slips: they join, report what they were given, give up
what they were not given any more, change their topics, leave and come back.
"""

from typing import Any, Final

from coordinator_sim_conformance.differ.consumer_memory import Known
from coordinator_sim_conformance.differ.memory import INSTANCES, Memory

Json = dict[str, Any]
Call = tuple[str, int, Json]

_IDS: Final = ("m1", "m2", "m3", "m4", "m5", "größe")
_TOPICS: Final = ("t", "u", "v", "nope")
_SUBSCRIPTIONS: Final = (
    *(("t",),) * 4,
    *(("t", "u"),) * 3,
    ("u",),
    ("u", "v"),
    ("nope",),
    ("t", "nope"),
    ("t", "t"),
    (),
)
_ASSIGNORS: Final = (*(None,) * 12, "uniform", "range", "range", "no such assignor")
_REGEXES: Final = ("t", "t|u", "[tuv]", "n.*", "", "(", "u+")
_TIMEOUTS_MS: Final = (100, 1_000, 5_000, 20_000)
_EPOCH_VERSION: Final = 9


def heartbeat(memory: Memory) -> Call:
    """Draw a ConsumerGroupHeartbeat: of a newcomer, of a member, or with a slip."""
    version = 0 if memory.chance(0.1) else 1
    data = _beat(memory, version)
    if version == 0:
        del data["subscribedTopicRegex"]
        if data["memberEpoch"] == 0 and data["subscribedTopicNames"] is None:
            data["subscribedTopicNames"] = ["t"]
    return "ConsumerGroupHeartbeat", version, data


def _beat(memory: Memory, version: int) -> Json:
    group_id = memory.group_id()
    members = memory.consumers.of(group_id)
    kind = memory.random.random()
    if not members or kind < 0.18:
        return _join(memory, group_id, version)
    member_id = memory.pick(list(members))
    known = members[member_id]
    data = fields(group_id, member_id, known.epoch)
    if kind < 0.80:
        _report(memory, known, data)
    elif kind < 0.87:
        data["memberEpoch"] = -1 if memory.chance(0.7) else -2
        data["instanceId"] = known.instance
    elif kind < 0.93:
        _report(memory, known, data)
        data["memberEpoch"] += memory.pick((-1, -1, -2, 1))
    elif kind < 0.96:
        data["memberId"] = memory.pick(_IDS)
    else:
        _slip(memory, data)
    return data


def fields(group_id: str, member_id: str, epoch: int) -> Json:
    """A heartbeat that says nothing but whose it is."""
    return {
        "groupId": group_id,
        "memberId": member_id,
        "memberEpoch": epoch,
        "instanceId": None,
        "rackId": None,
        "rebalanceTimeoutMs": -1,
        "subscribedTopicNames": None,
        "subscribedTopicRegex": None,
        "serverAssignor": None,
        "topicPartitions": None,
    }


def _join(memory: Memory, group_id: str, version: int) -> Json:
    member_id = "" if version == 0 and memory.chance(0.6) else memory.pick(_IDS)
    data = fields(group_id, member_id, 0)
    if memory.consumers.has_static and memory.chance(0.5):
        data["instanceId"] = memory.pick(INSTANCES)
    data["rackId"] = memory.pick((None, None, "r1"))
    data["topicPartitions"] = []
    _subscribe(memory, data)
    return data


def _subscribe(memory: Memory, data: Json) -> None:
    """Say everything of a member that it may say."""
    data["rebalanceTimeoutMs"] = memory.pick(_TIMEOUTS_MS)
    data["subscribedTopicNames"] = list(memory.pick(_SUBSCRIPTIONS))
    data["serverAssignor"] = memory.pick(_ASSIGNORS)
    if memory.consumers.has_regex and memory.chance(0.5):
        data["subscribedTopicRegex"] = memory.pick(_REGEXES)
        if memory.chance(0.6):
            data["subscribedTopicNames"] = None


def _report(memory: Memory, known: Known, data: Json) -> None:
    """Report what the member has, after it has given up some or all of what it should."""
    kind = memory.random.random()
    if kind < 0.7:
        known.owned = {topic_id: set(each) for topic_id, each in known.wanted.items()}
    if kind > 0.15:
        data["topicPartitions"] = [
            {"topicId": topic_id, "partitions": sorted(partitions)}
            for topic_id, partitions in known.owned.items()
            if partitions
        ]
    if memory.chance(0.3):
        data["instanceId"] = known.instance
    if memory.chance(0.12):
        _subscribe(memory, data)
    elif memory.chance(0.05):
        data["rackId"] = memory.pick(("r1", "r2"))


def _slip(memory: Memory, data: Json) -> None:
    """Break a rule of the request's form, or of who may say what."""
    slips: tuple[Json, ...] = (
        {"memberId": " "},
        {"groupId": ""},
        {"instanceId": "  "},
        {"rackId": ""},
        {"memberEpoch": -3},
        {"memberEpoch": -2, "instanceId": None},
        {"memberEpoch": 0},
        {"memberEpoch": 0, "rebalanceTimeoutMs": 100},
        {"memberEpoch": 0, "rebalanceTimeoutMs": 100, "topicPartitions": []},
        {"instanceId": memory.pick(INSTANCES)},
        {"serverAssignor": "no such assignor"},
        {"groupId": "other"},
    )
    data |= memory.pick(slips)


def describe(memory: Memory) -> Call:
    """Draw a ConsumerGroupDescribe, sometimes of groups that are none."""
    names = memory.random.choices((*memory.fetchable, ""), k=memory.pick((1, 1, 2)))
    data = {"groupIds": names, "includeAuthorizedOperations": False}
    return "ConsumerGroupDescribe", memory.pick((0, 1, 1)), data


def commit(memory: Memory) -> Call:
    """Draw an OffsetCommit at a member's epoch, or at another."""
    group_id, member_id, epoch = _who(memory)
    version = _EPOCH_VERSION if memory.chance(0.8) else memory.pick((2, 8, _EPOCH_VERSION))
    topics = [
        {
            "name": name,
            "partitions": [
                {
                    "partitionIndex": index,
                    "committedOffset": memory.number,
                    "committedMetadata": memory.pick(("", "x", "longer than 8")),
                }
                | ({"committedLeaderEpoch": -1} if version >= 6 else {})
                for index in memory.random.sample(range(4), k=memory.pick((1, 1, 2)))
            ],
        }
        for name in memory.random.sample(("t", "u", "v"), k=memory.pick((1, 1, 2)))
    ]
    data: Json = {
        "groupId": group_id,
        "generationIdOrMemberEpoch": epoch,
        "memberId": member_id,
        "topics": topics,
    }
    if version >= 7:
        data["groupInstanceId"] = None
    if 2 <= version <= 4:
        data["retentionTimeMs"] = -1
    return "OffsetCommit", version, data


def fetch(memory: Memory) -> Call:
    """Draw an OffsetFetch at a member's epoch, at another, or of an outsider."""
    group_id, member_id, epoch = _who(memory)
    group: Json = {"groupId": group_id, "memberId": member_id or None, "memberEpoch": epoch}
    if memory.chance(0.2):
        group |= {"memberId": None, "memberEpoch": -1}
    topics = [{"name": "t", "partitionIndexes": [0, 1]}]
    group["topics"] = None if memory.chance(0.2) else topics
    return "OffsetFetch", _EPOCH_VERSION, {"groups": [group], "requireStable": memory.chance(0.3)}


def _who(memory: Memory) -> tuple[str, str, int]:
    """Draw a group, a member id (real or unknown) and an epoch."""
    group_id = memory.group_id()
    members = memory.consumers.of(group_id)
    if not members or memory.chance(0.15):
        return group_id, memory.pick(("", "ghost")), memory.pick((-1, -1, 1))
    member_id = memory.pick(list(members))
    return group_id, member_id, members[member_id].epoch + memory.pick((0, 0, 0, 0, -1, -2, 1))
