"""What an agent does on its host: commands, files, processes that it started.

Commands that need root are only told, unless they are allowed.
"""

import asyncio
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from coordinator_sim.trogdor.agent import WorkFailed
from coordinator_sim.trogdor.fault_work import Argv, Output
from coordinator_sim.trogdor.topology import Topology

_SUDO: Final = "sudo"
_JCMD: Final = "jcmd"
_LOOPBACK: Final = "lo"
_COMMAND_S: Final = 60.0
"""How long a command of a fault may run: they change a rule, or list processes.

DEVIATION: Kafka's agent waits without a bound, so that its worker neither starts nor stops.
"""

_UNUSABLE: Final = (OSError, ValueError)
"""What the system makes of a name: it refuses it, or Python does, for a zero byte in it."""

Told = Callable[[str], None]
"""Takes a line for the operator."""


class Allowed(Struct, frozen=True, kw_only=True):
    """What an agent may do, and for whom.

    Args:
        sudo: Run commands as root; otherwise they are told, and taken as done.
        any_process: Signal any process of this user, not only those that the agent started.
        token: Token that its callers must send; empty for none.
        commands: Run the programs of ExternalCommand tasks. DEVIATION: Kafka's agent runs them for
            whoever reaches it.
    """

    sudo: bool = False
    any_process: bool = False
    token: str = ""
    commands: bool = False


class HostPlatform:
    """The host of an agent.

    Args:
        node: Name of its node.
        topology: All nodes.
        allowed: See `Allowed`.
        told: See `Told`.

    Attributes:
        allowed: As above.
        processes: Processes that workers started: process id -> command line.
    """

    def __init__(self, node: str, topology: Topology, allowed: Allowed, told: Told) -> None:
        self.node = node
        self.topology = topology
        self.processes: dict[int, str] = {}
        self.allowed = allowed
        self._told = told
        self._running: set[asyncio.Task[None]] = set()

    def tell(self, line: str) -> None:
        """Show the operator a line."""
        self._told(line)

    def run(self, argv: Argv, output: Output) -> None:
        """Run a command, and tell its output."""
        task = asyncio.get_running_loop().create_task(self._run(argv, output))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _run(self, argv: Argv, output: Output) -> None:
        own = self._without_running(argv)
        if own is not None:
            output(own, "")
            return
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except _UNUSABLE as error:
            output(None, f"{_shown(argv)}: {_reason(error)}")
            return
        try:
            out, err = await asyncio.wait_for(process.communicate(), _COMMAND_S)
        except TimeoutError:
            process.kill()
            output(None, f"{_shown(argv)}: killed, for it ran longer than {_COMMAND_S:g} s")
            return
        if process.returncode:
            reason = err.decode(errors="replace").strip() or f"exit code {process.returncode}"
            output(None, f"{_shown(argv)}: {reason}")
            return
        found = out.decode(errors="replace")
        if argv[0] == _JCMD:
            # A workload here is a process of its own; in Kafka's agent it is a part of a JVM.
            found = f"{found.rstrip()}\n{self._own_processes()}"
        output(found, "")

    def _without_running(self, argv: Argv) -> str | None:
        """The output of a command that is not run; None for the others."""
        if argv[0] == _SUDO and not self.allowed.sudo:
            self._told(f"would run: {_shown(argv)}    (--allow-sudo runs it)")
            return ""
        if argv[0] == _JCMD and not (self.allowed.any_process and shutil.which(_JCMD)):
            return self._own_processes()
        return None

    def _own_processes(self) -> str:
        """The processes that workers started, in the form of jcmd."""
        return "\n".join(f"{pid} {command}" for pid, command in self.processes.items())

    def address_of(self, hostname: str) -> str:
        """The address of a host.

        Raises:
            WorkFailed: nobody knows it.
        """
        try:
            return socket.gethostbyname(hostname)
        except _UNUSABLE as error:
            raise WorkFailed(f"{hostname}: {_reason(error)}") from error

    def devices(self) -> list[str]:
        """The network devices but the loopback, sorted."""
        return sorted(name for _, name in socket.if_nameindex() if name != _LOOPBACK)

    def read(self, path: str) -> bytes | None:
        """The content of a file; None without it.

        Raises:
            WorkFailed: it cannot be read.
        """
        try:
            return Path(path).read_bytes()
        except FileNotFoundError:
            return None
        except _UNUSABLE as error:
            raise WorkFailed(f"{path}: {_reason(error)}") from error

    def write(self, path: str, content: bytes) -> None:
        """Replace a file.

        Raises:
            WorkFailed: it cannot be written.
        """
        try:
            Path(path).write_bytes(content)
        except _UNUSABLE as error:
            raise WorkFailed(f"{path}: {_reason(error)}") from error


def _shown(argv: Argv) -> str:
    """A command as a line; halves of surrogate pairs, which nobody can print, are escaped."""
    return " ".join(argv).encode(errors="backslashreplace").decode()


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
