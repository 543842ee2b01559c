"""What the expressions of a consumer group's members matched, and which assignor they would like.

Source: kafka 4.4, group-coordinator/.../modern/consumer/ConsumerGroup.java and
ResolvedRegularExpression.java.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.orders.iteration_order import java_bucket
from coordinator_sim.kafka.partitioning import java_string_hash

_FIRST_CAPACITY: Final = 16


class ResolvedRegex(Struct, frozen=True, gc=False):
    """What an expression matched.

    Args:
        topics: Names.
        version: Of the topics that were looked through.
        timestamp_ms: When that was.
    """

    topics: frozenset[str] = frozenset()
    version: int = -1
    timestamp_ms: int = -1


class CopiedCounts:
    """How many members would like each name, in the order of a HashMap made of Kafka's table.

    QUIRK: of two assignors that are liked equally the one that the map yields first wins, and the
    order of that map depends on how it came about.

    Args:
        counts: Of the group as it is, in the order of its table.

    Source: ConsumerGroup.computePreferredServerAssignor and computeSubscribedRegularExpressions.
    """

    __slots__ = ("_capacity", "_counts")

    def __init__(self, counts: Iterable[tuple[str, int]]) -> None:
        self._counts = list(counts)
        wanted = len(self._counts) * 4 // 3 + 1
        self._capacity = 1 << (wanted - 1).bit_length() if self._counts else _FIRST_CAPACITY

    def replace(self, old: str | None, new: str | None) -> None:
        """Count what a member liked as what it likes now; None is nothing."""
        if old is not None:
            self._step(old, -1)
        if new is not None:
            self._step(new, 1)

    def _step(self, name: str, step: int) -> None:
        for place, (known, count) in enumerate(self._counts):
            if known == name:
                self._counts[place] = (name, count + step)
                if count + step == 0:
                    del self._counts[place]
                return
        # HashMap.compute puts a new key at the head of its bucket, and grows before it does.
        while len(self._counts) * 4 > self._capacity * 3:
            self._capacity *= 2
        self._counts.insert(0, (name, step))

    def copied(self) -> "CopiedCounts":
        """The same in the order of a HashMap made of the table."""
        self._counts.sort(key=lambda entry: java_bucket(java_string_hash(entry[0]), self._capacity))
        return self

    def names(self) -> list[str]:
        """The names in their order."""
        return [name for name, _ in self._counts]

    def winner(self) -> str | None:
        """The name that is liked most; None where nobody asks for one."""
        return max(self._counts, key=lambda entry: entry[1])[0] if self._counts else None
