"""Errors that Kafka's coordinators have for each API, by the place in the reply.

The sets are wide: an error that any release or setting can bring is in them.

Source: clients/.../common/requests/*Response.java (possible error codes); since which version a
request can name an instance id or an epoch: clients/.../common/message/*Request.json.
"""

from collections.abc import Iterator
from typing import Final

from coordinator_sim.kafka.errors import ERRORS, ErrorCode
from coordinator_sim_conformance.proxy.exchanges import Exchange, Flag, flag
from coordinator_sim_conformance.proxy.rules import KNOWN_ERROR, THROTTLE
from coordinator_sim_conformance.wire.kio_bodies import Json

E: Final = ErrorCode
_ANYWHERE: Final = {
    E.UNKNOWN_SERVER_ERROR: 0,
    E.NONE: 0,
    E.REQUEST_TIMED_OUT: 0,
    E.COORDINATOR_LOAD_IN_PROGRESS: 0,
    E.COORDINATOR_NOT_AVAILABLE: 0,
    E.NOT_COORDINATOR: 0,
    E.INVALID_GROUP_ID: 0,
    E.GROUP_AUTHORIZATION_FAILED: 0,
    E.CLUSTER_AUTHORIZATION_FAILED: 0,
    E.UNSUPPORTED_VERSION: 0,
    E.INVALID_REQUEST: 0,
    E.KAFKA_STORAGE_ERROR: 0,
    E.NOT_ENOUGH_REPLICAS: 0,
    E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: 0,
    E.CORRUPT_MESSAGE: 0,
    E.NOT_LEADER_OR_FOLLOWER: 0,
    E.MESSAGE_TOO_LARGE: 0,
    E.RECORD_LIST_TOO_LARGE: 0,
    E.INVALID_RECORD: 0,
}
"""What every API of a group may answer, and since which version: some append to a log."""
_MEMBER: Final = {E.UNKNOWN_MEMBER_ID: 0, E.ILLEGAL_GENERATION: 0, E.REBALANCE_IN_PROGRESS: 0}
_TOPIC: Final = {
    E.TOPIC_AUTHORIZATION_FAILED: 0,
    E.UNKNOWN_TOPIC_OR_PARTITION: 0,
    E.UNKNOWN_TOPIC_ID: 10,
}
_BY_PLACE: Final[dict[tuple[str, str], dict[ErrorCode, int]]] = {
    ("JoinGroup", "top"): _MEMBER
    | {
        E.INCONSISTENT_GROUP_PROTOCOL: 0,
        E.INVALID_SESSION_TIMEOUT: 0,
        E.MEMBER_ID_REQUIRED: 4,
        E.FENCED_INSTANCE_ID: 5,
        E.UNRELEASED_INSTANCE_ID: 5,
        E.GROUP_MAX_SIZE_REACHED: 0,
    },
    ("SyncGroup", "top"): _MEMBER | {E.INCONSISTENT_GROUP_PROTOCOL: 0, E.FENCED_INSTANCE_ID: 3},
    ("Heartbeat", "top"): _MEMBER | {E.FENCED_INSTANCE_ID: 3},
    ("LeaveGroup", "top"): {E.UNKNOWN_MEMBER_ID: 0},
    ("LeaveGroup", "member"): {E.UNKNOWN_MEMBER_ID: 3, E.FENCED_INSTANCE_ID: 3},
    ("OffsetCommit", "partition"): _MEMBER
    | _TOPIC
    | {
        E.OFFSET_METADATA_TOO_LARGE: 0,
        E.INVALID_COMMIT_OFFSET_SIZE: 0,
        E.FENCED_INSTANCE_ID: 7,
        E.STALE_MEMBER_EPOCH: 9,
        # Of a group that is not there from version 9 on, of a share group in any.
        E.GROUP_ID_NOT_FOUND: 0,
    },
    ("OffsetFetch", "top"): {
        E.UNKNOWN_MEMBER_ID: 8,
        E.STALE_MEMBER_EPOCH: 8,
        E.GROUP_ID_NOT_FOUND: 0,
        E.TOPIC_AUTHORIZATION_FAILED: 0,
    },
    ("OffsetFetch", "partition"): _TOPIC
    | {
        E.UNSTABLE_OFFSET_COMMIT: 7,
        E.UNKNOWN_MEMBER_ID: 0,
        E.STALE_MEMBER_EPOCH: 0,
        E.GROUP_ID_NOT_FOUND: 0,
    },
}
"""API and place -> what may stand there besides, and since which version."""


def judge_errors(exchange: Exchange) -> Iterator[Flag]:
    """Flag an error that Kafka does not have there, and a negative throttle time."""
    throttle_ms = exchange.reply.get("throttleTimeMs", 0)
    if throttle_ms < 0:
        yield flag(THROTTLE, exchange, f"throttleTimeMs is {throttle_ms}")
    for place, where, code in _told(exchange.api, exchange.reply):
        known = _BY_PLACE.get((exchange.api, place))
        if known is None or code in _ANYWHERE:
            continue
        since = known.get(ERRORS[code])
        if since is None or exchange.version < since:
            said = f"{ERRORS[code].name} {where} of {exchange.api} {exchange.version}"
            yield flag(KNOWN_ERROR, exchange, said)


def _told(api: str, reply: Json) -> Iterator[tuple[str, str, int]]:
    """Yield each error of a reply: its kind of place, the place in words, and its code."""
    if "errorCode" in reply:
        yield "top", "as the whole answer", reply["errorCode"]
    for member in reply.get("members", ()) if api == "LeaveGroup" else ():
        yield "member", f"for {member['memberId']!r}", member["errorCode"]
    for group in reply.get("groups", ()):
        if "errorCode" in group:
            yield "top", f"for {group['groupId']!r}", group["errorCode"]
        yield from _of_partitions(group.get("topics") or [])
    yield from _of_partitions(reply.get("topics") or [])


def _of_partitions(topics: list[Json]) -> Iterator[tuple[str, str, int]]:
    for topic in topics:
        name = topic.get("name") or topic.get("topicId")
        for each in topic.get("partitions", ()):
            yield "partition", f"for {name}-{each['partitionIndex']}", each.get("errorCode", 0)
