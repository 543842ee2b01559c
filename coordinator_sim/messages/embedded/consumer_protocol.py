"""The consumer's embedded blobs: subscriptions in JoinGroup, assignments in SyncGroup.

The user data inside belongs to the assignor (see `assignors.user_data`) and is opaque here. Bytes
after the last field of the version are ignored, as in Java.

Source: kafka trunk, clients/.../consumer/internals/ConsumerProtocol.java and the schemas
ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json, versions 0 to 3.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.orders.iteration_order import java_string_key
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.codec.classic_types import (
    ClassicReader,
    array_bytes,
    bytes_bytes,
    int16_bytes,
    int32_bytes,
    int32_lists_bytes,
    string_bytes,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
"""The protocol type of groups whose subscriptions a broker reads."""

HIGHEST_VERSION: Final = 3
"""Version written by default; a higher version is read as this one."""


def blob_version(data: bytes) -> int:
    """The version in front of a consumer or Connect blob.

    Raises:
        WireFormatError: The version is truncated or negative.
    """
    return _read_version(ClassicReader(data, "embedded blob"))


def encode_subscription(subscription: Subscription, version: int = HIGHEST_VERSION) -> bytes:
    """A subscription as the Java consumer writes it.

    Topics are sorted, owned partitions sorted by topic and partition; fields that the version
    lacks are left out.

    Args:
        subscription: The subscription; its lists may have any order.
        version: 0 to 3.
    """
    parts = [
        int16_bytes(version),
        array_bytes(
            [string_bytes(topic) for topic in sorted(subscription.topics, key=java_string_key)]
        ),
        bytes_bytes(subscription.user_data),
    ]
    if version >= 1:
        owned = sorted(
            subscription.owned_partitions, key=lambda tp: (java_string_key(tp.topic), tp[1])
        )
        parts.append(_partitions_bytes(owned))
    if version >= 2:  # noqa: PLR2004  the version that brought the generation
        parts.append(int32_bytes(subscription.generation_id))
    if version >= HIGHEST_VERSION:
        parts.append(string_bytes(subscription.rack_id))
    return b"".join(parts)


def decode_subscription(data: bytes) -> Subscription:
    """A subscription, lists in wire order.

    Any negative generation reads as -1. An empty rack is kept, because librdkafka writes it
    where Java writes null; assignors take it for none.

    Raises:
        WireFormatError: A field is cut short, null where it may not be, or not UTF-8.
    """
    reader = ClassicReader(data, "consumer subscription")
    version = _read_version(reader)
    topics = tuple(reader.array("topics", lambda: reader.string("topic")))
    user_data = reader.nullable_bytes("user_data")
    owned = _read_partitions(reader, "owned_partitions") if version >= 1 else ()
    generation_id = reader.int32("generation_id") if version >= 2 else -1  # noqa: PLR2004  as above
    rack_id = reader.nullable_string("rack_id") if version >= HIGHEST_VERSION else None
    return Subscription(
        topics=topics,
        user_data=user_data,
        owned_partitions=owned,
        generation_id=max(generation_id, -1),
        rack_id=rack_id,
    )


@lru_cache(maxsize=4_096)
def subscribed_topics(data: bytes) -> tuple[str, ...] | None:
    """The topics of a subscription as a broker reads them; None where it cannot.

    A broker reads any version as version 0. Names that are not UTF-8 get replacement characters.

    Source: ClassicGroup.computeSubscribedTopics.
    """
    reader = ClassicReader(data, "consumer subscription")
    try:
        reader.int16("version")
        topics = reader.array("topics", lambda: reader.java_string("topic"))
        reader.nullable_bytes("user_data")
    except WireFormatError:
        return None
    return tuple(topics)


def encode_assignment(assignment: ConsumerAssignment, version: int = HIGHEST_VERSION) -> bytes:
    """An assignment as the Java leader writes it: topics in the order first seen.

    Args:
        assignment: Partitions in list order.
        version: 0 to 3; all have the same fields.
    """
    return b"".join(
        (
            int16_bytes(version),
            _partitions_bytes(assignment.partitions),
            bytes_bytes(assignment.user_data),
        )
    )


def decode_assignment(data: bytes) -> ConsumerAssignment:
    """An assignment, partitions in wire order.

    Raises:
        WireFormatError: A field is cut short, null where it may not be, or not UTF-8. Empty
            bytes, which a member outside the assignment receives, are cut short too.
    """
    reader = ClassicReader(data, "consumer assignment")
    _read_version(reader)
    partitions = _read_partitions(reader, "assigned_partitions")
    return ConsumerAssignment(partitions=partitions, user_data=reader.nullable_bytes("user_data"))


def _read_version(reader: ClassicReader) -> int:
    start = reader.offset
    version = reader.int16("version")
    if version < 0:
        raise WireFormatError(f"version {version} of an embedded blob is negative", start)
    return version


def _partitions_bytes(partitions: Iterable[TopicPartition]) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return int32_lists_bytes(by_topic.items())


def _read_partitions(reader: ClassicReader, field: str) -> tuple[TopicPartition, ...]:
    def entry() -> tuple[str, list[int]]:
        topic = reader.string(f"{field}.topic")
        return topic, reader.array(
            f"{field}.partitions", lambda: reader.int32(f"{field}.partition")
        )

    return tuple(
        TopicPartition(topic, partition)
        for topic, partitions in reader.array(field, entry)
        for partition in partitions
    )
