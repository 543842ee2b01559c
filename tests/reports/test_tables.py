"""Tables of a report that come of nothing cost nothing, and say the same."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim_reports.tables import TableStore, has_no_rows, only_if
from coordinator_sim_reports.transforms.rebalances import group_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

LINES = [
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


def test_a_table_of_nothing_is_known_to_be_empty(
    frame: Any,  # noqa: ANN401 - makes frames
    spark: "SparkSession",
    tmp_path: Path,
) -> None:
    """The table is kept with its columns, and nothing is computed of what builds on it."""
    counted = events_of(frame, LINES).groupBy("group_id").count()
    told: list[str] = []
    store = TableStore(spark, tmp_path, told.append)
    some = store.keep("some", only_if(True, counted))  # noqa: FBT003 - reads as a sentence
    nothing = store.keep("nothing", only_if(False, counted))  # noqa: FBT003 - as above
    assert [row.asDict() for row in some.orderBy("count").collect()] == [
        {"group_id": None, "count": 1},
        {"group_id": "g", "count": 2},
    ]
    assert not has_no_rows(some)
    assert has_no_rows(nothing.where("count > 1"))
    assert spark.read.parquet(str(tmp_path / "nothing")).columns == ["group_id", "count"]
    assert told == ["some", "nothing"]
