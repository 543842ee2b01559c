"""Draws requests of streams groups: heartbeats, descriptions, offsets at member epochs.

Members are drawn as Kafka Streams behaves, with slips: they join with a topology, report what they
were given, give up what they were not given any more, leave and come back.
"""

from typing import Any, Final

from coordinator_sim_conformance.differ import broker_events
from coordinator_sim_conformance.differ.memory import INSTANCES, Memory
from coordinator_sim_conformance.differ.streams_memory import ROLES, KnownStreams

Json = dict[str, Any]
Call = tuple[str, int, Json]

_IDS: Final = ("m1", "m2", "m3", "m4", "m5", "größe")
_PROCESSES: Final = ("p1", "p1", "p2", "p2", "p3", "größe")
_TIMEOUTS_MS: Final = (100, 1_000, 5_000, 20_000)
_TAGS: Final = ("zone", "cluster")
_EPOCH_VERSION: Final = 9
_STATES: Final = ("Stable", "NotReady", "not_ready", "Assigning", "reconciling", "Empty")
_STABLE_SHARE: Final = 0.9


def _part(name: str, sources: tuple[str, ...] = (), **fields: Any) -> Json:  # noqa: ANN401 - JSON
    return {
        "subtopologyId": name,
        "sourceTopics": list(sources),
        "sourceTopicRegex": [],
        "stateChangelogTopics": [],
        "repartitionSinkTopics": [],
        "repartitionSourceTopics": [],
        "copartitionGroups": [],
        **fields,
    }


def _topic(name: str, partitions: int = 0, **configs: str) -> Json:
    return {
        "name": name,
        "partitions": partitions,
        "replicationFactor": 1 if configs else 0,
        "topicConfigs": [{"key": key, "value": value} for key, value in configs.items()],
    }


def _together(sources: tuple[int, ...], repartitions: tuple[int, ...] = ()) -> Json:
    return {
        "sourceTopics": list(sources),
        "sourceTopicRegex": [],
        "repartitionSourceTopics": list(repartitions),
    }


TOPOLOGIES: Final[tuple[list[Json], ...]] = (
    [_part("0", ("t",))],
    [_part("0", ("t",), stateChangelogTopics=[_topic("c0", cleanup="compact", retention="1")])],
    [_part("b", ("u",)), _part("a", ("t",), stateChangelogTopics=[_topic("ca")])],
    [
        _part("0", ("t",), repartitionSinkTopics=["r1"]),
        _part(
            "1",
            repartitionSourceTopics=[_topic("r1")],
            stateChangelogTopics=[_topic("c1"), _topic("c2")],
        ),
    ],
    [
        _part("0", ("u",), repartitionSinkTopics=["r1", "r2"]),
        _part(
            "1",
            ("v",),
            repartitionSourceTopics=[_topic("r1"), _topic("r2", 6)],
            copartitionGroups=[_together((0,), (0, 1))],
            stateChangelogTopics=[_topic("c1")],
        ),
    ],
    [
        _part(
            "größe",
            ("u", "v"),
            copartitionGroups=[_together((0, 1))],
            stateChangelogTopics=[_topic("c1"), _topic("c2"), _topic("c3"), _topic("c4")],
        )
    ],
)
"""Topologies that run."""

_BROKEN: Final[tuple[list[Json], ...]] = (
    [_part("0", ("t", "u"), copartitionGroups=[_together((0, 1))])],
    [_part("0", ("nope",)), _part("1", ("no1", "no2", "no3", "t"))],
    [_part("0", ("t",), repartitionSourceTopics=[_topic("r1")])],
    [
        _part("0", repartitionSourceTopics=[_topic("r1")], repartitionSinkTopics=["r2"]),
        _part("1", repartitionSourceTopics=[_topic("r2")], repartitionSinkTopics=["r1"]),
    ],
    [_part("0")],
    [_part("0", ("t",)), _part("0", ("u",))],
    [_part("0", ("t",), sourceTopicRegex=["t.*"])],
    [_part("0", ("t",), stateChangelogTopics=[_topic("c1", 4)])],
    [_part("0", ("t",), copartitionGroups=[_together((1,))])],
    [
        _part(
            "0",
            ("t",),
            repartitionSourceTopics=[_topic("r1", 3)],
            copartitionGroups=[_together((0,), (0,))],
        )
    ],
    [
        _part(
            "0",
            repartitionSourceTopics=[_topic("r1", 3), _topic("r2", 5)],
            copartitionGroups=[_together((), (0, 1))],
        )
    ],
    [],
)
"""Topologies that do not, or with other topics alone."""


