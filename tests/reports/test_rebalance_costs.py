"""Costs by group, deploy and day, and findings: the report and the commands give one set."""

from collections.abc import Iterable, Mapping
from datetime import UTC
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

pytest.importorskip("duckdb", reason="needs the report extra")

from coordinator_sim.cli.costs import told_of
from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.charges import charges_in
from coordinator_sim.replay.cost_sums import SCOPES, storms_in, summed
from coordinator_sim.replay.findings import MEMBER_SECONDS, SECONDS_REBALANCING
from coordinator_sim.replay.savings import findings_in
from coordinator_sim.runs.run_directory import RunDirectory, RunDirectoryWriter, read_run
from coordinator_sim.sim.scenario import CommitPolicy, ConsumerGroupSpec, Scenario
from coordinator_sim.sim.scenario.variants import with_counted_work
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.window import ALWAYS, Window
from coordinator_sim_reports.local_engine import LocalEngine
from coordinator_sim_reports.tables import derive_tables
from coordinator_sim_reports.transforms.costs import SUMS
from coordinator_sim_reports.transforms.windows import Windows
from coordinator_sim_scenarios.catalog import all_scenarios
from coordinator_sim_scenarios.strategies import scenarios
from tests.simulated import events_of

Tables = dict[str, list[dict[str, Any]]]

REPO = Path(__file__).resolve().parents[2]
EXAMPLE = REPO / "examples" / "broker-log" / "server.log"
SAMPLES = REPO.parent / "shared" / "samples" / "broker-logs"
NAMES = ("consumer-rolling-deploy", "poll-timeout-loop", "connect-worker-crash")
MORE_NAMES = (
    *("rolling-bounce", "mass-restart", "connect-join-storm", "mixed-clients-cooperative"),
    *("slow-processing", "static-rolling-bounce"),
)
COUNTED = ("member-crash",)
"""Scenarios whose records are counted, by members that never commit."""
MORE_COUNTED = ("scale-out",)


def counted(scenario: Scenario) -> Scenario:
    """The scenario with members that never commit, its records counted."""
    policy = CommitPolicy(when="never", on_revoke=False)
    groups = tuple(
        replace(group, members=tuple(replace(each, commits=policy) for each in group.members))
        if isinstance(group, ConsumerGroupSpec)
        else group
        for group in scenario.groups
    )
    return with_counted_work(replace(scenario, groups=groups))


def written(
    path: Path, events: Iterable[TraceEvent], source: Source, name: str | None = None
) -> RunDirectory:
    """A trace on disk."""
    info = RunInfo(
        trace_id=path.name,
        source=source,
        cluster_id=f"cluster of {path.name}",
        version="0",
        profile="4.4",
        scenario=name,
    )
    with RunDirectoryWriter(path, info) as writer:
        for event in events:
            writer.record(event)
    return read_run(path)


