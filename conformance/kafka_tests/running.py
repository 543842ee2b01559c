"""Runs Kafka's test classes with JUnit, on a served cluster or on Kafka's own."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Final
from zipfile import ZipFile

from msgspec import Struct, field
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
from coordinator_sim_conformance.real_kafka.kafka import (
    JARS_VARIABLE,
    require_writable,
    resolve_jars,
)

_MANIFEST_LINE: Final = 70
_REPORT: Final = "TEST-junit-jupiter.xml"
_TEST_TIMEOUT_S: Final = 240
_CLASS_TIMEOUT_S: Final = 45 * 60
_POLL_S: Final = 0.1
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
        jvm_options: Options of the JVM that say how ours is started.
        folder: Working folder: logs of clusters, reports of JUnit.
        stopped: Once it is set, running JVMs are killed and no more are started.
    """

    jars: tuple[Path, ...]
    shim: Path
    jvm_options: tuple[str, ...]
    folder: Path
    stopped: Event = field(default_factory=Event)


def stage_for(suite: Suite, profile: str, folder: Path) -> Stage:
    """Resolve the jars of a suite by Maven and compile the shim, unless both are there.

    Args:
        suite: The suite.
        profile: The Kafka that ours behaves like.
        folder: Working folder.

    Raises:
        MissingDependencyError: Java or Maven is missing, or Maven cannot resolve the jars.
        DataError: the shim does not compile.
        OSError: the working folder cannot be written.
    """
    for program in ("java", "javac"):
        if shutil.which(program) is None:
            raise MissingDependencyError(
                f"Kafka's tests need a JDK of 17 or later: {program} is not on the path"
            )
    folder.mkdir(parents=True, exist_ok=True)
    root = Path(os.environ.get(JARS_VARIABLE, HERE / "target")).resolve()
    root = root / f"tests-{suite.jars}-{suite.release}"
    jars, shim = root / "lib", root / "shim"
    if not any(jars.glob("kafka-clients-*-test.jar")):
        resolve_jars(suite.release, jars, f"-P{suite.jars}", project=HERE / "pom.xml")
    sources = HERE / "door" / "java" if suite.is_door else HERE / "java"
    if _newest(sources.rglob("*.java")) > _newest(shim.rglob("*.class")):
        _compile(sources, jars, shim)
    ours = (sys.executable, "-m", "coordinator_sim", "lines" if suite.is_door else "serve")
    command = shlex.join((*ours, "--profile", profile))
    options = (f"-Dserved.command={command}", f"-Dserved.folder={folder}")
    if suite.is_door:
        options = (f"-Ddoor.lines={command}", "-Djdk.attach.allowAttachSelf=true")
    class_path = jars_in_order(jars, folder / "others.jar")
    return Stage(jars=class_path, shim=shim, jvm_options=options, folder=folder)


def jars_in_order(folder: Path, others: Path) -> tuple[Path, ...]:
    """Jars of a folder for a class path: Connect's by name, the others by one that names them.

    A worker of Connect looks for plugins in each jar that the class path names, a test of Connect
    starts several workers, and most of 150 jars have none.

    Args:
        folder: The folder.
        others: Where to write the jar that names the others.
    """
    jars = tuple(sorted(folder.glob("*.jar")))
    named = [jar for jar in jars if jar.name.startswith("connect-")]
    if not named:
        return jars
    line = f"Class-Path: {' '.join(jar.as_uri() for jar in jars if jar not in named)}"
    lines = [line[at : at + _MANIFEST_LINE] for at in range(0, len(line), _MANIFEST_LINE)]
    with ZipFile(others, "w") as written:
        text = "Manifest-Version: 1.0\n" + "\n ".join(lines) + "\n"
        written.writestr("META-INF/MANIFEST.MF", text)
    return (*named, others)


def _newest(files: Iterable[Path]) -> float:
    return max((path.stat().st_mtime for path in files), default=0.0)


