import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim.cli.main import app
from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded import consumer_protocol
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim.runs.run_directory import RunDirectoryWriter, TraceFormat
from coordinator_sim.trace.events import Event, RebalanceReason, RunInfo, Source, TraceEvent
from coordinator_sim.trace.sources_read import Skew, SourceFile
from coordinator_sim_reports.jobs import build_report
from coordinator_sim_reports.sources import open_traces, read_traces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

S = 1_000_000
BAD_SEGMENT = "b.log: holds no good batch"
TOPIC = consumer_protocol.encode_subscription(Subscription(topics=("t",)))


def round_of(generation: int, at_s: int, owners: dict[str, list[int]]) -> Iterable[TraceEvent]:
    """One rebalance of three seconds that ends in this assignment."""
    yield event(Event.PREPARE_REBALANCE, at_s, generation - 1)
    for member_id in owners:
        if generation > 1:
            yield event(Event.JOIN_REQ, at_s + 1, None, member_id=member_id, subscription=TOPIC)
    yield event(Event.JOIN_COMPLETE, at_s + 2, generation, members=len(owners))
    yield event(Event.SYNC_LEADER, at_s + 3, generation)
    for member_id, partitions in owners.items():
        given = ConsumerAssignment(partitions=tuple(TopicPartition("t", n) for n in partitions))
        data = consumer_protocol.encode_assignment(given)
        yield event(
            Event.ASSIGNED,
            at_s + 3,
            generation,
            member_id=member_id,
            subscription=TOPIC,
            assignment=data,
        )
        yield event(Event.SYNC_RESP, at_s + 3, generation, member_id=member_id)


def event(
    kind: Event,
    at_s: int,
    generation: int | None,
    *,
    group_id: str = "orders <app>",
    **columns: object,
) -> TraceEvent:
    """An event of the group."""
    return TraceEvent(
        event=kind,
        ts_us=at_s * S,
        group_id=group_id,
        generation=generation,
        protocol_type="consumer",
        protocol_name="sticky",
        reason=RebalanceReason.MEMBER_JOINED if kind is Event.PREPARE_REBALANCE else None,
        **columns,  # type: ignore[arg-type]
    )


FILES = [
    SourceFile(path="server.log", kind="log", lines=900, parsed=3, known=6, unparsed=1, events=4),
    SourceFile(path="a.log", kind="segment", lines=60, parsed=60, offsets=80, missing_offsets=20),
    SourceFile(path="b.log", kind="segment", problem="holds no good batch", skipped_bytes=4096),
]
SKEWS = [
    Skew(Source.BROKER_LOG, Source.OFFSETS_SEGMENT, 0, 900, 5),
    Skew(Source.BROKER_LOG, Source.REQUEST_LOG, -1_250_000, 15_000, 4),
]


def write(
    path: Path,
    info: RunInfo,
    events: Iterable[TraceEvent],
    form: TraceFormat,
    files: Iterable[SourceFile] = (),
) -> None:
    """Write a trace; one of files tells how far their clocks are apart."""
    with RunDirectoryWriter(path, info, format=form) as writer:
        for each in events:
            writer.record(each)
        told = list(files)
        writer.note_sources(told, SKEWS if told else [])


def make_traces(path: Path) -> None:
    """A simulated run in which a third member joins, and a broker log without assignments."""
    run = RunInfo(
        trace_id="sim-1",
        source=Source.SIM,
        cluster_id="sim",
        version="0",
        profile="4.4",
        seed=1,
        scenario="third-member",
        assignor="sticky",
    )
    told = [
        *round_of(1, 0, {"a": [0, 2, 4, 6], "b": [1, 3, 5]}),
        *round_of(2, 10, {"a": [0, 2, 4], "b": [1, 3], "c": [5, 6]}),
        event(Event.HEARTBEAT, 20, 2, member_id="a"),
    ]
    write(path / "sim", run, told, "parquet")
    log = RunInfo(
        trace_id="log-1",
        source=Source.BROKER_LOG,
        cluster_id="production",
        version="0",
        profile="ingested",
    )
    lines = [
        event(Event.PREPARE_REBALANCE, 100, 4),
        event(Event.JOIN_COMPLETE, 103, 5, members=3),
        event(Event.SYNC_LEADER, 104, 5),
        TraceEvent(event=Event.UNPARSED, ts_us=104 * S, reason_text="?"),
    ]
    write(path / "log", log, lines, "jsonl", FILES)


