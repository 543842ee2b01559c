"""Random programs against Apache Kafka's own coordinators: replies, order, times and records."""

import os

import pytest

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_conformance.differ.building import built
from coordinator_sim_conformance.differ.explained import read_explanations
from coordinator_sim_conformance.differ.loop import Plan, run
from coordinator_sim_conformance.differ.references import REFERENCES, Reference
from coordinator_sim_conformance.differ.share_state_programs import SHARE_STATE
from coordinator_sim_conformance.differ.sides import LinesProcess, Simulator
from coordinator_sim_conformance.differ.story import tell

STEPS = int(os.environ.get("COORDINATOR_SIM_DIFFER_STEPS", "6000"))
SEED = int(os.environ.get("COORDINATOR_SIM_DIFFER_SEED", "1"))


@pytest.mark.oracle
@pytest.mark.parametrize("reference", REFERENCES.values(), ids=lambda each: each.name)
def test_random_programs_equal_kafka(reference: Reference) -> None:
    """Random programs give the same replies, in order and time, and the same records."""
    compare(reference, "classic")


@pytest.mark.oracle
@pytest.mark.parametrize(
    "reference",
    [each for each in REFERENCES.values() if each.has_share_coordinator],
    ids=lambda each: each.name,
)
def test_share_coordinators_equal_kafkas(reference: Reference) -> None:
    """The same of the share coordinator: also what it deletes of its log."""
    compare(reference, SHARE_STATE)


def compare(reference: Reference, world: str) -> None:
    """Run programs; the first difference fails."""
    try:
        command, folder = built(reference, print)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    plan = Plan(
        reference=reference, steps=STEPS, seed=SEED, world=world, explanations=read_explanations()
    )
    with LinesProcess(command, folder) as kafka:
        ours = Simulator(reference.profile, has_edge=reference.has_edge)
        outcome = run(plan, ours, kafka, lambda _: None)
    if outcome.failure is not None:
        pytest.fail(
            "\n".join(tell(outcome.failure.exchanges, outcome.failure.difference, reference.name))
        )
