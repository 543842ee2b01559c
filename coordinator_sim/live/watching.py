"""What a running cluster's groups do, from the records of its offsets topic; without sockets.

Records become events as those of segments do (`trace.offsets_topic`), and are numbered and steadied
as an import's are. Of each group only its members, its last offsets and the lines since its last
finished rebalance are held.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.log.format.consumer_records import typed
from coordinator_sim.log.format.offsets_records import decode_key, decode_record
from coordinator_sim.logtext.reading.incarnations import IncarnationCounter
from coordinator_sim.messages.embedded.contents import is_cooperative
from coordinator_sim.messages.records import LogKey, OpaqueKey
from coordinator_sim.trace.batches import Names, batch_of
from coordinator_sim.trace.epoch_groups import LEFT_OR_FAILED, is_evident
from coordinator_sim.trace.epoch_members import held_at_step, resources_in
from coordinator_sim.trace.events import Event, RebalanceReason, Source, TimeKind, TraceEvent
from coordinator_sim.trace.history import COORDINATOR_EVENTS, SteadyTimes, rebalances_of
from coordinator_sim.trace.offsets_topic import OffsetsTopic, StoredRecord

_KEYS: Final = 200_000
"""Limit of decoded keys that are remembered: most of a log's keys repeat."""
_HELD: Final = 50_000
"""Records of a partition that may wait for the rest of their batch."""
_LINES: Final = 5_000
"""Lines of a group that are held while its rebalance does not end, besides its first ones."""
_DEAD: Final = 1_000
"""Groups that ended, of which the counters are held."""
_SLOW_US: Final = 10_000_000
"""A rebalance that takes longer is told before it ends."""
_RISES: Final = 3
"""Readings in a row in which a lag must rise before it is told."""
_CLOSING: Final = frozenset(
    {Event.SYNC_LEADER, Event.TARGET_REACHED, Event.GROUP_EMPTY, Event.EPOCH_BUMPED}
)
_GONE: Final = {
    Event.MEMBER_LEFT: "left",
    Event.MEMBER_FAILED: "failed",
    Event.MEMBER_KICKED: "was removed",
}
_REBALANCING: Final = frozenset({"PREPARING_REBALANCING", "COMPLETING_REBALANCING"})
"""States of classic groups as confluent-kafka calls them."""


class SeenRecord(Struct, frozen=True, gc=False):
    """A record of `__consumer_offsets` as a consumer gets it."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class Ended(Struct, frozen=True, kw_only=True):
    """A rebalance that ended just now.

    Args:
        number: Its number among those of its group since the watch began, from 1.
        lines: Lines of the group that explain it.
        position: Its position among the rebalances of these lines.
        at_us: When it ended.
        cause: A `RebalanceReason`; of a classic group what became of members, by its log.
        changes: Who came and who went, in words; of a classic group alone.
        members_before: Members before it; None where they are not known.
    """

    group_id: str
    number: int
    lines: tuple[TraceEvent, ...]
    position: int
    at_us: int
    cause: str
    changes: tuple[str, ...]
    members_before: int | None


@dataclass(slots=True)
class SeenGroup:
    """What is held of a group; its history is not."""

    lines: list[TraceEvent] = field(default_factory=list)
    first: int = 1
    """How many of the lines are held in any case: until the one that begins the open rebalance."""
    is_first_reported: bool = False
    """Whether the first rebalance of the lines was told."""
    number: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    generation: int = -1
    generation_us: int = 0
    members: int | None = None
    protocol: str = ""
    before: frozenset[str] | None = None
    """Members of a classic group before its present rebalance; None where those are not known."""
    targets: dict[str, frozenset[str]] = field(default_factory=dict)
    """Resources that each member is to have, by its id."""
    clients: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Client id and host of each member, by its id."""
    held: dict[str, frozenset[str]] = field(default_factory=dict)
    universe: frozenset[str] = frozenset()
    """Resources that the group had when it last had members."""
    rebalancing_us: int | None = None
    """Since when its coordinator says that it rebalances; None while it does not."""
    is_slow: bool = False
    unowned_s: float = 0.0
    committed: dict[tuple[str, int], int] = field(default_factory=dict)
    lags: dict[tuple[str, int], int] = field(default_factory=dict)
    lag: int | None = None
    rises: int = 0
    reported_lag: int = 0

    def forget_offsets(self, event: TraceEvent) -> None:
        """Take a tombstone of offsets."""
        for each in event.offsets:
            self.committed.pop((each.topic, each.partition), None)
            self.lags.pop((each.topic, each.partition), None)
        if not self.lags:
            self.lag = None

    @property
    def unowned(self) -> int:
        """Resources without an owner now; all while an eager group rebalances."""
        if self.rebalancing_us is not None and not is_cooperative(self.protocol):
            return len(self.universe)
        return len(self.universe.difference(*self.held.values()))


