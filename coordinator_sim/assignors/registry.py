"""The assignors by their names on the wire.

A consumer assignor is known by its module in this room: `OFFERED` there names its classes. The
user's own are registered, or declared by a package as entry points.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from typing import Final, TypeVar

from coordinator_sim import assignors
from coordinator_sim.assignors.connect_eager import EagerConnectAssignor
from coordinator_sim.assignors.connect_incremental import IncrementalConnectAssignor
from coordinator_sim.assignors.contract import ConnectAssignor, ConsumerAssignor
from coordinator_sim.assignors.foreign.asked import AskedAssignor
from coordinator_sim.assignors.foreign.callables import function_at, guarded
from coordinator_sim.assignors.foreign.contract import AssignFunction, OwnAssignor
from coordinator_sim.errors import ConfigError

T = TypeVar("T")

ENTRY_POINTS: Final = "coordinator_sim.assignors"
"""Group of entry points by which other packages declare assignors: functions by their names."""
_NAME: Final = re.compile(r"[a-z][a-z0-9.-]{0,99}")

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


class _Assignors(Mapping[str, Callable[[], ConsumerAssignor]]):
    """The assignors of this package, then the user's own by name.

    Assignors that other packages declare are looked for once, when a name is unknown or all are
    asked for.
    """

    def __init__(self) -> None:
        self._offered = _offered()
        self._own: dict[str, Callable[[], ConsumerAssignor]] = {}
        self._of_consumers: set[str] = set()
        self._has_declared = False

    def __getitem__(self, name: str) -> Callable[[], ConsumerAssignor]:
        if name not in self._offered and name not in self._own:
            self._find_declared()
        return self._offered[name] if name in self._offered else self._own[name]

    def __iter__(self) -> Iterator[str]:
        self._find_declared()
        yield from self._offered
        yield from sorted(self._own)

    def __len__(self) -> int:
        self._find_declared()
        return len(self._offered) + len(self._own)

    def add(
        self, name: str, make: Callable[[], ConsumerAssignor], *, of_consumers: bool = False
    ) -> None:
        """Add an own assignor, in the place of an earlier own one of that name.

        Args:
            name: Its name.
            make: Makes one for each consumer.
            of_consumers: Whether it can run in consumers only, not in a group's coordinator.
        """
        if name in self._offered:
            raise ConfigError(f"assignor {name!r} is there already; give yours another name")
        if _NAME.fullmatch(name) is None:
            raise ConfigError(
                f"assignor {name!r}: a name has 1 to 100 lower-case letters, digits, '.' and '-', "
                "the first a letter"
            )
        self._own[name] = make
        if of_consumers:
            self._of_consumers.add(name)
        else:
            self._of_consumers.discard(name)

    def runs_in_coordinators(self, name: str) -> bool:
        """Whether it is an own assignor that the coordinator of a group can ask too."""
        return name in self and name not in (*self._offered, *self._of_consumers)

    def _find_declared(self) -> None:
        if self._has_declared:
            return
        self._has_declared = True
        for declared in entry_points(group=ENTRY_POINTS):
            if declared.name not in self._own:
                self.add(declared.name, partial(_declared, declared))


def _declared(declared: EntryPoint) -> ConsumerAssignor:
    function = guarded(declared.name, declared.load())
    return AskedAssignor(declared.name, function)


_KNOWN: Final = _Assignors()
CONSUMER_ASSIGNORS: Final[Mapping[str, Callable[[], ConsumerAssignor]]] = _KNOWN
"""Protocol name -> constructor."""


def own_assignors() -> tuple[str, ...]:
    """Return the names of the consumer assignors that were added to Kafka's."""
    return tuple(name for name in CONSUMER_ASSIGNORS if name not in KAFKA_ASSIGNORS)


_OF_COORDINATORS: Final[dict[str, AskedAssignor]] = {}
"""Those that no consumer can use."""


def register_server_assignor(name: str, function: AssignFunction) -> None:
    """Make a function a server-side assignor alone: no consumer can name it.

    Args:
        name: Name in `group.consumer.assignors`. An earlier function of that name is replaced.
        function: As of `register_assignor`.
    """
    _OF_COORDINATORS[name] = AskedAssignor(name, guarded(name, function))


def make_asked_assignor(name: str) -> AskedAssignor:
    """Return an assignor of the user's own that is asked by names, wherever it runs.

    Raises:
        ConfigError: there is no such assignor of the user's own, or it runs in consumers only.
    """
    if name in _OF_COORDINATORS:
        return _OF_COORDINATORS[name]
    found = make_consumer_assignor(name) if _KNOWN.runs_in_coordinators(name) else None
    if not isinstance(found, AskedAssignor):
        raise ConfigError(f"assignor {name!r} cannot run in a group's coordinator")
    return found


def asked_assignors() -> tuple[str, ...]:
    """Return the names of those that `make_asked_assignor` takes."""
    own = (name for name in own_assignors() if _KNOWN.runs_in_coordinators(name))
    return (*own, *sorted(_OF_COORDINATORS))


def register_assignor(name: str, function: AssignFunction) -> None:
    """Make a function an assignor, known by its name wherever an assignor is named.

    Args:
        name: Name in JoinGroup; one that begins with `cooperative-` is a cooperative assignor.
        function: Asked with topics and members; returns the partitions of each member
            (`foreign.contract`). An earlier function of that name is replaced.

    Raises:
        ConfigError: the name is one of this package's, or cannot be a name.
    """
    _KNOWN.add(name, partial(AskedAssignor, name, guarded(name, function)))


def register_own(own: OwnAssignor) -> None:
    """Make an assignor from outside known by its name, and load it if it is a function.

    Raises:
        ConfigError: the name cannot be used, or there is no such function.
    """
    if own.kind == "python":
        register_assignor(own.name, function_at(own))
    elif own.kind == "java":
        from coordinator_sim.assignors.foreign.java_class import JavaAssignor

        _KNOWN.add(own.name, partial(JavaAssignor, own), of_consumers=True)
    else:
        from coordinator_sim.assignors.foreign.process import process_function

        _KNOWN.add(own.name, partial(AskedAssignor, own.name, process_function(own)))


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
