"""The order in which the hash maps under Kafka's coordinators hand out their keys.

Java's coordinator keeps its members in java.util.HashMap, the Scala ones in the mutable.HashMap of
their Scala. A `TableOrder` says how such a table grows and where a key comes up; the caller keeps
the keys in order of insertion and the capacity.

Source: OpenJDK, java.util.HashMap; scala 2.13, collection.mutable.HashMap and
collection.immutable.HashMap; scala 2.12, collection.mutable.HashTable.
"""

from collections.abc import Callable, Hashable, Iterable
from enum import Enum, unique
from typing import Final, Protocol, TypeVar

from coordinator_sim.kafka.orders.iteration_order import (
    java_bucket,
    java_hash_order,
    scala_place,
    scala_trie_order,
)
from coordinator_sim.kafka.partitioning import java_string_hash

K = TypeVar("K", bound=Hashable)

_MASK: Final = 0xFFFFFFFF
_FIRST_CAPACITY: Final = 16


@unique
class HashOrder(Enum):
    """The language whose hash maps a coordinator iterates."""

    JAVA = "java"
    SCALA_2_13 = "scala-2.13"
    SCALA_2_12 = "scala-2.12"


class TableOrder(Protocol):
    """How one kind of hash table orders its keys."""

    @property
    def newest_first(self) -> bool:
        """Whether a bucket hands out its newest key first, and is turned around by growing."""
        ...

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

    newest_first = False

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

    newest_first = False

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

    newest_first = True

    def grown(self, capacity: int, size: int) -> int:
        """Doubles above 3/4 full."""
        while size * 4 > capacity * 3:
            capacity *= 2
        return capacity

    def place(self, hashed: int, capacity: int) -> tuple[int, int]:
        """The leading bits of the scrambled hash. Source: HashTable.index."""
        bits = capacity.bit_length() - 1
        mixed = _byteswap32(hashed)
        rotated = (mixed >> 4 | mixed << 28) & _MASK
        return -(rotated >> (32 - bits)), 0

    def votes(self, names: Iterable[str]) -> list[str]:
        """`groupBy` copies a mutable map. Source: GroupMetadata.selectProtocol."""
        return old_scala_map_order(names)


def old_scala_map_order(
    keys: Iterable[K],
    *,
    hash_of: Callable[[K], int] = java_string_hash,  # type: ignore[assignment]
) -> list[K]:
    """The keys in the order in which a mutable.HashMap of 2.12 iterates them.

    Args:
        keys: In order of insertion into an empty map; a repeated key keeps its first place.
        hash_of: The keys' `##`; by default that of strings.

    Source: scala 2.12, collection.mutable.HashTable (addEntry0, resize, entriesIterator).
    """
    table = OldScalaTable()
    capacity, ranks = _FIRST_CAPACITY, dict[K, int]()
    for key in dict.fromkeys(keys):
        ranks[key] = len(ranks)
        grown = table.grown(capacity, len(ranks))
        if grown != capacity:
            size = len(ranks)
            ranks = {each: size - rank - 1 for each, rank in ranks.items()}
            capacity = grown
    newest_first = sorted(ranks, key=lambda key: -ranks[key])
    return sorted(newest_first, key=lambda key: table.place(hash_of(key), capacity))


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
