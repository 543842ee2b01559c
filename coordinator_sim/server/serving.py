"""A served cluster from start to stop: what `coordinator-sim serve` runs.

SIGTERM or SIGINT ends the process: cleanly if its event loop runs, otherwise by force.
"""

import asyncio
import logging
import os
import signal
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Final

from msgspec import UNSET, Struct, UnsetType

from coordinator_sim import __version__
from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.errors import ConfigError, naming
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.server.control.control import Control
from coordinator_sim.server.control.feed import Feed
from coordinator_sim.server.control.http import ControlServer
from coordinator_sim.server.kafka_server import KafkaServer, Listen
from coordinator_sim.server.kept_cluster import KeptCluster
from coordinator_sim.server.metering import Meter
from coordinator_sim.server.timekeeper import Clock, ScaledClock, Timekeeper, parse_clock
from coordinator_sim.server.tracing import Tracing
from coordinator_sim.trace.events import Event, RunInfo, Source, TraceEvent

BUSY_S: Final = 5.0
"""A loop that does not react to a signal for so long hangs: a clean end is impossible."""
ENDING_S: Final = 90.0
"""How long a clean end may take, for example on a slow disk; systemd waits as long."""
_LOG: Final = logging.getLogger(__name__)


@contextmanager
def stopped_by_signals() -> Iterator[asyncio.Event]:
    """An event of the running loop that SIGTERM and SIGINT set; call it on the main thread.

    After a signal a thread watches the loop. If the loop does not notice the signal within
    `BUSY_S`, or the `with` block does not end within `ENDING_S`, the process ends as if it were
    killed; acknowledged data is in its log directory nevertheless.
    """
    watch = _Watch(asyncio.get_running_loop())
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, watch.ring) for number in numbers]
    try:
        yield watch.stopped
    finally:
        watch.end()
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class _Watch:
    """Watches a loop after a signal, on a thread that sleeps until then.

    Attributes:
        stopped: Set on the loop after the signal.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stopped = asyncio.Event()
        self._loop = loop
        self._noticed = threading.Event()
        self._is_over = threading.Event()
        # A signal handler may put into a SimpleQueue, whatever it interrupted.
        self._signals: SimpleQueue[int] = SimpleQueue()
        threading.Thread(target=self._watch, name="signals", daemon=True).start()

    def ring(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal, at any point of the main thread."""
        self._signals.put(number)
        self._loop.call_soon_threadsafe(self._notice)

    def end(self) -> None:
        """End the watch."""
        self._is_over.set()
        self._signals.put(0)

    def _notice(self) -> None:
        self._noticed.set()
        self.stopped.set()

    def _watch(self) -> None:
        number = self._signals.get()
        if self._is_over.is_set():
            return
        if not self._noticed.wait(BUSY_S):
            _kill(number, f"the server was busy for {BUSY_S:g} s")
        if not self._is_over.wait(ENDING_S):
            _kill(number, f"the server did not end within {ENDING_S:g} s")


def _kill(number: int, reason: str) -> None:
    _LOG.error("%s after %s: it is killed", reason, signal.Signals(number).name)
    os._exit(128 + number)


LIMIT_S: Final = 5.0
_WILDCARDS: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - names of wildcards
_REQUEST: Final = struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 1, -1)


async def answers_api_versions(host: str, port: int, *, uses_tls: bool = False) -> None:
    """Return when the listener there has answered an ApiVersions request.

    With TLS a handshake is enough, as the listener may demand a client certificate.

    Raises:
        ConfigError: there is no answer within 5 seconds.
    """
    try:
        async with asyncio.timeout(LIMIT_S):
            address = (_WILDCARDS.get(host, host), port)
            if uses_tls:
                await _shakes_hands(*address)
                return
            reader, writer = await asyncio.open_connection(*address)
            writer.write(_REQUEST)
            length = int.from_bytes(await reader.readexactly(4), "big")
            await reader.readexactly(length)
            writer.close()
            await writer.wait_closed()
    except (OSError, EOFError, TimeoutError) as error:
        raise ConfigError(f"the listener at {host}:{port} does not answer: {error}") from None


async def _shakes_hands(host: str, port: int) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with suppress(ssl.SSLError):
        _, writer = await asyncio.open_connection(host, port, ssl=context)
        writer.close()
        await writer.wait_closed()


DEFAULT_HOST: Final = "127.0.0.1"
DRAIN_S: Final = 2.0
"""How long pending answers may take to be sent after SIGTERM."""


