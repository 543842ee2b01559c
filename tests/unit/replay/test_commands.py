"""The commands `replay` and `explain` as a user types them."""

import json
from datetime import UTC
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from coordinator_sim.cli.console import PrintableConsole
from coordinator_sim.cli.explain import explain
from coordinator_sim.cli.ingest import ingest
from coordinator_sim.cli.replay import print_assumptions, replay
from coordinator_sim.cli.what_if import verdict_of
from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.report import GroupFidelity, ReplayReport, RunFigures, WhatIf
from coordinator_sim.replay.sharing import SharingCosts
from coordinator_sim.runs.run_directory import RunDirectoryWriter, read_run
from coordinator_sim.trace.events import Event
from tests.simulated import INGESTED

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "broker-log" / "server.log"
app = typer.Typer()
app.command()(replay)
app.command()(explain)
app.command()(ingest)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example log as an imported trace."""
    path = tmp_path_factory.mktemp("trace") / "example"
    with EXAMPLE.open(encoding="utf-8") as lines, RunDirectoryWriter(path, INGESTED) as writer:
        for event in parse_broker_log(lines, source_ref=str(EXAMPLE), tz=UTC):
            writer.record(event)
    return path


def test_replay_prints_the_fidelity_table(trace: Path) -> None:
    """One row a group, what was assumed, and a line that sums up; all came true, so 0."""
    done = CliRunner().invoke(app, ["replay", str(trace)])
    assert done.exit_code == 0
    assert "orders-service" in done.stdout
    assert "(100.0 %)" in done.stdout
    assert "Assumed, because the source does not tell:" in done.stdout


def test_replay_with_settings_ends_with_a_verdict(trace: Path) -> None:
    """It names the rebalances that it holds for; what it assumes is counted, and told on demand."""
    words = ["replay", str(trace), "--set", "session.timeout.ms=60000"]
    done = CliRunner().invoke(app, words)
    assert "Replayed as it is -> replayed with session.timeout.ms=60000" in done.stdout
    last = done.stdout.splitlines()[-1]
    assert last.startswith("the recorded run ")
    assert last.endswith(
        "Over 24 recorded rebalances of 2 groups; it rests on 14 assumptions: --explain."
    )
    assert "This difference is conditional" not in done.stdout

    explained = CliRunner().invoke(app, [*words, "--explain"]).stdout
    assert "Assumed, because the source does not tell:" in explained
    assert "This difference is conditional on the assumptions above" in explained
    assert explained.splitlines()[-1] == last
    assert json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)["verdict"] == last


def test_replay_with_settings_that_change_nothing_says_so(trace: Path) -> None:
    """No row of equal figures, and no winner."""
    done = CliRunner().invoke(app, ["replay", str(trace), "--set", "group.max.size=1000"])
    last = done.stdout.splitlines()[-1]
    assert last.startswith("No difference in this history between the recorded run and group.max")


def test_a_best_figure_of_nought_has_a_verdict(trace: Path) -> None:
    """The best value of a figure may be 0 that has no words of its own."""
    done = CliRunner().invoke(app, ["replay", str(trace), "--set", "group.instance.id=stable"])
    assert done.exit_code == 0
    assert "left what returning members own alone for 0.000 s (group" in done.stdout


def test_files_of_one_name_keep_what_is_assumed_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    """Brokers' logs have the same name in folders of their own; what both assume stands once."""
    report = ReplayReport(trace_id="t", grid=[])
    for folder, texts in (("b1", ["one", "both"]), ("b2", ["both", "two"])):
        file = f"{folder}/server.log"
        report.groups.append(
            GroupFidelity(source_ref=file, group_id="g", profile="4.4", assumed=texts)
        )
    print_assumptions(PrintableConsole(width=200), report)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if ":" in line]
    assert lines[1:] == [f"server.log, g: {text}" for text in ("one", "both", "two")]


