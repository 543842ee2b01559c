"""Rows of batches that come group by group, cut into groups."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
import pyarrow as pa

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

_Row = TypeVar("_Row")


def groups_of(
    batches: Iterable[pa.RecordBatch], read: Callable[[pa.RecordBatch], list[_Row]]
) -> Iterator[tuple[dict[str, str], list[_Row]]]:
    """Yield each group's key by its columns, and its rows in their order.

    Args:
        batches: Rows with a group's key and `group_hash`; rows of one hash stand together, also
            across batches, those of groups that share it in any order.
        read: Makes rows of a batch, one for each of its own.
    """
    present: int | None = None
    held: dict[tuple[str, ...], list[_Row]] = {}
    for batch in batches:
        rows, hashes = read(batch), batch.column(C.GROUP_HASH)
        borders = _borders(batch)
        for first, last in zip(borders, [*borders[1:], len(rows)], strict=True):
            own = hashes[first].as_py()
            if own != present:
                yield from _named(held)
                present, held = own, {}
            key = tuple(batch.column(name)[first].as_py() for name in C.GROUP_KEY)
            held.setdefault(key, []).extend(rows[first:last])
    yield from _named(held)


def _named(
    held: dict[tuple[str, ...], list[_Row]],
) -> Iterator[tuple[dict[str, str], list[_Row]]]:
    for key, rows in held.items():
        yield dict(zip(C.GROUP_KEY, key, strict=True)), rows


def _borders(batch: pa.RecordBatch) -> list[int]:
    """Return where another group begins, the first row included."""
    begins = np.zeros(batch.num_rows, bool)
    begins[:1] = True
    for name in C.GROUP_KEY:
        codes = batch.column(name).dictionary_encode().indices.to_numpy(zero_copy_only=False)
        begins[1:] |= codes[1:] != codes[:-1]
    borders: list[int] = np.flatnonzero(begins).tolist()
    return borders
