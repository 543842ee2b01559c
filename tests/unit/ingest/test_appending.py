"""`ingest --append-to`: what is appended, what is skipped, and what is refused."""

import gzip
import shutil
from datetime import UTC
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from coordinator_sim.cli.main import app
from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.ingest.appending import Appending
from coordinator_sim.ingest.importing import Options, prepare
from coordinator_sim.ingest.saved_state import dump, load
from coordinator_sim.ingest.writing import write_trace
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.trace.schema import APPENDABLE_NAME, MANIFEST_NAME
from coordinator_sim_scenarios.catalog import scenario_named
from tests.unit.ingest.runs_as_sources import leave_behind

OPTIONS = Options(zone=UTC, apart_us=1_000_000)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A broker's log."""
    left = leave_behind(scenario_named("rolling-bounce"), tmp_path_factory.mktemp("run"))
    return left.broker_log.read_text().splitlines(keepends=True)


@pytest.fixture
def days(lines: list[str], tmp_path: Path) -> list[Path]:
    """A broker's log of three parts, cut in the middle of rebalances."""
    parts = []
    for number in range(3):
        parts.append(tmp_path / f"day-{number}.log")
        parts[-1].write_text("".join(lines[number * 20 : number * 20 + 20]))
    return parts


def written(out: Path, *paths: Path, options: Options = OPTIONS) -> Path:
    """Ingest files into a trace of their own."""
    write_trace(prepare(list(paths)), options, out, lambda _used: None)
    return out


def append(trace: Path, *paths: Path) -> None:
    """Append files to a trace."""
    appending = Appending(trace)
    appending.write(appending.prepare(list(paths)), lambda _used: None)


def files_of(trace: Path) -> dict[str, tuple[int, bytes]]:
    """The Parquet files of a trace: which they are on the disk, and what they hold."""
    return {
        str(path.relative_to(trace)): (path.stat().st_ino, path.read_bytes())
        for path in sorted(trace.rglob("*.parquet"))
    }


def test_days_make_the_trace_of_all_days(days: list[Path], tmp_path: Path) -> None:
    """Day after day; what is written for good is the same file afterwards, not a copy."""
    trace = written(tmp_path / "trace", days[0])
    whole = read_run(written(tmp_path / "whole", *days))
    before = files_of(trace)
    settled = load((trace / APPENDABLE_NAME).read_bytes(), "").run.tables["events"].part

    append(trace, days[1])
    append(trace, days[2])

    run = read_run(trace)
    assert list(run.events()) == list(whole.events())
    assert run.info.counts == whole.info.counts
    assert run.info.files == whole.info.files
    assert run.info.digest != whole.info.digest
    kept = [name for name in before if int(name[-13:-8]) < settled]
    assert kept
    assert {name: files_of(trace)[name] for name in kept} == {name: before[name] for name in kept}


def test_the_same_days_give_the_same_bytes(days: list[Path], tmp_path: Path) -> None:
    """An appended trace depends on its files alone, and on where they were cut."""
    traces = []
    for name in ("one", "two"):
        traces.append(written(tmp_path / name, days[0]))
        append(traces[-1], days[1], days[2])
    one, two = ([data for _, data in files_of(trace).values()] for trace in traces)
    assert one == two
    manifests = [(trace / MANIFEST_NAME).read_bytes() for trace in traces]
    assert manifests[0] == manifests[1]


def test_files_that_were_read_are_skipped(days: list[Path], tmp_path: Path) -> None:
    """By what they hold: under another name, and compressed; the folder may be named each day."""
    trace = written(tmp_path / "trace", days[0], days[1])
    renamed = shutil.copy(days[0], tmp_path / "server.log.2")
    with gzip.open(tmp_path / "server.log.1.gz", "wb") as file:
        file.write(days[1].read_bytes())

    result = CliRunner().invoke(
        app, ["ingest", str(renamed), str(tmp_path / "server.log.1.gz"), "--append-to", str(trace)]
    )

    assert (result.exit_code, result.output) == (
        0,
        f"Nothing to append: {trace} has what these files hold (2).\n",
    )
    append(trace, *days)
    whole = read_run(written(tmp_path / "whole", *days))
    assert list(read_run(trace).events()) == list(whole.events())


