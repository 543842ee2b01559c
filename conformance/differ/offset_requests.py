"""Draws offset requests: OffsetCommit, OffsetFetch, OffsetDelete, TxnOffsetCommit."""

from typing import Any, Final

from coordinator_sim_conformance.differ.memory import INSTANCES, Memory

Json = dict[str, Any]
Call = tuple[str, int, Json]

TOPICS: Final = ("t", "u", "v")
"""Topics that exist at first."""
_NAMES: Final = (*TOPICS, "nope")
_UNKNOWN_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAACQ"
_ZERO_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_METADATA: Final = ("", "x", "x", None, "longest", "longer", "größe")
"""Metadata of a commit; two stand for texts of the allowed length, and of one more."""
_TOPIC_IDS: Final = 10
"""First version of OffsetCommit and OffsetFetch that names topics by their ids."""
_BATCHES: Final = 8
"""First version of OffsetFetch that asks for several groups."""
PRODUCERS: Final = (7, 8, 9)


def commit(memory: Memory) -> Call:
    """Draw an OffsetCommit of a member or without one."""
    who = memory.member()
    version = memory.version("OffsetCommit")
    data: Json = {
        "groupId": memory.own_group(memory.pick([who.group_id] * 40 + [""]), who.group_id),
        "topics": _committed(memory, "OffsetCommit", version),
    }
    if version >= 1:
        generations = (who.generation, who.generation, -1)
        data["generationIdOrMemberEpoch"] = memory.pick(generations)
        data["memberId"] = memory.pick((who.member_id, who.member_id, ""))
    if version >= 7:
        data["groupInstanceId"] = memory.pick([None] * 6 + [who.instance, *INSTANCES])
    if 2 <= version <= 4:
        data["retentionTimeMs"] = memory.pick((-1, -1, 0, 10_000, 100_000))
    return "OffsetCommit", version, data


def commit_in_transaction(memory: Memory) -> Call:
    """Draw a TxnOffsetCommit of one of a few producers."""
    who = memory.member()
    version = memory.version("TxnOffsetCommit")
    producer = memory.pick(PRODUCERS)
    data: Json = {
        "transactionalId": f"tx{producer}",
        "groupId": memory.pick([who.group_id] * 40 + [""]),
        "producerId": producer,
        "producerEpoch": memory.pick((0, 0, 0, 1)),
        "topics": _committed(memory, "TxnOffsetCommit", version),
    }
    if version >= 3:
        outsider = memory.chance(0.6)
        # The first is the name in 4.4, the second the earlier one; each side ignores the other's.
        data["generationIdOrMemberEpoch"] = -1 if outsider else who.generation
        data["generationId"] = data["generationIdOrMemberEpoch"]
        data["memberId"] = "" if outsider else who.member_id
        data["groupInstanceId"] = None if outsider else who.instance
    return "TxnOffsetCommit", version, data


def _committed(memory: Memory, api: str, version: int) -> list[Json]:
    has_epoch = version >= (6 if api == "OffsetCommit" else 2)
    has_timestamp = api == "OffsetCommit" and version == 1
    topics = []
    for name in memory.random.sample(_NAMES, k=memory.pick((1, 1, 2, 3))):
        partitions = []
        for index in memory.random.sample(range(6), k=memory.pick((1, 1, 2, 3))):
            entry: Json = {
                "partitionIndex": index,
                "committedOffset": memory.number,
                "committedMetadata": _metadata(memory),
            }
            if has_epoch:
                entry["committedLeaderEpoch"] = memory.pick((-1, 3))
            if has_timestamp:
                entry["commitTimestamp"] = memory.pick((-1, 5_000))
            partitions.append(entry)
        by_id = api == "OffsetCommit" and version >= _TOPIC_IDS
        topics.append({**_topic(memory, name, by_id=by_id), "partitions": partitions})
    return topics


def _metadata(memory: Memory) -> str | None:
    """Draw the text of a commit, whose length in bytes is limited."""
    drawn = memory.pick(_METADATA)
    if drawn not in {"longest", "longer"}:
        return drawn
    return ("123456789" * memory.longest_metadata)[: memory.longest_metadata + (drawn == "longer")]


def _topic(memory: Memory, name: str, *, by_id: bool) -> Json:
    """Return a topic as the request names it; a name without an id gets a made-up id."""
    if not by_id:
        return {"name": name}
    known = memory.topics.get(name)
    if known is None:
        return {"topicId": memory.pick((_UNKNOWN_TOPIC_ID, _ZERO_TOPIC_ID))}
    return {"topicId": known[1]}


def fetch(memory: Memory) -> Call:
    """Draw an OffsetFetch of one group or several, of some topics or all."""
    version = memory.version("OffsetFetch")
    stable = {"requireStable": memory.chance(0.5)} if version >= 7 else {}
    if version < _BATCHES:
        topics = _wanted(memory, version, may_be_all=version >= 2)
        group_id = memory.own_group(memory.pick((*memory.fetchable, "")), memory.fetchable[0])
        return "OffsetFetch", version, {"groupId": group_id, "topics": topics, **stable}
    count = memory.pick((1, 1, 2, 3))
    groups: list[Json] = []
    for group_id in memory.random.choices(memory.fetchable, k=count):
        group: Json = {
            "groupId": group_id,
            "topics": _wanted(memory, version, may_be_all=True),
        }
        if version >= 9:
            group |= {"memberId": None, "memberEpoch": -1}
            if memory.chance(0.15):
                who = memory.member()
                group |= {"memberId": who.member_id, "memberEpoch": who.generation}
        groups.append(group)
    return "OffsetFetch", version, {"groups": groups, **stable}


def _wanted(memory: Memory, version: int, *, may_be_all: bool) -> list[Json] | None:
    if may_be_all and memory.chance(0.5):
        return None
    if memory.chance(0.05):
        return []
    names = memory.random.sample(_NAMES, k=memory.pick((1, 2, 3)))
    return [
        {
            **_topic(memory, name, by_id=version >= _TOPIC_IDS),
            "partitionIndexes": memory.random.sample(range(6), k=memory.pick((1, 2, 3))),
        }
        for name in names
    ]


def delete(memory: Memory) -> Call:
    """Draw an OffsetDelete."""
    names = memory.random.sample(_NAMES, k=memory.pick((1, 1, 2)))
    topics = [
        {
            "name": name,
            "partitions": [
                {"partitionIndex": index}
                for index in memory.random.sample(range(6), k=memory.pick((1, 2, 4)))
            ],
        }
        for name in names
    ]
    group_id = memory.own_group(memory.pick((*memory.fetchable * 4, "")), memory.fetchable[0])
    return "OffsetDelete", memory.version("OffsetDelete"), {"groupId": group_id, "topics": topics}
