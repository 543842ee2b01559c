"""What `ingest` prints: totals, one row a file, and the lines it could not read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import typer

from coordinator_sim.cli.wording import counted
from coordinator_sim.ingest.files import LINE_LIMIT
from coordinator_sim.ingest.importing import Importing
from coordinator_sim.ingest.imports import Import, SegmentCounts
from coordinator_sim.ingest.kinds import Kind, topic_of
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.trace.events import Event

_PATTERNS_SHOWN: Final = 10
_VERSIONS_SHOWN: Final = 2
_HEADINGS: Final = ("lines", "parsed", "known", "unparsed", "groups", "rebalances", "kafka", "log")
_RECORD_HEADINGS: Final = (
    *("records", "parsed", "known", "unparsed", "groups", "generations", "coverage"),
    *("skipped", "segment"),
)
_SKIPS_SHOWN: Final = 5


def total_of(imports: list[Import]) -> IngestSummary:
    """The counts of all files together."""
    total = IngestSummary()
    for one in imports:
        total.add(one.summary)
    return total


def rebalances_in(summary: IngestSummary) -> int:
    """How many rebalances began, epochs of consumer groups included."""
    return sum(
        summary.by_event.get(event, 0) for event in (Event.PREPARE_REBALANCE, Event.EPOCH_BUMPED)
    )


def print_json(importing: Importing, out: Path | str, outside: dict[str, Any]) -> None:
    """One JSON object: the totals, the files, what could not be parsed, what lies outside."""
    files = importing.files
    total = total_of(files)
    document = {
        "out": str(out),
        "files": [_file_document(one) for one in files],
        "bad_files": [
            {"path": one.name, "problem": one.problem} for one in files if one.problem is not None
        ],
        "total": _counts(total),
        "by_event": {event.value: count for event, count in total.by_event.items()},
        "unparsed_patterns": total.unparsed_patterns,
        "other_topics": importing.other_topics,
        "known_files": importing.known_files,
        "told_by_another_source": {
            source.value: count for source, count in importing.left_out.items()
        },
        "skews": importing.skews,
        **outside,
    }
    typer.echo(msgspec.json.encode(document).decode())


def _file_document(one: Import) -> dict[str, object]:
    document: dict[str, object] = {
        "path": one.name,
        "kind": one.kind.value,
        "copy_of": one.copy_of,
        "notes": one.notes,
        **_counts(one.summary),
    }
    if one.segment is not None:
        segment = msgspec.to_builtins(one.segment, str_keys=True)
        document["segment"] = {
            **segment,
            "coverage": one.segment.coverage,
            "skipped_bytes": one.segment.skipped_bytes,
        }
    return document


def print_tables(importing: Importing, out: Path | str, *, is_appended: bool = False) -> None:
    """The same for a reader: a row per file, totals, unparsed lines by pattern."""
    files = importing.files
    total = total_of(files)
    texts = [one for one in files if one.kind is not Kind.SEGMENT]
    segments = [one for one in files if one.kind is Kind.SEGMENT]
    for headings, own, row in (
        (_HEADINGS, texts, _row),
        (_RECORD_HEADINGS, segments, _record_row),
    ):
        if own:
            _print_table(headings, own, row)
    _print_rest(texts)
    if total.unparsed:
        typer.echo("Not parsed, by pattern:")
        patterns = _patterns(files)
        ranked = sorted(patterns.items(), key=lambda entry: (-entry[1], entry[0]))
        for pattern, count in ranked[:_PATTERNS_SHOWN]:
            typer.echo(f"{count:>8}  {pattern}")
        typer.echo("")
    for line in (*_repeats(files), *_damages(segments), *_between_sources(importing)):
        typer.echo(line)
    _print_clocks(files, total)
    typer.echo(
        f"{counted(total.events, 'event')} {'appended' if is_appended else 'written'} to {out}"
    )


def _print_rest(texts: list[Import]) -> None:
    """The lines that no column counts, so that the counts add up to the lines."""
    total = total_of(texts)
    if total.other:
        typer.echo(f"{counted(total.other, 'line')} of other programs.")
    if total.continuations:
        typer.echo(f"{counted(total.continuations, 'line')} read with the line above.")
    if total.other or total.continuations:
        typer.echo("")


def _print_table(
    headings: tuple[str, ...], files: list[Import], row_of: Callable[[str, Import], tuple[str, ...]]
) -> None:
    """One row a file, and one of their sums."""
    paths = [one.path.absolute() for one in files]
    # Every partition has segments of the same names, so its folder is shown, too.
    folders = [path.parent if topic_of(path.parent.name) else path for path in paths]
    shown_from = _common_folder(folders)
    rows = [
        row_of(str(path.relative_to(shown_from)), one)
        for path, one in zip(paths, files, strict=True)
    ]
    if len(files) > 1:
        everything = Import(paths[0], files[0].kind, total_of(files))
        rows.append(row_of(f"{len(files)} files", everything))
    for line in _aligned([headings, *rows]):
        typer.echo(line)
    typer.echo("")


def _patterns(files: list[Import]) -> dict[str, int]:
    """What could not be read, by its kind: lines, and records of segments."""
    patterns = dict(total_of(files).unparsed_patterns)
    for one in files:
        for reason, count in ({} if one.segment is None else one.segment.unread).items():
            patterns[f"record: {reason}"] = patterns.get(f"record: {reason}", 0) + count
    return patterns


def _print_clocks(files: list[Import], total: IngestSummary) -> None:
    """Clocks that ran backwards, lines without a time, and lines that were cut."""
    if total.clock_regressions:
        typer.echo(
            f"Times run backwards at {counted(total.clock_regressions, 'line')}; "
            "line order was kept."
        )
        for name, number, back_us in _set_backs(files)[:_PATTERNS_SHOWN]:
            typer.echo(
                f"  {name}, line {number}: the clock goes back by {_shown(back_us)}; the times "
                "after it count on. If summer time ended there, name the brokers' zone with --tz."
            )
    without = [one for one in files if 0 < one.summary.events == one.summary.timeless]
    for one in without:
        typer.echo(
            f"{one.name}: no line has a time that can be read, so its events are at 1970-01-01; "
            "export it with a date and a time in each line."
        )
    timeless = total.timeless - sum(one.summary.timeless for one in without)
    if timeless:
        typer.echo(
            f"{counted(timeless, 'event')} without a time of {'its' if timeless == 1 else 'their'} "
            "own, placed at the line before."
        )
    if total.cut_lines:
        typer.echo(
            f"{counted(total.cut_lines, 'line')} longer than {LINE_LIMIT // 1_000_000} MB, "
            "and cut there."
        )


def _damages(segments: list[Import]) -> list[str]:
    """A line for each stretch of a segment that holds no good batch, and for what has no end."""
    lines = []
    for one in segments:
        counts = one.segment or SegmentCounts()
        for part in counts.skipped[:_SKIPS_SHOWN]:
            what = "a batch of " if part.is_batch else ""
            lines.append(
                f"{one.name}: {what}{part.size} bytes at {part.position} left out: {part.reason}."
            )
        more = counts.skipped[_SKIPS_SHOWN:]
        if more:
            size = sum(part.size for part in more)
            lines.append(f"{one.name}: {len(more)} further stretches left out, {size} bytes.")
        if counts.unfinished:
            lines.append(
                f"{one.name}: {counted(counts.unfinished, 'commit')} of transactions that do not "
                "end in these segments left out."
            )
    return lines


def _between_sources(importing: Importing) -> list[str]:
    """Lines on facts that several sources have, clock skews, and files left out."""
    lines = [
        f"{counted(count, 'fact')} of {source.value} told by another source, too; counted once."
        for source, count in importing.left_out.items()
    ]
    lines.extend(
        f"Clocks: {skew.second.value} is {abs(skew.median_us) / 1_000:.3f} ms "
        f"{'before' if skew.median_us < 0 else 'after'} {skew.first.value} (median of "
        f"{skew.facts} facts that both tell; none is more than {skew.widest_us / 1_000:.3f} ms "
        "from it)."
        for skew in importing.skews
    )
    if importing.known_files:
        lines.append(f"{counted(importing.known_files, 'file')} read before; counted once.")
    if importing.other_topics:
        lines.append(f"{counted(importing.other_topics, 'segment')} of other topics left out.")
    for one in importing.files:
        lines.extend(f"{one.name}: {note}" for note in one.notes)
    return lines


def _repeats(imports: list[Import]) -> list[str]:
    """A line for each log that another one repeats, whole or in part."""
    lines = []
    for one in imports:
        if one.copy_of is not None:
            lines.append(f"{one.name}: a copy of {one.copy_of}; counted once.")
        elif one.summary.repeated:
            lines.append(
                f"{one.name}: {counted(one.summary.repeated, 'event')} in other logs, too; "
                "counted once."
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


def _row(name: str, one: Import) -> tuple[str, ...]:
    summary = one.summary
    counts = (
        *(summary.lines, summary.parsed, summary.known, summary.unparsed),
        *(len(summary.groups), rebalances_in(summary)),
    )
    versions = summary.version_ranges
    shown = ", ".join(versions) if len(versions) <= _VERSIONS_SHOWN else "several"
    return (*map(str, counts), shown or "unknown", name)


def _record_row(name: str, one: Import) -> tuple[str, ...]:
    summary = one.summary
    generations = sum(
        summary.by_event.get(event, 0)
        for event in (Event.JOIN_COMPLETE, Event.GROUP_EMPTY, Event.TARGET_COMPUTED)
    )
    counts = (
        *(summary.lines, summary.parsed, summary.known, summary.unparsed),
        *(len(summary.groups), generations),
    )
    coverage = None if one.segment is None else one.segment.coverage
    shown = "-" if coverage is None else f"{100 * coverage:.1f} %"
    skipped = "-" if one.segment is None else f"{one.segment.skipped_bytes} B"
    return (*map(str, counts), shown, skipped, name)


def _counts(summary: IngestSummary) -> dict[str, object]:
    return {
        "lines": summary.lines,
        "parsed": summary.parsed,
        "known": summary.known,
        "unparsed": summary.unparsed,
        "other": summary.other,
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
