"""Work in drawn scenarios: what the counts say holds whatever happens to the members."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import (
    CommitPolicy,
    ConsumerGroupSpec,
    PerRecord,
    Scenario,
    scenario_to_json,
)
from coordinator_sim.sim.scenario.scenario import with_settings
from coordinator_sim.sim.scenario.variants import with_counted_work
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim.trace.work import count_work
from coordinator_sim_scenarios.strategies import connect_scenarios, consumer_scenarios

SEEDS = st.integers(0, 2**16)
POLICIES = st.sampled_from(
    (
        CommitPolicy(),
        CommitPolicy(when="sync"),
        CommitPolicy(when="async"),
        CommitPolicy(when="every", records=70),
        CommitPolicy(when="interval", interval_ms=3_000),
        CommitPolicy(when="before"),
        CommitPolicy(when="never", on_revoke=False),
        CommitPolicy(when="sync", on_revoke=False),
    )
)


def working(scenario: Scenario, policy: CommitPolicy, record_us: int) -> Scenario:
    """The scenario with this policy and pace for all its consumers, its work traced."""
    groups = tuple(
        msgspec.structs.replace(
            group,
            members=tuple(
                msgspec.structs.replace(member, commits=policy, processing=PerRecord(record_us))
                for member in group.members
            ),
        )
        if isinstance(group, ConsumerGroupSpec)
        else group
        for group in scenario.groups
    )
    return with_counted_work(msgspec.structs.replace(scenario, groups=groups))


def run(scenario: Scenario, seed: int) -> list[TraceEvent]:
    """The events of a run; a failure names the scenario."""
    recorder = MemoryRecorder()
    try:
        run_scenario(scenario, seed=seed, recorder=recorder, shuffle_ties=True)
    except Exception as error:
        error.add_note(f"seed {seed}\n{scenario_to_json(scenario).decode()}")
        raise
    return recorder.events


def check_counts(events: list[TraceEvent], *, skips: bool = False) -> None:
    """The counts add up, and nothing is skipped that may not be."""
    for row in count_work(events):
        assert row.processed - row.duplicates + row.gaps == row.span, row
        assert skips or row.gaps == 0, row


def check_stretches(events: list[TraceEvent]) -> None:
    """One owner's stretches of a partition never overlap in time."""
    held: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for event in events:
        if event.event is Event.RECORDS_PROCESSED:
            (entry,) = event.offsets
            owner = event.attrs.get("run", event.client_id)
            key = (event.group_id, entry.topic, entry.partition, owner)
            begun_us = event.ts_us - (event.latency_us or 0)
            held.setdefault(key, []).append((begun_us, event.ts_us))
            assert (event.position or 0) >= entry.offset
            assert int(event.attrs["lag"]) >= 0
    for spans in held.values():
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


@pytest.mark.property
@given(consumer_scenarios(), POLICIES, st.sampled_from((10, 500, 2_000)), SEEDS)
def test_consumers_skip_only_what_they_commit_too_early(
    drawn: Scenario, policy: CommitPolicy, record_us: int, seed: int
) -> None:
    """At least once by every policy but `before`, which is at most once for what it fetched."""
    events = run(working(drawn, policy, record_us), seed)

    check_counts(events, skips=policy.when == "before")
    check_stretches(events)


@pytest.mark.property
@given(connect_scenarios(), SEEDS)
def test_tasks_skip_nothing(drawn: Scenario, seed: int) -> None:
    """Offsets are committed after the records are written, or delivered."""
    events = run(with_counted_work(drawn), seed)

    check_counts(events)
    check_stretches(events)


@pytest.mark.property
@given(connect_scenarios(), SEEDS)
def test_exactly_once_source_tasks_repeat_nothing(drawn: Scenario, seed: int) -> None:
    """Zombies are fenced, and records and offsets are one transaction."""
    events = run(
        with_settings(with_counted_work(drawn), {"exactly.once.source.support": "enabled"}), seed
    )

    check_counts(events)
    (group,) = drawn.groups
    for row in count_work(events):
        assert row.group_id != group.group_id or row.duplicates == 0, row
