"""Servers under load, each a process: ours in its forms, a real Kafka, kfake; what they cost."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from coordinator_sim.errors import DataError, MissingDependencyError
from coordinator_sim_conformance.endpoints.go_program import built_go_program
from coordinator_sim_conformance.endpoints.named import KFAKE
from coordinator_sim_conformance.real_kafka.kafka import Broker, free_ports

HERE: Final = Path(__file__).parent
_API_VERSIONS: Final = struct.pack(">ihhih", 10, 18, 0, 7, -1)
_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
_START_TIMEOUT_S: Final = 30
_STOP_TIMEOUT_S: Final = 30


@dataclass(frozen=True)
class Server:
    """A running server.

    Args:
        address: Host and port.
        pid: Of its process.
    """

    name: str
    address: str
    pid: int

    def cpu_s(self) -> float:
        """User and system time of the process so far, from /proc."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
        user, system = fields.split()[11:13]
        return (int(user) + int(system)) / _TICKS_A_SECOND

    def rss_kb(self) -> int:
        """Memory of the process, from /proc."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return int(status.partition("VmRSS:")[2].split()[0])

    def rest(self) -> None:
        """Wait until it does next to nothing, so that nobody else's figures hold it."""
        for _ in range(50):
            before = self.cpu_s()
            time.sleep(0.1)
            if self.cpu_s() - before <= 2 / _TICKS_A_SECOND:
                return


class FullBroker(Broker):
    """A broker with the heap and compilers of a real one."""

    jvm = ("-Xmx1g", "-XX:+UseSerialGC")


@contextmanager
def kafka(folder: Path) -> Iterator[Server]:
    """A real Kafka of the newest release."""
    with FullBroker(folder / "kafka") as broker:
        if broker.pid is None:
            raise DataError("the broker has no process")
        yield Server("Kafka 4.4", broker.bootstrap, broker.pid)


@contextmanager
def ours(name: str, *options: str, port: int = 0) -> Iterator[Server]:
    """`coordinator-sim serve` without the control port, unless the options say otherwise."""
    command = [
        sys.executable,
        "-m",
        "coordinator_sim",
        "serve",
        "--port",
        str(port),
        "--no-control",
    ]
    with started([*command, "--set", "group.initial.rebalance.delay.ms=0", *options]) as process:
        yield Server(name, json.loads(line_of(process))["bootstrap"], process.pid)


@contextmanager
def kfake(folder: Path) -> Iterator[Server]:
    """franz-go's fake cluster."""
    with started([str(built_go_program(KFAKE, folder))]) as process:
        yield Server("kfake", line_of(process).strip(), process.pid)


class Load:
    """The load generator on one server; see loadgen/main.go for what it is told."""

    def __init__(self, process: subprocess.Popen[str], server: Server) -> None:
        self._process = process
        self.server = server

    def tell(self, command: str) -> Any:  # noqa: ANN401 - JSON
        """Have it do something to the end, or to where it waits for a word.

        Raises:
            DataError: It gave up; it has said why on stderr.
        """
        stdin = self._process.stdin
        if stdin is None:
            raise DataError("the load generator has no stdin")
        stdin.write(f"{command}\n")
        stdin.flush()
        return json.loads(line_of(self._process))

    def measured(self, command: str) -> tuple[Any, float]:
        """Do as `tell`, and say how many CPU-seconds it cost the server."""
        before = self.server.cpu_s()
        result = self.tell(command)
        return result, self.server.cpu_s() - before


@contextmanager
def load(program: Path, server: Server) -> Iterator[Load]:
    """The load generator, connected to nothing yet."""
    with started([str(program), server.address], stdin=subprocess.PIPE) as process:
        yield Load(process, server)


def start_up_s() -> float:
    """From exec to the first answer to ApiVersions, of one broker of ours."""
    port, _ = free_ports()
    began = time.monotonic()
    command = [sys.executable, "-m", "coordinator_sim", "serve", "--port", str(port)]
    with started([*command, "--no-control"]):
        while time.monotonic() - began < _START_TIMEOUT_S:
            if _answers(port):
                return time.monotonic() - began
            time.sleep(0.002)
    raise DataError(f"no answer within {_START_TIMEOUT_S} s")


def all_of(stack: ExitStack, folder: Path, makers: list[Callable[[], Any]]) -> list[Load]:
    """A load generator on each of these servers; those that cannot run here are left out."""
    program = built_go_program(HERE / "loadgen", folder)
    loads = []
    for make in makers:
        try:
            server = stack.enter_context(make())
        except MissingDependencyError as error:
            print(f"left out: {error}")
            continue
        loads.append(stack.enter_context(load(program, server)))
    return loads


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=_START_TIMEOUT_S) as found:
            found.sendall(_API_VERSIONS)
            return len(found.recv(4)) > 0
    except ConnectionError:
        return False


@contextmanager
def started(command: list[str], stdin: int = subprocess.DEVNULL) -> Iterator[Any]:
    """A process of a command, until the end; its output is a pipe."""
    process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def line_of(process: subprocess.Popen[str]) -> str:
    """The next line that a process writes.

    Raises:
        DataError: It has ended.
    """
    line = process.stdout.readline() if process.stdout is not None else ""
    if not line:
        raise DataError(f"{process.args} ended without a word")
    return line
