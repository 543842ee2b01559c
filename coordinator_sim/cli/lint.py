"""`lint`: what in a consumer's or a Connect worker's settings causes rebalances, or is refused."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator_sim.cli.wording import counted
from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from coordinator_sim.clients.settings_advice import Advice
    from coordinator_sim.replay.findings import Finding

EXIT_FOUND: Final = 1
_MOST_RECORDS: Final = 100_000
_DAY_MS: Final = 86_400_000
_SELDOM_A_DAY: Final = 0.001
"""Removals of a member a day that are not worth a line."""
_SAFE: Final = 1e-6
"""Probability of a removal by one poll that the advice goes below."""
_SHOWN: Final = 5


class Kind(StrEnum):
    """Whose settings a file has."""

    CONSUMER = "consumer"
    CONNECT = "connect"


def lint(
    file: Annotated[
        Path,
        typer.Argument(
            help="Properties of a consumer, or of a distributed Connect worker.", metavar="FILE"
        ),
    ],
    processing_histogram: Annotated[
        Path | None,
        typer.Option(
            help="Times of processing a record: lines of MILLISECONDS COUNT.", metavar="FILE"
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(help="Say what a trace tells of the group, too.", metavar="TRACE"),
    ] = None,
    kind: Annotated[
        Kind | None,
        typer.Option(help="Whose properties they are; told by their names where it is not said."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of lines.")
    ] = False,
) -> None:
    """Say which settings cause rebalances, what follows, and what to set instead.

    The settings are a consumer's, or those of a Connect worker, with those of the consumers of
    its sink tasks behind consumer.

    With a histogram of processing times, the probability that a poll outlasts max.poll.interval.ms,
    so that the member is removed, is computed: of a poll of max.poll.records, one after another.

    Exit code 1 when something is found.

    Example: coordinator-sim lint client.properties --processing-histogram records.txt
    """
    import msgspec

    from coordinator_sim.clients.settings_advice import advise
    from coordinator_sim.connect.settings.worker_advice import (
        CONSUMER_PREFIX,
        advise_worker,
        is_worker,
        sink_settings,
    )
    from coordinator_sim.connect.settings.worker_config import parse_properties

    settings = parse_properties(file.read_text("utf-8", errors="replace"))
    of_worker = is_worker(settings) if kind is None else kind is Kind.CONNECT
    found = advise_worker(settings) if of_worker else advise(settings)
    if processing_histogram is not None:
        polling = sink_settings(settings) if of_worker else settings
        prefix = CONSUMER_PREFIX if of_worker else ""
        found += poll_advice(polling, processing_histogram, prefix)
    seen = [] if trace is None else findings_about(trace, settings.get("group.id"))
    if json:
        rows = {"advice": found, "trace": seen}
        typer.echo(msgspec.json.encode(rows).decode())
    else:
        for line in lines_of(file, found, seen):
            typer.echo(line)
    if found or seen:
        raise typer.Exit(EXIT_FOUND)


def poll_advice(settings: dict[str, str], histogram: Path, prefix: str = "") -> "list[Advice]":
    """What the time of a full poll means for max.poll.interval.ms; empty for nothing.

    Args:
        settings: A consumer's settings.
        histogram: The file of times.
        prefix: What is before a setting's name where the settings come from.

    Raises:
        ConfigError: max.poll.records is more than can be computed.
        DataError: the file is no histogram.
        OSError: it cannot be read.
    """
    from coordinator_sim.cli.poll_times import exceeds, read_histogram
    from coordinator_sim.clients.settings_advice import Advice, Weight, setting_ms

    times = read_histogram(histogram)
    records, limit_ms = (
        setting_ms(settings, name) for name in ("max.poll.records", "max.poll.interval.ms")
    )
    if not 1 <= records <= _MOST_RECORDS:
        raise ConfigError(
            f"{prefix}max.poll.records={records}: must be from 1 to {_MOST_RECORDS} for "
            "--processing-histogram"
        )
    chance = exceeds(times, records, limit_ms)
    mean_ms = records * times.mean_ms
    a_day = chance * _DAY_MS / mean_ms if mean_ms else 0.0
    if a_day < _SELDOM_A_DAY:
        return []
    what = (
        f"a poll of {records} records takes {mean_ms / 1000:.4g} s on average and outlasts it with "
        f"probability {chance:.3g}: a busy member is removed {a_day:.3g} times a day"
    )
    fewer = next((count for count in _fewer(records) if exceeds(times, count, limit_ms) < _SAFE), 1)
    value = settings.get("max.poll.interval.ms", f"({limit_ms})")
    change = f"set {prefix}max.poll.records={fewer}, or a longer interval"
    name = f"{prefix}max.poll.interval.ms"
    return [Advice(weight=Weight.WARNING, setting=name, value=value, what=what, change=change)]


def _fewer(records: int) -> list[int]:
    """Smaller numbers of records, each half of the one before."""
    return [records >> shift for shift in range(1, records.bit_length())]


def findings_about(trace: Path, group_id: str | None) -> "list[Finding]":
    """The costliest findings of a trace about the file's group, or about all.

    Raises:
        ConfigError: the trace has no such group.
        DataError: it is no trace.
    """
    from coordinator_sim.replay.causes import group_named
    from coordinator_sim.replay.savings import findings_in
    from coordinator_sim.runs.run_directory import read_run

    run = read_run(trace)
    events = list(run.events())
    if group_id is not None:
        group_named(group_id, dict.fromkeys(each.group_id for each in events if each.group_id))
        events = [each for each in events if each.group_id in {None, group_id}]
    return findings_in(events, run.info.source)[:_SHOWN]


def lines_of(file: Path, found: "list[Advice]", seen: "list[Finding]") -> list[str]:
    """The advice, a line each, and what the trace says."""
    lines = [
        f"{each.weight}: {each.setting}={each.value}: {each.what}; {each.change}" for each in found
    ]
    lines += [f"trace: {each.group_id}: {each.what} {each.change}" for each in seen]
    count = counted(len(found), "setting")
    return [*lines, f"{file}: {count} to look at" if found else f"{file}: nothing to change"]
