"""A sweep whose traces, tables and page go behind a URI that Python cannot open."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coordinator_sim.runs.run_directory import read_run
from tests.command_line import run_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]


@pytest.fixture
def mounted(tmp_path: Path, spark: "SparkSession") -> Iterator[str]:
    """The URI of a folder: a name of Hadoop's configuration, and no path of this machine."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    link = "fs.viewfs.mounttable.sweeps.link./data"
    (tmp_path / "disk").mkdir()
    hadoop.set(link, (tmp_path / "disk").as_uri())
    yield "viewfs://sweeps/data"
    hadoop.unset(link)


def test_a_sweep_behind_a_uri_is_that_of_a_path_and_goes_on(mounted: str, tmp_path: Path) -> None:
    """The same costs; a run that is there is kept, one whose manifest is missing runs again."""
    words = ("sweep", "member-crash", "--seeds", "1", "--assignors", "range", "--json", "--out")
    here = run_here(*words, "here", folder=tmp_path)
    assert here.returncode == 0, here.stderr

    disk = tmp_path / "disk" / "swept"
    traces = tmp_path / "here" / "traces"
    kept, lost = sorted(path.name for path in traces.iterdir())
    for name in (kept, lost):
        (disk / "traces").mkdir(parents=True, exist_ok=True)
        (traces / name).rename(disk / "traces" / name)
    (disk / "traces" / lost / "run.json").unlink()
    there = run_here(*words, f"{mounted}/swept", folder=tmp_path)

    assert there.returncode == 0, there.stderr
    one, other = (json.loads(each.stdout) for each in (here, there))
    assert (one["kept"], other["kept"]) == (0, 1)
    assert one["choices"] == other["choices"]
    assert other["page"] == f"{mounted}/swept/sweep.html"
    page = (tmp_path / "here" / "sweep.html").read_text("utf-8")
    assert (disk / "sweep.html").read_text("utf-8") == page
    assert {read_run(disk / "traces" / name).info.seed for name in (kept, lost)} == {0}
    assert (disk / "tables" / "run_costs").is_dir()
    assert not (tmp_path / "viewfs:").exists()
