"""What a scenario may say of a Connect cluster's internal topics."""

import msgspec
import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim import scenario as scenarios
from coordinator_sim.sim.scenario.world import InternalTopicsSpec, OffsetHistory, TopicCosts
from tests.simulated import scenario_of


def history(*, offset_records: int = 0, exist: bool = True, **fields: float) -> InternalTopicsSpec:
    """Topics whose source offsets were written for 30,000 hours."""
    told = {"source_partitions": 10, "commit_every_ms": 3_600_000, "written_ms": 30_000 * 3_600_000}
    return InternalTopicsSpec(
        exist=exist,
        offset_records=offset_records,
        offset_history=msgspec.convert({**told, **fields}, OffsetHistory),
    )


def make_scenario(
    topics: InternalTopicsSpec, connectors: dict[str, int] | None = None
) -> scenarios.Scenario:
    """One worker in a cluster with such topics."""
    return scenario_of(
        name="small",
        duration_ms=1_000,
        groups=(
            scenarios.ConnectGroupSpec(
                group_id="g",
                workers=(scenarios.WorkerSpec(name="w"),),
                connectors=connectors or {},
                internal_topics=topics,
            ),
        ),
    )


def test_they_are_part_of_the_file() -> None:
    """What was written is read again."""
    topics = InternalTopicsSpec(offset_records=5, offset_end=9, costs=TopicCosts(record_ns=1))
    scenario = make_scenario(topics)
    assert scenarios.scenario_from_json(scenarios.scenario_to_json(scenario)) == scenario


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        (InternalTopicsSpec(offset_records=10, offset_end=9), "offset_end=9: must be from 10"),
        (InternalTopicsSpec(status_partitions=0), "status_partitions=0: must be from 1"),
        (InternalTopicsSpec(config_records=-1), "config_records=-1: must be from 0"),
        (InternalTopicsSpec(offset_record_bytes=-1), "offset_record_bytes=-1: must be from 0"),
        (InternalTopicsSpec(compact_every_ms=0), "compact_every_ms=0: must be from 1"),
        (InternalTopicsSpec(exist=False, offset_records=1), "topics that do not exist have none"),
        (history(offset_records=1), "how many records there are, or how they came to be"),
        (history(exist=False), "how many records there are, or how they came to be"),
        (history(source_partitions=0), "source_partitions=0: must be from 1"),
        (history(commit_every_ms=0), "commit_every_ms=0: must be from 1"),
        (history(segment_bytes=14), "segment_bytes=14: must be from 1048576"),
        (history(segment_ms=1), "segments written by"),
        (history(written_ms=10**17), "must be from 0"),
        (history(min_cleanable_dirty_ratio=1.5), "must be from 0 to 1"),
        (InternalTopicsSpec(costs=TopicCosts(bytes_per_s=0)), "bytes_per_s=0: must be from 1"),
        (InternalTopicsSpec(costs=TopicCosts(record_ns=-1)), "record_ns=-1: must be from 0"),
    ],
)
def test_what_cannot_be_is_refused(topics: InternalTopicsSpec, message: str) -> None:
    """With the value and the bound."""
    with pytest.raises(ScenarioError, match=message):
        make_scenario(topics)


def test_topics_that_do_not_exist_hold_no_connectors() -> None:
    """Connectors are added once a worker has made the topics."""
    make_scenario(InternalTopicsSpec(exist=False))
    with pytest.raises(ScenarioError, match="add them with AddConnector"):
        make_scenario(InternalTopicsSpec(exist=False), {"c": 1})
