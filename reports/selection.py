"""Selects the rows of long tables for a page: the worst first, and totals of the whole.

The worst groups are those with most rebalances, the worst rebalances the longest. A rebalance that
is unfinished when the trace ends lasts until then.

Tables are read from their files, some rows at a time, without a job of Spark: planning one took
longer than reading. Of each read no more is kept than the page shows.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coordinator_sim.errors import DataError
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

Row = dict[str, Any]

LASTED_US: Final = "lasted_us"
_LENGTH: Final = "length"
_IN_TIME: Final = ("seen_us", *C.GROUP_KEY, C.REBALANCE_NO)
_COSTLIEST: Final = ("-unowned_s", "-rebalancing_s")
"""The order of costs: by time without an owner, then by time in rebalances."""
_WORST: Final = ("-rebalances", "-rebalancing_ms", C.GROUP_ID, C.CLUSTER_ID, C.TRACE_ID)
_OF_FILES: Final = (
    *("lines", "parsed", "known", "unparsed", "events", "repeated"),
    *("offsets", "missing_offsets", "skipped_bytes"),
)


class WrittenTable:
    """A table of a report that a job has written.

    Args:
        folder: Its Parquet files.
        trace_ids: Runs whose rows are read; None for all.
    """

    def __init__(self, folder: Path, trace_ids: Sequence[str] | None = None) -> None:
        self._folder = folder
        self._trace_ids = None if trace_ids is None else pa.array(trace_ids, pa.string())

    def parts(self) -> Iterator[pa.Table]:
        """Yield its rows, some at a time; at least one part, which may have none."""
        paths = sorted(each for each in self._folder.iterdir() if each.suffix == ".parquet")
        if not paths:
            raise DataError(
                f"{self._folder} holds no Parquet file: Spark wrote the table to another file "
                "system; name --out by its URI"
            )
        for path in paths:
            with path.open("rb") as file, pq.ParquetFile(file) as table:
                yield table.schema_arrow.empty_table()
                for batch in table.iter_batches():
                    yield self._own(pa.Table.from_batches([batch]))

    def whole(self) -> pa.Table:
        """Return all rows, of a table with a row or so for each group."""
        return pa.concat_tables(self.parts())

    def rows(self, *order: str) -> list[Row]:
        """Return all rows, of a short table; in an order of columns, descending behind a minus."""
        rows: list[Row] = _sorted(self.whole(), order).to_pylist()
        return rows

    def first(self, limit: int, *order: str) -> list[Row]:
        """Return so many rows, the first in an order of columns."""
        rows: list[Row] = first_rows(self.parts(), limit, *order).to_pylist()
        return rows

    def of_groups(self, groups: pa.Table) -> Iterator[pa.Table]:
        """Yield the rows of these groups, which are few."""
        keys = _keys(groups)
        return (part.filter(pc.is_in(_keys(part), value_set=keys)) for part in self.parts())

    def _own(self, part: pa.Table) -> pa.Table:
        if self._trace_ids is None:
            return part
        return part.filter(pc.is_in(part.column(C.TRACE_ID), value_set=self._trace_ids))


def first_rows(parts: Iterable[pa.Table], limit: int, *order: str) -> pa.Table:
    """Return so many rows, the first in an order of columns, descending behind a minus.

    Nulls are last.
    """
    return _reduced(parts, lambda rows: _sorted(rows, order).slice(0, limit))


def _reduced(parts: Iterable[pa.Table], choose: Callable[[pa.Table], pa.Table]) -> pa.Table:
    """Return what is chosen of all parts, of which there is one at least."""
    remaining = iter(parts)
    kept = choose(next(remaining))
    for part in remaining:
        kept = choose(pa.concat_tables([kept, part]))
    return kept


def costliest(costs: WrittenTable, limits: Mapping[str, int]) -> list[Row]:
    """Return the costliest rows of some scopes, each in order of time.

    Input: costs of rebalances by scope; `limits`, the most rows of each scope wanted.
    Output: their columns and `of_rows`, how many rows the scope has in all.
    """
    found: list[Row] = []
    for scope, limit in sorted(limits.items()):
        parts = (part.filter(pc.equal(part.column("scope"), scope)) for part in costs.parts())
        found += _costliest(parts, limit)
    return found


def costliest_storms(storms: WrittenTable, limit: int) -> list[Row]:
    """Return the costliest storms, in order of time.

    Input: storms.
    Output: their columns and `of_rows`, how many there are in all.
    """
    return _costliest(storms.parts(), limit)


def _costliest(parts: Iterable[pa.Table], limit: int) -> list[Row]:
    count = 0

    def counted() -> Iterator[pa.Table]:
        nonlocal count
        for part in parts:
            count += part.num_rows
            yield part

    keys = (C.TRACE_ID, "first_us", C.CLUSTER_ID, C.GROUP_ID)
    first = first_rows(counted(), limit, *_COSTLIEST, *keys)
    return [row | {"of_rows": count} for row in _sorted(first, keys).to_pylist()]


def worst_first(groups: pa.Table) -> pa.Table:
    """Return the groups, those with most rebalances first, or else with most time in them."""
    return _sorted(groups, _WORST)


def named_rebalances(rebalances: WrittenTable, groups: pa.Table) -> Iterator[pa.Table]:
    """Yield rebalances of these groups with columns of theirs, and with `lasted_us`.

    The columns are `scenario`, `assignor`, `source` and `timing_quality`.
    """
    keys = _keys(groups)
    for part in rebalances.parts():
        at = pc.index_in(_keys(part), value_set=keys)
        own, found = part.filter(at.is_valid()), at.drop_null()
        for name in ("scenario", "assignor", "source", "timing_quality"):
            own = own.append_column(name, groups.column(name).take(found))
        until = pc.coalesce(own.column(C.END_US), groups.column("last_ts_us").take(found))
        since = pc.coalesce(own.column(C.START_US), own.column("seen_us"))
        yield own.append_column(LASTED_US, pc.subtract(until, since))


def longest(rebalances: Iterable[pa.Table], limit: int) -> list[Row]:
    """Return the longest rebalances, longest first.

    Input: rebalances with names (`named_rebalances`).
    """
    rows: list[Row] = first_rows(rebalances, limit, f"-{LASTED_US}", *_IN_TIME).to_pylist()
    return rows


def in_time(rebalances: Iterable[Row]) -> list[Row]:
    """Return rebalances in the order of time."""
    return sorted(rebalances, key=lambda row: tuple(row[name] for name in _IN_TIME))


def most_of_each(parts: Iterable[pa.Table], limit: int, *order: str) -> pa.Table:
    """Return so many rows of each group, the first in this order, with `of_rows`, how many it has.

    Input: rows of few groups.
    """
    counts: Counter[str] = Counter()

    def counted() -> Iterator[pa.Table]:
        for part in parts:
            for each in pc.value_counts(_keys(part)).to_pylist():
                counts[each["values"]] += each["counts"]
            yield part

    def cut(rows: pa.Table) -> pa.Table:
        ordered = _sorted(rows, (*C.GROUP_KEY, *order))
        return ordered.filter(pa.array(_ranks(_keys(ordered)) < limit))

    kept = _reduced(counted(), cut)
    of_rows = [counts[key] for key in _keys(kept).to_pylist()]
    return kept.append_column("of_rows", pa.array(of_rows, pa.int64()))


def _ranks(keys: pa.ChunkedArray) -> "np.ndarray[Any, Any]":
    """Return how many rows with the same key stand before each; equal keys stand together."""
    codes = keys.combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    begins = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]][: len(codes)])
    lengths = np.diff(np.r_[begins, len(codes)])
    return np.arange(len(codes)) - np.repeat(begins, lengths)


def drawn_owners(
    owned: WrittenTable, groups: pa.Table, resources: int, intervals: int
) -> list[Row]:
    """Return the ownership of each group's resources with most owners, its longest intervals.

    Input: ownership; few groups.
    Output: ownership with `of_rows`, in the order of time.
    """
    key = [*C.GROUP_KEY, C.RESOURCE]
    holds = pa.concat_tables(
        part.group_by(key).aggregate([([], "count_all")]) for part in owned.of_groups(groups)
    )
    summed = holds.group_by(key).aggregate([("count_all", "sum")])
    busiest = _keys(most_of_each([summed], resources, "-count_all_sum", C.RESOURCE), key)
    chosen = (
        part.filter(pc.is_in(_keys(part, key), value_set=busiest))
        for part in owned.of_groups(groups)
    )
    order = (C.FROM_US, C.RESOURCE, C.MEMBER_KEY)
    kept = most_of_each(_lasting(chosen, C.FROM_US, C.TO_US), intervals, f"-{_LENGTH}", *order)
    return _shown(kept, C.FROM_US, *C.GROUP_KEY, C.RESOURCE, C.MEMBER_KEY)


def drawn_sessions(sessions: Iterable[pa.Table], limit: int) -> list[Row]:
    """Return sessions of each group's members: those that ended badly first, then the longest.

    Input: member sessions of few groups.
    Output: member sessions with `of_rows`, in the order of time.
    """
    bad = pa.array(["FAILED", "KICKED", "FENCED"])

    def judged() -> Iterator[pa.Table]:
        for part in _lasting(sessions, "first_seen_us", C.END_US):
            is_bad = pc.is_in(part.column("end_kind"), value_set=bad).cast(pa.int8())
            length = part.column(_LENGTH).fill_null(np.iinfo(np.int64).max)
            at = part.schema.get_field_index(_LENGTH)
            yield part.set_column(at, _LENGTH, length).append_column("is_bad", is_bad)

    order = ("-is_bad", f"-{_LENGTH}", "first_seen_us", C.MEMBER_ID)
    kept = most_of_each(judged(), limit, *order).drop_columns(["is_bad"])
    return _shown(kept, "first_seen_us", *C.GROUP_KEY, C.MEMBER_ID)


def drawn_waits(waits: Iterable[pa.Table], limit: int) -> list[Row]:
    """Return the longest waits of each group for its members, in the order of time.

    Input: waits of few groups.
    """
    lasting = _lasting(waits, C.FROM_US, C.TO_US)
    kept = most_of_each(lasting, limit, f"-{_LENGTH}", C.FROM_US, C.MEMBER_ID)
    return _shown(kept, C.FROM_US, *C.GROUP_KEY, C.MEMBER_ID)


def drawn_imbalance(imbalance: Iterable[pa.Table], limit: int) -> list[Row]:
    """Return each group's imbalance that lasted longest, in the order of time.

    Input: imbalance of few groups.
    """
    kept = most_of_each(imbalance, limit, "-lasted_us", C.SYNC_US, "kind", C.GENERATION)
    return _shown(kept, C.SYNC_US, *C.GROUP_KEY, "kind", C.GENERATION)


def sorted_rows(parts: Iterable[pa.Table], *order: str) -> list[Row]:
    """Return rows in an order of columns, descending behind a minus."""
    return _shown(pa.concat_tables(parts), *order)


def _lasting(parts: Iterable[pa.Table], from_us: str, to_us: str) -> Iterator[pa.Table]:
    """Add `length` to rows that last from one instant to another."""
    for part in parts:
        yield part.append_column(_LENGTH, pc.subtract(part.column(to_us), part.column(from_us)))


def _shown(table: pa.Table, *order: str) -> list[Row]:
    kept = table.drop_columns([_LENGTH]) if _LENGTH in table.column_names else table
    rows: list[Row] = _sorted(kept, order).to_pylist()
    return rows


def densities(
    rebalances: Iterable[pa.Table],
    listed: pa.Table,
    spans: Mapping[str, tuple[float, float]],
    slices: int,
) -> list[Row]:
    """Count the rebalances of each group in slices of the time that the runs take.

    Args:
        rebalances: Rebalances.
        listed: The groups with a row of their own, few.
        spans: By run, where its slices begin and the length of one, in microseconds.
        slices: How many slices there are.

    Returns:
        A row for each group and slice: `count`; the group is null for all that are not listed.
    """
    own = set(_keys(listed).to_pylist())
    counts: Counter[tuple[tuple[str | None, ...], int]] = Counter()
    for part in rebalances:
        seen = zip(
            *(part.column(name).to_pylist() for name in (*C.GROUP_KEY, "seen_us")),
            _keys(part).to_pylist(),
            strict=True,
        )
        for *key, seen_us, name in seen:
            since_us, slice_us = spans[key[0]]
            at = min(slices - 1, max(0, int((seen_us - since_us) // slice_us)))
            counts[tuple(key) if name in own else (None,) * len(key), at] += 1
    ordered = sorted(counts, key=lambda each: (tuple(name or "" for name in each[0]), each[1]))
    return [
        {
            **dict(zip(C.GROUP_KEY, key, strict=True)),
            "slice": at,
            "count": counts[key, at],
        }
        for key, at in ordered
    ]


def effects_on(effects: Iterable[pa.Table], windows: Sequence[Row], groups: pa.Table) -> list[Row]:
    """Return what happened to these groups in these windows, both few.

    Input: window effects of the groups; fault windows; groups.
    Output: effects with a rebalance or with time without an owner, the group with most of them
    first; `unowned_s`, null where the trace does not tell owners, and `ownership_quality`.
    """
    chosen = {(row[C.TRACE_ID], row[C.CLUSTER_ID], row["window_no"]) for row in windows}
    named = {tuple(row[name] for name in C.GROUP_KEY): row for row in groups.to_pylist()}
    found = []
    for row in (row for part in effects for row in part.to_pylist()):
        if (row[C.TRACE_ID], row[C.CLUSTER_ID], row["window_no"]) not in chosen:
            continue
        group = named[tuple(row[name] for name in C.GROUP_KEY)]
        unowned_us = row.pop("unowned_us")
        is_known = group["unowned_s"] is not None and unowned_us is not None
        row["ownership_quality"] = group["ownership_quality"]
        row["unowned_s"] = unowned_us / 1_000_000 if is_known else None
        rebalances = row["rebalances_during"] + (row["rebalances_after"] or 0)
        if rebalances or row["unowned_s"]:
            unowned_s = -1.0 if row["unowned_s"] is None else row["unowned_s"]
            found.append((-rebalances, -unowned_s, *(row[name] for name in C.GROUP_KEY), row))
    return [each[-1] for each in sorted(found, key=lambda each: each[:-1])]


def totals(groups: pa.Table) -> Row:
    """Return sums over all groups, beyond a page's limits; null where no group has a value."""
    counts = ("rebalances", "logical_rebalances", "open_rebalances")
    known = ("moved", "interrupted", "restarted_in_place", "unowned_s")
    sums = {name: pc.sum(groups.column(name)).as_py() for name in (*counts, *known)}
    return {"groups": groups.num_rows, **sums, **{name: sums[name] or 0 for name in counts}}


