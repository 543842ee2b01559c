"""A cluster's files that are appended to a trace make the trace of all files read at once."""

from datetime import UTC
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from coordinator_sim.errors import DataError
from coordinator_sim.ingest.appending import Appending
from coordinator_sim.ingest.importing import Options, prepare
from coordinator_sim.ingest.writing import write_trace
from coordinator_sim.log.format.salvage import SalvagingReader
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim_scenarios.strategies import scenarios
from tests.unit.ingest.runs_as_sources import LeftBehind, leave_behind

pytestmark = pytest.mark.property
SOURCES = ("broker_log", "request_log", "log_dir")


def parts_of(left: LeftBehind, sources: set[str], cuts: list[float], folder: Path) -> list[Path]:
    """The files of a run, each cut at shares of its length, a folder a part; they need not meet."""
    borders = [0.0, *sorted(cuts), 1.0]
    folders = [folder / f"part-{number}" for number in range(len(borders) - 1)]
    for part, (start, stop) in zip(folders, pairwise(borders), strict=True):
        part.mkdir(parents=True)
        for name in sources - {"log_dir"}:
            lines = getattr(left, name).read_text().splitlines(keepends=True)
            own = lines[int(start * len(lines)) : int(stop * len(lines))]
            (part / f"{name}.log").write_text("".join(own))
        if "log_dir" in sources:
            cut_segments(left.log_dir, part, start, stop)
    return folders


def cut_segments(log_dir: Path, part: Path, start: float, stop: float) -> None:
    """Write the batches of each partition between two shares of its length."""
    for path in sorted(log_dir.rglob("*.log")):
        data = path.read_bytes()
        batches = list(SalvagingReader(memoryview(data)))
        own = batches[int(start * len(batches)) : int(stop * len(batches))]
        if own:
            folder = part / path.parent.name
            folder.mkdir()
            end = own[-1].position + own[-1].size
            (folder / f"{own[0].base_offset:020}.log").write_bytes(data[own[0].position : end])


def content_of(trace: Path) -> dict[str, object]:
    """Everything that a trace tells, without its id and digest."""
    run = read_run(trace)
    tables = {"generations": run.generations(), "resources": run.resources()}
    rows = {
        name: [msgspec.structs.replace(row, trace_id="") for row in table]  # type: ignore[type-var]
        for name, table in tables.items()
    }
    files = sorted(run.info.files, key=lambda file: file.path)
    times_us = (run.info.first_ts_us, run.info.last_ts_us)
    counted = (run.info.counts, files, run.info.skews, times_us)
    return {"events": list(run.events()), **rows, "counted": counted}


def has_files(folder: Path) -> bool:
    """Whether a part has anything to read."""
    return any(path.is_file() and path.stat().st_size for path in folder.rglob("*"))


def is_appended(trace: Path, part: Path) -> bool:
    """Append a part; where it is refused, the trace stays as it was."""
    before = content_of(trace)
    refusal = ""
    try:
        appending = Appending(trace)
        appending.write(appending.prepare([part]), lambda _used: None)
    except DataError as error:
        refusal = str(error)
    event("refused" if refusal else "appended")
    if refusal:
        assert "--append-to" in refusal
        assert content_of(trace) == before
    return not refusal


@given(
    scenario=scenarios(),
    sources=st.sets(st.sampled_from(SOURCES), min_size=1),
    cuts=st.lists(st.floats(0, 1), min_size=1, max_size=3),
    apart_us=st.sampled_from((1_000, 1_000_000, 60_000_000)),
)
def test_appended_parts_make_the_trace_of_the_whole(
    scenario: Scenario, sources: set[str], cuts: list[float], apart_us: int
) -> None:
    """Drawn worlds are cut anywhere, in the middle of rebalances too; or a part is refused.

    A part is refused where its files begin before what is settled: those of one source end much
    earlier than those of another. Nothing is changed then.
    """
    options = Options(zone=UTC, apart_us=apart_us)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        left = leave_behind(scenario, folder / "run")
        parts = [part for part in parts_of(left, sources, cuts, folder) if has_files(part)]
        if not parts:
            return
        trace = folder / "trace"
        write_trace(prepare(parts[:1]), options, trace, lambda _used: None)
        read = parts[:1]
        for part in parts[1:]:
            if not is_appended(trace, part):
                break
            read.append(part)
        write_trace(prepare(read), options, folder / "whole", lambda _used: None)
        assert content_of(trace) == content_of(folder / "whole")
