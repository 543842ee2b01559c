"""A live HashMap of Java, whose order of iteration is Java's however it was filled.

For ports of algorithms whose outcome depends on that order; `iteration_order` has the orders of
maps that are filled at once.

Source: OpenJDK, java.util.HashMap (putVal, computeIfAbsent, resize, tableSizeFor).
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from coordinator_sim.kafka.orders.iteration_order import MIN_TABLE_CAPACITY, java_bucket

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def sized_capacity(size: int) -> int:
    """The buckets of `new HashMap<>(size)`: the next power of two, at least one."""
    return 1 << (max(size, 1) - 1).bit_length()


def roomy_capacity(count: int) -> int:
    """The buckets of a map that AssignorHelpers.newHashMap makes for that many keys."""
    return sized_capacity(int((count + 1) / 0.75 + 1))


class JavaHashMap(Generic[K, V]):
    """One map.

    Args:
        hash_of: The keys' `hashCode`.
        entries: Put one after the other.
        capacity: Buckets at the start, a power of two.
    """

    __slots__ = ("_capacity", "_hash_of", "_last", "_places", "_values")

    def __init__(
        self,
        hash_of: Callable[[K], int],
        entries: Iterable[tuple[K, V]] = (),
        *,
        capacity: int = MIN_TABLE_CAPACITY,
    ) -> None:
        self._hash_of = hash_of
        self._capacity = capacity
        self._values: dict[K, V] = {}
        self._places: dict[K, int] = {}
        self._last = 0
        for key, value in entries:
            self.put(key, value)

    def put(self, key: K, value: V) -> None:
        """Insert a key at the end of its bucket, or replace its value where it is."""
        if key not in self._values:
            self._last += 1
            self._places[key] = self._last
        self._values[key] = value
        if self._is_crowded():
            self._capacity *= 2

    def compute(self, key: K, value: Callable[[], V]) -> V:
        """The value of a key; one that is not there comes to the head of its bucket.

        Source: computeIfAbsent, which makes room before it looks, and none for what it inserts.
        """
        if self._is_crowded():
            self._capacity *= 2
        if key not in self._values:
            self._last += 1
            self._places[key] = -self._last
            self._values[key] = value()
        return self._values[key]

    def remove(self, key: K) -> V | None:
        """Remove a key; its value, if it was there."""
        self._places.pop(key, None)
        return self._values.pop(key, None)

    def get(self, key: K) -> V | None:
        """The value of a key, if it is there."""
        return self._values.get(key)

    def items(self) -> list[tuple[K, V]]:
        """The entries in Java's order, as of now."""
        capacity, hash_of, places = self._capacity, self._hash_of, self._places
        ordered = sorted(
            self._values,
            key=lambda key: (java_bucket(hash_of(key), capacity), places[key]),
        )
        return [(key, self._values[key]) for key in ordered]

    def __iter__(self) -> Iterator[K]:
        """The keys in Java's order, as of now."""
        return iter([key for key, _ in self.items()])

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._values)

    def __contains__(self, key: object) -> bool:
        """Whether the key is there."""
        return key in self._values

    def _is_crowded(self) -> bool:
        return len(self._values) * 4 > self._capacity * 3
