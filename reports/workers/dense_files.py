"""Files of a trace's dense assignments, cut into one piece of bytes for each group.

Spark would take the owners of each generation through its own rows, one Python object or Java value
at a time; as bytes a group passes a shuffle as it is.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coordinator_sim.trace.schema import generation_schema
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

PIECE_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in C.GROUP_KEY),
        ("dense", pa.binary()),
        ("list_ids", pa.list_(pa.int64())),
    ]
)
"""A group's key, its rows of one file, and the ids of the resource lists that they refer to."""
_PIECES: Final = 200
"""Pieces of one batch: a group of a year has some megabytes."""


def pieces_of_files(files: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the pieces (`PIECE_SCHEMA`) of Parquet files of the table `generations`.

    Args:
        files: Each file's bytes as `content`.
    """
    for batch in files:
        for content in batch.column("content"):
            source = pa.BufferReader(content.as_buffer())
            yield from pieces_of_table(pq.read_table(source, schema=generation_schema()))


def pieces_of_rows(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the pieces (`PIECE_SCHEMA`) of rows of the table `generations`, as of JSON Lines."""
    for batch in rows:
        yield from pieces_of_table(pa.Table.from_batches([batch]).cast(generation_schema()))


def rows_in(piece: pa.Buffer) -> pa.RecordBatch:
    """Return the rows of a piece."""
    with pa.ipc.open_stream(piece) as reader:
        batch: pa.RecordBatch = reader.read_next_batch()
    return batch


def pieces_of_table(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the pieces (`PIECE_SCHEMA`) of a table `generations`."""
    rows = _pieces(table)
    while some := list(islice(rows, _PIECES)):
        columns = zip(*some, strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(each, field.type) for each, field in zip(columns, PIECE_SCHEMA, strict=True)],
            schema=PIECE_SCHEMA,
        )


def _pieces(table: pa.Table) -> Iterator[tuple[object, ...]]:
    if not table.num_rows:
        return
    keys = [table.column(name).combine_chunks().dictionary_encode() for name in C.GROUP_KEY]
    number = np.zeros(table.num_rows, np.int64)
    for key in keys:
        number = number * len(key.dictionary) + key.indices.to_numpy()
    order = np.argsort(number, kind="stable")
    begins = np.flatnonzero(np.r_[True, np.diff(number[order]) != 0]).tolist()
    own = table.select([name for name in table.column_names if name not in C.GROUP_KEY])
    rows = own.take(pa.array(order)).combine_chunks()
    for first, last in zip(begins, [*begins[1:], len(order)], strict=True):
        piece = rows.slice(first, last - first)
        named = (key[int(order[first])].as_py() for key in keys)
        list_ids = pc.unique(piece.column(C.RESOURCE_LIST_ID).drop_null()).to_pylist()
        yield (*named, _as_bytes(piece), list_ids)


def _as_bytes(piece: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, piece.schema) as writer:
        for batch in piece.to_batches():
            writer.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written
