"""Reading what JUnit reports of Kafka's own tests, and dealing out the classes."""

import signal
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.errors import ConfigError, DataError, MissingDependencyError
from coordinator_sim_conformance import end_with_parent
from coordinator_sim_conformance.cli.kafka_tests import _chosen
from coordinator_sim_conformance.kafka_tests.results import (
    Invocation,
    Result,
    Verdict,
    left_out,
    read_report,
    read_result,
    write_result,
)
from coordinator_sim_conformance.kafka_tests.running import (
    Stage,
    jars_in_order,
    judged_again,
    judged_class,
    run_class,
    stage_for,
)
from coordinator_sim_conformance.kafka_tests.suites import (
    HERE,
    JavaClass,
    Suite,
    part_of,
    suites,
    suites_named,
)
from coordinator_sim_conformance.real_kafka.kafka import JARS_VARIABLE, require_writable

_REPORT = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="JUnit Jupiter" tests="4">
  <testcase name="testJoin(ClusterInstance)[2]" classname="kafka.server.AJoinTest" time="1,005.2"/>
  <testcase name="testLeave()" classname="kafka.server.AJoinTest$Nested" time="0.25">
    <failure message="expected: &lt;0&gt;&#10;  but was: &lt;25&gt;" type="AssertionFailedError"/>
  </testcase>
  <testcase name="testSync(short, String)[1][3]" classname="kafka.server.AJoinTest" time="2"/>
  <testcase name="testDisabled()" classname="kafka.server.AJoinTest" time="0"><skipped/></testcase>
</testsuite>
"""


def test_a_report_gives_methods_invocations_and_first_words_of_a_failure(tmp_path: Path) -> None:
    """Names as JUnit writes them, with parameters and indexes."""
    report = tmp_path / "report.xml"
    report.write_text(_REPORT)
    name = "kafka.server.AJoinTest"
    assert read_report(report) == [
        Invocation(f"{name}#testJoin", "[2]", Verdict.PASSED, seconds=1005.2),
        Invocation(
            f"{name}$Nested#testLeave", "", Verdict.FAILED, "expected: <0> but was: <25>", 0.2
        ),
        Invocation(f"{name}#testSync", "[1][3]", Verdict.PASSED, seconds=2.0),
    ]


@pytest.mark.parametrize("text", ["", "<testsuite><testcase"])
def test_a_report_that_a_killed_jvm_left_is_refused(tmp_path: Path, text: str) -> None:
    """An empty or cut file is no report."""
    report = tmp_path / "report.xml"
    report.write_text(text)
    with pytest.raises(DataError, match="no report of JUnit"):
        read_report(report)


def test_a_result_that_is_written_is_read_again(tmp_path: Path) -> None:
    """The file of a result."""
    ran = Invocation("kafka.server.AJoinTest#testJoin", "[1]", Verdict.PASSED_AGAIN, "slow", 2.5)
    result = Result("groups-4.3.1", "4.3", "2026-11-28T00:00:00Z", (ran,))
    write_result(result, tmp_path)
    assert read_result(tmp_path / "groups-4.3.1.json") == result
    assert result.count(Verdict.PASSED_AGAIN) == 1


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=4), st.integers(1, 500), max_size=40),
    st.integers(1, 7),
)
def test_parts_hold_each_class_once_and_differ_by_one_class_at_most(
    seconds: dict[str, int], count: int
) -> None:
    """The rotation of a week sees every class."""
    suite = Suite("groups", "4.3.1", tuple(JavaClass(*each) for each in seconds.items()))
    parts = [part_of([suite], number, count)[0] for number in range(1, count + 1)]
    assert sorted(each.name for part in parts for each in part.classes) == sorted(seconds)
    lengths = [sum(each.seconds for each in part.classes) for part in parts]
    assert max(lengths) - min(lengths) <= max(seconds.values(), default=0)


def test_jars_that_connect_need_not_scan_are_named_by_one_of_them(tmp_path: Path) -> None:
    """A manifest names them, in lines of at most 72 bytes."""
    folder = tmp_path / "lib"
    folder.mkdir()
    for name in ("a.jar", "connect-api.jar", "z.jar"):
        (folder / name).touch()
    named, others = jars_in_order(folder, tmp_path / "others.jar")
    assert (named.name, others) == ("connect-api.jar", tmp_path / "others.jar")
    manifest = ZipFile(others).read("META-INF/MANIFEST.MF").decode()
    assert max(map(len, manifest.splitlines())) <= 71
    assert manifest.replace("\n ", "").splitlines()[1] == (
        f"Class-Path: {(folder / 'a.jar').as_uri()} {(folder / 'z.jar').as_uri()}"
    )


def test_a_suite_is_named_in_full_or_by_its_release() -> None:
    """Names of suites, and a name that there is not."""
    (suite,) = suites_named("groups-4.3.1")
    assert suite.profile == "4.3"
    assert suite in suites_named("4.3.1")
    with pytest.raises(ConfigError, match=r"--suite 1\.0: unknown; use all, a release, or one of"):
        suites_named("1.0")


def test_each_test_that_is_left_out_is_of_a_class_that_runs() -> None:
    """The table of what is left out names no class that is gone."""
    classes = {each.name for suite in suites() for each in suite.classes}
    assert [test for test in left_out() if test.partition("#")[0] not in classes] == []


def test_no_test_is_left_out_for_two_reasons() -> None:
    """The second would hide the first."""
    kinds = tomllib.loads((HERE / "left_out.toml").read_text(encoding="utf-8"))
    assert sum(map(len, kinds.values())) == len(left_out())


def stage_with_java(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A stage whose `java` is a shell script; it runs in the folder that reports go to."""
    (folder / "bin").mkdir()
    java = folder / "bin" / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:/usr/bin:/bin")
    return Stage(jars=(), shim=folder, jvm_options=(), folder=folder / "out")


