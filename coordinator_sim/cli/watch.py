"""`watch`: follow the groups of a running cluster, and tell of each rebalance as it happens."""

import contextlib
import hashlib
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator_sim import __version__
from coordinator_sim.cli.explain import course, generations, shortened
from coordinator_sim.cli.member import MAX_PORT, parse_bootstrap
from coordinator_sim.cli.wording import counted
from coordinator_sim.errors import ConfigError, needing
from coordinator_sim.listening import LOOPBACK
from coordinator_sim.trace.events import Event, RunInfo, Source
from coordinator_sim.trace.window import clock

if TYPE_CHECKING:
    from coordinator_sim.cli.watch_page import WatchPage
    from coordinator_sim.live.cluster_watch import ClusterWatch
    from coordinator_sim.live.watch_outlets import Webhook
    from coordinator_sim.live.watching import Ended, Watching
    from coordinator_sim.trace.events import TraceEvent

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


BootstrapOption = Annotated[
    str,
    typer.Option(
        "--bootstrap", "--bootstrap-server", help="Brokers to begin with.", metavar="HOST:PORT,..."
    ),
]
GroupOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Only these groups, as orders or 'orders-*'; may be repeated.", metavar="NAME"
    ),
]
ConfigOption = Annotated[
    Path | None, typer.Option(help="A client's properties, for TLS and SASL.", metavar="FILE")
]
OutOption = Annotated[
    Path, typer.Option(help="Folder of traces; this one is the next number.", metavar="DIR")
]
ForOption = Annotated[
    str, typer.Option("--for", help="End after so long, as 10m; else on Ctrl-C.", metavar="LENGTH")
]
FromEndOption = Annotated[
    bool,
    typer.Option("--from-end", help="Do not read what the log holds of the time before."),
]
RequestsOption = Annotated[
    float,
    typer.Option(
        min=0.1,
        max=1000,
        help="Requests a second for states and ends, at most.",
        metavar="NUMBER",
    ),
]
LagOption = Annotated[
    int, typer.Option(min=1, help="A lag of fewer records is never shown.", metavar="RECORDS")
]
CommitsOption = Annotated[
    bool, typer.Option("--commits", help="Keep commits in the trace too, which grows by them.")
]
MetricsOption = Annotated[
    str,
    typer.Option(
        help="Show the live page, and answer GET /metrics for Prometheus, here.",
        metavar="[HOST:]PORT",
    ),
]
WebhookOption = Annotated[
    str,
    typer.Option(help="Post each rebalance as JSON {text}, as Slack takes it.", metavar="URL"),
]


def watch(
    bootstrap: BootstrapOption,
    group: GroupOption = None,
    command_config: ConfigOption = None,
    out: OutOption = Path("watch"),
    for_: ForOption = "",
    from_end: FromEndOption = False,
    requests: RequestsOption = 2.0,
    lag: LagOption = 1_000,
    commits: CommitsOption = False,
    metrics: MetricsOption = "",
    webhook: WebhookOption = "",
) -> None:
    """Follow the groups of a running cluster, read-only, and tell of each rebalance in two lines.

    It joins no group and commits nothing. The trace is kept in a run directory for findings,
    explain, replay and report; Ctrl-C, SIGTERM or a kill leave what was written.

    Example: coordinator-sim watch --bootstrap localhost:9092 --group 'orders-*'
    """
    with needing("live", "watching a cluster"):
        from coordinator_sim.live import watch_outlets  # noqa: F401 - opened when all is checked
        from coordinator_sim.live.cluster_watch import Audience, ClusterWatch, WatchOptions
    from coordinator_sim.live.watching import Watching
    from coordinator_sim.runs.run_directory import RunDirectoryWriter, holds_trace, next_run
    from coordinator_sim.sim.scenario.lengths import parse_length

    parse_bootstrap(bootstrap)  # Refuses what is no address.
    end_s = parse_length("--for", for_, low_ms=1) / 1000 if for_ else None
    _check_outlets(metrics, webhook)
    if holds_trace(out):
        raise ConfigError(f"--out {out} is a trace: name a folder, in which traces are numbered")
    options = WatchOptions(
        bootstrap=bootstrap,
        settings={} if command_config is None else _settings(command_config),
        from_end=from_end,
        requests_per_s=requests,
    )
    watching = Watching(group or (), least_lag=lag)
    terminal = _Terminal(with_commits=commits)
    audience = Audience(terminal.line, terminal.ended, terminal.event, terminal.checkpoint)
    running = ClusterWatch(options, watching, audience)
    with contextlib.ExitStack() as closing:
        is_over = closing.enter_context(contextlib.closing(_Ending(end_s)))
        cluster_id = running.connect(is_over)
        with next_run(out) as run:
            pass  # The link to the newest run is made now: a kill leaves it.
        info = _info(cluster_id, bootstrap, run)
        terminal.writer = closing.enter_context(RunDirectoryWriter(run, info, format="jsonl"))
        terminal.checkpoint()
        exposition = _Exposition(running, watching, terminal)
        _open_outlets(closing, terminal, exposition, bootstrap, metrics, webhook)
        running.run(is_over)
    _tell_end(terminal, watching, run)


def _check_outlets(metrics: str, webhook: str) -> None:
    from coordinator_sim.live.watch_outlets import is_web_address

    if metrics:
        _address(metrics)
    if webhook and not is_web_address(webhook):
        raise ConfigError(f"--webhook {webhook!r}: wants a URL, as https://hooks.example.com/x")


