"""Raw offset requests of version 0, and of versions 1 and 2 for comparison, to one broker.

Real brokers and the simulated one get equal requests. They show where offsets are stored, which
requests are refused, and the order of partitions in answers.
"""

import json
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.field_frames import Fields
from coordinator_sim_conformance.real_kafka.data_answers import Transport

TOPICS: Final = {"t": 8, "other-topic": 3, "gone": 1}
"""Names and numbers of partitions; the last one is deleted, and created again."""
NOWHERE: Final = "nowhere"
"""A name without a topic."""
_PATIENCE: Final = 120
_PAUSE_MS: Final = 250
_LONGEST: Final = 4_096
"""Default of `offset.metadata.max.bytes`."""

Place = tuple[str, int]


class Question(Struct, frozen=True):
    """One request with the name under which its answer is recorded."""

    label: str
    api: ApiKey
    version: int
    fields: Fields


def answered(transport: Transport) -> Iterator[str]:
    """Yield each question with its answer, as a line of JSON.

    Args:
        transport: Connection to a broker without topics and groups of these names.
    """
    for topic in TOPICS:
        _create(transport, topic)
    _await_coordinator(transport, "g")
    for question in _before_the_deletion():
        yield _told(transport, question)
    _delete(transport, "gone")
    _create(transport, "gone")
    for question in _after_the_deletion():
        yield _told(transport, question)


def _told(transport: Transport, question: Question) -> str:
    answer = transport.call(question.api, question.version, question.fields)
    told = [question.api.name, question.version, question.label, _plain(question.api, answer)]
    return json.dumps(told, separators=(",", ":"))


def _plain(api: ApiKey, answer: Fields) -> object:
    """Return the outcomes in the order of the answer; only the names of a listing."""
    if api is ApiKey.LIST_GROUPS:
        return sorted(each["groupId"] for each in answer["groups"])
    if api is ApiKey.OFFSET_COMMIT:
        return [
            [topic["name"], each["partitionIndex"], each["errorCode"]]
            for topic in answer["topics"]
            for each in topic["partitions"]
        ]
    return [
        [
            topic["name"],
            each["partitionIndex"],
            each["committedOffset"],
            each["metadata"],
            each["errorCode"],
        ]
        for topic in answer["topics"]
        for each in topic["partitions"]
    ]


# -- questions -----------------------------------------------------------------------------


def commit(
    label: str, version: int, group_id: str, *offsets: tuple[Place, int], metadata: str | None = ""
) -> Question:
    """Return an OffsetCommit without a member, in the order given."""
    topics: dict[str, list[Fields]] = {}
    for (topic, index), offset in offsets:
        entry: Fields = {
            "partitionIndex": index,
            "committedOffset": offset,
            "commitTimestamp": -1,
            "committedMetadata": metadata,
        }
        topics.setdefault(topic, []).append(entry)
    fields: Fields = {
        "groupId": group_id,
        "topics": [{"name": name, "partitions": entries} for name, entries in topics.items()],
    }
    return Question(label, ApiKey.OFFSET_COMMIT, version, fields)


def fetch(label: str, version: int, group_id: str, *places: Place) -> Question:
    """Return an OffsetFetch of these partitions."""
    topics: dict[str, list[int]] = {}
    for topic, index in places:
        topics.setdefault(topic, []).append(index)
    fields: Fields = {
        "groupId": group_id,
        "topics": [{"name": name, "partitionIndexes": each} for name, each in topics.items()],
    }
    return Question(label, ApiKey.OFFSET_FETCH, version, fields)


def _before_the_deletion() -> Iterator[Question]:
    yield from _apart()
    yield from _refused()
    yield from _named()
    yield from _ordered()
    yield commit("a topic that will go", 0, "g", (("gone", 0), 77))


def _apart() -> Iterator[Question]:
    """Ask whether version 0 and the other versions see each other's offsets."""
    first, second = ("t", 0), ("t", 1)
    yield fetch("nothing is kept yet", 0, "g", first)
    yield commit("the first", 0, "g", (first, 5), metadata="told")
    yield fetch("the first, without its metadata, and none", 0, "g", first, second)
    yield fetch("not in the log", 1, "g", first)
    yield Question("no group", ApiKey.LIST_GROUPS, 0, {})
    yield commit("the log has one too", 1, "g", (first, 7), metadata="logged")
    yield fetch("in the log", 1, "g", first)
    yield fetch("as before", 0, "g", first)
    yield commit("in the log alone", 2, "g", (second, 9))
    yield fetch("not in the tree", 0, "g", second)
    yield Question("a group", ApiKey.LIST_GROUPS, 0, {})
    yield commit("over the first", 0, "g", (first, 4))
    yield fetch("the newer one", 0, "g", first)
    yield fetch("of another group", 0, "h", first)


