"""Which work a spec is on a real host.

A worker that runs a program, which speaks JSON lines.

The program reads one line, `{"id": ..., "workload": ...}`, and writes objects with `status`, `log`
or `error`; other lines are passed over. `log` and standard error go to the operator.

Source: kafka trunk, trogdor/.../trogdor/workload/ExternalCommandWorker.java.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Final, get_args

from msgspec import UNSET, Struct

from coordinator_sim.live.trogdor import workload_process
from coordinator_sim.live.trogdor.host_platform import HostPlatform
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.agent import NoWork, Progress, Work, WorkFailed
from coordinator_sim.trogdor.command_lines import read_output, start_line
from coordinator_sim.trogdor.contract import Json, StartWork
from coordinator_sim.trogdor.fault_work import fault_work
from coordinator_sim.trogdor.specs import NoOpTaskSpec, TaskSpec, class_of
from coordinator_sim.trogdor.workload_specs import ExternalCommandSpec
from coordinator_sim.trogdor.workloads.registry import WorkloadSpec

DEFAULT_GRACE_MS: Final = 5_000
"""How long a command has between SIGTERM and SIGKILL. Source: DEFAULT_SHUTDOWN_GRACE_PERIOD_MS."""
_LAST_OUTPUT_S: Final = 5.0
"""How long a killed program's output may stay open: a child of it may hold it.

DEVIATION: Kafka's worker is stopping until the output is closed.
"""
MOST_PROGRAMS: Final = 200
"""Programs that an agent runs at once.

DEVIATION: Kafka's agent runs any number; its workloads are threads, not processes as here.
"""
_LONGEST_LINE: Final = 1 << 20
"""Longer lines of a command are passed over."""
_OF_SIGNALS: Final = 128


class Program(Struct, frozen=True, kw_only=True):
    """A program that an agent runs as work.

    Args:
        command: The program and its arguments; the worker fails when it is empty.
        workload: What the program is told, any JSON value.
        grace_ms: Between SIGTERM and SIGKILL.
        is_worker: Whether it stands for a worker of Kafka's agent. Stopping it is then no error,
            whatever its exit code, and what it says until its end counts. QUIRK: a command that is
            no worker has failed when it is stopped, and is not heard any more.
    """

    command: tuple[str, ...]
    workload: Json
    grace_ms: int
    is_worker: bool = False


def program_of(spec: ExternalCommandSpec) -> Program:
    """The program of an ExternalCommand."""
    given_ms = spec.shutdown_grace_period_ms
    grace_ms = DEFAULT_GRACE_MS if given_ms is None else given_ms
    return Program(command=spec.command, workload=spec.workload, grace_ms=grace_ms)


class ExternalCommandWork:
    """A program under an agent.

    Args:
        platform: The host.
        task_id: Id of the task.
        program: What runs.
        progress: Takes what the work tells.
    """

    def __init__(
        self, platform: HostPlatform, task_id: str, program: Program, progress: Progress
    ) -> None:
        self._platform = platform
        self._task_id = task_id
        self._program = program
        self._progress = progress
        self._process: asyncio.subprocess.Process | None = None
        self._gone = asyncio.Event()
        self._is_told_to_end = False
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Start the program.

        Raises:
            WorkFailed: as many run as may.
        """
        if len(self._platform.processes) >= MOST_PROGRAMS:
            raise WorkFailed(f"{MOST_PROGRAMS} programs run on this node, the most at once")
        self._do(self._run())

    def end(self) -> None:
        """Ask the program to end, make it end after the grace period, and wait for it."""
        self._do(self._stop())

    def _do(self, work: Coroutine[object, object, None]) -> None:
        self._tasks.append(asyncio.get_running_loop().create_task(work))

    async def _run(self) -> None:
        try:
            process = await self._start()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            self._progress.halt(f"Unable to start process: {reason}")
            self._gone.set()
            self._progress.started()
            return
        self._process = process
        self._platform.processes[process.pid] = " ".join(self._program.command)
        self._progress.started()
        if process.stdin is not None:
            first = start_line(self._task_id, self._program.workload)
            process.stdin.write(f"{first}\n".encode(errors="replace"))
        await asyncio.gather(
            _lines(process.stdout, self._said),
            _lines(process.stderr, self._told),
            process.wait(),
        )
        del self._platform.processes[process.pid]
        code = process.returncode or 0
        if code < 0:
            code = _OF_SIGNALS - code
        self._progress.halt(f"exited with return code {code}" if code else "")
        self._gone.set()

    async def _start(self) -> asyncio.subprocess.Process:
        """Start the process.

        Raises:
            OSError: it cannot be started.
            ValueError: there is no command, or one with a zero byte.
        """
        if not self._program.command:
            raise ValueError("No command specified")
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *self._program.command, stdin=pipe, stdout=pipe, stderr=pipe, limit=_LONGEST_LINE
        )

    def _said(self, line: bytes) -> None:
        # Java's Process.destroy closes the streams with the signal.
        if self._is_told_to_end and not self._program.is_worker:
            return
        said = read_output(line.decode(errors="replace"))
        if said.status is not UNSET:
            self._progress.status(said.status)
        if said.log is not None:
            self._platform.tell(f"{self._task_id}: {said.log}")
        if said.error is not None:
            self._progress.halt(said.error)

    def _told(self, line: bytes) -> None:
        """Pass a line of standard error on."""
        text = line.decode(errors="replace").rstrip("\n")
        self._platform.tell(f"{self._task_id}: {text}")

    async def _stop(self) -> None:
        process, program = self._process, self._program
        self._is_told_to_end = True
        if program.is_worker:
            self._progress.halt()
        failure = ""
        if process is not None and not self._gone.is_set():
            with suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(self._gone.wait(), program.grace_ms / 1_000)
            except TimeoutError:
                with suppress(ProcessLookupError):
                    process.kill()
                if program.is_worker:
                    failure = f"killed: it had not stopped {program.grace_ms} ms after SIGTERM"
        try:
            await asyncio.wait_for(self._gone.wait(), _LAST_OUTPUT_S)
        except TimeoutError:
            if process is not None:
                # A Process has no other way to close its pipes.
                process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
        self._progress.stopped(failure)


