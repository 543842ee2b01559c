"""A class to subclass makes each requirement of the suite one test."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest

from coordinator_sim_pytest.server import QUICK, ServerKind, ServerProcess

pytest.importorskip("kio")
pytest.importorskip("uvicorn")

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guides" / "grade-your-broker.md"
BUG = "any-generation-syncs"
BROKEN_CASE = "SYNC-OLD-GENERATION"
CASES = ("HB-002", "HB-010", "JOIN-010", BROKEN_CASE)
"""Quick ones; the second is about what nobody can ask for over a wire."""
MODULE = """
from coordinator_sim_pytest import CoordinatorConformance

class TestCorrect(CoordinatorConformance):
    bootstrap = "{correct}"

class TestBroken(CoordinatorConformance):
    bootstrap = "{broken}"

class TestGaps(CoordinatorConformance):
    bootstrap = "{broken}"
    baseline = "gaps.toml"

class TestOldest(CoordinatorConformance):
    bootstrap = "{correct}"
    profile = "0.10.2"

class TestNobodyThere(CoordinatorConformance):
    bootstrap = "localhost:1"

class TestNoAddress(CoordinatorConformance):
    bootstrap = "kafka"

class TestNoFile(CoordinatorConformance):
    bootstrap = "{correct}"
    baseline = "nowhere.toml"
"""
GAPS = f'{BROKEN_CASE} = "ticket 812"\n"HB-002@4.4" = "ticket 7"\n'


class Graded(NamedTuple):
    """A run of pytest: its JUnit file by class and case, and the address of the broken broker."""

    tests: dict[tuple[str, str], ET.Element]
    broken: str

    def outcome(self, kind: str, case_id: str) -> tuple[str, str]:
        """What the file says of a test: `passed` or the element, and its text."""
        test = self.tests[kind, case_id]
        for name in ("failure", "error", "skipped"):
            found = test.find(name)
            if found is not None:
                return name, f"{found.attrib['message']}\n{found.text}"
        return "passed", ""


def pytest_in(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder, with the plugin alone."""
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            "/dev/null",
            "-p",
            "coordinator_sim_pytest",
            *options,
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={
            **os.environ,
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
    )


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """A correct broker and a broken one, graded by several classes."""
    folder = tmp_path_factory.mktemp("graded")
    kinds = [
        ServerKind(profile="4.4", settings=tuple(QUICK.items()), bugs=bugs) for bugs in ((), (BUG,))
    ]
    correct, broken = (ServerProcess(kind) for kind in kinds)
    module = MODULE.format(correct=correct.bootstrap, broken=broken.bootstrap)
    (folder / "test_it.py").write_text(module)
    (folder / "gaps.toml").write_text(GAPS)
    try:
        done = pytest_in(folder, "--junitxml", "junit.xml", "-k", " or ".join(CASES))
    finally:
        correct.close()
        broken.close()
    assert done.returncode == 1, done.stdout
    cases = ET.parse(folder / "junit.xml").iter("testcase")  # noqa: S314 - our own file
    tests = {}
    for test in cases:
        kind = test.attrib["classname"].rpartition(".")[2]
        tests[kind, re.findall(r"\[(.*)\]", test.attrib["name"])[0]] = test
    return Graded(tests, broken.bootstrap)


def test_requirements_pass_or_are_skipped_with_the_reason(graded: Graded) -> None:
    """What was required, and where Kafka says so, is in pytest's JUnit file."""
    assert graded.outcome("TestCorrect", "HB-002") == ("passed", "")
    assert graded.outcome("TestCorrect", BROKEN_CASE) == ("passed", "")
    name, said = graded.outcome("TestCorrect", "HB-010")
    assert name == "skipped"
    assert "is nobody's to command: force Dead" in said
    properties = graded.tests["TestCorrect", "HB-002"].iter("property")
    named = {each.attrib["name"]: each.attrib["value"] for each in properties}
    assert named["requirement"] == "A heartbeat to an unknown group is UNKNOWN_MEMBER_ID"
    assert named["level"] == "must"


def test_a_failure_shows_the_transcript_the_source_and_the_command(graded: Graded) -> None:
    """As `conformance run` shows it, and nothing else fails."""
    name, said = graded.outcome("TestBroken", BROKEN_CASE)

    assert name == "failure"
    assert "failed as 4.4: " in said
    assert re.search(r"source: +\S+ \w+", said)
    command = f"conformance run --bootstrap {graded.broken} --profile 4.4 --case {BROKEN_CASE}"
    assert command in said
    assert graded.outcome("TestBroken", "HB-002") == ("passed", "")


def test_known_gaps_are_expected_failures_strictly(graded: Graded) -> None:
    """One that is closed turns red."""
    name, said = graded.outcome("TestGaps", BROKEN_CASE)
    assert name == "skipped"
    assert "ticket 812" in said
    name, said = graded.outcome("TestGaps", "HB-002")
    assert name == "failure"
    assert "[XPASS(strict)] ticket 7" in said


def test_a_profile_has_the_tests_of_its_requirements(graded: Graded) -> None:
    """Known when tests are collected, so that nothing need be skipped for it."""
    assert ("TestOldest", "HB-002") in graded.tests
    assert ("TestOldest", "HB-010") not in graded.tests


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("TestNobodyThere", "no connection to localhost:1"),
        ("TestNoAddress", "wants HOST:PORT"),
        ("TestNoFile", "there is no file nowhere.toml"),
    ],
)
def test_what_cannot_be_graded_is_one_clear_line(graded: Graded, kind: str, problem: str) -> None:
    """The tests end as errors."""
    name, said = graded.outcome(kind, "HB-002")

    assert name == "error"
    assert problem in said
    assert "Traceback" not in said


def test_the_example_grades_a_broker_from_an_empty_folder(tmp_path: Path) -> None:
    """As a library author would copy it; a few quick cases of all."""
    example = ROOT / "examples" / "pytest_conformance" / "test_my_broker.py"
    (tmp_path / "test_my_broker.py").write_text(example.read_text(encoding="utf-8"))

    done = pytest_in(tmp_path, "-q", "-k", " or ".join(CASES), ".")

    assert "3 passed, 1 skipped" in done.stdout, done.stdout
    source = example.read_text(encoding="utf-8")
    assert f"```python\n{source}```" in GUIDE.read_text(encoding="utf-8")
    assert sum(1 for line in source.splitlines() if line.strip()) <= 30
