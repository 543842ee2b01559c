"""Connectors and tasks as a pair of ordered collections, and the set arithmetic over them.

Source: kafka trunk, connect/runtime/.../distributed/WorkerCoordinator.java (ConnectorsAndTasks).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from coordinator_sim.assignors.contract import WorkerLoad
from coordinator_sim.kafka.orders.iteration_order import (
    connector_task_hash,
    java_copy_capacity,
    java_hash_order,
    java_string_key,
)
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.resources import ConnectorTaskId

T = TypeVar("T", bound=Hashable)


def task_key(task: ConnectorTaskId) -> tuple[bytes, int]:
    """Sort key that orders tasks by connector, then number. Source: ConnectorTaskId.compareTo."""
    return java_string_key(task.connector), task.task


@dataclass(slots=True)
class Work:
    """Connectors and tasks, each in list order."""

    connectors: list[str] = field(default_factory=list)
    tasks: list[ConnectorTaskId] = field(default_factory=list)

    @classmethod
    def configured(cls, task_counts: Mapping[str, int]) -> "Work":
        """Return all connectors with all their tasks, sorted by connector."""
        connectors = sorted(task_counts, key=java_string_key)
        tasks = [ConnectorTaskId(c, number) for c in connectors for number in range(task_counts[c])]
        return cls(connectors, tasks)

    @classmethod
    def union(cls, parts: Iterable["Work"]) -> "Work":
        """Return everything in the parts, in order; repeated items come several times."""
        total = cls()
        for part in parts:
            total.connectors += part.connectors
            total.tasks += part.tasks
        return total

    def __bool__(self) -> bool:
        """Whether there is any work."""
        return bool(self.connectors or self.tasks)

    def load(self) -> WorkerLoad:
        """Return the same work as an immutable load."""
        return WorkerLoad(connectors=tuple(self.connectors), tasks=tuple(self.tasks))

    def minus(self, *others: "Work") -> "Work":
        """Return the items that are in none of the others, in this order."""
        connectors = {c for other in others for c in other.connectors}
        tasks = {t for other in others for t in other.tasks}
        return Work(
            [c for c in self.connectors if c not in connectors],
            [t for t in self.tasks if t not in tasks],
        )

    def difference(self, *others: "Work") -> "Work":
        """Return the items that are in none of the others, each once, sorted.

        Source: IncrementalCooperativeAssignor.diff over TreeSets.
        """
        left = self.minus(*others)
        return Work(
            sorted(dict.fromkeys(left.connectors), key=java_string_key),
            sorted(dict.fromkeys(left.tasks), key=task_key),
        )

    def hashed_intersection(self, other: "Work") -> "Work":
        """Return the items in both, in the order of a HashSet copied from this one."""
        connectors, tasks = frozenset(other.connectors), frozenset(other.tasks)
        return Work(
            [c for c in _hash_set_order(self.connectors, java_string_hash) if c in connectors],
            [t for t in _hash_set_order(self.tasks, connector_task_hash) if t in tasks],
        )

    def add(self, other: "Work") -> None:
        """Append items that are missing."""
        self.connectors = list(dict.fromkeys([*self.connectors, *other.connectors]))
        self.tasks = list(dict.fromkeys([*self.tasks, *other.tasks]))

    def repeated(self) -> "Work":
        """Return the items that occur more than once."""
        return Work(_repeated(self.connectors), _repeated(self.tasks))

    def shares_with(self, other: "Work") -> bool:
        """Whether some item is in both."""
        return not (
            frozenset(self.connectors).isdisjoint(other.connectors)
            and frozenset(self.tasks).isdisjoint(other.tasks)
        )


def _hash_set_order(items: list[T], hash_of: Callable[[T], int]) -> list[T]:
    return java_hash_order(items, java_copy_capacity(len(items)), hash_of=hash_of)


def _repeated(items: list[T]) -> list[T]:
    counts: dict[T, int] = {}
    for item in items:
        counts[item] = counts.get(item, 0) + 1
    return [item for item, count in counts.items() if count > 1]
