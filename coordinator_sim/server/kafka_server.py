"""Listeners of a served cluster on an event loop, their TLS, and limits of their connections.

DEVIATION: Kafka accepts no more connections while a limit of `max.connections` is reached; here a
connection above the limit is closed.

Certificates and keys are PEM; Java's key stores are not read.

Source: kafka trunk, SocketServer.scala (ConnectionQuotas); Selector.java (IdleExpiryManager);
clients/.../security/ssl/DefaultSslEngineFactory.java (PEM stores), SslFactory.java;
SslConfigs.java.
"""

import asyncio
import logging
import os
import secrets
import ssl
import tempfile
from collections import Counter
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.cluster_parts import TraceSink
from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.draws import DrawBytes
from coordinator_sim.broker.operations import BrokerStatus
from coordinator_sim.broker.pending_answer import Output
from coordinator_sim.broker.security.certificate_names import PrincipalRules, Subject
from coordinator_sim.broker.security.sasl import ANONYMOUS
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.errors import ConfigError, described
from coordinator_sim.kafka.java_numbers import java_int
from coordinator_sim.server.kept_cluster import KeptCluster
from coordinator_sim.server.links import Link
from coordinator_sim.server.metering import Meter, MeteredConnection
from coordinator_sim.server.timekeeper import Clock, Timekeeper
from coordinator_sim.server.wire_protocol import Tap, WireProtocol

_PEM: Final = "PEM"
_KEY: Final = "ssl.keystore.key"
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_PROTOCOLS: Final = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


class ListenerTls:
    """TLS of one listener.

    Args:
        configs: Settings of the cluster.
        listener: Name of the listener.
    """

    def __init__(self, configs: Configs, listener: str) -> None:
        self.context = _context(configs, listener)
        rules = configs.listener_value(listener, "ssl.principal.mapping.rules")
        self._rules = PrincipalRules(str(rules))

    def principal(self, socket: ssl.SSLObject) -> str | None:
        """The principal of a connection's client; None when no rule matches its name."""
        certificate = socket.getpeercert()
        if not certificate:
            return ANONYMOUS
        return self._rules.principal(cast("Subject", certificate["subject"]))


