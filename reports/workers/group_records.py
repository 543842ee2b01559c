"""Events, assignments and members of groups, read from Arrow batches that come group by group.

A batch mixes four kinds of records: events, assignments of generations in dense form, lists of
resources that these refer to, and members as they were first seen.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct, field

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.trace.events import (
    Event,
    OffsetEntry,
    RebalanceReason,
    Source,
    TimeKind,
    TraceEvent,
)
from coordinator_sim.trace.schema import GenerationRow
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.workers.dense_files import rows_in

DENSE: Final = "dense"
"""Column of a group's assignments in one file (`dense_files`)."""
LISTED: Final = "listed"
"""Column of a list of resources: its id and their names."""
SEEN: Final = "seen"
"""Column of a member: its id, its key and when it was first seen."""
_ENUMS: Final[dict[str, Any]] = {
    C.EVENT: Event,
    "ts_kind": TimeKind,
    C.REASON: RebalanceReason,
    "state_from": GroupState,
    "source": Source,
}
_READ: Final[dict[str, Any]] = {
    "attrs": lambda pairs: {} if pairs is None else dict(pairs),
    "error_code": lambda number: None if number is None else ErrorCode(number),
}
_OFFSETS: Final = ("topic", "partition", "offset")
EVENT_COLUMNS: Final = (
    *("seq", "member_id", "group_instance_id", "client_id", "session_timeout_ms", "confidence"),
    *("source_ref", C.GROUP_ID, "offsets_partition", C.INCARNATION, C.GENERATION),
    *(C.PROTOCOL_TYPE, C.PROTOCOL_NAME, C.TS_US, "ts_err_us", C.MEMBERS, "static_members"),
    *("leader_id", "reason_text", "client_reason", "attrs", "error_code", "latency_us"),
    *("position", "assignment", *_ENUMS),
)
"""Columns of an event that the tables of a group are made of."""
RECORD_COLUMNS: Final = (*EVENT_COLUMNS, *_OFFSETS)
_DEFAULTS: Final[dict[str, Any]] = {
    "confidence": 1.0,
    C.INCARNATION: 0,
    "ts_err_us": 0,
    "ts_kind": TimeKind.EVENT,
    "attrs": {},
}
"""Values of columns where a row has none, as the events' own."""
_SEQ: Final = "seq"


class GroupRecords(Struct):
    """All that is told of one group.

    Args:
        key: Columns of a group's key, with their values.
        ordinals: Places of the lines in their trace.
        names: Resources by the id of their list.
        seen: Key of each member, and when it was first seen, by id.
    """

    key: dict[str, str]
    lines: list[TraceEvent] = field(default_factory=list)
    ordinals: list[int] = field(default_factory=list)
    dense: list[GenerationRow] = field(default_factory=list)
    names: dict[int, tuple[str, ...]] = field(default_factory=dict)
    seen: dict[str, tuple[str, int]] = field(default_factory=dict)


def records_of(batches: Iterable[pa.RecordBatch]) -> Iterator[GroupRecords]:
    """Yield what is told of each group.

    Args:
        batches: `RECORD_COLUMNS`, `DENSE`, `LISTED`, `SEEN`, a group's key, `group_hash` and
            `ordinal`; rows of one hash stand together, also across batches, those of groups that
            share it in any order. Columns of which no row has a value may be left out.
    """
    present: int | None = None
    held: dict[tuple[str, ...], GroupRecords] = {}
    for batch in batches:
        if not batch.num_rows:
            continue
        hashes, borders = batch.column(C.GROUP_HASH), _borders(batch)
        for first, last in zip(borders, [*borders[1:], batch.num_rows], strict=True):
            own = hashes[first].as_py()
            if own != present:
                yield from held.values()
                present, held = own, {}
            key = tuple(batch.column(name)[first].as_py() for name in C.GROUP_KEY)
            records = held.get(key)
            if records is None:
                records = held[key] = GroupRecords(dict(zip(C.GROUP_KEY, key, strict=True)))
            _take(records, batch.slice(first, last - first))
    yield from held.values()


def _borders(batch: pa.RecordBatch) -> list[int]:
    """Return where another group begins, the first row included."""
    begins = np.zeros(batch.num_rows, bool)
    begins[:1] = True
    for name in C.GROUP_KEY:
        codes = batch.column(name).dictionary_encode().indices.to_numpy(zero_copy_only=False)
        begins[1:] |= codes[1:] != codes[:-1]
    borders: list[int] = np.flatnonzero(begins).tolist()
    return borders


