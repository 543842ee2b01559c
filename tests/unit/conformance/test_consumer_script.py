"""Consumer groups in the language of cases: partitions, epochs, and what is said of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim_conformance.running import Verdict, play_case
from coordinator_sim_conformance.script.consumer_answers import epoch_of, epoch_word, held
from coordinator_sim_conformance.script.consumer_blobs import partitions_of
from coordinator_sim_conformance.script.play import read_cases
from coordinator_sim_conformance.script.stage import CaseFailed
from coordinator_sim_conformance.targets.simulator import SimulatorTarget

PARTITIONS = st.dictionaries(
    st.text("abcxyz._", min_size=1, max_size=4),
    st.sets(st.integers(0, 40), min_size=1, max_size=12),
    max_size=4,
)


@pytest.mark.property
@given(PARTITIONS)
def test_partitions_that_are_written_are_read_again(owned: dict[str, set[int]]) -> None:
    """What an answer is shown as is what a script may report."""
    topics = [
        {"topicId": topic, "partitions": sorted(indexes, reverse=True)}
        for topic, indexes in owned.items()
    ]
    read = partitions_of(held(topics, str))
    assert read == {topic: sorted(indexes) for topic, indexes in owned.items()}


@pytest.mark.property
@given(st.integers(-2, 300), st.sampled_from((1, 2)))
def test_an_epoch_that_is_written_is_read_again(epoch: int, first: int) -> None:
    """Also those that mean no epoch of a group, and those before the first assignment."""
    assert epoch_of(epoch_word(epoch, first), first) == epoch


def test_partitions_are_written_in_runs() -> None:
    """Neighbours are one run; a topic of which nothing is held is left out."""
    topics = [{"topicId": "u", "partitions": [5, 1, 0]}, {"topicId": "t", "partitions": []}]
    assert held(topics, str) == "u:0-1+5"
    assert held([], str) == "none"


def test_a_member_reports_what_it_was_told_to_have() -> None:
    """`own=all` repeats the last answer, so a member that was told less gives the rest up."""
    (case,) = read_cases(
        "CONSUMER",
        "X-001 a title\n  @ J must\n  settled A\n  beat B | B NONE has=none\n"
        "  beat A own=all | A NONE has=foo:0-2\n  beat A own=all | A NONE epoch=E+1\n",
    )
    assert case.play(SimulatorTarget(), "4.1")
    assert case.play(SimulatorTarget(), "4.4")


def test_a_wrong_assignment_fails_a_case() -> None:
    """The failure names what came, in the words of the script."""
    (case,) = read_cases("CONSUMER", "X-001 a title\n  @ J must\n  beat A | A NONE has=foo:0-4\n")
    with pytest.raises(CaseFailed, match="wanted: A NONE has=foo:0-4") as failed:
        case.play(SimulatorTarget(), "4.4")
    assert "has=foo:0-5" in failed.value.came


def test_a_broker_without_such_groups_is_asked_all_the_same() -> None:
    """The Scala coordinator's broker answers; no group is described there."""
    refused, described = read_cases(
        "CONSUMER",
        "X-001 refused\n  @ S must since=3.9\n  beat A v=0 | A UNSUPPORTED_VERSION\n"
        "X-002 described\n  @ S must since=3.9\n  inspect | -\n",
    )
    assert play_case(refused, SimulatorTarget(), "3.9").verdict is Verdict.PASSED
    skipped = play_case(described, SimulatorTarget(), "3.9")
    assert skipped.verdict is Verdict.SKIPPED
    assert "consumer groups (KIP-848)" in skipped.reason
