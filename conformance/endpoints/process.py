"""A server as a child process, and a watchdog that reports when it ends or hangs."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.child_processes import end_with_us

HANGS_AFTER_S: Final = 15.0
"""How long a server may leave ApiVersions without an answer."""
ENDED: Final = "the broker process"
"""How a verdict about a process begins."""
HANGS: Final = f"{ENDED} hangs"
"""How a verdict about a process that does not answer begins."""
_ASK_EVERY_S: Final = 2.0
_LOOK_EVERY_S: Final = 0.1
_START_TIMEOUT_S: Final = 60.0
_STOP_TIMEOUT_S: Final = 10.0
_TAIL_BYTES: Final = 16_000
_PANICS: Final = ("panic: ", "fatal error: ")
_TAIL_LINES: Final = 12
_API_VERSIONS: Final = b"\x00\x00\x00\x0a" + b"\x00\x12\x00\x00" + b"\x00\x00\x00\x01" + b"\xff\xff"
"""ApiVersions, version 0, without a client id."""


class Server(Struct, frozen=True, kw_only=True):
    """A server that was started and answers.

    Args:
        bootstrap: Address that clients connect to, `HOST:PORT`.
        process: Its process.
        log: File that receives its output.
    """

    bootstrap: str
    process: subprocess.Popen[bytes]
    log: Path


@contextmanager
def started(
    command: list[str],
    folder: Path,
    address_in: Callable[[str], str | None],
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Start a program that prints its address; killed at the end.

    Args:
        command: The program and its arguments.
        folder: Existing folder for its output.
        address_in: Returns the address of a line that tells it; None for any other.
        environment: Variables that it has besides our own.

    Raises:
        DataError: the program ends, or tells no address within a minute.
    """
    log = folder / "output.log"
    with log.open("wb") as out:
        process = subprocess.Popen(  # noqa: S603 - the program the caller names
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, **(environment or {})},
        )
    end_with_us(process)
    try:
        address = _told_address(process, log, address_in)
        yield Server(bootstrap=address, process=process, log=log)
    finally:
        process.kill()
        process.wait(_STOP_TIMEOUT_S)


def _told_address(
    process: subprocess.Popen[bytes], log: Path, address_in: Callable[[str], str | None]
) -> str:
    deadline_s = time.monotonic() + _START_TIMEOUT_S
    while True:
        has_ended = process.poll() is not None
        text = log.read_text(encoding="utf-8", errors="replace")
        whole_lines = text.rpartition("\n")[0].splitlines()
        for line in whole_lines:
            address = address_in(line)
            if address is not None:
                return address
        if has_ended or time.monotonic() > deadline_s:
            said = ended_how(process) or f"told no address within {_START_TIMEOUT_S:.0f} s"
            raise DataError(f"the broker process {said}: {text.strip()[-500:]}")
        time.sleep(_LOOK_EVERY_S)


def ended_how(process: subprocess.Popen[bytes]) -> str:
    """Return how a process ended, such as `ended with SIGABRT`; empty while it runs."""
    code = process.poll()
    if code is None:
        return ""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"ended with {signal.Signals(-code).name}"
    except ValueError:
        return f"ended with signal {-code}"


class Watchdog:
    """Watches a server's process until closed; one that hangs is killed.

    Args:
        server: The server.
        hangs_after_s: How long it may leave ApiVersions without an answer, in seconds.
    """

    def __init__(self, server: Server, hangs_after_s: float = HANGS_AFTER_S) -> None:
        self._server = server
        self._hangs_after_s = hangs_after_s
        self._lock = Lock()
        self._problem = ""
        self._is_over = Event()
        self._thread = Thread(target=self._watch, name="watchdog", daemon=True)
        self._thread.start()

    def problem(self) -> str:
        """Return what became of the process, in words; empty while it runs and answers."""
        with self._lock:
            if not self._problem:
                how = ended_how(self._server.process)
                self._problem = f"{ENDED} {how}" if how else ""
            return self._problem

    def asked_problem(self) -> str:
        """Return `problem`, having asked the server: its sockets may close before it ends.

        A server that does not answer is killed.
        """
        if not self.problem() and not self._answers() and not self.problem():
            with self._lock:
                self._problem = (
                    f"{HANGS}: no answer to ApiVersions within {self._hangs_after_s:g} s"
                )
            self._server.process.kill()
        return self.problem()

    def tail(self) -> list[str]:
        """Return the last lines of the process's output; of a panic of Go's the first ones."""
        text = self._server.log.read_bytes()[-_TAIL_BYTES:].decode("utf-8", errors="replace")
        lines = text.splitlines()
        panics = [number for number, line in enumerate(lines) if line.startswith(_PANICS)]
        return lines[panics[0] :][:_TAIL_LINES] if panics else lines[-_TAIL_LINES:]

    def last_words(self) -> str:
        """Return the line of `tail` that says most: a panic, or the last one."""
        tail = self.tail() or ["it wrote nothing"]
        return (tail[0] if tail[0].startswith(_PANICS) else tail[-1]).strip()

    def close(self) -> None:
        """Stop watching."""
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        asked_s = time.monotonic()
        while not self._is_over.wait(_LOOK_EVERY_S) and not self.problem():
            if time.monotonic() - asked_s > _ASK_EVERY_S:
                self.asked_problem()
                asked_s = time.monotonic()

    def _answers(self) -> bool:
        """Whether ApiVersions is answered within the bound; a refused connection is none."""
        host, _, port = self._server.bootstrap.rpartition(":")
        deadline_s = time.monotonic() + self._hangs_after_s
        while (left_s := deadline_s - time.monotonic()) > 0 and not self._is_over.is_set():
            try:
                with socket.create_connection((host, int(port)), timeout=left_s) as link:
                    link.sendall(_API_VERSIONS)
                    if link.recv(1):
                        return True
            except OSError:
                pass
            if ended_how(self._server.process):
                return False
            time.sleep(_LOOK_EVERY_S)
        return self._is_over.is_set()
