"""Replies and records as the words that a script compares: member, and named fields.

A body is Kafka's JSON; member ids become the names that the script gave them.
"""

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.script.consumer_blobs import assigned

Json = dict[str, Any]
Words = dict[str, str]
_UUID_LENGTH: Final = 36
_NO_TOPICS: Final = 6
"""Bytes of a subscription in front of its topics: version and their count."""
Naming = Callable[[str | None], str]
"""Maps a member id to the script's name of it."""


def error_name(code: int) -> str:
    """Return Kafka's name of an error code."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def _bytes(data: str | None) -> str:
    return b64decode(data or "").decode("utf-8", "replace") or "-"


def _joined(names: Iterable[str]) -> str:
    return ",".join(sorted(names)) or "-"


def _prefix(member_id: str) -> str:
    """Return what stands before the random part of an id that the coordinator made.

    That is a UUID in Kafka, whose hyphens are its own; others end in something without any.
    """
    if member_id[-_UUID_LENGTH - 1 :].startswith("-"):
        return member_id[: -_UUID_LENGTH - 1]
    return member_id.rpartition("-")[0] or "-"


def _user_data(metadata: str) -> str:
    """Return the user data of a subscription, version 0: the last field, after the topics.

    Source: ConsumerProtocol.deserializeSubscription.
    """
    data = b64decode(metadata)
    if len(data) < _NO_TOPICS:
        return "-"
    at = _NO_TOPICS
    for _ in range(int.from_bytes(data[2:at], "big")):
        at += 2 + int.from_bytes(data[at : at + 2], "big")
    return data[at + 4 :].decode("utf-8", "replace") or "-"


def _join(data: Json, named: Naming) -> Words:
    return {
        "gen": str(data["generationId"]),
        "leader": named(data["leader"]),
        "id": named(data["memberId"]),
        "prefix": _prefix(data["memberId"]),
        "metadata": _joined(_user_data(member["metadata"]) for member in data["members"]),
        "members": _joined(named(member["memberId"]) for member in data["members"]),
        "protocol": data["protocolName"] or "-",
        "type": data.get("protocolType") or "-",
        "skip": str(data.get("skipAssignment", False)).lower(),
    }


def _sync(data: Json, _named: Naming) -> Words:
    words = {
        "work": _bytes(data["assignment"]),
        "type": data.get("protocolType") or "-",
        "name": data.get("protocolName") or "-",
    }
    partitions = assigned(b64decode(data["assignment"] or ""))
    return words if partitions is None else {**words, "has": partitions}


def _leave(data: Json, named: Naming) -> Words:
    members = data.get("members", ())
    return {
        "entries": ",".join(error_name(member["errorCode"]) for member in members) or "-",
        "ids": ",".join(named(member["memberId"]) for member in members) or "-",
    }


def _partition_errors(data: Json, _named: Naming) -> Words:
    return {
        f"{topic['name']}-{entry['partitionIndex']}": error_name(entry["errorCode"])
        for topic in data["topics"]
        for entry in topic["partitions"]
    }


def _fetched(topics: Iterable[Json], prefix: str) -> Iterator[tuple[str, str]]:
    for topic in topics:
        for entry in topic["partitions"]:
            name = f"{prefix}{topic['name']}-{entry['partitionIndex']}"
            yield name, str(entry["committedOffset"])
            yield f"{name}.epoch", str(entry.get("committedLeaderEpoch", -1))
            yield f"{name}.metadata", entry["metadata"] or "-"
            yield f"{name}.error", error_name(entry["errorCode"])


def _fetch(data: Json, _named: Naming) -> Words:
    if "groups" not in data:
        return _with_count(dict(_fetched(data["topics"], "")))
    words: Words = {}
    alone = len(data["groups"]) == 1
    for group in data["groups"]:
        prefix = "" if alone else f"{group['groupId']}/"
        if group["errorCode"]:
            words[f"{prefix}error"] = error_name(group["errorCode"])
        words.update(_fetched(group["topics"], prefix))
    return _with_count(words)


def _with_count(words: Words) -> Words:
    """Add the number of partitions that a fetch returned, and their order."""
    names = [name.removesuffix(".epoch") for name in words if name.endswith(".epoch")]
    return {**words, "count": str(len(names)), "order": ",".join(names) or "-"}


def _describe(data: Json, named: Naming) -> Words:
    """Describe the one group asked for; with several, names are `g/state` and so on."""
    words: Words = {"order": _in_order(data["groups"])}
    alone = len(data["groups"]) == 1
    for group in data["groups"]:
        prefix = "" if alone else f"{group['groupId']}/"
        members = group["members"]
        words |= {
            f"{prefix}error": error_name(group["errorCode"]),
            f"{prefix}state": group["groupState"] or "-",
            f"{prefix}type": group["protocolType"] or "-",
            f"{prefix}protocol": group["protocolData"] or "-",
            f"{prefix}members": _joined(named(member["memberId"]) for member in members),
            f"{prefix}clients": _joined(member["clientId"] for member in members),
            f"{prefix}hosts": _joined(member["clientHost"] for member in members),
            f"{prefix}metadata": _joined(_user_data(each["memberMetadata"]) for each in members),
            f"{prefix}work": _joined(_bytes(member["memberAssignment"]) for member in members),
            f"{prefix}instances": _joined(
                member["groupInstanceId"] for member in members if member.get("groupInstanceId")
            ),
        }
    return words


def _list(data: Json, _named: Naming) -> Words:
    words = {"groups": _joined(group["groupId"] for group in data["groups"])}
    for group in data["groups"]:
        name = group["groupId"]
        words[name] = group["protocolType"] or "-"
        words[f"{name}.state"] = group.get("groupState") or "-"
        words[f"{name}.type"] = group.get("groupType") or "-"
    return words


def _deleted(data: Json, _named: Naming) -> Words:
    errors = {entry["groupId"]: error_name(entry["errorCode"]) for entry in data["results"]}
    return {"order": _in_order(data["results"]), **errors}


def _in_order(groups: Iterable[Json]) -> str:
    return ",".join(group["groupId"] for group in groups) or "-"


def _found(data: Json, _named: Naming) -> Words:
    found = data.get("coordinators")
    if found is None:
        where = {
            "node": str(data["nodeId"]),
            "host": data["host"] or "-",
            "port": str(data["port"]),
        }
        return {**where, "found": "no" if data["nodeId"] < 0 else "yes"}
    words = {"keys": ",".join(entry["key"] for entry in found)}
    for entry in found:
        words[entry["key"]] = error_name(entry["errorCode"])
        words[f"{entry['key']}.node"] = str(entry["nodeId"])
    return words


_FIELDS: Final[dict[str, Callable[[Json, Naming], Words]]] = {
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "LeaveGroup": _leave,
    "OffsetCommit": _partition_errors,
    "TxnOffsetCommit": _partition_errors,
    "OffsetFetch": _fetch,
    "OffsetDelete": _partition_errors,
    "DescribeGroups": _describe,
    "ListGroups": _list,
    "DeleteGroups": _deleted,
    "FindCoordinator": _found,
}


def reply_words(api: str, data: Json, named: Naming) -> Words:
    """Return the words of a reply; `error` is the top-level one."""
    if "error" in data:
        return {"error": str(data["error"] or "NONE")}
    fields = _FIELDS.get(api)
    words = {} if fields is None else fields(data, named)
    return {"error": error_name(data.get("errorCode", 0)), **words}


def record_words(record: Json, named: Naming) -> tuple[str, Words]:
    """Return an appended record's kind (`offset`, `group`, `marker`, `unknown`) and its fields."""
    if "control" in record:
        return "marker", {"is": record["control"], "pid": str(record.get("producerId", -1))}
    if "undecoded" in record:
        return "unknown", {}
    producer = {"pid": str(record["producerId"])} if "producerId" in record else {}
    key, value = record["key"]["data"], record["value"]
    if "topic" in key:
        name = f"{key['topic']}-{key['partition']}"
        if value is None:
            return "offset", {name: "-", **producer}
        data = value["data"]
        fields = {
            name: str(data["offset"]),
            "version": str(value["version"]),
            "metadata": data.get("metadata") or "-",
            "expires": str(data.get("expireTimestamp", "-")),
        }
        return "offset", {**fields, **producer}
    if value is None:
        return "group", {"gone": "yes", "of": key["group"]}
    return "group", _group_words(value["data"], named) | {"version": str(value["version"])}


def _group_words(data: Json, named: Naming) -> Words:
    members = data["members"]
    return {
        "gen": str(data["generation"]),
        "leader": named(data["leader"]),
        "members": _joined(named(member["memberId"]) for member in members),
        "protocol": data["protocol"] or "-",
        "type": data["protocolType"] or "-",
        "clients": _joined(member["clientId"] for member in members),
        "hosts": _joined(member["clientHost"] for member in members),
        "instances": _joined(
            member["groupInstanceId"] for member in members if member.get("groupInstanceId")
        ),
        "work": _joined(_bytes(member["assignment"]) for member in members),
        "metadata": _joined(_user_data(member["subscription"]) for member in members),
        "session": ",".join(str(member["sessionTimeout"]) for member in members),
        "rebalance": ",".join(str(member.get("rebalanceTimeout", -1)) for member in members),
    }