def _open_outlets(
    closing: contextlib.ExitStack,
    terminal: "_Terminal",
    exposition: "_Exposition",
    bootstrap: str,
    metrics: str,
    webhook: str,
) -> None:
    """Open what was asked for besides the terminal."""
    from coordinator_sim.cli.watch_page import WatchPage
    from coordinator_sim.live.watch_outlets import WatchServer, Webhook

    if webhook:
        terminal.webhook = Webhook(
            webhook, lambda why: terminal.line(f"--webhook failed: {why}; later lines are tried")
        )
        closing.callback(terminal.webhook.close)
    if metrics:
        host, port = _address(metrics)
        terminal.page = WatchPage(exposition.watching, exposition.running.lock, bootstrap)
        try:
            server = WatchServer(host, port, exposition, terminal.page.answer, terminal.page.stream)
        except OSError as error:
            raise ConfigError(f"--metrics {metrics}: {error.strerror}; name another") from None
        closing.callback(server.close)
        if host in LOOPBACK:
            terminal.line(f"page: http://{host}:{server.port}/")
        terminal.line(f"metrics: http://{host}:{server.port}/metrics")


def _address(text: str) -> tuple[str, int]:
    from coordinator_sim.kafka.java_numbers import java_int

    host, _, port_text = text.rpartition(":")
    port = java_int(port_text)
    if port is None or not 0 <= port <= MAX_PORT:
        raise ConfigError(f"--metrics {text!r}: wants [HOST:]PORT with a port up to {MAX_PORT}")
    return host or "127.0.0.1", port


def _settings(file: Path) -> dict[str, str]:
    from coordinator_sim.cli.serve_security import text_of
    from coordinator_sim.connect.settings.worker_config import parse_properties

    return parse_properties(text_of(file))


def _info(cluster_id: str, bootstrap: str, run: Path) -> RunInfo:
    text = f"{cluster_id} {bootstrap} {run.resolve()} {time.time_ns()}"
    return RunInfo(
        trace_id=hashlib.sha256(text.encode()).hexdigest()[:32],
        source=Source.OFFSETS_TOPIC,
        cluster_id=cluster_id or "cluster",
        version=__version__,
        profile="ingested",
        options={"tz": "UTC"},
    )


class _Ending:
    """Whether the watch is over: by a signal, or by its time."""

    def __init__(self, after_s: float | None) -> None:
        self._end_s = None if after_s is None else time.monotonic() + after_s
        self._is_over = False
        self._before = {number: signal.signal(number, self._tell) for number in _SIGNALS}

    def __call__(self) -> bool:
        return self._is_over or (self._end_s is not None and time.monotonic() >= self._end_s)

    def close(self) -> None:
        """Leave signals to whoever had them before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _tell(self, *_: object) -> None:
        self._is_over = True


class _Terminal:
    """Prints what happens, and passes it on to the trace and the webhook."""

    def __init__(self, *, with_commits: bool) -> None:
        from coordinator_sim.runs.run_directory import RunDirectoryWriter

        self.writer: RunDirectoryWriter | None = None
        self.webhook: Webhook | None = None
        self.page: WatchPage | None = None
        self.rebalances = 0
        self._with_commits = with_commits

    def line(self, text: str) -> None:
        """Print a line with the time."""
        typer.echo(f"{clock(time.time_ns() // 1_000_000)}  {text}")

    def ended(self, ended: "Ended") -> None:
        """Print a rebalance, and post it."""
        self.rebalances += 1
        first, second = rebalance_lines(ended)
        typer.echo(f"{clock(ended.at_us // 1000)}  {first}\n    {second}")
        if self.webhook is not None:
            self.webhook.post(f"{first}; {second}")

    def event(self, event: "TraceEvent") -> None:
        """Write an event."""
        if self.page is not None:
            self.page.take(event)
        is_kept = self._with_commits or event.event is not Event.OFFSET_COMMIT
        if self.writer is not None and is_kept:
            self.writer.record(event)

    def checkpoint(self) -> None:
        """Keep what was written."""
        if self.writer is not None:
            self.writer.checkpoint()


class _Exposition:
    """The metrics of a watch."""

    def __init__(self, running: "ClusterWatch", watching: "Watching", terminal: _Terminal) -> None:
        self.running, self.watching, self._terminal = running, watching, terminal

    def __call__(self) -> str:
        hook = self._terminal.webhook
        counters = {
            "requests_total": ("Requests for states and ends.", self.running.requests),
            "unread_records_total": ("Records that are broken.", self.watching.unread),
            "webhook_failures_total": ("Lines not taken.", 0 if hook is None else hook.failures),
        }
        with self.running.lock:
            return self.watching.exposition(time.time_ns() // 1000, counters)


def rebalance_lines(ended: "Ended") -> tuple[str, str]:
    """A rebalance in two lines: what began it, and its course."""
    from coordinator_sim.replay.causes import explain_group

    story = explain_group(ended.group_id, list(ended.lines), []).rebalances[ended.position]
    why = story.because or ", ".join(ended.changes)
    before = ended.members_before
    if not why:
        same = "the same members joined again"
        why = "who came and who went is not known" if before is None else same
    if before is not None and before != story.members:
        why += f" ({before} -> {counted(story.members or 0, 'member')})"
    title = f"{ended.group_id} #{ended.number}  {generations(story)}  {ended.cause}: {why}"
    return shortened(title), shortened(course(story))


def _tell_end(terminal: _Terminal, watching: "Watching", run: Path) -> None:
    hook = terminal.webhook
    failed = f", {hook.failures} not taken by --webhook" if hook and hook.failures else ""
    terminal.line(
        f"{counted(terminal.rebalances, 'rebalance')} of {counted(len(watching.groups), 'group')}"
        f"{failed}; the trace is {run}   (coordinator-sim explain {run})"
    )