class ControlOptions(Struct, frozen=True, kw_only=True):
    """The HTTP listener.

    Args:
        port: Port to bind; 0 for any free one.
        token: Token that callers must send; empty for none.
    """

    host: str = DEFAULT_HOST
    port: int = 0
    token: str = ""


class ServeOptions(Struct, frozen=True, kw_only=True):
    """What to serve and where.

    Args:
        cluster: Settings of the cluster.
        listens: Every listener of every broker.
        topics: Topics created at the start, and again by a reset: name -> partitions.
        clock: Text for `parse_clock`.
        control: The HTTP listener; None for none.
        trace: Directory to record into from the start; None for no trace.
        pcap: Capture file for all bytes; None for none.
        overwrite: Whether an earlier trace or capture is replaced.
        log_dir: Log directory; None to keep everything in memory.
        sync_always: Whether data is on disk before it is acknowledged.
        accept_loss: Whether to go on without lost acknowledged data.
        bugs: Ids of the bugs that this process was broken with on purpose; told, not acted on.
    """

    cluster: ClusterSettings = ClusterSettings()
    listens: tuple[Listen, ...] = ()
    topics: dict[str, int] = {}
    clock: str = "wall"
    control: ControlOptions | None = None
    trace: Path | None = None
    pcap: Path | None = None
    overwrite: bool = False
    log_dir: Path | None = None
    sync_always: bool = False
    accept_loss: bool = False
    bugs: tuple[str, ...] = ()


class Ready(Struct, frozen=True, kw_only=True):
    """Facts of a started server, for its starter: one line of JSON.

    Args:
        bootstrap: Addresses of all brokers on the first listener, separated by commas.
        listeners: The addresses on each listener, by its name.
        control: URL of the control surface; null without one.
        trace: Directory of the trace; null without a trace.
        log_dir: Log directory; null without one.
        bugs: Ids of the bugs that the server has on purpose; absent without any.
    """

    bootstrap: str
    control: str | None
    pid: int
    profile: str
    seed: int
    version: str
    cluster_id: str
    brokers: tuple[int, ...]
    listeners: dict[str, str]
    clock: str
    trace: str | None = None
    log_dir: str | None = None
    bugs: tuple[str, ...] | UnsetType = UNSET


