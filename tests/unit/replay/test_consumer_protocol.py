"""Recorded classic groups under the consumer protocol, beside simulations of that protocol."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.replay.consumer_protocol.lives import Departure, Life
from coordinator_sim.replay.consumer_protocol.run import (
    ConsumerDriver,
    Ledger,
    Manner,
    Member,
    Topics,
    Window,
)
from coordinator_sim.replay.course import Absence
from coordinator_sim.replay.recordings import replay_recording
from coordinator_sim.replay.report import ReplayResult, RunFigures
from coordinator_sim.replay.settings import parse_grid
from coordinator_sim.replay.sharing import SharingCosts
from coordinator_sim.replay.totals import total_entry
from coordinator_sim.sim.scenario.scenario import with_settings
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_scenarios.catalog import all_scenarios
from tests.simulated import SIMULATED, events_of

CONSUMER = "group.protocol=consumer"
DEPLOYS = ("rolling-bounce", "consumer-rolling-deploy")


def tried(name: str, *texts: str) -> ReplayResult:
    """The replay of a catalogue scenario under these settings."""
    scenario = all_scenarios()[name]
    info = replace(SIMULATED, profile=scenario.profile)
    return replay_recording(events_of(scenario), info, parse_grid(texts))


def figures_of(result: ReplayResult) -> RunFigures:
    """The figures of the only group under the only combination."""
    (entry,) = result.report.what_if
    assert entry.not_computed == ""
    assert entry.with_settings is not None
    return entry.with_settings


def shared(figures: RunFigures) -> SharingCosts:
    """The costs of sharing, which these groups all have."""
    assert figures.sharing is not None
    return figures.sharing


def epochs(events: list[TraceEvent]) -> list[tuple[int | None, str]]:
    """Each epoch of a group, and why it came."""
    return [
        (each.generation, "" if each.reason is None else each.reason.value)
        for each in events
        if each.event is Event.EPOCH_BUMPED
    ]


def without_owner(events: list[TraceEvent]) -> tuple[int, int]:
    """How often a client gave a partition up, and how long they then had no owner, in ms."""
    owners: dict[str, str | None] = {}
    since: dict[str, int] = {}
    given_up = lost_us = 0
    for each in events:
        resources = each.attrs.get("resources", "").split()
        if each.event is Event.ASSIGNED:
            for name in resources:
                owners[name] = each.member_id
                lost_us += each.ts_us - since.pop(name, each.ts_us)
        elif each.event in {Event.REVOKED, Event.LOST}:
            for name in resources:
                if owners.get(name) == each.member_id:
                    since[name] = each.ts_us
                    given_up += 1
    return given_up, lost_us // 1000


@pytest.mark.parametrize("name", DEPLOYS)
def test_every_epoch_is_that_of_a_simulation(name: str) -> None:
    """A recorded classic deploy has the epochs, and their causes, of a simulated new one."""
    simulated = events_of(with_settings(all_scenarios()[name], {"group.protocol": "consumer"}))
    replayed = tried(name, CONSUMER)
    assert epochs(replayed.events) == epochs(simulated)
    given_up, lost_ms = without_owner(simulated)
    costs = shared(figures_of(replayed))
    assert 0.8 * given_up <= costs.interrupted <= 1.25 * given_up
    # Members of the simulation poll at times of their own, and take callbacks' time.
    assert 0.7 * lost_ms <= costs.unowned_ms <= 1.4 * lost_ms


def test_nobody_stops_and_some_partitions_never_do() -> None:
    """An eager deploy stops everything ten times; the consumer protocol only what moves."""
    (entry,) = tried("rolling-bounce", CONSUMER).report.what_if
    assert entry.as_is is not None
    assert entry.with_settings is not None
    before, after = entry.as_is, entry.with_settings
    assert (before.is_epochs, after.is_epochs) == (False, True)
    assert before.never_stopped == 0
    assert shared(before).interrupted == shared(before).items * (before.rebalances - 1)
    assert shared(before).stopped_ms > 0
    assert shared(after).stopped_ms == 0
    assert shared(after).longest_ms <= 2 * 5_000
    assert shared(after).interrupted == shared(after).moved


def test_uniform_moves_fewer_than_range() -> None:
    """The sticky assignor of the broker keeps what it can, range deals out anew."""
    entries = tried(
        "rolling-bounce", CONSUMER, "group.remote.assignor=uniform,range"
    ).report.what_if
    uniform, by_range = (shared(each.with_settings) for each in entries if each.with_settings)
    assert uniform.needless == 0
    assert by_range.needless is not None
    assert by_range.needless > 0
    assert by_range.moved > uniform.moved


@pytest.mark.parametrize("timeout_ms", [20_000, 45_000])
def test_dead_member_is_removed_a_session_of_the_broker_after_its_last_heartbeat(
    timeout_ms: int,
) -> None:
    """The broker's session counts, and not the one that the classic member had brought."""
    figures = figures_of(
        tried("member-crash", CONSUMER, f"group.consumer.session.timeout.ms={timeout_ms}")
    )
    assert figures.removed == 1
    assert timeout_ms - 5_000 < figures.unnoticed_ms <= timeout_ms


