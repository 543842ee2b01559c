"""Trogdor as processes of this host: over HTTP, in real time; ours or Apache Kafka's.

The processes are started once for many cases. A case begins with `begin`, one heartbeat's time
after the coordinator was heard; its instants and the ids of its workers count from there.
"""

import itertools
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import BoundedSemaphore, Lock, Thread
from typing import Final, Self
from urllib.parse import parse_qsl, quote, urlencode

import httpx
from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.targets.target import Unsupported
from coordinator_sim_conformance.trogdor_cases.served_cluster import ServedCluster
from coordinator_sim_conformance.trogdor_cases.task_specs import PACKAGE, no_op
from coordinator_sim_conformance.trogdor_cases.trogdor import Json, Member, Reply, Setup

_CHUNK: Final = 65_536


class Relay:
    """A listening port of this host that passes bytes on, as long as it has a target.

    Attributes:
        port: The port.
    """

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._target: int | None = None
        self._open: set[socket.socket] = set()
        self._lock = Lock()
        Thread(target=self._accept, daemon=True).start()

    def lead_to(self, port: int) -> None:
        """Pass on to a port from now on."""
        self._target = port

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        self._target = None
        with self._lock:
            connections, self._open = self._open, set()
        for each in connections:
            _close(each)

    def close(self) -> None:
        """Listen no more."""
        self.cut()
        _close(self._listener)

    def _accept(self) -> None:
        # Ends when the listener is closed.
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            target = self._target
            try:
                if target is None:
                    raise ConnectionRefusedError
                server = socket.create_connection(("127.0.0.1", target))
            except OSError:
                _close(client)
                continue
            with self._lock:
                self._open |= {client, server}
            for origin, destination in ((client, server), (server, client)):
                Thread(target=self._pump, args=(origin, destination), daemon=True).start()

    def _pump(self, origin: socket.socket, destination: socket.socket) -> None:
        """Pass bytes on in one direction, until either side ends."""
        with suppress(OSError):
            while part := origin.recv(_CHUNK):
                destination.sendall(part)
        with self._lock:
            self._open -= {origin, destination}
        _close(origin)
        _close(destination)


