"""The recorded history of groups, replayed as it was and under the consumer protocol."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.clients.settings_advice import SERVER_ASSIGNORS
from coordinator_sim.replay.logs import Trial, replay_log
from coordinator_sim.replay.report import Coverage, ReplayReport, RunFigures, WhatIf, sum_of
from coordinator_sim.replay.savings import logged
from coordinator_sim.replay.settings import (
    CONSUMER_HEARTBEAT_INTERVAL_MS,
    CONSUMER_SESSION_TIMEOUT_MS,
    Settings,
)
from coordinator_sim.replay.totals import total_of
from coordinator_sim_reports.rehearsal_facts import Told, Wishes
from coordinator_sim_reports.rehearsal_plans import GroupPlan

AS_IT_WAS: Final = "as it was"
_ASSIGNOR: Final = "group.remote.assignor"
_SESSION: Final = "group.consumer.session.timeout.ms"


class HistoryRow(Struct, frozen=True, kw_only=True):
    """The recorded history under one protocol and assignor.

    Args:
        name: `as it was`, or the brokers' assignor and session timeout.
        saves_s: Partition-seconds without an owner less than as it was; None where either is not
            known.
    """

    name: str
    figures: RunFigures
    saves_s: float | None


class History(Struct, frozen=True, kw_only=True):
    """What the recorded history was, and would have been.

    Args:
        rows: As it was first; empty where nothing is computed.
        not_computed: Why nothing is; empty otherwise.
        notes: What is special about the replay, one sentence each.
        assumed: What the replay had to choose.
        best: The row that saves most with the brokers' default session, and the one with today's.
        left_out: Names of rows that there was no time for.
        coverage: The rebalances that the figures are of.
    """

    rows: tuple[HistoryRow, ...]
    not_computed: str
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    best: tuple[HistoryRow, ...] = ()
    left_out: tuple[str, ...] = ()
    coverage: Coverage = Coverage()


def histories_of(
    told: Told, plans: Sequence[GroupPlan], wishes: Wishes, has_time: Callable[[], bool]
) -> dict[str, History]:
    """Replay each group as it is, and under the consumer protocol with each assignor.

    Where members failed, and today's session is not the brokers' default, the consumer protocol is
    replayed with today's session too.

    Args:
        told: The trace.
        plans: The groups.
        wishes: What the command line says beside the trace.
        has_time: Whether there is time for a further replay than that with the first assignor;
            those that are left out are named.
    """
    grids = {plan.group_id: _grid(plan, told, wishes) for plan in plans}
    first = _replayed(told, {name: grid[:-1] for name, grid in grids.items()})
    again = {plan.group_id: _with_session(plan, first, grids[plan.group_id]) for plan in plans}
    entries = list(first.what_if)
    left_out: dict[str, list[str]] = {}
    for further in ({name: grid[-1:] for name, grid in grids.items()}, again):
        wanted = {name: grid for name, grid in further.items() if grid}
        if wanted and has_time():
            entries.extend(_replayed(told, wanted).what_if)
            continue
        for name, grid in wanted.items():
            left_out.setdefault(name, []).extend(_name_of(each.given) for each in grid)
    assumed: dict[str, list[str]] = {}
    for fidelity in first.groups:
        assumed.setdefault(fidelity.group_id, []).extend(fidelity.assumed)
    return {
        plan.group_id: _history(
            [each for each in entries if each.group_id == plan.group_id],
            tuple(dict.fromkeys(assumed.get(plan.group_id, ()))),
            left_out.get(plan.group_id, ()),
        )
        for plan in plans
    }


def _replayed(told: Told, grids: Mapping[str, Sequence[Settings]]) -> ReplayReport:
    return replay_log(
        logged(told.events, told.info),
        told.info,
        by_group={group_id: Trial(grid=grid) for group_id, grid in grids.items()},
        group_ids=grids,
        known=told.known,
        charges=told.charges,
    ).report


def _grid(plan: GroupPlan, told: Told, wishes: Wishes) -> list[Settings]:
    """Return what to replay a group with; as it was needs an assignor where none is told."""
    if plan.plan is None:
        return []
    work = told.known.work_of(plan.group_id)
    is_told = work is not None and work.protocol is not None
    (assignor,) = plan.plan.group.assignors
    today = [] if is_told else [Settings(partition_assignment_strategy=assignor)]
    release = wishes.profile if plan.needs_release else None
    return [
        *today,
        *(
            Settings(group_protocol="consumer", group_remote_assignor=name, profile=release)
            for name in SERVER_ASSIGNORS
        ),
    ]


def _with_session(
    plan: GroupPlan, report: ReplayReport, grid: Sequence[Settings]
) -> list[Settings]:
    """Return the consumer protocol with the session of today; none where that tells nothing."""
    runs = _of_each_file([each for each in report.what_if if each.group_id == plan.group_id])
    removed = sum(run.removed for run in runs)
    if not removed:
        return []
    usual_ms = round(sum(run.unnoticed_ms for run in runs) / removed)
    session_ms = plan.seen.session_timeout_ms or usual_ms
    if not CONSUMER_HEARTBEAT_INTERVAL_MS < session_ms < CONSUMER_SESSION_TIMEOUT_MS:
        return []
    return [
        replace(each, group_consumer_session_timeout_ms=session_ms)
        for each in grid
        if each.is_consumer_protocol
    ]


def _history(
    entries: Sequence[WhatIf], assumed: tuple[str, ...], left_out: Sequence[str]
) -> History:
    """Return a group's history; its files are added up."""
    why = next((each.not_computed for each in entries if each.not_computed), "")
    if why or not entries:
        return History(
            rows=(), not_computed=why or "nothing of it can be replayed", assumed=assumed
        )
    runs: dict[str, list[RunFigures]] = {}
    for entry in entries:
        if entry.with_settings is not None:
            runs.setdefault(_name_of(entry.settings), []).append(entry.with_settings)
    before = total_of(runs.pop(AS_IT_WAS, []) or _of_each_file(entries))
    rows = [_row(name, total_of(own), before) for name, own in runs.items()]
    return History(
        rows=(HistoryRow(name=AS_IT_WAS, figures=before, saves_s=None), *rows),
        not_computed="",
        notes=tuple(dict.fromkeys(note for each in entries for note in each.notes)),
        assumed=assumed,
        best=_best(rows),
        left_out=tuple(left_out),
        coverage=sum_of({each.source_ref: each.coverage for each in entries}.values()),
    )


