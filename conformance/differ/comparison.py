"""Compares two answers and finds the first difference.

Everything is compared, in its order: the virtual time, every reply with its instant, every appended
record, every call of the share coordinator and every cut of its log. A broker has no order across
the partitions of `__consumer_offsets`, whose events several threads drain; but its timers have the
wheel's order, and so have the writes of a deletion, and both sides here do one thing at a time. So
nothing is sorted before it is compared. One order is the reference's own: a request's own answer
comes after those of others that the request completed, because the reference asks for it when the
coordinator has returned (as KafkaApis of 3.9 does; a 4.x broker has other threads in between).
`Harness.hears_own_last` does the same. And what consumer groups and share groups list in the order
of hash maps, which no client sees, is put in order; see below.

The text of an `error` is not compared, only its presence.

Lists of consumer and streams groups whose order Kafka leaves to its hash maps, put in order.

No client sees these orders: a member's topics, tasks and partitions, the topics that it names, in
which order the members of one LeaveGroup are removed. Other records of one batch and members of a
description stay in their order.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

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


_ABSENT: Final = "(nothing)"


class Difference(Struct, frozen=True):
    """The first field that differs in two answers to one command.

    Args:
        path: Path of the field, such as `replies[0].data.errorCode`.
        ours: Value of the simulator.
        theirs: Value of the reference.
        what: Kind of answer: the API of a reply, `record`, or the op.
    """

    path: str
    ours: object
    theirs: object
    what: str

    @property
    def signature(self) -> str:
        """Kind and field without places, equal for differences of one cause."""
        fields = [part.split("[")[0] for part in self.path.split(".")]
        return f"{self.what}:{'.'.join(fields)}"


def first_difference(command: Json, ours: Json, theirs: Json) -> Difference | None:
    """Return the first field in which two answers differ, or None."""
    return next(differences(command, ours, theirs), None)


def differences(command: Json, ours: Json, theirs: Json) -> Iterator[Difference]:
    """Yield every field in which two answers differ."""
    if ours == theirs:
        return
    left, right = _comparable(ours), _comparable(theirs)
    for path, one, other in _walk("", left, right):
        yield Difference(path, one, other, _kind(command, path, left, right))


def _comparable(answer: Json) -> Json:
    """Return the parts to compare, in order."""
    return {
        "error": "(an error)" if "error" in answer else None,
        "now": answer.get("now"),
        "partition": answer.get("partition"),
        "replies": [ordered_reply(reply) for reply in answer.get("replies", [])],
        "records": ordered_records(answer.get("records", [])),
        "persister": answer.get("persister", []),
        "deleted": answer.get("deleted", []),
    }


def _walk(path: str, one: object, other: object) -> Iterator[tuple[str, object, object]]:
    """Yield the leaves that differ, in the order of the fields."""
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for name in [*one, *(name for name in other if name not in one)]:
            below = f"{path}.{name}" if path else name
            yield from _walk(below, one.get(name, _ABSENT), other.get(name, _ABSENT))
    elif isinstance(one, list) and isinstance(other, list):
        for index in range(max(len(one), len(other))):
            pair = [each[index] if index < len(each) else _ABSENT for each in (one, other)]
            yield from _walk(f"{path}[{index}]", *pair)
    else:
        yield path, one, other


def _kind(command: Json, path: str, ours: Json, theirs: Json) -> str:
    """Return the kind of answer that a path is in."""
    if path.startswith("records"):
        return "record"
    if path.startswith("persister"):
        return "persister"
    if path.startswith("replies["):
        index = int(path[len("replies[") :].split("]", maxsplit=1)[0])
        for answer in (theirs, ours):
            if index < len(answer["replies"]):
                return str(answer["replies"][index].get("api"))
    return str(command.get("api", command["op"]))
