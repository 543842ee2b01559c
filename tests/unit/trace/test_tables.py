"""Rows of a trace written to files and read again, as Parquet and as JSON lines."""

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coordinator_sim.errors import DataError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.runs import parquet
from coordinator_sim.runs.run_directory import JsonLinesEvents, JsonLinesTable, read_lines
from coordinator_sim.trace import events, schema

INFO = events.RunInfo(
    trace_id="run-1",
    source=events.Source.SIM,
    cluster_id="eu/1",
    version="0.1",
    profile="4.4",
    seed=7,
)
DAY_US = 86_400_000_000
EVENTS = [
    events.TraceEvent(
        event=events.Event.PREPARE_REBALANCE,
        ts_us=10,
        seq=3,
        group_id="z",
        reason=events.RebalanceReason.MEMBER_JOINED,
        state_from=GroupState.EMPTY,
        state_to=GroupState.PREPARING_REBALANCE,
        error_code=ErrorCode.NONE,
        attrs={"protocols": "range,sticky"},
        subscription=b"\x00\x01",
    ),
    events.TraceEvent(
        event=events.Event.OFFSET_COMMIT,
        ts_us=DAY_US + 5,
        seq=4,
        group_id="a",
        offsets=(
            events.OffsetEntry("t", 0, 12, metadata="note"),
            events.OffsetEntry("t", 1, 13, 4, None, 9),
        ),
    ),
    events.TraceEvent(event=events.Event.GAP, ts_us=15, seq=900, source=events.Source.BROKER_LOG),
]
GENERATION = schema.GenerationRow(
    trace_id="run-1",
    cluster_id="eu/1",
    group_id="g",
    incarnation=0,
    generation=2,
    join_done_us=None,
    sync_us=5,
    protocol_type="consumer",
    protocol_name="range",
    leader_id="m1",
    subscriptions_equal=None,
    delay_ms=0,
    member_ids=("m1", "m2"),
    member_keys=("i1", "m2"),
    loads=(1, 0),
    resource_list_id=0,
    owners=(0, -1),
)


def all_rows() -> list[schema.EventRow]:
    """The rows of the events, in order."""
    return [row for index, event in enumerate(EVENTS) for row in schema.rows_of(event, index, INFO)]


def test_offset_event_is_a_row_for_each_partition() -> None:
    """Rows of one event share its ordinal; other events are one row."""
    assert [row.ordinal for row in all_rows()] == [0, 1, 1, 2]


def test_event_comes_back_from_its_rows() -> None:
    """The rows of an event say all of it; a source of its own is kept, the run's is implied."""
    for index, event in enumerate(EVENTS):
        assert schema.event_of(list(schema.rows_of(event, index, INFO)), INFO) == event


def test_parquet_events_come_back_in_order_of_emission(tmp_path: Path) -> None:
    """Files are by cluster, day and flush, sorted by group; reading restores the order."""
    table = parquet.ParquetEvents(tmp_path, INFO, schema.event_schema(), rows_per_file=3)
    table.take(EVENTS[:2], 0)
    table.take(EVENTS[2:], 2)
    table.close()
    assert list(parquet.read_event_rows(tmp_path)) == all_rows()
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet"))
    assert files == [
        "cluster_id=eu%2F1/day=1970-01-01/part-00000.parquet",
        "cluster_id=eu%2F1/day=1970-01-01/part-00001.parquet",
        "cluster_id=eu%2F1/day=1970-01-02/part-00000.parquet",
    ]
    assert table.count == 4


def test_nothing_written_leaves_no_file(tmp_path: Path) -> None:
    """Closing an empty table makes neither files nor directories."""
    parquet.ParquetEvents(tmp_path / "events", INFO, schema.event_schema()).close()
    parquet.ParquetTable(tmp_path / "resources", schema.resource_schema(), lambda _: 1).close()
    JsonLinesTable(tmp_path / "lines").close()
    assert list(tmp_path.iterdir()) == []


