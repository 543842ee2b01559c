"""The table `findings` holds what the command `findings` finds, before any replay."""

from datetime import UTC
from pathlib import Path

import pytest
from msgspec.structs import replace

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.savings import findings_in
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim.trace.schema import plain, rows_of
from coordinator_sim_reports.transforms.findings import findings
from coordinator_sim_reports.transforms.rebalances import group_events, rebalances
from coordinator_sim_scenarios.catalog import all_scenarios
from tests.reports.conftest import Frame

pytestmark = pytest.mark.spark

REPO = Path(__file__).resolve().parents[2]
EXAMPLE = REPO / "examples" / "broker-log" / "server.log"
SAMPLES = REPO.parent / "shared" / "samples" / "broker-logs"
COMPARED = ("group_id", "kind", "rebalances", "cost_s", "what", "setting", "saves_s", "basis")


def simulated(name: str) -> list[TraceEvent]:
    """The events of a catalogue scenario, numbered as on disk."""
    recorder = MemoryRecorder()
    run_scenario(all_scenarios()[name], seed=0, recorder=recorder)
    return [replace(event, seq=place) for place, event in enumerate(recorder.events)]


def logged(path: Path) -> list[TraceEvent]:
    """The events of a broker's log."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        return list(parse_broker_log(lines, source_ref=path.name, tz=UTC))


def check(frame: Frame, events: list[TraceEvent], source: Source) -> int:
    """The table has the findings, in their order; returns how many."""
    info = RunInfo(trace_id="t", source=source, cluster_id="c", version="0", profile="4.4")
    rows = []
    for ordinal, event in enumerate(events):
        for row in rows_of(event, ordinal, info):
            shown = {column: plain(getattr(row, column)) for column in row.__struct_fields__}
            rows.append(shown | {"cluster_id": "c"})
    table = findings(rebalances(group_events(frame("events", rows)))).orderBy("rank").collect()
    found = findings_in(events, source)
    assert [row["rank"] for row in table] == list(range(1, len(found) + 1))
    assert [[row[name] for name in COMPARED] for row in table] == [
        [getattr(each, name) for name in COMPARED] for each in found
    ]
    assert [tuple(row["source_refs"]) for row in table] == [each.source_refs for each in found]
    assert all(0 < row["confidence"] <= 1 for row in table)
    return len(found)


@pytest.mark.parametrize("name", ["consumer-rolling-deploy", "mass-restart", "poll-timeout-loop"])
def test_table_has_what_the_command_finds_in_a_simulation(frame: Frame, name: str) -> None:
    """One row a finding, worst first."""
    assert check(frame, simulated(name), Source.SIM) >= 3


def test_table_has_what_the_command_finds_in_the_example_log(frame: Frame) -> None:
    """Its rows name file and line."""
    assert check(frame, logged(EXAMPLE), Source.BROKER_LOG) >= 3


@pytest.mark.nightly
@pytest.mark.skipif(not SAMPLES.is_dir(), reason="needs the logs of ../shared")
def test_table_has_what_the_command_finds_in_real_logs(frame: Frame) -> None:
    """Logs of 0.10 to 4.x."""
    assert sum(check(frame, logged(path), Source.BROKER_LOG) for path in SAMPLES.glob("*.log")) > 10
