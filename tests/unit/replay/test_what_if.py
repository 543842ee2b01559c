"""What other settings would have done, beside simulations under those settings.

Exactly comparable are: `group.instance.id` of consumers that are restarted (rebalances, generation,
returns), `session.timeout.ms` (the instant of each failure), `group.initial.rebalance.delay.ms`
(the instant of the first generation), `partition.assignment.strategy` (moves), `profile`
(rebalances).
With other heartbeats members rejoin in other milliseconds, so that only counts are compared.
"""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.embedded.consumer_protocol import decode_assignment
from coordinator_sim.replay.charges import charges_in, trace_of
from coordinator_sim.replay.cost_sums import Sums, sums_of
from coordinator_sim.replay.course import Seat
from coordinator_sim.replay.recordings import replay_recording
from coordinator_sim.replay.report import GroupFidelity, ReplayResult, RunFigures, Tally
from coordinator_sim.replay.settings import parse_grid
from coordinator_sim.replay.strategies import fewest_moves, moves_between
from coordinator_sim.replay.what_if import Subject, what_if
from coordinator_sim.sim.scenario import Scenario
from coordinator_sim.sim.scenario.scenario import with_assignor, with_settings
from coordinator_sim.sim.scenario.variants import with_membership
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim_scenarios.catalog import all_scenarios
from tests.simulated import SIMULATED, events_of


def tried(name: str, *texts: str, profiles: str | None = None) -> ReplayResult:
    """The replay of a catalogue scenario under these settings."""
    scenario = all_scenarios()[name]
    info = replace(SIMULATED, profile=scenario.profile)
    return replay_recording(events_of(scenario), info, parse_grid(texts, profiles))


def figures_of(result: ReplayResult) -> RunFigures:
    """The figures of the only group under the only combination."""
    (entry,) = result.report.what_if
    assert entry.not_computed == ""
    return entry.with_settings


def count(events: list[TraceEvent], event: Event, **attrs: str) -> int:
    """How many of these events there are."""
    return sum(each.event is event and attrs.items() <= each.attrs.items() for each in events)


