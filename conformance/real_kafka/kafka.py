"""Jars of Apache Kafka, resolved once by Maven, and programs that run from them.

Not needed to install or test the library itself.
"""

import os
import shutil
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fcntl import LOCK_EX, flock
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Final, Self

from coordinator_sim.errors import DataError, MissingDependencyError
from coordinator_sim_conformance.child_processes import end_with_us

HERE: Final = Path(__file__).parent
JARS_VARIABLE: Final = "COORDINATOR_SIM_KAFKA_JARS"
"""Environment variable: folder of VERSION/lib/*.jar, instead of `target` beside this module."""

BROKER_VERSION: Final = "4.4.0"
OLD_BROKER_VERSION: Final = "3.9.2"
"""Last release with the coordinator written in Scala."""
TOOLS_VERSION: Final = "4.3.1"
"""Newest release whose command-line tools are published; they work with a 4.4 broker."""

JVM: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options of every JVM: small, and quick to start."""

_QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
_RESOLVE_TIMEOUT_S: Final = 600
_RUN_TIMEOUT_S: Final = 120
_BOOT_TIMEOUT_S: Final = 120
_STOP_TIMEOUT_S: Final = 60
_POLL_S: Final = 0.1
_STARTED: Final = "Kafka Server started"


def require_java_and_maven() -> None:
    """Refuse to continue without Java and Maven.

    Raises:
        MissingDependencyError: `java` or `mvn` is not on the path.
    """
    for command, what in (("java", "a JDK of 17 or later"), ("mvn", "Maven")):
        if shutil.which(command) is None:
            raise MissingDependencyError(f"real Kafka needs {what}: {command} is not on the path")


def jars_of(version: str) -> Path:
    """Return the folder with the jars of a release, resolved by Maven on first use.

    Raises:
        MissingDependencyError: Maven is missing, or cannot resolve them.
    """
    root = Path(os.environ.get(JARS_VARIABLE, HERE / "target"))
    lib = root / version / "lib"
    if not any(lib.glob("kafka_2.1?-*.jar")):
        options = ["-Ptools"] if version == TOOLS_VERSION else []
        if version.startswith("0."):
            options.append("-Poldest")
        resolve_jars(version, lib, *options)
    return lib


def require_writable(folder: Path) -> None:
    """Create a folder for jars or classes, unless it is there.

    Raises:
        MissingDependencyError: it cannot be created or written, as that of an installed package.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_writable = os.access(folder, os.W_OK)
    except OSError:
        is_writable = False
    if not is_writable:
        raise MissingDependencyError(f"{folder} cannot be written: set {JARS_VARIABLE}=DIR")


def resolve_jars(version: str, lib: Path, *profile: str, project: Path = HERE / "pom.xml") -> None:
    """Have Maven copy the jars of a release into a folder; processes do so one after the other.

    Args:
        version: Version of Kafka.
        lib: The folder.
        profile: Profile of the project, as an option of Maven; none for a broker alone.
        project: The pom.xml that says which jars.

    Raises:
        MissingDependencyError: Maven is missing, or cannot resolve them, or the folder cannot be
            written.
    """
    require_java_and_maven()
    require_writable(lib)
    found = sorted(lib.iterdir())
    with (lib.parent / "resolving").open("w") as lock, TemporaryDirectory(dir=lib.parent) as folder:
        flock(lock, LOCK_EX)
        if sorted(lib.iterdir()) != found:
            return  # Another process has resolved them meanwhile.
        made = Path(folder) / "lib"
        command = [
            *("mvn", "-q", "-B", "-f", str(project), f"-Dkafka.version={version}", *profile),
            "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
            f"-DoutputDirectory={made.resolve()}",
            "-DincludeScope=runtime",
        ]
        done = _run(command, _RESOLVE_TIMEOUT_S)
        if done.returncode:
            raise MissingDependencyError(
                f"Maven cannot resolve Kafka {version}: {done.stdout.strip()[-500:]}"
            )
        # Whoever sees one jar sees all: the folder appears at once, in the place of an older half.
        if found:
            shutil.rmtree(lib)
        made.rename(lib)


def java_command(version: str, *arguments: str) -> list[str]:
    """Return the command that runs a main class, or a source file, with a release's jars."""
    return ["java", *JVM, _QUIET, "-cp", f"{jars_of(version)}{os.sep}*", *arguments]


