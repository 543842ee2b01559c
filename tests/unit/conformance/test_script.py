"""The language of the cases: what a script says, and how it fails."""

import pytest

from coordinator_sim.errors import ConfigError
from coordinator_sim.harness.lines import Lines
from coordinator_sim_conformance.registry import all_cases
from coordinator_sim_conformance.requirements import Level
from coordinator_sim_conformance.running import Verdict, play_case
from coordinator_sim_conformance.script.new_group_answers import new_group_words
from coordinator_sim_conformance.script.play import read_cases
from coordinator_sim_conformance.script.stage import CaseFailed
from coordinator_sim_conformance.targets.lines import LinesTarget
from coordinator_sim_conformance.targets.simulator import SimulatorTarget
from coordinator_sim_conformance.targets.target import Unsupported


def test_header_says_what_the_requirement_is_about() -> None:
    """Families, level, releases and sources come from the `@` lines; a variant shares them."""
    case, variant = read_cases(
        "JOIN",
        "X-001 a title\n  @ LSJ must since=3.0 until=4.1 seen=3.9-4.0\n  @ Kafka.java here\n"
        "  state none\nX-001.other again\n  state none\n",
    )

    assert case.requirement.profiles == ("3.9", "4.0", "4.1")
    assert case.requirement.level is Level.MUST
    assert case.requirement.verified_on == ("3.9.2", "4.0.2")
    assert case.requirement.sources == ("Kafka.java here",)
    assert variant.requirement == case.requirement


def test_case_without_a_header_is_refused() -> None:
    """Every requirement says whom it is about."""
    with pytest.raises(ConfigError, match=r"X-001: wants an `@` line"):
        read_cases("JOIN", "X-001 a title\n  state none\n")


@pytest.mark.parametrize(
    "line",
    [
        "heartbeat A | -",
        "heartbeat A | A NONE",
        "heartbeat A | A UNKNOWN_MEMBER_ID; B NONE",
        "state Empty",
        "log group gen=9",
        "log none; group gen=0",
    ],
)
def test_what_does_not_fit_fails_the_case_with_its_transcript(line: str) -> None:
    """An answer too many, too few or another one, a state, a record."""
    (case,) = read_cases("JOIN", f"X-001 a title\n  @ J must\n  join B\n  {line}\n")
    with pytest.raises(CaseFailed) as failed:
        case.play(SimulatorTarget(), "4.4")
    assert str(failed.value).startswith(line)
    assert failed.value.transcript[0].startswith("join B")


def test_case_that_breaks_off_says_at_which_line() -> None:
    """Neither passed nor failed: nothing is known, but how far it came."""
    (case,) = read_cases("JOIN", "X-001 a title\n  @ J must\n  stable A\n  elect epoch=new\n")
    ending = play_case(case, SimulatorTarget(), "4.4")
    assert ending.verdict is Verdict.UNKNOWN
    assert ending.expectation == "elect epoch=new"
    assert ending.reason.startswith("ValueError: ")
    assert ending.transcript == ("stable A",)


def test_lines_for_other_families_are_left_out() -> None:
    """`[S]` keeps a line for the Scala family, `[2.8]` for one profile."""
    (case,) = read_cases(
        "JOIN", "X-001 a title\n  @ LSJ must\n  [S 4.0] state Dead\n  state none\n"
    )
    assert case.play(SimulatorTarget(), "4.4")
    with pytest.raises(CaseFailed):
        case.play(SimulatorTarget(), "3.9")
    with pytest.raises(CaseFailed):
        case.play(SimulatorTarget(), "4.0")


def test_target_without_a_look_inside_sees_what_a_client_sees() -> None:
    """Over the line protocol a group is what DescribeGroups says, and no state can be forced."""
    target = LinesTarget("lines", Lines(), profile=None)
    seen, forced = read_cases(
        "JOIN",
        "X-001 seen\n  @ J must\n  stable A\n  state Stable gen=77 members=A\n"
        "X-002 forced\n  @ J model\n  stable A\n  force Dead\n",
    )
    assert seen.play(target, "4.4")
    with pytest.raises(Unsupported, match="a look inside"):
        forced.play(target, "4.4")


def test_target_of_one_release_is_no_other() -> None:
    """An oracle plays the cases of its own profile alone."""
    target = LinesTarget("kafka", Lines(), profile="4.4")
    (case,) = read_cases("JOIN", "X-001 a title\n  @ LSJ must\n  state none\n")
    with pytest.raises(Unsupported, match=r"kafka is Kafka 4\.4, not 3\.9"):
        case.play(target, "3.9")


def test_ids_of_cases_are_unique() -> None:
    """An id names one case."""
    ids = [case.case_id for case in all_cases()]
    assert len(ids) == len(set(ids))


def test_records_need_more_than_a_coordinator() -> None:
    """A case with records is skipped where there is a coordinator alone, and says why."""
    (case,) = read_cases(
        "SHARE",
        "X-001 a title\n  @ J must since=4.2\n  broker records=yes topics=foo:1\n"
        "  produce foo-0 2 | produce NONE at=0\n",
    )
    assert case.play(SimulatorTarget(), "4.4")
    with pytest.raises(Unsupported, match="does not offer records"):
        case.play(LinesTarget("lines", Lines(), profile=None), "4.4")


def test_neighbours_of_equal_deliveries_are_one_range() -> None:
    """A broker may name one range of acquired records, or several: a script sees no difference."""
    ranges = ((3, 4, 1), (0, 0, 2), (1, 2, 2), (7, 7, 1))
    partition = {
        "partitionIndex": 0,
        "errorCode": 0,
        "acknowledgeErrorCode": 0,
        "records": None,
        "acquiredRecords": [
            {"firstOffset": first, "lastOffset": last, "deliveryCount": count}
            for first, last, count in ranges
        ],
    }
    answer = {
        "errorCode": 0,
        "errorMessage": None,
        "acquisitionLockTimeoutMs": 30_000,
        "responses": [{"topicId": "id", "partitions": [partition]}],
    }
    words = new_group_words("ShareFetch", answer, lambda _id: "foo", 1)
    assert words["got"] == "foo-0:0-2x2+3-4x1+7x1"
    assert words["foo-0.read"] == "none"