def make_partial_log(path: Path) -> None:
    """Beside a broker's log lies the log of one client, which led two of three generations."""
    log = RunInfo(
        trace_id="log-2",
        source=Source.BROKER_LOG,
        cluster_id="partial",
        version="0",
        profile="ingested",
    )
    owners = {"a": [0, 1], "b": [2]}
    told = [
        *round_of(1, 0, owners),
        *(one for one in round_of(2, 10, owners) if one.event is not Event.ASSIGNED),
        *round_of(3, 20, owners),
    ]
    write(path, log, told, "parquet")


@dataclass
class Reported:
    """What the command said, and what it wrote."""

    summary: dict[str, Any]
    page: str
    tables: set[str]
    folder: Path
    traces: Path


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """One report of a simulated run, a broker log and a log with assignments of a part."""
    traces, out = (tmp_path_factory.mktemp(name) for name in ("traces", "out"))
    make_traces(traces)
    make_partial_log(traces / "partial")
    arguments = ["report", str(traces), "--out", str(out), "--json"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert (result.exit_code, result.stderr) == (0, "")
    tables = {path.name for path in (out / "tables").iterdir()}
    return Reported(
        json.loads(result.stdout), (out / "report.html").read_text(), tables, out, traces
    )


def test_report_of_a_simulated_run_and_a_broker_log(reported: Reported) -> None:
    """One command reads both, computes the known churn, and says what a log cannot tell."""
    summary, page = reported.summary, reported.page
    assert (summary["runs"], summary["rebalances"]) == (3, 6)
    rows = {row["scenario"]: row for row in summary["comparison"]}
    simulated, logged = rows["third-member"], rows["production"]
    assert (simulated["moved"], simulated["lb_balanced"], simulated["excess_moves"]) == (2, 2, 0)
    assert simulated["stickiness"] == pytest.approx(5 / 7)
    # Seven partitions change hands or stop: from the JoinGroup at 11 s to the answer at 13 s.
    assert (simulated["unowned_s"], simulated["stopped_s"]) == (14.0, 2.0)
    assert (simulated["interrupted"], simulated["restarted_in_place"]) == (7, 5)
    assert simulated["ownership_quality"] == "exact"
    assert (logged["moved"], logged["unowned_s"]) == (None, None)
    assert (logged["stopped_s"], logged["stopped_quality"]) == (4.0, "bound")
    assert logged["assignment_quality"] == logged["ownership_quality"] == "n/a"
    assert "orders &lt;app&gt;" in page
    assert "third-member" in page
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"https?:", markup)
    assert reported.tables >= {"rebalances", "moves", "groups"}


def test_the_page_has_the_savings_that_the_command_prints(reported: Reported) -> None:
    """The same sentence for each setting; the command that tells more stands behind it."""
    told: list[str] = []
    for trace in (*reported.traces.iterdir(),):
        lines = CliRunner().invoke(app, ["findings", str(trace)], catch_exceptions=False).stdout
        told += re.findall(r"saves: (.*) when replayed|saves: (.* of .*)", lines)
    sentences = ["".join(each) for each in told]
    assert sentences
    for sentence in sentences:
        assert f"<dt>saves</dt><dd>{sentence}" in reported.page
    assert "are not replayed for a page" not in reported.page


