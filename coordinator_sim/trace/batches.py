"""Batches of trace events held as columns: what an importer passes from stage to stage.

`trace.events` defines an event; a batch holds many of them without an object for each. The columns
that stages read and change are NumPy arrays. All other columns of an event are in `details`, which
are written as they are. An event that was built one by one stays an object beside the columns.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from coordinator_sim.kafka.states import GroupState
from coordinator_sim.trace.events import Event, RebalanceReason, Source, TimeKind, TraceEvent

if TYPE_CHECKING:
    import pyarrow as pa

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
KINDS: Final = tuple(Event)
"""Kinds of events by their number in a batch."""
KIND_NUMBERS: Final = {kind: number for number, kind in enumerate(KINDS)}
TIME_KINDS: Final = tuple(TimeKind)
LOGGED: Final = TIME_KINDS.index(TimeKind.LOGGED)
INFERRED: Final = TIME_KINDS.index(TimeKind.INFERRED)
NOBODY: Final = -1
"""Number of no group and of no file, and the row of an event that has no details."""
UNKNOWN: Final = np.iinfo(np.int64).min
"""Generation of an event that names none."""
_CLIENT_LOGS: Final = (Source.CONSUMER_LOG, Source.CONNECT_LOG, Source.GROUP_DESCRIPTION)
_REQUESTS: Final = (Source.REQUEST_LOG, Source.WIRE)
_RAW: Final = "raw"
_FEW_NAMES: Final = 20_000
"""Number of names up to which an array of all of them is made."""
_BATCH_SIZE: Final = 1_024
_ENUMS: Final = {"reason": RebalanceReason, "state_from": GroupState, "state_to": GroupState}


class Names:
    """Numbers of names, in the order they are first seen; shared by the batches of an import."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        """Names by their numbers."""
        self._numbers: dict[str, int] = {}
        self._array: pa.Array | None = None

    def __getstate__(self) -> tuple[list[str]]:
        return (self.texts,)

    def __setstate__(self, state: tuple[list[str]]) -> None:
        (self.texts,) = state
        self._numbers = {text: number for number, text in enumerate(self.texts)}
        self._array = None

    def number(self, text: str | None) -> int:
        """Return the number of a name; `NOBODY` for None."""
        if text is None:
            return NOBODY
        known = self._numbers.get(text)
        if known is None:
            known = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        return known

    def chosen(self, numbers: Int32s) -> "pa.Array":
        """Return the names of numbers as an array, null for `NOBODY`."""
        import pyarrow as pa

        if len(self.texts) > _FEW_NAMES:
            distinct, which = np.unique(numbers, return_inverse=True)
            names = [self.text(number) for number in distinct.tolist()]
            return pa.array(names, pa.string()).take(pa.array(which))
        if self._array is None or len(self._array) <= len(self.texts):
            self._array = pa.array([*self.texts, None], pa.string())
        return self._array.take(pa.array(np.where(numbers < 0, len(self.texts), numbers)))

    def text(self, number: int) -> str | None:
        """Return a name by its number; None for `NOBODY`."""
        return None if number == NOBODY else self.texts[number]


class EventBatch:
    """Events in order, as columns of equal length.

    Args:
        names: Numbers of groups and files.
        columns: The columns of `FIELDS`, by name.
        details: The other columns of the events that are no objects, by the names of the trace's
            table; columns that none of them has are missing.
        objects: The events that are objects, None for the others. Where they differ, the columns
            count.
    """

    FIELDS: Final = (
        *("kinds", "ts_us", "ts_err_us", "time_kinds", "groups", "generations", "incarnations"),
        *("files", "seqs", "is_client", "is_request", "detail_rows"),
    )

    __slots__ = (*FIELDS, "details", "names", "objects")

    kinds: NDArray[np.int16]
    """Numbers of `KINDS`."""
    ts_us: Int64s
    ts_err_us: Int64s
    time_kinds: NDArray[np.int8]
    """Numbers of `TIME_KINDS`."""
    groups: Int32s
    """Numbers of the group ids; `NOBODY` for none."""
    generations: Int64s
    """Generations; `UNKNOWN` for none."""
    incarnations: Int32s
    files: Int32s
    """Numbers of the `source_ref`s; `NOBODY` for none."""
    seqs: Int64s
    is_client: NDArray[np.bool_]
    """Whether a client's log tells the event."""
    is_request: NDArray[np.bool_]
    """Whether a request log or a capture tells the event."""
    detail_rows: Int64s
    """Rows of `details`; `NOBODY` for an object."""

    def __init__(
        self,
        names: Names,
        columns: dict[str, NDArray[Any]],
        details: "pa.Table | None",
        objects: NDArray[np.object_] | None,
    ) -> None:
        self.names = names
        self.details = details
        self.objects = objects
        for name in self.FIELDS:
            setattr(self, name, columns[name])

    def __len__(self) -> int:
        return len(self.ts_us)

    def __getstate__(self) -> tuple[Names, list[TraceEvent]]:
        return self.names, list(self.events())

    def __setstate__(self, state: tuple[Names, list[TraceEvent]]) -> None:
        names, events = state
        batch = batch_of(events, names)
        self.__init__(names, batch.columns(), None, batch.objects)  # type: ignore[misc]

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns of `FIELDS` by name."""
        return {name: getattr(self, name) for name in self.FIELDS}

    def take(self, rows: NDArray[Any] | slice) -> "EventBatch":
        """Return the events of these rows, in this order."""
        columns = {name: column[rows] for name, column in self.columns().items()}
        objects = None if self.objects is None else self.objects[rows]
        return EventBatch(self.names, columns, self.details, objects)

    def having(self, **columns: NDArray[Any]) -> "EventBatch":
        """Return the events with other values in some columns."""
        return EventBatch(self.names, self.columns() | columns, self.details, self.objects)

    def without_raw(self) -> "EventBatch":
        """Return the events without the text of their lines."""
        details, objects = self.details, self.objects
        if details is not None and _RAW in details.column_names:
            details = details.drop_columns([_RAW])
        if objects is not None:
            kept = [event and msgspec.structs.replace(event, raw=None) for event in objects]
            objects = np.array([*kept, None], object)[:-1]
        return EventBatch(self.names, self.columns(), details, objects)

    def own_details(self) -> "pa.Table | None":
        """Return the details of the events that are no objects, in the order of the batch."""
        if self.details is None:
            return None
        rows = self.detail_rows if self.objects is None else self.detail_rows[self.detail_rows >= 0]
        if len(rows) == self.details.num_rows and (np.diff(rows) == 1).all():
            return self.details
        return self.details.take(rows)

    def compact(self) -> "EventBatch":
        """Return the events without the details of others."""
        is_own = self.detail_rows >= 0
        rows = np.where(is_own, np.cumsum(is_own) - 1, NOBODY)
        columns = self.columns() | {"detail_rows": rows}
        return EventBatch(self.names, columns, self.own_details(), self.objects)

    def events(self) -> Iterator[TraceEvent]:
        """Yield the events one by one."""
        table = self.own_details()
        details = iter([] if table is None else table.to_pylist())
        for row in range(len(self)):
            told = None if self.objects is None else self.objects[row]
            if told is None:
                values = {name: value for name, value in next(details).items() if value is not None}
                values["attrs"] = dict(values.get("attrs", ()))
                for name, kind in _ENUMS.items():
                    if name in values:
                        values[name] = kind(values[name])
                source = Source(values.pop("source"))
                told = TraceEvent(event=KINDS[self.kinds[row]], ts_us=0, source=source, **values)
            yield self._as_columns_say(told, row)

    def _as_columns_say(self, event: TraceEvent, row: int) -> TraceEvent:
        generation = int(self.generations[row])
        told: dict[str, Any] = {
            "ts_us": int(self.ts_us[row]),
            "ts_err_us": int(self.ts_err_us[row]),
            "ts_kind": TIME_KINDS[self.time_kinds[row]],
            "incarnation": int(self.incarnations[row]),
            "group_id": self.names.text(self.groups[row]),
            "generation": None if generation == UNKNOWN else generation,
            "source_ref": self.names.text(self.files[row]),
            "seq": int(self.seqs[row]),
        }
        changed = {name: value for name, value in told.items() if getattr(event, name) != value}
        return msgspec.structs.replace(event, **changed) if changed else event


def batch_of(events: Sequence[TraceEvent], names: Names) -> EventBatch:
    """Return a batch of events that stay objects."""
    count = len(events)
    objects = np.empty(count, object)
    objects[:] = events
    known = (e.generation for e in events)
    columns: dict[str, NDArray[Any]] = {
        "kinds": np.array([KIND_NUMBERS[e.event] for e in events], np.int16),
        "ts_us": np.array([e.ts_us for e in events], np.int64),
        "ts_err_us": np.array([e.ts_err_us for e in events], np.int64),
        "time_kinds": np.array([TIME_KINDS.index(e.ts_kind) for e in events], np.int8),
        "groups": np.array([names.number(e.group_id) for e in events], np.int32),
        "generations": np.array([UNKNOWN if g is None else g for g in known], np.int64),
        "incarnations": np.array([e.incarnation for e in events], np.int32),
        "files": np.array([names.number(e.source_ref) for e in events], np.int32),
        "seqs": np.array([e.seq for e in events], np.int64),
        "is_client": np.array([e.source in _CLIENT_LOGS for e in events], np.bool_),
        "is_request": np.array([e.source in _REQUESTS for e in events], np.bool_),
        "detail_rows": np.full(count, NOBODY, np.int64),
    }
    return EventBatch(names, columns, None, objects)


def batches_of(events: Iterable[TraceEvent], names: Names) -> Iterator[EventBatch]:
    """Yield events that are made one by one as batches."""
    taken = iter(events)
    while some := list(islice(taken, _BATCH_SIZE)):
        yield batch_of(some, names)


def joined(batches: Sequence[EventBatch]) -> EventBatch:
    """Return the events of batches of the same names, one batch after the other."""
    if len(batches) == 1:
        return batches[0]
    import pyarrow as pa

    columns = {
        name: np.concatenate([getattr(batch, name) for batch in batches])
        for name in EventBatch.FIELDS
    }
    tables: list[pa.Table] = []
    rows, before = [], 0
    for batch in batches:
        rows.append(np.where(batch.detail_rows >= 0, batch.detail_rows + before, NOBODY))
        if batch.details is not None:
            tables.append(batch.details)
            before += batch.details.num_rows
    columns["detail_rows"] = np.concatenate(rows)
    details = pa.concat_tables(tables, promote_options="default") if tables else None
    objects = None
    if any(batch.objects is not None for batch in batches):
        objects = np.concatenate(
            [np.full(len(b), None) if b.objects is None else b.objects for b in batches]
        )
    return EventBatch(batches[0].names, columns, details, objects)


def group_runs(groups: Int32s, rows: Int64s) -> list[tuple[int, Int64s]]:
    """Return each group among some rows with its rows, in their order.

    Args:
        groups: The column of the batch.
        rows: Rows of the batch, all of which have a group.
    """
    own = groups[rows]
    order = np.argsort(own, kind="stable")
    borders = np.flatnonzero(np.diff(own[order])) + 1
    parts = np.split(rows[order], borders) if len(rows) else []
    return [(int(groups[part[0]]), part) for part in parts]


class FallingGroups:
    """Groups whose values fall below an earlier one, found without looking at each event.

    Args:
        empty: The value before a group's first.
    """

    _empty: int
    last: Int64s

    def __init__(self, empty: int) -> None:
        self._empty = empty
        self.last = np.full(0, empty, np.int64)
        """The last value of each group, by its number."""

    def find(self, groups: Int32s, values: Int64s, rows: Int64s) -> set[int]:
        """Return the groups with a value below the one before it; the others' last ones are kept.

        Args:
            groups: The groups of a batch.
            values: Their values.
            rows: Rows that count, in order; all have a group and a value.
        """
        if not len(rows):
            return set()
        own = groups[rows]
        self.make_room(int(own.max()))
        order = np.argsort(own, kind="stable")
        own, told = own[order], values[rows][order]
        is_first = np.append(True, own[1:] != own[:-1])
        before = np.append(self._empty, told[:-1])
        before[is_first] = self.last[own[is_first]]
        falling = set(np.unique(own[told < before]).tolist())
        is_last = np.append(is_first[1:], True)
        ends, values_there = own[is_last], told[is_last]
        if falling:
            steady = ~np.isin(ends, list(falling))
            ends, values_there = ends[steady], values_there[steady]
        self.last[ends] = values_there
        return falling

    def make_room(self, group: int) -> None:
        """Hold groups up to this number."""
        missing = group + 1 - len(self.last)
        if missing > 0:
            grown = max(missing, len(self.last))
            self.last = np.append(self.last, np.full(grown, self._empty, np.int64))


NO_EVENTS: Final = batch_of((), Names())
