"""Topics that a workload makes or uses, by name or by range of names.

Source: kafka trunk, trogdor/.../trogdor/workload/TopicsSpec.java and PartitionsSpec.java.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from msgspec import Meta, Struct

from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.trogdor.java_numbers import Int, Short
from coordinator_sim.trogdor.string_expander import InvalidName, check_count, expand

DEFAULT_PARTITIONS: Final = 1
MOST_PARTITIONS: Final = 1_000_000
"""Partitions of all topics of a spec together.

DEVIATION: Kafka's agent asks for as many as a spec says.
"""
DEFAULT_REPLICATION_FACTOR: Final = 3


class PartitionsSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """The partitions of a topic.

    Args:
        num_partitions: 0 or less for 1.
        replication_factor: 0 or less for 3.
        partition_assignments: Partition -> ids of its brokers; where any is named, the two numbers
            before mean nothing.
        configs: Of the topic.
    """

    num_partitions: Int = 0
    replication_factor: Short = 0
    partition_assignments: Mapping[Int, tuple[Int, ...]] = {}
    configs: Annotated[Mapping[str, str], Meta(extra={"null_values": "refused"})] = {}

    @property
    def partition_numbers(self) -> tuple[int, ...]:
        """The partitions there shall be, in order."""
        if self.partition_assignments:
            return tuple(sorted(self.partition_assignments))
        return tuple(range(self.effective_num_partitions))

    @property
    def effective_num_partitions(self) -> int:
        """How many partitions a new topic gets where no assignment is named."""
        return self.num_partitions if self.num_partitions > 0 else DEFAULT_PARTITIONS

    @property
    def effective_replication_factor(self) -> int:
        """How many replicas a new topic gets where no assignment is named."""
        given = self.replication_factor
        return given if given > 0 else DEFAULT_REPLICATION_FACTOR


class TopicsSpec(Struct, frozen=True, kw_only=True):
    """Topics by name; a name may have a range, `foo[1-3]`.

    Its JSON is the map itself, written even when it is empty. UNSPECIFIED: Java writes it in an
    order that each process draws (Map.copyOf); here the order of insertion stays.
    """

    any_setter: ClassVar[str] = "topics"

    topics: Mapping[str, PartitionsSpec] = {}

    def materialize(self) -> dict[str, PartitionsSpec]:
        """Topics by their full names, in the order of Java's hash map; the last range counts.

        Raises:
            InvalidName: a name has a range that cannot be, or they are too many.
        """
        check_count(self.topics)
        found = {
            name: partitions for given, partitions in self.topics.items() for name in expand(given)
        }
        count = sum(each.effective_num_partitions for each in found.values())
        if count > MOST_PARTITIONS:
            raise InvalidName(f"{count} partitions; the most of all topics are {MOST_PARTITIONS}")
        return {name: found[name] for name in java_hash_order(found)}
