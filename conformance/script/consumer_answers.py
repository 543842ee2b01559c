"""Answers of consumer groups and share groups as the words that a script compares; records, too.

Partitions are written `foo:0-2+5,bar:1`: by topic, ascending; `none` for none, `-` for null. Epochs
are written from `E`, the epoch of a new group's first assignment: 1 up to Kafka 4.2, then 2.
"""

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from struct import unpack_from
from typing import Final

from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.script.answers import Json, Naming, Words, error_name
from coordinator_sim_conformance.script.consumer_blobs import spans

_MEMBER_STATES: Final = {0: "stable", 1: "unrevoked", 2: "unreleased"}
"""Source: kafka 4.4, MemberState."""
_BATCH_LENGTH: Final = 12
"""Bytes of a record batch that its length does not count."""
_LAST_DELTA: Final = 23
"""Where a record batch says the offset of its last record, from its base offset."""
_BATCH_START: Final = _LAST_DELTA + 4
_KINDS: Final = {
    3: "epoch",
    4: "topics",
    5: "member",
    6: "target-epoch",
    7: "target",
    8: "current",
    16: "regex",
}
"""Key type of a record -> the script's word for it."""


def first_epoch(profile: str) -> int:
    """Return the epoch of a new group's first assignment."""
    return profile_named(profile).consumer_first_epoch + 1


def epoch_word(epoch: int, first: int) -> str:
    """Return an epoch as scripts write it; 0 and below mean no epoch of a group."""
    if epoch <= 0:
        return str(epoch)
    return "E" if epoch == first else f"E{epoch - first:+d}"


def epoch_of(word: str, first: int) -> int:
    """Return the epoch that a script writes, as `E+1` or as a number."""
    return first + int(word[1:] or 0) if word.startswith("E") else int(word)


def held(topics: Iterable[Json], named: Naming) -> str:
    """Write partitions of several topics."""
    entries = {named(each["topicId"]): each["partitions"] for each in topics}
    filled = {name: partitions for name, partitions in entries.items() if partitions}
    return ",".join(f"{name}:{spans(filled[name])}" for name in sorted(filled)) or "none"


def _said(text: str | None) -> str:
    return (text or "-").replace(" ", "_")


def _heartbeat(data: Json, named: Naming, first: int) -> Words:
    assignment = data["assignment"]
    return {
        "says": _said(data["errorMessage"]),
        "id": named(data["memberId"]),
        "epoch": epoch_word(data["memberEpoch"], first),
        "number": str(data["memberEpoch"]),
        "every": str(data["heartbeatIntervalMs"]),
        "has": "-" if assignment is None else held(assignment["topicPartitions"], named),
    }


def _describe(data: Json, named: Naming, first: int) -> Words:
    """Describe the one group asked for; with several, names are `g/state` and so on."""
    words: Words = {"count": str(len(data["groups"]))}
    alone = len(data["groups"]) == 1
    for group in data["groups"]:
        prefix = "" if alone else f"{group['groupId']}/"
        words |= {
            f"{prefix}error": error_name(group["errorCode"]),
            f"{prefix}state": group["groupState"] or "-",
            f"{prefix}epoch": epoch_word(group["groupEpoch"], first),
            f"{prefix}number": str(group["groupEpoch"]),
            f"{prefix}target": epoch_word(group["assignmentEpoch"], first),
            f"{prefix}assignor": group["assignorName"] or "-",
            f"{prefix}members": ",".join(sorted(named(m["memberId"]) for m in group["members"]))
            or "-",
            f"{prefix}shared": _shared(group["members"]),
        }
        for member in group["members"]:
            name = f"{prefix}{named(member['memberId'])}"
            words |= {
                name: epoch_word(member["memberEpoch"], first),
                f"{name}.has": held(member["assignment"]["topicPartitions"], named),
                f"{name}.count": str(len(_partitions([member]))),
                f"{name}.topics": _names(member["assignment"]["topicPartitions"]),
                f"{name}.kind": str(member.get("memberType", "-")),
            }
            if "targetAssignment" in member:
                shall = held(member["targetAssignment"]["topicPartitions"], named)
                words[f"{name}.shall"] = shall
    return words


def _names(topics: Iterable[Json]) -> str:
    return ",".join(sorted(each["topicName"] for each in topics)) or "-"


def _shared(members: Iterable[Json]) -> str:
    """Return how many partitions more than one member has."""
    owned = _partitions(members)
    return str(len(owned) - len(set(owned)))


def _partitions(members: Iterable[Json]) -> list[tuple[str, int]]:
    return [
        (topic["topicId"], partition)
        for member in members
        for topic in member["assignment"]["topicPartitions"]
        for partition in topic["partitions"]
    ]


# -- share partitions ----------------------------------------------------------------------


def _fetched(data: Json, named: Naming, _first: int) -> Words:
    """Name what was acquired, with the number of its deliveries: `got=foo-0:0-4x1+7x2`."""
    words: Words = {"says": _said(data["errorMessage"])}
    words["lock"] = str(data["acquisitionLockTimeoutMs"])
    got: list[str] = []
    for name, each in _share_partitions(data, named):
        words[f"{name}.error"] = error_name(each["errorCode"])
        words[f"{name}.acked"] = error_name(each["acknowledgeErrorCode"])
        words[f"{name}.read"] = "+".join(_batch_spans(each["records"])) or "none"
        if each["acquiredRecords"]:
            got.append(f"{name}:{_acquired(each['acquiredRecords'])}")
    words["got"] = ",".join(sorted(got)) or "none"
    return words


def _share_partitions(data: Json, named: Naming) -> Iterator[tuple[str, Json]]:
    for topic in data["responses"]:
        for each in topic["partitions"]:
            yield f"{named(topic['topicId'])}-{each['partitionIndex']}", each


