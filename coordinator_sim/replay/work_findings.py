"""Findings about work: done twice at once, done again, or not stored though its member was well.

They come from the events alone; a trace that tells of no work, tasks or commits has none. Each
has a cost in its own unit, so that they do not add up with those of rebalances.

Who was a member of a group when, and who worked on what: read once from the group's events.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final

from msgspec import Struct

from coordinator_sim.clients.client_kind import ClientKind
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.replay.costs import RebalanceCost, costs_of, place_of
from coordinator_sim.replay.findings import COMMITS_REFUSED, RECORDS_AGAIN, Finding
from coordinator_sim.replay.restarts import client_of
from coordinator_sim.replay.share_records import share_findings, share_records
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.history import group_lines
from coordinator_sim.trace.window import ALWAYS, Window
from coordinator_sim.trace.work import (
    Interval,
    Stretch,
    count_work,
    repeated,
    stretches_in,
    total_of,
)

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

    def __init__(
        self, lines: Sequence[TraceEvent], costs: Sequence[RebalanceCost], window: Window
    ) -> None:
        self.lines = lines
        self.window = window
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


TASKS_TWICE: Final = "task-seconds run twice"
PARTITIONS_TWICE: Final = "partition-seconds run twice"
_REFUSED: Final = frozenset(
    {
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)
_POLL_MS: Final = 300_000
"""Default of a consumer's max.poll.interval.ms."""
_WORKER_MS: Final = 60_000
"""Default of a worker's rebalance.timeout.ms."""
_EAGER: Final = "default"
_MOST_REFS: Final = 5
_SHOWN: Final = 3


class _Words(Struct, frozen=True):
    """Why something happens, a clause, and what to change, in sentences."""

    why: str
    change: str


class _Twice(Struct, frozen=True, kw_only=True):
    """Two processes that worked on one resource at once for longer than a zombie may.

    Args:
        times: When both worked.
        words: The cause, which puts it together with others.
    """

    older: Run
    newer: Run
    times: Interval
    words: _Words

    @property
    def length_us(self) -> int:
        """How long both worked."""
        return self.times[1] - self.times[0]


def work_findings_in(events: Sequence[TraceEvent]) -> list[Finding]:
    """Return what is wrong with the work of a simulated run's groups, group by group."""
    return [
        finding
        for group_id, lines in group_lines(events).items()
        for finding in work_findings(group_id, lines, costs_of(group_id, lines))
    ]


def work_findings(
    group_id: str,
    lines: Sequence[TraceEvent],
    costs: Sequence[RebalanceCost],
    window: Window = ALWAYS,
) -> list[Finding]:
    """Return what is wrong with a group's work; empty where nothing is, or nothing tells.

    Args:
        group_id: The group.
        lines: All its events, in the order of the trace, with steadied times.
        costs: Costs of its rebalances.
        window: The time that counts.
    """
    records = share_records(lines, window)
    if records is not None:
        return share_findings(group_id, records)
    story = WorkStory(lines, costs, window)
    return [
        *_run_twice(group_id, story),
        *_commits_refused(group_id, story),
        *_processed_again(group_id, story),
    ]


# -- twice at once -------------------------------------------------------------------------


def _run_twice(group_id: str, story: WorkStory) -> list[Finding]:
    by_cause: dict[_Words, list[_Twice]] = defaultdict(list)
    for older, newer, both in _overlaps(story):
        found = _judged(story, older, newer, both)
        if found is not None:
            by_cause[found.words].append(found)
    return [_twice(group_id, story, each) for each in by_cause.values()]


def _overlaps(story: WorkStory) -> Iterator[tuple[Run, Run, Interval]]:
    """Yield two runs of one resource with the time of both, the one that began earlier first."""
    for runs in story.runs().values():
        for one, other in combinations(runs, 2):
            older, newer = sorted((one, other), key=lambda each: (each.from_us, each.run))
            to_us = min(older.to_us, newer.to_us)
            if newer.from_us < to_us and story.window.holds(newer.from_us):
                yield older, newer, (newer.from_us, to_us)


def _judged(story: WorkStory, older: Run, newer: Run, both: Interval) -> _Twice | None:
    """Return what is wrong with an overlap; None within the window of a zombie."""
    from_us, to_us = both
    stale, life = older, None
    for run in (older, newer):
        found = story.life_of(run)
        if found is not None and found.to_us < to_us:
            stale, life = run, found
            break
    if life is None:
        words = _member_all_the_time(story, newer)
    else:
        limit_ms = life.limit_ms or (_WORKER_MS if story.kind is ClientKind.CONNECT else _POLL_MS)
        from_us = max(from_us, life.to_us + limit_ms * 1000)
        words = _removed(story, life, limit_ms)
    if from_us >= to_us or story.worked_us(stale.client, from_us, to_us) <= HEARS_MS * 1000:
        return None
    return _Twice(older=older, newer=newer, times=both, words=words)


