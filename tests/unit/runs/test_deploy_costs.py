"""What a deploy costs from its beginning on: gaps, standstill, moves, records read again."""

from collections.abc import Sequence

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.replay.charges import charges_in, trace_of
from coordinator_sim.replay.cost_sums import sums_of
from coordinator_sim.runs.deploy_costs import DeployCosts, deploy_costs
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import Variety, with_assignor
from coordinator_sim.sim.scenario.variants import with_counted_work, with_variety
from coordinator_sim.trace.events import Event, OffsetEntry, Source, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim.trace.work import count_work
from coordinator_sim_scenarios.catalog import scenario_named


def step(at_us: int, member: str, has: Sequence[int]) -> TraceEvent:
    """A step after which a member has these partitions of `t`."""
    partitions = tuple(TopicPartition("t", index) for index in has)
    data = encode_assignment(ConsumerAssignment(partitions=partitions))
    return TraceEvent(
        event=Event.MEMBER_STEP, ts_us=at_us, group_id="g", member_id=member, assignment=data
    )


def told(kind: Event, at_us: int, group_id: str = "g", member: str = "") -> TraceEvent:
    """Another event."""
    return TraceEvent(event=kind, ts_us=at_us, group_id=group_id, member_id=member)


def work(at_us: int, member: str, first: int, end: int, lasted_us: int) -> TraceEvent:
    """Records of `t-0`, processed in the time up to the event."""
    return TraceEvent(
        event=Event.RECORDS_PROCESSED,
        ts_us=at_us,
        group_id="g",
        member_id=member,
        client_id=member,
        offsets=(OffsetEntry("t", 0, first),),
        position=end,
        latency_us=lasted_us,
    )


def test_a_story_by_hand() -> None:
    """From 100 on `t-0` is free for 20 and 30, `t-1` for 60; nobody works for 10, and for 30."""
    events = [
        step(10, "a", [0]),
        step(20, "b", [1]),
        work(90, "a", 0, 50, 70),
        step(90, "b", []),  # t-1 is free from here on, counted from 100
        told(Event.EPOCH_BUMPED, 95),
        told(Event.EPOCH_BUMPED, 110),
        step(110, "a", []),
        step(130, "b", [0]),
        work(170, "b", 40, 60, 40),
        step(160, "c", [1]),
        step(170, "b", []),
        step(170, "c", []),
        told(Event.PREPARE_REBALANCE, 180),
        step(200, "b", [0, 1]),
        told(Event.PREPARE_REBALANCE, 210, "other"),
        told(Event.HEARTBEAT, 300, member="b"),
    ]
    assert deploy_costs(events, "g", 100) == DeployCosts(
        unowned_us=(20 + 30) + (60 + 30),
        stopped_us=20 + 30,
        longest_us=60,
        moved=3,  # t-0 from a to b, t-1 from b to c and back
        reprocessed=10,
        rebalances=2,
    )
    assert deploy_costs(events, "g", 0).unowned_us == (20 + 30) + (70 + 30)
    assert deploy_costs(events, "g", 195).unowned_us == 5 + 5
    assert deploy_costs(events, "g", 250) == deploy_costs([], "g", 0)


def test_a_whole_run_agrees_with_the_costs_of_its_group() -> None:
    """Where no group is ever empty, both count the same; `moved` is in the words of owners."""
    scenario = with_variety(scenario_named("consumer-rolling-deploy"), Variety())
    recorder = MemoryRecorder()
    scenario = with_counted_work(with_assignor(scenario, "cooperative-sticky"))
    run_scenario(scenario, seed=3, recorder=recorder)
    found = deploy_costs(recorder.events, "orders-app", 0)
    sums = sums_of(charges_in(trace_of(recorder.events, Source.SIM)))
    (counted,) = count_work(recorder.events)
    assert found.unowned_us == round((sums.unowned_s or 0) * 1e6) > 0
    assert found.reprocessed == counted.reprocessed > 0
    begins = [each for each in recorder.events if each.event is Event.PREPARE_REBALANCE]
    assert found.rebalances == len(begins)
