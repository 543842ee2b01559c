"""The topics in a broker's metadata, by name and by id."""

from hashlib import sha256

from msgspec import Struct


class Topic(Struct, frozen=True):
    """A topic: its id of 16 bytes and its number of partitions, and the racks of their replicas."""

    topic_id: bytes
    partition_count: int
    racks: tuple[tuple[str, ...], ...] = ()


class Topics:
    """Topics by name and by id.

    Attributes:
        is_open: Whether unknown names also count as topics, with any number of partitions; True
            at most until the first topic is put.
    """

    __slots__ = ("_by_name", "_names", "is_open")

    def __init__(self, *, is_open: bool = False) -> None:
        self.is_open = is_open
        self._by_name: dict[str, Topic] = {}
        self._names: dict[bytes, str] = {}

    def put(self, name: str, topic: Topic) -> None:
        """Add or replace a topic."""
        self.is_open = False
        self.remove(name)
        self._by_name[name] = topic
        self._names[topic.topic_id] = name

    def remove(self, name: str) -> Topic | None:
        """Remove a topic and return it, or None."""
        topic = self._by_name.pop(name, None)
        if topic is not None:
            self._names.pop(topic.topic_id, None)
        return topic

    def get(self, name: str) -> Topic | None:
        """The topic of a name; None when it is unknown."""
        return self._by_name.get(name)

    def exists(self, name: str) -> bool:
        """Whether there is a topic of a name."""
        return self.is_open or name in self._by_name

    def partitions(self, name: str) -> range | None:
        """The partitions of an existing topic; None if it may have any number."""
        topic = self._by_name.get(name)
        return None if topic is None else range(topic.partition_count)

    def id_of(self, name: str) -> bytes | None:
        """The id of a topic by its name; None when it is unknown."""
        topic = self._by_name.get(name)
        return None if topic is None else topic.topic_id

    def name_of(self, topic_id: bytes | None) -> str | None:
        """The name of a topic by its id; None when there is none."""
        return None if topic_id is None else self._names.get(topic_id)


def topic_id_for(name: str, incarnation: int = 0) -> bytes:
    """A deterministic id for a topic without a given one.

    Args:
        name: Name of the topic.
        incarnation: How often a topic of that name was created before.
    """
    return sha256(f"{incarnation}/{name}".encode()).digest()[:16]
