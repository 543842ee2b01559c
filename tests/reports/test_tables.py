"""Tables of a report that come of nothing cost nothing, and say the same."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim_reports.engine import Engine
from coordinator_sim_reports.local_frames import has_no_rows, listed
from coordinator_sim_reports.spark_engine import SparkEngine
from coordinator_sim_reports.tables import keep_if, nothing
from coordinator_sim_reports.transforms.assignments import assignments
from coordinator_sim_reports.transforms.groups import Records, group_events, group_pass
from coordinator_sim_reports.workers.group_tables import GROUP_TABLES, GROUPS
from tests.reports.groups import given as table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from coordinator_sim_reports.local_engine import LocalEngine

pytestmark = pytest.mark.spark

LINES: list[dict[str, Any]] = [
    {"event": "JOIN_REQ", "group_id": "g", "ordinal": 0, "offsets_partition": 7},
    {"event": "JOIN_COMPLETE", "group_id": "g", "ordinal": 1, "offsets_partition": 7},
    {"event": "UNPARSED", "group_id": None, "ordinal": 2},
]
RESIGNED = {"event": "COORD_RESIGNED", "group_id": None, "ordinal": 3, "offsets_partition": 7}


@pytest.mark.parametrize("lines", [LINES, [*LINES, RESIGNED]], ids=["plain", "resigned"])
def test_events_of_groups_are_the_same_whether_their_kinds_are_known(
    engine: "LocalEngine", lines: list[dict[str, Any]]
) -> None:
    """Where the coordinator resigns, both repeat it for its group; else there is nothing to do."""
    key = {"trace_id": "t", "cluster_id": "c", "source_ref": "server.log", "ts_us": 0}
    events = table_of(engine, "events", [{**key, **line} for line in lines])
    kinds = {line["event"] for line in lines}
    found = [
        sorted(
            (row["ordinal"], row["event"], row["group_id"])
            for row in engine.rows(group_events(engine, events, known))
        )
        for known in (None, kinds)
    ]
    assert found[0] == found[1]
    assert [row[2] for row in found[0]] == ["g"] * (len(lines) - 1)


def test_a_table_of_nothing_is_not_computed(spark: "SparkSession", tmp_path: Path) -> None:
    """The table is kept with its columns, and nothing is computed of what builds on it."""
    told: list[str] = []
    engine = SparkEngine(spark, tmp_path, told.append)
    row = {"trace_id": "t", "cluster_id": "c", "group_id": "g", "rebalance_no": 1, "stopped_us": 2}
    waiting = table_of(engine, "stopped", [row] * 3)
    some = keep_if(engine, True, "stopped", lambda: waiting)  # noqa: FBT003 - reads as a sentence
    assert some.count() == 3
    assert not engine.has_no_rows(some)
    empty = keep_if(engine, False, "stopped", lambda: pytest.fail("is made"))  # noqa: FBT003 - as above
    assert engine.has_no_rows(empty.where("stopped_us > 1"))
    kept = spark.read.parquet(str(tmp_path / "stopped"))
    assert kept.collect() == []
    assert kept.dtypes == some.dtypes
    assert told == ["stopped", "stopped"]


@pytest.mark.parametrize("name", ["engine", "spark"])
def test_columns_of_tables_of_nothing_are_those_of_computed_ones(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Names and types, table by table; of Spark, plans tell them and nothing is run."""
    at_hand = request.getfixturevalue(name)
    engine: Engine = SparkEngine(at_hand, tmp_path, str) if name == "spark" else at_hand
    events, dense, pieces, resources = (
        table_of(engine, each, [])
        for each in ("events", "generations", "dense_pieces", "resources")
    )
    made = group_pass(engine, Records(events, (), pieces, resources), {}, (*GROUP_TABLES, GROUPS))
    computed = {each: made.table(each) for each in (*GROUP_TABLES, GROUPS)}
    computed["assignments"] = assignments(engine, dense, resources)
    for each, frame in computed.items():
        assert columns_of(engine, frame) == columns_of(engine, nothing(engine, each)), each


def columns_of(engine: Engine, frame: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - a frame
    """Names and types."""
    if isinstance(engine, SparkEngine):
        return list(frame.dtypes)
    return [(field.name, str(field.type)) for field in engine.arrow(frame).schema]


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
