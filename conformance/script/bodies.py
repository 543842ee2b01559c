"""Request bodies in Kafka's JSON, in any version of the group APIs.

Nested objects have exactly the fields of their version, as Kafka's own converters require.

Source: kafka trunk, clients/src/main/resources/common/message/*Request.json.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from struct import pack
from typing import Any, Final

from msgspec import Struct

Json = dict[str, Any]
_NO_TOPICS: Final = 6
"""Bytes of a subscription in front of its topics: version and their count."""
_NEWEST_SUBSCRIPTION: Final = 3
"""Source: ConsumerProtocolSubscription.json."""

MAX_VERSIONS: Final[dict[str, dict[str, int]]] = {
    "0.10.2": {
        "JoinGroup": 1,
        "SyncGroup": 0,
        "Heartbeat": 0,
        "LeaveGroup": 0,
        "OffsetCommit": 2,
        "OffsetFetch": 2,
        "DescribeGroups": 0,
        "ListGroups": 0,
        "FindCoordinator": 0,
    },
    "2.8": {
        "JoinGroup": 7,
        "SyncGroup": 5,
        "Heartbeat": 4,
        "LeaveGroup": 4,
        "OffsetCommit": 8,
        "OffsetFetch": 7,
        "OffsetDelete": 0,
        "TxnOffsetCommit": 3,
        "DescribeGroups": 5,
        "ListGroups": 4,
        "DeleteGroups": 2,
        "FindCoordinator": 3,
    },
}
"""Newest versions in older Kafkas; newer ones know every version that a script names."""


def version_for(profile: str, api: str, wanted: int) -> int:
    """Return the version of a request: the wanted one, or the newest that the profile knows."""
    return min(wanted, MAX_VERSIONS.get(profile, {}).get(api, wanted))


def text(data: bytes) -> str:
    """Encode bytes for JSON."""
    return b64encode(data).decode("ascii")


def subscription(topics: Sequence[str], user_data: bytes = b"") -> bytes:
    """Return a consumer's subscription, version 0, as its JoinGroup carries it.

    Source: ConsumerProtocol.serializeSubscription.
    """
    names = [topic.encode() for topic in topics]
    listed = b"".join(pack(">h", len(name)) + name for name in names)
    return pack(">hi", 0, len(names)) + listed + pack(">i", len(user_data)) + user_data


def with_topics(metadata: str, renamed: Callable[[str], str]) -> str:
    """Return a subscription, as JSON has it, to the same topics by other names.

    What is no subscription of a known version stays as it is.
    """
    data = b64decode(metadata)
    version, count = int.from_bytes(data[:2], "big"), int.from_bytes(data[2:_NO_TOPICS], "big")
    if len(data) < _NO_TOPICS or version > _NEWEST_SUBSCRIPTION:
        return metadata
    named, at = [data[:_NO_TOPICS]], _NO_TOPICS
    for _ in range(count):
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        if end > len(data) or end == at + 2:
            return metadata
        name = renamed(data[at + 2 : end].decode()).encode()
        named.append(pack(">h", len(name)) + name)
        at = end
    return text(b"".join((*named, data[at:])))


def _since(version: int, first: int, **fields: object) -> Json:
    return fields if version >= first else {}


class Identity(Struct, frozen=True, kw_only=True):
    """Identity of the member that sends a request."""

    group_id: str
    member_id: str = ""
    instance_id: str | None = None
    generation_id: int = -1


def join_group(
    version: int,
    who: Identity,
    *,
    timeouts_ms: tuple[int, int],
    protocol_type: str,
    protocols: Mapping[str, bytes],
) -> Json:
    """Return a JoinGroup; the timeouts are session and rebalance timeout."""
    return {
        "groupId": who.group_id,
        "sessionTimeoutMs": timeouts_ms[0],
        **_since(version, 1, rebalanceTimeoutMs=timeouts_ms[1]),
        "memberId": who.member_id,
        **_since(version, 5, groupInstanceId=who.instance_id),
        "protocolType": protocol_type,
        "protocols": [
            {"name": name, "metadata": text(metadata)} for name, metadata in protocols.items()
        ],
        **_since(version, 8, reason=None),
    }


def sync_group(
    version: int,
    who: Identity,
    *,
    protocol: tuple[str | None, str | None],
    assignments: Mapping[str, bytes],
) -> Json:
    """Return a SyncGroup; `protocol` is its type and name."""
    return {
        "groupId": who.group_id,
        "generationId": who.generation_id,
        "memberId": who.member_id,
        **_since(version, 3, groupInstanceId=who.instance_id),
        **_since(version, 5, protocolType=protocol[0], protocolName=protocol[1]),
        "assignments": [
            {"memberId": member_id, "assignment": text(work)}
            for member_id, work in assignments.items()
        ],
    }


def heartbeat(version: int, who: Identity) -> Json:
    """Return a Heartbeat."""
    return {
        "groupId": who.group_id,
        "generationId": who.generation_id,
        "memberId": who.member_id,
        **_since(version, 3, groupInstanceId=who.instance_id),
    }


def consumer_group_heartbeat(
    version: int,
    who: Identity,
    *,
    subscription: tuple[Sequence[str] | None, str | None],
    owned: Mapping[str, Sequence[int]] | None,
    rebalance_timeout_ms: int = -1,
    wishes: tuple[str | None, str | None] = (None, None),
) -> Json:
    """Return a ConsumerGroupHeartbeat.

    Args:
        version: Version 1 has the regular expression.
        who: Group, member and epoch.
        subscription: Names of topics and a regular expression; None for what is not said.
        owned: Partitions by topic id; None where nothing is said of them.
        rebalance_timeout_ms: -1 says nothing.
        wishes: Rack and assignor; None says nothing.
    """
    topics = None
    if owned is not None:
        topics = [{"topicId": each, "partitions": list(owned[each])} for each in owned]
    names = subscription[0]
    return {
        "groupId": who.group_id,
        "memberId": who.member_id,
        "memberEpoch": who.generation_id,
        "instanceId": who.instance_id,
        "rackId": wishes[0],
        "rebalanceTimeoutMs": rebalance_timeout_ms,
        "subscribedTopicNames": None if names is None else list(names),
        **_since(version, 1, subscribedTopicRegex=subscription[1]),
        "serverAssignor": wishes[1],
        "topicPartitions": topics,
    }


def share_group_heartbeat(who: Identity, names: Sequence[str] | None) -> Json:
    """Return a ShareGroupHeartbeat; None for topics that are not said."""
    return {
        "groupId": who.group_id,
        "memberId": who.member_id,
        "memberEpoch": who.generation_id,
        "rackId": None,
        "subscribedTopicNames": None if names is None else list(names),
    }


def streams_group_heartbeat(
    who: Identity,
    *,
    topology: Json | None,
    active: Mapping[str, Sequence[int]] | None,
    process_id: str | None,
    rebalance_timeout_ms: int = -1,
    shuts_down: bool = False,
) -> Json:
    """Return a StreamsGroupHeartbeat of version 0; None for tasks that are not reported."""
    others: list[Json] | None = None if active is None else []
    return {
        "groupId": who.group_id,
        "memberId": who.member_id,
        "memberEpoch": who.generation_id,
        "endpointInformationEpoch": 0,
        "instanceId": who.instance_id,
        "rackId": None,
        "rebalanceTimeoutMs": rebalance_timeout_ms,
        "topology": topology,
        "activeTasks": None
        if active is None
        else [{"subtopologyId": name, "partitions": list(ids)} for name, ids in active.items()],
        "standbyTasks": others,
        "warmupTasks": others,
        "processId": process_id,
        "userEndpoint": None,
        "clientTags": None,
        "taskOffsets": None,
        "taskEndOffsets": None,
        "shutdownApplication": shuts_down,
    }


def topology(epoch: int, topics: Sequence[str]) -> Json:
    """Return a topology with a subtopology for each source topic, named `0` and so on."""
    return {
        "epoch": epoch,
        "subtopologies": [
            {
                "subtopologyId": str(number),
                "sourceTopics": [topic],
                "sourceTopicRegex": [],
                "stateChangelogTopics": [],
                "repartitionSinkTopics": [],
                "repartitionSourceTopics": [],
                "copartitionGroups": [],
            }
            for number, topic in enumerate(topics)
        ],
    }


def describe_new_groups(groups: Sequence[str]) -> Json:
    """Return a ConsumerGroupDescribe, ShareGroupDescribe or StreamsGroupDescribe."""
    return {"groupIds": list(groups), "includeAuthorizedOperations": False}


def leave_group(version: int, group_id: str, members: Sequence[tuple[str, str | None]]) -> Json:
    """Return a LeaveGroup of member ids with instance ids; one member alone before version 3."""
    if version < 3:  # noqa: PLR2004 - version 3 brings the list
        return {"groupId": group_id, "memberId": members[0][0]}
    return {
        "groupId": group_id,
        "members": [
            {
                "memberId": member_id,
                "groupInstanceId": instance_id,
                **_since(version, 5, reason=None),
            }
            for member_id, instance_id in members
        ],
    }


class Offset(Struct, frozen=True, kw_only=True):
    """An offset to commit."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str = ""