def _close(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


_LATE_MS: Final = 8_000
_SLACK_MS: Final = 500
_BEAT_MS: Final = 1_000
_BOOT_S: Final = 60.0
_PATIENCE_S: Final = 15.0
_POLL_S: Final = 0.02
_OK: Final = 200
_FIRST_PORT: Final = 20_000
_PORT_COUNT: Final = 12_000
"""Ports below those that Linux gives to outgoing connections."""
_port_count = itertools.count()
_starting = BoundedSemaphore(os.cpu_count() or 1)
"""Bounds the sets of daemons that start at a time: JVMs that start delay the stories that play."""
_INSTANTS: Final = frozenset({"startMs", "startedMs", "doneMs"})
_FILTERS: Final = frozenset({"firstStartMs", "lastStartMs", "firstEndMs", "lastEndMs"})
_WARM: Final = "warm"
_COMMANDS: Final = "TROGDOR_COMMANDS"
_SCRIPTS: Final = {
    "sudo": f'#!/bin/sh\necho "sudo $*" >> "${_COMMANDS}"\n',
    "jcmd": "#!/bin/sh\nexit 0\n",
}
"""Commands that agents find before those of the host: they change nothing."""


class Daemons(Struct, frozen=True):
    """The commands that start a coordinator and an agent, but for configuration and node."""

    coordinator: tuple[str, ...]
    agent: tuple[str, ...]


_OWN: Final = (sys.executable, "-m", "coordinator_sim", "trogdor")
OWN_DAEMONS: Final = Daemons(
    coordinator=(*_OWN, "coordinator"),
    agent=(*_OWN, "agent", "--allow-sudo", "--any-process", "--allow-commands"),
)
"""The daemons of this project; `sudo` is a script that only notes what it is asked."""


class _AgentProcess(Struct, frozen=True):
    process: subprocess.Popen[bytes]
    port: int


class ProcessTrogdor:
    """A `Trogdor` of processes, to be used as a context.

    Args:
        setup: The nodes; it has no clocks, files or settings of its own.
        daemons: See `Daemons`.
        folder: For configurations, logs and scripts; it exists.
    """

    def __init__(self, setup: Setup, daemons: Daemons, folder: Path) -> None:
        self._setup = setup
        self._daemons = daemons
        self._folder = folder
        # Agents die and others come, so that no connection is kept.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._client = httpx.Client(timeout=_PATIENCE_S, trust_env=False, limits=limits)
        self._relays = {name: Relay() for name in setup.agents}
        self._agents: dict[str, _AgentProcess] = {}
        self._spares: dict[str, list[_AgentProcess]] = {name: [] for name in setup.agents}
        self._processes: list[subprocess.Popen[bytes]] = []
        self._coordinator_port = free_port()
        self._base_ms = 0
        self._first_id = 0
        self._cluster: ServedCluster | None = None

    # -- life ----------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Start the processes."""
        try:
            self._boot()
        except (DataError, OSError, httpx.TransportError):
            self.__exit__()
            raise
        return self

    def _boot(self) -> None:
        scripts = self._folder / "bin"
        scripts.mkdir()
        for name, script in _SCRIPTS.items():
            (scripts / name).write_text(script, "utf-8")
            (scripts / name).chmod(0o755)
        if self._setup.topics:
            self._cluster = ServedCluster(self._setup.topics, self._folder)
        with _starting:
            self._start(self._daemons.coordinator, self._setup.coordinator, self._nodes())
            for name in self._setup.agents:
                self._agents[name] = self._start_agent(name)
            self._await(self._coordinator_port, "/coordinator/status")
            for name, agent in self._agents.items():
                self._await(agent.port, "/agent/status")
                self._relays[name].lead_to(agent.port)
        # The first requests of a process are slow.
        self.begin(0)

    def __exit__(self, *_exception: object) -> None:
        """End the processes."""
        for relay in self._relays.values():
            relay.close()
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
        if self._cluster is not None:
            self._cluster.close()
        self._client.close()

    def begin(self, restarts: int) -> None:
        """Forget what was, and begin a case at 0.

        Args:
            restarts: How often agents will be started in the case.

        Raises:
            DataError: the processes do not do what is needed for it.
        """
        for name, relay in self._relays.items():
            if name not in self._agents:
                self._agents[name] = self._spare(name)
                relay.lead_to(self._agents[name].port)
            missing = restarts - len(self._spares[name])
            if missing > 0:
                with _starting:
                    self._spares[name] += [self._start_agent(name) for _ in range(missing)]
                    for spare in self._spares[name]:
                        self._await(spare.port, "/agent/status")
        for task_id in self._get(self._coordinator_port, "/coordinator/tasks").get("tasks", {}):
            self._destroy(task_id)
        self._delete_workers()
        self._first_id = self._next_worker_id()
        self._destroy(_WARM)
        self._base_ms = _now_ms() + _BEAT_MS
        self._delete_workers()
        for name in self._setup.agents:
            self._commands_of(name).write_bytes(b"")
        self.at(0)

    # -- what a case does ----------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """The present."""
        return _now_ms() - self._base_ms

    @property
    def slack_ms(self) -> int:
        """Half a second."""
        return _SLACK_MS

    @property
    def late_ms(self) -> int:
        """Several heartbeats after the beginning."""
        return _LATE_MS

    @property
    def bootstrap(self) -> str:
        """The address of the cluster's broker.

        Raises:
            Unsupported: the setup has no cluster.
        """
        return self._served().bootstrap

    def members(self, group_id: str) -> list[Member]:
        """The members of a group of the cluster.

        Raises:
            Unsupported: the setup has no cluster.
        """
        return self._served().members(group_id)

    def _served(self) -> ServedCluster:
        if self._cluster is None:
            raise Unsupported("the setup names no topics, so that there is no cluster")
        return self._cluster

    def at(self, at_ms: int) -> None:
        """Sleep until an instant."""
        time.sleep(max(0, at_ms - self.now_ms) / 1_000)

    def coordinator(self, method: str, target: str, body: Json = None) -> Reply:
        """Ask the coordinator."""
        return self._ask(self._coordinator_port, method, target, body)

    def agent(self, node: str, method: str, target: str, body: Json = None) -> Reply:
        """Ask an agent."""
        return self._ask(self._agents[node].port, method, target, body)

    def kill_agent(self, node: str) -> None:
        """End an agent's process."""
        self._relays[node].cut()
        self._agents.pop(node).process.kill()

    def start_agent(self, node: str) -> None:
        """Have an agent that was started before take the place of one that was killed."""
        self._agents[node] = self._spare(node)
        self._relays[node].lead_to(self._agents[node].port)

    def commands(self, node: str) -> list[str]:
        """The commands that were run on a node as root."""
        return self._commands_of(node).read_text("utf-8").splitlines()

    def calls(self, node: str, worker_id: int) -> dict[str, int]:
        """Work of a process is not counted.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(f"nobody counts the starts and stops of worker {worker_id} on {node}")

    def status_requests(self, node: str) -> int:
        """Requests of processes are not counted.

        Raises:
            Unsupported: always.
        """
        raise Unsupported(f"nobody counts the requests to {node}")

    def file(self, path: str) -> bytes | None:
        """The content of a file of this host."""
        place = Path(path)
        return place.read_bytes() if place.is_file() else None

    # -- processes -----------------------------------------------------------------------------

    def _nodes(self) -> dict[str, dict[str, str]]:
        """The nodes as the coordinator reaches them."""
        nodes = {
            name: {"hostname": "127.0.0.1", "trogdor.agent.port": str(relay.port)}
            for name, relay in self._relays.items()
        }
        # Without an agent here, the port keeps the coordinator from looking for one.
        own = nodes.setdefault(self._setup.coordinator, {"hostname": "127.0.0.1"})
        own["trogdor.coordinator.port"] = str(self._coordinator_port)
        return nodes

    def _start_agent(self, name: str) -> _AgentProcess:
        port = free_port()
        nodes = self._nodes()
        nodes[name]["trogdor.agent.port"] = str(port)
        return _AgentProcess(self._start(self._daemons.agent, name, nodes), port)

    def _start(
        self, command: tuple[str, ...], node: str, nodes: dict[str, dict[str, str]]
    ) -> subprocess.Popen[bytes]:
        place = self._folder / f"{len(self._processes)}-{node}"
        config = place.with_suffix(".json")
        platform = f"{PACKAGE}.basic.BasicPlatform"
        config.write_text(json.dumps({"platform": platform, "nodes": nodes}), "utf-8")
        path = f"{self._folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, _COMMANDS: str(self._commands_of(node))}
        with place.with_suffix(".log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603 - a daemon that the caller names
                (*command, "-c", str(config), "-n", node),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
            )
        self._processes.append(process)
        return process

    def _spare(self, name: str) -> _AgentProcess:
        if self._spares[name]:
            return self._spares[name].pop(0)
        agent = self._start_agent(name)
        self._await(agent.port, "/agent/status")
        return agent

    def _await(self, port: int, target: str) -> None:
        """Wait until a process answers.

        Raises:
            DataError: it does not.
        """
        latest_s = time.monotonic() + _BOOT_S
        while time.monotonic() < latest_s:
            try:
                if self._client.get(f"http://127.0.0.1:{port}{target}").status_code == _OK:
                    return
            except httpx.TransportError:
                time.sleep(_POLL_S)
        raise DataError(f"nobody answers {target} on port {port}; see {self._folder}")

    def _commands_of(self, node: str) -> Path:
        return self._folder / f"commands-{node}.txt"

    # -- a clean beginning ---------------------------------------------------------------------

    def _next_worker_id(self) -> int:
        """The id that the next worker gets; the task `warm` has the one before.

        Raises:
            DataError: an agent does not get its worker.
        """
        spec = no_op(start_ms=-1, duration_ms=0)
        body = {"id": _WARM, "spec": spec}
        self._ask(self._coordinator_port, "POST", "/coordinator/task/create", body)
        latest_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < latest_s:
            workers = [
                [int(key) for key, each in self._workers(name).items() if each["taskId"] == _WARM]
                for name in self._setup.agents
            ]
            if all(workers):
                return max(key for each in workers for key in each) + 1
            time.sleep(_POLL_S)
        raise DataError(f"an agent has no worker of the task {_WARM}; see {self._folder}")

    def _workers(self, name: str) -> dict[str, Json]:
        status = self._get(self._agents[name].port, "/agent/status")
        return dict(status.get("workers", {}))

    def _delete_workers(self) -> None:
        for name in self._setup.agents:
            for worker_id in self._workers(name):
                target = f"/agent/worker?workerId={worker_id}"
                self._ask(self._agents[name].port, "DELETE", target)

    def _destroy(self, task_id: str) -> None:
        target = f"/coordinator/tasks?taskId={quote(task_id)}"
        self._ask(self._coordinator_port, "DELETE", target)

    # -- HTTP ----------------------------------------------------------------------------------

    def _get(self, port: int, target: str) -> dict[str, Json]:
        return dict(self._client.get(f"http://127.0.0.1:{port}{target}").json())

    def _ask(self, port: int, method: str, target: str, body: Json = None) -> Reply:
        path, _, query = target.partition("?")
        shifted = [
            (key, str(int(value) + self._base_ms) if key in _FILTERS else value)
            for key, value in parse_qsl(query, keep_blank_values=True)
        ]
        answer = self._client.request(
            method,
            f"http://127.0.0.1:{port}{path}{'?' if query else ''}{urlencode(shifted)}",
            json=None if body is None else _shifted(body, self._base_ms),
        )
        try:
            said = answer.json()
        except json.JSONDecodeError:
            return Reply(answer.status_code, answer.text)
        return Reply(answer.status_code, self._with_ranks(_shifted(said, -self._base_ms)))

    def _with_ranks(self, body: Json) -> Json:
        """The same, with the ids of a coordinator's workers counted from 0."""
        if not isinstance(body, dict) or "workers" not in body:
            return body
        ranked = {
            str(int(key) - self._first_id if int(key) >= self._first_id else key): each
            for key, each in body["workers"].items()
        }
        return {**body, "workers": ranked}


def _shifted(body: Json, by_ms: int) -> Json:
    """The same JSON with its instants moved; those below 0 stay."""
    if isinstance(body, list):
        return [_shifted(each, by_ms) for each in body]
    if not isinstance(body, dict):
        return body
    return {
        key: each + by_ms
        if key in _INSTANTS and isinstance(each, int) and each >= 0
        else _shifted(each, by_ms)
        for key, each in body.items()
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def free_port() -> int:
    """A port of this host that nobody listens on, and that no outgoing connection gets."""
    # Ends because most ports are free.
    while True:
        port = _FIRST_PORT + (os.getpid() * 61 + next(_port_count)) % _PORT_COUNT
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        return port
