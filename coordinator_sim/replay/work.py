"""What a group's members share out: partitions of topics, or connectors and their tasks."""

from collections.abc import Iterable, Sequence
from statistics import median_low
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import ConfigError, CoordinatorSimError, check_new
from coordinator_sim.messages.embedded.connect_protocol import decode_connect_assignment
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_assignment,
    subscribed_topics,
)
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.printed_settings import (
    NOTHING_PRINTED,
    PrintedSettings,
    printed_settings,
)

CONNECT: Final = "connect"
MOST_PARTITIONS: Final = 100_000
"""Largest number of partitions of a topic."""


class GroupWork(Struct, frozen=True, kw_only=True):
    """What the members of one group share out.

    Args:
        topics: Topic -> number of partitions; empty for a Connect cluster.
        connectors: Connector -> number of tasks; empty for consumers.
        subscriptions: Client id -> its topics, where the trace tells them; others subscribe to all.
        scheduled_delay_ms: Longest delay that workers printed, or that a Connect assignment told;
            None where neither does.
        protocol: Assignor or Connect protocol of the trace; None where no line tells.
        is_given: Whether the user gave the partitions, because the trace does not tell them.
    """

    topics: dict[str, int] = {}
    connectors: dict[str, int] = {}
    subscriptions: dict[str, tuple[str, ...]] = {}
    scheduled_delay_ms: int | None = None
    protocol: str | None = None
    is_given: bool = False

    @property
    def is_connect(self) -> bool:
        """Whether the group is a Connect cluster."""
        return bool(self.connectors)

    @property
    def size(self) -> int:
        """Number of partitions, or of connectors and tasks."""
        if self.is_connect:
            return len(self.connectors) + sum(self.connectors.values())
        return sum(self.topics.values())


class Partitions(Struct, frozen=True):
    """Partitions given by the user: of all groups, and of single ones.

    Args:
        by_group: Group id -> topic -> number of partitions; the empty id is every group.
    """

    by_group: dict[str, dict[str, int]]

    def of(self, group_id: str) -> GroupWork | None:
        """Return the work of a group; None when nothing is given for it."""
        topics = {**self.by_group.get("", {}), **self.by_group.get(group_id, {})}
        return GroupWork(topics=topics, is_given=True) if topics else None


def parse_partitions(texts: Iterable[str]) -> Partitions:
    """Parse texts of the form `topic=N` or `group:topic=N`.

    Raises:
        ConfigError: a text has another form, or N is not from 1 to `MOST_PARTITIONS`.
    """
    by_group: dict[str, dict[str, int]] = {}
    for text in texts:
        name, equals, number = text.rpartition("=")
        # A group id may hold a colon, the name of a topic never does.
        group_id, _, topic = name.rpartition(":")
        if not equals or not topic or not number.isdecimal():
            raise ConfigError(f"--partitions {text}: give topic=N or group:topic=N")
        if not 1 <= int(number) <= MOST_PARTITIONS:
            raise ConfigError(f"--partitions {text}: N must be from 1 to {MOST_PARTITIONS}")
        topics = by_group.setdefault(group_id, {})
        check_new(topic, topics, f"--partitions {text}")
        topics[topic] = int(number)
    return Partitions(by_group)


def works_in(events: Iterable[TraceEvent]) -> dict[str, GroupWork]:
    """Return what the assignments of a trace tell, by group.

    A topic has as many partitions as were ever assigned, a connector as many tasks: work that
    nobody ever had is not seen, and what came later counts from the beginning.
    """
    seen: dict[str, _Seen] = {}
    for event in events:
        if event.event is Event.ASSIGNED and event.group_id is not None and event.assignment:
            seen.setdefault(event.group_id, _Seen()).add(event)
    return {group_id: each.work() for group_id, each in seen.items() if each.counts}


