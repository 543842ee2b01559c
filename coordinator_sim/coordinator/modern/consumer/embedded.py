"""The blobs of classic members as the coordinator reads and writes them.

Up to 4.3 Kafka tells two faults apart: a number that is cut short, or a version below 0, makes a
blob malformed, for which requests have an error of their own; anything else fails the operation.
From 4.4 on every fault makes a blob malformed.

Source: kafka 4.4, clients/.../consumer/internals/ConsumerProtocol.java; the generated readers of
ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from msgspec import Struct

from coordinator_sim.coordinator.modern.consumer.group import Owned
from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.orders.iteration_order import (
    integer_hash,
    java_hash_order,
    uuid_hash,
)
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import HIGHEST_VERSION, encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment

T = TypeVar("T")

_WITH_OWNED: Final = 1
_WITH_GENERATION: Final = 2
_WITH_RACK: Final = 3
_INT16_SIZE: Final = 2
_INT32_SIZE: Final = 4

TopicPartitions = tuple[tuple[str, tuple[int, ...]], ...]
"""Topics by name with partitions, as they lie in a blob."""


class MalformedBlob(OperationAborted):
    """A blob of a classic member that Kafka has an error for, in Kafka's words.

    The words show only where an assignment cannot be written. Source: SchemaException.
    """


class EmbeddedSubscription(Struct, frozen=True):
    """What the coordinator takes from a subscription.

    Args:
        topics: Names.
        owned: What the member says that it has.
        rack_id: Where it is; None for an empty one too.
    """

    topics: tuple[str, ...]
    owned: TopicPartitions = ()
    rack_id: str | None = None


class EmbeddedAssignment(Struct, frozen=True):
    """What the coordinator takes from an assignment."""

    partitions: TopicPartitions = ()
    has_user_data: bool = False


class _Reader:
    """A cursor that fails as Java's does.

    Args:
        data: The blob.
        any_fault: Whether every fault makes it malformed.
    """

    __slots__ = ("_any_fault", "_data", "_offset")

    def __init__(self, data: bytes, *, any_fault: bool = False) -> None:
        self._data = data
        self._any_fault = any_fault
        self._offset = 0

    def _fault(self, text: str) -> OperationAborted:
        return MalformedBlob(text) if self._any_fault else OperationAborted(text)

    def number(self, size: int) -> int:
        """The next signed number of `size` bytes."""
        end = self._offset + size
        if end > len(self._data):
            raise MalformedBlob("Buffer underflow while parsing consumer protocol's header")
        taken = self._data[self._offset : end]
        self._offset = end
        return int.from_bytes(taken, "big", signed=True)

    def data(self, size: int) -> bytes:
        """The next `size` bytes."""
        end = self._offset + size
        if end > len(self._data):
            raise self._fault(f"{size} bytes are wanted at byte {self._offset}, fewer are left")
        taken = self._data[self._offset : end]
        self._offset = end
        return taken

    def text(self) -> str | None:
        """The next string; None for a negative length."""
        length = self.number(_INT16_SIZE)
        return None if length < 0 else self.data(length).decode(errors="replace")

    def name(self) -> str:
        """The next string, which may not be null."""
        text = self.text()
        if text is None:
            raise self._fault(f"the name before byte {self._offset} is null")
        return text

    def optional_data(self) -> bytes | None:
        """The next bytes with their length; None for a negative one."""
        length = self.number(_INT32_SIZE)
        return None if length < 0 else self.data(length)

    def array(self, element: Callable[[], T]) -> tuple[T, ...]:
        """The next array; a count above the number of bytes left is refused before reading."""
        count = self.number(_INT32_SIZE)
        left = len(self._data) - self._offset
        if count < 0 or count > left:
            raise self._fault(f"an array counts {count} elements, {left} bytes are left")
        return tuple([element() for _ in range(count)])

    def topic(self) -> tuple[str, tuple[int, ...]]:
        """The next topic with its partitions."""
        return self.name(), self.array(lambda: self.number(_INT32_SIZE))

    def version(self) -> int:
        """The version in front; a higher one than known is read as the highest."""
        version = self.number(_INT16_SIZE)
        if version < 0:
            raise MalformedBlob(f"Unsupported assignment version: {version}")
        return min(version, HIGHEST_VERSION)


def read_subscription(data: bytes, profile: Profile) -> EmbeddedSubscription:
    """A member's subscription.

    Raises:
        MalformedBlob: a number is cut short, or the version is negative.
        OperationAborted: anything else is wrong.
    """
    reader = _Reader(data, any_fault=profile.every_blob_fault_is_malformed)
    version = reader.version()
    topics = reader.array(reader.name)
    reader.optional_data()
    owned = reader.array(reader.topic) if version >= _WITH_OWNED else ()
    if version >= _WITH_GENERATION:
        reader.number(_INT32_SIZE)
    rack_id = reader.text() if version >= _WITH_RACK else None
    return EmbeddedSubscription(topics, owned, rack_id or None)


def read_assignment(data: bytes, profile: Profile) -> EmbeddedAssignment:
    """What a leader assigned to a member; no bytes at all are nothing.

    Raises:
        MalformedBlob: a number is cut short, or the version is negative.
        OperationAborted: anything else is wrong.
    """
    if not data:
        return EmbeddedAssignment()
    reader = _Reader(data, any_fault=profile.every_blob_fault_is_malformed)
    reader.version()
    partitions = reader.array(reader.topic)
    return EmbeddedAssignment(partitions, bool(reader.optional_data()))


def written_assignment(
    held: Mapping[bytes, Iterable[int]], topics: KnownTopics, subscription: bytes
) -> bytes:
    """An assignment in the version of a member's subscription; topics that are gone are left out.

    Args:
        held: Partitions by topic id.
        topics: Of the cluster.
        subscription: Of the member.

    Raises:
        MalformedBlob: the subscription has no version.

    Source: Utils.toConsumerProtocolAssignment; its order is that of hash maps.
    """
    version = _Reader(subscription).version()
    placed = [
        TopicPartition(topics.by_id[topic_id].name, index)
        for topic_id in java_hash_order(held, hash_of=uuid_hash)
        if topic_id in topics.by_id
        for index in java_hash_order(held[topic_id], hash_of=integer_hash)
    ]
    return encode_assignment(ConsumerAssignment(partitions=tuple(placed)), version)


def owned_by_id(owned: TopicPartitions, topics: KnownTopics) -> Owned:
    """Partitions by topic id; topics that do not exist are left out.

    Source: Utils.toTopicPartitions.
    """
    return tuple(
        (topics.by_name[name].topic_id, partitions)
        for name, partitions in owned
        if name in topics.by_name
    )