def _removed(story: WorkStory, life: Life, limit_ms: int) -> _Words:
    is_worker = story.kind is ClientKind.CONNECT
    name = "rebalance.timeout.ms" if is_worker else "max.poll.interval.ms"
    has_left = life.end is not None and life.end.event is Event.MEMBER_LEFT
    if has_left and not story.ended_with(life):
        return _Words(
            f"{life.client} left the group because it did not poll within {name}={limit_ms}, and "
            "worked on until its next poll",
            f"Raise {name} above the longest time between two polls, or do less work between two: "
            "a client that left for its polls learns of what it lost with its next one.",
        )
    return _Words(
        f"{life.client} was removed from the group, and worked on for longer than "
        f"{name}={limit_ms}",
        "No setting changes this: a process that hears nothing of its group works on. Only what "
        "its work writes to can refuse it, as transactions do.",
    )


def _member_all_the_time(story: WorkStory, newer: Run) -> _Words:
    protocols = [name for since_us, name in story.protocols if since_us <= newer.from_us]
    if story.kind is ClientKind.CONNECT and protocols[-1:] == [_EAGER] and len({*protocols}) > 1:
        return _Words(
            "the group went back to connect.protocol=eager, and workers that had run work under "
            "an incremental protocol did not stop it first (KAFKA-13816)",
            "Stop all workers before any starts with connect.protocol=eager: a rolling downgrade "
            "runs tasks twice until each worker has been restarted.",
        )
    return _Words(
        "the earlier one was a member all the time, and was not made to give it up first",
        "No setting changes this: it is a fault of the client or of its assignor. Look at the "
        "rebalance with coordinator-sim explain.",
    )


def _twice(group_id: str, story: WorkStory, found: list[_Twice]) -> Finding:
    found = sorted(found, key=lambda each: (each.times, each.older.resource))
    resources = [name.removeprefix("p:").removeprefix("t:") for name in _names(found)]
    longest = max(found, key=lambda each: each.length_us)
    from_us, to_us = found[0].times[0], max(each.times[1] for each in found)
    first = story.rebalance_at(from_us)
    around = "" if first is None else f", from rebalance #{first.number} on"
    is_connect = story.kind is ClientKind.CONNECT
    return Finding(
        group_id=group_id,
        kind="work-done-twice",
        rebalances=story.count_rebalances(each.times[0] for each in found),
        cost_s=sum(each.length_us for each in found) / 1e6,
        what=f"{_listed(resources)} ran on two members at once between {_at(from_us)} and "
        f"{_at(to_us)}{around}, {longest.length_us / 1e6:.1f} s at a time on "
        f"{longest.older.client} and {longest.newer.client}: {found[0].words.why}.",
        change=found[0].words.change,
        confidence=0.9,
        cost_unit=TASKS_TWICE if is_connect else PARTITIONS_TWICE,
        source_refs=() if first is None else (first.line,),
        first_us=from_us,
        last_us=found[-1].times[0],
    )


def _names(found: Iterable[_Twice]) -> list[str]:
    return list(dict.fromkeys(each.older.resource for each in found))


# -- commits refused -----------------------------------------------------------------------


def _commits_refused(group_id: str, story: WorkStory) -> list[Finding]:
    commits = 0
    refused: dict[ErrorCode, list[TraceEvent]] = defaultdict(list)
    for line in story.lines:
        if line.event is not Event.OFFSET_COMMIT or not story.window.holds(line.ts_us):
            continue
        commits += 1
        error = line.error_code
        if error is not None and error in _REFUSED and _is_healthy(story, line):
            refused[error].append(line)
    return [_refusal(group_id, story, own, commits) for own in refused.values()]


def _is_healthy(story: WorkStory, line: TraceEvent) -> bool:
    """Whether who commits is a member then and is heard of later, before it goes."""
    lives = story.by_member.get(line.member_id or "", ())
    return any(each.from_us <= line.ts_us < min(each.to_us, each.last_us + 1) for each in lives)


def _refusal(group_id: str, story: WorkStory, refused: list[TraceEvent], commits: int) -> Finding:
    error = refused[0].error_code or ErrorCode.NONE
    members = dict.fromkeys(story.by_member[line.member_id or ""][-1].client for line in refused)
    words = _WHY_REFUSED[error]
    return Finding(
        group_id=group_id,
        kind="commits-refused",
        rebalances=story.count_rebalances(line.ts_us for line in refused),
        cost_s=len(refused),
        what=f"{len(refused):,} of {commits:,} commits were refused with {error.name} although "
        f"their members ({_listed(members)}) were in the group and alive: {words.why}.",
        change=words.change,
        confidence=0.9,
        cost_unit=COMMITS_REFUSED,
        source_refs=tuple(place_of(line) for line in refused[:_MOST_REFS]),
        first_us=refused[0].ts_us,
        last_us=refused[-1].ts_us,
    )


