"""Savings of a group of which replay reproduces some stretches, and not others."""

from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.cost_sums import DEPLOY, summed
from coordinator_sim.replay.logs import charges_of, replay_log
from coordinator_sim.replay.recordings import replay_recording
from coordinator_sim.replay.report import sum_of
from coordinator_sim.replay.restarts import Passage, outlived_in
from coordinator_sim.replay.savings import Weighed, findings_in, weigh, weigh_deploys
from coordinator_sim.replay.settings import parse_grid
from coordinator_sim.replay.work import Partitions
from coordinator_sim.sim.scenario import Scenario
from coordinator_sim.trace.events import Event, RunInfo, Source, TraceEvent
from coordinator_sim.trace.history import episodes_of, group_lines
from coordinator_sim.trace.window import Window
from coordinator_sim_scenarios.strategies import scenarios
from tests.simulated import events_of

REPO = Path(__file__).resolve().parents[3]
EXAMPLE = REPO / "examples" / "broker-log" / "server.log"
INFO = RunInfo(
    trace_id="t", source=Source.BROKER_LOG, cluster_id="c", version="0", profile="ingested"
)
SIMULATED = replace(INFO, source=Source.SIM, profile="4.4")
GROUP = "orders-service"
NO_PARTITIONS = Partitions({})
NOBODY = "nobody-0"


def example() -> list[TraceEvent]:
    """The events of the example's only group with two stretches: it dies, and begins anew."""
    with EXAMPLE.open(encoding="utf-8") as lines:
        events = list(parse_broker_log(lines, source_ref=EXAMPLE.name, tz=UTC))
    return [each for each in events if each.group_id == GROUP]


def stretches() -> list[tuple[int, int]]:
    """When each stretch lasts, microseconds, both ends of it."""
    own = episodes_of(GROUP, group_lines(example())[GROUP])
    return [(each.lines[0].ts_us, each.lines[-1].ts_us) for each in own]


def tampered(place: int) -> list[TraceEvent]:
    """The example with a leader that was no member, at the end of one stretch."""
    events = example()
    first_us, last_us = stretches()[place]
    wrong = max(
        number
        for number, each in enumerate(events)
        if first_us <= each.ts_us <= last_us and each.event is Event.SYNC_LEADER
    )
    events[wrong] = replace(events[wrong], leader_id=NOBODY)
    return events


def weighed_in(events: list[TraceEvent], info: RunInfo = INFO) -> dict[str, Weighed]:
    """The findings of a trace by kind, weighed."""
    found = weigh(findings_in(events, info.source), events, info, NO_PARTITIONS)
    return {each.finding.kind: each for each in found}


@pytest.mark.parametrize("place", [0, 1])
def test_a_stretch_that_is_reproduced_saves_what_it_saves_alone(place: int) -> None:
    """A stretch that is not reproduced takes nothing from the other one's figures."""
    first_us, last_us = stretches()[1 - place]
    alone = weighed_in([each for each in example() if first_us <= each.ts_us <= last_us])
    told = weighed_in(tampered(place))
    for kind, each in alone.items():
        if each.finding.saves_s is not None:
            assert told[kind].finding.saves_s == pytest.approx(each.finding.saves_s), kind
            assert each.finding.saves_s <= told[kind].of_s < told[kind].finding.cost_s
            assert told[kind].coverage.reproduced == each.coverage.rebalances > 0
    left = len(episodes_of(GROUP, group_lines(example())[GROUP])[place].rebalances)
    (words,) = {each.words.partition("; ")[2][:40] for each in told.values() if each.of_s}
    assert words.startswith(f"{left} are not reproduced and not counted"[:40])


def test_a_group_without_a_stretch_that_is_reproduced_saves_nothing_known() -> None:
    """One wrong line in each stretch: the reason stands in place of a figure."""
    both = [
        replace(each, leader_id=NOBODY) if each.event is Event.SYNC_LEADER else each
        for each in example()
    ]
    for each in weighed_in(both).values():
        assert each.finding.saves_s is None
        if each.finding.setting is not None:
            assert "and no stretch whole" in each.words


def test_a_deploy_in_a_stretch_that_is_not_reproduced_has_no_saving() -> None:
    """The example's only deploy has rebalances in both stretches; its first part has a saving."""
    charges = charges_of(example(), INFO)
    (deploy,) = summed(charges, DEPLOY)
    (whole,) = weigh_deploys([deploy], charges, example(), INFO, NO_PARTITIONS)
    assert whole.saves_s is not None
    for place in (0, 1):
        (told,) = weigh_deploys([deploy], charges, tampered(place), INFO, NO_PARTITIONS)
        assert told.not_computed == "replay does not reproduce the deploy's rebalances"
    first = Window(until_us=stretches()[1][0])
    held = [each for each in charges if first.holds(each.seen_us)]
    (part,) = weigh_deploys(summed(held, DEPLOY), charges, tampered(1), INFO, NO_PARTITIONS, first)
    assert part.saves_s == pytest.approx(whole.saves_s)