def heartbeat(memory: Memory) -> Call:
    """Draw a StreamsGroupHeartbeat: of a newcomer, of a member, or with a slip."""
    return "StreamsGroupHeartbeat", memory.version("StreamsGroupHeartbeat"), _beat(memory)


def _beat(memory: Memory) -> Json:
    group_id = memory.group_id()
    members = memory.streams.of(group_id)
    kind = memory.random.random()
    if not members or kind < 0.16:
        return _join(memory, group_id)
    member_id = memory.pick(list(members))
    known = members[member_id]
    data = _fields(group_id, member_id, known)
    if kind < 0.82:
        _report(memory, known, data)
    elif kind < 0.88:
        data["memberEpoch"] = -1 if memory.chance(0.7) else -2
        data["instanceId"] = known.instance
        data["shutdownApplication"] = memory.chance(0.05)
    elif kind < 0.93:
        _report(memory, known, data)
        data["memberEpoch"] += memory.pick((-1, -1, -2, 1))
    elif kind < 0.96:
        data["memberId"] = memory.pick(_IDS)
    else:
        _slip(memory, data)
    return data


def _fields(group_id: str, member_id: str, known: KnownStreams) -> Json:
    return {
        "groupId": group_id,
        "memberId": member_id,
        "memberEpoch": known.epoch,
        "endpointInformationEpoch": known.endpoint_epoch,
        "instanceId": None,
        "rackId": None,
        "rebalanceTimeoutMs": -1,
        "topology": None,
        "activeTasks": None,
        "standbyTasks": None,
        "warmupTasks": None,
        "processId": None,
        "userEndpoint": None,
        "clientTags": None,
        "taskOffsets": None,
        "taskEndOffsets": None,
        "shutdownApplication": False,
    }


def _join(memory: Memory, group_id: str) -> Json:
    streams = memory.streams
    data = _fields(group_id, memory.pick(_IDS), KnownStreams())
    if streams.has_static and memory.chance(0.5):
        data["instanceId"] = memory.pick(INSTANCES)
    data["rackId"] = memory.pick((None, None, "r1"))
    data["rebalanceTimeoutMs"] = memory.pick(_TIMEOUTS_MS)
    data["topology"] = _topology(memory, group_id)
    data["processId"] = memory.pick(_PROCESSES)
    data |= {role: [] for role in ROLES}
    _describe_itself(memory, data)
    return data


def _topology(memory: Memory, group_id: str) -> Json:
    main = memory.streams.topologies.setdefault(group_id, memory.random.randrange(len(TOPOLOGIES)))
    drawn = memory.random.random()
    parts = TOPOLOGIES[main]
    if memory.streams.is_smooth:
        return {"epoch": 0, "subtopologies": parts}
    if drawn > _STABLE_SHARE:
        parts = memory.pick(_BROKEN if memory.chance(0.7) else TOPOLOGIES)
    epoch = 0 if memory.chance(0.85) else memory.pick((1, 1, 2, -1))
    return {"epoch": epoch, "subtopologies": parts}


def _describe_itself(memory: Memory, data: Json) -> None:
    if memory.streams.has_endpoints and memory.chance(0.6):
        data["userEndpoint"] = {"host": memory.pick(("h1", "h2")), "port": memory.pick((1, 65_535))}
    if memory.chance(0.5):
        keys = memory.random.sample(_TAGS, k=memory.pick((0, 1, 2)))
        data["clientTags"] = [{"key": key, "value": memory.pick(("x", "y"))} for key in keys]


def _report(memory: Memory, known: KnownStreams, data: Json) -> None:
    """Report what the member has, after it has given up some or all of what it should."""
    kind = memory.random.random()
    if kind < 0.7:
        known.owned = {
            role: {name: set(numbers) for name, numbers in known.wanted[role].items()}
            for role in ROLES
        }
    if kind > 0.15:
        for role in ROLES:
            data[role] = [
                {"subtopologyId": name, "partitions": sorted(numbers)}
                for name, numbers in known.owned[role].items()
                if numbers
            ]
    if memory.chance(0.8):
        data["instanceId"] = known.instance
    if memory.chance(0.05):
        _describe_itself(memory, data)
    if memory.chance(0.04):
        data["rackId"] = memory.pick(("r1", "r2"))
    if memory.chance(0.03):
        data["processId"] = memory.pick(_PROCESSES)
    if memory.streams.has_offsets and memory.chance(0.2):
        data["taskOffsets"] = _offsets(memory)
        data["taskEndOffsets"] = _offsets(memory) if memory.chance(0.5) else None
    data["shutdownApplication"] = memory.chance(0.01)
    if memory.chance(0.2):
        data["endpointInformationEpoch"] = memory.pick((-1, 0, 1, 2))


