"""Served clusters in child processes, and a test's view of one.

A client of a served cluster's control surface: JSON over HTTP, with the standard library.
"""

import gc
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from threading import Timer
from typing import IO, Any, Final, cast
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

import msgspec

from coordinator_sim.broker.faults.faults import Fault
from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim_pytest.rules import rule_of

PATIENCE_S = 60
"""Timeout of an answer in seconds."""


class ControlRefused(CoordinatorSimError):
    """Refusal of the control surface, with its message.

    Args:
        message: Reason of the refusal.
        status: HTTP status.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, status)
        self.status = status

    def __str__(self) -> str:
        """Return the reason."""
        return str(self.args[0])


class ControlClient:
    """Client of one server.

    Args:
        url: URL from the server's ready line.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def get(self, path: str, **query: Any) -> Any:  # noqa: ANN401 - JSON
        """Send a GET and return its JSON.

        Args:
            path: Path such as `/v1/groups`.
            query: Parameters; those that are None are left out.
        """
        wanted = {name: value for name, value in query.items() if value is not None}
        return self._send("GET", f"{path}?{urlencode(wanted)}" if wanted else path)

    def post(self, path: str, body: Mapping[str, Any] | bytes | None = None) -> Any:  # noqa: ANN401 - JSON
        """Send a POST and return its JSON."""
        return self._send("POST", path, body)

    def put(self, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """Send a PUT and return its JSON."""
        return self._send("PUT", path, body)

    def delete(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """Send a DELETE and return its JSON."""
        return self._send("DELETE", path)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | bytes | None = None) -> Any:  # noqa: ANN401 - JSON
        """Send a request and return the answer.

        Raises:
            ControlRefused: the server refuses the request.
            OSError: the server has ended.
        """
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = Request(self.url + path, data, method=method)  # noqa: S310 - the server's own URL
        request.add_header("Content-Type", "application/json")
        try:
            with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - as above
                content = answer.read()
        except HTTPError as error:
            with error:
                text = error.read().decode(errors="replace")
            raise ControlRefused(f"{method} {path}: {text}", error.code) from None
        return json.loads(content) if content else None


WAIT_S: Final = 30.0
"""Default time to wait for a group."""
_START_S: Final = 60
_END_S: Final = 10
_TIMED_OUT: Final = 408
_NOTHING: Final = 1 << 53
"""Position behind every event."""
_FIRST_LINE: Final = "the ready line of `coordinator-sim serve`"

QUICK: Final = {"group.initial.rebalance.delay.ms": "0"}
"""Default broker settings: groups do not wait for more members."""


class ServerDied(CoordinatorSimError):
    """A served cluster did not start, or has ended; the message has its last lines."""


class ServerKind(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of a cluster; tests that want the same ones share a process.

    Args:
        profile: Profile of Kafka that it behaves like.
        brokers: Number of brokers.
        settings: Settings of the brokers, sorted by name.
        bugs: Bugs of the group coordinator that it is broken with.
    """

    profile: str
    brokers: int = 1
    settings: tuple[tuple[str, str], ...] = ()
    bugs: tuple[str, ...] = ()

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of the child."""
        yield from ("serve", "--port", "0", "--control-port", "0", "--profile", self.profile)
        yield from ("--brokers", str(self.brokers))
        for name, value in self.settings:
            yield from ("--set", f"{name}={value}")
        for bug in self.bugs:
            yield from ("--bug", bug)


class ServerProcess:
    """A served cluster in a child process.

    Attributes:
        bootstrap: Addresses of its brokers.
        control: Client of its control surface.
    """

    def __init__(self, kind: ServerKind) -> None:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "coordinator_sim_pytest.child", *kind.arguments()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        watchdog = Timer(_START_S, self._process.kill)
        watchdog.start()
        line = cast("IO[bytes]", self._process.stdout).readline()
        watchdog.cancel()
        if not line.startswith(b"{"):
            words = self._last_words()
            self.close()
            raise ServerDied(f"{_FIRST_LINE} did not come: {words}")
        ready = msgspec.json.decode(line)
        self.bootstrap: str = ready["bootstrap"]
        self.control = ControlClient(ready["control"])

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it at once, with everything it holds."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            cast("IO[bytes]", pipe).close()
        self._log.close()

    def _last_words(self) -> str:
        self._process.wait(_END_S)
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        errors = [line for line in lines if line.startswith("error: ")]
        ended = f"it ended with {self._process.returncode}"
        return (errors or lines or [ended])[-1]


class ServedKafka:
    """A cluster for one test: fresh, and alone in its process.

    Attributes:
        bootstrap: Value for a client's `bootstrap.servers`.
        control: Control surface, for operations without a method here.
    """

    def __init__(self, process: ServerProcess) -> None:
        self.bootstrap = process.bootstrap
        self.control = process.control
        self._events: list[TraceEvent] = []
        self.control.post("/v1/reset")
        self._read_to = int(self.control.get("/v1/trace/events", after=_NOTHING)["last_seq"])

    # -- inspection ------------------------------------------------------------------------

    @property
    def events(self) -> list[TraceEvent]:
        """Events of the group coordinators since the test began."""
        found = self.control.get("/v1/trace/events", after=self._read_to)
        self._read_to = found["last_seq"]
        self._events += msgspec.convert(found["events"], list[TraceEvent])
        return self._events

    def group(self, group_id: str) -> dict[str, Any]:
        """Return a group with its members and offsets."""
        found: dict[str, Any] = self.control.get(f"/v1/groups/{_part(group_id)}")
        return found

    def wait_for_group(
        self,
        group_id: str,
        state: str | None = "Stable",
        *,
        members: int | None = None,
        min_generation: int | None = None,
        timeout_s: float = WAIT_S,
    ) -> dict[str, Any]:
        """Return when a group is in that state, with so many members, in that generation or past.

        Raises:
            ControlRefused: it was not within `timeout_s`; the message has its present state.
        """
        found: dict[str, Any] = self.control.get(
            f"/v1/groups/{_part(group_id)}/wait",
            state=state,
            members=members,
            min_generation=min_generation,
            timeout_ms=int(timeout_s * 1_000),
        )
        return found

    # -- operations ------------------------------------------------------------------------

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic that does not exist."""
        body = {"name": name, "partitions": partitions, "configs": dict(configs or {})}
        self.control.post("/v1/topics", body)

    def add_fault(self, rule: Fault | Mapping[str, Any]) -> int:
        """Add a fault rule; return its id."""
        added = self.control.post("/v1/faults", msgspec.json.encode(rule_of(rule)))
        return int(added["fault_id"])

    def fault_hits(self, fault_id: int) -> int:
        """Return how often a rule acted."""
        return int(self.control.get(f"/v1/faults/{fault_id}")["hits"])

    def clear_faults(self) -> None:
        """Remove every rule."""
        self.control.delete("/v1/faults")

    def stop_broker(self, broker_id: int = 1) -> None:
        """Kill a broker: its memory is lost."""
        self.control.post(f"/v1/brokers/{broker_id}/stop")

    def start_broker(self, broker_id: int = 1) -> None:
        """Start a broker that was stopped: it loads its groups from the log."""
        self.control.post(f"/v1/brokers/{broker_id}/resume")

    def restart_broker(self, broker_id: int = 1) -> None:
        """Stop a broker, and start it again."""
        self.control.post(f"/v1/brokers/{broker_id}/restart")

    def set_clock(self, clock: str) -> None:
        """Set the groups' clock: `virtual`, `virtual auto` or `scaled 10`.

        Clients' own waiting on their sockets stays on the wall clock.
        """
        self.control.put("/v1/clock", {"clock": clock})

    def advance(self, ms: int) -> list[str]:
        """Advance a virtual clock; return the names of the events that this caused, in order.

        Raises:
            ControlRefused: the clock is not virtual, or has not arrived within a minute of wall
                time: the advance is then cancelled.
        """
        try:
            moved = self.control.post("/v1/clock/advance", {"ms": ms})
        except TimeoutError:
            stopped = self.control.post("/v1/clock/stop")
            raise ControlRefused(
                f"advance({ms}) was called off at group time {stopped['group_ms']}: it was not "
                f"there after {PATIENCE_S} s on the wall",
                _TIMED_OUT,
            ) from None
        return [each["event"] for each in moved["fired"]]

    def move_coordinator(self, group_id: str, to: int | None = None) -> None:
        """Let another broker coordinate a group; None for the next running one."""
        self.control.post(f"/v1/groups/{_part(group_id)}/move-coordinator", {"to": to})


class KafkaServers:
    """The processes of one run of pytest, or of one worker of it: one of each kind."""

    def __init__(self) -> None:
        self._processes: dict[ServerKind, ServerProcess] = {}

    def fresh(self, kind: ServerKind, faults: Sequence[Fault] = ()) -> ServedKafka:
        """Return a fresh cluster of that kind.

        Raises:
            ServerDied: the cluster does not start.
        """
        process = self._processes.get(kind)
        if process is None or not process.is_alive():
            process = self._processes[kind] = ServerProcess(kind)
        elif "confluent_kafka" in sys.modules:
            # A client of librdkafka has no end but its collection. One that an exception of the
            # last test holds would connect again, and make that test's topics here.
            gc.collect()
        served = ServedKafka(process)
        for fault in faults:
            served.add_fault(fault)
        return served

    def give_back(self, kind: ServerKind) -> None:
        """Take a test's cluster back; it ends if its clock was changed, as time cannot go back."""
        process = self._processes[kind]
        if not process.is_alive() or process.control.get("/v1/clock")["clock"] != "wall":
            del self._processes[kind]
            process.close()

    def close(self) -> None:
        """End every process."""
        for process in self._processes.values():
            process.close()
        self._processes.clear()


def _part(text: str) -> str:
    """Quote a name as part of a path."""
    return quote(text, safe="")
