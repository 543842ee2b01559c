"""What an import puts aside for later files has the same bytes under every hash seed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator_sim.trace.schema import APPENDABLE_NAME
from tests.command_line import run_here

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "broker-log" / "server.log"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A broker's log, its request log and its segments, and excerpts that share lines."""
    folder = tmp_path_factory.mktemp("sources")
    three = ("--log-dir", "segments", "--broker-log", "server.log", "--request-log", "asked.log")
    done = run_here("run", "coordinator-lost-in-join", "--out", "run", *three, folder=folder)
    assert done.returncode == 0, done.stderr
    lines = EXAMPLE.read_text().splitlines(keepends=True)
    for name, first, end in (("a.log", 0, 150), ("b.log", 100, 250), ("c.log", 200, 338)):
        (folder / name).write_text("".join(lines[first:end]))
    return folder


def imported(folder: Path, hash_seed: str, *paths: str) -> dict[str, bytes]:
    """Every file of the trace that a process with that hash seed makes."""
    command = (sys.executable, "-m", "coordinator_sim", "ingest", *paths, "--out", "trace")
    subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
    )
    files = sorted(path for path in (folder / "trace").rglob("*") if path.is_file())
    made = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    shutil.rmtree(folder / "trace")
    return made


@pytest.mark.parametrize(
    "paths",
    [("server.log", "asked.log", "segments"), ("a.log", "b.log", "c.log")],
    ids=["three sources", "excerpts that overlap"],
)
def test_an_import_has_the_same_bytes_under_two_hash_seeds(
    sources: Path, paths: tuple[str, ...]
) -> None:
    """All files of the trace, and what is put aside."""
    one, other = (imported(sources, seed, *paths) for seed in ("1", "2"))
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []
    assert f"trace/{APPENDABLE_NAME}" in one