def _committed(offsets: Sequence[Offset], version: int, first_epoch: int) -> list[Json]:
    topics: dict[str, list[Json]] = {}
    for each in offsets:
        entry = {
            "partitionIndex": each.partition,
            "committedOffset": each.offset,
            **_since(version, first_epoch, committedLeaderEpoch=each.leader_epoch),
            "committedMetadata": each.metadata,
        }
        topics.setdefault(each.topic, []).append(entry)
    return [{"name": name, "partitions": entries} for name, entries in topics.items()]


def offset_commit(
    version: int, who: Identity, offsets: Sequence[Offset], retention_ms: int = -1
) -> Json:
    """Return an OffsetCommit; only versions 2 to 4 carry a retention."""
    has_retention = version in {2, 3, 4}
    return {
        "groupId": who.group_id,
        "generationIdOrMemberEpoch": who.generation_id,
        "memberId": who.member_id,
        **_since(version, 7, groupInstanceId=who.instance_id),
        **({"retentionTimeMs": retention_ms} if has_retention else {}),
        "topics": _committed(offsets, version, 6),
    }


def txn_offset_commit(
    version: int, who: Identity, offsets: Sequence[Offset], producer: tuple[int, int]
) -> Json:
    """Return a TxnOffsetCommit; `producer` is its id and epoch."""
    return {
        "transactionalId": f"txn-{producer[0]}",
        "groupId": who.group_id,
        "producerId": producer[0],
        "producerEpoch": producer[1],
        **_since(
            version,
            3,
            generationId=who.generation_id,
            memberId=who.member_id,
            groupInstanceId=who.instance_id,
        ),
        "topics": _committed(offsets, version, 2),
    }


