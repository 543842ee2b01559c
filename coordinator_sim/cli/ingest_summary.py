"""What `ingest` prints: totals, one row a file, and the lines it could not read."""

from pathlib import Path
from typing import Final

import msgspec
import typer

from coordinator_sim.cli.imports import Import
from coordinator_sim.cli.log_files import LINE_LIMIT
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.trace.events import Event

_PATTERNS_SHOWN: Final = 10
_VERSIONS_SHOWN: Final = 2
_HEADINGS: Final = ("lines", "parsed", "known", "unparsed", "groups", "rebalances", "kafka", "log")


def total_of(imports: list[Import]) -> IngestSummary:
    """The counts of all files together."""
    total = IngestSummary()
    for one in imports:
        total.add(one.summary)
    return total


def rebalances_in(summary: IngestSummary) -> int:
    """How many rebalances began."""
    return summary.by_event.get(Event.PREPARE_REBALANCE, 0)


def print_json(imports: list[Import], out: Path) -> None:
    """One JSON object: the totals, the files, and what could not be parsed."""
    total = total_of(imports)
    document = {
        "out": str(out),
        "files": [
            {"path": str(one.path), "copy_of": one.copy_of, **_counts(one.summary)}
            for one in imports
        ],
        "bad_files": [
            {"path": str(one.path), "problem": one.problem}
            for one in imports
            if one.problem is not None
        ],
        "total": _counts(total),
        "by_event": {event.value: count for event, count in total.by_event.items()},
        "unparsed_patterns": total.unparsed_patterns,
    }
    typer.echo(msgspec.json.encode(document).decode())


def print_tables(imports: list[Import], out: Path) -> None:
    """The same for a reader: a row per file, totals, unparsed lines by pattern."""
    total = total_of(imports)
    paths = [one.path.absolute() for one in imports]
    shown_from = _common_folder(paths)
    rows = [
        _row(str(path.relative_to(shown_from)), one.summary)
        for path, one in zip(paths, imports, strict=True)
    ]
    if len(imports) > 1:
        rows.append(_row(f"{len(imports)} files", total))
    for line in _aligned([_HEADINGS, *rows]):
        typer.echo(line)
    typer.echo("")
    if total.unparsed:
        typer.echo("Not parsed, by pattern:")
        ranked = sorted(total.unparsed_patterns.items(), key=lambda entry: (-entry[1], entry[0]))
        for pattern, count in ranked[:_PATTERNS_SHOWN]:
            typer.echo(f"{count:>8}  {pattern}")
        typer.echo("")
    for line in _repeats(imports):
        typer.echo(line)
    if total.clock_regressions:
        typer.echo(f"Times run backwards at {total.clock_regressions} lines; line order was kept.")
        for name, number, back_us in _set_backs(imports)[:_PATTERNS_SHOWN]:
            typer.echo(
                f"  {name}, line {number}: the clock goes back by {_shown(back_us)}; the times "
                "after it count on. If summer time ended there, name the brokers' zone with --tz."
            )
    if total.timeless:
        typer.echo(
            f"{total.timeless} events have no time of their own, but that of the line before."
        )
    if total.cut_lines:
        typer.echo(
            f"{total.cut_lines} lines are longer than {LINE_LIMIT // 1_000_000} MB; the rest of "
            "each was left out."
        )
    typer.echo(f"{total.events} events written to {out}")


def _repeats(imports: list[Import]) -> list[str]:
    """A line for each log that another one repeats, whole or in part."""
    lines = []
    for one in imports:
        if one.copy_of is not None:
            lines.append(f"{one.path}: a copy of {one.copy_of}; counted once.")
        elif one.summary.repeated:
            lines.append(
                f"{one.path}: {one.summary.repeated} events are in other logs, too; counted once."
            )
    return lines


def _set_backs(imports: list[Import]) -> list[tuple[str, int, int]]:
    """File, line and microseconds of every clock that was set back."""
    return [
        (one.path.name, line, back_us)
        for one in imports
        for line, back_us in one.summary.set_backs.items()
    ]


def _shown(duration_us: int) -> str:
    """Hours, minutes and seconds."""
    seconds = round(duration_us / 1_000_000)
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _common_folder(paths: list[Path]) -> Path:
    """What all absolute paths begin with, so that the table need not repeat it."""
    folder = paths[0].parent
    while not all(path.is_relative_to(folder) for path in paths):
        folder = folder.parent
    return folder


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [
                *(cell.rjust(width) for cell, width in zip(row[:-2], widths, strict=False)),
                row[-2].ljust(widths[-2]),
                row[-1],
            ]
        )
        for row in rows
    ]


def _row(name: str, summary: IngestSummary) -> tuple[str, ...]:
    counts = (
        *(summary.lines, summary.parsed, summary.known, summary.unparsed),
        *(len(summary.groups), rebalances_in(summary)),
    )
    versions = summary.version_ranges
    shown = ", ".join(versions) if len(versions) <= _VERSIONS_SHOWN else "several"
    return (*map(str, counts), shown or "unknown", name)


def _counts(summary: IngestSummary) -> dict[str, object]:
    return {
        "lines": summary.lines,
        "parsed": summary.parsed,
        "known": summary.known,
        "unparsed": summary.unparsed,
        "continuations": summary.continuations,
        "clock_regressions": summary.clock_regressions,
        "set_back_lines": list(summary.set_backs),
        "timeless": summary.timeless,
        "repeated": summary.repeated,
        "cut_lines": summary.cut_lines,
        "events": summary.events,
        "groups": len(summary.groups),
        "rebalances": rebalances_in(summary),
        "kafka_versions": list(summary.version_ranges),
        "layouts": summary.by_layout,
    }
