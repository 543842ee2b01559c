"""What costs a group most, and what to change: findings from the costs of its rebalances.

A finding names what it would take; what that would save is computed by replays, `with_savings`.
Findings of one group overlap: a rebalance may be a deploy's and wait for a dead member.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median_low
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.clients.client_kind import STREAMS_WAY, ClientKind, refusal
from coordinator_sim.clients.config import ConnectProtocolCompatibility
from coordinator_sim.messages.embedded.contents import SERVER_PREFIX, is_cooperative
from coordinator_sim.replay.assumptions import ASSUMED_OF_SETTINGS
from coordinator_sim.replay.costs import (
    CAME,
    COORDINATOR_MOVED,
    POLL_TIMEOUT,
    REJOINED,
    WENT,
    RebalanceCost,
)
from coordinator_sim.replay.report import RunFigures, WhatIf
from coordinator_sim.replay.storms import storms_of
from coordinator_sim.trace.rebalances import RebalanceOutcome
from coordinator_sim.trace.window import ALWAYS, Window

SECONDS_REBALANCING: Final = "seconds rebalancing"
MEMBER_SECONDS: Final = "member-seconds paused"
COMMITS_REFUSED: Final = "commits refused"
RECORDS_AGAIN: Final = "records processed again"
DELIVERIES_AGAIN: Final = "deliveries after the first"
RECORD_SECONDS: Final = "record-seconds locked"
JOINS: Final = "joins"
REFUSALS: Final = "refusals"
DEPARTURES: Final = "departures"
POLL_TIMEOUTS: Final = "poll timeouts"
COUNTS: Final = {
    COMMITS_REFUSED: "commit refused",
    RECORDS_AGAIN: "record processed again",
    DELIVERIES_AGAIN: "delivery after the first",
    JOINS: "join",
    REFUSALS: "refusal",
    DEPARTURES: "departure",
    POLL_TIMEOUTS: "poll timeout",
}
"""Units of costs that are whole numbers, with the words for one."""
COMPUTED: Final = "computed"
REPLAYED: Final = "replayed"
ESTIMATED: Final = "estimated"
"""Bases of a finding: from the trace's lines; with savings from a replay; with a guess in it."""