def test_upper_bounds_have_no_winner() -> None:
    """Equal ones have no difference, as any others."""

    def report(unowned_ms: int, *, is_bound: bool) -> ReplayReport:
        before, after = (
            RunFigures(
                rebalances=3,
                last_generation=3,
                join_ms=0,
                rebalancing_ms=9_000,
                removed=0,
                unnoticed_ms=0,
                outcomes={},
                sharing=SharingCosts(strategy="range", items=6, unowned_ms=value),
                is_bound=is_bound,
            )
            for value in (5_000, unowned_ms)
        )
        given: dict[str, int | str] = {"session.timeout.ms": 6_000}
        entry = WhatIf(
            source_ref=None, group_id="g", settings=given, as_is=before, with_settings=after
        )
        return ReplayReport(trace_id="t", grid=[given], what_if=[entry])

    told = verdict_of(report(4_000, is_bound=True))
    assert told.startswith(
        "No winner: times unowned and stopped are at most what is shown, because"
    )
    assert "Over 3 recorded rebalances of g" in told
    assert verdict_of(report(5_000, is_bound=True)).startswith("No difference in this history")
    assert verdict_of(report(4_000, is_bound=False)).startswith("session.timeout.ms=6000 left work")


def test_replay_writes_a_trace_that_can_be_read(trace: Path, tmp_path: Path) -> None:
    """The core's own events are a run like any other, at the times of the log."""
    out = tmp_path / "replayed"
    done = CliRunner().invoke(app, ["replay", str(trace), "--out", str(out), "--json"])
    assert json.loads(done.stdout)["reproduced"]
    started = [
        event.ts_us for event in read_run(out).events() if event.event is Event.PREPARE_REBALANCE
    ]
    logged = [
        event.ts_us for event in read_run(trace).events() if event.event is Event.PREPARE_REBALANCE
    ]
    assert len(started) == len(logged)
    assert all(abs(mine - theirs) <= 50_000 for mine, theirs in zip(started, logged, strict=True))


def test_replay_of_a_trace_without_rebalances_is_refused(tmp_path: Path) -> None:
    """A trace without rebalances ends with one line that says so."""
    with RunDirectoryWriter(tmp_path / "empty", INGESTED):
        pass
    done = CliRunner().invoke(app, ["replay", str(tmp_path / "empty")])
    assert isinstance(done.exception, DataError)
    assert "no group in it rebalances" in str(done.exception)


def test_explain_tells_the_story(trace: Path) -> None:
    """Why, who, how long, what came of it; and the sum."""
    done = CliRunner().invoke(app, ["explain", str(trace), "billing"])
    assert done.exit_code == 0
    assert done.stdout.startswith("Group billing: 7 rebalances from ")
    assert "why: " in done.stdout
    assert "Causes: " in done.stdout


def test_explain_without_a_group_lists_the_worst_first(trace: Path) -> None:
    """Most rebalances first, with the command that explains the first of them."""
    told = CliRunner().invoke(app, ["explain", str(trace)]).stdout.splitlines()
    assert told[0].split() == ["rebalances", "unsettled", "rebalancing", "for", "mostly", "group"]
    counts = [int(row.split()[0]) for row in told[1:4]]
    assert counts == sorted(counts, reverse=True)
    assert sum(counts) == 28
    worst = told[1].split()[-1]
    assert told[-1] == f"Next: coordinator-sim explain {trace} {worst}"
    document = json.loads(CliRunner().invoke(app, ["explain", str(trace), "--json"]).stdout)
    assert [(group["group_id"], group["rebalances"]) for group in document["groups"]] == [
        (row.split()[-1], int(row.split()[0])) for row in told[1:4]
    ]


def test_list_does_not_know_lengths_that_the_story_does_not_know(tmp_path: Path) -> None:
    """A trace with the end of a rebalance, and without its start."""
    log = tmp_path / "server.log"
    log.write_text(
        "[2024-05-13 10:00:03,000] INFO [GroupCoordinator 1]: Stabilized group shop generation 5 "
        "(__consumer_offsets-7) with 2 members (kafka.coordinator.group.GroupCoordinator)\n"
    )
    out = str(tmp_path / "out")
    assert CliRunner().invoke(app, ["ingest", str(log), "--out", out]).exit_code == 0
    row = CliRunner().invoke(app, ["explain", out]).stdout.splitlines()[1]
    assert row.split()[2:4] == ["not", "known"]
    told = CliRunner().invoke(app, ["explain", out, "shop"]).stdout
    assert "Rebalancing time: not known" in told


def test_explain_of_an_unknown_group_names_close_ones(trace: Path) -> None:
    """A misspelt group is misuse."""
    done = CliRunner().invoke(app, ["explain", str(trace), "biling"])
    assert isinstance(done.exception, ConfigError)
    assert "did you mean billing" in str(done.exception)
