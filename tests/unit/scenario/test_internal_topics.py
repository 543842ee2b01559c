"""What a scenario may say of a Connect cluster's internal topics."""

import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim.scenario import (
    ConnectGroupSpec,
    Scenario,
    WorkerSpec,
    scenario_from_json,
    scenario_to_json,
)
from coordinator_sim.scenario.world import InternalTopicsSpec, TopicCosts


def make_scenario(topics: InternalTopicsSpec, connectors: dict[str, int] | None = None) -> Scenario:
    """One worker in a cluster with such topics."""
    return Scenario(
        name="small",
        title="A small world",
        story="Nothing happens.",
        duration_ms=1_000,
        groups=(
            ConnectGroupSpec(
                group_id="g",
                workers=(WorkerSpec(name="w"),),
                connectors=connectors or {},
                internal_topics=topics,
            ),
        ),
    )


def test_they_are_part_of_the_file() -> None:
    """What was written is read again."""
    topics = InternalTopicsSpec(offset_records=5, offset_end=9, costs=TopicCosts(record_ns=1))
    scenario = make_scenario(topics)
    assert scenario_from_json(scenario_to_json(scenario)) == scenario


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        (InternalTopicsSpec(offset_records=10, offset_end=9), "offset_end=9: must be from 10"),
        (InternalTopicsSpec(status_partitions=0), "status_partitions=0: must be from 1"),
        (InternalTopicsSpec(config_records=-1), "config_records=-1: must be from 0"),
        (InternalTopicsSpec(offset_record_bytes=-1), "offset_record_bytes=-1: must be from 0"),
        (InternalTopicsSpec(compact_every_ms=0), "compact_every_ms=0: must be from 1"),
        (InternalTopicsSpec(exist=False, offset_records=1), "topics that do not exist have none"),
        (InternalTopicsSpec(costs=TopicCosts(bytes_per_s=0)), "bytes_per_s=0: must be from 1"),
        (InternalTopicsSpec(costs=TopicCosts(record_ns=-1)), "record_ns=-1: must be from 0"),
    ],
)
def test_what_cannot_be_is_refused(topics: InternalTopicsSpec, message: str) -> None:
    """With the value and the bound."""
    with pytest.raises(ScenarioError, match=message):
        make_scenario(topics)


def test_topics_that_do_not_exist_hold_no_connectors() -> None:
    """They are added once a worker has made the topics."""
    make_scenario(InternalTopicsSpec(exist=False))
    with pytest.raises(ScenarioError, match="add them with AddConnector"):
        make_scenario(InternalTopicsSpec(exist=False), {"c": 1})
