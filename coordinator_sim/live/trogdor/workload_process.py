"""A workload as a process that speaks the lines of an ExternalCommand.

It reads one line, `{"id": TASK, "workload": SPEC}`, and writes objects with `status`, `log` and, at
the end, `error`, empty for success. So it runs under an agent of ours, under Kafka's by an
ExternalCommandSpec, and by hand:

    python -m coordinator_sim.live.trogdor.workload_process < line.json

SIGTERM and Ctrl-C stop the workload, as Kafka's worker is stopped; so does the end of the process
that started this one, since Kafka's workloads end with their agent. How long a task may take is up
to the agent: `durationMs` means nothing here. Arguments are not read; the agent gives the task's id
and the spec's class, for whoever looks at a list of processes.

Exit code 1 when the workload ended by itself with an error; 0 otherwise.

DEVIATION: consumers that Kafka's ConsumeBench leaves open when it is stopped send heartbeats until
`max.poll.interval.ms` is over; here they end with the process, and their group evicts them after
`session.timeout.ms`.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import IO, TYPE_CHECKING, Final

from msgspec import Struct

from coordinator_sim.connect.thread import Blocking
from coordinator_sim.errors import MissingDependencyError, needing
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.agent import WorkFailed
from coordinator_sim.trogdor.contract import Json
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.workloads.clients import Workload
from coordinator_sim.trogdor.workloads.registry import workload_of

if TYPE_CHECKING:
    from coordinator_sim.live.trogdor.confluent_clients import ConfluentClients

MODULE: Final = __spec__.name
"""What `python -m` runs."""
_FORM: Final = '{"id": TASK_ID, "workload": TASK_SPEC}'
_LOOK_AROUND_S: Final = 1.0
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Lines:
    """Writes the output of the process, a JSON object per line; the workload's `Report`.

    Args:
        output: Stream that is written to.

    Attributes:     over: Receives an item when the workload is over, or is to end.     error: Error
    that the workload ended with; None before its end.
    """

    def __init__(self, output: IO[bytes]) -> None:
        self._output = output
        self._lock = threading.Lock()
        # A queue of this kind may be filled by a signal handler.
        self.over: SimpleQueue[None] = SimpleQueue()
        self.error: str | None = None

    def status(self, value: Json) -> None:
        """Say the status."""
        self._say({"status": value})

    def log(self, text: str) -> None:
        """Say something to the operator."""
        self._say({"log": text})

    def halt(self, error: str = "") -> None:
        """Say that the workload is over, the first time."""
        if self.error is None:
            self.error = error
            self._say({"error": error})
            self.over.put(None)

    def _say(self, words: dict[str, Json]) -> None:
        line = jackson.write(words) + b"\n"
        with self._lock:
            try:
                self._output.write(line)
                self._output.flush()
            except BrokenPipeError:
                # Kafka's agent closes the pipe when it stops a command, and then hears nothing.
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._output.fileno())


class Start(Struct, frozen=True):
    """What the process is to do."""

    task_id: str
    spec: TaskSpec


def read_start(line: bytes) -> Start:
    """The task in the first line.

    Raises:
        TrogdorRefusal: there is none in it.
    """
    said = jackson.read_tree(line)
    if not isinstance(said, dict) or not isinstance(said.get("id"), str):
        raise TrogdorRefusal(400, f"the first line is no {_FORM}")
    return Start(said["id"], jackson.from_tree(said.get("workload"), TaskSpec))


def main() -> int:
    """Run the workload of the first line; return the exit code."""
    lines = Lines(sys.stdout.buffer)
    _end_on_signals(lines)
    try:
        start = read_start(sys.stdin.buffer.readline())
    except TrogdorRefusal as refusal:
        lines.halt(refusal.message)
        return 1
    try:
        with needing("clients", "a workload"):
            from coordinator_sim.live.trogdor.confluent_clients import ConfluentClients
    except MissingDependencyError as missing:
        lines.halt(str(missing))
        return 1
    clients = ConfluentClients(lines.log)
    try:
        workload = workload_of(start.task_id, start.spec, clients, lines)
    except WorkFailed as failure:
        lines.halt(str(failure))
        return 1
    if workload is None:
        lines.halt(f"{type(start.spec).__name__} is no workload that this process runs")
        return 1
    return _run(workload, clients, lines)


def _run(workload: Workload, clients: "ConfluentClients", lines: Lines) -> int:
    """Run a workload until it is over or is to be, and stop it."""
    threading.excepthook = _halting_hook(lines)
    clients.call(workload.begin)
    parent = os.getppid()
    while os.getppid() == parent:
        try:
            lines.over.get(timeout=_LOOK_AROUND_S)
        except Empty:
            continue
        break
    failed = bool(lines.error)
    ending: Blocking[None] = workload.end()
    clients.run(ending)
    return 1 if failed else 0


def _end_on_signals(lines: Lines) -> None:
    for number in _SIGNALS:
        signal.signal(number, lambda _number, _frame: lines.over.put(None))


def _halting_hook(lines: Lines) -> Callable[[threading.ExceptHookArgs], object]:
    """What a bug in a thread leads to: its stack on standard error, and the end of the workload."""
    show = threading.excepthook

    def hook(arguments: threading.ExceptHookArgs) -> None:
        show(arguments)
        lines.halt(f"{arguments.exc_type.__name__}: {arguments.exc_value}")

    return hook


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Consumers that are left open do not leave their groups, and threads are not waited for.
    os._exit(code)