def source_kinds(files: Iterable[Row]) -> list[Row]:
    """Return what was read of each kind of source.

    Input: source_files.
    Output: one row per trace and `kind`, by kind: `files`; the sums of `lines`, `parsed`, `known`,
    `unparsed`, `events`, `repeated`, and of `offsets`, `missing_offsets` and `skipped_bytes`, null
    for kinds without them; `problems`, of files that were not used, or not as a whole.
    """
    by_kind: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in files:
        by_kind[row["kind"], row[C.TRACE_ID]].append(row)
    return [
        {
            C.TRACE_ID: trace_id,
            "kind": kind,
            "files": len(rows),
            **{name: _sum(row[name] for row in rows) for name in _OF_FILES},
            "problems": sorted(
                f"{row['path']}: {row['problem']}" for row in rows if row["problem"]
            ),
        }
        for (kind, trace_id), rows in sorted(by_kind.items())
    ]


def reason_counts(reasons: Iterable[pa.Table]) -> dict[str, int]:
    """Return how many rebalances each reason began."""
    counts: Counter[str] = Counter()
    for part in reasons:
        for row in part.select(["reason", "count"]).to_pylist():
            counts[row["reason"]] += row["count"]
    return dict(counts)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _keys(table: pa.Table, key: Sequence[str] = C.GROUP_KEY) -> pa.ChunkedArray:
    """Return one text for each row's key; names of traces and clusters have no such separator."""
    return pc.binary_join_element_wise(*(table.column(name) for name in key), "\0")


def _sorted(table: pa.Table, order: Sequence[str]) -> pa.Table:
    if not order:
        return table
    keys = [
        (name.removeprefix("-"), "descending" if name.startswith("-") else "ascending")
        for name in order
    ]
    return table.take(pc.sort_indices(table, sort_keys=keys))