def logged(path: Path) -> list[TraceEvent]:
    """The events of a broker's log."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        return list(parse_broker_log(lines, source_ref=path.name, tz=UTC))


def ordered(rows: list[dict[str, Any]], *key: str) -> list[dict[str, Any]]:
    """Rows in order of the key."""
    return sorted(rows, key=lambda row: tuple(str(row[name]) for name in key))


def flat(row: msgspec.Struct, run: RunDirectory) -> dict[str, Any]:
    """A row of the command as one of the report."""
    told: dict[str, Any] = msgspec.to_builtins(row)
    sums = told.pop("sums")
    return {"trace_id": run.info.trace_id, "cluster_id": run.info.cluster_id, **told, **sums}


def check(
    runs: list[RunDirectory], folder: Path, windows: Mapping[str, Window] | None = None
) -> Tables:
    """The tables have the figures of the command, for every trace; returns their rows."""
    of = {run.info.trace_id: (windows or {}).get(run.info.trace_id, ALWAYS) for run in runs}
    with LocalEngine(folder, str, runs) as engine:
        frames = derive_tables(engine, None if windows is None else Windows(of))
        tables = {name: engine.rows(frame) for name, frame in frames.items()}
    costs, storms, found = [], [], []
    for run in runs:
        window = of[run.info.trace_id]
        charges = [each for each in charges_in(told_of(run)) if window.holds(each.seen_us)]
        costs += [flat(row, run) for scope in SCOPES for row in summed(charges, scope)]
        storms += [flat(row, run) for row in storms_in(charges)]
        of_times = [
            each
            for each in findings_in(list(run.events()), run.info.source, window=window)
            if each.cost_unit in {SECONDS_REBALANCING, MEMBER_SECONDS}
        ]
        for rank, each in enumerate(of_times, 1):
            told = msgspec.json.decode(msgspec.json.encode(each))
            found.append({"trace_id": run.info.trace_id, "rank": rank, **told})
    key = ("trace_id", "scope", "group_id", "deploy_no", "day")
    mine = sorted(costs, key=lambda row: tuple(str(row[name]) for name in key))
    theirs = ordered(tables["costs"], *key)
    assert [{name: row[name] for name in theirs[0]} for row in mine] == theirs
    key = ("trace_id", "group_id", "storm_no")
    mine = sorted(storms, key=lambda row: tuple(str(row[name]) for name in key))
    assert ordered(tables["storms"], *key) == mine
    rows = sorted(tables["findings"], key=lambda row: (row["trace_id"], row["rank"]))
    found.sort(key=lambda row: (row["trace_id"], row["rank"]))
    for row, each in zip(rows, found, strict=True):
        assert {name: row[name] for name in row if name != "cluster_id"} == each
    return tables


def total(rows: list[dict[str, Any]], name: str) -> float:
    """The sum of a column; what is not told adds nothing."""
    return sum(row[name] or 0 for row in rows)


def check_sums(tables: Tables) -> None:
    """What holds of any trace."""
    costs = ordered(tables["costs"], "trace_id", "scope")
    groups = {(row["trace_id"], row["group_id"]): row for row in tables["groups"]}
    by_scope = {scope: [row for row in costs if row["scope"] == scope] for scope in SCOPES}
    for trace_id in {row["trace_id"] for row in costs}:
        group, deploy, day = (
            [row for row in by_scope[scope] if row["trace_id"] == trace_id] for scope in SCOPES
        )
        for name in ("rebalances", "assigned", *SUMS):
            assert total(group, name) == pytest.approx(total(day, name)), name
            assert total(deploy, name) <= total(group, name) + 1e-9, name
    for row in costs:
        assert (row["needless"] or 0) <= (row["moved"] or 0)
        assert (row["voluntary"] or 0) <= (row["moved"] or 0)
        assert min(row[name] or 0 for name in SUMS) >= 0
        assert 0 <= row["assigned"] <= row["rebalances"]
        assert row["first_us"] <= row["last_us"]
    repeated: dict[tuple[str, str], int] = {}
    for row in tables["work"]:
        key = (row["trace_id"], row["group_id"])
        repeated[key] = repeated.get(key, 0) + row["reprocessed"]
    for row in by_scope["group"]:
        key = (row["trace_id"], row["group_id"])
        of_group = groups[key]
        assert row["rebalances"] == of_group["rebalances"]
        assert row["reprocessed"] == repeated.get(key)
        for name in ("moved", "voluntary"):
            known = None if of_group["assignment_quality"] == "n/a" else of_group[name] or 0
            assert row[name] == known, (key, name)
        for name in ("unowned_s", "stopped_s"):
            assert row[name] == pytest.approx(of_group[name]), (key, name)


@pytest.mark.parametrize(
    ("names", "counted_names", "storms"),
    [
        (NAMES, COUNTED, {"deploy", "loop"}),
        pytest.param(MORE_NAMES, MORE_COUNTED, {"deploy"}, marks=pytest.mark.nightly),
    ],
    ids=["some", "more"],
)
def test_report_and_command_agree(
    names: tuple[str, ...],
    counted_names: tuple[str, ...],
    storms: set[str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Simulations of consumers and of workers, and a broker's log, which tells no owners."""
    traces, folder = (tmp_path_factory.mktemp(name) for name in ("traces", "tables"))
    known = all_scenarios()
    runs = [written(traces / name, events_of(known[name]), Source.SIM, name) for name in names]
    runs += [
        written(traces / name, events_of(counted(known[name])), Source.SIM, name)
        for name in counted_names
    ]
    runs.append(written(traces / "log", logged(EXAMPLE), Source.BROKER_LOG))
    tables = check(runs, folder)
    check_sums(tables)
    costs = ordered(tables["costs"], "trace_id", "scope")
    assert all(total(costs, name) > 0 for name in SUMS)
    (of_log, *_) = [row for row in costs if row["trace_id"] == "log"]
    assert [of_log[name] for name in ("unowned_s", "moved", "needless", "reprocessed")] == [
        None
    ] * 4
    assert {row["kind"] for row in tables["storms"]} >= storms


@pytest.mark.nightly
def test_report_and_command_agree_on_windows(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """From the middle of each trace on, all of one, and nothing of the others' beginnings."""
    traces, folder = (tmp_path_factory.mktemp(name) for name in ("traces", "tables"))
    known = all_scenarios()
    runs = [written(traces / name, events_of(known[name]), Source.SIM, name) for name in NAMES]
    runs.append(written(traces / "log", logged(EXAMPLE), Source.BROKER_LOG))
    windows = {}
    for run in runs[1:]:
        seen_us = [each.seen_us for each in charges_in(told_of(run))]
        cut_us = sorted(seen_us)[len(seen_us) // 2] // 1000 * 1000
        windows[run.info.trace_id] = Window(cut_us, cut_us + 40_000_000)
    check_sums(check(runs, folder, windows))


@pytest.mark.nightly
@settings(
    max_examples=3,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.large_base_example],
)
@given(drawn=st.lists(st.tuples(scenarios(), st.integers(0, 2**16)), min_size=10, max_size=20))
def test_report_and_command_agree_on_drawn_worlds(
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[tuple[Scenario, int]],
) -> None:
    """Whatever happens to members, brokers and the network."""
    traces, folder = (tmp_path_factory.mktemp(name) for name in ("traces", "tables"))
    runs = [
        written(traces / str(number), events_of(counted(scenario), seed), Source.SIM, "drawn")
        for number, (scenario, seed) in enumerate(drawn)
    ]
    check_sums(check(runs, folder))


@pytest.mark.nightly
@pytest.mark.skipif(not SAMPLES.is_dir(), reason="needs the logs of ../shared")
def test_report_and_command_agree_on_real_logs(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Logs of 0.10 to 4.x, which tell no owners: their moves are null, their lengths are not."""
    traces, folder = (tmp_path_factory.mktemp(name) for name in ("traces", "tables"))
    runs = [
        written(traces / path.stem, logged(path), Source.BROKER_LOG)
        for path in sorted(SAMPLES.glob("*.log"))
    ]
    tables = check(runs, folder)
    check_sums(tables)
    costs = ordered(tables["costs"], "trace_id", "scope")
    assert {row["moved"] for row in costs} == {None}
    assert total(costs, "rebalancing_s") > 0
