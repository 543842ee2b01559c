"""What Python workers do with batches: rows are cut into groups, and nothing of Spark is needed."""

import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="needs the spark extra")

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim_reports.columns import GROUP_HASH, GROUP_KEY
from coordinator_sim_reports.workers.group_runs import groups_of

_IMPORT = """
import sys
import coordinator_sim_reports.workers.rebalance_batches
import coordinator_sim_reports.workers.finding_batches
print(*sorted({"pyspark", "pandas", "py4j"} & sys.modules.keys()))
"""


def test_a_worker_imports_neither_spark_nor_pandas() -> None:
    """Each worker of a job imports its function's module anew: pandas takes a CPU-second."""
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT], check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == []


@pytest.mark.property
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("abc")), max_size=40), st.integers(1, 7)
)
def test_groups_are_whole_whatever_their_hashes_and_batches(
    named: list[tuple[int, str]], size: int
) -> None:
    """Rows of one hash stand together, those of its groups in any order; batches end anywhere."""
    rows = sorted(named, key=lambda row: row[0])
    columns = {name: [f"{group}{number}" for number, group in rows] for name in GROUP_KEY}
    table = pa.table(
        {**columns, GROUP_HASH: [number for number, _ in rows], "row": list(range(len(rows)))},
        schema=pa.schema(
            [
                *((name, pa.string()) for name in GROUP_KEY),
                (GROUP_HASH, pa.int64()),
                ("row", pa.int64()),
            ]
        ),
    )
    found = list(groups_of(table.to_batches(size), lambda batch: batch["row"].to_pylist()))
    expected: dict[str, list[int]] = {}
    for place, (number, group) in enumerate(rows):
        expected.setdefault(f"{group}{number}", []).append(place)
    assert {key[GROUP_KEY[0]]: own for key, own in found} == expected
    assert len(found) == len(expected)