def _compile(sources: Path, jars: Path, shim: Path) -> None:
    command = ["javac", "-nowarn", "-proc:none", "-d", str(shim), "-cp", f"{jars}{os.sep}*"]
    command += map(str, sorted(sources.rglob("*.java")))
    require_writable(shim)
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - javac on our own sources
    if done.returncode:
        lines = done.stderr.splitlines() or ["no output"]
        error = next((line for line in lines if "error: " in line), lines[0])
        raise DataError(f"javac cannot compile {sources}: {error}")
    if (sources / "META-INF").is_dir():
        shutil.copytree(sources / "META-INF", shim / "META-INF", dirs_exist_ok=True)


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
        DataError: the JVM did not end by itself, was stopped, or has reported nothing.
    """
    if stage.stopped.is_set():
        raise DataError(f"{name} was not started")
    kind = "kafka" if on_kafka else "serve"
    folder = stage.folder / kind / re.sub(r"[^\w.]", "-", test or name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _REPORT).unlink(missing_ok=True)
    class_path = (*(() if on_kafka else (stage.shim,)), *stage.jars)
    command = [
        "java",
        *_JVM,
        *stage.jvm_options,
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
            command,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            process_group=0,
        )
    end_with_us(process)
    try:
        _wait(process, stage.stopped, f"{name}: the JVM", folder)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return read_report(folder / _REPORT)


def _wait(process: subprocess.Popen[bytes], stopped: Event, what: str, folder: Path) -> None:
    """Wait until a process has ended.

    Raises:
        DataError: it takes too long, or was stopped.
    """
    deadline_s = time.monotonic() + _CLASS_TIMEOUT_S
    while process.poll() is None:
        if stopped.wait(_POLL_S):
            raise DataError(f"{what} was stopped")
        if time.monotonic() > deadline_s:
            raise DataError(f"{what} did not end within {_CLASS_TIMEOUT_S} s; see {folder}")


def judged_class(stage: Stage, name: str, *, with_left_out: bool = False) -> list[Invocation]:
    """Run a class and count what is left out; `judged_again` looks at what failed.

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
    if not ran and not skipped:
        return [Invocation(f"{name}#", "", Verdict.FAILED, f"no test ran; see {stage.folder}")]
    for each in ran:
        if each.verdict is Verdict.FAILED and each.test in reasons:
            judged.append(replace(each, verdict=Verdict.LEFT_OUT, message=reasons[each.test]))
        else:
            judged.append(each)
    return judged


def judged_again(stage: Stage, invocations: Iterable[Invocation]) -> list[Invocation]:
    """Run each test that failed again alone, and, if need be, on Kafka's own cluster.

    Call it when nothing else runs: some tests fail on a busy machine.
    """
    again: dict[str, Verdict] = {}
    judged = []
    for each in invocations:
        if each.verdict is Verdict.FAILED:
            if each.test not in again:
                again[each.test] = _second_verdict(stage, each.test)
            judged.append(replace(each, verdict=again[each.test]))
        else:
            judged.append(each)
    return judged


def _second_verdict(stage: Stage, test: str) -> Verdict:
    """Whether Kafka fails a test too: one that did not run there counts as ours alone."""
    name, _, method = test.partition("#")
    if not method:
        return Verdict.FAILED
    if _verdicts(stage, name, test) == {Verdict.PASSED}:
        return Verdict.PASSED_AGAIN
    if Verdict.FAILED in _verdicts(stage, name, test, on_kafka=True):
        return Verdict.FAILED_ON_KAFKA
    return Verdict.FAILED


def _verdicts(stage: Stage, name: str, test: str, *, on_kafka: bool = False) -> set[Verdict]:
    """Run one test alone; nothing where its JVM reports nothing."""
    try:
        return {each.verdict for each in run_class(stage, name, test, on_kafka=on_kafka)}
    except DataError:
        return set()
