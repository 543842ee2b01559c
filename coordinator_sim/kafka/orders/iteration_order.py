"""The order in which the hash maps and sets of Java and of Scala hand out their keys.

Kafka iterates hash maps where order shows: leader choice, member lists, who keeps the extra
partition. Here are the hashes, the table sizes and the orders; nothing here decides anything.

A table of Java keeps its keys by bucket, and inside a bucket in the order of insertion, also across
resizing. So the order of iteration is a stable sort of the insertion sequence by bucket number.
Scala's (`scala_*`, and `old_scala_*` of 2.12) sort a bucket, or branch by bits of the hash. A
`TableOrder` says how the table of a group's members grows and where a key comes up.

Source: OpenJDK, java.util.HashMap (hash, resize, tableSizeFor), HashSet(Collection) and
ConcurrentHashMap; scala 2.13, collection.mutable.HashMap, collection.immutable.{Map,Set,HashMap}.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from enum import Enum, unique
from typing import Final, Generic, Protocol, TypeVar, overload

from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition

K = TypeVar("K", bound=Hashable)

MIN_TABLE_CAPACITY: Final = 16
"""Buckets of a table made without a size."""


def java_string_key(text: str) -> bytes:
    """A sort key that orders strings as Java's `String.compareTo`: by UTF-16 code unit.

    Python orders by code point, which differs for characters outside the basic plane.
    """
    return text.encode("utf-16-be", "surrogatepass")


def java_table_capacity(size: int) -> int:
    """The number of buckets of a default table that grew to hold `size` keys.

    It starts at 16 and doubles as soon as there are more keys than 3/4 of the buckets.
    """
    capacity = MIN_TABLE_CAPACITY
    while size * 4 > capacity * 3:
        capacity *= 2
    return capacity


def java_copy_capacity(size: int) -> int:
    """The number of buckets of `new HashSet<>(collection)` for a collection of `size` elements.

    At 3/4 of a power of two this is twice the capacity of a table that grew to the same size.
    """
    wanted = max(size * 4 // 3 + 1, MIN_TABLE_CAPACITY)
    return 1 << (wanted - 1).bit_length()


def java_filled_capacity(size: int) -> int:
    """The number of buckets of `new HashMap<>()` after `putAll` of a map of `size` keys, above 0.

    Source: java.util.HashMap.putMapEntries, which makes the table of a map that has none yet.
    """
    return 1 << (size * 4 // 3).bit_length()


def wrapped(value: int) -> int:
    """The value as a signed 32-bit int, as Java keeps it."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def topic_partition_hash(key: TopicPartition) -> int:
    """The signed 32-bit hash of a topic-partition. Source: TopicPartition.hashCode."""
    return wrapped(31 * (31 + key.partition) + java_string_hash(key.topic))


def connector_task_hash(key: ConnectorTaskId) -> int:
    """The signed 32-bit hash of a Connect task. Source: ConnectorTaskId.hashCode."""
    return wrapped(31 * java_string_hash(key.connector) + key.task)


def uuid_hash(key: bytes) -> int:
    """The signed 32-bit hash of a topic id of 16 big-endian bytes. Source: Uuid.hashCode."""
    mixed = int.from_bytes(key[:8], "big") ^ int.from_bytes(key[8:], "big")
    return wrapped((mixed >> 32) ^ mixed)


def integer_hash(key: int) -> int:
    """The hash of a boxed int: itself. Source: java.lang.Integer.hashCode."""
    return key


def long_hash(key: int) -> int:
    """The signed 32-bit hash of a boxed long. Source: java.lang.Long.hashCode."""
    return wrapped((key & 0xFFFFFFFFFFFFFFFF) >> 32 ^ key)


# UNSPECIFIED: a bucket of eight or more keys becomes a tree in Java, whose order we do not follow.
def java_bucket(hashed: int, capacity: int) -> int:
    """The bucket of a 32-bit hash in a table of `capacity` buckets, a power of two."""
    unsigned = hashed & 0xFFFFFFFF
    return (unsigned ^ (unsigned >> 16)) & (capacity - 1)


@overload
def java_hash_order(keys: Iterable[str], capacity: int | None = None) -> list[str]: ...


@overload
def java_hash_order(
    keys: Iterable[K], capacity: int | None = None, *, hash_of: Callable[[K], int]
) -> list[K]: ...


def java_hash_order(
    keys: Iterable[K],
    capacity: int | None = None,
    *,
    hash_of: Callable[[K], int] | None = None,
) -> list[K]:
    """The keys in the order a HashMap or HashSet iterates them.

    Args:
        keys: In order of insertion; a repeated key keeps its first place.
        capacity: Buckets of the table; by default those of a table that grew to hold the keys.
        hash_of: The keys' `hashCode`; by default that of strings.
    """
    distinct = list(dict.fromkeys(keys))
    if len(distinct) < 2:  # noqa: PLR2004 - one key has one order
        return distinct
    buckets = java_table_capacity(len(distinct)) if capacity is None else capacity
    # The overloads let hash_of be absent for strings alone.
    hashed: Callable[[K], int] = hash_of if hash_of is not None else java_string_hash  # type: ignore[assignment]
    return sorted(distinct, key=lambda key: java_bucket(hashed(key), buckets))