FLAPPING: Final = "flapping-member"
STATIC: Final = "group.instance.id=stable"
_NO_DELAY: Final = "group.initial.rebalance.delay.ms=0"
_USUAL_DELAY: Final = "group.initial.rebalance.delay.ms=3000"
_SHORT_SESSION: Final = "session.timeout.ms=10000"
_FAST_HEARTBEAT: Final = "heartbeat.interval.ms=1000"
_COOPERATIVE: Final = "partition.assignment.strategy=cooperative-sticky"
_INCREMENTAL: Final = "connect.protocol=sessioned"
_SLOW_MS: Final = 1_000
"""Living members that rejoin sooner are no finding."""
_SHORT_MS: Final = 100
"""Shorter sums are noise."""
_FLAPS: Final = 3
_REJOINS: Final = 5
_ONE_SHOTS: Final = 5
_ONE_SHOT_MS: Final = 60_000
"""Longest stay of a consumer that is started for one task."""
_MOST_REFS: Final = 5
_EAGER_CONNECT: Final = ConnectProtocolCompatibility.EAGER.protocol_name
_WORKERS_BACK_IN_TIME: Final = (
    "Restart workers one after another, each back within scheduled.rebalance.max.delay.ms: under "
    "an incremental connect.protocol a worker in time gets its own tasks again. Workers are never "
    "static."
)
_CHANGES: Final[dict[ClientKind, dict[str, str]]] = {
    ClientKind.CONNECT: {
        "deploys-rebalance-each-member": _WORKERS_BACK_IN_TIME,
        "dead-members-waited-for": "Have workers close in good order when they are stopped "
        "(SIGTERM, not SIGKILL); a shorter session.timeout.ms shortens the wait.",
        "slow-joiners": "Workers learn with their next heartbeat: lower heartbeat.interval.ms. "
        "Beyond that they are busy starting and stopping tasks: connect.protocol=sessioned stops "
        "only those that move.",
        "poll-timeouts": "Raise the workers' rebalance.timeout.ms above the longest time that "
        "starting or stopping connectors takes. No replay can try it.",
    },
    ClientKind.STREAMS: {
        "deploys-rebalance-each-member": "Give each instance of the application a "
        "group.instance.id of its own that outlives a restart (Streams adds the number of the "
        "thread), and a session.timeout.ms longer than a restart takes. Or change to "
        f"{STREAMS_WAY}, in which nobody stops for a rebalance.",
        "dead-members-waited-for": "Kafka Streams does not leave its group when it is closed, so "
        "that each stop is waited for: a shorter session.timeout.ms shortens the wait. Instances "
        "with a group.instance.id are not waited for when they come back in time.",
    },
    ClientKind.SINK: {
        "deploys-rebalance-each-member": "Restart workers one after another, each back before "
        "its tasks are given to others. Sink tasks are never static: all would have one name.",
        "dead-members-waited-for": "Stop workers in good order (SIGTERM, not SIGKILL), so that "
        "their tasks' consumers leave; a shorter consumer.session.timeout.ms shortens the wait.",
        "slow-joiners": "Tasks learn with their next heartbeat: lower "
        "consumer.heartbeat.interval.ms. Beyond that they are busy in put(): lower "
        "consumer.max.poll.records.",
        "poll-timeouts": "Raise consumer.max.poll.interval.ms above the longest time that put() "
        "takes, or lower consumer.max.poll.records.",
        "eager-stops-everything": "Set the workers' consumer.partition.assignment.strategy, or the "
        "connector's consumer.override.partition.assignment.strategy, to cooperative-sticky, in "
        "two rolling restarts (KIP-429): only partitions that move stop then.",
    },
}
"""By kind of client and of finding, what to change where it is not what a plain consumer does."""


_BROKER: Final = (
    "Look at the brokers: restarts, and elections of the group's partition of __consumer_offsets. "
    "No setting of the group changes this."
)
_CLIENT_CAUSES: Final = {
    "coordinator-out-of-reach": (
        frozenset({"coordinator-lost", "unreachable"}),
        "members had lost their coordinator",
        f"Look at the network between these clients and the coordinator's broker. {_BROKER}",
    ),
    "connector-changes": (
        frozenset({"connector-updated", "connector-removed", "connector-state", "tasks-updated"}),
        "connectors or their tasks were configured anew",
        "Make changes together; under connect.protocol=sessioned only what changed stops.",
    ),
    "failing-tasks": (
        frozenset({"task-failed"}),
        "tasks had failed",
        "Mend what the exception behind that line says.",
    ),
}
"""By kind of finding: the kinds of reasons of clients, what happened, and what to do."""
_ADVICE: Final = {
    STATIC: "Give each consumer a group.instance.id of its own that outlives a restart, and a "
    "session.timeout.ms longer than a restart takes; its partitions wait for it meanwhile.",
    _SHORT_SESSION: "Set session.timeout.ms=10000, which shortens the wait.",
    _NO_DELAY: "Set the brokers' group.initial.rebalance.delay.ms=0 where members start one at a "
    "time; where many start together the delay saves them rebalances.",
    _USUAL_DELAY: "Set the brokers' group.initial.rebalance.delay.ms=3000: members that start "
    "together gather in one rebalance.",
    _FAST_HEARTBEAT: "Set heartbeat.interval.ms=1000: members learn of a rebalance with their next "
    "heartbeat.",
    _COOPERATIVE: "Set partition.assignment.strategy=cooperative-sticky, in two rolling restarts "
    "(KIP-429): only partitions that move stop then.",
    _INCREMENTAL: "Set connect.protocol=sessioned, the default since Kafka 2.4.",
}
"""What to do for each setting that is tried: advice and saving are of one value."""


