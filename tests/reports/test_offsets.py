"""The offsets job on Spark, and the code that a cluster's workers get."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coordinator_sim.disk.last_offsets import read_last_offsets
from coordinator_sim.disk.offsets_log import read_log, write_log
from coordinator_sim.disk.segment_sources import find_logs
from coordinator_sim.errors import DataError
from coordinator_sim_reports.offsets import (
    ReadingTask,
    Span,
    last_offsets,
    read_on_spark,
    run_tasks,
)
from coordinator_sim_reports.shipping import PACKAGES, write_code

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

GOLDEN = Path(__file__).parents[1] / "unit" / "log" / "golden" / "offsets-log-4.4.0"


def test_spark_finds_what_one_process_finds(spark: "SparkSession", tmp_path: Path) -> None:
    """Over small segments, so that transactions cross them, and with a damaged one."""
    write_log(tmp_path, read_log(GOLDEN), segment_bytes=400)
    torn = max(tmp_path.glob("*/*.log"))
    torn.write_bytes(torn.read_bytes()[:-3])
    logs = find_logs([tmp_path]).logs

    found = last_offsets(spark, logs)

    assert found == read_last_offsets(logs)
    assert len(found.segments) > 3
    assert sum(segment.facts.damage_count for segment in found.segments) == 1
    assert last_offsets(spark, logs, group_id="txn") == read_last_offsets(logs, group_id="txn")


def test_a_segment_that_a_worker_cannot_read_is_one_line(spark: "SparkSession") -> None:
    """Such as one that only the driver sees."""
    task = ReadingTask(number=0, log="one", spans=(Span(path="/absent/0.log", name="0.log"),))

    with pytest.raises(DataError, match=r"a Spark worker failed: .*No such file") as failed:
        run_tasks(spark, [task])

    assert "\n" not in str(failed.value)


def test_the_code_in_a_zip_is_enough_to_read_a_segment(tmp_path: Path) -> None:
    """An interpreter without this package imports it from the zip, tables of data included."""
    archive = tmp_path / "code.zip"
    write_code(archive)
    program = (
        "import sys; from pathlib import Path; from coordinator_sim.disk import segment_sources, "
        "last_offsets; import coordinator_sim.kafka.releases; "
        "import coordinator_sim_reports.offsets; "
        f"logs = segment_sources.find_logs([Path({str(GOLDEN)!r})]).logs; "
        "print(last_offsets.__file__, len(last_offsets.read_last_offsets(logs).commits))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": f"{archive}:{libraries_alone(tmp_path)}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.split() == [f"{archive}/coordinator_sim/disk/last_offsets.py", "7"], (
        done.stderr
    )
    again = tmp_path / "again.zip"
    write_code(again)
    assert again.read_bytes() == archive.read_bytes()
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(archive).namelist()}
    assert tops == set(PACKAGES)


def libraries_alone(directory: Path) -> Path:
    """A folder with the installed libraries, and without this package."""
    folder = directory / "libraries"
    folder.mkdir()
    for entry in sorted(Path(sysconfig.get_path("purelib")).iterdir()):
        if "coordinator_sim" not in entry.name and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)
    return folder


@pytest.mark.nightly
def test_workers_of_a_cluster_need_not_have_this_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers in processes of their own, whose Python has the libraries alone."""
    python = tmp_path / "python"
    folder = libraries_alone(tmp_path)
    python.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH:{folder}"\nexec {sys.executable} -S "$@"\n'
    )
    python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    logs = find_logs([GOLDEN]).logs

    missing = subprocess.run(
        [python, "-c", "import numpy, coordinator_sim"],
        env={**os.environ, "PYTHONPATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = read_on_spark(logs, master="local-cluster[2,1,1024]")

    assert "No module named 'coordinator_sim'" in missing.stderr
    assert found == read_last_offsets(logs)