def computed_hash_order(keys: Iterable[K], *, hash_of: Callable[[K], int]) -> list[K]:
    """The keys in the order a HashMap iterates them that was filled by `computeIfAbsent`.

    It puts a key at the head of its bucket, and grows one call later than `put`, even if that call
    repeats a key.

    Source: java.util.HashMap.computeIfAbsent.
    """
    called = list(keys)
    before_last = len(dict.fromkeys(called[:-1]))
    newest_first = list(dict.fromkeys(called))[::-1]
    return java_hash_order(newest_first, java_table_capacity(before_last), hash_of=hash_of)


def concurrent_table_capacity(size: int) -> int:
    """The number of buckets of a ConcurrentHashMap that grew to hold `size` keys.

    Unlike a HashMap it doubles when it reaches 3/4 of its buckets, not when it passes them.
    Source: java.util.concurrent.ConcurrentHashMap.addCount.
    """
    capacity = MIN_TABLE_CAPACITY
    while size * 4 >= capacity * 3:
        capacity *= 2
    return capacity


@overload
def concurrent_hash_order(keys: Iterable[str]) -> list[str]: ...


@overload
def concurrent_hash_order(keys: Iterable[K], *, hash_of: Callable[[K], int]) -> list[K]: ...


def concurrent_hash_order(
    keys: Iterable[K], *, hash_of: Callable[[K], int] | None = None
) -> list[K]:
    """The keys in the order a ConcurrentHashMap that grew to hold them iterates them.

    Args:
        keys: In order of insertion.
        hash_of: The keys' `hashCode`; by default that of strings.
    """
    # The overloads let hash_of be absent for strings alone.
    hashed: Callable[[K], int] = hash_of if hash_of is not None else java_string_hash  # type: ignore[assignment]
    table = ConcurrentHashTable(hashed)
    for key in keys:
        table.add(key)
    return list(table)


def scala_map_order(
    keys: Iterable[K],
    *,
    hash_of: Callable[[K], int] = java_string_hash,  # type: ignore[assignment]
) -> list[K]:
    """The keys in the order in which Scala 2.13's mutable.HashMap and HashSet iterate them.

    A bucket keeps its keys by hash, and those of one hash in the order of insertion.

    Args:
        keys: In order of insertion; a repeated key keeps its first place.
        hash_of: The keys' `##`; by default that of strings.

    Source: scala.collection.mutable.HashMap (improveHash, put0, growTable).
    """
    listed = list(dict.fromkeys(keys))
    capacity = concurrent_table_capacity(len(listed))
    return sorted(listed, key=lambda key: scala_place(hash_of(key), capacity))


def scala_place(hashed: int, capacity: int) -> tuple[int, int]:
    """Sorts the keys of a mutable.HashMap of 2.13: by bucket, then by stored hash."""
    unsigned = hashed & 0xFFFFFFFF
    improved = wrapped(unsigned ^ (unsigned >> 16))
    return improved & (capacity - 1), improved


_SMALL_SET: Final = 4
_TRIE_BITS: Final = 5


def scala_set_order(
    keys: Iterable[K],
    *,
    hash_of: Callable[[K], int] = java_string_hash,  # type: ignore[assignment]
) -> list[K]:
    """The keys in the order in which Scala 2.13's immutable Set and Map iterate them.

    Up to four keys keep the order of insertion; more go into a trie.

    Source: scala.collection.immutable.Set and HashSet, Map and HashMap.
    """
    listed = list(dict.fromkeys(keys))
    return listed if len(listed) <= _SMALL_SET else scala_trie_order(listed, hash_of=hash_of)


def scala_trie_order(
    keys: Iterable[K],
    *,
    hash_of: Callable[[K], int] = java_string_hash,  # type: ignore[assignment]
) -> list[K]:
    """The keys in the order in which 2.13's immutable.HashMap and HashSet iterate them.

    A trie of 32 branches a level: the keys that end at a node come before those in the nodes below
    it. `groupBy` gives such a map, however small.

    Source: scala.collection.immutable.HashMap, ChampBaseIterator; scala.collection.Hashing.improve.
    """
    return _trie_order([(_scrambled(hash_of(key)), key) for key in keys], 0)


def old_scala_set_order(
    keys: Iterable[K],
    *,
    hash_of: Callable[[K], int] = java_string_hash,  # type: ignore[assignment]
) -> list[K]:
    """The keys in the order in which Scala 2.12's immutable Set and Map iterate them.

    Up to four keys keep the order of insertion; more go into a trie, branch by branch.

    Source: scala 2.12, collection.immutable.HashMap.HashTrieMap.
    """
    listed = list(dict.fromkeys(keys))
    if len(listed) <= _SMALL_SET:
        return listed
    return sorted(listed, key=lambda key: _branches(_scrambled(hash_of(key))))


def _branches(scrambled: int) -> tuple[int, ...]:
    """The way of a key through a trie, from its root."""
    mask = (1 << _TRIE_BITS) - 1
    return tuple(scrambled >> shift & mask for shift in range(0, 32, _TRIE_BITS))


