"""What computes a report: Spark, or DuckDB in this process where there is little to compute.

Both run the same statements, and the same pass over groups (`workers.group_tables`). A statement is
SQL that both understand; for what each writes in its own way it asks the `Dialect`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from msgspec import Struct

from coordinator_sim_reports.workers.group import RunFacts

Frame = Any
"""Rows of an engine that may not be computed yet: a data frame of Spark, or the name of a view."""
Row = dict[str, Any]
MakeBatches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class TraceFrames:
    """The tables of one or many traces.

    Args:
        runs: One row per trace with the content of its `run.json`.
        events: One row per event (offset events: per partition); columns of the trace schema.
        generations: One dense row per generation with assignments.
        dense_pieces: The same in one piece of bytes for each group (`PIECE_SCHEMA`).
        resources: One row per resource list.
        files: One row per file that an import read, with what of it was understood.
        skews: One row per pair of an import's sources, with how far their clocks are apart.
        facts: Facts of the runs by trace id, for the workers.
    """

    runs: Frame
    events: Frame
    generations: Frame
    dense_pieces: Frame
    resources: Frame
    files: Frame
    skews: Frame
    facts: Mapping[str, RunFacts]


class Dialect(Struct, frozen=True, kw_only=True):
    """Expressions that engines write each in its own way.

    Args:
        exploded: Rows of the items of a list, to be selected: list, names of position and item.
        item: Item of a list at a position from 0: list, position.
        struct: A struct of columns: their names.
        sorted_list: A sorted list of an expression over a group.
        distinct: How many values an expression has in a group, which fit in memory.
    """

    exploded: Callable[[str, str, str], str]
    item: Callable[[str, str], str]
    struct: Callable[[Iterable[str]], str]
    sorted_list: Callable[[str], str]
    distinct: Callable[[str], str]


class Pass(Protocol):
    """What one pass over groups made."""

    def table(self, name: str) -> Frame:
        """Return the rows of a table."""
        ...


class Engine(Protocol):
    """Computes and keeps tables."""

    dialect: Dialect

    def read(self) -> TraceFrames:
        """Return the tables of the traces."""
        ...

    def sql(self, statement: str, **frames: Frame) -> Frame:
        """Return the rows of a statement.

        Args:
            statement: A query, with `{name}` for each frame that it reads.
            frames: The frames by these names.
        """
        ...

    def listed(self, rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> Frame:
        """Return rows that are at hand as a frame."""
        ...

    def rows(self, frame: Frame) -> list[Row]:
        """Compute the rows of a frame."""
        ...

    def shared(self, frame: Frame) -> Frame:
        """Return a frame that is computed once, though several statements read it."""
        ...

    def register(self, name: str, function: Callable[[str, int | None], int]) -> None:
        """Let statements call a function."""
        ...

    def by_group(self, records: Frame, make: MakeBatches, schemas: Mapping[str, pa.Schema]) -> Pass:
        """Let a function make the rows of tables from records that come group by group.

        Args:
            records: Rows with a group's key and `ordinal`, by which they are sorted.
            make: See `workers.group_tables.group_batches`.
            schemas: Columns of the tables, by their names.
        """
        ...

    def keep(self, name: str, frame: Frame) -> Frame:
        """Write a table, and return it as read from its files."""
        ...

    def write(self, name: str, frame: Frame) -> Frame:
        """Write a table, and return it as it is, for one that is at hand anyway."""
        ...