def test_static_members_come_back_without_another_target() -> None:
    """With stable ids a restart costs its own time, and no epoch."""
    figures = figures_of(tried("rolling-bounce", CONSUMER, "group.instance.id=stable"))
    assert figures.returns == 6
    assert figures.rebalances == 6
    assert shared(figures).longest_ms < 10_000


def test_total_sums_groups() -> None:
    """Two groups alike have twice the figures of one, and both their partitions."""
    (entry,) = tried("rolling-bounce", CONSUMER).report.what_if
    total = total_entry([entry, entry], "all")
    assert total is not None
    assert total.with_settings is not None
    one = figures_of(tried("rolling-bounce", CONSUMER))
    assert total.with_settings.rebalances == 2 * one.rebalances
    assert shared(total.with_settings).items == 2 * shared(one).items
    assert total.with_settings.never_stopped == 2 * (one.never_stopped or 0)
    assert total_entry([entry], "all") is None


@pytest.mark.parametrize(
    ("texts", "part"),
    [
        ((CONSUMER, "session.timeout.ms=9000"), "group.protocol=classic alone"),
        (
            (CONSUMER, "partition.assignment.strategy=range"),
            "group.remote.assignor are the consumer",
        ),
        (("group.remote.assignor=range",), "add --set group.protocol=consumer"),
        (("group.protocol=share",), "must be one of classic, consumer"),
        ((CONSUMER, "group.consumer.heartbeat.interval.ms=45000"), "unless it is lower"),
    ],
)
def test_settings_of_the_other_protocol_are_refused(texts: tuple[str, ...], part: str) -> None:
    """A line names the setting, whose it is, and what to give instead."""
    with pytest.raises(ConfigError, match=part):
        parse_grid(texts)


def test_release_and_kind_of_group_that_cannot_have_it() -> None:
    """A Scala coordinator has no consumer groups, and Connect no consumer protocol."""
    scenario = all_scenarios()["rolling-bounce"]
    info = replace(SIMULATED, profile="2.8")
    events = events_of(replace(scenario, profile="2.8"))
    (entry,) = replay_recording(events, info, parse_grid([CONSUMER])).report.what_if
    assert "add --profile 4.4" in entry.not_computed
    (entry,) = replay_recording(events, info, parse_grid([CONSUMER], "4.4")).report.what_if
    assert entry.not_computed == ""
    (entry,) = tried("connect-worker-crash", CONSUMER).report.what_if
    assert entry.not_computed.startswith("group.protocol is no setting of a Connect cluster")


