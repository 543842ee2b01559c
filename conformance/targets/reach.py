"""How a target that listens on sockets is reached with frames that a script cannot send."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

if TYPE_CHECKING:
    from coordinator_sim_conformance.wire.links import Link


class Reach(Struct, frozen=True, kw_only=True):
    """A broker behind a socket, for one case.

    Args:
        versions: Oldest and newest version of each API that it offers, by Kafka's names.
        group: Returns the name of a group that nobody has used; all have one coordinator.
        opened: Opens a connection to that coordinator, logged in.
        topic: Returns a topic of one partition or more, created when it is first asked for.
        largest: Bytes of the longest request that it takes.
        patience_s: How long it may take to end a connection.
    """

    versions: Mapping[str, tuple[int, int]]
    group: Callable[[], str]
    opened: "Callable[[], Link]"
    topic: Callable[[], str]
    largest: int
    patience_s: float = 5.0


@runtime_checkable
class Reachable(Protocol):
    """A target that can be reached so."""

    def reach(self) -> Reach:
        """Return how its broker is reached, with names that no other case has."""
        ...
