"""The class path, the classes and the JVM of Kafka's unit tests at the door of `lines`."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from shutil import copytree
from typing import Final

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_conformance.kafka_tests.results import Invocation, read_report
from coordinator_sim_conformance.real_kafka.kafka import JARS_VARIABLE, resolve_jars

HERE: Final = Path(__file__).parent
CLASSES: Final = tuple(
    f"org.apache.kafka.coordinator.group.{name}"
    for name in ("GroupMetadataManagerTest", "OffsetMetadataManagerTest")
)
"""The test classes; Kafka 4.4.0 has not published them."""
_SOURCES: Final = HERE / "java"
_TEST_TIMEOUT_S: Final = 60
_RUN_TIMEOUT_S: Final = 15 * 60


def left_out() -> dict[str, str]:
    """Tests that the door cannot judge, as `CLASS#METHOD`, with the reason."""
    kinds = tomllib.loads((HERE / "left_out.toml").read_text(encoding="utf-8"))
    return {test: f"{kind}: {why}" for kind, tests in kinds.items() for test, why in tests.items()}


def class_path(release: str) -> list[str]:
    """The class path of a release's tests, ours first; jars and classes are made once.

    Raises:
        MissingDependencyError: Java or Maven is missing, or cannot do it.
    """
    root = Path(os.environ.get(JARS_VARIABLE, HERE.parent / "target")) / f"door-{release}"
    jars, classes = root / "lib", root / "classes"
    if not any(jars.glob("kafka-group-coordinator-*-test.jar")):
        resolve_jars(release, jars, project=HERE / "pom.xml")
    sources = sorted(_SOURCES.rglob("*.java"))
    compiled = classes / "org/apache/kafka/coordinator/group/Door.class"
    newest = max(path.stat().st_mtime for path in sources)
    if not compiled.exists() or compiled.stat().st_mtime < newest:
        command = ["javac", "-nowarn", "-proc:none", "-d", str(classes), "-cp", f"{jars}/*"]
        done = subprocess.run(  # noqa: S603 - javac on our own sources
            [*command, *map(str, sources)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if ": error: " in line]
            raise MissingDependencyError(f"javac cannot compile {_SOURCES}: {errors[:1]}")
    copytree(_SOURCES / "META-INF", classes / "META-INF", dirs_exist_ok=True)
    return [str(classes), f"{jars}/*"]


def jvm_properties(release: str) -> tuple[str, ...]:
    """Options of the JVM beside the class path."""
    profile = release.rpartition(".")[0]
    lines = [sys.executable, "-m", "coordinator_sim", "lines", "--profile", profile]
    return (
        "-Xmx768m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
        "-Djdk.attach.allowAttachSelf=true",
        f"-Ddoor.lines={shlex.join(lines)}",
        "-Djunit.jupiter.extensions.autodetection.enabled=true",
        "-Djunit.jupiter.execution.timeout.thread.mode.default=SEPARATE_THREAD",
        f"-Djunit.jupiter.execution.timeout.default={_TEST_TIMEOUT_S} s",
    )


def run_class(release: str, name: str, folder: Path) -> list[Invocation]:
    """Run a test class without what is left out.

    Args:
        release: Of Kafka.
        name: Full name of the class.
        folder: Gets the report and the output.

    Raises:
        DataError: The JVM has reported nothing.
        MissingDependencyError: See `class_path`.
    """
    reports = folder / name
    reports.mkdir(parents=True, exist_ok=True)
    without = [f"--exclude-methodname={re.escape(test)}" for test in left_out()]
    command = ["java", *jvm_properties(release), "-cp", os.pathsep.join(class_path(release))]
    command += ["org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"]
    command += ["--details=none", f"--reports-dir={reports}", f"--select-class={name}", *without]
    with (reports / "out.txt").open("wb") as out:
        subprocess.run(  # noqa: S603 - our own command line
            command, stdout=out, stderr=subprocess.STDOUT, timeout=_RUN_TIMEOUT_S, check=False
        )
    return read_report(reports / "TEST-junit-jupiter.xml")
