"""Events that several groups share, and rows that the driver lists."""

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim_reports.local_frames import listed
from coordinator_sim_reports.transforms.groups import group_events
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
