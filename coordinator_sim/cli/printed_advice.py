"""`lint --trace`: what is wrong with the settings that clients and workers printed at a start.

A trace keeps the settings that matter to groups, the defaults among them. Bounds of session
timeouts are those that brokers printed, where they did.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.clients.client_kind import ClientKind, kind_of_id
from coordinator_sim.clients.settings_advice import (
    SESSION_BOUNDS_MS,
    Advice,
    Weight,
    advise,
    first_of_each,
    session_advice,
)
from coordinator_sim.clients.streams_advice import advise_streams
from coordinator_sim.connect.settings.worker_advice import advise_sinks, advise_worker
from coordinator_sim.connect.settings.worker_settings import WORKER_CONFIG_DEF
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.printed_settings import (
    BLOCK,
    KEPT,
    OF_CLASSIC,
    SESSION,
    SETTINGS,
    printed_settings,
)
from coordinator_sim.trace.window import Window

_BOUNDS: Final = ("group.min.session.timeout.ms", "group.max.session.timeout.ms")
_STATIC: Final = "group.instance.id"
_ASSIGNORS: Final = "partition.assignment.strategy"
_DEFAULT_SESSION_MS: Final = {ClientKind.CONNECT: 10_000}
_CONSUMER_SESSION_MS: Final = 45_000
_WORKER: Final = "DistributedConfig"
_STREAMS: Final = "StreamsConfig"
_NOT_JUDGED: Final = frozenset({"application.id", "client.id", "group.id", "num.stream.threads"})


class PrintedAdvice(Struct, frozen=True, kw_only=True):
    """One thing to change in what clients of a group printed.

    Args:
        group_id: The group.
        clients: Who printed the value, in order of their first starts: the group.instance.id, else
            the client.id, else the line.
        advice: The setting, its value, and what to do.
    """

    group_id: str
    clients: tuple[str, ...]
    advice: Advice

    @property
    def how(self) -> str:
        """Preposition before the clients: a value that is not set was not printed."""
        return "of" if self.advice.value.startswith("(") else "printed by"


def printed_advice(events: Iterable[TraceEvent], window: Window) -> list[PrintedAdvice] | None:
    """Return what should be changed, errors first; None where no client printed its settings.

    Judged are the settings in force in a window: those of starts in it, and those of each client's
    last start before it.
    """
    starts = [each for each in events if each.attrs.get("sign") == SETTINGS]
    bounds = _session_bounds(starts)
    by_group: defaultdict[str, list[TraceEvent]] = defaultdict(list)
    for start in sorted(starts, key=lambda each: each.ts_us):
        if start.group_id is not None:
            by_group[start.group_id].append(start)
    clients: defaultdict[tuple[str, Advice], dict[str, None]] = defaultdict(dict)
    for group_id, own in by_group.items():
        for start in _in_force(_members(own), window):
            for advice in _judged(start, own, bounds):
                clients[group_id, advice][_name(start)] = None
    found = [
        PrintedAdvice(group_id=group_id, clients=tuple(own), advice=advice)
        for (group_id, advice), own in clients.items()
    ]
    found.sort(key=lambda each: (each.advice.weight is not Weight.ERROR, each.group_id))
    return found if by_group else None


def _name(start: TraceEvent) -> str:
    return start.group_instance_id or start.client_id or start.source_ref or "a client"


def _session_bounds(starts: Sequence[TraceEvent]) -> tuple[int, int]:
    """Return the bounds that all brokers printed alike, else Kafka's defaults."""
    brokers = printed_settings(starts).get(None)
    told = [None if brokers is None else brokers.of(name) for name in _BOUNDS]
    least, most = (None if each is None else each.number for each in told)
    return (
        SESSION_BOUNDS_MS[0] if least is None else least,
        SESSION_BOUNDS_MS[1] if most is None else most,
    )


def _members(starts: Sequence[TraceEvent]) -> list[TraceEvent]:
    """Return the starts of members: the consumers of a worker's own topics are none."""
    workers = [each for each in starts if each.attrs[BLOCK] == _WORKER]
    return workers or [each for each in starts if each.attrs[BLOCK] != _STREAMS]


def _in_force(starts: Sequence[TraceEvent], window: Window) -> list[TraceEvent]:
    """Return the starts in a window, and the last one of each client and file before it.

    Args:
        starts: In order of time.
        window: The window.
    """
    before: dict[tuple[str, str], TraceEvent] = {}
    for start in starts:
        if start.ts_us < window.from_us:
            before[_name(start), start.source_ref or ""] = start
    return [*before.values(), *(start for start in starts if window.holds(start.ts_us))]


def _judged(
    start: TraceEvent, of_group: Sequence[TraceEvent], bounds: tuple[int, int]
) -> list[Advice]:
    """Return what should be changed in what one client printed, with the values as printed."""
    printed = {name: start.attrs[name] for name in KEPT & start.attrs.keys()}
    settings = {name: value for name, value in printed.items() if name not in _NOT_JUDGED}
    if _ASSIGNORS in settings:
        names = settings[_ASSIGNORS].strip("[]").split(",")
        settings[_ASSIGNORS] = ",".join(name.strip().removeprefix("class ") for name in names)
    kind = kind_of_id(start.client_id or "") or ClientKind.CONSUMER
    if start.attrs[BLOCK] == _WORKER:
        kind = ClientKind.CONNECT
    elif any(each.attrs[BLOCK] == _STREAMS for each in of_group):
        kind = ClientKind.STREAMS
    # Of a stream thread, the application's last start before it tells the protocol.
    apps = [
        each for each in of_group if each.attrs[BLOCK] == _STREAMS and each.ts_us <= start.ts_us
    ]
    protocol = [start, *apps][-1].attrs.get("group.protocol", "classic")
    is_classic = kind is ClientKind.CONNECT or protocol.lower() == "classic"
    if not is_classic:
        settings = {name: value for name, value in settings.items() if name not in OF_CLASSIC}
    found = _advice(kind, settings, protocol)
    if is_classic and (session := settings.get(SESSION, "")).isdecimal():
        default_ms = _DEFAULT_SESSION_MS.get(kind, _CONSUMER_SESSION_MS)
        found = [each for each in found if each.setting != SESSION or each.weight is Weight.WARNING]
        found += session_advice(settings, int(session), default_ms, bounds)
    # What a block that is cut short lacks is not known; no group.instance.id is printed as null.
    return [
        replace(each, value=printed.get(each.setting, each.value))
        for each in first_of_each(found)
        if each.setting in printed or each.setting == _STATIC
    ]


def _advice(kind: ClientKind, settings: Mapping[str, str], protocol: str) -> list[Advice]:
    if kind is ClientKind.CONNECT:
        # A worker prints its defaults, which are no settings that do nothing.
        chosen = {
            name: value
            for name, value in settings.items()
            if value != str(WORKER_CONFIG_DEF.keys[name].default)
        }
        return advise_worker(chosen, is_running=True)
    if kind is ClientKind.STREAMS:
        own = {name: value for name, value in settings.items() if name != _ASSIGNORS}
        return advise_streams(own | {"group.protocol": protocol})
    return advise_sinks(settings) if kind is ClientKind.SINK else advise(settings)