def test_what_an_import_read_is_on_the_page_and_in_the_tables(reported: Reported) -> None:
    """Each kind of source with its damage, and how far the clocks of the sources are apart."""
    from coordinator_sim_reports import load

    section = reported.page.split('id="sources"')[1].split('id="definitions"')[0]
    rows = re.findall(r"<tr>(<th scope=.row.*?)</tr>", section, re.DOTALL)
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in rows]
    assert cells == [
        ["log", "1", "900", "3", "90.0 %", "1", "0", "n/a", "", ""],
        ["segment", "2", "60", "60", "100.0 %", "0", "0", "75.0 %", "4,096 B", BAD_SEGMENT],
        ["offsets_segment", "as that of broker_log", "0.9 ms", "5"],
        ["request_log", "1.2 s before that of broker_log", "15 ms", "4"],
    ]
    with load(reported.folder) as tables:
        files = tables.pandas("source_files")
        assert sorted(files["path"]) == ["a.log", "b.log", "server.log"]
        assert set(files["trace_id"]) == {"log-1"}
        skews = tables.pandas("clock_skews")
        assert sorted(skews["median_us"]) == [-1_250_000, 0]


def test_assignments_of_some_generations_alone_give_no_zeros(reported: Reported) -> None:
    """Where some assignments are missing, whatever follows from them is unknown, and not zero.

    Nothing moved between the generations that are known, as far as anybody can see.
    """
    (group,) = (row for row in reported.summary["groups"] if row["trace_id"] == "log-2")
    assert group["missing_assignments"] == "assignments of 2 of 3 generations are known"
    (compared,) = (row for row in reported.summary["comparison"] if row["scenario"] == "partial")
    for row in (group, compared):
        unknown = ("moved", "stickiness", "spread", "unowned_s", "interrupted", "availability")
        assert [row[name] for name in unknown] == [None] * len(unknown)
        assert (row["assignment_quality"], row["ownership_quality"]) == ("n/a", "n/a")
        assert (row["stopped_s"], row["stopped_quality"]) == (9.0, "bound")
    assert "(partial): assignments of 2 of 3 generations are known" in reported.page


@pytest.mark.spark
def test_the_tables_are_loaded_as_the_guide_says(
    reported: Reported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guide's example runs as it stands, and both kinds of frames hold the same rows."""
    from coordinator_sim_reports import load

    guide = Path(__file__).resolve().parents[2] / "docs" / "guides" / "read-a-report.md"
    (example,) = re.findall(r"```python\n(.*?)```", guide.read_text(), flags=re.DOTALL)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "report").symlink_to(reported.folder)
    monkeypatch.chdir(tmp_path)
    told: dict[str, Any] = {}
    exec(example, told)  # noqa: S102 - the guide's own code
    assert sorted(told["groups"]["rebalances"]) == [1, 2, 3]
    with load(tmp_path / "out" / "report" / "tables") as tables:
        assert set(tables.names) == reported.tables
        for name in ("rebalances", "groups"):
            pandas, spark = tables.pandas(name), tables.spark(name)
            assert list(pandas.columns) == spark.columns
            assert sorted(pandas["group_id"]) == sorted(row.group_id for row in spark.collect())


@pytest.mark.spark
def test_tables_that_there_are_not_are_one_clear_error(reported: Reported, tmp_path: Path) -> None:
    """A folder without a report, a table without that name, a column without that name."""
    from coordinator_sim_reports import load

    with pytest.raises(DataError, match="holds no tables of a report"):
        load(tmp_path)
    with load(reported.folder) as tables:
        with pytest.raises(ConfigError, match="no table 'rebalance'; there are assignments, "):
            tables.pandas("rebalance")
        with pytest.raises(ConfigError, match=r"no table '\.\./tables'"):
            tables.spark("../tables")
        with pytest.raises(ConfigError, match="no column 'nothing'; it has trace_id"):
            tables.pandas("runs", ["trace_id", "nothing"])


