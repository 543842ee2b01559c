"""Judges answers to OffsetCommit and OffsetFetch."""

from collections.abc import Iterable, Iterator
from typing import Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.proxy import rules
from coordinator_sim_conformance.proxy.exchanges import NEVER, Exchange, Flag, flag
from coordinator_sim_conformance.proxy.groups import Committed, GroupModel, PartitionOffsets
from coordinator_sim_conformance.wire.kio_bodies import Json

_MOST_OPEN: Final = 16
"""Offsets of a partition that are open at once; with more nothing is said of it any more."""
_MAY_HAVE_LANDED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
Place = tuple[str, int]
"""Name or id of a topic, and the number of a partition."""


def judge_places(exchange: Exchange) -> Iterator[Flag]:
    """Flag an answer about other partitions than those of the request."""
    if exchange.error:
        return
    for asked, answered in _asked_and_answered(exchange):
        wanted, came = set(asked), set(answered)
        if wanted != came:
            missing = sorted(map(str, wanted - came)) or "none"
            said = f"missing are {missing}, more than asked are {sorted(map(str, came - wanted))}"
            yield flag(rules.EVERY_PARTITION, exchange, f"{exchange.api}: {said}")


def note_commit(group: GroupModel, exchange: Exchange) -> None:
    """Remember offsets when they are sent."""
    for topic in exchange.request["topics"]:
        is_named = bool(topic.get("name"))
        if group.names_topics not in {None, is_named}:
            for each in group.offsets.values():
                each.is_unsure = True
        group.names_topics = is_named
        for each in topic["partitions"]:
            place = (_topic(topic), each["partitionIndex"])
            known = group.offsets.get(place) or PartitionOffsets()
            known.sent.append(Committed(each["committedOffset"], exchange))
            known.is_unsure |= len(known.sent) > _MOST_OPEN or exchange.api != "OffsetCommit"
            if known.is_unsure:
                known.sent.clear()
            group.offsets.put(place, known)


def note_committed(group: GroupModel, exchange: Exchange) -> None:
    """Remember how offsets were answered; what a later one has replaced is forgotten."""
    for topic in exchange.reply["topics"]:
        for each in topic["partitions"]:
            known = group.offsets.get((_topic(topic), each["partitionIndex"]))
            if known is None:
                continue
            own = [one for one in known.sent if one.exchange is exchange]
            if each["errorCode"] == 0:
                known.sent = [
                    one for one in known.sent if not NEVER < one.exchange.replied < exchange.sent
                ]
                for one in own:
                    one.acknowledged = True
            elif each["errorCode"] not in _MAY_HAVE_LANDED:
                known.sent = [one for one in known.sent if one.exchange is not exchange]


def judge_fetch(group: GroupModel, exchange: Exchange, topics: Iterable[Json]) -> Iterator[Flag]:
    """Flag an offset that was replaced before the fetch was sent.

    No offset at all is not judged: it may have expired, or its topic was deleted.
    """
    for topic in topics:
        for each in topic["partitions"]:
            known = group.offsets.get((_topic(topic), each["partitionIndex"]))
            offset = each["committedOffset"]
            if known is None or known.is_unsure or offset < 0 or each["errorCode"]:
                continue
            last = [one for one in known.sent if one.acknowledged]
            is_sure = any(one.exchange.replied < exchange.sent for one in last)
            if is_sure and all(one.offset != offset for one in known.sent):
                said = (
                    f"{_topic(topic)}-{each['partitionIndex']} is at {offset}, "
                    f"{last[-1].offset} was committed and answered before"
                )
                yield flag(rules.LAST_COMMIT, exchange, said, (last[-1].exchange,))


def _topic(topic: Json) -> str:
    found: str = topic.get("name") or topic.get("topicId") or ""
    return found


def _asked_and_answered(exchange: Exchange) -> Iterator[tuple[list[Place], list[Place]]]:
    """Yield partitions of the request and of the answer, group by group."""
    if "groups" not in exchange.request:
        if exchange.request["topics"] is not None:
            yield _places(exchange.request["topics"]), _places(exchange.reply["topics"])
        return
    asked = {each["groupId"]: each["topics"] for each in exchange.request["groups"]}
    for each in exchange.reply["groups"]:
        wanted = asked.get(each["groupId"])
        if wanted is not None and not each["errorCode"]:
            yield _places(wanted), _places(each["topics"])


def _places(topics: Iterable[Json]) -> list[Place]:
    found = []
    for topic in topics:
        indexes = topic.get("partitionIndexes")
        if indexes is None:
            indexes = [each["partitionIndex"] for each in topic["partitions"]]
        found += [(_topic(topic), index) for index in indexes]
    return found
