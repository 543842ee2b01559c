"""`explain` without a group: the groups of a trace, worst first, and what to type next."""

import shlex
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import typer
from msgspec import Struct

from coordinator_sim.cli.wording import duration
from coordinator_sim.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Collection

    from coordinator_sim.replay.causes import GroupStory
    from coordinator_sim.replay.client_view import ClientView

_LISTED: Final = 30
_SETTLED: Final = frozenset({"STABLE", "EMPTY"})


class GroupLine(Struct, frozen=True, kw_only=True):
    """One group of the list.

    Args:
        group_id: The group.
        rebalances: Its rebalances in the trace.
        unsettled: How many of these reached neither Stable nor Empty in the trace.
        rebalancing_ms: The time they took together, as far as the trace tells their ends; None
            where it tells both the start and the end of none.
        reason: The most frequent reason; empty without rebalances.
    """

    group_id: str
    rebalances: int
    unsettled: int
    rebalancing_ms: int | None
    reason: str


def worst_first(stories: "list[GroupStory]") -> list[GroupLine]:
    """A line a group: most rebalances first, then most time in them, then by name."""
    lines = [
        GroupLine(
            group_id=story.group_id,
            rebalances=len(story.rebalances),
            unsettled=sum(n for name, n in story.outcomes.items() if name not in _SETTLED),
            rebalancing_ms=story.rebalancing_ms if _is_timed(story) else None,
            reason=next(iter(story.reasons), ""),
        )
        for story in stories
    ]
    return sorted(
        lines, key=lambda line: (-line.rebalances, -(line.rebalancing_ms or 0), line.group_id)
    )


def _is_timed(story: "GroupStory") -> bool:
    """Whether the trace tells how long a rebalance took, or that there was none."""
    return not story.rebalances or story.open_count < len(story.rebalances)


def print_groups(
    trace: Path,
    stories: "list[GroupStory]",
    views: "list[ClientView]",
    words: list[str],
    *,
    seen: "Collection[str]",
    more: "dict[str, Any] | None",
) -> None:
    """Print the groups and the command that explains the worst one.

    Args:
        trace: The directory, as it was named.
        stories: One a group.
        views: Clients of groups without a coordinator's log.
        words: The options for the window, for the next command.
        seen: Groups that snapshots show.
        more: What a JSON object of all groups has besides; None to print a table.

    Raises:
        DataError: The trace has no group.
    """
    lines = worst_first(stories)
    alone = Counter(view.group_id for view in views)
    if not lines and not alone and not seen:
        raise DataError(f"{trace} tells of no group; ingest a log of its group coordinator")
    if more is not None:
        document = {"groups": lines, "told_by_clients": alone, **more}
        document |= {"snapshots": [*seen]} if seen else {}
        typer.echo(msgspec.json.encode(document).decode())
        return
    if alone:
        typer.echo(f"Told by clients alone, without their coordinator: {', '.join(alone)}")
    if seen:
        typer.echo(f"Seen by kafka-consumer-groups: {', '.join(seen)}")
    if not lines:
        first = [*alone, *seen][:1]
        typer.echo(f"Next: {shlex.join(['coordinator-sim', 'explain', str(trace), *first])}")
        return
    for row in _table(lines[:_LISTED]):
        typer.echo(row)
    typer.echo("")
    if len(lines) > _LISTED:
        typer.echo(
            f"The {_LISTED} groups with most rebalances of {len(lines)}; --json lists them all."
        )
    command = shlex.join(["coordinator-sim", "explain", str(trace), lines[0].group_id, *words])
    typer.echo(f"Next: {command}")


def _table(lines: list[GroupLine]) -> list[str]:
    rows = [("rebalances", "unsettled", "rebalancing for", "mostly", "group")]
    rows += [
        (
            str(line.rebalances),
            str(line.unsettled),
            "not known" if line.rebalancing_ms is None else duration(line.rebalancing_ms),
            line.reason or "-",
            line.group_id,
        )
        for line in lines
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [
                *(cell.rjust(width) for cell, width in zip(row[:3], widths, strict=False)),
                row[3].ljust(widths[3]),
                row[4],
            ]
        )
        for row in rows
    ]