def has_ended(pid: int) -> bool:
    """Whether a process ends within 10 s."""
    state = Path(f"/proc/{pid}/stat")
    for _ in range(1_000):
        with suppress(OSError):
            if state.read_text().rpartition(")")[2].split()[0] != "Z":
                time.sleep(0.01)
                continue
        return True
    return False


def test_the_program_that_watches_ends_what_a_leader_of_a_group_has_started() -> None:
    """So a killed command leaves neither a JVM nor the cluster of its test."""
    leader = subprocess.Popen(
        ["sh", "-c", "sleep 300 & echo $!; wait"],
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert leader.stdout is not None
    child = int(leader.stdout.readline())
    subprocess.run(
        [sys.executable, end_with_parent.__file__], input=b"%d\n" % leader.pid, check=True
    )
    assert leader.wait(10) == -signal.SIGKILL
    leader.stdout.close()
    assert has_ended(child)


def test_a_stopped_class_leaves_no_process_of_its_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cluster that its JVM started ends too, and the next class is not started."""
    script = 'sleep 300 & echo $! > started; mv started "$PWD/child"; wait'
    stage = stage_with_java(tmp_path, script, monkeypatch)
    child = stage.folder / "serve" / "a.ATest" / "child"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_class, stage, "a.ATest")
        while not child.exists() and not running.done():
            time.sleep(0.01)
        stage.stopped.set()
        with pytest.raises(DataError, match=r"a\.ATest: the JVM was stopped"):
            running.result()
    assert has_ended(int(child.read_text()))
    with pytest.raises(DataError, match="was not started"):
        run_class(stage, "a.ATest")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('echo "<testsuite/>" > TEST-junit-jupiter.xml', "no test ran"),
        ("exit 1", "no report of JUnit"),
    ],
)
def test_a_class_of_which_no_test_ran_has_failed(
    script: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was found out: that is not a pass."""
    stage = stage_with_java(tmp_path, script, monkeypatch)
    (only,) = judged_class(stage, "a.ATest")
    assert only.verdict is Verdict.FAILED
    assert message in only.message


@pytest.mark.parametrize("alone", ['echo "<testsuite/>"', "exit 1"])
def test_a_failure_that_cannot_be_repeated_on_kafka_is_ours(
    alone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a test that ran on Kafka's own cluster, and failed there, is excused."""
    failed = '<testcase name="t()" classname="a.ATest"><failure message="m"/></testcase>'
    script = f"""case "$*" in
*--include-methodname*) {alone} > TEST-junit-jupiter.xml;;
*) echo '<testsuite>{failed}</testsuite>' > TEST-junit-jupiter.xml;;
esac"""
    stage = stage_with_java(tmp_path, script, monkeypatch)
    assert judged_again(stage, judged_class(stage, "a.ATest")) == [
        Invocation("a.ATest#t", "", Verdict.FAILED, "m")
    ]


def test_a_missing_jdk_and_jars_that_cannot_be_written_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line says what is missing, and what to set."""
    (tmp_path / "file").touch()
    with pytest.raises(MissingDependencyError, match=f"cannot be written: set {JARS_VARIABLE}=DIR"):
        require_writable(tmp_path / "file" / "lib")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependencyError, match="JDK of 17 or later: java is not on the path"):
        stage_for(suites()[0], "4.3", tmp_path)


def test_a_part_without_classes_is_refused() -> None:
    """It would pass without a test."""
    with pytest.raises(ConfigError, match="--part 9/9: there are fewer classes"):
        _chosen([Suite("groups", "4.3.1", (JavaClass("a.ATest"),))], [], "9/9")


def test_a_shim_that_does_not_compile_is_no_missing_dependency(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that runs it fails then; it is not skipped."""
    suite = suites()[0]
    jars = tmp_path / f"tests-{suite.jars}-{suite.release}" / "lib"
    jars.mkdir(parents=True)
    (jars / "kafka-clients-0-test.jar").touch()
    stage_with_java(tmp_path, "exit 1", monkeypatch)
    javac = tmp_path / "bin" / "javac"
    javac.write_text("#!/bin/sh\necho 'A.java:1: error: no' >&2; exit 1\n")
    javac.chmod(0o755)
    monkeypatch.setenv(JARS_VARIABLE, str(tmp_path))
    with pytest.raises(DataError, match=r"javac cannot compile .*: A\.java:1: error: no"):
        stage_for(suite, "4.3", tmp_path / "out")
