"""Judges exchanges as they pass: each once at its request and once at its reply."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count
from typing import Final

from msgspec import Struct

from coordinator_sim_conformance.proxy import syncs
from coordinator_sim_conformance.proxy.commits import (
    judge_fetch,
    judge_places,
    note_commit,
    note_committed,
)
from coordinator_sim_conformance.proxy.errors import judge_errors
from coordinator_sim_conformance.proxy.exchanges import Exchange, Flag
from coordinator_sim_conformance.proxy.groups import GroupModel, Recent
from coordinator_sim_conformance.proxy.joins import judge_join
from coordinator_sim_conformance.wire.kio_bodies import Json

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
