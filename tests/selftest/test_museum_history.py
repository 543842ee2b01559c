"""Every bug of Kafka's history is an exhibit, or says why not."""

import re
from pathlib import Path

import pytest

from coordinator_sim_conformance.museum.exhibits import EXHIBITS
from coordinator_sim_conformance.museum.history import history
from coordinator_sim_conformance.museum.report_bugs import REPORT_BUGS

CATALOGUE = Path(__file__).resolve().parents[3] / "shared" / "museum.md"
NUMBER = re.compile(r"KAFKA-\d+")
TICKET = re.compile(r"-\d+(-client)?$")


def test_a_bug_without_an_exhibit_has_a_reason_and_no_other() -> None:
    """A reason is given where an id is missing, and nowhere else."""
    assert [bug.ids for bug in history() if bool(bug.missing) != bool(bug.absent)] == []


def test_every_bug_of_kafka_in_the_museum_is_in_its_history() -> None:
    """No number is there twice, and an exhibit with a number has its row."""
    ids = [bug_id for bug in history() for bug_id in bug.ids]
    assert len(ids) == len(set(ids))
    shown = {name for bug in history() for name in bug.shown_as}
    old = [each for each in EXHIBITS if each not in REPORT_BUGS]
    assert shown == {each.exhibit_id for each in old if TICKET.search(each.exhibit_id)}


def test_levels_are_those_of_the_museum() -> None:
    """Each is one or more of W, T, F, C, A and X."""
    assert all(bug.level and set(bug.level) <= set("WTFCAX") for bug in history())


def test_the_catalogue_of_bugs_is_covered() -> None:
    """Every ticket that the catalogue's rows begin with is in the history."""
    if not CATALOGUE.exists():
        pytest.skip(f"{CATALOGUE} is not here")
    wanted: set[str] = set()
    for line in CATALOGUE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| KAFKA-"):
            wanted.update(NUMBER.findall(line.split("|")[1]))
    assert wanted
    assert wanted <= {bug_id for bug in history() for bug_id in bug.ids}
