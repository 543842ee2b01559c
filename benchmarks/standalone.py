"""A standalone Spark cluster of this machine: a master and workers, started from `pyspark`.

The Python of the workers is a plain environment that holds the libraries that workers need and
nothing of this package, so that whatever runs there was sent with the job.
"""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self
from urllib.error import URLError
from urllib.request import urlopen

from benchmarks.churn import processes
from coordinator_sim_reports.java import find_java, make_java_home

WORKER_LIBRARIES: Final = (
    *("numpy", "pyarrow", "msgspec", "pandas", "dateutil", "pytz", "six", "tzdata"),
    *("crc32c", "cramjam", "lz4", "zstandard"),
)
"""What workers need beside our code; the last four read segments."""
_HOST: Final = "127.0.0.1"
_STARTS_WITHIN_S: Final = 180
_ENDS_WITHIN_S: Final = 10


def plain_python(directory: Path) -> Path:
    """Make an environment with the libraries of workers alone; return its interpreter.

    The libraries are linked from this interpreter's environment.
    """
    venv.create(directory, with_pip=False, symlinks=True)
    (packages,) = (directory / "lib").glob("python*/site-packages")
    for name in WORKER_LIBRARIES:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            continue
        origin = Path(found.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        linked = [
            source,
            source.parent / f"{name}.libs",
            *source.parent.glob(f"{name}-*.dist-info"),
        ]
        for path in linked:
            if path.exists():
                (packages / path.name).symlink_to(path)
    return directory / "bin" / "python"


@dataclass
class StandaloneCluster:
    """One master and its workers; a context manager.

    Args:
        directory: Where logs and work directories go.
        workers: Number of workers, each of one core.

    Attributes:
        url: Names the master, for `--master` and `--spark`.
        processes: The workers' processes, by number.
    """

    directory: Path
    workers: int
    url: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __enter__(self) -> Self:
        port, self._page = _free_port(), _free_port()
        self.url = f"spark://{_HOST}:{port}"
        self.directory.mkdir(parents=True, exist_ok=True)
        named = ("--host", _HOST, "--port", str(port), "--webui-port", str(self._page))
        self.master = self._start("master", "org.apache.spark.deploy.master.Master", *named)
        self._wait_for(0)
        for number in range(self.workers):
            self.start_worker(number)
        self._wait_for(self.workers)
        return self

    def __exit__(self, *_error: object) -> None:
        for process in (*self.processes, self.master):
            process.terminate()
        for process in (*self.processes, self.master):
            try:
                process.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start_worker(self, number: int) -> None:
        """Start a worker of one core."""
        own = ("--host", _HOST, "--cores", "1", "--memory", "1200m", "--webui-port", "0")
        work = ("--work-dir", str(self.directory / f"work-{number}"))
        kind = "org.apache.spark.deploy.worker.Worker"
        self.processes.append(self._start(f"worker-{number}", kind, *own, *work, self.url))

    def kill_worker(self, number: int) -> None:
        """Kill a worker and the processes that it runs, as a machine that fails does."""
        worker = self.processes[number]
        for pid in processes(worker.pid):
            with suppress(ProcessLookupError):  # It ended between the listing and now.
                os.kill(pid, signal.SIGKILL)
        worker.wait(_ENDS_WITHIN_S)

    def alive_workers(self) -> int:
        """How many workers the master knows to be alive; -1 while it does not answer."""
        try:
            with urlopen(f"http://{_HOST}:{self._page}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (URLError, OSError):
            return -1

    def _wait_for(self, count: int) -> None:
        deadline_s = time.monotonic() + _STARTS_WITHIN_S
        while self.alive_workers() < count:
            if time.monotonic() > deadline_s:
                raise SystemExit(f"the cluster did not start; its logs are in {self.directory}")
            time.sleep(0.2)

    def _start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        import pyspark

        home = Path(pyspark.__file__).parent
        java = make_java_home(find_java(), self.directory / "java" / name)
        environment = {name: value for name, value in os.environ.items() if "PYTHON" not in name}
        environment |= {"SPARK_HOME": str(home), "JAVA_HOME": str(java), "SPARK_LOCAL_IP": _HOST}
        with (self.directory / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [home / "bin" / "spark-class", *command],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )


@contextmanager
def python_of_workers(interpreter: Path) -> Iterator[dict[str, str]]:
    """The environment of a driver whose workers run this interpreter."""
    told = {"PYSPARK_PYTHON": str(interpreter), "SPARK_LOCAL_IP": _HOST}
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    try:
        yield dict(os.environ)
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def has_our_package(interpreter: Path) -> bool:
    """Whether an interpreter can import this package."""
    program = "import importlib.util as u; raise SystemExit(u.find_spec('coordinator_sim') is None)"
    return (
        subprocess.run([interpreter, "-c", program], check=False, cwd="/", env={}).returncode == 0
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