def _trie_order(entries: list[tuple[int, K]], shift: int) -> list[K]:
    """The keys under one node, whose branch is given by the bits of the hash from `shift` on."""
    if shift > 32:  # noqa: PLR2004 - the bits of a hash; what is left has one hash in common
        return [key for _, key in entries]
    branches: dict[int, list[tuple[int, K]]] = {}
    for entry in entries:
        branches.setdefault(entry[0] >> shift & (1 << _TRIE_BITS) - 1, []).append(entry)
    ended: list[K] = []
    below: list[K] = []
    for _, branch in sorted(branches.items()):
        if len(branch) == 1:
            ended.append(branch[0][1])
        else:
            below += _trie_order(branch, shift + _TRIE_BITS)
    return ended + below


def _scrambled(hashed: int) -> int:
    """The unsigned hash that decides a key's way. Source: scala.collection.Hashing.improve."""
    mask = 0xFFFFFFFF
    value = hashed + ~(hashed << 9) & mask
    value ^= value >> 14
    value = value + (value << 4) & mask
    return value ^ value >> 10


class JavaHashSet(Generic[K]):
    """A live HashSet: its capacity grows with its size and never shrinks.

    Args:
        hash_of: The keys' `hashCode`.
        keys: Inserted one by one.
        capacity: Buckets at the start, a power of two.
    """

    __slots__ = ("_capacity", "_hash_of", "_keys")

    def __init__(
        self,
        hash_of: Callable[[K], int],
        keys: Iterable[K] = (),
        *,
        capacity: int = MIN_TABLE_CAPACITY,
    ) -> None:
        self._hash_of = hash_of
        self._capacity = capacity
        self._keys: dict[K, int] = {}
        for key in keys:
            self.add(key)

    def add(self, key: K) -> None:
        """Insert a key at the end of its bucket; one already there stays where it is."""
        if key in self._keys:
            return
        self._keys[key] = self._hash_of(key)
        while len(self._keys) * 4 > self._capacity * 3:
            self._capacity *= 2

    def discard(self, key: K) -> None:
        """Remove a key if it is there; added again, it goes to the end of its bucket."""
        self._keys.pop(key, None)

    @property
    def capacity(self) -> int:
        """The number of buckets now."""
        return self._capacity

    def __contains__(self, key: object) -> bool:
        """Whether the key is in the set."""
        return key in self._keys

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._keys)

    def __iter__(self) -> Iterator[K]:
        """The keys in Java's order, as of now."""
        capacity = self._capacity
        ordered = sorted(self._keys.items(), key=lambda item: java_bucket(item[1], capacity))
        return iter([key for key, _ in ordered])

    def first(self) -> K:
        """The key iterated first; the set must not be empty."""
        capacity = self._capacity
        return min(self._keys.items(), key=lambda item: java_bucket(item[1], capacity))[0]


class ConcurrentHashTable(Generic[K]):
    """The keys of a live ConcurrentHashMap: its capacity grows with its size and never shrinks.

    A bucket keeps the order of insertion until the table grows; then all of it but its last run
    of keys that go to the same place is turned round.

    Args:
        hash_of: The keys' `hashCode`.

    Source: java.util.concurrent.ConcurrentHashMap (putVal, addCount, transfer).
    """

    __slots__ = ("_buckets", "_capacity", "_hash_of", "_size")

    def __init__(self, hash_of: Callable[[K], int]) -> None:
        self._hash_of = hash_of
        self._capacity = MIN_TABLE_CAPACITY
        self._buckets: dict[int, dict[K, None]] = {}
        self._size = 0

    def add(self, key: K) -> None:
        """Insert a key at the end of its bucket; one already there stays where it is."""
        bucket = self._buckets.setdefault(java_bucket(self._hash_of(key), self._capacity), {})
        if key in bucket:
            return
        bucket[key] = None
        self._size += 1
        while self._size * 4 >= self._capacity * 3:
            self._grow()

    def discard(self, key: K) -> None:
        """Remove a key if it is there."""
        bucket = self._buckets.get(java_bucket(self._hash_of(key), self._capacity), {})
        if key in bucket:
            del bucket[key]
            self._size -= 1

    def __iter__(self) -> Iterator[K]:
        """The keys in Java's order, as of now."""
        buckets = self._buckets
        return iter([key for index in sorted(buckets) for key in buckets[index]])

    def _grow(self) -> None:
        before, self._buckets = self._buckets, {}
        self._capacity *= 2
        for bucket in before.values():
            for key in self._moved(list(bucket)):
                place = java_bucket(self._hash_of(key), self._capacity)
                self._buckets.setdefault(place, {})[key] = None

    def _moved(self, bucket: list[K]) -> list[K]:
        """The keys of a bucket in the order in which they stand in the two that it becomes."""
        places = [java_bucket(self._hash_of(key), self._capacity) for key in bucket]
        run = len(bucket)
        while run > 0 and places[run - 1] == places[-1]:
            run -= 1
        return [*reversed(bucket[:run]), *bucket[run:]]


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
