"""`lint`: what in a consumer's or a Connect worker's settings causes rebalances, or is refused."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator_sim.cli.window import ANY_TIME, WindowOptions, takes_window, window_in
from coordinator_sim.cli.wording import counted
from coordinator_sim.clients.client_kind import ClientKind
from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from coordinator_sim.cli.printed_advice import PrintedAdvice
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
NOT_PRINTED: Final = (
    "clients and workers print them at their start (ConsumerConfig values:); ingest their logs, too"
)


@takes_window
def lint(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Settings of a consumer, of Kafka Streams, or of a distributed Connect worker.",
            metavar="[FILE]",
        ),
    ] = None,
    processing_histogram: Annotated[
        Path | None,
        typer.Option(
            help="Times of processing a record: lines of MILLISECONDS COUNT.", metavar="FILE"
        ),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            help="Say what a trace tells of the group, and judge the settings that clients and "
            "workers printed in its logs.",
            metavar="TRACE",
        ),
    ] = None,
    kind: Annotated[
        ClientKind | None,
        typer.Option(help="Whose settings they are, instead of what their names tell."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of lines.")
    ] = False,
    window_options: WindowOptions = ANY_TIME,
) -> None:
    """Say which settings cause rebalances, what follows, and what to set instead.

    The settings are a consumer's, those of a Kafka Streams application, or those of a Connect
    worker, with those of the consumers of its sink tasks behind consumer. They may be written as
    properties, as Spring Boot's, or as variables of a container.

    With a histogram of processing times, the probability that a poll outlasts max.poll.interval.ms,
    so that the member is removed, is computed: of a poll of max.poll.records, one after another.

    Without a file, the settings are those that a trace has from the logs of clients. In a window of
    time, those in force then are judged.

    Exit code 1 when something is found.

    Example: coordinator-sim lint client.properties --processing-histogram records.txt
    """
    import msgspec

    if trace is None and window_options.by_name:
        raise ConfigError(f"{' '.join(window_options.words)}: of which trace? add --trace TRACE")
    if file is None and trace is None:
        raise ConfigError("no settings: name their FILE, or --trace TRACE for those of its logs")
    if file is None and (kind is not None or processing_histogram is not None):
        raise ConfigError("--kind and --processing-histogram are about a FILE: name it")
    found, group_id = ([], None) if file is None else file_advice(file, kind, processing_histogram)
    printed, seen = (None, []) if trace is None else told_by(trace, group_id, window_options)
    if json:
        rows = {"advice": found, "printed": printed or [], "trace": seen}
        typer.echo(msgspec.json.encode(rows).decode())
    else:
        for line in lines_of(file, trace, found, printed, seen):
            typer.echo(line)
    if found or printed or seen:
        raise typer.Exit(EXIT_FOUND)


def file_advice(
    file: Path, kind: ClientKind | None, histogram: Path | None
) -> "tuple[list[Advice], str | None]":
    """What should be changed in a file of settings, and its group.

    Args:
        file: The file.
        kind: Whose settings they are; None for what their names tell.
        histogram: A file of processing times; None for none.
    """
    from msgspec.structs import replace

    from coordinator_sim.cli.settings_files import read_settings

    read = read_settings(file)
    kind = kind or read.kind
    found = advice_for(kind, read.settings)
    if histogram is not None:
        found += poll_advice(kind, read.settings, histogram)
    found = [replace(each, written=read.written.get(each.setting, "")) for each in found]
    return found, read.settings.get("group.id")


def advice_for(kind: ClientKind, settings: dict[str, str]) -> "list[Advice]":
    """What should be changed in the settings of a client of this kind."""
    from coordinator_sim.clients.settings_advice import advise
    from coordinator_sim.clients.streams_advice import advise_streams
    from coordinator_sim.connect.settings.worker_advice import advise_sinks, advise_worker

    advisers = {
        ClientKind.CONSUMER: advise,
        ClientKind.STREAMS: advise_streams,
        ClientKind.CONNECT: advise_worker,
        ClientKind.SINK: advise_sinks,
    }
    return advisers[kind](settings)


def poll_advice(kind: ClientKind, settings: dict[str, str], histogram: Path) -> "list[Advice]":
    """What the time of a full poll means for max.poll.interval.ms; empty for nothing.

    Args:
        kind: Whose settings they are: a worker's are those of its sink tasks' consumers.
        settings: All settings.
        histogram: The file of times.

    Raises:
        ConfigError: max.poll.records is more than can be computed.
        DataError: the file is no histogram.
        OSError: it cannot be read.
    """
    from coordinator_sim.cli.poll_times import exceeds, read_histogram
    from coordinator_sim.clients.settings_advice import Advice, Weight, setting_ms
    from coordinator_sim.clients.streams_advice import main_consumer
    from coordinator_sim.connect.settings.worker_advice import CONSUMER_PREFIX, sink_settings

    prefix = ""
    if kind is ClientKind.CONNECT:
        settings, prefix = sink_settings(settings), CONSUMER_PREFIX
    elif kind is ClientKind.STREAMS:
        settings = {"max.poll.records": "1000", **main_consumer(settings)[0]}
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


def told_by(
    trace: Path, group_id: str | None, window_options: WindowOptions
) -> "tuple[list[PrintedAdvice] | None, list[Finding]]":
    """Return the printed settings to change and the costliest findings, of a group or of all.

    Raises:
        ConfigError: the trace has no such group, or nothing in the window.
        DataError: it is no trace.
    """
    from coordinator_sim.cli.printed_advice import printed_advice
    from coordinator_sim.replay.causes import group_named
    from coordinator_sim.replay.savings import findings_in
    from coordinator_sim.runs.run_directory import read_run

    run = read_run(trace)
    events = list(run.events())
    if group_id is not None:
        group_named(group_id, dict.fromkeys(each.group_id for each in events if each.group_id))
        events = [each for each in events if each.group_id in {None, group_id}]
    window = window_in(run.info, window_options)
    findings = findings_in(events, run.info.source, window=window)[:_SHOWN]
    return printed_advice(events, window), findings


def lines_of(
    file: Path | None,
    trace: Path | None,
    found: "list[Advice]",
    printed: "list[PrintedAdvice] | None",
    seen: "list[Finding]",
) -> list[str]:
    """The advice, a line each, what was printed, and what the trace says."""
    from coordinator_sim.trace.printed_settings import named

    lines = [line_of(each, each.written) for each in found]
    lines += [
        f"{each.group_id}: {line_of(each.advice, f'{each.how} {named(each.clients)}')}"
        for each in printed or ()
    ]
    lines += [f"trace: {each.group_id}: {each.what} {each.change}" for each in seen]
    if file is None and printed is None:
        return [*lines, f"{trace} has no printed settings: {NOT_PRINTED}"]
    count = counted(len(found) + len(printed or ()), "setting")
    judged = file or trace
    is_any = found or printed
    return [*lines, f"{judged}: {count} to look at" if is_any else f"{judged}: nothing to change"]


def line_of(advice: "Advice", where: str) -> str:
    """Return advice in a line, with where the setting stands."""
    place = f" ({where})" if where else ""
    value = f"{advice.setting}={advice.value}{place}"
    return f"{advice.weight}: {value}: {advice.what}; {advice.change}"