def unit_of(cost: float, unit: str) -> str:
    """Return the unit of a cost in words: a count of one is singular."""
    return COUNTS[unit] if cost == 1 and unit in COUNTS else unit


class _Words(Struct, frozen=True, kw_only=True):
    """What happened, what to do, and the figure in microseconds; `change` follows the advice."""

    what: str
    cost_us: int
    setting: str | None = None
    change: str = ""

    @property
    def advice(self) -> str:
        """The advice for the setting, then whatever else helps."""
        first = "" if self.setting is None else _ADVICE[self.setting]
        return f"{first} {self.change}".strip()


class Finding(Struct, frozen=True, kw_only=True):
    """Something that costs a group, and what to change.

    Args:
        kind: A fixed word for the kind.
        rebalances: Rebalances behind it.
        cost_s: What it cost, in `cost_unit`.
        what: What happened, one sentence with the figures.
        change: What to set or do, with Kafka's names; first of all the setting.
        setting: What `replay --set` takes to try it; None when no replay can.
        assumes: What a replay under the setting assumes, beside what every replay does.
        saves_s: What the setting would save, in `cost_unit`: at most `cost_s`, and negative for a
            loss. None until replays tell.
        more_rebalances: By how many the setting raises the group's rebalances; negative for fewer,
            None until replays tell.
        basis: `computed`, `replayed` or `estimated`.
        confidence: How sure it is that the change meets the cause, 0 to 1.
        source_refs: Where the first lines behind it are, at most five.
        first_us: When it first happened, microseconds of the trace's clock; of rebalances their
            first lines count. None where the trace does not tell.
        last_us: When it last happened.
        client: Client id of the one that comes and goes; empty in findings of another kind.
    """

    group_id: str
    kind: str
    rebalances: int
    cost_s: float
    what: str
    change: str
    setting: str | None = None
    assumes: tuple[str, ...] = ()
    saves_s: float | None = None
    more_rebalances: int | None = None
    basis: str = COMPUTED
    confidence: float
    cost_unit: str = SECONDS_REBALANCING
    source_refs: tuple[str, ...] = ()
    first_us: int | None = None
    last_us: int | None = None
    client: str = ""


def findings_of(
    group_id: str, costs: Sequence[RebalanceCost], window: Window = ALWAYS
) -> list[Finding]:
    """Return what costs a group in a window, worst first; empty for a group that costs nothing.

    Epochs of consumer, share and streams groups are left out: nobody stops for them, and the
    settings that would help against rebalances are those of the classic protocol.

    Args:
        group_id: The group.
        costs: All its rebalances: a deploy or a storm may have begun before the window.
        window: The time that counts.
    """
    costs = [each for each in costs if not (each.protocol_name or "").startswith(SERVER_PREFIX)]
    finders = (
        _deploys,
        _dead_members,
        _initial_delay,
        _slow_joiners,
        _poll_timeouts,
        _storm,
        _flapping,
        _one_shot_consumers,
        _joins_again,
        _client_causes,
        _coordinator_moves,
        _eager,
    )
    shown = _Shown(costs, window)
    found = [_fitting(each, costs) for finder in finders for each in finder(group_id, shown)]
    return worst_first(found)


def _fitting(finding: Finding, costs: Sequence[RebalanceCost]) -> Finding:
    """Return a finding with advice that clients of the group's kind can follow."""
    kind = costs[0].client_kind
    change = change_of(kind, finding.kind, finding.change)
    if finding.setting is not None and refusal(kind, finding.setting.partition("=")[0]):
        return replace(finding, change=change, setting=None, assumes=())
    return replace(finding, change=change)


def change_of(kind: ClientKind | None, finding: str, usual: str) -> str:
    """Return what clients of a kind change for a finding, where it is not what is usual."""
    return usual if kind is None else _CHANGES.get(kind, {}).get(finding, usual)


