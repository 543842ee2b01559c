"""What `docs/source-documents.md` names is there, is about the row's Kafka, and holds."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest
from msgspec import Struct

from coordinator_sim.kafka.profiles import DEFAULT_PROFILE, profile_named
from coordinator_sim_conformance import running
from coordinator_sim_conformance.client_cases.case import CLIENTS
from coordinator_sim_conformance.registry import all_cases, all_client_cases, all_trogdor_cases
from coordinator_sim_conformance.scenario_cases.registry import all_scenario_cases
from coordinator_sim_conformance.targets.simulator import SimulatorTarget
from coordinator_sim_scenarios.catalog import all_scenarios

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = (ROOT / "docs" / "source-documents.md").read_text("utf-8")
ROWS: Final = {"000": 7, "001": 4, "002": 7, "003": 10, "004": 6}
"""Rows of each document that is built."""
TROGDOR: Final = "trogdor"
"""What rows about Trogdor are played as."""
_QUOTED: Final = re.compile(r"`([^`]+)`")


class Row(Struct, frozen=True, kw_only=True):
    """One row of a document.

    Args:
        profiles: What it is played as; `CLIENTS` among them for the ports of clients, `TROGDOR` for
            its coordinator and agents.
        modules: That do it, below the package.
        evidence: What shows it.
    """

    row_id: str
    profiles: tuple[str, ...]
    modules: tuple[str, ...]
    evidence: tuple[str, ...]

    @property
    def kafkas(self) -> tuple[str, ...]:
        """The profiles of coordinators among those it is played as."""
        return tuple(each for each in self.profiles if each not in {CLIENTS, TROGDOR})


def table_rows() -> Iterator[Row]:
    """Every row of the page that says what is built, in order."""
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"\d{3}-\d+", cells[0]):
            if len(cells) != len(("row", "system", "played as", "done by", "shown by")):
                continue
            yield Row(
                row_id=cells[0],
                profiles=tuple(each.strip(" `") for each in cells[2].split(",")),
                modules=tuple(_QUOTED.findall(cells[3])),
                evidence=tuple(_QUOTED.findall(cells[4])),
            )


@cache
def _played(case_id: str, profile: str) -> running.Ending:
    """How a case of a coordinator ends on the simulator."""
    case = next(each for each in all_cases() if each.case_id == case_id)
    return running.play_case(case, SimulatorTarget(), profile)


def _wrong_with_requirement(name: str, row: Row) -> str | None:
    """What is wrong with a requirement as evidence, None when every case of it passes."""
    trogdor_cases = [each for each in all_trogdor_cases() if _is_of(each.case_id, name)]
    client_cases = [each for each in all_client_cases() if _is_of(each.case_id, name)]
    cases = [each for each in all_cases() if _is_of(each.case_id, name)]
    endings = [running.play_client_case(each) for each in client_cases if CLIENTS in row.profiles]
    endings += [
        running.play_trogdor_case(each) for each in trogdor_cases if TROGDOR in row.profiles
    ]
    for profile in row.kafkas if cases else ():
        if profile not in cases[0].requirement.profiles:
            return f"{name} is not about {profile}"
        endings += [_played(each.case_id, profile) for each in cases]
    if not endings:
        return f"{name} is of clients, and {row.row_id} is not"
    failed = [each for each in endings if each.verdict is not running.Verdict.PASSED]
    return f"{failed[0].case_id}: {failed[0].reason}" if failed else None


def _is_of(case_id: str, requirement_id: str) -> bool:
    return case_id.partition(".")[0] == requirement_id


def _wrong_with_scenario(name: str, row: Row) -> str | None:
    """What is wrong with a scenario as evidence; its cases raise what they find."""
    profile = profile_named(all_scenarios()[name].profile).name
    if profile not in row.kafkas:
        return f"{name} is played as {profile}, and {row.row_id} is about {row.profiles}"
    for case in all_scenario_cases():
        if case.scenario == name:
            case.play()
    return None


def _wrong_with_file(name: str, row: Row) -> str | None:
    """What is wrong with a test or transcript as evidence: it must speak of the row's Kafka."""
    path, _, function = name.partition("::")
    file = ROOT / path
    if not file.is_file():
        return f"there is no {path}"
    text = file.read_text("utf-8")
    if function:
        found = re.search(rf"^def {function}\(.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
        if found is None:
            return f"{path} has no {function}"
        text = found[0]
    others = [each for each in row.kafkas if each != DEFAULT_PROFILE.name]
    played = {
        profile_named(each).name
        for each in re.findall(r"^broker profile=(\S+)", text, re.MULTILINE)
    }
    strange = [each for each in others if f'"{each}"' not in text and each not in played]
    return f"{name} does not play {strange[0]}" if strange else None


def wrong_with(name: str, row: Row) -> str | None:
    """Why a name is no evidence of a row; None when it is, and holds."""
    if "/" in name:
        return _wrong_with_file(name, row)
    if name in all_scenarios():
        return _wrong_with_scenario(name, row)
    known = (*all_cases(), *all_client_cases(), *all_trogdor_cases())
    if any(_is_of(each.case_id, name) for each in known):
        return _wrong_with_requirement(name, row)
    return f"{name} is nothing"


def test_every_row_is_there() -> None:
    """Each once, in order, with its Kafka, at least one module and one thing that shows it."""
    wanted = [f"{name}-{row}" for name, rows in ROWS.items() for row in range(1, rows + 1)]
    rows = list(table_rows())

    assert [row.row_id for row in rows] == wanted
    assert all(row.modules and row.evidence for row in rows)
    assert {row.kafkas for row in rows if row.row_id.startswith("003")} == {("0.10.2",)}


@pytest.mark.parametrize("row", [pytest.param(row, id=row.row_id) for row in table_rows()])
def test_a_row_is_shown_under_its_profiles(row: Row) -> None:
    """Modules can be found; cases and scenarios are about the row's Kafka, and pass."""
    assert [name for name in row.modules if find_spec(f"coordinator_sim.{name}") is None] == []
    assert [wrong for name in row.evidence if (wrong := wrong_with(name, row))] == []


def test_evidence_of_another_kafka_is_found_out() -> None:
    """Cases, scenarios, tests and transcripts of a later Kafka show nothing about 0.10.2."""
    row = Row(row_id="003-8", profiles=("0.10.2",), modules=(), evidence=())

    assert wrong_with("HB-006", row) == "HB-006 is not about 0.10.2"
    assert wrong_with("HB-007", row) is None
    assert "is played as 4.4" in str(wrong_with("member-crash", row))
    assert "of clients" in str(wrong_with("C-HB-02", row))
    assert "does not play" in str(wrong_with("tests/unit/broker/groups/test_discovery.py", row))
    assert "does not play" in str(wrong_with("scenarios/transcripts/family-java-4.x.txt", row))


def test_a_name_that_is_nothing_is_found_out() -> None:
    """Neither a file, a function in it, a case nor a scenario."""
    row = Row(row_id="002-1", profiles=(CLIENTS, "4.4"), modules=(), evidence=())

    assert "there is no" in str(wrong_with("tests/unit/nowhere.py", row))
    assert "has no" in str(wrong_with("tests/test_source_documents.py::test_of_dreams", row))
    assert wrong_with("C-DREAM-01", row) == "C-DREAM-01 is nothing"
    assert wrong_with("tests/test_source_documents.py", row) is None
