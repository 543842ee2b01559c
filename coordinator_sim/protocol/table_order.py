"""The order in which the hash maps under Kafka's coordinators hand out their keys.

Java's coordinator keeps its members in java.util.HashMap, the Scala ones in the mutable.HashMap of
their Scala. A `TableOrder` says how such a table grows and where a key comes up; the caller keeps
the keys in order of insertion and the capacity.

Source: OpenJDK, java.util.HashMap; scala 2.13, collection.mutable.HashMap and
collection.immutable.HashMap; scala 2.12, collection.mutable.HashTable.
"""

from collections.abc import Iterable
from enum import Enum, unique
from typing import Final, Protocol

from coordinator_sim.protocol.iteration_order import (
    java_bucket,
    java_hash_order,
    scala_place,
    scala_trie_order,
)
from coordinator_sim.protocol.partitioning import java_string_hash

_MASK: Final = 0xFFFFFFFF


@unique
class HashOrder(Enum):
    """Whose hash maps a coordinator iterates."""

    JAVA = "java"
    SCALA_2_13 = "scala-2.13"
    SCALA_2_12 = "scala-2.12"


class TableOrder(Protocol):
    """How one kind of hash table orders its keys."""

    def grown(self, capacity: int, size: int) -> int:
        """The buckets of a table of `capacity` once it has taken its `size`-th key."""
        ...

    def place(self, hashed: int, capacity: int) -> tuple[int, int]:
        """Sorts keys, given in order of insertion, as the table iterates them."""
        ...

    def votes(self, names: Iterable[str]) -> list[str]:
        """The names voted for, in the order in which ties are decided."""
        ...


class JavaTable:
    """java.util.HashMap: a bucket keeps the order of insertion."""

    def grown(self, capacity: int, size: int) -> int:
        """Doubles above 3/4 full."""
        while size * 4 > capacity * 3:
            capacity *= 2
        return capacity

    def place(self, hashed: int, capacity: int) -> tuple[int, int]:
        """The bucket alone decides."""
        return java_bucket(hashed, capacity), 0

    def votes(self, names: Iterable[str]) -> list[str]:
        """The order of a HashMap. Source: ClassicGroup.selectProtocol."""
        return java_hash_order(names)


class ScalaTable:
    """scala.collection.mutable.HashMap of 2.13: a bucket is sorted by stored hash."""

    def grown(self, capacity: int, size: int) -> int:
        """Doubles before it takes a key that would fill 3/4 of it."""
        while size * 4 >= capacity * 3:
            capacity *= 2
        return capacity

    def place(self, hashed: int, capacity: int) -> tuple[int, int]:
        """The bucket, then the stored hash."""
        return scala_place(hashed, capacity)

    def votes(self, names: Iterable[str]) -> list[str]:
        """`groupBy` gives an immutable.HashMap. Source: GroupMetadata.selectProtocol."""
        return scala_trie_order(names)


class OldScalaTable:
    """scala.collection.mutable.HashMap of 2.12: from the last bucket to the first."""

    def grown(self, capacity: int, size: int) -> int:
        """Doubles above 3/4 full."""
        while size * 4 > capacity * 3:
            capacity *= 2
        return capacity

    # DEVIATION: a bucket hands out its newest key first and is turned around when the table grows;
    # we keep the order of insertion. Two of some twelve members must share a bucket to show it.
    def place(self, hashed: int, capacity: int) -> tuple[int, int]:
        """The leading bits of the scrambled hash. Source: HashTable.index."""
        bits = capacity.bit_length() - 1
        mixed = _byteswap32(hashed)
        rotated = (mixed >> 4 | mixed << 28) & _MASK
        return -(rotated >> (32 - bits)), 0

    def votes(self, names: Iterable[str]) -> list[str]:
        """`groupBy` copies a mutable map. Source: GroupMetadata.selectProtocol."""
        return sorted(names, key=lambda name: self.place(java_string_hash(name), 16))


def _byteswap32(hashed: int) -> int:
    """Source: scala.util.hashing.byteswap32."""
    mixed = (hashed & _MASK) * 0x9E3775CD & _MASK
    swapped = int.from_bytes(mixed.to_bytes(4, "big"), "little")
    return swapped * 0x9E3775CD & _MASK


TABLE_ORDERS: Final[dict[HashOrder, TableOrder]] = {
    HashOrder.JAVA: JavaTable(),
    HashOrder.SCALA_2_13: ScalaTable(),
    HashOrder.SCALA_2_12: OldScalaTable(),
}
"""The order of each kind of table."""
