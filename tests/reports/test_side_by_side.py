import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("duckdb", reason="needs the report extra")

from coordinator_sim.cli.main import app
from coordinator_sim.runs.run_directory import RunDirectoryWriter
from coordinator_sim.trace.events import Event, RebalanceReason, RunInfo, Source, TraceEvent

WALL_US = 1_795_285_663_376_000
NETWORK_PARTITION = "org.apache.kafka.trogdor.fault.NetworkPartitionFaultSpec"


def event(kind: Event, at_ms: int, **columns: Any) -> TraceEvent:  # noqa: ANN401 - any column
    """An event of the served cluster, so long after its start."""
    return TraceEvent(event=kind, ts_us=WALL_US + at_ms * 1_000, **columns)


def served() -> Iterator[TraceEvent]:
    """Two rebalances of a served cluster, and the tasks that were run against it.

    The partition is longer than the session here, so the second rebalance comes within it.
    """
    group = {"group_id": "orders-app", "protocol_type": "consumer"}
    joins = {**group, "member_id": "m-1", "session_timeout_ms": 6_000}
    partition = {"task": "racks-apart", "kind": NETWORK_PARTITION}
    joined = RebalanceReason.MEMBER_JOINED
    failed = RebalanceReason.MEMBER_FAILED
    yield event(Event.LOAD_START, 0, offsets_partition=0)
    yield event(Event.JOIN_REQ, 400, **joins)
    yield event(Event.PREPARE_REBALANCE, 400, generation=0, reason=joined, **group)
    yield event(Event.JOIN_COMPLETE, 3_400, generation=1, members=2, **group)
    yield event(Event.SYNC_LEADER, 3_402, generation=1, **group)
    yield event(Event.FAULT, 30_012, reason_text="TaskRunning", attrs=partition)
    yield event(Event.PREPARE_REBALANCE, 37_100, generation=1, reason=failed, **group)
    yield event(Event.JOIN_COMPLETE, 40_100, generation=2, members=1, **group)
    yield event(Event.SYNC_LEADER, 40_102, generation=2, **group)
    yield event(Event.FAULT, 50_020, reason_text="TaskDone", attrs=partition)
    yield event(Event.HEARTBEAT, 60_000, generation=2, member_id="m-1", **group)


@dataclass
class Reported:
    """What the command wrote."""

    summary: dict[str, Any]
    page: str
    text: str
    tables: Path


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """A scenario in virtual time, and a trace of a served cluster, in one report."""
    folder = tmp_path_factory.mktemp("beside")
    virtual, real, out = (folder / name for name in ("virtual", "real", "out"))
    runner = CliRunner()
    arguments = ["run", "partition-and-stop", "--out", str(virtual)]
    assert runner.invoke(app, arguments, catch_exceptions=False).exit_code == 0
    info = RunInfo(
        trace_id="served", source=Source.WIRE, cluster_id="east", version="0", profile="4.4"
    )
    with RunDirectoryWriter(real, info, format="jsonl") as writer:
        for each in served():
            writer.record(each)
    arguments = ["report", str(virtual), "--compare", str(real), "--out", str(out), "--json"]
    result = runner.invoke(app, arguments, catch_exceptions=False)
    assert (result.exit_code, result.stderr) == (0, "")
    page = (out / "report.html").read_text()
    text = " ".join(re.sub(r"<script.*?</script>|<[^>]*>", " ", page, flags=re.DOTALL).split())
    return Reported(json.loads(result.stdout), page, text, out / "tables")


def table(page: str, begin: str) -> list[list[str]]:
    """The cells of the rows of the first table after a text."""
    body = page[page.index(begin) :].partition("<tbody>")[2].partition("</tbody>")[0]
    rows = body.split("<tr")[1:]
    cells = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, flags=re.DOTALL) for row in rows]
    return [[re.sub(r"<[^>]*>", " ", cell).strip() for cell in row] for row in cells]


def test_both_runs_are_described(reported: Reported) -> None:
    """Each has its own zero, and the shared group a row of each."""
    assert [row[:3] for row in table(reported.page, 'id="beside"')] == [
        ["partition-and-stop, range+cooperative-sticky", "0 s of virtual time", "4.0 min"],
        ["east", "2026-11-21 18:27:43.376 UTC", "60.0 s"],
    ]
    title, virtual, real = table(reported.page, "Groups that several runs have")
    assert title == ["orders-app"]
    assert virtual[1:3] == ["3", "MEMBER_JOINED 2, MEMBER_FAILED 1"]
    assert real[1:4] == ["2", "MEMBER_FAILED 1, MEMBER_JOINED 1", "3.0 s"]
    assert real[5:8] == ["n/a", "n/a", "n/a"], "no assignment is in the trace"


def test_the_same_task_of_both_runs_is_listed_together(reported: Reported) -> None:
    """Starts count from the start of each run, and each run has its own rebalances."""
    rows = table(reported.page, 'id="faults"')
    assert [row[1:] for row in rows[:2]] == [
        ["partition-and-stop, range+cooperative-sticky", "30.000 s", "20.0 s", "no group affected"],
        ["east", "30.012 s", "20.0 s", "orders-app", "1", "0", "n/a"],
    ]
    assert [row[0].split() for row in rows] == [
        ["racks-apart", "NetworkPartitionFaultSpec"],
        [],
        ["long-pause", "ProcessStopFaultSpec"],
        ["coordinator-dies", "CrashBroker"],
    ]
    # The member that stood still is removed in the window, and comes back when it ends.
    assert rows[2][4:7] == ["orders-app", "1", "1"]


def test_rebalances_are_in_the_order_of_their_own_times(reported: Reported) -> None:
    """Rebalances of both runs are mixed, and the date of a real one is beside its time."""
    assert [row[0] for row in table(reported.page, "Every rebalance")] == [
        "0.004 s",
        "0.400 s",
        "37.100 s",
        "123.100 s",
        "140.119 s",
    ]
    assert 'title="2026-11-21 18:28:20.476">37.100 s' in reported.page
    assert "seconds since the start of the run" in reported.page


def test_windows_are_a_table_of_their_own(reported: Reported) -> None:
    """All windows of both runs, with their effects, are there for other tools."""
    import pyarrow.parquet as pq

    windows = pq.read_table(reported.tables / "fault_windows").to_pylist()
    assert sorted((row["name"], row["to_us"] - row["from_us"]) for row in windows) == [
        ("coordinator-dies", 15_000_000),
        ("long-pause", 60_000_000),
        ("racks-apart", 20_000_000),
        ("racks-apart", 20_008_000),
    ]
    effects = pq.read_table(reported.tables / "window_effects").to_pylist()
    assert len(effects) == len(windows)
