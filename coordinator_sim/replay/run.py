"""Replays a trace on disk, in the way its source allows."""

from collections.abc import Callable, Sequence
from typing import Final

from coordinator_sim.errors import DataError
from coordinator_sim.replay.causes import group_named
from coordinator_sim.replay.logs import UNTIMED_SOURCES, charges_of, replay_log
from coordinator_sim.replay.recordings import is_recording, replay_recording
from coordinator_sim.replay.report import ReplayResult
from coordinator_sim.replay.settings import Settings
from coordinator_sim.replay.work import Partitions, known_groups
from coordinator_sim.runs.run_directory import RunDirectory
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.history import CLIENT_SOURCES
from coordinator_sim.trace.window import ALWAYS, Window

_SHOWN: Final = 3
"""Groups that a message names."""


def replay_run(
    run: RunDirectory,
    grid: Sequence[Settings] = (),
    *,
    given: Partitions = Partitions({}),  # noqa: B008 - frozen
    group_id: str | None = None,
    window: Window = ALWAYS,
    on_progress: Callable[[int], None] | None = None,
) -> ReplayResult:
    """Replay a trace on disk.

    Args:
        run: The trace.
        grid: Combinations of settings to try; empty for none.
        given: Partitions of groups whose assignments the trace lacks.
        group_id: The only group to replay; None for all.
        window: The time that counts; all of the trace is replayed.
        on_progress: Gets the number of events done.

    Raises:
        ConfigError: the trace has no group of that id.
        DataError: the trace cannot be read, or holds nothing that can be replayed.
    """
    events = list(run.events())
    if group_id is not None:
        groups = dict.fromkeys(each.group_id for each in events if each.group_id is not None)
        group_named(group_id, groups)
    group_ids = None if group_id is None else [group_id]
    if is_recording(run.info):
        events = [each for each in events if group_ids is None or each.group_id in {None, group_id}]
        result = replay_recording(events, run.info, grid, given=given, window=window)
    else:
        result = replay_log(
            events,
            run.info,
            grid,
            group_ids=group_ids,
            known=known_groups(events, given),
            charges=charges_of(events, run.info, group_ids) if grid else (),
            window=window,
            on_progress=on_progress,
        )
    report = result.report
    if not report.groups and report.epoch_groups:
        shown = list(report.epoch_groups.items())[:_SHOWN]
        named = ", ".join(f"{name} is a {group_type} group" for name, group_type in shown)
        raise DataError(
            f"{run.path}: replay is for groups of the classic protocol, and {named}; "
            "coordinator-sim explain tells of their epochs"
        )
    if not report.groups and report.silent_groups and window != ALWAYS:
        raise DataError(
            f"{run.path}: no group that can be replayed rebalances in this window; "
            "coordinator-sim explain tells when they do"
        )
    if not report.groups:
        raise DataError(
            f"{run.path}: {_why_nothing(events, run.info.source)}, so there is nothing to replay"
        )
    return result


def _why_nothing(events: list[TraceEvent], source: Source) -> str:
    """Return why no rebalance can be replayed of these events; `source` is the trace's default."""
    sources = {event.source or source for event in events}
    if sources & UNTIMED_SOURCES:
        return "console formatters print generations without times as text"
    if sources == {Source.GROUP_DESCRIPTION}:
        return "snapshots of kafka-consumer-groups tell no rebalances"
    if sources and sources <= CLIENT_SOURCES:
        return "the logs of clients in it do not tell what their coordinator did"
    kinds = {event.event for event in events if event.source not in CLIENT_SOURCES}
    if Event.JOIN_REQ in kinds and Event.JOIN_RESP not in kinds:
        return "its requests have no answers (request logs of brokers up to 0.10.2 tell none)"
    if Event.JOIN_RESP in kinds:
        return "no answer in it makes a generation"
    return "no group in it rebalances"
