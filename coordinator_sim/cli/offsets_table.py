"""What `log offsets` prints: the last committed offsets, and what the segments hold."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import typer

from coordinator_sim.cli.wording import counted
from coordinator_sim.trace.window import clock

if TYPE_CHECKING:
    from coordinator_sim.disk.last_offsets import LastOffsets, SegmentReport

_WHOLE: Final = 0.99
"""Coverage below which commits were compacted away, or lost."""
_YEAR_10000_MS: Final = 253_402_300_800_000
_SHOWN_DAMAGE: Final = 20


def print_offsets(read: "LastOffsets", copies: Sequence[str], *, written: str | None) -> None:
    """Print tables of offsets and of segments, and what was left out.

    Args:
        read: What the segments say.
        copies: Folders that were left out as other brokers' replicas.
        written: Where Parquet tables were written; None to print the offsets.
    """
    kept = [row for row in read.commits if not row.is_deleted]
    if written is None and kept:
        rows = [
            (
                row.key.group,
                row.key.topic,
                str(row.key.partition),
                str(row.offset),
                _instant(row.commit_timestamp_ms),
                str(row.commit_count),
            )
            for row in kept
        ]
        _print_table(("group", "topic", "partition", "offset", "committed", "commits"), rows, 2)
        typer.echo("")
    segments = [_segment_row(segment) for segment in read.segments]
    names = ("segment", "records", "commits", "offsets", "coverage", "skipped")
    _print_table(names, segments, 1)
    typer.echo("")
    groups = len({row.key.group for row in kept})
    typer.echo(f"{counted(len(kept), 'offset')} of {counted(groups, 'group')}{_without(read)}")
    if written is not None:
        typer.echo(f"tables: {written}")
    for line in _notes(read, copies):
        typer.echo(line)


def print_offsets_json(read: "LastOffsets", copies: Sequence[str]) -> None:
    """Print one JSON object: deleted offsets too, times in milliseconds."""
    shown = {
        "offsets": [
            {
                "group": row.key.group,
                "topic": row.key.topic,
                "partition": row.key.partition,
                "offset": None if row.is_deleted else row.offset,
                "leader_epoch": row.leader_epoch,
                "metadata": row.metadata,
                "commit_timestamp_ms": row.commit_timestamp_ms,
                "expire_timestamp_ms": row.expire_timestamp_ms,
                "record_timestamp_ms": row.timestamp_ms,
                "log_offset": row.log_offset,
                "commits": row.commit_count,
            }
            for row in read.commits
        ],
        "segments": [_segment_json(segment) for segment in read.segments],
        "open_transaction_records": read.open_count,
        "copies_left_out": list(copies),
    }
    typer.echo(msgspec.json.encode(shown).decode())


def _segment_json(segment: "SegmentReport") -> dict[str, Any]:
    facts = segment.facts
    return {
        "path": segment.path,
        "bytes": facts.size,
        "records": facts.record_count,
        "commits": facts.commit_count,
        "first_offset": facts.first_offset,
        "last_offset": facts.last_offset,
        "coverage": facts.coverage,
        "damaged_places": facts.damage_count,
        "skipped_bytes": facts.skipped_bytes,
        "damage": [
            {
                "position": damage.position,
                "bytes": damage.invalid_bytes,
                "reason": damage.reason,
            }
            for damage in facts.damage
        ],
    }


def _segment_row(segment: "SegmentReport") -> tuple[str, ...]:
    facts = segment.facts
    coverage = facts.coverage
    return (
        segment.path,
        str(facts.record_count),
        str(facts.commit_count),
        "-" if coverage is None else f"{facts.first_offset}..{facts.last_offset}",
        "-" if coverage is None else f"{coverage:.1%}",
        f"{facts.skipped_bytes} B" if facts.damage_count else "-",
    )


def _without(read: "LastOffsets") -> str:
    """What the number of offsets does not count."""
    deleted = sum(row.is_deleted for row in read.commits)
    return f"; {deleted} more deleted" if deleted else ""


def _notes(read: "LastOffsets", copies: Sequence[str]) -> list[str]:
    notes = [
        f"left out, another folder of its partition reaches further: {name}" for name in copies
    ]
    if read.open_count:
        notes.append(
            f"{counted(read.open_count, 'record')} of transactions that do not end in these "
            "segments: not counted"
        )
    if any((segment.facts.coverage or 1.0) < _WHOLE for segment in read.segments):
        notes.append(
            "coverage below 99%: offsets without a record were compacted away or skipped, so there "
            "were more commits than are counted"
        )
    places = [
        f"damaged: {segment.path}, byte {damage.position}: {damage.reason}"
        + (f"; {damage.invalid_bytes} bytes skipped" if damage.invalid_bytes else "; it is skipped")
        for segment in read.segments
        for damage in segment.facts.damage
    ]
    count = sum(segment.facts.damage_count for segment in read.segments)
    notes += places[:_SHOWN_DAMAGE]
    if count > _SHOWN_DAMAGE:
        notes.append(f"{count - _SHOWN_DAMAGE} more damaged places; --json lists 100 of a segment")
    return notes


def _instant(at_ms: int) -> str:
    """A time that a commit says, which may be anything."""
    return clock(at_ms) if 0 <= at_ms < _YEAR_10000_MS else f"{at_ms} ms"


def _print_table(names: Sequence[str], rows: Sequence[tuple[str, ...]], left: int) -> None:
    """Print rows below their names; that many first columns are aligned to the left."""
    table = [tuple(names), *rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        typer.echo("  ".join(cells).rstrip())