def _row(name: str, figures: RunFigures, before: RunFigures) -> HistoryRow:
    saves_s = None
    if figures.sharing is not None and before.sharing is not None:
        saves_s = (before.sharing.unowned_ms - figures.sharing.unowned_ms) / 1000
    return HistoryRow(name=name, figures=figures, saves_s=saves_s)


def _best(rows: Sequence[HistoryRow]) -> tuple[HistoryRow, ...]:
    """Return the row that saves most of those with each session timeout."""
    best: dict[str, HistoryRow] = {}
    for row in rows:
        if row.saves_s is None:
            continue
        session = row.name.partition(", ")[2]
        other = best.get(session)
        if other is None or row.saves_s > (other.saves_s or 0.0):
            best[session] = row
    return tuple(best.values())


def _name_of(settings: Mapping[str, int | str]) -> str:
    remote, session_ms = settings.get(_ASSIGNOR), settings.get(_SESSION)
    if remote is None:
        return AS_IT_WAS
    return (
        str(remote)
        if session_ms is None
        else f"{remote}, a session of {int(session_ms) / 1000:g} s"
    )


def _of_each_file(entries: Sequence[WhatIf]) -> list[RunFigures]:
    by_file = {each.source_ref: each.as_is for each in entries}
    return [each for each in by_file.values() if each is not None]
