"""What Python workers do with batches: rows are cut into groups, and nothing of Spark is needed."""

import subprocess
import sys

import pytest

pytest.importorskip("pyspark", reason="needs the spark extra")

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.trace.events import Source
from coordinator_sim.trace.schema import GenerationRow, event_schema
from coordinator_sim_reports.columns import GROUP_HASH, GROUP_KEY
from coordinator_sim_reports.workers.group_records import DENSE, LISTED, SEEN, records_of
from coordinator_sim_reports.workers.group_tables import GROUP_TABLES, GROUPS, tables_of
from tests.reports.groups import generation, group

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


@pytest.mark.parametrize(
    "assigned", [(), (generation(1, "ab", (0, 1)), generation(2, "ab", (1, 0)))]
)
def test_a_group_without_a_rebalance_has_its_other_rows(
    assigned: tuple[GenerationRow, ...],
) -> None:
    """The log of one client alone makes such a group, and one that only commits offsets is one."""
    alone = group(("OFFSET_COMMIT", 1, {}), dense=assigned, source=Source.CONSUMER_LOG)
    found = tables_of(alone, (*GROUP_TABLES, GROUPS))
    assert found["rebalances"] == found["rebalance_costs"] == []
    assert [row["moved"] for row in found["moves"]] == [2] * bool(assigned)


def test_costs_are_known_where_the_summary_knows_all_assignments() -> None:
    """A log that begins in the middle lacks the target of an epoch: no cost is exact."""
    lines = [
        line
        for epoch in (1, 2, 3)
        for line in (
            ("EPOCH_BUMPED", epoch - 0.5, {"generation": epoch, "seq": epoch}),
            ("TARGET_COMPUTED", epoch, {"generation": epoch, "members": 2}),
        )
    ]
    dense = [generation(number, "ab", (0, 1)) for number in (1, 2, 3)]
    for known in (dense, dense[1:]):
        of = group(*lines, dense=known, source=Source.OFFSETS_TOPIC)
        (summary,) = tables_of(of, (*GROUP_TABLES, GROUPS))[GROUPS]
        assert of.costs.is_assigned is (known is dense)
        assert (summary["missing_assignments"] is None) is (known is dense)


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
    for place, (number, name) in enumerate(rows):
        expected.setdefault(f"{name}{number}", []).append(place)
    assert {each.key[GROUP_KEY[0]]: each.ordinals for each in found} == expected
    assert all([line.seq for line in each.lines] == each.ordinals for each in found)
    assert len(found) == len(expected)
