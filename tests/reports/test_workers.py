"""What Python workers do with batches: rows are cut into groups, and nothing of Spark is needed."""

import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="needs the spark extra")

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.trace.schema import event_schema
from coordinator_sim_reports.columns import GROUP_HASH, GROUP_KEY
from coordinator_sim_reports.workers.group_records import DENSE, LISTED, SEEN, records_of

_IMPORT = """
import sys
import coordinator_sim_reports.workers.group_tables
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
    own = {name: [f"{group}{number}" for number, group in rows] for name in GROUP_KEY}
    places = list(range(len(rows)))
    own |= {GROUP_HASH: [number for number, _ in rows], "ordinal": places, "seq": places}
    own |= {"event": ["HEARTBEAT"] * len(rows), "ts_us": places}
    empty = pa.struct([("id", pa.int64())])
    kinds = {each.name: each.type for each in event_schema()}
    kinds |= {GROUP_HASH: pa.int64(), "cluster_id": pa.string()}
    table = pa.table({name: pa.array(values, kinds[name]) for name, values in own.items()})
    for name in (DENSE, LISTED, SEEN):
        table = table.append_column(name, pa.nulls(len(rows), empty))
    found = list(records_of(table.to_batches(size)))
    expected: dict[str, list[int]] = {}
    for place, (number, group) in enumerate(rows):
        expected.setdefault(f"{group}{number}", []).append(place)
    assert {each.key[GROUP_KEY[0]]: each.ordinals for each in found} == expected
    assert all([line.seq for line in each.lines] == each.ordinals for each in found)
    assert len(found) == len(expected)
