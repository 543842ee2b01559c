"""What stands in the way of a recorded group's upgrade to the consumer protocol (KIP-848).

Each hurdle says where its knowledge comes from: the trace, or Kafka's own rules where the trace is
silent. Source: kafka 4.4, GroupMetadataManager.validateOnlineUpgrade and convertToConsumerGroup,
ConsumerConfig.CONSUMER_PROTOCOL_UNSUPPORTED_CONFIGS.
"""

import re
from collections.abc import Iterable, Iterator
from enum import Enum, unique
from typing import Final

from msgspec import Struct

from coordinator_sim.assignors.registry import KAFKA_ASSIGNORS
from coordinator_sim.clients.client_kind import ClientKind, kind_of_lines, refusal
from coordinator_sim.errors import WireFormatError
from coordinator_sim.messages.embedded.consumer_protocol import decode_assignment
from coordinator_sim.replay.settings import CONSUMER_SESSION_TIMEOUT_MS
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.group_shape import SeenGroup

CONNECT: Final = "connect"
CONSUMER: Final = "consumer"
GROUP_PROTOCOL: Final = "group.protocol"
_FIRST_BROKER: Final = (4, 0)
_FIRST_CLIENTS: Final = {
    "apache-kafka-java": (4, 0),
    "librdkafka": (2, 12),
    "confluent-kafka-python": (2, 12),
    "confluent-kafka-go": (2, 12),
    "confluent-kafka-dotnet": (2, 12),
}
"""Releases whose consumer protocol is ready for production, by the name that clients give."""
_LIBRDKAFKA: Final = ("librdkafka", "confluent-kafka")
"""Beginnings of the names of librdkafka, and of what is built on it."""
_WITHOUT: Final = ("kafka-python", "aiokafka", "sarama", "kafkajs")
"""Beginnings of the names and client ids of clients that have none."""
_UNTOLD: Final = "unknown"
"""What brokers log of clients that do not tell their software."""
_OWN_TIMEOUT: Final = (
    "set consumer.session.timeout.ms for this group (kafka-configs.sh --entity-type groups) within "
    "the brokers' group.consumer.min.session.timeout.ms, 45000 by default, and its max"
)
_INSTEAD: Final = {
    ClientKind.CONNECT: "Leave it as it is; sink tasks' own groups are groups of consumers.",
    ClientKind.STREAMS: "Stop the whole application and start it anew with group.protocol=streams: "
    "brokers make a streams group of an empty group alone. It knows no group.instance.id.",
}
_NUMBERS: Final = re.compile(r"(\d+)\.(\d+)")


@unique
class Kind(Enum):
    """How much a hurdle matters."""

    BLOCKS = "blocks"
    """The upgrade does not happen as long as this is so."""
    CHANGES = "changes"
    """The upgrade happens, and something works otherwise after it."""
    CHECK = "check"
    """The trace does not tell; look before the deploy."""


class Hurdle(Struct, frozen=True, kw_only=True):
    """One thing to know before a group is upgraded.

    Args:
        what: What is so, or may be, in a sentence.
        fix: What to do, in a sentence.
    """

    kind: Kind
    what: str
    fix: str


def hurdles_of(
    seen: SeenGroup, events: Iterable[TraceEvent], version_range: str | None
) -> list[Hurdle]:
    """Return what to know before a group is upgraded, what blocks it first.

    Args:
        seen: The group.
        events: Events of the trace.
        version_range: Broker versions that fit the trace, as `3.9` or `4.x`; None is unknown.
    """
    events = [event for event in events if event.group_id == seen.group_id]
    kind = ClientKind.CONNECT if seen.protocol_type == CONNECT else kind_of_lines(events)
    why = refusal(kind, GROUP_PROTOCOL)
    if why is not None:
        return [Hurdle(kind=Kind.BLOCKS, what=f"{why}.", fix=_INSTEAD[kind])]
    found = [
        *_of_type(seen),
        *_of_brokers(version_range),
        *_of_assignor(seen, events),
        *_of_clients(seen),
        *_of_static_members(seen),
        *_of_timeouts(seen),
    ]
    return sorted(found, key=lambda each: list(Kind).index(each.kind))


