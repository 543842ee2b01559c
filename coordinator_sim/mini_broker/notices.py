"""What parts of a cluster tell each other: something was appended, a leader changed, a client left.

Who wants to hear puts a function into the list of its kind; they are called in that order.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from coordinator_sim.mini_broker.contract import Instants


@dataclass(slots=True)
class Notices:
    """Whom to tell.

    Attributes:
        readable: Topic, partition: more can be read, or a reader has to look again: an append, a
            marker, a moved high watermark.
        leader_changed: Topic, partition, present: another leader, or none.
        topic_created: Name, present.
        topic_deleted: Name, id, number of partitions, present.
        partitions_added: Name, present.
        disconnected: Number of the connection.
        trouble: A sentence for the server's log: the disk refused something.
    """

    readable: list[Callable[[str, int], None]] = field(default_factory=list)
    leader_changed: list[Callable[[str, int, Instants], None]] = field(default_factory=list)
    topic_created: list[Callable[[str, Instants], None]] = field(default_factory=list)
    topic_deleted: list[Callable[[str, bytes, int, Instants], None]] = field(default_factory=list)
    partitions_added: list[Callable[[str, Instants], None]] = field(default_factory=list)
    disconnected: list[Callable[[int], None]] = field(default_factory=list)
    trouble: list[Callable[[str], None]] = field(default_factory=list)
