"""Runs without a directory of their own are kept, numbered; readers take the newest whole one."""

from pathlib import Path
from shutil import copytree
from unittest.mock import patch

import pytest

from coordinator_sim.errors import DataError
from coordinator_sim.runs.run_directory import latest_run, next_run, read_run
from coordinator_sim_reports.sources import open_traces
from tests.command_line import run_here


def test_runs_are_kept_and_the_latest_is_read(tmp_path: Path) -> None:
    """Two runs leave two traces; `explain` of the folder and of the link read the second."""
    for seed in ("1", "2"):
        done = run_here("run", "member-crash", "--seed", seed, folder=tmp_path)
        assert f"trace: out/member-crash/{seed} " in done.stdout
    folder = tmp_path / "out" / "member-crash"
    assert [read_run(folder / name).info.seed for name in ("1", "2", "latest")] == [1, 2, 2]
    assert read_run(folder).path == folder / "2"
    told = [run_here("explain", folder / each, "orders-app").stdout for each in ("", "2")]
    assert told[0] == told[1] != ""


def test_interrupted_run_is_passed_over_and_keeps_its_number(tmp_path: Path) -> None:
    """A number without a whole trace is neither read nor given again."""
    run_here("run", "member-crash", folder=tmp_path)
    folder = tmp_path / "out" / "member-crash"
    with pytest.raises(KeyboardInterrupt), next_run(folder) as run:
        raise KeyboardInterrupt
    assert run == folder / "2"
    assert latest_run(folder) == folder / "1"
    with next_run(folder) as run:
        assert run == folder / "3"


def test_file_stands_for_the_link_where_there_are_none(tmp_path: Path) -> None:
    """The newest whole run is read all the same."""
    with patch.object(Path, "symlink_to", side_effect=OSError("no privilege")):
        run_here("run", "member-crash", folder=tmp_path)
    folder = tmp_path / "out" / "member-crash"
    assert (folder / "latest").read_text() == "1\n"
    assert read_run(folder).path == folder / "1"


def test_folder_where_the_link_belongs_is_refused_before_the_run(tmp_path: Path) -> None:
    """Nothing is left behind, and the line says what to do."""
    folder = tmp_path / "out" / "member-crash"
    (folder / "latest").mkdir(parents=True)
    done = run_here("run", "member-crash", folder=tmp_path)
    assert done.returncode == 2
    assert "out/member-crash/latest is a folder, where the link" in done.stderr
    assert [each.name for each in folder.iterdir()] == ["latest"]


def test_numbers_with_zeros_before_them_are_no_runs(tmp_path: Path) -> None:
    """A run that was copied to `009` is not looked for at `9`."""
    run_here("run", "member-crash", folder=tmp_path)
    folder = tmp_path / "out" / "member-crash"
    copytree(folder / "1", folder / "009")
    assert read_run(folder).path == folder / "1"


def test_folder_of_the_users_own_numbers_is_no_trace(tmp_path: Path) -> None:
    """Only what was numbered here has a latest one: the user meant all of these, or none."""
    run_here("run", "member-crash", "--out", tmp_path / "1")
    with pytest.raises(DataError, match="is not a trace"):
        read_run(tmp_path)


@pytest.mark.parametrize("words", [("run", "member-crash"), ("replay", "first")])
def test_trace_in_a_named_directory_is_replaced_with_a_word(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """The first time nothing is there, and nothing is told."""
    run_here("run", "member-crash", "--out", tmp_path / "first")
    told = [run_here(*words, "--out", "second", folder=tmp_path).stderr for _ in range(2)]
    assert told == ["", "second: the trace that was there is replaced\n"]


def test_report_takes_the_latest_of_each_folder_of_runs(tmp_path: Path) -> None:
    """A folder of folders counts each of them once, and keeps traces that are not numbered."""
    for words in ((), ("--seed", "1"), ("--seed", "2", "--out", "out/other")):
        run_here("run", "member-crash", *words, folder=tmp_path)
    out = tmp_path / "out"
    assert [run.path for run in open_traces([out / "member-crash"])] == [out / "member-crash/2"]
    assert [run.path for run in open_traces([out])] == [out / "member-crash/2", out / "other"]
