"""Lists of consumer and streams groups whose order Kafka leaves to its hash maps, put in order.

No client sees these orders: a member's topics, tasks and partitions, the topics that it names, in
which order the members of one LeaveGroup are removed. Other records of one batch and members of a
description stay in their order.
"""

from collections.abc import Mapping
from typing import Any, Final

Json = dict[str, Any]

_APIS: Final = (
    "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe",
    "StreamsGroupHeartbeat",
    "StreamsGroupDescribe",
)
_MAPPED: Final = (
    "activeTasks",
    "standbyTasks",
    "warmupTasks",
    "activePartitions",
    "standbyPartitions",
    "topicConfigs",
    "clientTags",
)
"""Lists of streams groups."""
_RENAMED: Final = {"acceptableRecoveryLagLegacy": "acceptableRecoveryLag"}
"""Fields that another release calls otherwise."""
_RECORDS: Final = (4, 7, 8, 15)
_TOMBSTONES: Final = (8, 7, 5)
_REMOVAL: Final = len(_TOMBSTONES)
_TOPICS: Final = (
    "topicPartitions",
    "assignedPartitions",
    "partitionsPendingRevocation",
    "initializingTopics",
    "initializedTopics",
    "deletingTopics",
)


def ordered_reply(reply: Json) -> Json:
    """A reply with such lists in order."""
    if reply.get("api") not in _APIS or "data" not in reply:
        return reply
    return {**reply, "data": _ordered(reply["data"])}


def ordered_records(records: list[Json]) -> list[Json]:
    """Records with such lists in order, and members that are removed one after the other too.

    Kafka has those in a set of members, whose hash differs from run to run.
    """
    found = [_ordered_record(record) for record in records]
    start = 0
    while start < len(found):
        end = start
        while _removed_member(found[end : end + _REMOVAL]) is not None:
            end += _REMOVAL
        if end - start > _REMOVAL:
            found[start:end] = _sorted_removals(found[start:end])
        start = max(end, start + 1)
    return found


def _removed_member(records: list[Json]) -> str | None:
    """The member that three tombstones remove; None if they are none."""
    keys = [each.get("key") for each in records if each.get("value") is None]
    if [key.get("type") for key in keys if isinstance(key, Mapping)] != list(_TOMBSTONES):
        return None
    ids = {key["data"]["memberId"] for key in keys if isinstance(key, Mapping)}
    return ids.pop() if len(ids) == 1 else None


def _sorted_removals(records: list[Json]) -> list[Json]:
    """Whole removals in the order of the ids, each record at the place of another."""
    removals = [records[at : at + _REMOVAL] for at in range(0, len(records), _REMOVAL)]
    removals.sort(key=lambda removal: str(removal[0]["key"]["data"]["memberId"]))
    moved = [record for removal in removals for record in removal]
    return [
        {**record, "offset": place.get("offset")}
        for record, place in zip(moved, records, strict=True)
    ]


def _ordered_record(record: Json) -> Json:
    """A record with such lists in order."""
    key, value = record.get("key"), record.get("value")
    if not isinstance(key, Mapping) or not isinstance(value, Mapping):
        return record
    if key.get("type") not in _RECORDS:
        return record
    return {**record, "value": {**value, "data": _ordered(value["data"])}}


def _ordered(node: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(node, list):
        return [_ordered(each) for each in node]
    if not isinstance(node, dict):
        return node
    named = {str(name): _ordered(each) for name, each in node.items()}
    found: Json = {_RENAMED.get(name, name): each for name, each in named.items()}
    for name in _MAPPED:
        if isinstance(found.get(name), list):
            found[name] = sorted(found[name], key=str)
    for name in _TOPICS:
        if isinstance(found.get(name), list):
            found[name] = sorted(found[name], key=lambda topic: str(topic["topicId"]))
    for name, key in (("topics", "topicName"), ("subscribedTopicNames", "")):
        if isinstance(found.get(name), list):
            found[name] = sorted(found[name], key=lambda each: str(each if not key else each[key]))
    return _with_ordered_numbers(found)


def _with_ordered_numbers(found: Json) -> Json:
    """A node with its numbers of partitions in order, each with its epoch."""
    epochs = found.get("assignmentEpochs")
    if isinstance(epochs, list):
        pairs = sorted(zip(found["partitions"], epochs, strict=True))
        found["partitions"] = [partition for partition, _ in pairs]
        found["assignmentEpochs"] = [epoch for _, epoch in pairs]
    elif isinstance(found.get("partitions"), list):
        found["partitions"] = sorted(found["partitions"])
    return found