class Watching:
    """Follows the groups of one cluster.

    Args:
        patterns: Ids of groups, or patterns with `*` and `?`; all groups where empty.
        least_lag: A lag below this is never told.

    Attributes:
        ends: The offset at which each partition ended when the watch began: rebalances in earlier
            records are recorded, and not told.
        unread: Records that could not be read.
        records: Records that were read.
        groups: The groups, by their ids.
        find_topics: Called before records that name a topic by an id that is not known; it is to
            call `name_topic`.
    """

    def __init__(self, patterns: Sequence[str] = (), *, least_lag: int = 1_000) -> None:
        self._patterns = tuple(patterns)
        self._least_lag = least_lag
        self._topic = OffsetsTopic(Source.OFFSETS_TOPIC, OFFSETS_TOPIC)
        self._keys: dict[bytes, LogKey] = {}
        self._chosen: dict[str, bool] = {}
        self._waiting: dict[int, list[StoredRecord]] = {}
        self._names = Names()
        self._lives = IncarnationCounter()
        self._times = SteadyTimes()
        self.ends: dict[int, int] = {}
        self.groups: dict[str, SeenGroup] = {}
        self._dead: dict[str, SeenGroup] = {}
        self._unnamed: set[bytes] = set()
        self.find_topics: Callable[[], None] = lambda: None
        self.unread = 0
        self.records = 0

    # -- records -----------------------------------------------------------------------------

    def take(
        self, records: Iterable[SeenRecord], *, is_drained: bool
    ) -> tuple[list[TraceEvent], list[Ended]]:
        """Take the next records of all partitions, those of each in their order.

        Args:
            records: The records.
            is_drained: Whether they end at the end of a batch. Otherwise the last ones wait, since
                more may follow that were written together with them.

        Returns:
            The events for the trace, and the rebalances that ended.
        """
        for record in records:
            self.records += 1
            stored = self._stored(record)
            if stored is not None:
                self._waiting.setdefault(record.partition, []).append(stored)
        ready = [self._ready(partition, is_drained=is_drained) for partition in list(self._waiting)]
        new = self._topic.unnamed(chain(*ready)) - self._unnamed
        if new:
            self._unnamed |= new
            self.find_topics()
        merged = heapq.merge(*ready, key=lambda stored: stored.timestamp_ms)
        return self._followed(list(self._topic.read(merged)))

    def note_gap(self, partition: int, text: str, at_us: int) -> list[TraceEvent]:
        """Record that records of a partition are missing.

        Args:
            partition: The partition.
            text: Which ones, in words.
            at_us: When that was noticed.
        """
        event = TraceEvent(
            event=Event.GAP,
            ts_us=at_us,
            ts_kind=TimeKind.INFERRED,
            offsets_partition=partition,
            reason_text=text,
            source=Source.OFFSETS_TOPIC,
            source_ref=OFFSETS_TOPIC,
        )
        return self._followed([event])[0]

    def name_topic(self, topic_id: bytes, name: str) -> None:
        """Hear the name of a topic that records of epochs call by its id."""
        self._topic.name_topic(topic_id, name)

    def _stored(self, record: SeenRecord) -> StoredRecord | None:
        if record.key is None:
            self.unread += 1
            return None
        if len(self._keys) > _KEYS:
            self._keys.clear()
            self._chosen.clear()
        try:
            key = self._keys.get(record.key)
            if key is None:
                key = self._keys[record.key] = decode_key(record.key)
            if not self._patterns or self._is_chosen(key, record):
                decoded = typed(decode_record(record.key, record.value, self._keys))
            else:
                return None
        except WireFormatError:
            self.unread += 1
            return None
        if isinstance(decoded.key, OpaqueKey):
            return None
        return StoredRecord(
            record=decoded,
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            partition=record.partition,
        )

    def _is_chosen(self, key: LogKey, record: SeenRecord) -> bool:
        if isinstance(key, OpaqueKey):
            key = typed(decode_record(record.key or b"", None)).key
        group_id = str(getattr(key, "group", getattr(key, "group_id", "")))
        chosen = self._chosen.get(group_id)
        if chosen is None:
            found = (_matches(group_id, pattern) for pattern in self._patterns)
            chosen = self._chosen[group_id] = any(found)
        return chosen

    def _ready(self, partition: int, *, is_drained: bool) -> list[StoredRecord]:
        """Records of a partition of which all that was written together has come."""
        waiting = self._waiting.pop(partition)
        if is_drained or len(waiting) > _HELD:
            return waiting
        last_ms = waiting[-1].timestamp_ms
        until = len(waiting)
        while until and waiting[until - 1].timestamp_ms == last_ms:
            until -= 1
        self._waiting[partition] = waiting[until:]
        return waiting[:until]

    # -- groups ------------------------------------------------------------------------------

    def _followed(self, events: list[TraceEvent]) -> tuple[list[TraceEvent], list[Ended]]:
        if not events:
            return [], []
        batch = self._times.steady(self._lives.number(batch_of(events, self._names)))
        numbered = list(batch.events())
        closing: dict[str, None] = {}
        ended: list[Ended] = []
        for event in numbered:
            group_id = event.group_id
            if group_id is None:
                continue
            if group_id in closing and event.event is not Event.ASSIGNED:
                del closing[group_id]
                ended += self._ended(group_id)
            if self._follow(group_id, event):
                closing[group_id] = None
        for group_id in closing:
            ended += self._ended(group_id)
        return numbered, ended

    def _follow(self, group_id: str, event: TraceEvent) -> bool:
        """Take a group's event; whether a rebalance may have ended with it."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = self._dead.pop(group_id, SeenGroup())
        kind = event.event
        if kind is Event.OFFSET_COMMIT:
            group.committed |= {(e.topic, e.partition): e.offset for e in event.offsets}
        elif kind is Event.OFFSET_TOMBSTONE:
            group.forget_offsets(event)
        elif kind is Event.GROUP_DEAD:
            self.groups[group_id] = SeenGroup(
                number=group.number,
                causes=group.causes,
                unowned_s=group.unowned_s,
                committed=group.committed,
            )
        else:
            if event.client_id is not None:
                client = event.client_id, event.client_host or ""
                group.clients[event.member_id or ""] = client
            _note_members(group, event)
            if kind in COORDINATOR_EVENTS:
                group.lines.append(event)
                if kind is not Event.ASSIGNED:
                    del group.lines[group.first : max(group.first, len(group.lines) - _LINES)]
        left = self.groups[group_id]
        if not (left.committed or left.lines):
            self._bury(group_id, self.groups.pop(group_id))
        return kind in _CLOSING

    def _bury(self, group_id: str, group: SeenGroup) -> None:
        """Hold the counters of a group that ended, so that they go on should it return."""
        if group.number or group.unowned_s:
            self._dead[group_id] = group
        if len(self._dead) > _DEAD:
            del self._dead[next(iter(self._dead))]

    def _ended(self, group_id: str) -> Iterator[Ended]:
        """Yield the rebalances of a group that ended since the last call; forget those before."""
        group = self.groups.get(group_id)
        if group is None:
            return
        told = rebalances_of(group_id, group.lines)
        last = -1
        for position, each in enumerate(told):
            rebalance = each.rebalance
            if rebalance.ended is None:
                break
            last = position
            if position == 0 and group.is_first_reported:
                continue
            if not self._is_past(rebalance.ended):
                group.number += 1
                before, group.before = group.before, None
                at_once = (each for each in group.lines if each.ts_us == rebalance.first_line.ts_us)
                if not rebalance.is_epoch:
                    changes = _changes(before, group, rebalance.lines)
                elif rebalance.reason is RebalanceReason.UNKNOWN:
                    gone = (line for line in at_once if line.event in _GONE)
                    changes = tuple(f"{line.member_id} {_departed(line)}" for line in gone)
                else:
                    changes = ()
                cause = rebalance.reason.value
                if rebalance.reason is RebalanceReason.UNKNOWN:
                    cause = _cause(changes)
                group.causes[cause] += 1
                yield Ended(
                    group_id=group_id,
                    number=group.number,
                    lines=tuple(group.lines),
                    position=position,
                    at_us=rebalance.ended.ts_us,
                    cause=cause,
                    changes=changes,
                    members_before=None if before is None else len(before),
                )
            group.before = None
        if last >= 0:
            first = told[last].rebalance.first_line
            group.lines = group.lines[next(i for i, e in enumerate(group.lines) if e is first) :]
            group.is_first_reported = True
            group.first = len(group.lines) + 1

    def _is_past(self, line: TraceEvent) -> bool:
        return line.seq < self.ends.get(line.offsets_partition or 0, 0)

    # -- what others tell --------------------------------------------------------------------

    def note_states(self, states: Mapping[str, str], now_us: int) -> list[tuple[str, int]]:
        """Take the states of groups.

        Returns:
            Groups whose rebalance takes long, each once, and its seconds so far.
        """
        slow = []
        for group_id, group in self.groups.items():
            state = states.get(group_id, "")
            if state not in _REBALANCING:
                group.rebalancing_us = None
            elif group.rebalancing_us is None:
                group.rebalancing_us, group.is_slow = now_us, False
            elif now_us - group.rebalancing_us >= _SLOW_US and not group.is_slow:
                group.is_slow = True
                slow.append((group_id, (now_us - group.rebalancing_us) // 1_000_000))
        return slow

    def note_time(self, passed_s: float) -> None:
        """Count the time in which partitions had no owner."""
        for group in self.groups.values():
            if group.universe:
                group.unowned_s += passed_s * group.unowned

    def note_log_ends(self, ends: Mapping[tuple[str, int], int]) -> list[tuple[str, int, bool]]:
        """Take the ends of partitions; returns groups whose lag matters.

        Args:
            ends: The ends of some partitions; others keep the lag of their last reading.

        Returns:
            Group, its lag in records, and whether it fell behind (else it caught up). A group falls
            behind when its lag rises at three readings in a row, and again when it has doubled.
        """
        found = []
        for group_id, group in self.groups.items():
            read = {
                key: max(0, ends[key] - offset)
                for key, offset in group.committed.items()
                if key in ends
            }
            if not read:
                continue
            group.lags |= read
            lag = sum(group.lags.values())
            was, group.lag = group.lag, lag
            group.rises = group.rises + 1 if was is not None and lag > was else 0
            least = max(self._least_lag, 2 * group.reported_lag)
            if group.rises >= _RISES and lag >= least:
                group.reported_lag = lag
                found.append((group_id, lag, True))
            elif group.reported_lag and lag < self._least_lag:
                group.reported_lag = 0
                found.append((group_id, lag, False))
        return found

    def unseen_names(self) -> list[str]:
        """The groups, or patterns, that are asked for and were not seen so far."""
        return [
            pattern
            for pattern in self._patterns
            if not any(_matches(group_id, pattern) for group_id in self.groups)
        ]

    def committed_partitions(self) -> list[tuple[str, int]]:
        """The partitions with commits of any group, in order."""
        return sorted({key for group in self.groups.values() for key in group.committed})

    def exposition(self, now_us: int, counters: Mapping[str, tuple[str, int]]) -> str:
        """All metrics in Prometheus' text format, one sample a line.

        Args:
            now_us: The present.
            counters: Further counters: their help and value, by name.
        """
        lines: list[str] = []
        counts = {**counters, "records_total": ("Records read.", self.records)}
        for name, (text, value) in counts.items():
            lines += _head(name, "counter", text)
            lines.append(f"{_PREFIX}{name} {value}")
        held = sorted({**self._dead, **self.groups}.items())
        named = [(_label(group_id), group) for group_id, group in held]
        lines += _head("rebalances_total", "counter", "Rebalances that ended, by cause.")
        lines += [
            f'{_PREFIX}rebalances_total{{group="{label}",cause="{cause}"}} {count}'
            for label, group in named
            for cause, count in sorted(group.causes.items())
        ]
        for name, kind, text in _SAMPLES:
            lines += _head(name, kind, text)
            for label, group in named:
                sample = _sample(group, name, now_us)
                if sample is not None:
                    lines.append(f'{_PREFIX}{name}{{group="{label}"}} {sample}')
        return "\n".join([*lines, ""])


def _matches(group_id: str, pattern: str) -> bool:
    return group_id == pattern or fnmatchcase(group_id, pattern.replace("[", "[[]"))


def _note_members(group: SeenGroup, event: TraceEvent) -> None:
    """Note who is in a group, and what each has and is to have."""
    member_id, kind = event.member_id or "", event.event
    steps = (event.generation or 0) - max(group.generation, 0)
    before = frozenset(group.held) if steps in {0, 1} else None
    if kind in _CLOSING and event.generation is not None and event.generation != group.generation:
        group.generation, group.generation_us = event.generation, event.ts_us
    if event.members is not None and kind in _CLOSING:
        group.members = event.members
    match kind:
        case Event.JOIN_COMPLETE:
            group.before = before
            group.rebalancing_us = None
            group.protocol = event.protocol_name or ""
            group.targets, group.held, group.clients = {}, {}, {}
        case Event.ASSIGNED:
            group.targets[member_id] = group.held[member_id] = _resources(event)
        case Event.TARGET_ASSIGNED:
            group.targets[member_id] = _resources(event)
        case Event.MEMBER_STEP:
            group.held[member_id] = frozenset(held_at_step(event))
        case Event.GROUP_EMPTY:
            group.before = before
            group.members = 0
            group.targets, group.held, group.clients = {}, {}, {}
        case _ if kind in _GONE and event.attrs.get("group_type"):
            group.targets.pop(member_id, None)
            group.held.pop(member_id, None)
            group.clients.pop(member_id, None)
    if kind in {Event.ASSIGNED, Event.TARGET_ASSIGNED, *_GONE} and group.targets:
        group.universe = frozenset().union(*group.targets.values())


def _resources(event: TraceEvent) -> frozenset[str]:
    try:
        return frozenset(resources_in(event.assignment or b"", event.protocol_type))
    except WireFormatError:
        return frozenset()


def _changes(
    before: frozenset[str] | None, group: SeenGroup, lines: Iterable[TraceEvent]
) -> tuple[str, ...]:
    """Members that came and went, in words; the way they went where their commits show it."""
    if before is None:
        return ()
    now = frozenset(group.held)
    ways = {each.member_id: _departed(each) for each in group.lines if each.event in _GONE}
    ways |= {each.member_id: _departed(each) for each in lines if each.event in _GONE}
    return (
        *(f"{name} joined" for name in sorted(now - before)),
        *(f"{name} {ways.get(name, LEFT_OR_FAILED)}" for name in sorted(before - now)),
    )


def _departed(departure: TraceEvent) -> str:
    """Return how a member went, as far as its records and commits show it."""
    return _GONE[departure.event] if is_evident(departure.confidence) else LEFT_OR_FAILED


def _cause(changes: tuple[str, ...]) -> str:
    """The cause of a rebalance by its changes, where no record has the reason."""
    for words, cause in (
        (" left or failed", "MEMBER_GONE"),
        (" failed", RebalanceReason.MEMBER_FAILED.value),
        (" left", RebalanceReason.MEMBER_LEFT.value),
        (" joined", RebalanceReason.MEMBER_JOINED.value),
    ):
        if any(text.endswith(words) for text in changes):
            return cause
    return RebalanceReason.UNKNOWN.value


_PREFIX: Final = "coordinator_sim_watch_"
_SAMPLES: Final = (
    ("group_members", "gauge", "Members, by the last generation or epoch."),
    ("group_generation", "gauge", "The last generation or epoch."),
    ("group_generation_age_seconds", "gauge", "Time since it began."),
    ("group_unowned_partitions", "gauge", "Partitions, or tasks, without an owner."),
    ("group_unowned_seconds_total", "counter", "Time without an owner, over all partitions."),
    ("group_lag_records", "gauge", "Records behind the last commits, over all partitions."),
)


def _sample(group: SeenGroup, name: str, now_us: int) -> int | str | None:
    has_generation = group.generation >= 0
    match name:
        case "group_members":
            return group.members
        case "group_generation":
            return group.generation if has_generation else None
        case "group_generation_age_seconds":
            age_us = max(0, now_us - group.generation_us)
            return f"{age_us / 1_000_000:.3f}" if has_generation else None
        case "group_unowned_partitions":
            return group.unowned if has_generation else None
        case "group_unowned_seconds_total":
            return f"{group.unowned_s:.3f}" if has_generation or group.unowned_s else None
        case _:
            return group.lag


def _head(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {_PREFIX}{name} {text}", f"# TYPE {_PREFIX}{name} {kind}"]


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
