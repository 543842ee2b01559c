"""Every case of Trogdor on this project's: in virtual time, on this host, as functions."""

from pathlib import Path

import pytest

from coordinator_sim.trogdor.contract import Quirks
from coordinator_sim_conformance.coverage import read_catalogue, read_deferred
from coordinator_sim_conformance.registry import all_trogdor_cases, any_cases
from coordinator_sim_conformance.running import Verdict, play_trogdor_case
from coordinator_sim_conformance.trogdor_cases.case import DEFAULT_SETUP, StoryCase, TrogdorCase
from coordinator_sim_conformance.trogdor_cases.story import expect_task, pending
from coordinator_sim_conformance.trogdor_cases.trogdor import Trogdor


@pytest.mark.parametrize("case", all_trogdor_cases(), ids=lambda case: case.case_id)
def test_trogdor_behaves_so(case: TrogdorCase) -> None:
    """The requirement holds."""
    ending = play_trogdor_case(case)

    transcript = "\n".join(ending.transcript)
    assert ending.verdict is Verdict.PASSED, f"{ending.reason}\n{transcript}"


def test_ids_are_unique() -> None:
    """No two cases of the whole suite share an id."""
    ids = [case.case_id for case in any_cases()]
    assert len(ids) == len(dict.fromkeys(ids))


def test_variants_share_the_requirement_of_their_number() -> None:
    """A requirement with several cases is one, and each case says what it requires."""
    for case in all_trogdor_cases():
        assert case.requirement.requirement_id == case.case_id.partition(".")[0]
        assert case.requirement.title


def test_every_quirk_of_a_story_is_also_played_fixed() -> None:
    """Where Kafka's Trogdor is odd, a second case shows that tasks end with quirks fixed."""
    stories = [case for case in all_trogdor_cases() if isinstance(case, StoryCase)]
    odd = {each.requirement.requirement_id for each in stories if each.requirement.is_quirk}
    fixed = {each.requirement.requirement_id for each in stories if each.quirks is Quirks.FIXED}

    assert odd == fixed


def test_case_that_fails_says_what_it_saw() -> None:
    """A failed case ends with its requests and both values."""

    def wrong(trogdor: Trogdor) -> None:
        trogdor.at(7)
        expect_task(trogdor, "foo", pending({}))

    base = all_trogdor_cases()[0]
    case = StoryCase("TROGDOR-A01.9", base.requirement, wrong, DEFAULT_SETUP, Quirks.KAFKA, "")
    ending = play_trogdor_case(case)

    assert ending.verdict is Verdict.FAILED
    assert ending.reason.startswith("task foo: wanted spec, state, status, saw code, message")
    assert ending.transcript[0].split()[:4] == ["7", "GET", "/coordinator/tasks/foo", "->"]


def test_catalogue_is_covered() -> None:
    """Every requirement of the catalogue is here, or waits with a reason."""
    path = Path(__file__).resolve().parents[2].parent / "shared" / "cases" / "trogdor-cases.yaml"
    if not path.is_file():
        pytest.skip("the catalogue of cases of Trogdor is not beside this checkout")
    ids = {case.requirement.requirement_id for case in all_trogdor_cases()}
    waiting = {each for each in read_deferred() if each.startswith("TROGDOR-")}
    assert ids | waiting == set(read_catalogue(path))
    assert not ids & waiting
