"""Every case of a client on this project's ports."""

from pathlib import Path

import pytest

from coordinator_sim_conformance.client_cases.bench import Bench
from coordinator_sim_conformance.client_cases.case import ClientCase
from coordinator_sim_conformance.coverage import read_catalogue
from coordinator_sim_conformance.registry import all_cases, all_client_cases
from coordinator_sim_conformance.running import Verdict, play_client_case


@pytest.mark.parametrize(
    "case", [pytest.param(each, id=each.case_id) for each in all_client_cases()]
)
def test_port_behaves_so(case: ClientCase) -> None:
    """The requirement holds."""
    ending = play_client_case(case)

    transcript = "\n".join(ending.transcript)
    assert ending.verdict is Verdict.PASSED, f"{ending.reason}\n{transcript}"


def test_ids_are_unique() -> None:
    """No two cases share an id, and no requirement of a client one of a coordinator's."""
    ids = [case.case_id for case in (*all_cases(), *all_client_cases())]
    assert len(ids) == len(dict.fromkeys(ids))


def test_variants_share_the_requirement_of_their_number() -> None:
    """A requirement with several cases is one, and says what it requires."""
    for case in all_client_cases():
        base = case.case_id.partition(".")[0]
        assert case.requirement.requirement_id == base
        assert case.requirement.title


def test_case_that_fails_says_what_it_saw() -> None:
    """A failed case ends with its transcript and both values."""

    def wrong(bench: Bench) -> None:
        consumer = bench.consumer()
        consumer.poll(10)
        bench.expect("polls", consumer.returned, [None])

    base = all_client_cases()[0]
    ending = play_client_case(ClientCase("C-DISC-01.9", base.requirement, wrong))

    assert ending.verdict is Verdict.FAILED
    assert ending.reason == "polls: wanted [None], saw []"
    assert any("FindCoordinatorRequest" in line for line in ending.transcript)


def test_catalogue_is_covered() -> None:
    """Every requirement of the catalogue of client cases is here; our own end with a word."""
    path = Path(__file__).resolve().parents[2].parent / "shared" / "cases" / "client-cases.yaml"
    if not path.is_file():
        pytest.skip("the catalogue of client cases is not beside this checkout")
    ids = {case.requirement.requirement_id for case in all_client_cases()}
    own = {each for each in ids if not each[-1].isdigit()}
    assert ids - own == set(read_catalogue(path))