async def _lines(stream: asyncio.StreamReader | None, take: Callable[[bytes], None]) -> None:
    """Take each line of a stream; one that is too long is passed over."""
    while stream is not None:
        try:
            line = await stream.readline()
        except ValueError:
            continue
        if not line:
            return
        take(line)


_GRACE_MS: Final = 180_000
"""How long a workload has to close its clients; Kafka's agent waits for a day.

A producer whose brokers are gone takes `delivery.timeout.ms`, by default 120 s.
"""


def work_on(platform: HostPlatform, start: StartWork, progress: Progress) -> Work:
    """The work of a worker on this host.

    Raises:
        WorkFailed: there is none of that kind here.
    """
    spec = start.spec
    if isinstance(spec, NoOpTaskSpec):
        return NoWork(start, progress)
    if isinstance(spec, ExternalCommandSpec):
        if not platform.allowed.commands:
            name = spec.command[0] if spec.command else "none"
            raise WorkFailed(
                f"this agent runs no commands ({name}): start it with --allow-commands"
            )
        return ExternalCommandWork(platform, start.task_id, program_of(spec), progress)
    if isinstance(spec, get_args(WorkloadSpec)):
        program = workload_program(start.task_id, spec)
        return ExternalCommandWork(platform, start.task_id, program, progress)
    work = fault_work(platform, start, progress)
    if work is None:
        raise WorkFailed(f"{type(spec).__name__} is not run by this agent")
    return work


def workload_program(task_id: str, spec: TaskSpec) -> Program:
    """The process that runs a workload; its arguments tell a ProcessStop which one it is."""
    return Program(
        command=(sys.executable, "-m", workload_process.MODULE, task_id, class_of(spec)),
        workload=jackson.tree(spec),
        grace_ms=_GRACE_MS,
        is_worker=True,
    )