def test_dense_rows_come_back(tmp_path: Path) -> None:
    """A generation keeps its parallel lists, nulls and -1 for nobody."""
    table = parquet.ParquetTable(tmp_path, schema.generation_schema(), lambda row: len(row.owners))
    table.write(GENERATION)
    table.close()
    assert parquet.read_rows(tmp_path / "part-00000.parquet", schema.GenerationRow) == [GENERATION]


def test_dense_table_is_flushed_by_size(tmp_path: Path) -> None:
    """A file ends with the row that makes it too large, so that memory stays bounded."""
    table = parquet.ParquetTable(
        tmp_path, schema.resource_schema(), lambda _: parquet.CELLS_PER_FILE
    )
    for index in range(2):
        table.write(
            schema.ResourceRow(trace_id="run-1", resource_list_id=index, resources=("p:t-0",))
        )
    table.close()
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["part-00000.parquet", "part-00001.parquet"]


@pytest.mark.parametrize(
    "ts_us", [schema.EARLIEST_US - 1, -(2**63), schema.LATEST_US + 1, 2**63 - 1]
)
def test_row_of_an_instant_without_a_date_is_refused(tmp_path: Path, ts_us: int) -> None:
    """The pages of a report show dates, which Python has from the year 1 to 9999."""
    row = next(schema.rows_of(events.TraceEvent(ts_us=0, event=events.Event.LEAVE_REQ), 0, INFO))
    values = msgspec.to_builtins(msgspec.structs.replace(row, ts_us=ts_us))
    path = tmp_path / "part-00000.parquet"
    pq.write_table(pa.Table.from_pylist([values]), path)
    with pytest.raises(DataError, match=r"not a file of a trace: Expected `int` [<>]= -?\d+"):
        parquet.read_rows(path, schema.EventRow)


def test_file_that_is_no_table_is_named(tmp_path: Path) -> None:
    """Bytes that are not Parquet are an error with the file's name."""
    path = tmp_path / "part-00000.parquet"
    path.write_bytes(b"not a table")
    with pytest.raises(DataError, match=r"part-00000\.parquet is not a file of a trace"):
        parquet.read_rows(path, schema.EventRow)


def test_json_lines_come_back(tmp_path: Path) -> None:
    """Each line is a row, in front the columns of the run; what is not known is left out."""
    table = JsonLinesEvents(tmp_path / "events", INFO)
    table.take(EVENTS[:2], 0)
    table.take(EVENTS[2:], 2)
    table.close()
    path = tmp_path / "events" / "events.jsonl"
    assert list(read_lines(path, schema.EventRow)) == all_rows()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith('{"cluster_id":"eu/1","day":"1970-01-01","trace_id":"run-1"')
    assert not [line for line in lines if "null" in line]
    assert table.count == 4


def test_json_lines_of_a_dense_table_have_their_columns_alone(tmp_path: Path) -> None:
    """Generations and resources carry no partition columns."""
    table = JsonLinesTable(tmp_path / "generations")
    table.write(GENERATION)
    table.close()
    path = tmp_path / "generations" / "generations.jsonl"
    assert list(read_lines(path, schema.GenerationRow)) == [GENERATION]


def test_line_that_is_no_row_is_named(tmp_path: Path) -> None:
    """A broken line is an error with the file's name and the line's number."""
    path = tmp_path / "events.jsonl"
    path.write_text("{}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"events\.jsonl, line 1"):
        list(read_lines(path, schema.EventRow))


def test_day_is_that_of_utc() -> None:
    """Simulated runs start on the first day of 1970; the microsecond before is the day before."""
    assert [
        schema.day_of(0),
        schema.day_of(DAY_US - 1),
        schema.day_of(DAY_US),
        schema.day_of(-1),
    ] == ["1970-01-01", "1970-01-01", "1970-01-02", "1969-12-31"]
