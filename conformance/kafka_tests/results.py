"""What JUnit reports of Kafka's tests, and how it counts."""

import re
import tomllib
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.kafka_tests.suites import HERE

_NAME: Final = re.compile(r"(?P<method>[^(\[{]+).*?(?P<index>\[[\d\]\[]+\])?$", re.DOTALL)
_LONGEST_MESSAGE: Final = 300


class Verdict(StrEnum):
    """How an invocation of a test ended."""

    PASSED = "passed"
    PASSED_AGAIN = "passed when run again alone"
    FAILED = "failed"
    FAILED_ON_KAFKA = "failed on Kafka's own cluster too"
    LEFT_OUT = "left out"


class Invocation(Struct, frozen=True):
    """One invocation of a test.

    Args:
        test: `CLASS#METHOD`.
        index: Which of its invocations, as `[1]`; empty for a test that has one.
        verdict: How it ended.
        message: First words of the failure, or why it is left out.
        seconds: How long it took.
    """

    test: str
    index: str
    verdict: Verdict
    message: str = ""
    seconds: float = 0.0


class Result(Struct, frozen=True):
    """A run of a suite.

    Args:
        suite: Its full name.
        profile: The profile of `serve`.
        at: When, in UTC.
        invocations: What ran, and what is left out.
    """

    suite: str
    profile: str
    at: str
    invocations: tuple[Invocation, ...]

    def count(self, verdict: Verdict) -> int:
        """How many invocations ended so."""
        return sum(each.verdict is verdict for each in self.invocations)


def write_result(result: Result, folder: Path) -> None:
    """Write a result to a folder, as `SUITE.json`."""
    invocations = tuple(sorted(result.invocations, key=lambda each: (each.test, each.index)))
    text = msgspec.json.format(msgspec.json.encode(replace(result, invocations=invocations)))
    (folder / f"{result.suite}.json").write_bytes(text + b"\n")


def read_result(path: Path) -> Result:
    """Read a result that `write_result` wrote.

    Raises:
        DataError: it is none.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Result)
    except msgspec.MsgspecError as error:
        raise DataError(f"{path}: no result of kafka-tests: {error}") from error


def read_report(path: Path) -> list[Invocation]:
    """Read JUnit's XML report of one test class.

    Raises:
        DataError: there is no report, or it is not XML.
    """
    try:
        root = ET.parse(path).getroot()  # noqa: S314 - JUnit's own report
    except (OSError, ET.ParseError) as error:
        raise DataError(f"{path}: no report of JUnit: {error}") from error
    return [_invocation(case) for case in root.iter("testcase") if case.find("skipped") is None]


def _invocation(case: ET.Element) -> Invocation:
    found = _NAME.fullmatch(case.attrib["name"])
    if found is None:
        raise DataError(f"JUnit reports a test named {case.attrib['name']!r}")
    test = f"{case.attrib['classname']}#{found['method']}"
    failure = next((each for each in case if each.tag in ("failure", "error")), None)
    verdict, message = Verdict.PASSED, ""
    if failure is not None:
        verdict = Verdict.FAILED
        message = (failure.get("message") or failure.get("type") or failure.text or "").strip()
    return Invocation(
        test=test,
        index=found["index"] or "",
        verdict=verdict,
        message=" ".join(message.split())[:_LONGEST_MESSAGE],
        seconds=round(float(case.get("time", "0").replace(",", "")), 1),
    )


@cache
def left_out() -> dict[str, str]:
    """Tests that cannot pass on a served cluster, with the reason: `left_out.toml`."""
    kinds = tomllib.loads((HERE / "left_out.toml").read_text(encoding="utf-8"))
    return {test: f"{kind}: {why}" for kind, tests in kinds.items() for test, why in tests.items()}