def _context(configs: Configs, listener: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    wanted = configs.listener_value(listener, "ssl.enabled.protocols")
    spoken = [_PROTOCOLS[each] for each in _names(wanted) if each in _PROTOCOLS]
    context.minimum_version = min(spoken, default=ssl.TLSVersion.TLSv1_2)
    context.maximum_version = max(spoken, default=ssl.TLSVersion.TLSv1_3)
    secret = configs.listener_value(listener, "ssl.key.password")
    chain = _pem(configs, listener, "keystore", ("ssl.keystore.certificate.chain", _KEY))
    if chain is None:
        raise ConfigError(
            f"listener {listener} needs a certificate: --tls-cert and --tls-key, or "
            "ssl.keystore.location with ssl.keystore.type=PEM"
        )
    trusted = _pem(configs, listener, "truststore", ("ssl.truststore.certificates",))
    try:
        _load_chain(context, chain, _password(secret))
        if trusted is not None:
            context.load_verify_locations(cadata=trusted)
    except ssl.SSLError as error:
        raise ConfigError(f"TLS of listener {listener}: {error.reason or 'no PEM'}") from None
    context.verify_mode = _client_auth(configs, listener, is_trusting=trusted is not None)
    return context


def _client_auth(configs: Configs, listener: str, *, is_trusting: bool) -> ssl.VerifyMode:
    wanted = str(configs.listener_value(listener, "ssl.client.auth"))
    mode = _CLIENT_AUTH[wanted]
    if mode is not ssl.CERT_NONE and not is_trusting:
        raise ConfigError(
            f"ssl.client.auth={wanted} wants certificates to trust: --tls-ca, or "
            "ssl.truststore.location with ssl.truststore.type=PEM"
        )
    return mode


def _pem(configs: Configs, listener: str, store: str, inline: tuple[str, ...]) -> str | None:
    """The PEM text of a store, from its file or from the settings; None without one.

    Raises:
        ConfigError: the store is not PEM, or its file cannot be read.
    """
    location = configs.listener_value(listener, f"ssl.{store}.location")
    said = [configs.listener_value(listener, name) for name in inline]
    if not location and not said[0]:
        return None
    kind = configs.listener_value(listener, f"ssl.{store}.type")
    if kind != _PEM:
        raise ConfigError(f"ssl.{store}.type={kind}: only PEM is read")
    if not location:
        return "\n".join(str(each) for each in said if each)
    try:
        return Path(str(location)).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no PEM"
        raise ConfigError(f"ssl.{store}.location={location}: {reason}") from None


def _load_chain(context: ssl.SSLContext, chain: str, password: str) -> None:
    """Load a chain through a private temporary file, as Python only reads files."""
    with tempfile.NamedTemporaryFile("w", encoding="ascii", suffix=".pem") as file:
        file.write(chain)
        file.flush()
        context.load_cert_chain(file.name, password=password)


def _password(secret: object) -> str:
    """The password, empty if none is set, so that an encrypted key is an error and no prompt."""
    return secret if isinstance(secret, str) else ""


def _names(value: object) -> list[str]:
    return value if isinstance(value, list) else []


_LARGEST: Final = (1 << 31) - 1


class ConnectionLimits:
    """The limits of one broker, and its counted connections.

    Args:
        configs: The cluster's settings.
        broker_id: Id of the broker.

    Raises:
        ConfigError: an override has a wrong syntax.
    """

    def __init__(self, configs: Configs, broker_id: int) -> None:
        self._configs = configs
        self._broker_id = broker_id
        self._by_host: Counter[str] = Counter()
        self._by_listener: Counter[str] = Counter()
        self._counted: dict[Hashable, tuple[str, str]] = {}
        self._overrides = _overrides(self._value("max.connections.per.ip.overrides"))

    @property
    def idle_s(self) -> float | None:
        """How long a connection may be idle, in seconds; None for ever."""
        idle_ms = self._value("connections.max.idle.ms")
        return idle_ms / 1000 if isinstance(idle_ms, int) and idle_ms >= 0 else None

    def refusal(self, host: str, listener: str) -> str | None:
        """Why another connection is refused; None if it is not."""
        most = self._overrides.get(host, self._number("max.connections.per.ip"))
        if self._by_host[host] >= most:
            return f"more than {most} connections of {host}"
        if self._by_listener.total() >= self._number("max.connections"):
            return f"more than {self._number('max.connections')} connections"
        of_listener = self._configs.listener_value(listener, "max.connections")
        if isinstance(of_listener, int) and self._by_listener[listener] >= of_listener:
            return f"more than {of_listener} connections of listener {listener}"
        return None

    def opened(self, connection: Hashable, host: str, listener: str) -> None:
        """Start counting a connection."""
        self._counted[connection] = (host, listener)
        self._by_host[host] += 1
        self._by_listener[listener] += 1

    def closed(self, connection: Hashable) -> None:
        """Stop counting a connection; unknown ones are ignored."""
        found = self._counted.pop(connection, None)
        if found is not None:
            self._by_host[found[0]] -= 1
            self._by_listener[found[1]] -= 1
            self._by_host += Counter()

    def _value(self, name: str) -> object:
        return self._configs.broker_value(name, self._broker_id)

    def _number(self, name: str) -> int:
        value = self._value(name) if name in self._configs.broker else None
        return value if isinstance(value, int) else _LARGEST


def _overrides(text: object) -> dict[str, int]:
    found: dict[str, int] = {}
    for entry in str(text or "").split(","):
        host, colon, count = entry.strip().rpartition(":")
        if not entry.strip():
            continue
        number = java_int(count)
        if not colon or number is None or number < 0:
            raise ConfigError(f"max.connections.per.ip.overrides {entry!r}: wants HOST:COUNT")
        found[host] = number
    return found


PLAINTEXT: Final = "PLAINTEXT"
SWEEPS: Final = 10
"""Number of sweeps for idle connections within the allowed idle time."""
_LOG: Final = logging.getLogger(__name__)


class Listen(Struct, frozen=True, kw_only=True):
    """One listener of one broker.

    Args:
        host: Host to bind.
        port: Port to bind; 0 for any free one.
        advertised_host: Host that clients are told; empty for `host`.
        advertised_port: Port that clients are told; 0 for the bound one.
    """

    broker_id: int
    host: str
    port: int
    name: str = PLAINTEXT
    advertised_host: str = ""
    advertised_port: int = 0


class KafkaServer:
    """A served cluster and its sockets.

    Args:
        settings: Settings of the cluster.
        clock: Clock of the cluster.
        trace: Takes the events of the brokers' group coordinators.
        meter: Counts and times requests; None to save that cost.
        kept: The log directory; None to keep everything in memory.
        draw_bytes: Draws unpredictable bytes; None to draw them from the seed.

    Attributes:
        cluster: The served cluster; a new one after `reset`.
        endpoints: Address of each broker on each listener, once started.
        timekeeper: Fires the cluster's deadlines.
        tap: Gets the bytes of connections opened from now on; None for no tap.
        links: The links that are cut or slow, by broker and listener.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        clock: Clock,
        trace: TraceSink | None = None,
        meter: Meter | None = None,
        kept: KeptCluster | None = None,
        draw_bytes: DrawBytes | None = secrets.token_bytes,
    ) -> None:
        self._draw_bytes = draw_bytes
        self._work_handle: asyncio.Handle | None = None
        self._is_stopped = False
        self.endpoints: dict[tuple[int, str], Endpoint] = {}
        self._settings = settings
        self._trace = trace
        self._meter = meter
        self._kept = kept
        self._connection_type = Connection if meter is None else MeteredConnection
        self.tap: Tap | None = None
        self._watchers: list[Callable[[Cluster], None]] = []
        self.cluster = self._new_cluster()
        self.cluster.begin(clock.now())
        self.timekeeper = Timekeeper(self.cluster, clock)
        self._emptied = asyncio.Event()
        self._listens: list[Listen] = []
        self._ports: dict[tuple[int, str], int] = {}
        self._servers: dict[tuple[int, str], asyncio.Server] = {}
        self._open: dict[WireProtocol, None] = {}
        self._next_number = 1
        self._tls: dict[str, ListenerTls] = {}
        self._limits: dict[int, ConnectionLimits] = {}
        self._idle_rounds: dict[WireProtocol, int] = {}
        self.links: dict[tuple[int, str], Link] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    # -- life ------------------------------------------------------------------------------

    async def start(self, listens: list[Listen]) -> None:
        """Bind every listener.

        Raises:
            ConfigError: a listener's security settings are invalid.
            OSError: an address cannot be bound.
        """
        self._listens = listens
        for name in dict.fromkeys(listen.name for listen in listens):
            self._secure(name)
        for listen in listens:
            await self._bind(listen, listen.port)
        self.timekeeper.settled()

    async def stop(self, drain_s: float = 0) -> None:
        """Close every listener and connection.

        Args:
            drain_s: How long pending answers may take to be sent.
        """
        self._is_stopped = True
        for server in self._servers.values():
            server.close()
        if drain_s > 0:
            for protocol in list(self._open):
                protocol.leave()
            self._emptied.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(drain_s if self._open else 0):
                    await self._emptied.wait()
        for protocol in list(self._open):
            protocol.abort()
        for server in self._servers.values():
            await server.wait_closed()
        self.timekeeper.stop()
        if self._work_handle is not None:
            self._work_handle.cancel()
        if self._sweeper is not None:
            self._sweeper.cancel()
        if self._open:
            # An aborted transport is closed in a later iteration of the loop.
            self._emptied.clear()
            await self._emptied.wait()

    async def reset(self) -> None:
        """Serve a new cluster on the same addresses; every connection is closed.

        Raises:
            OSError: kept data cannot be removed, or the port of a stopped broker is taken by now.
        """
        for protocol in list(self._open):
            protocol.abort()
        if self._kept is not None:
            self._kept.wipe()
        self.cluster = self._new_cluster()
        self._limits.clear()
        self.links.clear()
        self.cluster.begin(self.now())
        self.timekeeper.serve(self.cluster)
        for watcher in self._watchers:
            watcher(self.cluster)
        for listen in self._listens:
            if not self._servers[listen.broker_id, listen.name].is_serving():
                await self._bind(listen, self._ports[listen.broker_id, listen.name])

    def watch(self, watcher: Callable[[Cluster], None]) -> None:
        """Call a watcher with the cluster, now and after each reset."""
        self._watchers.append(watcher)
        watcher(self.cluster)

    def bootstrap(self, listener: str | None = None) -> str:
        """Addresses of all brokers on a listener, by default the first, separated by commas."""
        names = [name for _, name in self.endpoints]
        wanted = listener or next(iter(names), "")
        return ",".join(
            f"{found.host}:{found.port}"
            for (_, name), found in self.endpoints.items()
            if name == wanted
        )

    def port_of(self, listen: Listen) -> int:
        """The port that a listener is bound to."""
        return self._ports[listen.broker_id, listen.name]

    # -- brokers ---------------------------------------------------------------------------

    async def stop_broker(self, broker_id: int) -> None:
        """Kill a broker's process: its listeners and connections close.

        Raises:
            ConfigError: it is stopped already.
        """
        self.cluster.operations.stop(broker_id, self.now())
        for (of, _), server in self._servers.items():
            if of == broker_id:
                server.close()
        for protocol in self._of(broker_id):
            protocol.abort()

    def pause_broker(self, broker_id: int) -> None:
        """Freeze a broker: connections are accepted, but nothing is read or answered.

        Raises:
            ConfigError: it does not run.
        """
        self.cluster.operations.pause(broker_id, self.now())
        self._hold(broker_id)

    def partition_broker(self, broker_id: int) -> None:
        """Cut a broker off from its clients, until it is resumed.

        Raises:
            ConfigError: it does not run.
        """
        self.cluster.operations.partition(broker_id)
        self._hold(broker_id)

    async def resume_broker(self, broker_id: int) -> None:
        """Start a stopped broker on its old ports, or continue a paused or partitioned one.

        Raises:
            ConfigError: it runs, or its port is taken by now.
        """
        was_stopped = self.cluster.operations.status(broker_id) is BrokerStatus.STOPPED
        self.cluster.operations.resume(broker_id, self.now())
        try:
            for listen in self._listens:
                if was_stopped and listen.broker_id == broker_id:
                    await self._bind(listen, self._ports[broker_id, listen.name])
        except ConfigError:
            await self.stop_broker(broker_id)
            raise
        self._hold(broker_id)

    def _hold(self, broker_id: int) -> None:
        """Let nothing through to a broker that is held, and everything to one that is not."""
        for protocol in self._of(broker_id):
            self._link(protocol)

    def _is_held(self, broker_id: int) -> bool:
        held = (BrokerStatus.PAUSED, BrokerStatus.PARTITIONED)
        return self.cluster.operations.status(broker_id) in held

    def _of(self, broker_id: int) -> list[WireProtocol]:
        return [
            protocol
            for protocol in self._open
            if protocol.connection is not None and protocol.connection.broker_id == broker_id
        ]

    # -- links -----------------------------------------------------------------------------

    def set_link(self, broker_id: int, listener: str, link: Link) -> None:
        """Treat all connections of a listener to a broker like this, from now on."""
        if link == Link():
            self.links.pop((broker_id, listener), None)
        else:
            self.links[broker_id, listener] = link
        for protocol in self._on(broker_id, listener):
            self._link(protocol)

    def reset_link(self, broker_id: int, listener: str) -> int:
        """Reset all connections of a listener to a broker; return how many there were."""
        found = self._on(broker_id, listener)
        for protocol in found:
            protocol.reset()
        return len(found)

    def _on(self, broker_id: int, listener: str) -> list[WireProtocol]:
        return [
            each
            for each in self._of(broker_id)
            if each.connection is not None and each.connection.listener == listener
        ]

    def _link(self, protocol: WireProtocol) -> None:
        """Have a connection pass what its link and its broker let through."""
        connection = protocol.connection
        if connection is None:
            return
        link = self.links.get((connection.broker_id, connection.listener), Link())
        protocol.slow_down(link.to_broker, link.to_clients)
        if link.cut or self._is_held(connection.broker_id):
            protocol.hold()
        else:
            protocol.release()

    # -- connections -----------------------------------------------------------------------

    def connections(self) -> list[Connection]:
        """The open connections, the oldest first."""
        found = (protocol.connection for protocol in self._open if protocol.is_open)
        return [each for each in found if each is not None]

    @property
    def next_connection(self) -> int:
        """Number of the next connection; numbers are not used again."""
        return self._next_number

    def close_connection(self, number: int) -> bool:
        """Close a connection by its number; return whether it was open."""
        for protocol in list(self._open):
            if protocol.connection is not None and protocol.connection.number == number:
                protocol.abort()
                return True
        return False

    def _new_cluster(self) -> Cluster:
        kept = self._kept
        cluster = Cluster(
            self._settings if kept is None else kept.adapted(self._settings),
            endpoint=self._endpoint,
            kept=kept,
            trace=self._trace,
            draw_bytes=self._draw_bytes,
        )
        cluster.cluster_events.trouble.append(_LOG.error)
        cluster.jobs.begun = self._work_soon
        return cluster

    def _secure(self, listener: str) -> None:
        """Check that a listener's security protocol is set and usable."""
        security = self.cluster.security
        protocol = security.protocol_of(listener)
        if protocol.uses_sasl:
            security.sasl_of(listener)
            if not security.knows_users(listener):
                _LOG.warning(
                    "nobody can log in on listener %s: give --user NAME:PASSWORD",
                    listener,
                )
        if protocol.uses_tls:
            self._tls[listener] = ListenerTls(self.cluster.configs, listener)

    async def _bind(self, listen: Listen, port: int) -> None:
        loop = asyncio.get_running_loop()
        tls = self._tls.get(listen.name)
        try:
            server = await loop.create_server(
                partial(self._protocol, listen),
                listen.host,
                port,
                backlog=1024,
                ssl=None if tls is None else tls.context,
            )
        except (OSError, ValueError) as error:
            number = getattr(error, "errno", None) or 0
            reason = os.strerror(number) if number > 0 else getattr(error, "strerror", None)
            raise ConfigError(
                f"cannot listen on {listen.host}:{port}: {reason or error}; choose another "
                "--host, --port or --listeners"
            ) from None
        place = (listen.broker_id, listen.name)
        self._servers[place] = server
        bound = server.sockets[0].getsockname()[1]
        self._ports[place] = bound
        host = listen.advertised_host or listen.host
        self.endpoints[place] = Endpoint(host, listen.advertised_port or bound)

    def _endpoint(self, broker_id: int, listener: str) -> Endpoint | None:
        return self.endpoints.get((broker_id, listener))

    def _protocol(self, listen: Listen) -> WireProtocol:
        def connect(client_host: str, output: Output) -> Connection:
            number = self._next_number
            self._next_number += 1
            connection = self._connection_type(
                self.cluster,
                listen.broker_id,
                number=number,
                listener=listen.name,
                client_host=client_host,
                output=output,
            )
            if isinstance(connection, MeteredConnection) and self._meter is not None:
                connection.meter = self._meter
            return connection

        return WireProtocol(self, connect, self.tap)

    # -- what sockets need -----------------------------------------------------------------

    def now(self) -> Instants:
        """The present."""
        return self.timekeeper.clock.now()

    def opened(self, protocol: WireProtocol) -> None:
        """Take a new connection; abort it if the server has stopped meanwhile."""
        self._open[protocol] = None
        if self._is_stopped:
            protocol.abort()
        connection = protocol.connection
        if connection is not None:
            self._admit(protocol, connection)
            if self.links or self._is_held(connection.broker_id):
                self._link(protocol)
        if self._meter is not None:
            self._meter.connected()

    def closed(self, protocol: WireProtocol) -> None:
        """Forget a closed connection."""
        self._open.pop(protocol, None)
        self._idle_rounds.pop(protocol, None)
        for limits in self._limits.values():
            limits.closed(protocol)
        if not self._open:
            self._emptied.set()
        elif not self._is_stopped:
            self.settled()

    def _admit(self, protocol: WireProtocol, connection: Connection) -> None:
        """Admit a connection, or close it by the limits."""
        limits = self._limits_of(connection.broker_id)
        host = connection.client_host.removeprefix("/")
        if self._is_throttled(protocol, connection, host):
            return
        refusal = limits.refusal(host, connection.listener)
        if refusal is not None:
            protocol.close(refusal)
            return
        limits.opened(protocol, host, connection.listener)
        tls, socket = self._tls.get(connection.listener), protocol.tls
        if tls is not None and socket is not None and connection.is_known:
            principal = tls.principal(socket)
            if principal is None:
                protocol.close("a certificate whose name fits no rule")
                return
            connection.principal = principal
        if self._sweeper is None:
            self._sweep_later()

    def _is_throttled(self, protocol: WireProtocol, connection: Connection, host: str) -> bool:
        """Close a connection over its address's quota, but late, and answer nothing until then."""
        cluster, now_ms = self.cluster, self.now().wall_ms
        throttle_ms = cluster.quotas.connection_throttle_ms(connection.broker_id, host, now_ms)
        if throttle_ms <= 0:
            return False
        connection.is_choked = True
        reason = f"more connections of {host} in a second than its quota"
        cluster.scheduler.at_wall_ms(now_ms + throttle_ms, lambda _now: protocol.close(reason))
        self.settled()
        return True

    def _limits_of(self, broker_id: int) -> ConnectionLimits:
        if broker_id not in self._limits:
            self._limits[broker_id] = ConnectionLimits(self.cluster.configs, broker_id)
        return self._limits[broker_id]

    def _sweep_later(self) -> None:
        """Schedule the next sweep for idle connections while any are open."""
        self._sweeper = None
        spans = [limits.idle_s for limits in self._limits.values() if limits.idle_s is not None]
        if self._open and spans and not self._is_stopped:
            loop = asyncio.get_running_loop()
            self._sweeper = loop.call_later(min(spans) / SWEEPS, self._sweep)

    def _sweep(self) -> None:
        """Close connections that were idle for `SWEEPS` rounds."""
        for protocol in list(self._open):
            rounds = 0 if protocol.is_active else self._idle_rounds.get(protocol, 0) + 1
            protocol.is_active = False
            self._idle_rounds[protocol] = rounds
            if rounds >= SWEEPS:
                protocol.leave()
        self._sweep_later()

    def settled(self) -> None:
        """Rearm deadlines after requests were worked on."""
        self.timekeeper.settled()

    def _work_soon(self) -> None:
        """Continue a long request after sockets and timers have had their turn."""
        if self._work_handle is None and not self._is_stopped:
            self._work_handle = asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        self._work_handle = None
        try:
            self.cluster.work(self.now())
        except Exception as error:  # noqa: BLE001 - the others are to be answered all the same
            _LOG.error("a request that took long met a bug: %s", described(error))
        if self.cluster.has_work:
            self._work_soon()
        self.settled()
