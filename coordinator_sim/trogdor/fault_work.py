"""Faults that a worker makes with the commands and files of its node, and takes back at its end.

Source: kafka trunk, trogdor/.../trogdor/fault: NetworkPartitionFaultWorker, ProcessStopFaultWorker,
DegradedNetworkFaultWorker, KiboshFaultWorker and Kibosh.
"""

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator
from functools import partial
from math import isqrt
from posixpath import join
from typing import Final, Protocol

import msgspec

from coordinator_sim.errors import UNREADABLE_JSON
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.agent import Progress, WorkFailed
from coordinator_sim.trogdor.contract import StartWork
from coordinator_sim.trogdor.fault_specs import (
    DegradedNetworkFaultSpec,
    FilesUnreadableFaultSpec,
    NetworkPartitionFaultSpec,
    ProcessStopFaultSpec,
)
from coordinator_sim.trogdor.topology import Topology

CONTROL_FILE: Final = "kibosh_control"

Argv = tuple[str, ...]
Commands = Generator[Argv, str, None]
"""Commands to run one after the other; each is sent its output."""
Output = Callable[[str | None, str], None]
"""Takes the output of a command, or None and what went wrong."""


class Platform(Protocol):
    """What a node lets its workers do."""

    node: str
    topology: Topology

    def run(self, argv: Argv, output: Output) -> None:
        """Run a command, and tell its output."""
        ...

    def address_of(self, hostname: str) -> str:
        """The address of a host."""
        ...

    def devices(self) -> list[str]:
        """The network devices of the node but the loopback, sorted."""
        ...

    def read(self, path: str) -> bytes | None:
        """The content of a file; None without it."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Replace a file."""
        ...


class CommandWork:
    """Work that consists of commands at its start, and of others at its end.

    Args:
        platform: The node.
        start: The worker.
        progress: Takes what the work tells.
    """

    def __init__(self, platform: Platform, start: StartWork, progress: Progress) -> None:
        self._platform = platform
        self._progress = progress
        self._task_id = start.task_id

    @abstractmethod
    def _apply(self) -> Commands:
        """The commands that make the fault; they tell the status."""

    @abstractmethod
    def _undo(self) -> Commands:
        """The commands that take the fault back; they tell the status."""

    def begin(self) -> None:
        """Make the fault."""
        self._run(self._apply(), lambda failure: self._progress.started(failure or None))

    def end(self) -> None:
        """Take the fault back."""
        self._run(self._undo(), self._progress.stopped)

    def _run(self, commands: Commands, over: Callable[[str], None]) -> None:
        """Run commands one after the other; what is over is told the failure, empty for none."""
        steps: list[Callable[[], Argv]] = [partial(next, commands)]
        is_stepping = False

        def go_on() -> None:
            nonlocal is_stepping
            # A platform may tell the output before it returns: a thousand commands would exhaust
            # the stack.
            while steps and not is_stepping:
                is_stepping = True
                argv = _next_command(steps.pop(), over)
                if argv is not None:
                    self._platform.run(argv, told)
                is_stepping = False

        def told(output: str | None, error: str) -> None:
            if output is None:
                steps.append(partial(commands.throw, WorkFailed(error)))
            else:
                steps.append(partial(commands.send, output))
            go_on()

        go_on()


def _next_command(step: Callable[[], Argv], over: Callable[[str], None]) -> Argv | None:
    """The next command to run; None when all are over."""
    try:
        return step()
    except StopIteration:
        over("")
    except WorkFailed as failure:
        over(str(failure))
    return None


class PartitionWork(CommandWork):
    """Drops what comes from the nodes on the other sides of a network partition."""

    def __init__(
        self,
        platform: Platform,
        start: StartWork,
        progress: Progress,
        spec: NetworkPartitionFaultSpec,
    ) -> None:
        super().__init__(platform, start, progress)
        self._spec = spec

    def _apply(self) -> Commands:
        self._progress.status(f"creating network partition {self._task_id}")
        yield from self._each("-A")
        self._progress.status(f"created network partition {self._task_id}")

    def _undo(self) -> Commands:
        self._progress.status(f"removing network partition {self._task_id}")
        yield from self._each("-D")
        self._progress.status(f"removed network partition {self._task_id}")

    def _each(self, action: str) -> Commands:
        own = self._platform.node
        sides = (side for side in self._spec.partitions if own not in side)
        for name in sorted({node for side in sides for node in side}):
            node = self._platform.topology.nodes.get(name)
            if node is None:
                raise WorkFailed(f"there is no node {name}")
            address = self._platform.address_of(node.hostname)
            rule = ("-p", "tcp", "-s", address, "-j", "DROP", "-m", "comment", "--comment", name)
            yield ("sudo", "iptables", action, "INPUT", *rule)


class ProcessStopWork(CommandWork):
    """Stops the Java processes of a name, and lets them go on at its end."""

    def __init__(
        self, platform: Platform, start: StartWork, progress: Progress, spec: ProcessStopFaultSpec
    ) -> None:
        super().__init__(platform, start, progress)
        self._spec = spec

    def _apply(self) -> Commands:
        self._progress.status(f"stopping {self._spec.java_process_name}")
        yield from self._signal("SIGSTOP")
        self._progress.status(f"stopped {self._spec.java_process_name}")

    def _undo(self) -> Commands:
        self._progress.status(f"resuming {self._spec.java_process_name}")
        yield from self._signal("SIGCONT")
        self._progress.status(f"resumed {self._spec.java_process_name}")

    def _signal(self, signal: str) -> Commands:
        """Send a signal to each process whose line has the name; QUIRK: none is no failure."""
        output = yield ("jcmd",)
        for line in output.split("\n"):
            pid = line.split(" ")[0]
            if self._spec.java_process_name in line and pid.isdecimal():
                yield ("kill", f"-{signal}", pid)