class Serving:
    """The parts of a running server.

    Attributes:
        server: The sockets.
        control: The control surface's view of the server.
    """

    def __init__(self, options: ServeOptions) -> None:
        loop = asyncio.get_running_loop()
        self._options = options
        self._clock: Clock = parse_clock(options.clock, loop.time)
        self._feed = Feed()
        self._warned: dict[str, None] = {}
        self._keeper: Timekeeper | None = None
        self._tracing = Tracing(self._info, _scratch)
        if options.trace is not None:
            self._tracing.start(options.trace, overwrite=options.overwrite)
        is_scaled = isinstance(self._clock, ScaledClock)
        is_watched = is_scaled or options.control is not None or options.trace is not None
        meter = Meter()
        with naming(options.log_dir):
            self.server = KafkaServer(
                options.cluster,
                self._clock,
                trace=self._happened if is_watched else None,
                meter=meter if options.control is not None else None,
                kept=_kept(options),
            )
        self._keeper = self.server.timekeeper
        self._tracing.changed = self._tell_heartbeats
        self.control = Control(self.server, self._feed, self._tracing, meter)
        self.server.watch(self._begin)
        self._http: ControlServer | None = None
        if options.control is not None:
            at = options.control
            self._http = ControlServer(self.control, host=at.host, port=at.port, token=at.token)

    async def start(self) -> Ready:
        """Open every listener, and return when all of them answer.

        Raises:
            ConfigError: an address cannot be bound, or the trace's directory cannot be used.
        """
        options = self._options
        if options.pcap is not None:
            from coordinator_sim.server.pcap import PcapTap

            self.server.tap = PcapTap(options.pcap, overwrite=options.overwrite)
        await self.server.start(list(options.listens))
        for listen in options.listens:
            protocol = self.server.cluster.security.protocol_of(listen.name)
            port = self.server.port_of(listen)
            await answers_api_versions(listen.host, port, uses_tls=protocol.uses_tls)
        if self._http is not None:
            await self._http.start()
        self.control.is_ready = True
        return self._ready()

    async def stop(self) -> None:
        """Send pending answers, close everything, and finish recordings."""
        self.control.is_ready = False
        self.server.timekeeper.call_off()
        await self.server.stop(DRAIN_S)
        if self._http is not None:
            await self._http.stop()
        await self._tracing.stop()
        if self.server.tap is not None:
            self.server.tap.finish()
        if self._options.log_dir is not None:
            self.server.cluster.leave()

    def _ready(self) -> Ready:
        names = dict.fromkeys(name for _, name in self.server.endpoints)
        settings, log_dir = self.server.cluster.settings, self._options.log_dir
        return Ready(
            bootstrap=self.server.bootstrap(),
            control=None if self._http is None else self._http.url,
            pid=os.getpid(),
            profile=settings.profile.name,
            seed=settings.seed,
            version=__version__,
            cluster_id=settings.cluster_id,
            brokers=settings.broker_ids,
            listeners={name: self.server.bootstrap(name) for name in names},
            clock=self.server.timekeeper.clock.name,
            trace=self._tracing.view().directory,
            log_dir=None if log_dir is None else str(log_dir),
            bugs=self._options.bugs or UNSET,
        )

    def _begin(self, cluster: Cluster) -> None:
        """Let requests take time, and create the topics that a kept cluster has not already."""
        cluster.groups.tell_heartbeats(self._tracing.view().recording)
        cluster.quotas.work_ns = time.perf_counter_ns
        now = self._present_clock().now()
        for name, partitions in self._options.topics.items():
            if name in cluster.image.topics:
                continue
            cluster.topics.create_spread(name, partitions, now)

    def _happened(self, broker_id: int, events: tuple[TraceEvent, ...]) -> None:
        clock = self._present_clock()
        if self._options.control is not None:
            self._feed.traced(broker_id, events, clock.now().wall_ms)
        self._tracing.take(events)
        if isinstance(clock, ScaledClock):
            for event in events:
                self._warn_of_short_session(clock, event)

    def _tell_heartbeats(self) -> None:
        """Report heartbeats only while a trace is recorded; for watchers they cost too much."""
        wanted = self._tracing.view().recording
        self.server.cluster.groups.tell_heartbeats(wanted)

    def _present_clock(self) -> Clock:
        """The current clock; groups loaded before the server exists need it already."""
        return self._clock if self._keeper is None else self._keeper.clock

    def _warn_of_short_session(self, clock: ScaledClock, event: TraceEvent) -> None:
        """Log once each session that is too short on this clock."""
        if event.event is not Event.JOIN_REQ or event.session_timeout_ms is None:
            return
        warning = clock.session_warning(event.group_id or "", event.session_timeout_ms)
        if warning is not None and warning not in self._warned:
            self._warned[warning] = None
            _LOG.warning("%s", warning)

    def _info(self) -> RunInfo:
        settings = self._options.cluster
        now = self._present_clock().now()
        text = f"{settings.cluster_id} {settings.seed} {now.wall_ms} {os.getpid()}"
        bugs = {"bug": ",".join(self._options.bugs)} if self._options.bugs else {}
        return RunInfo(
            trace_id=sha256(text.encode()).hexdigest()[:16],
            source=Source.WIRE,
            cluster_id=settings.cluster_id,
            version=__version__,
            profile=settings.profile.name,
            seed=settings.seed,
            options={
                "clock": self._present_clock().name,
                "group.initial.rebalance.delay.ms": str(
                    settings.coordinator.group_initial_rebalance_delay_ms
                ),
                **bugs,
            },
        )


async def serve(options: ServeOptions, ready: Callable[[Ready], None]) -> None:
    """Serve until SIGTERM or SIGINT.

    Args:
        options: What to serve, and where.
        ready: Called when every listener answers.

    Raises:
        ConfigError: an option is invalid, or an address cannot be bound.
    """
    with stopped_by_signals() as stopped:
        serving = Serving(options)
        try:
            ready(await serving.start())
            await stopped.wait()
        finally:
            await serving.stop()


def _kept(options: ServeOptions) -> KeptCluster | None:
    if options.log_dir is None:
        return None
    from coordinator_sim.server.disk import open_kept

    return open_kept(
        options.log_dir,
        node_ids=options.cluster.broker_ids,
        cluster_id=options.cluster.cluster_id,
        sync_always=options.sync_always,
        accept_loss=options.accept_loss,
    )


def run(options: ServeOptions, ready: Callable[[Ready], None]) -> None:
    """Run `serve` on a new event loop: uvloop's if it is installed."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve(options, ready))


def _scratch() -> Path:
    import tempfile

    return Path(tempfile.mkdtemp(prefix="coordinator-sim-trace-"))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