def _acquired(ranges: Iterable[Json]) -> str:
    """Write acquired records; neighbours that were delivered equally often are one range."""
    merged: list[tuple[int, int, int]] = []
    for each in sorted(ranges, key=lambda one: int(one["firstOffset"])):
        first, last, count = each["firstOffset"], each["lastOffset"], each["deliveryCount"]
        if merged and merged[-1][1:] == (first - 1, count):
            first = merged.pop()[0]
        merged.append((first, last, count))
    return "+".join(f"{_span(first, last)}x{count}" for first, last, count in merged)


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


def _batch_spans(records: str | None) -> Iterator[str]:
    """Return the offsets of whole batches in the bytes of an answer."""
    data, at = b64decode(records or ""), 0
    while len(data) - at >= _BATCH_START:
        base, length = unpack_from(">qi", data, at)
        if at + _BATCH_LENGTH + length > len(data):
            return
        (delta,) = unpack_from(">i", data, at + _LAST_DELTA)
        yield _span(base, base + delta)
        at += _BATCH_LENGTH + length


def _acknowledged(data: Json, named: Naming, _first: int) -> Words:
    errors = {name: error_name(each["errorCode"]) for name, each in _share_partitions(data, named)}
    lock_ms = data.get("acquisitionLockTimeoutMs", "-")
    return {"says": _said(data["errorMessage"]), "lock": str(lock_ms), **errors}


def _share_offsets(data: Json, _named: Naming, _first: int) -> Words:
    (group,) = data["groups"]
    words = {"error": error_name(group["errorCode"])}
    for topic in group["topics"]:
        for each in topic["partitions"]:
            name = f"{topic['topicName']}-{each['partitionIndex']}"
            words[name] = str(each["startOffset"])
            words[f"{name}.lag"] = str(each["lag"])
            words[f"{name}.error"] = error_name(each["errorCode"])
    return words


def _share_offsets_altered(data: Json, _named: Naming, _first: int) -> Words:
    return {
        f"{topic['topicName']}-{each['partitionIndex']}": error_name(each["errorCode"])
        for topic in data["responses"]
        for each in topic["partitions"]
    }


def _share_offsets_deleted(data: Json, _named: Naming, _first: int) -> Words:
    return {topic["topicName"]: error_name(topic["errorCode"]) for topic in data["responses"]}


# -- records, and settings of groups --------------------------------------------------------


def _produced(data: Json, _named: Naming, _first: int) -> Words:
    (topic,) = data["responses"]
    (entry,) = topic["partitionResponses"]
    return {"error": error_name(entry["errorCode"]), "at": str(entry["baseOffset"])}


def _enlisted(data: Json, _named: Naming, _first: int) -> Words:
    errors = [
        each["partitionErrorCode"]
        for topic in data["resultsByTopicV3AndBelow"]
        for each in topic["resultsByPartition"]
    ]
    return {"error": error_name(next(filter(None, errors), 0))}


def _configured(data: Json, _named: Naming, _first: int) -> Words:
    (resource,) = data["responses"]
    return {"error": error_name(resource["errorCode"]), "says": _said(resource["errorMessage"])}


CONSUMER_ANSWERS: Final[dict[str, Callable[[Json, Naming, int], Words]]] = {
    "ConsumerGroupHeartbeat": _heartbeat,
    "ShareGroupHeartbeat": _heartbeat,
    "ConsumerGroupDescribe": _describe,
    "ShareGroupDescribe": _describe,
    "ShareFetch": _fetched,
    "ShareAcknowledge": _acknowledged,
    "DescribeShareGroupOffsets": _share_offsets,
    "AlterShareGroupOffsets": _share_offsets_altered,
    "DeleteShareGroupOffsets": _share_offsets_deleted,
    "Produce": _produced,
    "AddPartitionsToTxn": _enlisted,
    "IncrementalAlterConfigs": _configured,
}
"""The words of each reply of consumer groups and share groups, and of what concerns records."""


def is_consumer_record(record: Json) -> bool:
    """Whether a record in Kafka's JSON is of a consumer group."""
    return "key" in record and record["key"]["type"] in _KINDS


def consumer_record_words(record: Json, named: Naming, first: int) -> tuple[str, Words]:
    """Return the kind of a consumer group's record, and its words; `gone=yes` for a tombstone."""
    key = record["key"]
    data = key["data"]
    words: Words = {}
    if "memberId" in data:
        words["of"] = named(data["memberId"])
    if "regularExpression" in data:
        words["of"] = data["regularExpression"]
    if record["value"] is None:
        words["gone"] = "yes"
    else:
        words |= _value_words(record["value"]["data"], named, first)
    return _KINDS[key["type"]], words


def _value_words(data: Json, named: Naming, first: int) -> Words:
    words: Words = {}
    for field in ("epoch", "memberEpoch", "assignmentEpoch"):
        if field in data:
            words["epoch"] = epoch_word(data[field], first)
    if "state" in data:
        words["state"] = _MEMBER_STATES[data["state"]]
        words["before"] = epoch_word(data["previousMemberEpoch"], first)
        words["has"] = held(data["assignedPartitions"], named)
        words["revokes"] = held(data["partitionsPendingRevocation"], named)
    elif "topicPartitions" in data:
        words["shall"] = held(data["topicPartitions"], named)
    if "subscribedTopicNames" in data:
        words["names"] = ",".join(sorted(data["subscribedTopicNames"])) or "-"
        words["assignor"] = data["serverAssignor"] or "-"
    if "topics" in data:
        words["topics"] = ",".join(sorted(map(_topic_name, data["topics"]))) or "-"
    return words


def _topic_name(topic: str | Json) -> str:
    return topic if isinstance(topic, str) else str(topic["topicName"])