def _grouped(partitions: Sequence[tuple[str, int]]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def offset_fetch(
    version: int,
    groups: Sequence[str],
    partitions: Sequence[tuple[str, int]] | None,
    *,
    require_stable: bool = False,
    member: tuple[str | None, int] = (None, -1),
) -> Json:
    """Return an OffsetFetch of partitions, or of everything; `member` is an id and its epoch."""
    topics: list[Json] | None = None
    if partitions is not None:
        topics = [
            {"name": name, "partitionIndexes": indexes}
            for name, indexes in _grouped(partitions).items()
        ]
    stable = _since(version, 7, requireStable=require_stable)
    if version < 8:  # noqa: PLR2004 - version 8 asks for several groups
        return {"groupId": groups[0], "topics": topics, **stable}
    return {
        "groups": [
            {
                "groupId": group_id,
                **_since(version, 9, memberId=member[0], memberEpoch=member[1]),
                "topics": topics,
            }
            for group_id in groups
        ],
        **stable,
    }


def offset_delete(group_id: str, partitions: Sequence[tuple[str, int]]) -> Json:
    """Return an OffsetDelete, version 0."""
    return {
        "groupId": group_id,
        "topics": [
            {"name": name, "partitions": [{"partitionIndex": index} for index in indexes]}
            for name, indexes in _grouped(partitions).items()
        ],
    }


def describe_groups(version: int, groups: Sequence[str]) -> Json:
    """Return a DescribeGroups."""
    return {"groups": list(groups), **_since(version, 3, includeAuthorizedOperations=False)}


def list_groups(version: int, states: Sequence[str], types: Sequence[str]) -> Json:
    """Return a ListGroups with its filters."""
    return {
        **_since(version, 4, statesFilter=list(states)),
        **_since(version, 5, typesFilter=list(types)),
    }


def delete_groups(groups: Sequence[str]) -> Json:
    """Return a DeleteGroups."""
    return {"groupsNames": list(groups)}


def find_coordinator(version: int, keys: Sequence[str], key_type: int) -> Json:
    """Return a FindCoordinator of one key, or of several from version 4 on."""
    if version >= 4:  # noqa: PLR2004 - version 4 asks for several keys
        return {"keyType": key_type, "coordinatorKeys": list(keys)}
    return {"key": keys[0], **_since(version, 1, keyType=key_type)}
