"""Drawn worlds hold the sign: who is to stop the group, and who never does.

As far as whole worlds go, "cooperative never stops more than eager" is not true of every one. A
group whose work happens to be with one member stops when that member leaves, whatever the
protocol; incremental Connect even brings that about, as workers that come back wait empty-handed
for the scheduled delay. True without exception is why: a cooperative group stops only by losing
the members that had its work. An eager group stops because everybody else is made to let go.
"""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.replay.charges import standstills
from coordinator_sim.runs.holdings import holdings
from coordinator_sim.sim import scenario as scenarios
from coordinator_sim.sim.scenario.variants import with_variety
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.history import coordinator_events, group_lines, rebalances_of
from coordinator_sim_scenarios.catalog import scenario_named
from tests.simulated import events_of, scenario_of

SEEDS = st.integers(0, 2**16)
EVERY_MS = 30_000
"""Between two restarts: longer than any drawn down time, so nobody else is away."""


@st.composite
def varieties(draw: st.DrawFn) -> scenarios.Variety:
    """Shapes, processing times, spreads and pauses, within what a group survives."""
    low_ms = draw(st.integers(1, 3_000))
    return scenarios.Variety(
        start_spread_ms=draw(st.integers(0, 30_000)),
        happening_spread_ms=draw(st.integers(0, 5_000)),
        processing=draw(st.sampled_from(sorted(scenarios.SHAPES))),
        processing_ms=(low_ms, low_ms + draw(st.integers(0, 3_000))),
        pause_ms=draw(st.sampled_from((scenarios.Variety().pause_ms, ()))),
    )


@st.composite
def deploys(draw: st.DrawFn) -> scenarios.Scenario:
    """A rolling deploy of three to six consumers with two to six partitions each."""
    names = tuple(f"consumer-{number}" for number in range(draw(st.integers(3, 6))))
    partitions = len(names) * draw(st.integers(2, 6))
    return scenario_of(
        name="drawn-deploy",
        duration_ms=60_000 + EVERY_MS * len(names),
        topics=(scenarios.TopicSpec(name="orders", partitions=partitions),),
        groups=(
            scenarios.ConsumerGroupSpec(
                group_id="orders-app",
                topics=("orders",),
                members=tuple(scenarios.ConsumerSpec(name=name) for name in names),
            ),
        ),
        happenings=scenarios.rolling_bounce(
            names, first_at_ms=30_000, every_ms=EVERY_MS, down_ms=8_000
        ),
    )


@st.composite
def connect_deploys(draw: st.DrawFn) -> scenarios.Scenario:
    """A rolling deploy of three or four workers, with or without the scheduled delay."""
    names = tuple(f"worker-{number}" for number in range(draw(st.integers(3, 4))))
    tasks = len(names) * draw(st.integers(1, 4))
    delay_ms = draw(st.sampled_from(("0", "10000", "300000")))
    return scenario_of(
        name="drawn-connect-deploy",
        duration_ms=90_000 + EVERY_MS * len(names),
        groups=(
            scenarios.ConnectGroupSpec(
                group_id="connect-cluster",
                workers=tuple(scenarios.WorkerSpec(name=name) for name in names),
                connectors={"jdbc": tasks, "s3": tasks},
                settings={"scheduled.rebalance.max.delay.ms": delay_ms},
            ),
        ),
        happenings=scenarios.rolling_bounce(
            names, first_at_ms=60_000, every_ms=EVERY_MS, down_ms=8_000
        ),
    )


def played(scenario: scenarios.Scenario, choice: str, seed: int) -> list[TraceEvent]:
    """The events of one world under one assignor or protocol."""
    return events_of(scenarios.with_assignor(scenario, choice), seed=seed)


def forced_stops(events: Sequence[TraceEvent]) -> list[int]:
    """When the only group stopped although the last member to let go was to stay.

    Never where nobody held anything: members that are slow enough complete no generation.
    """
    found = holdings(events)
    if not found:
        return []
    ((group_id, held),) = found.items()
    lines = group_lines(list(coordinator_events(events, Source.SIM)))[group_id]
    end_us = max(event.ts_us for event in events)
    last = {each.to_us: each.member_key for each in sorted(held, key=lambda each: each.to_us)}
    return [
        from_us
        for from_us, _ in standstills(rebalances_of(group_id, lines), held, end_us)
        if from_us in last and is_to_stay(events, last[from_us], from_us)
    ]


def is_to_stay(events: Sequence[TraceEvent], member_id: str, at_us: int) -> bool:
    """Whether the member's process was neither stopping nor gone at that instant."""
    clients = {event.client_id for event in events if event.member_id == member_id}
    told = [
        event.reason_text
        for event in events
        if event.ts_us <= at_us
        and event.event is Event.LIFECYCLE
        and event.client_id in clients
        and event.reason_text in ("started", "stopping", "crashed", "gone")
    ]
    return told[-1] == "started"


def test_an_eager_group_is_made_to_stop() -> None:
    """The check sees it: members that stay let go of everything, and nobody works."""
    world = with_variety(scenario_named("consumer-rolling-deploy"), scenarios.Variety())
    assert forced_stops(played(world, "sticky", 0))
    assert not forced_stops(played(world, "cooperative-sticky", 0))


@pytest.mark.property
@settings(deadline=None)
@given(deploy=deploys(), variety=varieties(), seed=SEEDS)
def test_cooperative_consumers_stop_only_by_losing_who_had_the_work(
    deploy: scenarios.Scenario, variety: scenarios.Variety, seed: int
) -> None:
    """No member that stays is made to stop everything.

    A group whose work is all on one member stops when that one leaves, and a cooperative group may
    come to that where an eager one does not: so sums of stopped time are not compared.
    """
    world = with_variety(deploy, variety)
    assert not forced_stops(played(world, "cooperative-sticky", seed))


@pytest.mark.property
@settings(deadline=None)
@given(deploy=connect_deploys(), variety=varieties(), seed=SEEDS)
def test_incremental_workers_stop_only_by_losing_who_had_the_work(
    deploy: scenarios.Scenario, variety: scenarios.Variety, seed: int
) -> None:
    """Whatever the scheduled delay, no worker that stays is made to stop everything."""
    world = with_variety(deploy, variety)
    assert not forced_stops(played(world, "sessioned", seed))