def test_a_log_that_grew_is_refused(days: list[Path], tmp_path: Path) -> None:
    """A broker still wrote to it: its beginning would count twice."""
    trace = written(tmp_path / "trace", days[0], days[1])
    grown = tmp_path / "grown.log"
    grown.write_bytes(days[1].read_bytes() + days[2].read_bytes())
    with pytest.raises(DataError, match=r"grown.log shares lines with .*day-1.log.*once it is"):
        append(trace, grown)


def test_a_segment_that_grew_is_read_on(tmp_path: Path) -> None:
    """Offsets that were read count no more: the active segment can be named each day."""
    left = leave_behind(scenario_named("rolling-bounce"), tmp_path / "run")
    (path,) = (one for one in left.log_dir.rglob("*.log") if one.stat().st_size)
    data = path.read_bytes()
    whole = read_run(written(tmp_path / "whole", path))
    path.write_bytes(data[: len(data) // 2])
    trace = written(tmp_path / "trace", path)
    path.write_bytes(data)

    append(trace, path)

    assert list(read_run(trace).events()) == list(whole.events())


def test_a_day_before_the_end_is_refused(days: list[Path], tmp_path: Path) -> None:
    """Nothing is put in between; the trace stays as it was."""
    trace = written(tmp_path / "trace", days[2])
    before = files_of(trace)
    with pytest.raises(DataError, match=r"day-0.log tells of 1970-01-01 00:00:00.*together"):
        append(trace, days[0])
    assert files_of(trace) == before


def test_a_source_of_another_kind_is_refused(days: list[Path], tmp_path: Path) -> None:
    """Segments would have told more of the earlier days."""
    trace = written(tmp_path / "trace", days[0])
    left = leave_behind(scenario_named("rolling-bounce"), tmp_path / "again")
    with pytest.raises(DataError, match=r"is a segment, and the trace was made of .*\(log\)"):
        append(trace, left.log_dir)


def test_what_cannot_be_appended_to_is_one_line(days: list[Path], tmp_path: Path) -> None:
    """Traces in JSON Lines, of other origin, of another release, damaged or forged."""
    as_lines = msgspec.structs.replace(OPTIONS, trace_format="jsonl")
    with pytest.raises(ConfigError, match="JSON Lines"):
        append(written(tmp_path / "lines", days[0], options=as_lines), days[1])
    trace = written(tmp_path / "trace", days[0])
    kept = trace / APPENDABLE_NAME
    data = kept.read_bytes()
    for forged, message in (
        (data.replace(b"import state 0", b"import state 9", 1), "release"),
        (data[:-100], "is damaged"),
        (b"junk", "is damaged"),
        (dump([1]), "is damaged"),
    ):
        kept.write_bytes(forged)
        with pytest.raises(DataError, match=message) as refused:
            append(trace, days[1])
        assert "\n" not in str(refused.value)
    outside, no_zone = load(data, ""), load(data, "")
    outside.run.tables["../outside"] = outside.run.tables["events"]
    no_zone.tz = "../../etc/passwd"
    for state, message in ((outside, "is damaged"), (no_zone, "names the zone")):
        kept.write_bytes(dump(state))
        with pytest.raises(DataError, match=message):
            append(trace, days[1])
    kept.unlink()
    with pytest.raises(DataError, match=r"has no appendable\.bin"):
        append(trace, days[1])


@pytest.mark.parametrize("option", ["--tz", "--cluster", "--out", "--format"])
def test_options_of_the_first_import_are_kept(
    days: list[Path], tmp_path: Path, option: str
) -> None:
    """Another zone or cluster would be another trace."""
    trace = written(tmp_path / "trace", days[0])
    value = "parquet" if option == "--format" else "UTC"
    result = CliRunner().invoke(
        app, ["ingest", str(days[1]), "--append-to", str(trace), option, value]
    )
    assert isinstance(result.exception, ConfigError)
    assert f"{option} cannot be given with --append-to" in str(result.exception)