def _take(records: GroupRecords, rows: pa.RecordBatch) -> None:
    for piece in rows.column(DENSE).drop_null():
        _take_generations(records, rows_in(piece.as_buffer()))
    readers = {LISTED: _take_lists, SEEN: _take_members}
    for name, read in readers.items():
        column = rows.column(name)
        if column.null_count < len(column):
            read(records, column.drop_null())
    is_event = rows.column(C.EVENT).is_valid()
    lines = rows if is_event.false_count == 0 else rows.filter(is_event)
    if lines.num_rows:
        records.lines.extend(_lines(lines))
        records.ordinals.extend(lines.column(C.ORDINAL).to_pylist())


def _take_generations(records: GroupRecords, rows: pa.RecordBatch) -> None:
    names = rows.schema.names
    values = [_plain(rows.column(name)) for name in names]
    for row in zip(*values, strict=True):
        told: dict[str, Any] = records.key | dict(zip(names, row, strict=True))
        records.dense.append(GenerationRow(**told))


def _take_lists(records: GroupRecords, column: pa.StructArray) -> None:
    lists = zip(*(_plain(column.field(name)) for name in ("id", "names")), strict=True)
    records.names.update(lists)


def _take_members(records: GroupRecords, column: pa.StructArray) -> None:
    names = (C.MEMBER_ID, C.MEMBER_KEY, "first_seen_us")
    for member_id, key, at_us in zip(*(_plain(column.field(n)) for n in names), strict=True):
        told = records.seen.get(member_id, (key, at_us))
        records.seen[member_id] = (max(told[0], key), min(told[1], at_us))


def _plain(column: pa.Array) -> list[Any]:
    """Return the values of a column, lists as tuples; without a Python object for each number."""
    if not pa.types.is_list(column.type):
        return _values(column, None)
    flat, ends = _values(column.flatten(), None), np.cumsum(column.value_lengths().fill_null(0))
    begins = np.concatenate(([0], ends[:-1])).tolist()
    return [tuple(flat[begin:end]) for begin, end in zip(begins, ends.tolist(), strict=True)]


def _lines(batch: pa.RecordBatch) -> list[TraceEvent]:
    told = [name for name in batch.schema.names if name in EVENT_COLUMNS]
    columns = {name: _values(batch.column(name), _ENUMS.get(name)) for name in told}
    columns |= {
        name: list(map(read, columns[name])) for name, read in _READ.items() if name in told
    }
    columns[_SEQ] = [number or 0 for number in columns.get(_SEQ, [0] * batch.num_rows)]
    for name, default in _DEFAULTS.items():
        if name in columns:
            columns[name] = [default if value is None else value for value in columns[name]]
    offsets = _offsets(batch)
    if offsets is not None:
        columns["offsets"] = offsets
    kept = {name: values for name, values in columns.items() if not _is_default(name, values)}
    rows = zip(*kept.values(), strict=True)
    return [TraceEvent(**dict(zip(kept, values, strict=True))) for values in rows]


def _offsets(batch: pa.RecordBatch) -> list[tuple[OffsetEntry, ...]] | None:
    """Return the partition that each event names; None where none does."""
    if _OFFSETS[0] not in batch.schema.names or batch.column(_OFFSETS[0]).null_count == len(batch):
        return None
    rows = zip(*(_values(batch.column(name), None) for name in _OFFSETS), strict=True)
    return [() if topic is None else (OffsetEntry(topic, *rest),) for topic, *rest in rows]


def _is_default(name: str, values: list[Any]) -> bool:
    """Whether every line has the value that events have by themselves: to leave it is cheaper."""
    return name != _SEQ and values.count(_DEFAULTS.get(name)) == len(values)


def _values(column: pa.Array, kind: Any) -> list[Any]:  # noqa: ANN401 - an enum, or None
    """Return the values of a column, those of an enum as its members."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        if pa.types.is_integer(column.type) and not column.null_count:
            numbers: list[Any] = column.to_numpy(zero_copy_only=False).tolist()
            return numbers
        values: list[Any] = column.to_pylist()
        return values
    encoded = column.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    if kind is not None:
        words = [kind(word) for word in words]
    return [None if at is None else words[at] for at in encoded.indices.to_pylist()]