class _Shown:
    """The rebalances of a group, and which of them lie within a window."""

    def __init__(self, costs: Sequence[RebalanceCost], window: Window) -> None:
        self.every = costs
        self._window = window

    def of(self, costs: Iterable[RebalanceCost]) -> list[RebalanceCost]:
        """Return those of some rebalances that lie within the window."""
        return [each for each in costs if self._window.holds_ms(each.start_ms)]


def newest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in order of their last occurrence, those without a time last."""
    return sorted(findings, key=lambda each: (each.last_us is None, -(each.last_us or 0)))


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings in order of cost, times before counts; equal ones by group and kind."""
    return sorted(
        findings,
        key=lambda each: (each.cost_unit in COUNTS, -each.cost_s, each.group_id, each.kind),
    )


def with_savings(finding: Finding, entries: Sequence[WhatIf]) -> Finding:
    """Return the finding with what replays under its setting save; unchanged where one has none.

    A setting may save the group more than the finding is about, as findings overlap: the saving is
    at most the cost.

    Args:
        finding: The finding.
        entries: Replays of its group under its setting, one for each file; a file of which no
            stretch is reproduced counts for nothing.
    """
    saved_ms = more = 0
    tried = [each for each in entries if each.as_is is not None or not each.coverage.missed]
    for each in tried:
        before, after = each.as_is, each.with_settings
        if before is None or after is None:
            return finding
        cost_ms, left_ms = _cost_ms(finding, before), _cost_ms(finding, after)
        if cost_ms is None or left_ms is None:
            return finding
        saved_ms += cost_ms - left_ms
        more += after.all_rebalances - before.all_rebalances
    if not tried:
        return finding
    return replace(
        finding,
        saves_s=min(saved_ms / 1000, finding.cost_s),
        more_rebalances=more,
        basis=ESTIMATED if any(each.paired_by_time for each in entries) else REPLAYED,
    )


def _cost_ms(finding: Finding, run: RunFigures) -> int | None:
    """Return the figure of a run that the finding's cost is a part of; None for unknown."""
    if finding.cost_unit == SECONDS_REBALANCING:
        return run.rebalancing_ms
    return None if run.sharing is None else run.sharing.paused_ms


def _finding(
    group_id: str, kind: str, behind: Sequence[RebalanceCost], words: _Words, **more: object
) -> list[Finding]:
    if not behind or words.cost_us < _SHORT_MS * 1000:
        return []
    confidence = min(each.confidence for each in behind)
    fields: dict[str, object] = {"confidence": round(confidence, 2), **more}
    assumed = None
    if words.setting is not None:
        name = words.setting.partition("=")[0]
        assumed = ASSUMED_OF_SETTINGS[name.replace(".", "_")]
    return [
        Finding(
            group_id=group_id,
            kind=kind,
            rebalances=len(behind),
            cost_s=words.cost_us / 1_000_000,
            what=words.what,
            change=words.advice,
            setting=words.setting,
            assumes=() if assumed is None else (assumed,),
            source_refs=tuple(each.line for each in behind[:_MOST_REFS]),
            first_us=min(each.start_ms for each in behind) * 1000,
            last_us=max(each.start_ms for each in behind) * 1000,
            **fields,  # type: ignore[arg-type]
        )
    ]


def _timed(costs: Iterable[RebalanceCost]) -> list[RebalanceCost]:
    """Return those that have a length: what an open one waited is no part of the group's costs."""
    return [each for each in costs if each.length_us is not None]


def _length_us(costs: Iterable[RebalanceCost]) -> int:
    return sum(each.length_us or 0 for each in costs)


def _counted(behind: Sequence[RebalanceCost]) -> str:
    """Return how many rebalances there are, in words."""
    return "1 rebalance" if len(behind) == 1 else f"{len(behind)} rebalances"


def seconds(duration_us: int) -> str:
    """Return a duration in seconds."""
    return f"{duration_us / 1_000_000:.1f} s"