def test_what_is_cut_is_the_best_and_is_said(tmp_path: Path) -> None:
    """Five groups with one to five rebalances, and room for two of each: the worst are shown.

    The n-th rebalance of a group takes n seconds, and the last group does not finish its last one.
    """
    from coordinator_sim_reports.page_options import PageLimits, PageOptions

    told = []
    for group in range(1, 6):
        for nth in range(1, group + 1):
            at_s, name = 1_000 * nth, f"group-{group}"
            told.append(event(Event.PREPARE_REBALANCE, at_s, nth - 1, group_id=name))
            if nth < 5:
                told.append(event(Event.JOIN_COMPLETE, at_s + nth, nth, group_id=name))
                told.append(event(Event.SYNC_LEADER, at_s + nth, nth, group_id=name))
    told.append(event(Event.HEARTBEAT, 9_000, 1, group_id="group-1"))
    told.sort(key=lambda one: one.ts_us)
    log = RunInfo(
        trace_id="log-1",
        source=Source.BROKER_LOG,
        cluster_id="production",
        version="0",
        profile="ingested",
    )
    write(tmp_path / "log", log, told, "parquet")
    limits = PageLimits(groups=2, drawn_groups=2, drawn=3, listed=2, mapped_groups=2, findings=2)
    page = PageOptions(limits=limits)
    summary = build_report([tmp_path / "log"], tmp_path / "out", page=page)
    assert (summary.group_count, summary.rebalances) == (5, 15)
    assert [row["group_id"] for row in summary.groups] == ["group-5", "group-4"]
    assert {row["group_id"] for row in summary.reasons} == {"group-5", "group-4"}
    html = (tmp_path / "out" / "report.html").read_text()
    text = " ".join(re.sub(r"<script.*?</script>|<[^>]*>", "", html, flags=re.DOTALL).split())
    assert "The 2 groups with most rebalances of 5 are listed" in text
    assert "The 2 groups with most rebalances of 5 are drawn. Of their 9 rebalances the 3" in text
    assert "The 2 longest of 15, longest first" in text
    assert "0 of them follow-up rounds, 1 unfinished" in text
    table = html[html.index("Longest rebalances") : html.index("longest first")]
    # The unfinished one has lasted for 4,000 s, and the next takes 4 s.
    assert re.findall(r">1970-01-01 (\d\d:\d\d:\d\d)", table) == ["01:23:20", "01:06:40"]
    assert "group-3" not in html


@pytest.mark.spark
def test_both_forms_of_a_trace_are_read_the_same(tmp_path: Path, spark: "SparkSession") -> None:
    """Lines leave out what is at its default; a served cluster's trace has no other form."""
    info = RunInfo(
        trace_id="run", source=Source.WIRE, cluster_id="c", version="0", profile="4.4", seed=1
    )
    owners = {"a": [0, 1], "b": [2]}
    told = [*round_of(1, 0, owners), *round_of(2, 10, owners)]
    told.append(TraceEvent(event=Event.FAULT, ts_us=20 * S, attrs={"task": "t"}))
    frames = []
    for form in ("parquet", "jsonl"):
        write(tmp_path / form, info, told, form)
        if form == "jsonl":  # As a run that was killed leaves it: a line more, and a part of one.
            with (tmp_path / form / "events" / "events.jsonl").open("rb+") as file:
                last = file.readlines()[-1]
                file.write(last.replace(b'"ordinal":', b'"ordinal":9') + b'{"cluster_id":"c","or')
        frames.append(read_traces(spark, open_traces([tmp_path / form])))
    for name in ("events", "generations", "resources"):
        as_parquet, as_lines = (getattr(each, name).collect() for each in frames)
        assert sorted(map(str, as_lines)) == sorted(map(str, as_parquet))
        assert as_lines != []


def test_a_directory_of_traces_names_them_all(tmp_path: Path) -> None:
    """A directory that is no trace may hold traces."""
    make_traces(tmp_path)
    assert [run.info.trace_id for run in open_traces([tmp_path])] == ["log-1", "sim-1"]


def test_no_trace_is_one_clear_error(tmp_path: Path) -> None:
    """Neither nothing, nor a file, nor an empty directory is a trace."""
    with pytest.raises(ConfigError, match="at least one"):
        open_traces([])
    with pytest.raises(ConfigError, match="no such file or folder"):
        open_traces([tmp_path / "missing"])
    with pytest.raises(DataError, match="holds none"):
        open_traces([tmp_path])


def test_the_same_run_twice_is_refused(tmp_path: Path) -> None:
    """Two copies of a run would count everything twice."""
    make_traces(tmp_path / "one")
    make_traces(tmp_path / "two")
    with pytest.raises(ConfigError, match="the same run"):
        open_traces([tmp_path / "one", tmp_path / "two"])