def run_java(version: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a main class, or a source file, with a release's jars; errors are left to the caller."""
    return _run(java_command(version, *arguments), _RUN_TIMEOUT_S)


def run_client(command: str, bootstrap: str, *arguments: str) -> list[str]:
    """Run OffsetsClient.java with the clients of the broker's release; return its lines.

    Raises:
        DataError: the client failed; the message holds its output.
    """
    source = str(HERE / "OffsetsClient.java")
    done = run_java(BROKER_VERSION, source, command, bootstrap, *arguments)
    if done.returncode:
        raise DataError(f"OffsetsClient {command}: {done.stderr.strip()[-1000:]}")
    return done.stdout.splitlines()


class JavaServer(ABC):
    """A process of Kafka in a JVM, to be used as a context.

    Args:
        directory: Folder of its data, settings and log; created if absent.
        log: File there that receives its output.
    """

    jvm: tuple[str, ...] = JVM
    """Options of its JVM."""
    first_jars: tuple[Path, ...] = ()
    """Folders whose jars go before those of Kafka."""

    def __init__(self, directory: Path, log: str) -> None:
        self.directory = directory
        self.log = directory / log
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def start(self) -> None:
        """Start it and wait until it serves.

        Raises:
            DataError: the server did not start; the message holds the end of its log.
        """

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The broker's process; None when it was not started, or was stopped."""
        return self._process

    @property
    def pid(self) -> int | None:
        """Id of the process; None when it does not run."""
        return None if self._process is None else self._process.pid

    @abstractmethod
    def _serves(self) -> bool:
        """Whether it has started."""

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """Shut it down and wait for its end; ignored when it does not run."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        """Start the server and return it."""
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the server."""
        self.stop()

    def _boot(self, jars: Path, main: str, settings: Path) -> None:
        """Run its main class with these settings, and wait until it serves."""
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
        classes = os.pathsep.join(f"{folder}{os.sep}*" for folder in (*self.first_jars, jars))
        command = ["java", *self.jvm, level, "-cp", classes, main, str(settings)]
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(  # noqa: S603 - our own command line
                command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )
        end_with_us(self._process)
        deadline_s = time.monotonic() + _BOOT_TIMEOUT_S
        while not self._serves():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                self.kill()
                text = self.log.read_text(encoding="utf-8", errors="replace")
                raise DataError(f"{main} did not start: {text.strip()[-1000:]}")
            time.sleep(_POLL_S)


class Broker(JavaServer):
    """A broker and controller in one process, on free ports of this machine.

    It keeps its data between `stop` and `start`.

    Args:
        directory: Folder of its data, settings and log; created if absent.
        properties: Further settings of `server.properties`.
        version: Version of Kafka.
        features: Levels of features that differ from the release's own, finalized when the data is
            formatted.
    """

    def __init__(
        self,
        directory: Path,
        properties: dict[str, str] | None = None,
        version: str = BROKER_VERSION,
        features: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(directory, "broker.log")
        self._features = features or {}
        self._version = version
        self._properties = properties or {}
        self._port, self._controller_port = free_ports()

    @property
    def bootstrap(self) -> str:
        """Address that clients connect to."""
        return f"127.0.0.1:{self._port}"

    @property
    def data(self) -> Path:
        """Folder of its data, `log.dirs`."""
        return self.directory / "data"

    def start(self) -> None:
        """Format its data if there is none, start it and wait until it serves.

        Raises:
            DataError: the broker did not start; the message holds the end of its log.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        settings = self.directory / "server.properties"
        write_properties(settings, self._settings())
        if not (self.data / "meta.properties").exists():
            cluster = ("-t", "4L6g3nShT-eMCtK--X86sw")
            tool = ("kafka.tools.StorageTool", "format", *cluster, "-c", str(settings))
            levels = [f"--feature={name}={level}" for name, level in self._features.items()]
            done = run_java(self._version, *tool, *levels)
            if done.returncode:
                raise DataError(f"format: {(done.stdout + done.stderr).strip()[-1000:]}")
        self._boot(jars_of(self._version), "kafka.Kafka", settings)

    def _serves(self) -> bool:
        return _STARTED in self.log.read_text(encoding="utf-8", errors="replace")

    def _settings(self) -> dict[str, str]:
        listeners = f"PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self._controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "listeners": listeners,
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self.data.resolve()),
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.state.topic.num.partitions": "1",
            **self._properties,
        }


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write settings as a Java properties file."""
    lines = (f"{key}={value}\n" for key, value in properties.items())
    path.write_text("".join(lines), encoding="utf-8")


def free_ports() -> tuple[int, int]:
    """Return two ports that were free a moment ago."""
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        return first.getsockname()[1], second.getsockname()[1]


def _run(command: list[str], timeout_s: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command line
        command, capture_output=True, text=True, check=False, timeout=timeout_s, encoding="utf-8"
    )
