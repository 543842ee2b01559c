"""Events between parts of a cluster: records appended, a leader changed, a client disconnected.

A listener adds a function to the list of its event; the functions are called in list order.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import Change
from coordinator_sim.broker.purgatory import Place


@dataclass(slots=True)
class ClusterEvents:
    """The listeners of each event.

    Attributes:
        changed: (change): the metadata changed; listeners by type of change.
        readable: (partition): more can be read, or readers must check again: an append, a
            marker, a moved high watermark.
        leader_changed: (topic, partition, present): another leader, or none.
        topic_created: (name, present).
        topic_deleted: (name, id, number of partitions, present).
        partitions_added: (name, present).
        broker_fenced: (id of the broker): it is given up, and others lead its partitions.
        disconnected: (number of the connection).
        trouble: (sentence for the server's log): the disk failed.
    """

    changed: dict[type[Change], list[Callable[[Any], None]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    readable: list[Callable[[Place], None]] = field(default_factory=list)
    leader_changed: list[Callable[[str, int, Instants], None]] = field(default_factory=list)
    topic_created: list[Callable[[str, Instants], None]] = field(default_factory=list)
    topic_deleted: list[Callable[[str, bytes, int, Instants], None]] = field(default_factory=list)
    partitions_added: list[Callable[[str, Instants], None]] = field(default_factory=list)
    broker_fenced: list[Callable[[int], None]] = field(default_factory=list)
    disconnected: list[Callable[[int], None]] = field(default_factory=list)
    trouble: list[Callable[[str], None]] = field(default_factory=list)

    def touched(self, place: Place) -> None:
        """Tell the listeners of `readable` about a partition."""
        for listener in self.readable:
            listener(place)

    def listen(self, listener: Callable[[Place], None]) -> None:
        """Add a listener of `readable`, unless it is there."""
        if listener not in self.readable:
            self.readable.append(listener)