def _static(costs: Sequence[RebalanceCost]) -> str | None:
    """The setting that makes members static; None for those that cannot be."""
    return None if refusal(costs[0].client_kind, "group.instance.id") else STATIC


def _deploys(group_id: str, shown: _Shown) -> list[Finding]:
    behind = shown.of(each for each in shown.every if each.deploy)
    if not behind:
        return []
    deploys = len({each.deploy for each in behind})
    cost_us = _length_us(behind)
    times = "A deploy" if deploys == 1 else f"{deploys} deploys"
    words = _Words(
        what=f"{times} restarted members: {_counted(behind)}, {seconds(cost_us)} of rebalancing.",
        cost_us=cost_us,
        setting=STATIC,
    )
    return _finding(group_id, "deploys-rebalance-each-member", behind, words)


def _dead_members(group_id: str, shown: _Shown) -> list[Finding]:
    behind = shown.of(each for each in _timed(shown.every) if each.dead_ms)
    cost_us = sum(each.dead_ms for each in behind) * 1000
    comes_back = any(each.restart for each in behind)
    words = _Words(
        what=f"{_counted(behind)} waited {seconds(cost_us)} for members that were then removed.",
        cost_us=cost_us,
        setting=(_static(shown.every) if comes_back else None) or _SHORT_SESSION,
        change="Have members close in good order when they are stopped (SIGTERM, not SIGKILL).",
    )
    return _finding(group_id, "dead-members-waited-for", behind, words)


def _initial_delay(group_id: str, shown: _Shown) -> list[Finding]:
    behind = shown.of(each for each in _timed(shown.every) if each.initial_ms >= _SHORT_MS)
    cost_us = sum(each.initial_ms for each in behind) * 1000
    words = _Words(
        what=f"{_counted(behind)} of an empty group waited {seconds(cost_us)} for more members.",
        cost_us=cost_us,
        setting=_NO_DELAY,
    )
    return _finding(group_id, "initial-delay", behind, words)


def _slow_joiners(group_id: str, shown: _Shown) -> list[Finding]:
    behind = shown.of(each for each in _timed(shown.every) if each.slow_ms >= _SLOW_MS)
    cost_us = sum(each.slow_ms for each in behind) * 1000
    longest_us = max((each.slow_ms for each in behind), default=0) * 1000
    words = _Words(
        what=f"{_counted(behind)} waited {seconds(cost_us)} for living members to learn of it and "
        f"to rejoin, {seconds(longest_us)} at most.",
        cost_us=cost_us,
        setting=_FAST_HEARTBEAT,
        change="Beyond that they are busy: lower max.poll.records, or process in another thread.",
    )
    return _finding(group_id, "slow-joiners", behind, words, confidence=_at_most(behind, 0.6))


def _poll_timeouts(group_id: str, shown: _Shown) -> list[Finding]:
    late = _late_polls(shown.every)
    behind = shown.of(each for each in shown.every if each.number in late)
    times = sum(each.trigger == POLL_TIMEOUT for each in behind)
    back = sum(each.restart == CAME for each in behind)
    cost_us = _length_us(behind)
    came_back = f", and came back {often(back)}" if back else ""
    words = _Words(
        what=f"Members left {often(times)} because they did not poll in time{came_back}: "
        f"{_counted(behind)}, {seconds(cost_us)} of rebalancing.",
        cost_us=cost_us,
        # No replay knows how long the member would have been busy.
        change="Raise max.poll.interval.ms above the longest time between two polls, or lower "
        "max.poll.records.",
    )
    return _finding(group_id, "poll-timeouts", behind, words, basis=ESTIMATED)


def often(count: int) -> str:
    """Return a number of times in words."""
    return "once" if count == 1 else f"{count} times"


def _late_polls(costs: Sequence[RebalanceCost]) -> set[int]:
    """Return the numbers of rebalances that come from members that did not poll in time."""
    went = {each.number for each in costs if each.trigger == POLL_TIMEOUT}
    return went | {each.number for each in costs if each.root in went}


