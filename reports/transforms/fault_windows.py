"""Fault windows of a run: when each task ran, and what happened to the groups meanwhile."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.engine import Row
from coordinator_sim_reports.workers.group import FaultWindow, RunFacts

FAULT_WINDOWS: Final = C.schema_with(
    (
        "text trace_id cluster_id",
        "int window_no",
        "text name task kind",
        "long from_us to_us",
        "flag is_ended",
        "long next_from_us",
    )
)
FAULTS: Final = (
    "SELECT trace_id, cluster_id, ordinal, ts_us, reason_text, attrs FROM {events}"
    " WHERE event = 'FAULT' ORDER BY trace_id, cluster_id, ordinal"
)
"""The rows of events that windows follow from, in their order."""
_RUNNING: Final = "TaskRunning"
_DONE: Final = "TaskDone"
_LENGTHS: Final = ("for_ms", "down_ms")
"""Attributes of a happening that say how long it lasts."""
_STRUCK: Final = {"member": "", "broker": "broker ", "group_id": "", "partition": "partition "}
"""Attributes of a happening that say what it strikes, with the word for it."""
_US_PER_MS: Final = 1_000
_LOADS: Final = re.compile(
    r"org\.apache\.kafka\.trogdor\.workload\."
    r"|coordinatorsim\.(GroupMember|ConnectWorker|OffsetCommitter)$"
)
"""Classes of tasks that are clients, and no faults."""


def fault_windows(faults: Iterable[Row], ends: Mapping[str, int | None]) -> list[Row]:
    """Return the windows of a run's tasks; of a run without tasks, those of its happenings.

    Tasks that are clients, workloads and members of groups, make no windows. Another task runs
    from its TaskRunning to the next transition of the same id, or to the end of the
    trace; a TaskDone without a TaskRunning makes no window. A happening (PauseMember, CrashBroker)
    is a window where it names its length, `for_ms` or `down_ms`. Happenings of a run with tasks
    are what the tasks do, and make no windows of their own.

    Args:
        faults: Rows of `FAULTS`.
        ends: When each trace ends, by its id.

    Returns:
        Rows with the key (trace_id, cluster_id, window_no), numbered from 1 in order of the trace:
        `name`, the task's id, or the happening with what it strikes; `task`, null for a happening;
        `kind`, the spec's class or the happening's; `from_us`, `to_us` >= `from_us`, cut at the end
        of the trace; `is_ended`, false where the trace ends first; `next_from_us`, when the next
        window begins that begins after this one and not before its end, null where none does.
    """
    by_run: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in faults:
        by_run[row[C.TRACE_ID], row[C.CLUSTER_ID]].append(row)
    found = []
    for (trace_id, cluster_id), own in by_run.items():
        end_us = ends[trace_id]
        windows = [_cut(each, end_us) for each in _windows(own)]
        starts = sorted(each[C.FROM_US] for each in windows)
        for number, window in enumerate(windows, 1):
            after = max(
                bisect_right(starts, window[C.FROM_US]), bisect_left(starts, window[C.TO_US])
            )
            key = {C.TRACE_ID: trace_id, C.CLUSTER_ID: cluster_id, "window_no": number}
            next_from_us = starts[after] if after < len(starts) else None
            found.append({**key, **window, "next_from_us": next_from_us})
    return found


def _windows(faults: Sequence[Row]) -> list[Row]:
    tasks = list(_task_windows(faults))
    if tasks:
        return [each for each in tasks if not _LOADS.match(each["kind"] or "")]
    return list(_happening_windows(faults))


def _task_windows(faults: Sequence[Row]) -> Iterator[Row]:
    """Yield a row per TaskRunning of a named task; `to_us` is None where nothing follows."""
    steps = [
        row
        for row in faults
        if row["reason_text"] in {_RUNNING, _DONE} and _attrs(row).get("task") is not None
    ]
    later: dict[str, int] = {}
    ends = []
    for row in reversed(steps):
        task = _attrs(row)["task"]
        ends.append(later.get(task))
        later[task] = row[C.TS_US]
    for row, to_us in zip(steps, reversed(ends), strict=True):
        if row["reason_text"] == _RUNNING:
            task, kind = _attrs(row)["task"], _attrs(row).get("kind")
            yield {
                "name": task,
                "task": task,
                "kind": kind,
                C.FROM_US: row[C.TS_US],
                C.TO_US: to_us,
            }


def _happening_windows(faults: Sequence[Row]) -> Iterator[Row]:
    for row in faults:
        attrs, what = _attrs(row), row["reason_text"]
        length_ms = next((attrs[name] for name in _LENGTHS if attrs.get(name) is not None), None)
        struck = ", ".join(
            word + attrs[name] for name, word in _STRUCK.items() if attrs.get(name) is not None
        )
        if length_ms is not None:
            yield {
                "name": " ".join(each for each in (what, struck) if each),
                "task": None,
                "kind": what,
                C.FROM_US: row[C.TS_US],
                C.TO_US: row[C.TS_US] + int(length_ms) * _US_PER_MS,
            }


def _attrs(row: Row) -> dict[str, str]:
    return row["attrs"] or {}


def _cut(window: Row, end_us: int | None) -> Row:
    """Return a window that ends with its trace at the latest."""
    to_us = window[C.TO_US]
    until_us = min((each for each in (to_us, end_us) if each is not None), default=0)
    is_ended = to_us is not None and end_us is not None and to_us <= end_us
    return {**window, C.TO_US: max(window[C.FROM_US], until_us), "is_ended": is_ended}


def with_windows(facts: Mapping[str, RunFacts], windows: Sequence[Row]) -> dict[str, RunFacts]:
    """Return facts of runs with their fault windows."""
    found = dict(facts)
    for row in windows:
        window = FaultWindow(**{name: row[name] for name in FaultWindow.__struct_fields__})
        own = found[row[C.TRACE_ID]]
        found[row[C.TRACE_ID]] = replace(own, faults=(*own.faults, window))
    return found
