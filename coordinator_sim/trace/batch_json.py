"""The events of a batch as the canonical JSON lines of `trace.digest`, made column by column."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from coordinator_sim.trace.batches import KINDS, TIME_KINDS, UNKNOWN, EventBatch
from coordinator_sim.trace.events import Source, TimeKind, TraceEvent

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBERS: Final = {
    "ts_us": ("ts_us", None),
    "seq": ("seqs", None),
    "generation": ("generations", UNKNOWN),
    "incarnation": ("incarnations", 0),
    "ts_err_us": ("ts_err_us", 0),
}
"""Fields of events: the column of a batch, and the value that is not written."""
_LEFT_OUT: Final = frozenset({"source_ref", "raw"})
_ESCAPED: Final = np.array([code < ord(" ") or chr(code) in '"\\\\' for code in range(256)])
"""Characters that JSON does not write as they are."""


def json_lines(batch: EventBatch, own_source: Source) -> "pa.Array":
    """Return the lines of the events that are no objects, in their order, each with its line end.

    Args:
        batch: Events with their numbers.
        own_source: Source of the run, which lines do not name.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = np.flatnonzero(batch.detail_rows >= 0)
    details = batch.own_details()
    if details is None:
        return pa.array([], pa.string())
    pieces: list[Any] = []
    for name in TraceEvent.__struct_fields__:
        found = _shared(batch, name, rows)
        if found is None and name in details.column_names and name not in _LEFT_OUT:
            column = details.column(name).combine_chunks()
            if name == "source":
                is_own = pc.equal(column, own_source.value)
                column = pc.if_else(is_own, pa.scalar(None, pa.string()), column)
            found = [_attrs(column)] if name == "attrs" else _named(name, column)
        pieces += found or ()
    return pc.binary_join_element_wise(
        *pieces, "}\n", "", null_handling="replace", null_replacement=""
    )


def text_bytes(texts: "pa.Array") -> memoryview | bytes:
    """Return all texts of an array, one behind the other."""
    _, offsets, data = texts.buffers()
    if data is None:
        return b""
    places = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(data)[int(places[0]) : int(places[-1])]


def _shared(batch: EventBatch, name: str, rows: NDArray[np.int64]) -> list[Any] | None:
    """Return the pieces of a column that a batch holds by itself; None for another column."""
    match name:
        case "event":
            kinds = [f'{{"event":"{kind.value}"' for kind in KINDS]
            return [_chosen(kinds, batch.kinds[rows])]
        case "ts_kind":
            default = TimeKind.EVENT
            told = [None if k is default else f',"ts_kind":"{k.value}"' for k in TIME_KINDS]
            return [_chosen(told, batch.time_kinds[rows])]
        case "group_id":
            return _named(name, batch.names.chosen(batch.groups[rows]))
        case _ if name in _NUMBERS:
            column, left_out = _NUMBERS[name]
            return _numbers(name, getattr(batch, column)[rows], left_out)
    return None


def _chosen(texts: Sequence[str | None], numbers: NDArray[Any]) -> "pa.Array":
    import pyarrow as pa

    return pa.array(texts, pa.string()).take(pa.array(numbers))


def _json(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _numbers(name: str, values: NDArray[Any], left_out: int | None) -> list[Any]:
    import pyarrow as pa

    is_null = None if left_out is None else values == left_out
    return _named(name, pa.array(values, mask=is_null))


def _named(name: str, column: "pa.Array") -> list[Any]:
    """Return a column's values as members of JSON objects: pieces that are null for none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count == len(column):
        return []
    before = f',"{name}":'
    if pa.types.is_string(column.type):
        if not column.null_count and not _is_escaped(column):
            return [f'{before}"', column, '"']
        return [_quoted(column, before=before)]
    texts = column.cast(pa.string())
    if not column.null_count:
        return [before, texts]
    return [pc.binary_join_element_wise(before, texts, "")]


def _is_escaped(texts: "pa.Array") -> bool:
    """Whether any of the texts has characters that JSON escapes."""
    return bool(_ESCAPED[np.frombuffer(text_bytes(texts), np.uint8)].any())


def _quoted(texts: "pa.Array", before: str = "") -> "pa.Array":
    import pyarrow as pa
    import pyarrow.compute as pc

    if not _is_escaped(texts):
        return pc.binary_join_element_wise(f'{before}"', texts, '"', "")
    told = [None if text is None else f"{before}{_json(text)}" for text in texts.to_pylist()]
    return pa.array(told, pa.string())


def _attrs(maps: "pa.MapArray") -> "pa.Array":
    """Return the attributes as members of JSON objects, sorted by name; null for none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = np.asarray(maps.offsets)
    counts = np.diff(offsets)
    first, last = int(offsets[0]), int(offsets[-1])
    if first == last:
        return pa.nulls(len(maps), pa.string())
    keys, items = maps.keys.slice(first, last - first), maps.items.slice(first, last - first)
    encoded = keys.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    ranks = np.argsort(np.argsort(names))[encoded.indices.to_numpy()]
    order = pa.array(np.lexsort((ranks, np.repeat(np.arange(len(maps)), counts))))
    texts = pc.binary_join_element_wise(_quoted(keys.take(order)), _quoted(items.take(order)), ":")
    lists = pa.ListArray.from_arrays(pa.array(offsets - first, pa.int32()), texts)
    whole = pc.binary_join_element_wise(',"attrs":{', pc.binary_join(lists, ","), "}", "")
    return pc.if_else(pa.array(counts > 0), whole, pa.scalar(None, pa.string()))
