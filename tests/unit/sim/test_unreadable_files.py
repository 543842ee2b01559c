"""Brokers whose files of the offsets topic cannot be read."""

from collections.abc import Sequence

from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    FailOffsetsReads,
    Happening,
    MoveCoordinator,
    RestartMember,
    TopicSpec,
)
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers import check_all
from coordinator_sim_conformance.scenario_timing import circumstances_of
from tests.simulated import events_of, scenario_of

COORDINATOR = 1
"""The broker that leads the offsets partition of `g`."""


def run(*happenings: Happening, brokers: int = 3) -> list[TraceEvent]:
    """The events of a minute of a consumer that commits every five seconds."""
    scenario = scenario_of(
        name="unreadable",
        duration_ms=60_000,
        brokers=brokers,
        topics=(TopicSpec(name="orders", partitions=2),),
        groups=(
            ConsumerGroupSpec(group_id="g", topics=("orders",), members=(ConsumerSpec(name="a"),)),
        ),
        happenings=happenings,
    )
    events = events_of(scenario)
    assert not check_all(events, circumstances_of(scenario)).violations
    return list(events)


def faults(events: Sequence[TraceEvent]) -> list[tuple[int, str | None]]:
    """What happened to brokers, in ms."""
    return [
        (e.ts_us // 1_000, e.reason_text)
        for e in events
        if e.event is Event.FAULT and e.broker_id is not None
    ]


def unreadable(broker: int, for_ms: int = 15_000, prefix: str = "__consumer_offsets") -> Happening:
    """The fault, from 20 s on."""
    return FailOffsetsReads(at_ms=20_000, broker=broker, for_ms=for_ms, prefix=prefix)


def test_a_commit_that_followers_cannot_fetch_halts_its_coordinator() -> None:
    """Nobody answers it; the member commits again at the coordinator that is elected."""
    events = run(unreadable(COORDINATOR))

    (halted, fenced, back) = faults(events)
    assert halted[1] == "LogDirectoryFailed"
    assert 20_000 < halted[0] < 25_000
    assert fenced == (halted[0] + 1_000, "BrokerFenced")
    assert back == (35_000, "BrokerRestarted")
    committed = [
        e for e in events if e.event is Event.OFFSET_COMMIT and e.ts_us >= halted[0] * 1_000
    ]
    assert {e.broker_id for e in committed} == {2}
    assert committed[0].ts_us >= fenced[0] * 1_000
    assert not any(e.error_code for e in committed)


def test_a_generation_that_followers_cannot_fetch_is_lost() -> None:
    """The leader's assignment reaches nobody; the member joins anew where the group was loaded."""
    events = run(RestartMember(at_ms=19_000, member="a", down_ms=1_500), unreadable(COORDINATOR))

    before, after = (e for e in events if e.event is Event.GROUP_STABLE)
    (loaded,) = (e for e in events if e.event is Event.GROUP_LOADED)
    assert (before.broker_id, loaded.broker_id, after.broker_id) == (1, 2, 2)
    assert loaded.generation == 2  # the group was stored as empty when the member left
    assert after.generation == 3
    assert len([e for e in events if e.event is Event.JOIN_COMPLETE and e.generation == 3]) == 2


def test_a_partition_that_cannot_be_loaded_halts_its_new_leader() -> None:
    """It leads for no instant; the old leader is elected again, or another one."""
    events = run(unreadable(2), MoveCoordinator(at_ms=21_000, group_id="g", to_broker=2))

    assert [what for _, what in faults(events)] == [
        "LogDirectoryFailed",
        "BrokerFenced",
        "BrokerRestarted",
    ]
    (loaded,) = (e for e in events if e.event is Event.GROUP_LOADED)
    assert loaded.broker_id not in (None, 2)


def test_what_nobody_reads_does_not_fail() -> None:
    """Without a follower nothing is fetched, and nothing is loaded; nor is another folder read."""
    other = f"__consumer_offsets-{(partition_for('g', 50) + 1) % 50}"

    assert faults(run(unreadable(1), brokers=1)) == []
    assert faults(run(unreadable(COORDINATOR, prefix=other))) == []
    assert faults(run(unreadable(COORDINATOR, for_ms=100))) == []
