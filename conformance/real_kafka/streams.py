"""Kafka Streams applications of our own, on the published classes of Apache Kafka."""

import os
import subprocess
from pathlib import Path
from typing import Final

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.real_kafka.kafka import HERE, JARS_VARIABLE, JVM, resolve_jars

STREAMS_VERSION: Final = "4.4.0"
"""Newest release of Kafka Streams."""
OLD_STREAMS_VERSION: Final = "4.2.1"
"""First line of releases with the streams protocol."""

_QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
_STORY_TIMEOUT_S: Final = 180


def streams_jars(version: str) -> Path:
    """Return the folder with the jars of Kafka Streams, resolved by Maven on first use.

    Raises:
        MissingDependencyError: Maven is missing, or cannot resolve them.
    """
    root = Path(os.environ.get(JARS_VARIABLE, HERE / "target"))
    lib = root / f"streams-{version}" / "lib"
    if not any(lib.glob("kafka-streams-*.jar")):
        resolve_jars(version, lib, "-Pstreams")
    return lib


def streams_story(version: str, bootstrap: str) -> list[str]:
    """What the applications of StreamsGroupClient.java print at a broker.

    Args:
        version: Of Kafka Streams.
        bootstrap: Address of the broker.

    Raises:
        DataError: a part failed; the message holds what was printed.
        MissingDependencyError: Maven is missing, or cannot resolve the jars.
    """
    classes = f"{streams_jars(version)}{os.sep}*"
    source = str(HERE / "StreamsGroupClient.java")
    command = ["java", *JVM, _QUIET, "-cp", classes, source, bootstrap]
    done = subprocess.run(  # noqa: S603 - our own command line
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=_STORY_TIMEOUT_S,
        encoding="utf-8",
    )
    if done.returncode:
        raise DataError(f"StreamsGroupClient: {(done.stdout + done.stderr).strip()[-2000:]}")
    return done.stdout.splitlines()


def member_command(version: str, directory: Path) -> list[str]:
    """Return the command line of StreamsMember.java, compiled into a directory, without arguments.

    Raises:
        MissingDependencyError: Maven is missing, or cannot resolve the jars.
    """
    classes = f"{streams_jars(version)}{os.sep}*"
    source = str(HERE / "StreamsMember.java")
    command = ["javac", "-cp", classes, "-d", str(directory), source]
    subprocess.run(command, check=True)  # noqa: S603 - our own command line
    path = f"{directory}{os.pathsep}{classes}"
    return ["java", *JVM, _QUIET, "-cp", path, "StreamsMember"]
