"""Brokers that stand still and go on, as after SIGSTOP and SIGCONT."""

from collections.abc import Sequence
from typing import Final

import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.sim.brokers import REQUESTS, TIMERS
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import (
    Choice,
    ConsumerGroupSpec,
    ConsumerSpec,
    CrashBroker,
    Happening,
    MoveCoordinator,
    PauseBroker,
    StartMember,
    TopicSpec,
)
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_conformance.checkers import check_all
from coordinator_sim_conformance.scenario_timing import circumstances_of
from tests.simulated import scenario_of

COORDINATOR: Final = 1
"""The broker that leads the offsets partition of `g`."""
NEVER_MS: Final = 60_000
PAUSED_MS: Final = 12_000
"""Two seconds more than the session timeout."""
PAUSED_FROM_US: Final = 20_000_000
ORDERS: Final = (REQUESTS, TIMERS)


def run(
    *happenings: Happening, first: str = REQUESTS, failover_ms: int = NEVER_MS, brokers: int = 3
) -> list[TraceEvent]:
    """The events of 80 seconds of two consumers; a third one does not start by itself."""
    members = (
        ConsumerSpec(name="a"),
        ConsumerSpec(name="b"),
        ConsumerSpec(name="late", start_ms=None),
    )
    scenario = scenario_of(
        name="paused",
        duration_ms=80_000,
        brokers=brokers,
        failover_ms=failover_ms,
        topics=(TopicSpec(name="orders", partitions=4),),
        groups=(
            ConsumerGroupSpec(
                group_id="g",
                topics=("orders",),
                assignors=("range",),
                settings={"session.timeout.ms": "10000"},
                members=members,
            ),
        ),
        happenings=happenings,
    )
    tape = (Choice("resume", f"broker-{COORDINATOR}", 0, 2, ORDERS.index(first)),)
    recorder = MemoryRecorder()
    run_scenario(scenario, recorder=recorder, tape=tape)
    assert not check_all(recorder.events, circumstances_of(scenario)).violations
    return list(recorder.events)


def of(
    events: Sequence[TraceEvent], event: Event, broker_id: int | None = None
) -> list[TraceEvent]:
    """The events of one kind since the pause of 20 s began, of one broker or of all."""
    return [
        each
        for each in events
        if each.event is event
        and each.ts_us >= PAUSED_FROM_US
        and broker_id in (None, each.broker_id)
    ]


def faults(events: Sequence[TraceEvent]) -> list[tuple[int, str | None, str | None]]:
    """What happened, in ms, and what a broker did first when it went on."""
    return [
        (e.ts_us // 1_000, e.reason_text, e.attrs.get("first")) for e in of(events, Event.FAULT)
    ]


PAUSE: Final = PauseBroker(at_ms=20_000, broker=COORDINATOR, for_ms=PAUSED_MS)


def test_requests_first_keep_every_member() -> None:
    """The heartbeats that waited in the socket count before the sessions are looked at."""
    events = run(PAUSE, first=REQUESTS)

    assert faults(events) == [(20_000, "PauseBroker", None), (32_000, "BrokerResumed", REQUESTS)]
    assert not of(events, Event.MEMBER_FAILED)
    assert not of(events, Event.PREPARE_REBALANCE)
    assert {e.ts_us for e in of(events, Event.HEARTBEAT)} & {32_000_000}


def test_timers_first_remove_members_that_were_never_silent() -> None:
    """Every session is overdue; the heartbeats behind it are of unknown members."""
    events = run(PAUSE, first=TIMERS)

    failed = of(events, Event.MEMBER_FAILED)
    assert [e.ts_us for e in failed] == [32_000_000] * 2
    beats = [e for e in of(events, Event.HEARTBEAT) if e.ts_us == 32_000_000]
    assert {e.error_code for e in beats} == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert len(of(events, Event.GROUP_STABLE)) == 1


@pytest.mark.parametrize("first", ORDERS)
def test_nothing_happens_at_a_broker_that_stands_still(first: str) -> None:
    """From the pause to its end it neither answers nor removes anybody."""
    events = run(PAUSE, first=first)

    there = [e for e in events if e.broker_id == COORDINATOR and e.ts_us > 20_000_000]
    assert min(e.ts_us for e in there) == 32_000_000


@pytest.mark.parametrize("first", ORDERS)
def test_a_deposed_broker_goes_on_as_leader_for_a_moment(first: str) -> None:
    """Its group was loaded elsewhere long ago; it answers what it has read, and then resigns."""
    events = run(PAUSE, first=first, failover_ms=1_000)

    (loaded,) = of(events, Event.GROUP_LOADED)
    assert (loaded.ts_us, loaded.broker_id) == (21_050_000, 2)
    late = [e for e in of(events, Event.HEARTBEAT, COORDINATOR) if e.ts_us == 32_000_000]
    told = ErrorCode.NONE if first == REQUESTS else ErrorCode.UNKNOWN_MEMBER_ID
    assert {e.error_code for e in late} == {told}
    commits = of(events, Event.OFFSET_COMMIT, COORDINATOR)
    assert commits
    assert all(e.error_code for e in commits)
    (dead,) = of(events, Event.GROUP_DEAD, COORDINATOR)
    assert dead.ts_us == 32_000_000
    assert not of(events, Event.MEMBER_FAILED, 2)


def test_a_client_connects_to_a_broker_that_stands_still() -> None:
    """The kernel accepts; the answers come when the process goes on."""
    events = run(
        PauseBroker(at_ms=20_000, broker=1, for_ms=5_000),
        StartMember(at_ms=21_000, member="late"),
        brokers=1,
    )

    (asked, *_) = (e for e in of(events, Event.JOIN_REQ) if e.client_id == "late")
    assert 25_000_000 < asked.ts_us < 25_300_000


def test_a_paused_broker_that_is_killed_has_read_nothing() -> None:
    """What waited in its sockets is gone, and no end of the pause follows."""
    events = run(
        PAUSE, CrashBroker(at_ms=25_000, broker=COORDINATOR, for_ms=20_000), failover_ms=1_000
    )

    assert [what for _, what, _ in faults(events)] == [
        "PauseBroker",
        "BrokerFenced",
        "CrashBroker",
        "BrokerRestarted",
    ]
    assert not of(events, Event.HEARTBEAT, COORDINATOR)


def test_a_paused_broker_is_neither_paused_again_nor_elected() -> None:
    """The first pause ends when it was to end; a move to the broker is ignored."""
    events = run(
        MoveCoordinator(at_ms=10_000, group_id="g", to_broker=2),
        PAUSE,
        PauseBroker(at_ms=21_000, broker=COORDINATOR, for_ms=30_000),
        MoveCoordinator(at_ms=22_000, group_id="g", to_broker=COORDINATOR),
        MoveCoordinator(at_ms=24_000, group_id="g"),
    )

    assert [at_ms for at_ms, what, _ in faults(events) if what == "BrokerResumed"] == [32_000]
    assert [e.broker_id for e in of(events, Event.GROUP_LOADED)] == [3]