class DegradedNetworkWork(CommandWork):
    """Delays and limits what a node sends."""

    def __init__(
        self,
        platform: Platform,
        start: StartWork,
        progress: Progress,
        spec: DegradedNetworkFaultSpec,
    ) -> None:
        super().__init__(platform, start, progress)
        self._spec = spec

    def _apply(self) -> Commands:
        self._progress.status(f"enabling traffic control {self._task_id}")
        for device in self._devices():
            yield from self._degrade(device)
        self._progress.status(f"enabled traffic control {self._task_id}")

    def _undo(self) -> Commands:
        self._progress.status(f"disabling traffic control {self._task_id}")
        for device in self._devices():
            yield ("sudo", "tc", "qdisc", "del", "dev", device, "root")
        self._progress.status(f"disabled traffic control {self._task_id}")

    def _devices(self) -> list[str]:
        own = self._spec.node_specs.get(self._platform.node)
        if own is None:
            return []
        return [own.network_device] if own.network_device else self._platform.devices()

    def _degrade(self, device: str) -> Iterator[Argv]:
        own = self._spec.node_specs[self._platform.node]
        latency_ms, rate_kbit = own.latency_ms, own.rate_limit_kbit
        if latency_ms < 0 or rate_kbit < 0:
            raise WorkFailed(
                "Expected non-negative values for latencyMs and rateLimitKbit, but got "
                f"NodeDegradeSpec{{networkDevice='{own.network_device}', latencyMs={latency_ms}, "
                f"rateLimitKbit={rate_kbit}}}"
            )
        add = ("sudo", "tc", "qdisc", "add", "dev", device)
        root = (*add, "root", "handle", "1:0")
        rate = ("tbf", "rate", f"{rate_kbit}kbit", "burst", "1mbit", "latency", "500ms")
        if latency_ms:
            spread_ms = max(1, isqrt(latency_ms))
            delay = (f"{latency_ms}ms", f"{spread_ms}ms", "distribution", "paretonormal")
            yield (*root, "netem", "delay", *delay)
            if rate_kbit:
                yield (*add, "parent", "1:1", "handle", "10:", *rate)
        elif rate_kbit:
            yield (*root, *rate)


class _Unreadable(msgspec.Struct, frozen=True, rename="camel", tag_field="type", tag="unreadable"):
    """A fault in Kibosh's control file."""

    prefix: str | None = None
    error_code: int = 0


class _Control(msgspec.Struct, frozen=True):
    """Kibosh's control file."""

    faults: tuple[_Unreadable, ...] = ()


class UnreadableWork(CommandWork):
    """Has Kibosh fail the reads of files under a prefix."""

    def __init__(
        self,
        platform: Platform,
        start: StartWork,
        progress: Progress,
        spec: FilesUnreadableFaultSpec,
    ) -> None:
        super().__init__(platform, start, progress)
        self._fault = _Unreadable(spec.prefix, spec.error_code)
        self._path = join(spec.mount_path, CONTROL_FILE)

    def _apply(self) -> Commands:
        self._progress.status(f"Adding fault {self._task_id}")
        self._write((*self._faults(), self._fault))
        self._progress.status(f"Added fault {self._task_id}")
        yield from ()

    def _undo(self) -> Commands:
        self._progress.status(f"Removing fault {self._task_id}")
        faults = self._faults()
        if self._fault not in faults:
            shown = jackson.text(self._fault)
            raise WorkFailed(f"Failed to find fault {shown}. ")
        # QUIRK: every equal fault goes, also those of other workers.
        self._write(tuple(each for each in faults if each != self._fault))
        self._progress.status(f"Removed fault {self._task_id}")
        yield from ()

    def _faults(self) -> tuple[_Unreadable, ...]:
        content = self._platform.read(self._path)
        if content is None:
            raise WorkFailed(f"Can't find file {self._path}")
        try:
            return msgspec.json.decode(content, type=_Control).faults
        except UNREADABLE_JSON as error:
            raise WorkFailed(f"{self._path}: {error}") from error

    def _write(self, faults: tuple[_Unreadable, ...]) -> None:
        self._platform.write(self._path, jackson.write(_Control(faults)))


def fault_work(platform: Platform, start: StartWork, progress: Progress) -> CommandWork | None:
    """The work of a stock fault; None for any other spec."""
    match start.spec:
        case NetworkPartitionFaultSpec() as spec:
            return PartitionWork(platform, start, progress, spec)
        case ProcessStopFaultSpec() as spec:
            return ProcessStopWork(platform, start, progress, spec)
        case DegradedNetworkFaultSpec() as spec:
            return DegradedNetworkWork(platform, start, progress, spec)
        case FilesUnreadableFaultSpec() as spec:
            return UnreadableWork(platform, start, progress, spec)
        case _:
            return None
