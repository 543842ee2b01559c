"""A run as JUnit's XML, in the form that Jenkins, GitLab and GitHub's actions read.

A suite is a profile. Known gaps and, unless the run is strict, broken quirks are skipped tests
with a reason. What makes the run fail is a `failure`; a target that crashes or hangs is an `error`.
"""

import re
from collections import Counter
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
    kinds = Counter(_kind(result.standing(ending)) for ending in result.endings)
    root.set("failures", str(kinds["failure"]))
    root.set("errors", str(kinds["error"]))
    root.set("time", _seconds(result.endings))
    for profile in result.profiles:
        endings = tuple(each for each in result.endings if each.profile == profile)
        _add_suite(root, result, result.name_of(profile), endings)
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _add_suite(root: Element, result: RunResult, name: str, endings: tuple[Ending, ...]) -> None:
    standings = [result.standing(ending) for ending in endings]
    kinds = Counter(map(_kind, standings))
    suite = SubElement(root, "testsuite", name=_legal(name), tests=str(len(endings)))
    suite.set("failures", str(kinds["failure"]))
    suite.set("errors", str(kinds["error"]))
    suite.set("skipped", str(kinds["skipped"]))
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
    kind = _kind(standing)
    if not kind:
        return
    told = SubElement(case, kind, message=_legal(summary(ending, standing)))
    if standing in RED:
        told.set("type", standing.value)
        told.text = _legal("\n".join(details(ending)))


def _kind(standing: Standing) -> str:
    """Return the element that tells a standing; empty for what passed, which needs none."""
    if standing in {Standing.CRASHED, Standing.HUNG}:
        return "error"
    if standing in RED:
        return "failure"
    return "" if standing is Standing.PASSED else "skipped"


def _seconds(endings: tuple[Ending, ...]) -> str:
    """Return their time together; the schema takes three digits behind the point."""
    return f"{sum(ending.elapsed_s for ending in endings):.3f}"


def _legal(text: str) -> str:
    return _ILLEGAL.sub(lambda found: f"\\x{ord(found[0]):02x}", printable(text))
