"""The two start-ups of the catalogue that have much to read: their phases, in virtual time."""

import pytest
from msgspec.structs import replace

from coordinator_sim.sim.scenario.world import ConnectGroupSpec, TopicCosts
from coordinator_sim.trace.start_up import StartUp, start_ups
from coordinator_sim_scenarios.catalog import scenario_named
from tests.simulated import events_of

TOPICS = ("connect-cluster-offsets", "connect-cluster-status", "connect-cluster-configs")


def starts_of(name: str) -> list[StartUp]:
    """The starts of workers in a scenario of the catalogue."""
    return start_ups(events_of(scenario_named(name)))


def test_two_million_of_thirty_take_two_minutes() -> None:
    """Fewer than a thousand configurations; every start of a worker costs the same again.

    How many there are follows from how the topic was written and compacted.
    """
    starts = starts_of("connect-startup-large-offsets")
    assert [start.client_id for start in starts] == ["worker-1", "worker-2", "worker-2"]
    for start in starts:
        names = [phase.name for phase in start.phases]
        assert names == ["process", *TOPICS, "discovery", "join"]
        offsets, _, configs = start.phases[1:4]
        assert offsets.records == 94 * 21_000 + 21_000
        assert configs.records is not None
        assert configs.records < 1_000
        assert offsets.took_us == pytest.approx(120_000_000, rel=0.05)
        assert start.took_us - offsets.took_us < 10_000_000


def test_the_same_topic_at_the_measured_cost() -> None:
    """A worker of today is done in a tenth of the two minutes."""
    scenario = scenario_named("connect-startup-large-offsets")
    (group,) = scenario.groups
    assert isinstance(group, ConnectGroupSpec)
    topics = replace(group.internal_topics, costs=TopicCosts())
    scenario = replace(scenario, groups=(replace(group, internal_topics=topics),), happenings=())
    for start in start_ups(events_of(replace(scenario, duration_ms=60_000))):
        assert start.phases[1].records == 1_995_000
        assert 10_000_000 < start.phases[1].took_us < 13_000_000


def test_thirty_million_are_read_before_the_worker_looks_for_its_group() -> None:
    """At the measured costs, not quite three minutes."""
    (start,) = starts_of("connect-startup-30-million")
    assert start.phases[1].records == 30_000_000
    assert 150_000_000 < start.phases[1].took_us < 180_000_000
