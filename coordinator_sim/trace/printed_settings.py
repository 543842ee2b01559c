"""Settings that clients and workers printed at their start: what members of a group are set to."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.trace.events import Event, TraceEvent

SETTINGS: Final = "settings"
"""Sign of an event that has printed settings as attributes, by their Kafka names."""
BLOCK: Final = "block"
"""Attribute: the class whose settings they are, such as `ConsumerConfig`."""
PRINTED: Final = "printed"
"""Attribute of a failure: the setting behind its time, and who printed it; or why none is known."""
SESSION: Final = "session.timeout.ms"
HEARTBEAT: Final = "heartbeat.interval.ms"
_WORKER: Final = "DistributedConfig"
KEPT: Final = frozenset(
    {
        *("application.id", "broker.id", "client.id", "connect.protocol"),
        *("group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms", "group.id"),
        *("group.initial.rebalance.delay.ms", "group.instance.id", "group.max.session.timeout.ms"),
        *("group.max.size", "group.min.session.timeout.ms", "group.protocol"),
        *("group.remote.assignor", HEARTBEAT, "internal.leave.group.on.close"),
        *("max.poll.interval.ms", "max.poll.records", "node.id", "num.standby.replicas"),
        *("num.stream.threads", "offsets.topic.num.partitions", "partition.assignment.strategy"),
        *("rebalance.timeout.ms", "scheduled.rebalance.max.delay.ms", SESSION),
        *("worker.sync.timeout.ms", "worker.unsync.backoff.ms"),
    }
)
"""Settings that matter to groups."""


_NAMES: Final = frozenset({"application.id", "client.id", "group.id", "group.instance.id"})
"""Settings that name a client or a group, and so are no values to compare."""
_OF_CLASSIC: Final = frozenset({SESSION, HEARTBEAT, "partition.assignment.strategy"})
"""Settings that group.protocol=consumer prints, and does not use."""
_MOST_NAMED: Final = 3


class PrintedValue(Struct, frozen=True):
    """A setting and the client that printed it."""

    name: str
    value: str
    client: str

    @property
    def words(self) -> str:
        """The setting in words."""
        return f"{self.name} {self.value} (printed by {self.client} at its start)"

    @property
    def number(self) -> int | None:
        """The value as a number; None for a text."""
        return int(self.value) if self.value.isdecimal() else None


class PrintedSettings(Struct, frozen=True):
    """What the clients of one group printed.

    Args:
        values: By setting and client, its value; None where processes of that client differ.
    """

    values: dict[str, dict[str, str | None]] = {}

    def of(self, name: str, member_id: str | None = None) -> PrintedValue | None:
        """Return a setting of a member, or of all of them; None where they differ, or none did."""
        own = self.values.get(name, {})
        client = max((each for each in own if _is_of(member_id, each)), key=len, default=None)
        told = set(own.values())
        if client is None and len(told) == 1:
            client = next(iter(own))
        value = None if client is None else own[client]
        return None if client is None or value is None else PrintedValue(name, value, client)

    def named_in(self, text: str) -> tuple[str, ...]:
        """Return in words what is known of the settings that a text names."""
        told = (self.of(name) for name in self.values if name in text)
        differing = (
            f"{name} {self.differing(name)}, printed at their starts"
            for name in self.values
            if name in text and self.differing(name)
        )
        return (*(each.words for each in told if each is not None), *differing)

    def differing(self, name: str) -> str:
        """Return which clients printed which values, where they differ; empty otherwise."""
        clients: defaultdict[str, list[str]] = defaultdict(list)
        for client, value in self.values.get(name, {}).items():
            clients["several values" if value is None else value].append(client)
        if len(clients) == 1 and "several values" not in clients:
            return ""
        return ", ".join(f"{value} ({_named(own)})" for value, own in clients.items())


def _named(clients: Sequence[str]) -> str:
    more = len(clients) - _MOST_NAMED
    named = ", ".join(clients[:_MOST_NAMED])
    return f"{named} and {more} more" if more > 0 else named


def _is_of(member_id: str | None, client: str) -> bool:
    return member_id is not None and member_id.startswith(f"{client}-")


NOTHING_PRINTED: Final = PrintedSettings()
"""Settings of a group whose clients have no log."""


def printed_settings(events: Iterable[TraceEvent]) -> dict[str | None, PrintedSettings]:
    """Return what clients printed, by group; of one client's starts in a file the last counts.

    What brokers printed is there without a group.

    The consumers of a worker's own topics have the group.id of its cluster, and are in no group:
    where workers print theirs, only those count.
    """
    starts: defaultdict[str | None, list[TraceEvent]] = defaultdict(list)
    for event in events:
        if event.attrs.get("sign") == SETTINGS:
            starts[event.group_id].append(event)
    return {group_id: _values_of(own) for group_id, own in starts.items()}


def _values_of(starts: Sequence[TraceEvent]) -> PrintedSettings:
    workers = [each for each in starts if each.attrs[BLOCK] == _WORKER]
    last: defaultdict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for start in workers or starts:
        file = start.source_ref or ""
        broker = None if start.broker_id is None else f"broker {start.broker_id}"
        key = (start.group_instance_id or start.client_id or broker or file, file)
        is_consumer = start.attrs.get("group.protocol", "").lower() == "consumer"
        unused = _NAMES | (_OF_CLASSIC if is_consumer else frozenset())
        for name in (KEPT - unused) & start.attrs.keys():
            last[name][key] = start.attrs[name]
    values: dict[str, dict[str, str | None]] = {}
    for name, by_process in sorted(last.items()):
        own: dict[str, str | None] = {}
        for (client, _), value in by_process.items():
            own[client] = value if own.get(client, value) == value else None
        values[name] = own
    return PrintedSettings(values)


def with_printed_settings(
    lines: Sequence[TraceEvent], printed: Mapping[str | None, PrintedSettings]
) -> list[TraceEvent]:
    """Return a coordinator's events, failures with the session timeout that was printed.

    A failure that has one, as from a request, keeps it.

    Args:
        lines: Events of coordinators.
        printed: What clients printed, by group.
    """
    return [
        _with_session(line, printed[line.group_id])
        if line.event is Event.MEMBER_FAILED and line.group_id in printed
        else line
        for line in lines
    ]


def _with_session(line: TraceEvent, printed: PrintedSettings) -> TraceEvent:
    if line.session_timeout_ms is not None or SESSION not in printed.values:
        return line
    said = printed.of(SESSION, line.member_id)
    differing = printed.differing(SESSION)
    if said is None:
        who = line.member_id or "a member that failed"
        words = f"{SESSION} of {who} is not known: clients printed {differing}"
    else:
        words = said.words + (f"; clients printed {differing}" if differing else "")
    timeout_ms = None if said is None else said.number
    return replace(line, session_timeout_ms=timeout_ms, attrs=line.attrs | {PRINTED: words})
