"""The topics of the cluster as a group coordinator knows them, and what it makes of them.

Source: kafka 4.4, coordinator-common/.../runtime/CoordinatorMetadataImage.java;
group-coordinator/.../Utils.computeTopicHash and computeGroupHash.
"""

import struct
from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from xxhash import xxh3_64_intdigest

from coordinator_sim.kafka.orders.iteration_order import java_string_key

_REMEMBERED: Final = 1_000
"""Sets of names whose ids are kept: heartbeats of a group ask for the same ones again."""
_INT32: Final = struct.Struct("<i")
_INT64: Final = struct.Struct("<q")
_HALF: Final = 1 << 63
_WHOLE: Final = 1 << 64


class KnownTopic(Struct, frozen=True):
    """A topic.

    Args:
        name: Its name.
        topic_id: 16 bytes.
        partition_count: How many partitions it has.
        racks: Of each partition the racks of its replicas; empty where brokers have none.
    """

    name: str
    topic_id: bytes
    partition_count: int
    racks: tuple[tuple[str, ...], ...] = ()


class KnownTopics:
    """The topics of the last metadata image.

    Attributes:
        version: Of the image; grows with every change that a driver tells of.
        newest_version: Of the image that last brought a new topic.
        by_name: Every topic.
        by_id: The same by id.
    """

    __slots__ = ("_changed_in", "_hashes", "_ids", "by_id", "by_name", "newest_version", "version")

    def __init__(self) -> None:
        self.version = 0
        self.newest_version = 0
        self.by_name: dict[str, KnownTopic] = {}
        self.by_id: dict[bytes, KnownTopic] = {}
        self._hashes: dict[str, int] = {}
        self._changed_in: dict[str, int] = {}
        self._ids: dict[frozenset[str], frozenset[bytes]] = {}

    def change(self, changed: Iterable[KnownTopic], removed: Iterable[str], version: int) -> None:
        """Take a new image over: topics that are new or have changed, and names that are gone."""
        self.version = version
        self._ids.clear()
        for name in removed:
            topic = self.by_name.pop(name, None)
            if topic is not None:
                del self.by_id[topic.topic_id]
                self._hashes.pop(name, None)
                self._changed_in[name] = version
        for topic in changed:
            if topic.name not in self.by_name:
                self.newest_version = version
            self.by_name[topic.name] = topic
            self.by_id[topic.topic_id] = topic
            self._hashes.pop(topic.name, None)
            self._changed_in[topic.name] = version

    def have_changed(self, names: Iterable[str], version: int) -> bool:
        """Whether one of these topics came, changed or went after that version."""
        changed_in = self._changed_in
        return any(changed_in.get(name, 0) > version for name in names)

    def ids_of(self, names: frozenset[str]) -> frozenset[bytes]:
        """The ids of those of these topics that exist."""
        found = self._ids.get(names)
        if found is None:
            if len(self._ids) >= _REMEMBERED:
                self._ids.clear()
            known = (self.by_name.get(name) for name in names)
            found = frozenset(topic.topic_id for topic in known if topic is not None)
            self._ids[names] = found
        return found

    def hash_of_all(self, names: Iterable[str]) -> int:
        """A number that changes whenever one of these topics does; 0 if none of them exists.

        Args:
            names: In any order; those that do not exist count for nothing.

        Source: ModernGroup.computeMetadataHash and Utils.computeGroupHash.
        """
        known = sorted((name for name in names if name in self.by_name), key=java_string_key)
        if not known:
            return 0
        return _signed(b"".join(_INT64.pack(self._hash_of(name)) for name in known))

    def _hash_of(self, name: str) -> int:
        found = self._hashes.get(name)
        if found is None:
            found = self._hashes[name] = topic_hash(self.by_name[name])
        return found


def topic_hash(topic: KnownTopic) -> int:
    """A signed number of 64 bits made of all that a group depends on in a topic.

    Source: Utils.computeTopicHash, on hash4j's XXH3 of 64 bits.
    """
    parts = [
        b"\0",
        topic.topic_id[7::-1],
        topic.topic_id[:7:-1],
        _text(topic.name),
        _INT32.pack(topic.partition_count),
    ]
    for index in range(topic.partition_count):
        parts.append(_INT32.pack(index))
        racks = topic.racks[index] if index < len(topic.racks) else ()
        for rack in sorted(racks, key=java_string_key):
            parts += (_INT32.pack(len(rack)), _text(rack))
    return _signed(b"".join(parts))


def _text(text: str) -> bytes:
    """A string as hash4j hashes it: its UTF-16 code units, then how many there are."""
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT32.pack(len(units) // 2)


def _signed(data: bytes) -> int:
    digest = xxh3_64_intdigest(data)
    return digest - _WHOLE if digest >= _HALF else digest