def _refused() -> Iterator[Question]:
    """Ask about invalid topics, partitions, offsets, metadata."""
    yield commit("unknown topic beside a known one", 0, "g", ((NOWHERE, 0), 1), (("t", 2), 2))
    yield fetch("unknown topic beside a known one", 0, "g", (NOWHERE, 0), ("t", 2))
    yield commit("unknown topic alone", 0, "g", ((NOWHERE, 0), 1))
    yield commit("partition beyond the last", 0, "g", (("t", 99), 6))
    yield fetch("partition beyond the last", 0, "g", ("t", 99))
    yield commit("negative partition", 0, "g", (("t", -1), 6))
    yield fetch("negative partition", 0, "g", ("t", -1))
    yield commit("negative offset", 0, "g", (("t", 3), -5))
    yield fetch("negative offset", 0, "g", ("t", 3))
    yield commit("greatest offset", 0, "g", (("t", 3), 2**63 - 1))
    yield fetch("greatest offset", 0, "g", ("t", 3))
    yield commit("no metadata", 0, "g", (("t", 4), 1), metadata=None)
    yield commit("longest metadata", 0, "g", (("t", 4), 2), metadata="x" * _LONGEST)
    yield commit("too long metadata", 0, "g", (("t", 4), 3), metadata="x" * (_LONGEST + 1))
    yield fetch("before the too long metadata", 0, "g", ("t", 4))
    yield commit("longest in UTF-16", 0, "g", (("t", 4), 4), metadata="\U0001f980" * 2_048)
    yield commit("no partitions", 0, "g")
    yield fetch("no partitions", 0, "g")


def _named() -> Iterator[Question]:
    """Ask about groups whose names make paths that ZooKeeper takes or refuses."""
    place = ("t", 5)
    for name in ("", "a/b", "/a", "a/", "a//b", ".", "..", "a/../b", "...", "a b", "caf\u00e9"):
        yield commit(f"group {name!r}", 0, name, (place, len(name)))
        yield fetch(f"group {name!r}", 0, name, place)
    for code in (0x00, 0x01, 0x1F, 0x7F, 0x9F, 0xA0, 0xE000, 0xF8FF, 0xFFF0, 0xFFFF, 0x10000):
        name = f"a{chr(code)}"
        yield commit(f"group with U+{code:04X}", 0, name, (place, code))
        yield fetch(f"group with U+{code:04X}", 0, name, place)
    yield commit("below a partition to be", 0, "p/offsets/t/5", (place, 8))
    yield fetch("a node on the way", 0, "p", place)
    yield commit("on that node", 0, "p", (place, 3))
    yield fetch("that node", 0, "p", place)
    yield fetch("below it", 0, "p/offsets/t/5", place)


def _ordered() -> Iterator[Question]:
    """Ask about the order of partitions in answers."""
    many = [("t", 7), ("other-topic", 2), ("t", 6), (NOWHERE, 1), ("t", 0), ("other-topic", 0)]
    more = [*many, ("t", 3), ("other-topic", 1), ("t", 5), (NOWHERE, 0)]
    for places in (many[:3], many, more):
        label = f"{len(places)} partitions"
        offsets = [(place, number) for number, place in enumerate(places)]
        yield commit(label, 0, "many", *offsets)
        yield fetch(label, 0, "many", *places)
    yield commit("a partition twice", 0, "many", (("t", 0), 1), (("t", 0), 2))
    yield fetch("a partition twice", 0, "many", ("t", 0), ("t", 0))


def _after_the_deletion() -> Iterator[Question]:
    yield fetch("of a topic that went and came", 0, "g", ("gone", 0))
    yield fetch("kept to the end", 0, "g", ("t", 0))


# -- topics and coordinators ---------------------------------------------------------------


def _create(transport: Transport, name: str) -> None:
    topic = {
        "name": name,
        "numPartitions": TOPICS[name],
        "replicationFactor": 1,
        "assignments": [],
        "configs": [],
    }
    fields: Fields = {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}
    for _ in range(_PATIENCE):
        answer = transport.call(ApiKey.CREATE_TOPICS, 1, fields)
        if answer["topics"][0]["errorCode"] == ErrorCode.NONE:
            break
        transport.wait(_PAUSE_MS)
    for _ in range(_PATIENCE):
        told = transport.call(ApiKey.METADATA, 1, {"topics": [{"name": name}]})["topics"][0]
        led = [each for each in told["partitions"] if each["leaderId"] >= 0]
        if not told["errorCode"] and len(led) == TOPICS[name]:
            return
        transport.wait(_PAUSE_MS)
    raise DataError(f"topic {name} is not there: {told}")


def _delete(transport: Transport, name: str) -> None:
    fields: Fields = {"topicNames": [name], "timeoutMs": 10_000}
    transport.call(ApiKey.DELETE_TOPICS, 0, fields)
    for _ in range(_PATIENCE):
        told = transport.call(ApiKey.METADATA, 1, {"topics": None})["topics"]
        if name not in [each["name"] for each in told]:
            return
        transport.wait(_PAUSE_MS)
    raise DataError(f"topic {name} does not go")


def _await_coordinator(transport: Transport, group_id: str) -> None:
    """Ask until the group has a coordinator that has loaded."""
    for _ in range(_PATIENCE):
        transport.call(ApiKey.FIND_COORDINATOR, 0, {"key": group_id})
        question = fetch("", 1, group_id, ("t", 0))
        answer = transport.call(ApiKey.OFFSET_FETCH, 1, question.fields)
        if answer["topics"][0]["partitions"][0]["errorCode"] == ErrorCode.NONE:
            return
        transport.wait(_PAUSE_MS)
    raise DataError(f"group {group_id} has no coordinator")