def _of_type(seen: SeenGroup) -> Iterator[Hurdle]:
    if seen.protocol_type not in {None, "", CONSUMER}:
        yield Hurdle(
            kind=Kind.BLOCKS,
            what=f"The group's protocol type is {seen.protocol_type}: only groups of consumers "
            "convert, registries never do.",
            fix="Leave it as it is.",
        )


def _of_brokers(version_range: str | None) -> Iterator[Hurdle]:
    policy = (
        "On every broker group.consumer.migration.policy must be bidirectional, the default since "
        "4.0 (upgrade is enough for the way there), and the feature group.version at least 1: "
        "kafka-features.sh describe."
    )
    if version_range is None:
        yield Hurdle(
            kind=Kind.CHECK,
            what="The trace does not tell the brokers' release; the consumer protocol needs 4.0.",
            fix=f"Upgrade older brokers first. {policy}",
        )
        return
    newest = _release(version_range.partition("-")[2] or version_range)
    if newest is not None and newest < _FIRST_BROKER:
        yield Hurdle(
            kind=Kind.BLOCKS,
            what=f"The brokers are {version_range}: the consumer protocol came with 4.0.",
            fix=f"Upgrade the brokers first; that upgrade is not part of these figures. {policy}",
        )
        return
    yield Hurdle(
        kind=Kind.CHECK,
        what=f"The brokers are {version_range}; the trace does not tell whether they let groups "
        "convert.",
        fix=policy,
    )


def _of_assignor(seen: SeenGroup, events: Iterable[TraceEvent]) -> Iterator[Hurdle]:
    if _has_user_data(seen.group_id, events):
        yield Hurdle(
            kind=Kind.BLOCKS,
            what="Its assignments carry user data of a custom assignor, which brokers refuse to "
            "convert: the first new member is told GROUP_ID_NOT_FOUND.",
            fix="Change to one of Kafka's assignors in a deploy before this one.",
        )
    else:
        yield from _of_cooperative_librdkafka(seen)
    name = seen.assignor
    if name is not None and name not in KAFKA_ASSIGNORS:
        yield Hurdle(
            kind=Kind.CHANGES,
            what=f"{name} is no assignor of Kafka's: after the upgrade the broker assigns, and "
            "what it did is gone.",
            fix="Write it as a server-side assignor (group.consumer.assignors), or do without.",
        )
    sizes = list(seen.topics.values())
    if name == "range" and len(sizes) > len(set(sizes)):
        yield Hurdle(
            kind=Kind.CHANGES,
            what="range gives the same partitions of equally large topics to one member; uniform, "
            "the brokers' default, does not.",
            fix="Where the application joins topics, set group.remote.assignor=range.",
        )
    yield Hurdle(
        kind=Kind.CHANGES,
        what="A consumer of the new protocol does not start with "
        "partition.assignment.strategy, session.timeout.ms or heartbeat.interval.ms set.",
        fix="Take them out in the deploy that sets group.protocol=consumer.",
    )


def _of_cooperative_librdkafka(seen: SeenGroup) -> Iterator[Hurdle]:
    """A leader of librdkafka puts user data into assignments, from its second rebalance on.

    Source: Apache Kafka 4.4.0 and librdkafka 2.16.0, recorded:
    tests/unit/clients/recorded/librdkafka-consumer-upgrade-sticky.jsonl.
    """
    told = [software for software in seen.software if not software.startswith(_UNTOLD)]
    is_librdkafka = any(name.startswith(_LIBRDKAFKA) for name in told)
    if seen.assignor != "cooperative-sticky" or (told and not is_librdkafka):
        return
    yield Hurdle(
        kind=Kind.BLOCKS if is_librdkafka else Kind.CHECK,
        what="cooperative-sticky of librdkafka is a custom assignor to brokers, which refuse to "
        "convert the group: the first new member is told GROUP_ID_NOT_FOUND"
        + ("." if is_librdkafka else "; the trace does not tell whether its leader is one."),
        fix="With librdkafka, change to range or roundrobin in a deploy before this one, or stop "
        "the whole group once.",
    )


