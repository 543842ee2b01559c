"""The user data that sticky assignors send with their subscription.

The format is each assignor's own and opaque to everyone else; data that does not parse is never an
error, because another version or another assignor may have written it.

Source: kafka trunk, clients/.../consumer/StickyAssignor.java and CooperativeStickyAssignor.java.
"""

import struct
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.kafka.resources import TopicPartition

DEFAULT_GENERATION: Final = -1
"""Generation of a member that has none."""

_INT32: Final = struct.Struct(">i")
_INT16: Final = struct.Struct(">h")


class MemberData(Struct, frozen=True):
    """Partitions a member owned, in list order, and in which generation (None: not given)."""

    partitions: tuple[TopicPartition, ...] = ()
    generation_id: int | None = None


def encode_sticky_user_data(partitions: Sequence[TopicPartition], generation_id: int) -> bytes:
    """Encode the previous assignment as StickyAssignor does: topics in HashMap order.

    Source: StickyAssignor.serializeTopicPartitionAssignment.
    """
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    entries = [(topic, by_topic[topic]) for topic in java_hash_order(by_topic)]
    return encode_sticky_entries(entries, generation_id)


def encode_sticky_entries(
    entries: Sequence[tuple[str, Sequence[int]]], generation_id: int
) -> bytes:
    """Encode version 1 of the sticky user data, entries as given; topics may repeat."""
    parts = [_INT32.pack(len(entries))]
    for topic, numbers in entries:
        name = topic.encode(errors="replace")
        parts.append(_INT16.pack(len(name)) + name)
        parts.append(struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return b"".join(parts) + _INT32.pack(generation_id)


def decode_sticky_user_data(data: bytes | None) -> MemberData:
    """Decode a member's previous assignment, partitions in wire order.

    None or empty data mean no owned partitions and no generation. Version 0 lacks the generation.
    Data that does not parse means no owned partitions in generation -1.

    Source: StickyAssignor.memberData and deserializeTopicPartitionAssignment.
    """
    if not data:
        return MemberData()
    try:
        partitions, offset = _read_entries(data)
    except (struct.error, UnicodeDecodeError, ValueError):
        return MemberData(generation_id=DEFAULT_GENERATION)
    if len(data) - offset < _INT32.size:
        return MemberData(partitions)
    return MemberData(partitions, int(_INT32.unpack_from(data, offset)[0]))


def encode_cooperative_user_data(generation_id: int) -> bytes:
    """Encode the user data of CooperativeStickyAssignor: its generation."""
    return _INT32.pack(generation_id)


def decode_cooperative_generation(data: bytes | None) -> int | None:
    """Decode the generation in cooperative user data: None without data, -1 if it does not parse.

    Source: CooperativeStickyAssignor.memberData.
    """
    if data is None:
        return None
    return int(_INT32.unpack_from(data)[0]) if len(data) >= _INT32.size else DEFAULT_GENERATION


def _read_entries(data: bytes) -> tuple[tuple[TopicPartition, ...], int]:
    partitions: list[TopicPartition] = []
    count, offset = _read_count(data, 0)
    for _ in range(count):
        length = _INT16.unpack_from(data, offset)[0]
        start = offset + _INT16.size
        if not 0 <= length <= len(data) - start:
            raise ValueError(length)
        topic = data[start : start + length].decode()
        number_count, offset = _read_count(data, start + length)
        numbers = struct.unpack_from(f">{number_count}i", data, offset)
        offset += number_count * _INT32.size
        partitions += [TopicPartition(topic, number) for number in numbers]
    return tuple(partitions), offset


def _read_count(data: bytes, offset: int) -> tuple[int, int]:
    count = int(_INT32.unpack_from(data, offset)[0])
    if not 0 <= count <= len(data):
        raise ValueError(count)
    return count, offset + _INT32.size