def _storm(group_id: str, shown: _Shown) -> list[Finding]:
    """Find rebalances that come close together and are not a deploy's; name the first cause."""
    known = _late_polls(shown.every) | _visits(shown.every)
    own = [each for each in shown.every if not each.deploy and each.number not in known]
    behind = shown.of(each for storm in storms_of(own) for each in storm)
    if not behind:
        return []
    cost_us = _length_us(behind)
    first = behind[0]
    who = f" by {first.client}" if first.client else ""
    words = _Words(
        what=f"{_counted(behind)} came within minutes of each other, {seconds(cost_us)} of "
        f"rebalancing; the first was #{first.number}, {first.trigger}{who}.",
        cost_us=cost_us,
        setting=_USUAL_DELAY if 0 < first.initial_ms < _SLOW_MS else None,
        change="Look at the first one: coordinator-sim explain tells its cause.",
    )
    sure = _at_most(behind[:1], 0.8)
    return _finding(group_id, "rebalance-storm", behind, words, confidence=sure)


def _flapping(group_id: str, shown: _Shown) -> list[Finding]:
    """Find the client that goes and comes most often outside deploys."""
    own: dict[str, list[RebalanceCost]] = {}
    visits = _visits(shown.every)
    for each in shown.every:
        is_own = each.restart in {CAME, WENT} and each.client and not each.deploy
        if is_own and each.number not in visits and each.trigger != POLL_TIMEOUT:
            own.setdefault(each.client, []).append(each)
    restless = {client: each for client, each in own.items() if len(each) >= 2 * _FLAPS}
    flapping = {client: behind for client, each in restless.items() if (behind := shown.of(each))}
    if not flapping:
        return []
    client = max(flapping, key=lambda name: (_length_us(flapping[name]), name))
    behind = flapping[client]
    cost_us = _length_us(behind)
    words = _Words(
        what=f"{client} went and came back again and again: {_counted(behind)}, "
        f"{seconds(cost_us)} of rebalancing.",
        cost_us=cost_us,
        setting=_static(shown.every),
        change=f"See in its own log why {client} restarts.",
    )
    return _finding(group_id, FLAPPING, behind, words, client=client)


def _one_shots(costs: Sequence[RebalanceCost]) -> list[tuple[RebalanceCost, RebalanceCost, int]]:
    """Return the visits of consumers that join an empty group alone, and leave soon.

    Returns:
        Who came, who went, and the stay in milliseconds; empty where they are few.
    """
    found = []
    for came, went in pairwise(costs):
        stay_ms = went.start_ms - came.start_ms - (came.length_us or 0) // 1000
        is_alone = came.initial_ms and came.members == 1
        if is_alone and went.outcome is RebalanceOutcome.EMPTY and stay_ms <= _ONE_SHOT_MS:
            found.append((came, went, stay_ms))
    return found if len(found) >= _ONE_SHOTS else []


def _visits(costs: Sequence[RebalanceCost]) -> set[int]:
    """Return the numbers of rebalances of one-shot consumers."""
    return {each.number for came, went, _ in _one_shots(costs) for each in (came, went)}


def _one_shot_consumers(group_id: str, shown: _Shown) -> list[Finding]:
    """Find consumers that are started one after the other, each for a moment."""
    every = _one_shots(shown.every)
    visits = [each for each in every if shown.of(each[:1])]
    if not visits:
        return []
    behind = shown.of(each for came, went, _ in every for each in (came, went))
    stay_us = median_low([stay_ms for _, _, stay_ms in visits]) * 1000
    words = _Words(
        what=f"A consumer joined the empty group {often(len(visits))}, was alone in it, and left "
        f"after {seconds(stay_us)}: something starts one for each task.",
        cost_us=_length_us(behind),
        change="Keep one consumer running from task to task. A program that needs no group reads "
        "with assign() instead of subscribe().",
    )
    return _finding(group_id, "one-shot-consumers", behind, words)