def _has_user_data(group_id: str, events: Iterable[TraceEvent]) -> bool:
    for event in events:
        if event.group_id != group_id or event.event is not Event.ASSIGNED:
            continue
        if not event.assignment or event.protocol_type == CONNECT:
            continue
        try:
            if decode_assignment(event.assignment).user_data:
                return True
        except WireFormatError:
            return False
    return False


def _of_clients(seen: SeenGroup) -> Iterator[Hurdle]:
    told = [software for software in seen.software if not software.startswith(_UNTOLD)]
    if not told:
        named = [name for name in seen.members if name.startswith(_WITHOUT)]
        hint = f" {named[0]} looks like one that has none." if named else ""
        yield Hurdle(
            kind=Kind.CHECK,
            what=f"The trace does not tell the clients' software.{hint}",
            fix="Java clients need 4.0, librdkafka and what is built on it 2.12; aiokafka and "
            "kafka-python have no consumer protocol. A request log of the brokers tells "
            "softwareName and softwareVersion.",
        )
        return
    for software in told:
        name, _, version = software.partition(" ")
        first, release = _FIRST_CLIENTS.get(name), _release(version)
        if first is not None and release is not None:
            if release < first:
                yield Hurdle(
                    kind=Kind.BLOCKS,
                    what=f"Clients are {software}: the consumer protocol is ready in "
                    f"{first[0]}.{first[1]}.",
                    fix="Upgrade the client library in a deploy before this one.",
                )
        elif name.startswith(_WITHOUT):
            yield Hurdle(
                kind=Kind.BLOCKS,
                what=f"Clients are {software}, which has no consumer protocol that is known here.",
                fix="They may stay as classic members of the converted group; they gain nothing.",
            )
        else:
            yield Hurdle(
                kind=Kind.CHECK,
                what=f"Clients are {software}; whether it has the consumer protocol is not known "
                "here.",
                fix="Look for KIP-848 in its release notes.",
            )


def _of_static_members(seen: SeenGroup) -> Iterator[Hurdle]:
    static = sum(instance_id is not None for instance_id in seen.members.values())
    if not static:
        return
    crashed = sum(not each.graceful for each in seen.restarts)
    told = f" {crashed} of the recorded restarts were such." if crashed else ""
    yield Hurdle(
        kind=Kind.CHANGES,
        what=f"{static} of {len(seen.members)} members are static. One that died without closing "
        "is let in again only when its session is over (UNRELEASED_INSTANCE_ID); the classic "
        f"protocol lets it in at once.{told}",
        fix="Stop processes in good order, or lower group.consumer.session.timeout.ms.",
    )


def _of_timeouts(seen: SeenGroup) -> Iterator[Hurdle]:
    told_ms, broker_ms = seen.session_timeout_ms, CONSUMER_SESSION_TIMEOUT_MS
    if told_ms is None:
        yield Hurdle(
            kind=Kind.CHECK,
            what="The trace does not tell session.timeout.ms. After the upgrade the brokers' "
            f"group.consumer.session.timeout.ms counts, {broker_ms // 1000} s by default, for all "
            "groups.",
            fix=f"Where yours is shorter, {_OWN_TIMEOUT}.",
        )
    elif told_ms != broker_ms:
        late = "longer" if told_ms < broker_ms else "sooner"
        yield Hurdle(
            kind=Kind.CHANGES,
            what=f"session.timeout.ms={told_ms} no longer counts: a dead member is missed after "
            f"the brokers' group.consumer.session.timeout.ms, {broker_ms} by default, which is "
            f"{late}.",
            fix=f"If that matters, {_OWN_TIMEOUT}.",
        )


def _release(text: str) -> tuple[int, int] | None:
    """Return the first two numbers of a release; `4.x` is 4.0, None is no release."""
    numbers = _NUMBERS.search(text.replace(".x", ".0"))
    return None if numbers is None else (int(numbers[1]), int(numbers[2]))
