"""The clients that the suite drives by itself, and how their drivers are built."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from coordinator_sim.errors import ConfigError, DataError, MissingDependencyError
from coordinator_sim_conformance.clients.driver import Program
from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION, jars_of

DRIVERS: Final = Path(__file__).parent / "drivers"
_PYTHON: Final = {
    "librdkafka": ("confluent_kafka", "confluent-kafka"),
    "aiokafka": ("aiokafka", "aiokafka"),
    "kafka-python": ("kafka", "kafka-python"),
}
"""Module and distribution of each client that this Python runs."""
_GO: Final = {"franz-go": "franz_go", "sarama": "sarama"}
"""Folder of the driver of each client in Go."""
JAVA: Final = "java"
KNOWN: Final = (JAVA, *_PYTHON, *_GO)

_OLDEST_GO: Final = (1, 26)
_BUILD_TIMEOUT_S: Final = 600
_JVM: Final = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
_ARGUMENTS: Final = ("{bootstrap}", "{group}", "{topic}")
_LAST_BYTES: Final = 300


def known_client(name: str, say: Callable[[str], None] = lambda _: None) -> Program:
    """Return the program of a client, built if need be.

    Args:
        name: One of `KNOWN`.
        say: Called before long steps.

    Raises:
        ConfigError: no client is called so.
        MissingDependencyError: it, or what builds it, is not installed.
        DataError: its driver cannot be built.
    """
    if name in _PYTHON:
        return Program(command=(*_python(name), *_ARGUMENTS))
    if name in _GO:
        return Program(command=(str(_go(name, say)), *_ARGUMENTS))
    if name == JAVA:
        return Program(command=(*_java(say), *_ARGUMENTS))
    raise ConfigError(f"no client is called {name!r}: use one of {', '.join(KNOWN)}, or --command")


def _python(name: str) -> tuple[str, ...]:
    module, distribution = _PYTHON[name]
    if importlib.util.find_spec(module) is None:
        raise MissingDependencyError(f"{name} is not installed: pip install {distribution}")
    return (sys.executable, str(DRIVERS / "python_clients.py"), name)


def _java(say: Callable[[str], None]) -> tuple[str, ...]:
    """Command of Java's consumer, with the jars of the newest release."""
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            raise MissingDependencyError(f"Java's client needs a JDK of 17 or later: no {program}")
    say(f"Java's client {BROKER_VERSION}")
    jars = jars_of(BROKER_VERSION)
    source = DRIVERS / "JavaConsumer.java"

    def build(target: Path) -> None:
        _run(["javac", "-cp", f"{jars}{os.sep}*", "-d", str(target), str(source)], "javac")

    classes = _built("java", [source], BROKER_VERSION, build)
    # The whole folder would have every JVM look into a hundred jars.
    wanted = ("kafka-clients-*", "slf4j-*", "lz4-*", "snappy-*", "zstd-*")
    found = [str(jar) for pattern in wanted for jar in sorted(jars.glob(f"{pattern}.jar"))]
    class_path = os.pathsep.join([str(classes), *found])
    return ("java", *_JVM, _QUIET, "-cp", class_path, "JavaConsumer")


def _go(name: str, say: Callable[[str], None]) -> Path:
    """Path of the driver of a client in Go."""
    folder = DRIVERS / _GO[name]
    sources = [folder / each for each in ("main.go", "go.mod", "go.sum")]

    def build(target: Path) -> None:
        go = _find_go(name)
        say(f"building the driver of {name}, once ...")
        environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false"}
        _run([go, "build", "-o", str(target / name), "."], "go", folder, environment)

    return _built(name, sources, "", build) / name


def _find_go(name: str) -> str:
    """Path of a Go that is new enough: the environment's own, or the machine's.

    Raises:
        MissingDependencyError: there is none.
    """
    for found in (Path(sys.executable).parent / "go", shutil.which("go")):
        if found is None or not Path(found).exists():
            continue
        told = subprocess.run([found, "version"], capture_output=True, text=True, check=True)  # noqa: S603 - Go itself
        version = re.search(r"go(\d+)\.(\d+)", told.stdout)
        if version is not None and tuple(map(int, version.groups())) >= _OLDEST_GO:
            return str(found)
    wanted = ".".join(map(str, _OLDEST_GO))
    raise MissingDependencyError(f"{name} needs Go {wanted} or later: put it on the path")


def _built(name: str, sources: list[Path], version: str, build: Callable[[Path], None]) -> Path:
    """Return the folder of what is built from these sources, of this version; build it once."""
    digest = hashlib.sha256(version.encode())
    for source in sources:
        digest.update(source.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "coordinator-sim"
    target = cache / f"{name}-{digest.hexdigest()[:16]}"
    if not target.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as made:
            (Path(made) / "built").mkdir()
            build(Path(made) / "built")
            # Another run may have been faster; what it built is the same.
            if not target.is_dir():
                (Path(made) / "built").rename(target)
    return target


def _run(
    words: list[str],
    what: str,
    folder: Path | None = None,
    environment: dict[str, str] | None = None,
) -> None:
    done = subprocess.run(  # noqa: S603 - a compiler on our own source
        words,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=_BUILD_TIMEOUT_S,
    )
    if done.returncode:
        raise DataError(f"{what} cannot build {folder or words[-1]}: {done.stderr[-_LAST_BYTES:]}")
