"""The assignors by their names on the wire.

A consumer assignor is known by its module in this room: `OFFERED` there names its classes.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Final, TypeVar

from coordinator_sim import assignors
from coordinator_sim.assignors.connect_eager import EagerConnectAssignor
from coordinator_sim.assignors.connect_incremental import IncrementalConnectAssignor
from coordinator_sim.assignors.contract import ConnectAssignor, ConsumerAssignor
from coordinator_sim.errors import ConfigError

T = TypeVar("T")

KAFKA_ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""The consumer assignors that Kafka's clients bring along."""


def _offered() -> dict[str, Callable[[], ConsumerAssignor]]:
    """The assignors of all modules: Kafka's in its order, then the others by name."""
    found: dict[str, Callable[[], ConsumerAssignor]] = {}
    for module in iter_modules(assignors.__path__, f"{assignors.__name__}."):
        if module.name != __name__:
            classes = getattr(import_module(module.name), "OFFERED", ())
            found |= {make().name: make for make in classes}
    return {name: found[name] for name in (*KAFKA_ASSIGNORS, *sorted(found))}


CONSUMER_ASSIGNORS: Final[Mapping[str, Callable[[], ConsumerAssignor]]] = _offered()
"""Protocol name -> constructor."""

OWN_ASSIGNORS: Final = tuple(name for name in CONSUMER_ASSIGNORS if name not in KAFKA_ASSIGNORS)
"""The consumer assignors that were added to Kafka's."""

CONNECT_PROTOCOLS: Final[Mapping[str, Callable[[int], ConnectAssignor]]] = {
    "default": lambda _: EagerConnectAssignor(),
    "compatible": IncrementalConnectAssignor,
    "sessioned": IncrementalConnectAssignor,
}
"""Connect's protocol names -> constructor from `scheduled.rebalance.max.delay.ms`."""


def make_consumer_assignor(name: str) -> ConsumerAssignor:
    """Return a fresh consumer assignor, without memory.

    Raises:
        ConfigError: the name is unknown.
    """
    return _look_up(CONSUMER_ASSIGNORS, "consumer assignor", name)()


def make_connect_assignor(
    protocol_name: str, *, scheduled_rebalance_max_delay_ms: int
) -> ConnectAssignor:
    """Return a fresh Connect assignor, without memory.

    Args:
        protocol_name: Protocol of the group: `default` (eager), `compatible` or `sessioned`.
        scheduled_rebalance_max_delay_ms: 0 or more; the eager assignor ignores it.

    Raises:
        ConfigError: the name is unknown or the delay negative.
    """
    make = _look_up(CONNECT_PROTOCOLS, "Connect protocol", protocol_name)
    if scheduled_rebalance_max_delay_ms < 0:
        raise ConfigError(
            f"scheduled.rebalance.max.delay.ms={scheduled_rebalance_max_delay_ms} is negative; "
            "use 0 or more"
        )
    return make(scheduled_rebalance_max_delay_ms)


def _look_up(known: Mapping[str, T], what: str, name: str) -> T:
    try:
        return known[name]
    except KeyError:
        raise ConfigError(f"unknown {what} {name!r}; known are {', '.join(known)}") from None
