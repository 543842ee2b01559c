"""The blobs of consumers in JoinGroup and SyncGroup, as scripts write them and endpoints need them.

Partitions are written as in `consumer_answers`. Bytes that are no such blob stay what they are.
"""

from base64 import b64decode
from collections.abc import Callable, Iterable
from itertools import groupby

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded import consumer_protocol
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim_conformance.script.bodies import text, with_topics

Renamed = Callable[[str], str]
"""Another name of a topic."""

_WITH_OWNED = 1


def spans(partitions: Iterable[int]) -> str:
    """Write partitions of one topic, such as `0-2+5`."""
    ordered = sorted(partitions)
    runs = groupby(enumerate(ordered), key=lambda entry: entry[1] - entry[0])
    parts = [[number for _, number in run] for _, run in runs]
    return "+".join(f"{part[0]}-{part[-1]}" if part[1:] else str(part[0]) for part in parts)


def partitions_of(word: str) -> dict[str, list[int]]:
    """Return the partitions by topic that a script writes."""
    found: dict[str, list[int]] = {}
    for entry in filter(None, word.split(",") if word != "none" else ()):
        topic, _, numbers = entry.partition(":")
        for run in numbers.split("+"):
            first, _, last = run.partition("-")
            found.setdefault(topic, []).extend(range(int(first), int(last or first) + 1))
    return found


def places_of(word: str) -> tuple[TopicPartition, ...]:
    """Return the partitions that a script writes."""
    return tuple(
        TopicPartition(topic, index)
        for topic, indexes in partitions_of(word).items()
        for index in indexes
    )


def assignment(word: str) -> bytes:
    """Return an assignment of these partitions, as a leader's SyncGroup carries it."""
    return consumer_protocol.encode_assignment(ConsumerAssignment(partitions=places_of(word)))


def subscription(topics: Iterable[str], user_data: bytes, owned: str) -> bytes:
    """Return a subscription that tells what the member has."""
    told = Subscription(
        topics=tuple(topics), user_data=user_data, owned_partitions=places_of(owned)
    )
    return consumer_protocol.encode_subscription(told, _WITH_OWNED)


def assigned(data: bytes) -> str | None:
    """Return the partitions of an assignment as scripts write them; None if it is none."""
    try:
        found = consumer_protocol.decode_assignment(data).partitions
    except WireFormatError:
        return None
    topics: dict[str, list[int]] = {}
    for place in found:
        topics.setdefault(place.topic, []).append(place.partition)
    return ",".join(f"{name}:{spans(topics[name])}" for name in sorted(topics)) or "none"


def renamed_assignment(told: str, renamed: Renamed) -> str:
    """Return an assignment, as JSON has it, with other names of topics."""
    data = b64decode(told)
    try:
        found = consumer_protocol.decode_assignment(data)
    except WireFormatError:
        return told
    places = _renamed(found.partitions, renamed)
    blob = ConsumerAssignment(partitions=places, user_data=found.user_data)
    return text(consumer_protocol.encode_assignment(blob, consumer_protocol.blob_version(data)))


def renamed_subscription(told: str, renamed: Renamed) -> str:
    """Return a subscription, as JSON has it, with other names of topics."""
    data = b64decode(told)
    try:
        found = consumer_protocol.decode_subscription(data)
    except WireFormatError:
        return with_topics(told, renamed)
    if not found.owned_partitions:
        return with_topics(told, renamed)
    blob = Subscription(
        topics=tuple(renamed(topic) for topic in found.topics),
        user_data=found.user_data,
        owned_partitions=_renamed(found.owned_partitions, renamed),
        generation_id=found.generation_id,
        rack_id=found.rack_id,
    )
    return text(consumer_protocol.encode_subscription(blob, consumer_protocol.blob_version(data)))


def _renamed(places: Iterable[TopicPartition], renamed: Renamed) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(renamed(place.topic), place.partition) for place in places)