def test_a_replay_of_one_group_knows_the_release_that_lines_of_others_tell() -> None:
    """Whatever groups are looked at, the broker is of one release, and fidelity is one figure."""
    with EXAMPLE.open(encoding="utf-8") as lines:
        events = list(parse_broker_log(lines, source_ref=EXAMPLE.name, tz=UTC))
    whole = {each.group_id: each for each in replay_log(events, INFO).report.groups}
    for group_id, told in whole.items():
        (alone,) = replay_log(events, INFO, group_ids=[group_id]).report.groups
        assert alone == told


@settings(max_examples=12, deadline=None, derandomize=True)
@given(scenario=scenarios(), seed=st.integers(0, 2**16))
def test_findings_and_replay_name_one_fidelity(scenario: Scenario, seed: int) -> None:
    """The rebalances beside a saving are those that `replay` says, of a recording too."""
    events = [replace(each, seq=n) for n, each in enumerate(events_of(scenario, seed=seed))]
    info = replace(SIMULATED, profile=scenario.profile)
    plain = replay_recording(events, info).report
    tried = replay_recording(events, info, parse_grid(["session.timeout.ms=20000"])).report
    assert [each.coverage for each in plain.groups] == [each.coverage for each in tried.groups]
    told = {each.group_id: each.coverage for each in plain.groups}
    for each in weigh(findings_in(events, Source.SIM), events, info, NO_PARTITIONS):
        if each.finding.saves_s is not None:
            assert each.coverage == sum_of([told[each.finding.group_id]])


def passages(*steps: str) -> list[Passage]:
    """Who comes (+) and goes (-), a second apart: `+1 -0`."""
    return [
        Passage(1000 * place, int(each[1:]), "", comes=each[0] == "+")
        for place, each in enumerate(steps)
    ]


@pytest.mark.parametrize(
    ("steps", "outlived"),
    [
        ("+10 -0 +11 -1", {0, 1, 10, 11}),
        ("+10 +11 -0 -1", {0, 1, 10, 11}),
        ("-0 +10 -1 +11", set()),
        ("+9 -0 +10 -1 +11", set()),
        ("+10 -10 +11 -11", set()),
        ("+10 -0 +11 -11", {0, 10}),
        ("+1", set()),
    ],
)
def test_a_process_that_outlived_its_successor_keeps_no_place(
    steps: str, outlived: set[int]
) -> None:
    """A deploy that starts each new process first; not one that scales out, and no loop."""
    assert outlived_in(passages(*steps.split()), 5_000) == outlived
    assert outlived_in(passages(*steps.split()), 500) == set()


def test_clients_that_are_stopped_first_are_none_beside_an_autoscaler() -> None:
    """Their names prove it, whatever other processes come before and go after them."""
    steps = (
        *((0, 9, "z", True), (20_000, 0, "a", False), (28_000, 1, "a", True)),
        *((40_000, 2, "b", False), (48_000, 3, "b", True), (60_000, 8, "y", False)),
    )
    told = [Passage(at_ms, index, name, comes=comes) for at_ms, index, name, comes in steps]
    assert outlived_in(told, 25_000) == set()
    assert outlived_in(told, 60_000) == {8, 9}


@given(
    spans=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8),
    at_us=st.integers(-1, 51),
)
def test_times_without_count_as_often_as_they_are_named(
    spans: list[tuple[int, int]], at_us: int
) -> None:
    """Spans of several files overlap, and come in any order."""
    window = Window(0, 40).but(spans[:3]).but(spans[3:])
    is_out = any(from_us <= at_us < until_us for from_us, until_us in spans)
    assert window.holds(at_us) == (0 <= at_us < 40 and not is_out)


@pytest.mark.parametrize("place", [0, 1])
def test_windows_of_a_stretch_are_judged_by_the_whole_of_it(place: int) -> None:
    """A part that looks right by itself would be counted in a window, and not in the whole."""
    events = tampered(place)
    cut_us = sum(stretches()[place]) // 2 // 1_000 * 1_000
    windows = [Window(), Window(until_us=cut_us), Window(from_us=cut_us)]
    reports = [replay_log(events, INFO, window=window).report for window in windows]
    whole, *parts = (sum_of(each.coverage for each in report.groups) for report in reports)
    assert 0 < whole.reproduced < whole.rebalances
    assert sum(part.reproduced for part in parts) == whole.reproduced
    assert all(part.missed == whole.missed for part in parts)
