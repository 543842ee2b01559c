"""Stories of Trogdor on daemons: Apache Kafka's, ours, and coordinators with the other's agents.

Several play at the same time, since daemons mostly wait. A story that fails is played once more
when the others are over: a busy host may be later than its slack. What needs a millisecond, a clock
or work of its own is played in virtual time alone.
"""

from collections import ChainMap
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_conformance.real_kafka.trogdor import java_daemons
from coordinator_sim_conformance.registry import all_trogdor_cases
from coordinator_sim_conformance.trogdor_cases import on_daemons
from coordinator_sim_conformance.trogdor_cases.case import ExecCase, StoryCase
from coordinator_sim_conformance.trogdor_cases.processes import OWN_DAEMONS, Daemons

pytestmark = pytest.mark.real_kafka

PAIRS = ("kafka", "ours", "our-coordinator", "kafka-coordinator")
PART_COUNT = 3
"""Sets of daemons for the stories with one agent."""
AT_ONCE = 8
"""Parts that play at a time; all of them at once keep two processors busy."""

Endings = dict[str, str]


def daemons_of(pair: str, java: Daemons) -> Daemons:
    """Who is the coordinator, and who are the agents."""
    return {
        "kafka": java,
        "ours": OWN_DAEMONS,
        "our-coordinator": Daemons(coordinator=OWN_DAEMONS.coordinator, agent=java.agent),
        "kafka-coordinator": Daemons(coordinator=java.coordinator, agent=OWN_DAEMONS.agent),
    }[pair]


def stories(part: list[StoryCase], daemons: Daemons) -> Endings:
    """How stories end."""
    return dict(on_daemons.play_stories(part, daemons))


def tasks(daemons: Daemons) -> Endings:
    """How the cases of agents for one task end."""
    return dict(on_daemons.play_one_task_cases(all_trogdor_cases(), daemons))


@pytest.fixture(scope="module")
def endings() -> dict[str, Endings]:
    """How cases end, by pair."""
    try:
        java = java_daemons()
    except MissingDependencyError as error:
        pytest.skip(str(error))
    cases = all_trogdor_cases()
    playing: dict[str, list[Future[Endings]]] = {pair: [] for pair in PAIRS}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for part in on_daemons.parts_for_daemons(cases, PART_COUNT):
            for pair in PAIRS:
                playing[pair].append(pool.submit(stories, part, daemons_of(pair, java)))
        for pair in PAIRS:
            # An agent for one task has no coordinator.
            if "-" not in pair:
                playing[pair].append(pool.submit(tasks, daemons_of(pair, java)))
    found = {pair: dict(ChainMap(*(each.result() for each in playing[pair]))) for pair in PAIRS}
    for pair, endings in found.items():
        for case in cases:
            if isinstance(case, StoryCase) and endings.get(case.case_id):
                endings.update(stories([case], daemons_of(pair, java)))
    return found


@pytest.mark.parametrize("pair", PAIRS)
def test_daemons_behave_so(pair: str, endings: dict[str, Endings]) -> None:
    """Every story that daemons can play holds on them."""
    found = endings[pair]
    wanted = {
        case.case_id
        for case in all_trogdor_cases()
        if (isinstance(case, StoryCase) and not case.only_virtual)
        or (isinstance(case, ExecCase) and "-" not in pair)
    }

    failed = [f"{case_id}: {reason}" for case_id, reason in found.items() if reason]
    assert not failed, "\n".join(failed)
    assert set(found) == wanted
