"""Runs Kafka's test classes with JUnit, on a served cluster or on Kafka's own."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from shutil import copytree
from typing import Final
from zipfile import ZipFile

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import DataError, MissingDependencyError
from coordinator_sim_conformance.child_processes import end_with_us
from coordinator_sim_conformance.kafka_tests.results import (
    Invocation,
    Verdict,
    left_out,
    read_report,
)
from coordinator_sim_conformance.kafka_tests.suites import HERE, Suite
from coordinator_sim_conformance.real_kafka.kafka import JARS_VARIABLE, resolve_jars

_MANIFEST_LINE: Final = 70
_REPORT: Final = "TEST-junit-jupiter.xml"
_TEST_TIMEOUT_S: Final = 240
_CLASS_TIMEOUT_S: Final = 45 * 60
_JVM: Final = (
    "-Xmx768m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
    "-Djunit.jupiter.extensions.autodetection.enabled=true",
    "-Djunit.jupiter.execution.timeout.thread.mode.default=SEPARATE_THREAD",
    f"-Djunit.jupiter.execution.timeout.testtemplate.method.default={_TEST_TIMEOUT_S} s",
    f"-Djunit.jupiter.execution.timeout.test.method.default={_TEST_TIMEOUT_S} s",
)


class Stage(Struct, frozen=True):
    """What the classes of a suite run on.

    Args:
        jars: Kafka's jars, tests included.
        shim: Folder of our classes, which stand before them.
        asked: Options of the JVM that say how ours is started.
        folder: Working folder: logs of clusters, reports of JUnit.
    """

    jars: tuple[Path, ...]
    shim: Path
    asked: tuple[str, ...]
    folder: Path


def stage_for(suite: Suite, profile: str, folder: Path) -> Stage:
    """Resolve the jars of a suite by Maven and compile the shim, unless both are there.

    Args:
        suite: The suite.
        profile: The Kafka that ours behaves like.
        folder: Working folder.

    Raises:
        MissingDependencyError: Java or Maven is missing, or cannot do it.
    """
    root = Path(os.environ.get(JARS_VARIABLE, HERE / "target"))
    root = root / f"tests-{suite.jars}-{suite.release}"
    jars, shim = root / "lib", root / "shim"
    if not any(jars.glob("kafka-clients-*-test.jar")):
        resolve_jars(suite.release, jars, f"-P{suite.jars}", project=HERE / "pom.xml")
    sources = HERE / "door" / "java" if suite.is_door else HERE / "java"
    if _newest(sources.rglob("*.java")) > _newest(shim.rglob("*.class")):
        _compile(sources, jars, shim)
    ours = (sys.executable, "-m", "coordinator_sim", "lines" if suite.is_door else "serve")
    command = shlex.join((*ours, "--profile", profile))
    asked = (f"-Dserved.command={command}", f"-Dserved.folder={folder}")
    if suite.is_door:
        asked = (f"-Ddoor.lines={command}", "-Djdk.attach.allowAttachSelf=true")
    return Stage(jars=jars_in_order(jars), shim=shim, asked=asked, folder=folder)


def jars_in_order(folder: Path) -> tuple[Path, ...]:
    """Jars of a folder for a class path: Connect's by name, the others by one that names them.

    A worker of Connect looks for plugins in each jar that the class path names, a test of Connect
    starts several workers, and most of 150 jars have none.
    """
    jars = tuple(sorted(folder.glob("*.jar")))
    named = [jar for jar in jars if jar.name.startswith("connect-")]
    if not named:
        return jars
    line = f"Class-Path: {' '.join(jar.as_uri() for jar in jars if jar not in named)}"
    lines = [line[at : at + _MANIFEST_LINE] for at in range(0, len(line), _MANIFEST_LINE)]
    others = folder.parent / "others.jar"
    with ZipFile(others, "w") as written:
        text = "Manifest-Version: 1.0\n" + "\n ".join(lines) + "\n"
        written.writestr("META-INF/MANIFEST.MF", text)
    return (*named, others)


def _newest(files: Iterable[Path]) -> float:
    return max((path.stat().st_mtime for path in files), default=0.0)


def _compile(sources: Path, jars: Path, shim: Path) -> None:
    command = ["javac", "-nowarn", "-proc:none", "-d", str(shim), "-cp", f"{jars}{os.sep}*"]
    command += map(str, sorted(sources.rglob("*.java")))
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - javac on our own sources
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if ": error: " in line]
        raise MissingDependencyError(f"javac cannot compile {sources}: {errors[:1]}")
    if (sources / "META-INF").is_dir():
        copytree(sources / "META-INF", shim / "META-INF", dirs_exist_ok=True)


def run_class(
    stage: Stage,
    name: str,
    test: str = "",
    *,
    without: Sequence[str] = (),
    on_kafka: bool = False,
) -> list[Invocation]:
    """Run one test class in a JVM of its own.

    Args:
        stage: What it runs on.
        name: Full name of the class.
        test: `CLASS#METHOD` to run of it; empty: all.
        without: `CLASS#METHOD` of those that are not run.
        on_kafka: Run it on Kafka's own test cluster instead, the control.

    Raises:
        DataError: the JVM did not end by itself, or has reported nothing.
    """
    kind = "kafka" if on_kafka else "serve"
    folder = stage.folder / kind / re.sub(r"[^\w.]", "-", test or name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _REPORT).unlink(missing_ok=True)
    class_path = (*(() if on_kafka else (stage.shim,)), *stage.jars)
    command = [
        "java",
        *_JVM,
        *stage.asked,
        "-cp",
        os.pathsep.join(map(str, class_path)),
        "org.junit.platform.console.ConsoleLauncher",
        "execute",
        "--disable-banner",
        "--disable-ansi-colors",
        "--details=testfeed",
        f"--reports-dir={folder}",
        f"--select-class={name}",
        *([f"--include-methodname={re.escape(test)}"] if test else ()),
        *(f"--exclude-methodname={re.escape(each)}" for each in without),
    ]
    with (folder / "out.txt").open("wb") as out:
        process = subprocess.Popen(  # noqa: S603 - our own command line
            command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=folder
        )
        end_with_us(process)
        try:
            process.wait(_CLASS_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            raise DataError(
                f"{name} did not end within {_CLASS_TIMEOUT_S} s; see {folder}"
            ) from error
        finally:
            process.kill()
    return read_report(folder / _REPORT)


def judged_class(stage: Stage, name: str, *, with_left_out: bool = False) -> list[Invocation]:
    """Run a class; run each test that failed again alone, and, if need be, on Kafka's own cluster.

    Args:
        stage: What it runs on.
        name: Full name of the class.
        with_left_out: Run the tests that are left out too: one that passes counts as passed.
    """
    reasons = {test: why for test, why in left_out().items() if test.startswith(f"{name}#")}
    skipped = () if with_left_out else tuple(reasons)
    try:
        ran = run_class(stage, name, without=skipped)
    except DataError as error:
        return [Invocation(f"{name}#", "", Verdict.FAILED, str(error))]
    judged = [Invocation(each, "", Verdict.LEFT_OUT, reasons[each]) for each in skipped]
    again: dict[str, Verdict] = {}
    for each in ran:
        if each.verdict is Verdict.PASSED:
            judged.append(each)
        elif each.test in reasons:
            judged.append(replace(each, verdict=Verdict.LEFT_OUT, message=reasons[each.test]))
        else:
            if each.test not in again:
                again[each.test] = _second_verdict(stage, name, each)
            judged.append(replace(each, verdict=again[each.test]))
    return judged


def _second_verdict(stage: Stage, name: str, failed: Invocation) -> Verdict:
    if _passes(run_class(stage, name, failed.test)):
        return Verdict.PASSED_AGAIN
    if _passes(run_class(stage, name, failed.test, on_kafka=True)):
        return Verdict.FAILED
    return Verdict.FAILED_ON_KAFKA


def _passes(invocations: list[Invocation]) -> bool:
    return bool(invocations) and all(each.verdict is Verdict.PASSED for each in invocations)
