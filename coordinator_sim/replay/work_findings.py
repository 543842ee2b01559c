"""Findings about work: done twice at once, done again, or not stored though its member was well.

They come from the events alone; a trace that tells of no work, tasks or commits has none. Each
has a cost in its own unit, so that they do not add up with those of rebalances.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Final

from msgspec import Struct

from coordinator_sim.clients.client_kind import ClientKind
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.replay.costs import RebalanceCost, costs_of, place_of
from coordinator_sim.replay.findings import COMMITS_REFUSED, RECORDS_AGAIN, Finding
from coordinator_sim.replay.work_story import HEARS_MS, Life, Run, WorkStory
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.history import group_lines
from coordinator_sim.trace.work import Interval, Stretch, count_work, repeated

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
    group_id: str, lines: Sequence[TraceEvent], costs: Sequence[RebalanceCost]
) -> list[Finding]:
    """Return what is wrong with a group's work; empty where nothing is, or nothing tells.

    Args:
        group_id: The group.
        lines: All its events, in the order of the trace, with steadied times.
        costs: Costs of its rebalances.
    """
    story = WorkStory(lines, costs)
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
            if newer.from_us < to_us:
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
    )


def _names(found: Iterable[_Twice]) -> list[str]:
    return list(dict.fromkeys(each.older.resource for each in found))


# -- commits refused -----------------------------------------------------------------------


def _commits_refused(group_id: str, story: WorkStory) -> list[Finding]:
    commits = 0
    refused: dict[ErrorCode, list[TraceEvent]] = defaultdict(list)
    for line in story.lines:
        if line.event is not Event.OFFSET_COMMIT:
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
    counts = count_work(story.lines)
    total = sum(row.duplicates for row in counts)
    if not total:
        return []
    found = [
        (at_us, count, pair)
        for stretches in story.work.values()
        for at_us, count, pair in repeated(stretches)
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
            what=f"{total:,} of {sum(row.processed for row in counts):,} records were processed "
            f"again: {told}{_most_again(found) or _who_at_once(story)}.",
            change=_NOT_BY_COMMITS if ways[_AT_ONCE] > total // 2 else _MORE_COMMITS[story.kind],
            confidence=1.0,
            cost_unit=RECORDS_AGAIN,
            source_refs=() if first is None else (first.line,),
        )
    ]


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
