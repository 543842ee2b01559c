"""Who was a member of a group when, and who worked on what: read once from the group's events."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.clients.client_kind import ClientKind
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.replay.costs import RebalanceCost
from coordinator_sim.replay.restarts import client_of
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.work import Interval, Stretch, stretches_in

HEARS_MS: Final = 1_000
"""Longest time that a member which is told at once takes to stop."""
_GONE: Final = frozenset(
    {Event.MEMBER_LEFT, Event.MEMBER_FAILED, Event.MEMBER_KICKED, Event.MEMBER_FENCED}
)
_ALIVE: Final = frozenset({Event.HEARTBEAT, Event.JOIN_REQ, Event.SYNC_REQ, Event.MEMBER_STEP})
_ENDS_OF_PROCESS: Final = frozenset({"stopping", "crashed", "gone"})
_EVER_US: Final = 1 << 62


class Life(Struct):
    """A member from its join to its removal; its client's process may outlive it.

    Args:
        client: Its client id.
        end: What removed it; None for a member to the end.
        limit_ms: Its rebalance timeout, a consumer's max.poll.interval.ms; None is not told.
        last_us: Its last sign of life.
    """

    client: str
    from_us: int
    to_us: int = _EVER_US
    end: TraceEvent | None = None
    limit_ms: int | None = None
    last_us: int = 0


class Run(Struct, frozen=True):
    """An unbroken time in which one process worked on one resource."""

    resource: str
    run: str
    client: str
    from_us: int
    to_us: int


class WorkStory:
    """The lives, runs and rebalances of one group."""

    def __init__(self, lines: Sequence[TraceEvent], costs: Sequence[RebalanceCost]) -> None:
        self.lines = lines
        self.costs = costs
        self.kind = costs[0].client_kind if costs else ClientKind.CONSUMER
        self._starts_ms = [each.start_ms for each in costs]
        self.by_member: dict[str, list[Life]] = defaultdict(list)
        self._by_client: dict[str, list[Life]] = defaultdict(list)
        self._pauses: dict[str, list[Interval]] = defaultdict(list)
        self._ends: dict[str, list[int]] = defaultdict(list)
        self._commits: dict[tuple[str, int], list[tuple[int, ErrorCode]]] = defaultdict(list)
        self.protocols: list[tuple[int, str]] = []
        self.work: dict[tuple[str, tuple[str, int]], list[Stretch]] = defaultdict(list)
        for line in lines:
            self._take(line)

    def _take(self, line: TraceEvent) -> None:
        self._take_life(line)
        if line.event is Event.JOIN_COMPLETE and line.protocol_name:
            self.protocols.append((line.ts_us, line.protocol_name))
        elif line.event is Event.LIFECYCLE:
            self._live(line)
        elif line.event is Event.OFFSET_COMMIT:
            error = line.error_code or ErrorCode.NONE
            for entry in line.offsets:
                self._commits[entry.topic, entry.partition].append((line.ts_us, error))
        elif line.event is Event.RECORDS_PROCESSED:
            for stretch in stretches_in(line):
                task = stretch.resource if stretch.resource.startswith("t:") else ""
                connector = task.rpartition("-")[0]
                self.work[connector, stretch.partition].append(stretch)

    def _take_life(self, line: TraceEvent) -> None:
        member_id = line.member_id or ""
        if line.event is Event.MEMBER_ADDED or line.event is Event.STATIC_REPLACED:
            life = Life(
                client=line.client_id or client_of(member_id),
                from_us=line.ts_us,
                limit_ms=line.rebalance_timeout_ms,
                last_us=line.ts_us,
            )
            self.by_member[member_id].append(life)
            self._by_client[life.client].append(life)
        elif member_id in self.by_member:
            life = self.by_member[member_id][-1]
            if line.event in _GONE:
                life.to_us, life.end = min(life.to_us, line.ts_us), line
            elif line.event in _ALIVE:
                life.last_us = line.ts_us

    def _live(self, line: TraceEvent) -> None:
        client, told = line.client_id or "", line.reason_text
        if told == "paused":
            self._pauses[client].append((line.ts_us, _EVER_US))
        elif told == "resumed" and self._pauses[client]:
            since_us, _ = self._pauses[client].pop()
            self._pauses[client].append((since_us, line.ts_us))
        elif told in _ENDS_OF_PROCESS:
            self._ends[client].append(line.ts_us)

    def worked_us(self, client: str, from_us: int, to_us: int) -> int:
        """Return how much of a time a client's process did not stand still."""
        paused = sum(
            max(0, min(end, to_us) - max(begin, from_us))
            for begin, end in self._pauses.get(client, ())
        )
        return to_us - from_us - paused

    def life_of(self, run: Run) -> Life | None:
        """Return the life in which a client took up what it runs; None where nothing tells."""
        lives = self._by_client.get(run.client, [])
        own = [each for each in lives if each.from_us <= run.from_us]
        return own[-1] if own else None

    def ended_with(self, life: Life) -> bool:
        """Whether a member's process ended when the member left."""
        ends = self._ends.get(life.client, ())
        return any(abs(at_us - life.to_us) <= HEARS_MS * 1000 for at_us in ends)

    def rebalance_at(self, at_us: int) -> RebalanceCost | None:
        """Return the last rebalance that began before an instant."""
        place = bisect_right(self._starts_ms, at_us // 1000)
        return self.costs[place - 1] if place else None

    def count_rebalances(self, instants: Iterable[int]) -> int:
        """Return how many rebalances the last one before each instant comes to."""
        behind = (self.rebalance_at(at_us) for at_us in instants)
        return len({each.number for each in behind if each is not None})

    def refused_before(self, partition: tuple[str, int], at_us: int) -> ErrorCode | None:
        """Return why the last commit of a partition before an instant was refused; None if not."""
        last = [error for since_us, error in self._commits.get(partition, ()) if since_us <= at_us]
        return last[-1] if last and last[-1] is not ErrorCode.NONE else None

    def runs(self) -> dict[str, list[Run]]:
        """Return by resource when each process worked on it, in order of time."""
        found: dict[tuple[str, str, str], list[Interval]] = defaultdict(list)
        for stretches in self.work.values():
            for each in stretches:
                found[each.resource, each.run, each.client].append(each.times)
        if not found:
            found = self._tasks()
        by_resource: dict[str, list[Run]] = defaultdict(list)
        for (resource, run, client), times in found.items():
            by_resource[resource] += [Run(resource, run, client, *each) for each in _joined(times)]
        return by_resource

    def _tasks(self) -> dict[tuple[str, str, str], list[Interval]]:
        """Return when connectors and tasks ran on each worker, by their starts and stops."""
        found: dict[tuple[str, str, str], list[Interval]] = defaultdict(list)
        since_us: dict[tuple[str, str], int] = {}
        for line in self.lines:
            client = line.client_id or ""
            if line.event is Event.TASKS_STARTED:
                for resource in line.attrs.get("resources", "").split():
                    since_us[client, resource] = line.ts_us
                continue
            ends = line.event is Event.LIFECYCLE and line.reason_text in {"crashed", "gone"}
            stopped = line.attrs.get("resources", "").split()
            for owner, resource in list(since_us) if ends or stopped else ():
                is_over = ends or (line.event is Event.TASKS_STOPPED and resource in stopped)
                if owner == client and is_over:
                    begun_us = since_us.pop((owner, resource))
                    found[resource, owner, owner].append((begun_us, line.ts_us))
        last_us = self.lines[-1].ts_us if self.lines else 0
        for (owner, resource), begun_us in since_us.items():
            found[resource, owner, owner].append((begun_us, last_us))
        return found


def _joined(times: list[Interval]) -> Iterator[Interval]:
    """Yield intervals in order, those that touch as one."""
    held: list[int] = []
    for begin, end in sorted(times):
        if held and begin <= held[1]:
            held[1] = max(held[1], end)
            continue
        if held:
            yield held[0], held[1]
        held = [begin, end]
    if held:
        yield held[0], held[1]
