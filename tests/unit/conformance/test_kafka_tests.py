"""Reading what JUnit reports of Kafka's own tests, and dealing out the classes."""

from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim_conformance.kafka_tests.results import (
    Invocation,
    Result,
    Verdict,
    left_out,
    read_report,
    read_result,
    write_result,
)
from coordinator_sim_conformance.kafka_tests.running import jars_in_order
from coordinator_sim_conformance.kafka_tests.suites import (
    JavaClass,
    Suite,
    part_of,
    suites,
    suites_named,
)

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
    named, others = jars_in_order(folder)
    assert (named.name, others.parent) == ("connect-api.jar", tmp_path)
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