@st.composite
def some_lives(draw: st.DrawFn) -> list[Life]:
    """Up to six processes that come and go within ten minutes, some for one that stepped aside."""
    lives: list[Life] = []
    for place in range(draw(st.integers(1, 6))):
        is_static = draw(st.booleans())
        comes_ms = draw(st.none() | st.integers(0, 400_000))
        departure = draw(
            st.sampled_from([Departure.STAYS, Departure.LEAVES, Departure.FALLS_SILENT])
        )
        if is_static and draw(st.booleans()):
            departure = Departure.STEPS_ASIDE
        stays_ms = draw(st.integers(1, 300_000))
        goes_ms = None if departure is Departure.STAYS else (comes_ms or 0) + stays_ms
        life = Life(
            index=len(lives),
            member_id=f"m-{place}",
            client="m",
            instance_id=f"i-{place}" if is_static else None,
            comes_ms=comes_ms,
            goes_ms=goes_ms,
            departure=departure,
        )
        lives.append(life)
        if goes_ms is not None and departure is Departure.STEPS_ASIDE and draw(st.booleans()):
            lives.append(
                replace(
                    life,
                    index=len(lives),
                    member_id=f"m-{place}-again",
                    comes_ms=goes_ms + draw(st.integers(1, 100_000)),
                    goes_ms=None,
                    departure=Departure.STAYS,
                )
            )
    return lives


def played(
    lives: list[Life], busy_ms: int, *, beats_always: bool
) -> tuple[list[TraceEvent], SharingCosts, set[object], list[Absence]]:
    """The core's events and the costs of these lives."""
    work = {"orders": 7, "audit": 2}
    dropped: set[object] = set()
    ledger = Ledger(9, Window(0, 700_000), dropped)
    manner = Manner(
        group_id="g",
        broker_id=1,
        assignor="uniform",
        session_timeout_ms=45_000,
        heartbeat_interval_ms=5_000,
        rebalance_timeout_ms=300_000,
        busy_ms=busy_ms,
        beats_always=beats_always,
    )
    members = [Member(life, tuple(work)) for life in lives]
    driver = ConsumerDriver(members, Topics(work), manner, profile_named("4.4"), ledger)
    events = driver.run(-120_000, 700_000)
    costs = ledger.costs("uniform", is_uniform=True)
    assert driver.refused == {}
    return events, costs, dropped, driver.course.absences


@pytest.mark.parametrize("departure", [Departure.STEPS_ASIDE, Departure.FALLS_SILENT])
@pytest.mark.parametrize("goes_ms", [500_000, 500_123, 504_999])
def test_session_of_who_goes_in_a_quiet_group_runs_from_its_last_heartbeat(
    departure: Departure, goes_ms: int
) -> None:
    """Heartbeats that are left out keep their place: the member is removed when it would be."""
    stays = Life(
        index=0,
        member_id="m-0",
        client="m",
        instance_id=None,
        comes_ms=None,
        goes_ms=None,
        departure=Departure.STAYS,
    )
    goes = replace(
        stays, index=1, member_id="m-1", instance_id="i", goes_ms=goes_ms, departure=departure
    )
    found = played([stays, goes], 300, beats_always=False)
    assert found == played([stays, goes], 300, beats_always=True)
    (absence,) = found[3]
    assert absence.is_dead
    assert 40_000 <= absence.length_ms <= 45_000


@pytest.mark.property
@given(lives=some_lives(), busy_ms=st.sampled_from([0, 300, 7_000]))
def test_heartbeats_left_out_change_nothing(lives: list[Life], busy_ms: int) -> None:
    """Whether a settled group's heartbeats are sent or not, all happens in the same millisecond."""
    assert played(lives, busy_ms, beats_always=False) == played(lives, busy_ms, beats_always=True)


@pytest.mark.property
@given(lives=some_lives())
def test_costs_stay_within_what_there_is(lives: list[Life]) -> None:
    """No more is lost than all partitions for all the time, and stopped is all of them."""
    _, costs, dropped, _ = played(lives, 200, beats_always=False)
    assert 0 <= costs.stopped_ms * costs.items <= costs.unowned_ms <= costs.items * 700_000
    assert costs.longest_ms <= 700_000
    assert len(dropped) <= min(costs.interrupted, costs.items)