def times(events: list[TraceEvent], event: Event) -> list[int]:
    """When they were, in milliseconds."""
    return [each.ts_us // 1000 for each in events if each.event is event]


def own_times(scenario: Scenario) -> Sums:
    """What the rebalances of a simulation cost, by who owned what."""
    return sums_of(charges_in(trace_of(events_of(scenario), Source.SIM)))


def sim_moves(events: list[TraceEvent]) -> int:
    """The partitions that changed hands from one assignment of all partitions to the next."""
    generations: dict[int, dict[object, str]] = {}
    for each in events:
        if each.event is Event.ASSIGNED and each.assignment:
            owners = generations.setdefault(each.generation, {})
            partitions = decode_assignment(each.assignment).partitions
            owners.update(dict.fromkeys(partitions, each.member_id))
    whole = max(map(len, generations.values()))
    ends = [own for _, own in sorted(generations.items()) if len(own) == whole]
    return sum(moves_between(old, new) for old, new in pairwise(ends))


@pytest.mark.parametrize(
    "name",
    [
        *("consumer-rolling-deploy", "mass-restart", "mixed-clients", "mixed-clients-cooperative"),
        *("poll-timeout-loop", "rolling-bounce", "slow-processing"),
    ],
)
def test_members_made_static_agree_with_a_simulation_of_static_members(name: str) -> None:
    """As many rebalances, the same generation, as many restarts that nobody noticed."""
    told = events_of(with_membership(all_scenarios()[name], static=True))
    figures = figures_of(tried(name, "group.instance.id=stable"))
    assert figures.rebalances == count(told, Event.PREPARE_REBALANCE)
    assert figures.removed == count(told, Event.MEMBER_FAILED)
    assert figures.returns == count(told, Event.STATIC_REPLACED, rebalance="0")
    assert figures.last_generation == max(
        each.generation for each in told if each.event is Event.JOIN_COMPLETE
    )


@pytest.mark.parametrize("timeout_ms", [6_000, 20_000, 45_000])
def test_other_session_timeout_agrees_to_the_millisecond(timeout_ms: int) -> None:
    """A dead member fails in the same millisecond as in the simulation under that timeout."""
    setting = {"session.timeout.ms": str(timeout_ms), "heartbeat.interval.ms": "3000"}
    told = events_of(with_settings(all_scenarios()["member-crash"], setting))
    result = tried("member-crash", f"session.timeout.ms={timeout_ms}")
    assert times(result.events, Event.MEMBER_FAILED) == times(told, Event.MEMBER_FAILED)


@pytest.mark.parametrize("delay_ms", [0, 1_000, 5_000])
def test_other_initial_delay_agrees_to_the_millisecond(delay_ms: int) -> None:
    """The first generation is there in the same millisecond as in the simulation."""
    setting = {"group.initial.rebalance.delay.ms": str(delay_ms)}
    told = events_of(with_settings(all_scenarios()["scale-out"], setting))
    result = tried("scale-out", f"group.initial.rebalance.delay.ms={delay_ms}")
    assert times(result.events, Event.JOIN_COMPLETE)[0] == times(told, Event.JOIN_COMPLETE)[0]


@pytest.mark.parametrize("name", ["consumer-rolling-deploy", "rolling-bounce", "scale-out"])
@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_other_assignor_moves_as_many_partitions_as_in_a_simulation(
    name: str, assignor: str
) -> None:
    """The memberships of the run under another assignor: as many moves as when it is simulated."""
    told = events_of(with_assignor(all_scenarios()[name], assignor))
    figures = figures_of(tried(name, f"partition.assignment.strategy={assignor}"))
    assert figures.sharing.moved == sim_moves(told)


@pytest.mark.parametrize("release", ["2.8", "3.9", "4.0"])
def test_other_release_agrees_with_its_simulation(release: str) -> None:
    """The core of another release rebalances as often as a simulation of that release."""
    told = events_of(replace(all_scenarios()["rolling-bounce"], profile=release))
    figures = figures_of(tried("rolling-bounce", profiles=release))
    assert figures.rebalances == count(told, Event.PREPARE_REBALANCE)


def test_cooperative_members_never_stop_and_rejoin_for_what_moves() -> None:
    """Cooperative rounds cost a rebalance more; in lockstep they leave partitions free for longer.

    So do simulations of both: eager members that rejoin in one instant have all back at once.
    """
    result = tried(
        "consumer-rolling-deploy", "partition.assignment.strategy=sticky,cooperative-sticky"
    )
    eager, cooperative = (entry.with_settings.sharing for entry in result.report.what_if)
    assert (eager.moved, eager.follow_ups) == (cooperative.moved, 0)
    assert cooperative.follow_ups == 8
    assert (cooperative.paused_ms, cooperative.stopped_ms) == (0, 0)
    told = {
        name: own_times(with_assignor(all_scenarios()["consumer-rolling-deploy"], name))
        for name in ("sticky", "cooperative-sticky")
    }
    assert (eager.paused_ms, eager.stopped_ms) == (
        *(round(told["sticky"].paused_s * 1000), round(told["sticky"].stopped_s * 1000)),
    )
    assert eager.unowned_ms == pytest.approx(told["sticky"].unowned_s * 1000, rel=0.01)
    assert told["cooperative-sticky"].unowned_s > told["sticky"].unowned_s
    assert cooperative.unowned_ms > eager.unowned_ms


def test_members_made_static_lose_as_much_as_simulated_static_members() -> None:
    """Nobody pauses; what they owned has no owner while they are away."""
    told = own_times(with_membership(all_scenarios()["rolling-bounce"], static=True))
    sharing = figures_of(tried("rolling-bounce", "group.instance.id=stable")).sharing
    assert (sharing.paused_ms, sharing.stopped_ms, told.paused_s, told.stopped_s) == (0, 0, 0, 0)
    assert sharing.unowned_ms == pytest.approx(told.unowned_s * 1000, rel=0.02)


def test_scheduled_delay_decides_whether_lost_work_is_moved() -> None:
    """A worker that returned gets its work when the delay ends; without one, all is dealt anew."""
    result = tried("connect-worker-crash", "scheduled.rebalance.max.delay.ms=0,300000")
    at_once, waiting = (entry.with_settings.sharing for entry in result.report.what_if)
    assert waiting.moved < at_once.moved
    assert at_once.unowned_ms < waiting.unowned_ms


def test_eager_workers_stop_for_every_rebalance() -> None:
    """Connect's old protocol stops everything, and deals anew."""
    result = tried("connect-worker-crash", "connect.protocol=eager,sessioned")
    eager, sessioned = (entry.with_settings.sharing for entry in result.report.what_if)
    assert eager.moved > sessioned.moved
    assert eager.stopped_ms > sessioned.stopped_ms


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("connect-worker-crash", "group.instance.id=stable", "no setting of a Connect cluster"),
        ("connect-worker-crash", "partition.assignment.strategy=range", "no setting of a Connect"),
        ("rolling-bounce", "connect.protocol=eager", "a setting of a Connect cluster alone"),
        ("static-rolling-bounce", "group.instance.id=none", "its members are static"),
        ("rolling-bounce", "heartbeat.interval.ms=45000", "is not below the group's session"),
    ],
)
def test_settings_that_a_group_cannot_have_are_not_computed(name: str, text: str, why: str) -> None:
    """One line says why, and there is no figure."""
    (entry,) = tried(name, text).report.what_if
    assert why in entry.not_computed
    assert entry.with_settings is None
    assert entry.saves_ms is None


