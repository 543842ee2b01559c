"""A run as JUnit's XML, in the form that Jenkins, GitLab and GitHub's actions read.

A suite is a profile. Known gaps and, unless the run is strict, broken quirks are skipped tests
with a reason: what makes the run fail is a `failure`, and nothing else is.
"""

import re
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from coordinator_sim_conformance.running import Ending
from coordinator_sim_conformance.verdicts.quoting import printable
from coordinator_sim_conformance.verdicts.results import RunResult
from coordinator_sim_conformance.verdicts.standing import RED, Standing
from coordinator_sim_conformance.verdicts.told import details, summary

_ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
"""Characters that XML 1.0 cannot hold, not even escaped."""


def junit_xml(result: RunResult) -> bytes:
    """Return the run as a document of JUnit's."""
    root = Element("testsuites", name="conformance")
    root.set("tests", str(len(result.endings)))
    failures = sum(result.standing(ending) in RED for ending in result.endings)
    root.set("failures", str(failures))
    root.set("errors", "0")
    root.set("time", _seconds(result.endings))
    for profile in result.profiles:
        endings = tuple(each for each in result.endings if each.profile == profile)
        _add_suite(root, result, result.name_of(profile), endings)
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _add_suite(root: Element, result: RunResult, name: str, endings: tuple[Ending, ...]) -> None:
    standings = [result.standing(ending) for ending in endings]
    failed = sum(standing in RED for standing in standings)
    passed = standings.count(Standing.PASSED)
    suite = SubElement(root, "testsuite", name=_legal(name), tests=str(len(endings)))
    suite.set("failures", str(failed))
    suite.set("errors", "0")
    suite.set("skipped", str(len(endings) - failed - passed))
    suite.set("time", _seconds(endings))
    suite.set("timestamp", result.at.removesuffix("Z"))
    facts = {
        "target": result.target.name,
        "target version": result.target.version,
        "suite version": result.suite_version,
        **result.target.facts,
    }
    properties = SubElement(suite, "properties")
    for fact, value in facts.items():
        SubElement(properties, "property", name=_legal(fact), value=_legal(value))
    for ending, standing in zip(endings, standings, strict=True):
        _add_case(suite, name, ending, standing)


def _add_case(suite: Element, name: str, ending: Ending, standing: Standing) -> None:
    case = SubElement(suite, "testcase", name=_legal(f"{ending.case_id} {ending.title}"))
    # Readers take what is before the last dot for a package: a dot of a release is none.
    case.set("classname", _legal(f"{name.replace('.', '_')}.{ending.area}"))
    case.set("time", _seconds((ending,)))
    if standing is Standing.PASSED:
        return
    kind = "failure" if standing in RED else "skipped"
    told = SubElement(case, kind, message=_legal(summary(ending, standing)))
    if standing in RED:
        told.set("type", standing.value)
        told.text = _legal("\n".join(details(ending)))


def _seconds(endings: tuple[Ending, ...]) -> str:
    """Return their time together; the schema takes three digits behind the point."""
    return f"{sum(ending.elapsed_s for ending in endings):.3f}"


def _legal(text: str) -> str:
    return _ILLEGAL.sub(lambda found: f"\\x{ord(found[0]):02x}", printable(text))
