"""Tables of a report that come of nothing cost nothing, and say the same."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="needs the spark extra")

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports.local_frames import has_no_rows, listed
from coordinator_sim_reports.sources import RUN_COLUMNS
from coordinator_sim_reports.tables import TableStore, nothing
from coordinator_sim_reports.transforms.assignments import assignments
from coordinator_sim_reports.transforms.fault_windows import fault_windows
from coordinator_sim_reports.transforms.groups import GroupPass, Records, group_events
from coordinator_sim_reports.workers.group_tables import GROUP_TABLES, GROUPS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LINES: list[dict[str, Any]] = [
    {"event": "JOIN_REQ", "group_id": "g", "ordinal": 0, "offsets_partition": 7},
    {"event": "JOIN_COMPLETE", "group_id": "g", "ordinal": 1, "offsets_partition": 7},
    {"event": "UNPARSED", "group_id": None, "ordinal": 2},
]
RESIGNED = {"event": "COORD_RESIGNED", "group_id": None, "ordinal": 3, "offsets_partition": 7}


def events_of(frame: Any, lines: list[dict[str, Any]]) -> Any:  # noqa: ANN401 - frames
    """Events of one file of one trace."""
    key = {"trace_id": "t", "cluster_id": "c", "source_ref": "server.log"}
    return frame("events", [{**key, "ts_us": 0, **line} for line in lines])


@pytest.mark.parametrize("lines", [LINES, [*LINES, RESIGNED]], ids=["plain", "resigned"])
def test_events_of_groups_are_the_same_whether_their_kinds_are_known(
    frame: Any,  # noqa: ANN401 - makes frames
    lines: list[dict[str, Any]],
) -> None:
    """Where the coordinator resigns, both repeat it for its group; else there is nothing to do."""
    events = events_of(frame, lines)
    kinds = {line["event"] for line in lines}
    columns = ("ordinal", "event", "group_id")
    found = [
        sorted(map(tuple, group_events(events, known).select(*columns).collect()))
        for known in (None, kinds)
    ]
    assert found[0] == found[1]
    assert [row[2] for row in found[0]] == ["g"] * (len(lines) - 1)


def test_a_table_of_nothing_is_not_computed(
    frame: Any,  # noqa: ANN401 - makes frames
    spark: "SparkSession",
    tmp_path: Path,
) -> None:
    """The table is kept with its columns, and nothing is computed of what builds on it."""
    waiting = events_of(frame, LINES).select(
        *("trace_id", "cluster_id", "group_id", F.lit(1).cast("bigint").alias("rebalance_no")),
        F.col("ts_us").alias("stopped_us"),
    )
    told: list[str] = []
    store = TableStore(spark, tmp_path, told.append)
    some = store.keep_if(True, "stopped", lambda: waiting)  # noqa: FBT003 - reads as a sentence
    assert some.count() == len(LINES)
    assert not has_no_rows(some)
    empty = store.keep_if(False, "stopped", lambda: pytest.fail("is made"))  # noqa: FBT003 - as above
    assert has_no_rows(empty.where("stopped_us > 1"))
    kept = spark.read.parquet(str(tmp_path / "stopped"))
    assert kept.collect() == []
    assert kept.dtypes == some.dtypes
    assert told == ["stopped", "stopped"]


def test_columns_of_tables_of_nothing_are_those_of_computed_ones(
    frame: Any,  # noqa: ANN401 - makes frames
    spark: "SparkSession",
) -> None:
    """Names and types, table by table; plans tell them, nothing is run."""
    events, dense, pieces, resources = (
        frame(name, []).limit(0) for name in ("events", "generations", "dense_pieces", "resources")
    )
    made = GroupPass(Records(events, (), pieces, resources), {}, (*GROUP_TABLES, GROUPS))
    computed = {name: made.table(name) for name in (*GROUP_TABLES, GROUPS)}
    computed["assignments"] = assignments(dense, resources)
    computed["fault_windows"] = fault_windows(events, listed(spark, [], RUN_COLUMNS))
    assert {name: table.dtypes for name, table in computed.items()} == {
        name: nothing(spark, name).dtypes for name in computed
    }


rows_listed = st.lists(
    st.tuples(
        st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]))),
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
        st.one_of(st.none(), st.booleans()),
        st.one_of(st.none(), st.floats(allow_nan=False)),
    ),
    max_size=5,
)


@pytest.mark.property
@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=rows_listed)
def test_rows_listed_come_back(
    spark: "SparkSession", rows: list[tuple[str | None, int | None, bool | None, float | None]]
) -> None:
    """Whatever they hold, nulls among it, in their order."""
    found = listed(spark, rows, "name string, number bigint, is_so boolean, share double")
    assert [tuple(row) for row in found.collect()] == rows
    assert has_no_rows(found) == (not rows)
