"""The columns of a trace's Parquet files, beside the rows of its events one by one."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.runs.event_columns import table_of_events
from coordinator_sim.trace.events import (
    Event,
    OffsetEntry,
    RebalanceReason,
    RunInfo,
    Source,
    TimeKind,
    TraceEvent,
)
from coordinator_sim.trace.schema import event_schema, plain, rows_of

INFO = RunInfo(trace_id="run", source=Source.SIM, cluster_id="sim", version="0", profile="4.4")
TEXTS = st.sampled_from(["", "orders", "ä→", " "])
NUMBERS = st.integers(0, 2**31 - 1)
OFFSETS = st.builds(
    OffsetEntry,
    topic=TEXTS,
    partition=NUMBERS,
    offset=NUMBERS,
    leader_epoch=st.integers(-1, 3),
    metadata=st.none() | TEXTS,
    commit_ts_us=st.none() | NUMBERS,
    expire_ts_us=st.none() | NUMBERS,
)
EVENTS = st.builds(
    TraceEvent,
    event=st.sampled_from(Event),
    ts_us=st.integers(0, 10**15),
    seq=NUMBERS,
    group_id=st.none() | TEXTS,
    generation=st.none() | NUMBERS,
    member_id=st.none() | TEXTS,
    reason=st.none() | st.sampled_from(RebalanceReason),
    state_from=st.none() | st.sampled_from(GroupState),
    state_to=st.none() | st.sampled_from(GroupState),
    error_code=st.none() | st.sampled_from(ErrorCode),
    subscription=st.none() | st.binary(max_size=4),
    offsets=st.lists(OFFSETS, max_size=3).map(tuple),
    ts_kind=st.sampled_from(TimeKind),
    confidence=st.floats(0, 1),
    source=st.none() | st.sampled_from(Source),
    attrs=st.dictionaries(TEXTS, TEXTS, max_size=2),
)


def value_in(row: msgspec.Struct, name: str) -> Any:  # noqa: ANN401 - any column
    """The value of a column as Arrow gives it back."""
    value = getattr(row, name)
    return list(value.items()) if name == "attrs" else plain(value)


@pytest.mark.property
@given(st.lists(EVENTS, min_size=1, max_size=6), st.integers(0, 9))
def test_columns_tell_the_rows_of_the_events(events: list[TraceEvent], first: int) -> None:
    """The table of some events holds what the rows of each event hold, in their order."""
    schema = event_schema()
    ordinals = range(first, first + len(events))
    rows = [
        row
        for ordinal, event in zip(ordinals, events, strict=True)
        for row in rows_of(event, ordinal, INFO)
    ]
    expected = [{name: value_in(row, name) for name in schema.names} for row in rows]
    assert table_of_events(events, ordinals, INFO, schema).to_pylist() == expected