class _Seen:
    """The assignments of one group, read one by one."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self._is_connect = False
        self._subscriptions: dict[str, tuple[str, ...]] = {}
        self._protocol: str | None = None
        self._delay_ms = 0

    def add(self, event: TraceEvent) -> None:
        """Read one member's assignment; bytes that cannot be decoded tell nothing."""
        self._protocol = event.protocol_name or self._protocol
        self._is_connect = event.protocol_type == CONNECT
        try:
            items = self._connect_items(event) if self._is_connect else _consumer_items(event)
        except CoordinatorSimError:
            return
        for name, number in items:
            self.counts[name] = max(self.counts.get(name, 0), number)
        topics = None
        if event.subscription and not self._is_connect:
            topics = subscribed_topics(event.subscription)
        if topics is not None and event.client_id is not None:
            self._subscriptions[event.client_id] = topics

    def _connect_items(self, event: TraceEvent) -> list[tuple[str, int]]:
        """Return each connector or task, and how many tasks its connector has at least."""
        decoded = decode_connect_assignment(event.assignment or b"")
        self._delay_ms = max(self._delay_ms, decoded.delay_ms)
        items = [(name, 0) for name in decoded.connectors]
        return items + [(task.connector, task.task + 1) for task in decoded.tasks]

    def work(self) -> GroupWork:
        """Return the work that was seen."""
        counts = dict(sorted(self.counts.items()))
        if self._is_connect:
            return GroupWork(
                connectors=counts,
                protocol=self._protocol,
                scheduled_delay_ms=self._delay_ms or None,
            )
        return GroupWork(topics=counts, subscriptions=self._subscriptions, protocol=self._protocol)


def _consumer_items(event: TraceEvent) -> list[tuple[str, int]]:
    """Return each partition's topic, and how many partitions that topic has at least."""
    partitions = decode_assignment(event.assignment or b"").partitions
    return [(each.topic, each.partition + 1) for each in partitions]


class OwnTimes(Struct, frozen=True, kw_only=True):
    """Times that the rebalances of a group cost, in milliseconds, as the trace shows them.

    Args:
        paused_ms: Pauses of members; this and the next two are None where the trace lacks them.
        is_bound: Whether pauses and standstill are upper bounds.
    """

    rebalancing_ms: int | None
    paused_ms: int | None
    stopped_ms: int | None
    unowned_ms: int | None
    is_bound: bool


class KnownGroups(Struct, frozen=True):
    """Facts about each group that its coordinator's lines lack.

    Args:
        works: By group, the resources its members share, by the trace's assignments.
        given: Partitions that the user named, for groups whose assignments the trace lacks.
        heartbeats_ms: Heartbeat interval of the members, by group, from the trace's heartbeats.
        rejoins_ms: By group and member id, the times of its JoinGroups, ascending.
        printed: Settings that clients printed, by group; those of brokers without a group.
    """

    works: dict[str, GroupWork] = {}
    given: Partitions = Partitions({})
    heartbeats_ms: dict[str, int] = {}
    rejoins_ms: dict[str, dict[str, list[int]]] = {}
    printed: dict[str | None, PrintedSettings] = {}

    def work_of(self, group_id: str) -> GroupWork | None:
        """Return the work of a group; None where neither trace nor user tells."""
        return self.works.get(group_id) or self.given.of(group_id)


NOTHING_KNOWN: Final = KnownGroups()
"""Only the lines of the coordinators are known."""


def known_groups(events: Sequence[TraceEvent], given: Partitions) -> KnownGroups:
    """Collect the facts about groups from events other than the coordinators' lines."""
    printed = printed_settings(events)
    works = {
        group_id: _with_delay(work, printed.get(group_id, NOTHING_PRINTED))
        for group_id, work in works_in(events).items()
    }
    return KnownGroups(works, given, _heartbeats_in(events), _rejoins_in(events), printed)


def _with_delay(work: GroupWork, printed: PrintedSettings) -> GroupWork:
    """Return the work of a group, with the delay that its workers printed."""
    said = printed.of("scheduled.rebalance.max.delay.ms")
    return work if said is None else replace(work, scheduled_delay_ms=said.number)


def _rejoins_in(events: Iterable[TraceEvent]) -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = {}
    for event in events:
        if event.event is Event.JOIN_REQ and event.group_id is not None and event.member_id:
            own = found.setdefault(event.group_id, {}).setdefault(event.member_id, [])
            own.append(event.ts_us // 1000)
    for members in found.values():
        for own in members.values():
            own.sort()
    return found


def _heartbeats_in(events: Iterable[TraceEvent]) -> dict[str, int]:
    """Return the usual time between two heartbeats of a member in milliseconds, by group."""
    last_us: dict[tuple[str | None, str | None], int] = {}
    gaps: dict[str, list[int]] = {}
    for event in events:
        if event.event is Event.HEARTBEAT and event.group_id is not None:
            key = event.group_id, event.member_id
            if key in last_us:
                gaps.setdefault(event.group_id, []).append(event.ts_us - last_us[key])
            last_us[key] = event.ts_us
    return {group_id: max(1, median_low(own) // 1000) for group_id, own in gaps.items()}