def test_group_that_does_not_replay_faithfully_gives_no_savings() -> None:
    """One missed row is enough: no figure is computed, and a line says so."""
    fidelity = GroupFidelity(
        source_ref=None,
        group_id="g",
        profile="4.4",
        tallies={"rebalances": Tally(in_source=8, reproduced=7)},
    )
    subject = Subject(fidelity=fidelity, plans=[], profile=profile_named("4.4"), work=None)
    (entry,), events = what_if(subject, parse_grid(["group.instance.id=stable"]))
    assert (entry.as_is, entry.with_settings, events) == (None, None, [])
    assert entry.saves_ms is None
    assert entry.not_computed == (
        "replay reproduces 87.5 % of what the source determines, and no stretch whole"
    )


def seats(*keys: str) -> tuple[Seat, ...]:
    """Members by their ids."""
    return tuple(Seat(key, key, key, is_static=False) for key in keys)


@pytest.mark.parametrize(
    ("before", "after", "members", "fewest"),
    [
        ("aabb", "aabb", "ab", 0),
        ("aabb", "aaaa", "a", 2),
        ("aaaa", "aabb", "ab", 2),
        ("aaabbb", "aabbcc", "abc", 2),
        ("aaaab", "aaabb", "ab", 1),
    ],
)
def test_fewest_moves_reach_a_balanced_result(
    before: str, after: str, members: str, fewest: int
) -> None:
    """Each letter is the owner of one partition."""
    old, new = dict(enumerate(before)), dict(enumerate(after))
    assert fewest_moves(old, new, [seat.key for seat in seats(*members)]) == fewest


OWN_SETTINGS = (
    "group.initial.rebalance.delay.ms=3000",
    "heartbeat.interval.ms=3000",
    "group.instance.id=none",
)


@pytest.mark.parametrize("text", OWN_SETTINGS)
@pytest.mark.parametrize("name", ["consumer-rolling-deploy", "member-crash", "scale-out"])
def test_settings_of_the_recording_change_nothing(name: str, text: str) -> None:
    """A setting at the value that the run had gives the figures of the run, to the millisecond."""
    (entry,) = tried(name, text).report.what_if
    assert not entry.differs


@pytest.mark.parametrize("name", ["consumer-rolling-deploy", "member-crash", "scale-out"])
def test_assignor_of_the_recording_changes_nothing(name: str) -> None:
    """Nor does the assignor that the run had."""
    told = events_of(all_scenarios()[name])
    own = next(each.protocol_name for each in told if each.event is Event.JOIN_COMPLETE)
    (entry,) = tried(name, f"partition.assignment.strategy={own}").report.what_if
    assert not entry.differs