def _joins_again(group_id: str, shown: _Shown) -> list[Finding]:
    """Find the member that most often joins again although it never left."""
    own: dict[str, list[RebalanceCost]] = {}
    for each in shown.every:
        is_other = any(each.client_cause in causes for causes, _, _ in _CLIENT_CAUSES.values())
        if each.trigger == REJOINED and not (is_other or each.is_follow_up or each.restart):
            own.setdefault(each.client, []).append(each)
    client = max(own, key=lambda name: (len(own[name]), name), default="")
    behind = own.get(client, [])
    if len(behind) < _REJOINS:
        return []
    apart_ms = [after.start_ms - before.start_ms for before, after in pairwise(behind)]
    behind = shown.of(behind)
    words = _Words(
        what=f"{client or 'A member'} joined again {often(len(behind))} without having left, "
        f"once every {seconds(median_low(apart_ms) * 1000)}: {seconds(_length_us(behind))} of "
        "rebalancing.",
        cost_us=_length_us(behind),
        change="Its own log says why (Request joining group due to), and explain shows it where "
        "that log is ingested too: it subscribes anew, or as the leader it sees other partitions "
        "of its topics than before, as where brokers disagree.",
    )
    return _finding(group_id, "member-joins-again", behind, words)


def _client_causes(group_id: str, shown: _Shown) -> list[Finding]:
    """Find causes that the logs of clients tell, and no coordinator knows."""
    found: list[Finding] = []
    for kind, (causes, what, change) in _CLIENT_CAUSES.items():
        behind = shown.of(each for each in shown.every if each.client_cause in causes)
        cost_us = _length_us(behind)
        clients = {each.client for each in behind if each.client}
        of = f" of {next(iter(clients))}" if len(clients) == 1 else ""
        words = _Words(
            what=f"{_counted(behind)} began{of} because {what}: {seconds(cost_us)} of rebalancing.",
            cost_us=cost_us,
            change=change,
        )
        found += _finding(group_id, kind, behind, words)
    return found


def _coordinator_moves(group_id: str, shown: _Shown) -> list[Finding]:
    behind = shown.of(
        each
        for each in shown.every
        if each.trigger == COORDINATOR_MOVED or each.outcome is RebalanceOutcome.COORDINATOR_MOVED
    )
    cost_us = _length_us(behind)
    words = _Words(
        what=f"{_counted(behind)} around a move of the group's coordinator: {seconds(cost_us)} of "
        "rebalancing.",
        cost_us=cost_us,
        change=_BROKER,
    )
    return _finding(group_id, "coordinator-moves", behind, words)


def _eager(group_id: str, shown: _Shown) -> list[Finding]:
    """Find eager rebalances of a group with members, where the trace tells the protocol."""
    behind = shown.of(
        each
        for each in shown.every
        if each.protocol_name and not is_cooperative(each.protocol_name) and not each.initial_ms
    )
    if not behind:
        return []
    protocol = behind[-1].protocol_name
    paused_us = sum(each.paused_us or 0 for each in behind)
    stopped_us = sum(each.stopped_us or 0 for each in behind)
    at_most = "at most " if any(each.is_bound for each in behind) else ""
    words = _Words(
        what=f"{_counted(behind)} under {protocol} made members give up everything: they paused "
        f"for {at_most}{seconds(paused_us)} together, and for {at_most}{seconds(stopped_us)} "
        "nobody in the group owned anything.",
        cost_us=paused_us,
        setting=_INCREMENTAL if protocol == _EAGER_CONNECT else _COOPERATIVE,
    )
    return _finding(group_id, "eager-stops-everything", behind, words, cost_unit=MEMBER_SECONDS)


def _at_most(behind: Sequence[RebalanceCost], bound: float) -> float:
    return round(min([bound, *(each.confidence for each in behind)]), 2)
