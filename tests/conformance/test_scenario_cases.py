"""What every scenario of the catalogue must show, and that the questions asked of it can fail."""

import pytest

from coordinator_sim.sim.scenario import ConsumerGroupSpec, ShareGroupSpec, StreamsGroupSpec
from coordinator_sim.trace.events import Event
from coordinator_sim_conformance.checkers import Verdict, check_all
from coordinator_sim_conformance.scenario_cases.case import ScenarioCase
from coordinator_sim_conformance.scenario_cases.registry import all_scenario_cases
from coordinator_sim_conformance.scenario_cases.seen import Run, Seen
from coordinator_sim_conformance.scenario_timing import circumstances_of
from coordinator_sim_conformance.script.stage import CaseFailed
from coordinator_sim_scenarios.catalog import all_scenarios, scenario_named

ALWAYS_JUDGED = ("I1", "I2", "I3", "I4", "I5", "I6")
OF_NEW_GROUPS = ("I1",)
"""Judged in groups of the consumer protocol, which have neither generations nor JoinGroups."""
OF_SHARE_GROUPS = ("I3", "I5", "I6")


@pytest.mark.parametrize(
    "case", [pytest.param(each, id=each.case_id) for each in all_scenario_cases()]
)
def test_scenario_shows_it(case: ScenarioCase) -> None:
    """The run shows what the case says and keeps all invariants, of which six always apply.

    In a group of the consumer protocol only the first one always does.
    """
    seen = Seen(scenario_named(case.scenario))
    case.check(seen)

    report = check_all(seen.events, circumstances_of(seen.scenario))
    assert report.violations == ()
    (group, *_) = seen.scenario.groups
    wanted = ALWAYS_JUDGED
    if isinstance(group, ShareGroupSpec):
        wanted = OF_SHARE_GROUPS
    elif isinstance(group, StreamsGroupSpec) or (
        isinstance(group, ConsumerGroupSpec) and group.settings.get("group.protocol") == "consumer"
    ):
        wanted = OF_NEW_GROUPS
    assert set(wanted) <= set(report.having(Verdict.PASS))


def test_broken_invariant_fails_a_case() -> None:
    """A run in which no SyncGroup is answered breaks an invariant, and its case says so."""
    seen = Seen(scenario_named("connect-no-delay"))
    seen.events = tuple(each for each in seen.events if each.event is not Event.SYNC_RESP)

    with pytest.raises(CaseFailed, match="violations"):
        seen.expect_invariants()


def test_every_scenario_has_a_case() -> None:
    """And every case a scenario, a title and an id of its own."""
    cases = all_scenario_cases()

    assert {case.scenario for case in cases} == set(all_scenarios())
    assert len({case.case_id for case in cases}) == len(cases)
    assert all(case.title for case in cases)


def test_work_on_two_workers_is_found() -> None:
    """A frozen worker goes on running what others were given meanwhile."""
    seen = Seen(scenario_named("connect-outdated-worker"))

    assert sorted(seen.run_twice()) == [
        "t:jdbc-orders-1: worker-3 worker-1",
        "t:jdbc-orders-3: worker-3 worker-2",
        "t:s3-archive-1: worker-3 worker-1",
    ]


def test_runs_that_touch_do_not_overlap() -> None:
    """What ends when another one begins is no duplicate; what has no end goes on."""
    first = Run("t:a-0", "x", 0, 10)

    assert not first.overlaps(Run("t:a-0", "y", 10, None))
    assert first.overlaps(Run("t:a-0", "y", 9, None))


def test_case_that_fails_says_what_it_saw() -> None:
    """Both values are in the message."""
    seen = Seen(scenario_named("connect-no-delay"))

    with pytest.raises(CaseFailed, match="delays: wanted 2, saw 1"):
        seen.expect("delays", 1, 2)
    with pytest.raises(CaseFailed, match="wanted peace, saw war"):
        seen.expect_that("peace", holds=False, saw="war")
