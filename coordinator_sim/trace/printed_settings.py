"""Settings that clients and workers printed at their start: what members of a group are set to."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
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
ASSUMED: Final = "assumed"
"""Attribute instead of it, where only another client of the group printed the setting."""
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
OF_CLASSIC: Final = frozenset({SESSION, HEARTBEAT, "partition.assignment.strategy"})
"""Settings that group.protocol=consumer prints, and does not use."""
_MOST_NAMED: Final = 3
_UUID_LENGTH: Final = 37
"""Characters that a coordinator adds to a client's id: a dash and a UUID."""


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
        starts: By setting, client and file: the starts that printed it, as time (us) and value.
    """

    starts: dict[str, dict[tuple[str, str], list[tuple[int, str]]]] = {}

    def values(self, name: str, at_us: int | None = None) -> dict[str, str | None]:
        """Return by client what it had last printed by then, or at all; of later ones the first.

        None where processes of that client differ.
        """
        told: defaultdict[str, defaultdict[bool, set[str]]]
        told = defaultdict(lambda: defaultdict(set))
        for (client, _), starts in self.starts.get(name, {}).items():
            place = len(starts)
            if at_us is not None:
                place = bisect_right(starts, at_us, key=itemgetter(0))
            told[client][place > 0].add(starts[max(0, place - 1)][1])
        found = {client: own[True] or own[False] for client, own in told.items()}
        return {client: next(iter(own)) if len(own) == 1 else None for client, own in found.items()}

    def of(
        self, name: str, client: str | None = None, at_us: int | None = None
    ) -> PrintedValue | None:
        """Return a setting of a client, or else of all; None where they differ, or none did."""
        own = self.values(name, at_us)
        if client not in own and len(set(own.values())) == 1:
            client = next(iter(own))
        value = own.get(client or "")
        return None if client is None or value is None else PrintedValue(name, value, client)

    def named_in(self, text: str) -> tuple[str, ...]:
        """Return in words what is known of the settings that a text names."""
        told = (self.of(name) for name in self.starts if name in text)
        differing = (
            f"{name} {self.differing(name)}, printed at their starts"
            for name in self.starts
            if name in text and self.differing(name)
        )
        return (*(each.words for each in told if each is not None), *differing)

    def differing(self, name: str, at_us: int | None = None) -> str:
        """Return which clients printed which values, where they differ; empty otherwise."""
        clients: defaultdict[str, list[str]] = defaultdict(list)
        for client, value in self.values(name, at_us).items():
            clients["several values" if value is None else value].append(client)
        if len(clients) == 1 and "several values" not in clients:
            return ""
        return ", ".join(f"{value} ({named(own)})" for value, own in clients.items())


def named(clients: Sequence[str]) -> str:
    """Return the names of clients in words, the first three of many."""
    more = len(clients) - _MOST_NAMED
    named = ", ".join(clients[:_MOST_NAMED])
    return f"{named} and {more} more" if more > 0 else named


NOTHING_PRINTED: Final = PrintedSettings()
"""Settings of a group whose clients have no log."""


def printed_settings(events: Iterable[TraceEvent]) -> dict[str | None, PrintedSettings]:
    """Return what clients printed at each start, by group.

    What brokers printed is there without a group.

    The consumers of a worker's own topics have the group.id of its cluster, and are in no group:
    where workers print theirs, only those count.
    """
    starts: defaultdict[str | None, list[TraceEvent]] = defaultdict(list)
    for event in events:
        if event.attrs.get("sign") == SETTINGS:
            starts[event.group_id].append(event)
    return {group_id: _starts_of(own) for group_id, own in starts.items()}


def _starts_of(starts: Sequence[TraceEvent]) -> PrintedSettings:
    workers = [each for each in starts if each.attrs[BLOCK] == _WORKER]
    told: defaultdict[str, dict[tuple[str, str], list[tuple[int, str]]]] = defaultdict(dict)
    for start in sorted(workers or starts, key=lambda each: each.ts_us):
        file = start.source_ref or ""
        broker = None if start.broker_id is None else f"broker {start.broker_id}"
        key = (start.group_instance_id or start.client_id or broker or file, file)
        is_consumer = start.attrs.get("group.protocol", "").lower() == "consumer"
        unused = _NAMES | (OF_CLASSIC if is_consumer else frozenset())
        for name in (KEPT - unused) & start.attrs.keys():
            told[name].setdefault(key, []).append((start.ts_us, start.attrs[name]))
    return PrintedSettings(dict(sorted(told.items())))


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
    if line.session_timeout_ms is not None or SESSION not in printed.starts:
        return line
    client = (line.member_id or "")[:-_UUID_LENGTH]
    said = printed.of(SESSION, client, line.ts_us)
    differing = printed.differing(SESSION, line.ts_us)
    who = line.member_id or "a member that failed"
    attr = PRINTED
    if said is None:
        words = f"{SESSION} of {who} is not known: clients printed {differing}"
    elif said.client == client:
        words = said.words + (f"; clients printed {differing}" if differing else "")
    else:
        attr = ASSUMED
        words = f"{SESSION} of {who} is assumed: another client of the group printed {said.value} "
        words += f"({said.client})"
    timeout_ms = None if said is None else said.number
    return replace(line, session_timeout_ms=timeout_ms, attrs=line.attrs | {attr: words})