_AFTERWARDS: Final = (
    "No setting changes this: commit again at once, or with the next batch; records since the "
    "last commit are read again if the partition is given away first."
)
_WHY_REFUSED: Final = {
    ErrorCode.STALE_MEMBER_EPOCH: _Words(
        "each carried the member's epoch from before a heartbeat that raised it",
        "Brokers of 4.3 take commits of an older epoch for partitions that the member still has "
        "(KIP-1251). Before, catch the error and commit again: the next heartbeat's answer has "
        "brought the new epoch.",
    ),
    ErrorCode.ILLEGAL_GENERATION: _Words(
        "each carried a generation that had ended when it arrived", _AFTERWARDS
    ),
    ErrorCode.UNKNOWN_MEMBER_ID: _Words(
        "each carried a member id that the group does not have", _AFTERWARDS
    ),
    ErrorCode.REBALANCE_IN_PROGRESS: _Words(
        "each came after the generation's end, while the next one was made", _AFTERWARDS
    ),
}


# -- done again ----------------------------------------------------------------------------


def _processed_again(group_id: str, story: WorkStory) -> list[Finding]:
    processed, total = _work_within(story)
    if not total:
        return []
    found = [
        (at_us, count, pair)
        for stretches in story.work.values()
        for at_us, count, pair in repeated(stretches)
        if story.window.holds(pair[1].times[1])
    ]
    ways: dict[str, int] = defaultdict(int)
    for at_us, count, (before, _) in found:
        ways[_why_again(story, before, at_us)] += count
    at_once = total - sum(ways.values())
    if at_once > 0:
        ways[_AT_ONCE] += at_once
    told = ", ".join(
        f"{count:,} {why}" for why, count in sorted(ways.items(), key=lambda each: -each[1])
    )
    instants = [each[0] for each in found] or [both[0] for *_, both in _overlaps(story)]
    first = story.rebalance_at(min(instants, default=0))
    return [
        Finding(
            group_id=group_id,
            kind="records-processed-again",
            rebalances=story.count_rebalances(instants),
            cost_s=total,
            what=f"{total:,} of {processed:,} records were processed "
            f"again: {told}{_most_again(found) or _who_at_once(story)}.",
            change=_NOT_BY_COMMITS if ways[_AT_ONCE] > total // 2 else _MORE_COMMITS[story.kind],
            confidence=1.0,
            cost_unit=RECORDS_AGAIN,
            source_refs=() if first is None else (first.line,),
            first_us=min(instants, default=None),
            last_us=max(instants, default=None),
        )
    ]


def _work_within(story: WorkStory) -> tuple[int, int]:
    """Return how many records were processed in the window, and how many of them again."""
    ends_us = (story.window.until_us, story.window.from_us)
    until, before = (
        total_of(count_work(line for line in story.lines if line.ts_us < at_us))
        for at_us in ends_us
    )
    return until.processed - before.processed, until.duplicates - before.duplicates


def _most_again(found: Sequence[tuple[int, int, tuple[Stretch, Stretch]]]) -> str:
    """Return when most records were repeated and by whom, to follow a sentence; empty for none."""
    if not found:
        return ""
    at_us, most, (before, again) = max(found, key=lambda each: each[1])
    topic, partition = before.partition
    who = "the same" if before.client == again.client else again.client
    return (
        f"; most at {_at(at_us)}, {most:,} of {topic}-{partition}, first by {before.client} and "
        f"then by {who}"
    )


def _who_at_once(story: WorkStory) -> str:
    """Return who worked longest at once, to follow a sentence; empty for nobody."""
    longest = max(_overlaps(story), key=lambda each: each[2][1] - each[2][0], default=None)
    if longest is None:
        return ""
    older, newer, _ = longest
    return f"; longest by {older.client} and {newer.client}"


_AT_ONCE: Final = "by two members at once"
_NOT_BY_COMMITS: Final = (
    "No setting of commits changes this: two members read the same records at once. A member that "
    "was removed works on until it learns of it; what its work writes to can refuse it, as "
    "transactions do."
)
_MORE_COMMITS: Final = {
    ClientKind.CONSUMER: "Commit more often (auto.commit.interval.ms, or after each batch) and "
    "when partitions are revoked; what a crash repeats is at most the records since the last "
    "commit.",
    ClientKind.STREAMS: "Lower commit.interval.ms, or set processing.guarantee=exactly_once_v2.",
    ClientKind.CONNECT: "Lower offset.flush.interval.ms, or set exactly.once.source.support="
    "enabled where the connector can do it.",
    ClientKind.SINK: "Lower offset.flush.interval.ms: sink tasks commit that often, and when they "
    "are stopped.",
}


def _why_again(story: WorkStory, before: Stretch, at_us: int) -> str:
    """Return why a stretch was repeated, to follow a number of records."""
    ended_us = before.times[1]
    error = story.refused_before(before.partition, at_us)
    if error is not None:
        return f"after a commit was refused with {error.name}"
    life = story.life_of(Run(before.resource, before.run, before.client, before.times[0], ended_us))
    if life is not None and life.end is not None and life.to_us <= at_us:
        if life.end.event is not Event.MEMBER_LEFT:
            return "after a member was removed, since its last commit"
        if not story.ended_with(life):
            return "after a member had left and worked on"
    return "after a hand-over, since the last commit"


def _at(at_us: int) -> str:
    """Return an instant of a simulation: recorded traces tell of no work."""
    return f"{at_us / 1e6:.1f} s"


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
