"""Judges exchanges as they pass: each once at its request and once at its reply.

Errors that Kafka's coordinators have for each API, by the place in the reply.

The sets are wide: an error that any release or setting can bring is in them.

Source: clients/.../common/requests/*Response.java (possible error codes); since which version a
request can name an instance id or an epoch: clients/.../common/message/*Request.json.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.errors import ERRORS, ErrorCode
from coordinator_sim_conformance.proxy import syncs
from coordinator_sim_conformance.proxy.commits import (
    judge_fetch,
    judge_places,
    note_commit,
    note_committed,
)
from coordinator_sim_conformance.proxy.exchanges import Exchange, Flag, flag
from coordinator_sim_conformance.proxy.groups import GroupModel, Recent
from coordinator_sim_conformance.proxy.joins import judge_join
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


GROUPS_KEPT: Final = 10_000
WATCHED: Final = frozenset(
    {
        "JoinGroup",
        "SyncGroup",
        "Heartbeat",
        "LeaveGroup",
        "OffsetCommit",
        "TxnOffsetCommit",
        "OffsetFetch",
    }
)
"""APIs whose exchanges are judged; those of offsets from version 1, as 0 kept them apart."""


class Counts(Struct):
    """What was seen so far.

    Args:
        exchanges: Judged ones.
        groups: Groups; one that was forgotten meanwhile counts again.
        flags: Replies that were told as flagged.
        repeated: Flags that were not told: the group has broken that rule before.
    """

    exchanges: int = 0
    groups: int = 0
    flags: int = 0
    repeated: int = 0


class Judge:
    """Judges the exchanges of a cluster; memory is bounded by groups, time by the message.

    Args:
        all_pass: Whether every client of the groups passes here, so that what another might have
            committed need not be allowed for.
        most_groups: How many groups are remembered; the one that was seen longest ago goes.
    """

    def __init__(self, *, all_pass: bool = False, most_groups: int = GROUPS_KEPT) -> None:
        self.counts = Counts()
        self._all_pass = all_pass
        self._groups: Recent[str, GroupModel] = Recent(most_groups)
        self._places = count()

    def place(self) -> int:
        """Return the place of the next request or reply among all that pass."""
        return next(self._places)

    def sent(self, exchange: Exchange) -> None:
        """Remember what a request brings, before anybody can be answered."""
        group = self._group(exchange.group_id)
        if exchange.api == "SyncGroup":
            syncs.note_sync(group, exchange)
        elif exchange.api in {"OffsetCommit", "TxnOffsetCommit"} and self._all_pass:
            note_commit(group, exchange)

    def replied(self, exchange: Exchange) -> list[Flag]:
        """Return the flags of a reply; a group's second break of a rule is counted alone."""
        self.counts.exchanges += 1
        group = self._group(exchange.group_id)
        judged = _JUDGES.get(exchange.api, _of_offsets)
        found = chain(judge_errors(exchange), judged(group, exchange, self._all_pass))
        return self._new(group, list(found))

    def wire(self, found: Flag) -> list[Flag]:
        """Return a flag of bytes that no group can be read from, unless its like was told."""
        return self._new(self._group(found.group_id), [found])

    def _new(self, group: GroupModel, found: list[Flag]) -> list[Flag]:
        told = []
        for each in found:
            if each.rule.rule_id in group.flagged:
                self.counts.repeated += 1
                continue
            group.flagged.add(each.rule.rule_id)
            told.append(each)
        self.counts.flags += len(told)
        return told

    def _group(self, group_id: str) -> GroupModel:
        known = self._groups.get(group_id)
        if known is None:
            known = GroupModel()
            self.counts.groups += 1
        self._groups.put(group_id, known)
        return known


def _of_join(group: GroupModel, exchange: Exchange, _: bool) -> Iterator[Flag]:
    if exchange.error:
        syncs.note_error(group, exchange)
    else:
        yield from syncs.judge_served(group, exchange)
        syncs.note_joined(group, exchange)
    yield from judge_join(group, exchange)


def _of_sync(group: GroupModel, exchange: Exchange, _: bool) -> Iterator[Flag]:
    yield from _of_heartbeat(group, exchange, _)
    yield from syncs.judge_sync(group, exchange)


def _of_heartbeat(group: GroupModel, exchange: Exchange, _: bool) -> Iterator[Flag]:
    if exchange.error:
        syncs.note_error(group, exchange)
    else:
        yield from syncs.judge_served(group, exchange)


def _of_leave(group: GroupModel, exchange: Exchange, _: bool) -> Iterator[Flag]:
    syncs.note_leave(group, exchange)
    yield from ()


def _of_offsets(group: GroupModel, exchange: Exchange, all_pass: bool) -> Iterator[Flag]:
    yield from judge_places(exchange)
    if exchange.api == "OffsetFetch":
        if all_pass and exchange.group_id:
            yield from judge_fetch(group, exchange, _fetched(exchange.reply))
        return
    if any(each["errorCode"] == 0 for each in _partitions(exchange.reply["topics"])):
        yield from syncs.judge_served(group, exchange)
    if all_pass:
        note_committed(group, exchange)


def _partitions(topics: Iterable[Json]) -> Iterator[Json]:
    return (each for topic in topics for each in topic["partitions"])


def _fetched(reply: Json) -> list[Json]:
    groups = reply.get("groups")
    found: list[Json] = (groups[0] if groups else reply)["topics"]
    return found


_JUDGES: Final[dict[str, Callable[[GroupModel, Exchange, bool], Iterator[Flag]]]] = {
    "JoinGroup": _of_join,
    "SyncGroup": _of_sync,
    "Heartbeat": _of_heartbeat,
    "LeaveGroup": _of_leave,
}