def _offsets(memory: Memory) -> list[Json]:
    places = [(name, number) for name in ("0", "1", "a") for number in range(4)]
    drawn = memory.random.sample(places, k=memory.pick((1, 2, 5)))
    if memory.chance(0.05):
        drawn.append(drawn[0])
    return [
        {"subtopologyId": name, "partition": number, "offset": memory.pick((0, 7, 99))}
        for name, number in drawn
    ]


def _slip(memory: Memory, data: Json) -> None:
    """Break a rule of the request's form, or of who may say what."""
    task = [{"subtopologyId": "0", "partitions": [99]}]
    slips: tuple[Json, ...] = (
        {"memberId": " "},
        {"groupId": ""},
        {"instanceId": "  "},
        {"rackId": ""},
        {"memberEpoch": -3},
        {"memberEpoch": -2, "instanceId": None},
        {"memberEpoch": 0},
        {"memberEpoch": 0, "rebalanceTimeoutMs": 100},
        {"memberEpoch": 0, "rebalanceTimeoutMs": 100, **{role: [] for role in ROLES}},
        {"instanceId": memory.pick(INSTANCES)},
        {"activeTasks": []},
        {"activeTasks": task, "standbyTasks": [], "warmupTasks": []},
        {"activeTasks": [], "standbyTasks": [], "warmupTasks": task},
        {
            "activeTasks": [{"subtopologyId": "zz", "partitions": [0]}],
            "standbyTasks": [],
            "warmupTasks": [],
        },
        {"topology": {"epoch": 0, "subtopologies": []}},
        {"groupId": "other"},
    )
    data |= memory.pick(slips)


def describe(memory: Memory) -> Call:
    """Draw a StreamsGroupDescribe, sometimes of groups that are none."""
    names = memory.random.choices((*memory.fetchable, ""), k=memory.pick((1, 1, 2)))
    version = memory.version("StreamsGroupDescribe")
    data: Json = {"groupIds": names, "includeAuthorizedOperations": False}
    return "StreamsGroupDescribe", version, data


def list_groups(memory: Memory) -> Call:
    """Draw a ListGroups that mostly looks for streams groups and their states."""
    data: Json = {
        "statesFilter": memory.random.choices(_STATES, k=memory.pick((0, 0, 1, 2))),
        "typesFilter": memory.random.choices(
            ("streams", "Streams", "classic"), k=memory.pick((0, 1))
        ),
    }
    return "ListGroups", 5, data


def create_internal_topics(memory: Memory) -> Json | None:
    """Create topics that groups asked for, sometimes with another number of partitions."""
    wanted = memory.streams.internal
    if not wanted or not memory.chance(0.5 if memory.streams.is_smooth else 0.1):
        return None
    names = list(wanted) if memory.chance(0.6) else [memory.pick(list(wanted))]
    made = []
    for name in names:
        slip = 0 if memory.streams.is_smooth else memory.pick((0,) * 12 + (1,))
        made += broker_events.set_topic(memory, name, wanted.pop(name) + slip)["set"]
    return {"op": "topics", "set": made}


def remove_internal_topic(memory: Memory) -> Json | None:
    """Delete a topic that a group may need."""
    if not memory.chance(0.004):
        return None
    name = memory.pick(("c0", "c1", "r1", "r2", "u"))
    return broker_events.remove_topic(memory, name)


def commit(memory: Memory) -> Call:
    """Draw an OffsetCommit at a member's epoch, or at another."""
    group_id, member_id, epoch = _who(memory)
    version = _EPOCH_VERSION if memory.chance(0.9) else 8
    topics = [
        {
            "name": name,
            "partitions": [
                {
                    "partitionIndex": index,
                    "committedOffset": memory.number,
                    "committedMetadata": memory.pick(("", "x", "longer than 8")),
                    "committedLeaderEpoch": -1,
                }
                for index in memory.random.sample(range(4), k=memory.pick((1, 1, 2)))
            ],
        }
        for name in memory.random.sample(("t", "u", "v"), k=memory.pick((1, 1, 2)))
    ]
    data: Json = {
        "groupId": group_id,
        "generationIdOrMemberEpoch": epoch,
        "memberId": member_id,
        "groupInstanceId": None,
        "topics": topics,
    }
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
    members = memory.streams.of(group_id)
    if not members or memory.chance(0.15):
        return group_id, memory.pick(("", "ghost")), memory.pick((-1, -1, 1))
    member_id = memory.pick(list(members))
    return group_id, member_id, members[member_id].epoch + memory.pick((0, 0, 0, 0, -1, -2, 1))
