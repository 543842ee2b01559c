"""Findings: what costs a group most, what to change, what a replay says that it saves."""

import json
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from typer.testing import CliRunner

from coordinator_sim.cli.findings import findings
from coordinator_sim.cli.run import run
from coordinator_sim.clients.client_kind import ClientKind
from coordinator_sim.errors import ConfigError
from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.charges import Charge, Told, charges_in, trace_of
from coordinator_sim.replay.cost_sums import DAY, DEPLOY, GROUP, Sums, storms_in, summed
from coordinator_sim.replay.costs import CAME, REPLACING, WENT, RebalanceCost, costs_of
from coordinator_sim.replay.findings import STATIC, Finding, findings_of, with_savings
from coordinator_sim.replay.report import Coverage, RunFigures, WhatIf
from coordinator_sim.replay.restarts import Passage, restarts_in
from coordinator_sim.replay.savings import _weighed, findings_in, weigh, weigh_deploys
from coordinator_sim.replay.storms import STORM_COUNT, STORM_MS, storms_of
from coordinator_sim.replay.work import Partitions
from coordinator_sim.runs.holdings import covered, gaps
from coordinator_sim.runs.run_directory import RunDirectoryWriter
from coordinator_sim.sim.scenario import Scenario
from coordinator_sim.trace.events import Event, RebalanceReason, RunInfo, Source, TraceEvent
from coordinator_sim.trace.history import coordinator_events, group_lines
from coordinator_sim.trace.rebalances import RebalanceOutcome
from coordinator_sim.trace.window import ALWAYS
from coordinator_sim_scenarios.catalog import all_scenarios
from coordinator_sim_scenarios.strategies import scenarios
from tests.simulated import events_of

REPO = Path(__file__).resolve().parents[3]
SAMPLES = REPO.parent / "shared" / "samples" / "broker-logs"
INFO = RunInfo(trace_id="t", source=Source.SIM, cluster_id="c", version="0", profile="4.4")
app = typer.Typer()
app.command()(run)
app.command()(findings)


def costs_in(name: str) -> list[RebalanceCost]:
    """The costs of the only group of a catalogue scenario."""
    events = events_of(all_scenarios()[name])
    ((group_id, lines),) = group_lines(coordinator_events(events, Source.SIM)).items()
    return costs_of(group_id, lines)


def saved(name: str) -> dict[str, Finding]:
    """The findings of a catalogue scenario by kind, weighed by replays."""
    events = events_of(all_scenarios()[name])
    weighed = weigh(findings_in(events, Source.SIM), events, INFO, Partitions({}))
    assert [each.not_computed for each in weighed if each.not_computed] == []
    return {each.finding.kind: each.finding for each in weighed}


# -- cause and cost ------------------------------------------------------------------------


def test_rolling_restart_is_one_deploy_of_two_rebalances_a_member() -> None:
    """Each stop is followed by its return, and the return comes from the stop."""
    first, *others = costs_in("rolling-bounce")
    assert (first.deploy, first.initial_ms > 0) == (0, True)
    assert {each.deploy for each in others} == {1}
    bounced = [each for each in others if each.restart == CAME]
    assert all(each.root == each.number - 1 for each in bounced)
    assert {each.restart for each in others} == {CAME, WENT}


def test_join_phase_that_waited_for_the_dead_is_told_apart() -> None:
    """Twelve members killed and started anew: the new ones wait until the old ones have failed."""
    costs = costs_in("mass-restart")
    assert sum(each.dead_ms for each in costs) > 8_000
    assert sum(each.slow_ms for each in costs) < 1_000


def test_members_that_do_not_poll_are_no_deploy() -> None:
    """The same member leaves and comes back again and again, because of its polls."""
    found = saved("poll-timeout-loop")
    assert "deploys-rebalance-each-member" not in found
    assert found["poll-timeouts"].rebalances == 18


@settings(max_examples=15, deadline=None, derandomize=True)
@given(scenario=scenarios(), seed=st.integers(0, 2**16))
def test_parts_of_a_join_phase_add_up_to_it(scenario: Scenario, seed: int) -> None:
    """Whatever happens: no part is negative, and together they are no longer than the rebalance."""
    groups = group_lines(list(coordinator_events(events_of(scenario, seed=seed), Source.SIM)))
    for group_id, lines in groups.items():
        costs = costs_of(group_id, lines)
        for each in costs:
            parts = (each.initial_ms, each.dead_ms, each.slow_ms)
            assert min(parts) >= 0
            assert each.length_us is None or sum(parts) * 1000 <= each.length_us
            assert 1 <= each.root <= each.number
            assert 0 < each.confidence <= 1
        for finding in findings_of(group_id, costs):
            assert finding.rebalances <= len(costs)
            assert finding.cost_s <= sum(each.length_us or 0 for each in costs) / 1e6 + 1e-9


# -- restarts ------------------------------------------------------------------------------


def passage(at_ms: int, index: int, client: str, *, comes: bool) -> Passage:
    """A member that comes or goes."""
    return Passage(at_ms, index, client, comes=comes, line_ms=at_ms)


def test_who_comes_back_is_told_by_its_client_id() -> None:
    """Two go and come back in another order; one that nobody knows takes nobody's place."""
    told = restarts_in(
        [
            passage(0, 1, "a", comes=False),
            passage(1, 2, "b", comes=False),
            passage(5, 3, "b", comes=True),
            passage(6, 4, "a", comes=True),
            passage(7, 5, "c", comes=True),
        ],
        lambda _: 100,
    )
    assert [(each.gone.index, each.came.index, each.is_by_name) for each in told] == [
        (2, 3, True),
        (1, 4, True),
    ]


def test_client_ids_that_change_with_each_start_are_paired_by_time() -> None:
    """So are members that no line names; the pair says so."""
    gone, came = passage(0, 1, "pod-x1", comes=False), passage(5, 2, "pod-q7", comes=True)
    (restart,) = restarts_in([gone, came], lambda _: 100)
    assert not restart.is_by_name


def test_who_was_away_for_too_long_has_lost_its_place() -> None:
    """The bound is part of the question."""
    passages = [passage(0, 1, "a", comes=False), passage(101, 2, "a", comes=True)]
    assert restarts_in(passages, lambda _: 100) == []


# -- findings ------------------------------------------------------------------------------


def cost(number: int, **changed: object) -> RebalanceCost:
    """The cost of a rebalance of one second, a minute after the one before."""
    plain = RebalanceCost(
        number=number,
        start_ms=number * 60_000,
        length_us=1_000_000,
        trigger="joined",
        client="",
        root=number,
        confidence=1.0,
        initial_ms=0,
        dead_ms=0,
        slow_ms=0,
        restart="",
        deploy=0,
        members=3,
        outcome=RebalanceOutcome.STABLE,
        is_follow_up=False,
        protocol_name=None,
        line=f"server.log:{number}",
    )
    return replace(plain, **changed)


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"deploy": 1}, "deploys-rebalance-each-member"),
        ({"dead_ms": 900, "start_ms": 0}, "dead-members-waited-for"),
        ({"initial_ms": 900}, "initial-delay"),
        ({"slow_ms": 1_000}, "slow-joiners"),
        ({"trigger": "poll timeout"}, "poll-timeouts"),
        ({}, "rebalance-storm"),
        ({"restart": CAME, "client": "a"}, "flapping-member"),
        ({"trigger": "rejoined", "client": "a"}, "member-joins-again"),
        ({"client_cause": "unreachable"}, "coordinator-out-of-reach"),
        ({"client_cause": "tasks-updated"}, "connector-changes"),
        ({"client_cause": "task-failed"}, "failing-tasks"),
        ({"trigger": "coordinator moved"}, "coordinator-moves"),
        ({"protocol_name": "range", "paused_us": 900_000}, "eager-stops-everything"),
    ],
)
def test_each_kind_has_a_cause_of_its_own(changed: dict[str, object], kind: str) -> None:
    """Six like rebalances in five minutes; the finding names the first five lines."""
    (found,) = [
        each
        for each in findings_of("g", [cost(number, **changed) for number in range(1, 7)])
        if each.kind == kind
    ]
    assert found.cost_s > 0
    assert found.saves_s is None
    name, _, value = (found.setting or "").partition("=")
    assert name in found.change
    assert value == "stable" or value in found.change
    assert found.source_refs == tuple(f"server.log:{number}" for number in range(1, 6))


def visits(count: int, stay_ms: int) -> list[RebalanceCost]:
    """Consumers that come to an empty group, each alone, and leave."""
    return [
        changed
        for number in range(1, count + 1)
        for changed in (
            cost(2 * number - 1, start_ms=number * 90_000, initial_ms=1_000, members=1),
            cost(
                2 * number,
                start_ms=number * 90_000 + 1_000 + stay_ms,
                outcome=RebalanceOutcome.EMPTY,
                restart=WENT,
                client="a",
            ),
        )
    ]


@pytest.mark.parametrize(
    ("count", "stay_ms", "is_found"), [(5, 800, True), (4, 800, False), (5, 61_000, False)]
)
def test_a_consumer_started_for_each_task_is_no_loop_of_restarts(
    count: int, stay_ms: int, *, is_found: bool
) -> None:
    """Its coming and going is one finding, with advice that fits; few or long stays are none."""
    found = {each.kind: each for each in findings_of("g", visits(count, stay_ms))}
    assert ("one-shot-consumers" in found) is is_found
    if is_found:
        assert "left after 0.8 s" in found["one-shot-consumers"].what
        assert not {"rebalance-storm", "flapping-member"} & set(found)


@pytest.mark.parametrize(("count", "is_deploy"), [(2, True), (4, True), (11, False)])
def test_a_deploy_restarts_no_member_many_times(count: int, *, is_deploy: bool) -> None:
    """A console consumer in a loop comes and goes as the only member of its group."""
    events = []
    for number in range(count + 1):
        member = f"console-consumer-7f000000-0000-4000-8000-{number:012}"
        for at_s, kind, why in (
            (4 * number, Event.MEMBER_ADDED, RebalanceReason.MEMBER_JOINED),
            (4 * number + 2, Event.MEMBER_LEFT, RebalanceReason.MEMBER_LEFT),
        ):
            of = {"ts_us": at_s * 1_000_000, "group_id": "g", "member_id": member}
            start = {"generation": 2 * number + at_s % 4 // 2, "reason": why, **of}
            events += [
                TraceEvent(event=kind, **of),
                TraceEvent(event=Event.PREPARE_REBALANCE, **start),
            ]
    costs = costs_of("g", group_lines(events)["g"])
    assert any(each.deploy for each in costs) is is_deploy


def test_workers_are_never_told_to_be_static() -> None:
    """Connect has no group.instance.id; its deploys wait for the worker that is expected back."""
    costs = [
        cost(number, deploy=1, restart=CAME, client="a", client_kind=ClientKind.CONNECT)
        for number in range(1, 7)
    ]
    found = findings_of("connect-cluster", costs)
    deploys = next(each for each in found if each.kind == "deploys-rebalance-each-member")
    assert "scheduled.rebalance.max.delay.ms" in deploys.change
    assert all("instance.id" not in f"{each.change}{each.setting}" for each in found)


@pytest.mark.parametrize(
    ("returns", "words"),
    [
        ([], "Members left 3 times because they did not poll in time: "),
        ([REPLACING], "Members left 3 times because they did not poll in time: "),
        ([CAME], "Members left 3 times because they did not poll in time, and came back once: "),
    ],
)
def test_members_come_back_only_where_their_client_id_does(returns: list[str], words: str) -> None:
    """Who joins within minutes may be another process: time alone does not tell who it was."""
    left = [cost(number, trigger="poll timeout") for number in (1, 2, 3)]
    back = [cost(4, root=1, restart=part) for part in returns]
    (found,) = [each for each in findings_of("g", left + back) if each.kind == "poll-timeouts"]
    assert found.what.startswith(words)
    assert (found.setting, found.assumes) == (None, ())
    assert found.change.startswith("Raise max.poll.interval.ms")


def run_figures(rebalancing_ms: int, rebalances: int) -> RunFigures:
    """Figures of a replay."""
    return RunFigures(
        rebalances=rebalances,
        last_generation=rebalances,
        join_ms=0,
        rebalancing_ms=rebalancing_ms,
        removed=0,
        unnoticed_ms=0,
        outcomes={},
    )


@pytest.mark.parametrize(
    ("left_ms", "saves_s"), [(0, 6.01), (3_990, 6.01), (4_000, 6.0), (12_000, -2.0)]
)
def test_a_saving_is_at_most_what_the_finding_is_about(left_ms: int, saves_s: float) -> None:
    """A setting may save the group more: 10 s of rebalancing, of which a finding has 6.01 s."""
    costs = [cost(1, slow_ms=6_010, length_us=6_010_400), cost(2, length_us=3_989_600)]
    (finding,) = [each for each in findings_of("g", costs) if each.kind == "slow-joiners"]
    entry = WhatIf(
        source_ref=None,
        group_id="g",
        settings={},
        as_is=run_figures(10_000, 2),
        with_settings=run_figures(left_ms, 5),
    )
    weighed = with_savings(finding, [entry])
    assert (weighed.cost_s, weighed.saves_s, weighed.more_rebalances) == (6.01, saves_s, 3)
    assert weighed.assumes[0].startswith("members learn of a rebalance at their next heartbeat")


def test_a_part_of_a_flapping_member_is_of_that_member() -> None:
    """Where the other client costs more in what replay reproduces, each is still weighed alone."""
    costs = [
        cost(number, restart=CAME, client="a b" if number % 2 else "a", length_us=length_us)
        for number, length_us in enumerate([1_000_000, 9_000_000] * 3 + [2_000_000, 1_000_000] * 4)
    ]
    (finding,) = [each for each in findings_of("g", costs) if each.kind == "flapping-member"]
    assert (finding.client, finding.cost_s) == ("a b", 31.0)
    entry = WhatIf(
        source_ref=None,
        group_id="g",
        settings=dict([STATIC.split("=")]),
        as_is=run_figures(40_000, 14),
        with_settings=run_figures(0, 1),
        coverage=Coverage(missed=((0, 6 * 60_000_000),)),
    )
    weighed = _weighed(finding, [entry], {"g": costs}, ALWAYS)
    assert weighed.of_s == 4.0


def test_what_an_open_rebalance_waited_is_no_cost() -> None:
    """It has no length, so that its group's time of rebalancing has nothing of it."""
    assert findings_of("g", [cost(1, length_us=None, slow_ms=9_796)]) == []


def test_group_that_loses_no_time_has_no_finding() -> None:
    """A single rebalance, over at once."""
    assert findings_of("g", [cost(1, length_us=0)]) == []


def test_savings_are_those_of_replays() -> None:
    """Static members save a deploy its rebalances; a cooperative assignor saves the pauses."""
    found = saved("consumer-rolling-deploy")
    deploys = found["deploys-rebalance-each-member"]
    assert (deploys.basis, deploys.saves_s) == ("replayed", deploys.cost_s)
    eager = found["eager-stops-everything"]
    assert (eager.cost_unit, eager.saves_s) == ("member-seconds paused", eager.cost_s)
    assert eager.more_rebalances == 8
    assert 0 < found["slow-joiners"].saves_s < found["slow-joiners"].cost_s


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="needs the logs of ../shared")
@pytest.mark.parametrize("name", ["013.log", "031.log", "049.log"])
def test_findings_of_real_logs_are_weighed_or_say_why_not(name: str) -> None:
    """Each has a saving, or a sentence that says why there is none."""
    with (SAMPLES / name).open(encoding="utf-8", errors="replace") as lines:
        events = list(parse_broker_log(lines, source_ref=name, tz=UTC))
    info = replace(INFO, source=Source.BROKER_LOG)
    for each in weigh(findings_in(events, Source.BROKER_LOG), events, info, Partitions({})):
        is_weighed = each.finding.saves_s is not None
        assert is_weighed != bool(each.not_computed) or each.finding.setting is None


# -- the command ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rolling deploy on disk."""
    path = tmp_path_factory.mktemp("trace") / "deploy"
    done = CliRunner().invoke(app, ["run", "rolling-bounce", "--out", str(path)])
    assert done.exit_code == 0
    return path


def test_command_lists_the_worst_first_and_what_to_type_next(trace: Path) -> None:
    """Cost, sentence, change, saving, lines; then the command that shows the best saving."""
    done = CliRunner().invoke(app, ["findings", str(trace), "--top", "1"])
    first, *_ = lines = done.stdout.splitlines()
    assert first.startswith("1. orders-app: deploys-rebalance-each-member, ")
    assert lines[2] == "   when: from 60.169 s to 162.147 s"
    assert lines[4].startswith("   saves: 16.318 of 16.318 seconds rebalancing, replayed with ")
    assert lines[5].startswith("   assumes: a process keeps its group.instance.id over a restart")
    assert "   lines: event " in lines[6]
    assert f"Next: coordinator-sim replay {trace} --group orders-app --set " in done.stdout
    assert "--top shows more." in done.stdout
    assert lines[-3].startswith("invariants kept: I1, ")
    assert lines[-2].startswith("Not exercised in this trace: I7 (convergence), I9 (replay of the")
    assert lines[-1] == "invariants VIOLATED: none"


def test_command_prints_the_columns_of_the_table_as_json(trace: Path) -> None:
    """The same columns as the table of a report, with the savings filled in."""
    done = CliRunner().invoke(app, ["findings", str(trace), "--json"])
    document = json.loads(done.stdout)
    assert document["invariants"]["I1"] == "PASS"
    assert document["invariants"]["I7"] == "UNKNOWN"
    assert [row["rank"] for row in document["findings"]] == list(range(1, document["found"] + 1))
    assert len(document["assumed"]) > 5
    assert set(document["findings"][0]) == {
        *("trace_id", "cluster_id", "group_id", "rank", "kind", "rebalances", "cost_s"),
        *("cost_unit", "what", "change", "setting", "saves_s", "basis", "confidence"),
        *("source_refs", "not_computed", "assumes", "more_rebalances", "first_us", "last_us"),
        *("of_s", "coverage", "printed", "client"),
    }


def test_command_refuses_a_group_that_there_is_not(trace: Path) -> None:
    """One line names a close one."""
    done = CliRunner().invoke(app, ["findings", str(trace), "--group", "order-app"])
    assert isinstance(done.exception, ConfigError)
    assert "did you mean orders-app" in str(done.exception)


# -- Costs of rebalances: to what they are charged, what adds up, what is not told -------------


EXAMPLE = REPO / "examples" / "broker-log" / "server.log"
FIGURES = Sums.__struct_fields__


def told(events: Sequence[TraceEvent], source: Source = Source.SIM) -> Told:
    """The events as a trace with its assignments."""
    return trace_of(events, source)


def simulated(scenario: Scenario, seed: int = 0) -> list[TraceEvent]:
    """The events of a scenario."""
    return [replace(event, seq=place) for place, event in enumerate(events_of(scenario, seed=seed))]


def charged(name: str) -> list[Charge]:
    """The costs of a catalogue scenario's rebalances."""
    return charges_in(told(simulated(all_scenarios()[name])))


def test_members_that_are_killed_leave_their_partitions_without_owner() -> None:
    """What nobody owned until the dead were removed belongs to the rebalance that removed them."""
    first, second = charged("mass-restart")
    assert (first.unowned_us, first.moved) == (0, 0)
    assert second.unowned_us is not None
    assert second.stopped_us is not None
    assert second.unowned_us > 40 * second.stopped_us > 0
    assert (second.moved, second.voluntary, second.needless) == (24, 0, 0)


def test_a_deploy_has_all_its_rebalances_and_no_other() -> None:
    """The first rebalance of the group is nobody's deploy."""
    charges = charged("rolling-bounce")
    (deploy,) = summed(charges, DEPLOY)
    (group,) = summed(charges, GROUP)
    assert (deploy.deploy_no, deploy.rebalances, group.rebalances) == (1, 9, 10)
    assert deploy.sums.moved == group.sums.moved == 38
    assert deploy.sums.rebalancing_s == pytest.approx(16.318)
    assert group.sums.reprocessed is None


def test_what_a_log_does_not_tell_is_not_zero() -> None:
    """A broker's log knows lengths and an upper bound of the standstill, and no owners."""
    with EXAMPLE.open(encoding="utf-8") as lines:
        events = list(parse_broker_log(lines, source_ref="server.log", tz=UTC))
    for row in summed(charges_in(told(events, Source.BROKER_LOG)), GROUP):
        sums = row.sums
        assert row.assigned == 0
        # Nobody stops for an epoch of the consumer group in it.
        assert sums.stopped_s == (0 if row.group_id == "audit" else sums.rebalancing_s)
        assert (sums.unowned_s, sums.moved, sums.needless, sums.reprocessed) == (None,) * 4


def test_members_that_come_and_go_again_and_again_are_a_loop() -> None:
    """Its first cause is named, and what it cost."""
    (storm,) = storms_in(charged("poll-timeout-loop"))
    assert (storm.kind, storm.clients, storm.members) == ("loop", 3, 3)
    assert (storm.first_no, storm.trigger, storm.trigger_client) == (1, "joined", "consumer-1")
    assert (storm.sums.unowned_s or 0) > 60


def test_a_deploy_saves_what_a_replay_of_its_time_saves() -> None:
    """The only deploy of the group: static members would have saved all of its rebalances."""
    events = simulated(all_scenarios()["rolling-bounce"])
    charges = charges_in(told(events))
    deploys = summed(charges, DEPLOY)
    (saved,) = weigh_deploys(deploys, charges, events, INFO, Partitions({}))
    assert saved.saves_s == pytest.approx(16.318, abs=0.01)
    assert (saved.setting, saved.basis) == ("group.instance.id=stable", "replayed")


def test_a_deploy_of_workers_saves_nothing_that_is_known() -> None:
    """Workers are never static: no figure, and the reason."""
    events = simulated(all_scenarios()["connect-rolling-deploy"])
    charges = charges_in(told(events))
    deploys = summed(charges, DEPLOY)
    assert deploys
    for saved in weigh_deploys(deploys, charges, events, INFO, Partitions({})):
        assert (saved.saves_s, saved.basis) == (None, None)
        assert saved.not_computed.startswith("group.instance.id is no setting of a Connect cluster")


@settings(max_examples=10, deadline=None, derandomize=True)
@given(scenario=scenarios(), seed=st.integers(0, 2**16))
def test_costs_add_up_whatever_happens(scenario: Scenario, seed: int) -> None:
    """By day as by group; deploys are a part; needless moves are moves; nothing is negative."""
    trace = told(simulated(scenario, seed))
    charges = charges_in(trace)
    by = {scope: summed(charges, scope) for scope in (GROUP, DEPLOY, DAY)}

    def total(scope: str, name: str) -> float:
        return sum(getattr(row.sums, name) or 0 for row in by[scope])

    for name in FIGURES:
        assert total(GROUP, name) == pytest.approx(total(DAY, name))
        assert total(DEPLOY, name) <= total(GROUP, name) + 1e-9
    for each in charges:
        known = [each.rebalancing_us, each.stopped_us, each.unowned_us]
        assert min([value for value in known if value is not None], default=0) >= 0
        assert 0 <= (each.needless or 0) <= (each.moved or 0)
        assert 0 <= (each.voluntary or 0) <= (each.moved or 0)
        assert (each.stopped_us or 0) <= (each.unowned_us or 0) or each.unowned_us is None
    life_us = trace.end_us - min((each.seen_us for each in charges), default=trace.end_us)
    for row in by[GROUP]:
        assert (row.sums.stopped_s or 0) * 1e6 <= life_us


@given(pauses=st.lists(st.integers(0, STORM_MS // 3), max_size=30))
def test_a_storm_is_what_its_definition_says(pauses: list[int]) -> None:
    """A rebalance is in a storm exactly where it is one of five in a row within five minutes."""
    starts = [sum(pauses[:place]) for place in range(len(pauses) + 1)]
    costs = [cost(number, start_ms=at_ms) for number, at_ms in enumerate(starts, 1)]
    stormy = [each.number for storm in storms_of(costs) for each in storm]
    windows = [costs[first : first + STORM_COUNT] for first in range(len(costs))]
    expected = {
        each.number
        for window in windows
        if len(window) == STORM_COUNT and window[-1].start_ms - window[0].start_ms <= STORM_MS
        for each in window
    }
    assert stormy == sorted(expected)


INTERVALS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 10)).map(lambda two: (two[0], sum(two))),
    min_size=1,
    max_size=8,
)


@given(intervals=INTERVALS)
def test_gaps_are_what_intervals_leave_uncovered(intervals: list[tuple[int, int]]) -> None:
    """From the first interval to the end, each instant is in one or the other."""
    merged = covered(intervals)
    inside = {at for from_us, to_us in intervals for at in range(from_us, to_us)}
    assert {at for from_us, to_us in merged for at in range(from_us, to_us)} == inside
    left = {at for from_us, to_us in gaps(merged, 60) for at in range(from_us, to_us)}
    assert left == set(range(min(inside), 60)) - inside


def test_the_command_shows_costs_and_storms(tmp_path: Path) -> None:
    """As a table, and as one JSON object with the same rows."""
    runner = CliRunner()
    trace = tmp_path / "trace"
    assert runner.invoke(app, ["run", "rolling-bounce", "--out", str(trace)]).exit_code == 0
    arguments = ["findings", str(trace), "--costs", "--by", "deploy"]
    shown = runner.invoke(app, arguments, env={"COLUMNS": "150"}).output
    assert "16.3 replayed" in shown
    assert "orders-app: deploy, 10 rebalances" in shown
    found = json.loads(runner.invoke(app, [*arguments, "--json"]).output)
    (row,) = found["costs"]
    assert (row["moved"], row["reprocessed"], row["basis"]) == (38, None, "replayed")
    assert found["storms"][0]["kind"] == "deploy"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--costs", "--by", "week"], "--by week is not known; give one of group, deploy, day"),
        (["--by", "day"], "--by day is for --costs; give both"),
        (["--costs", "--group", "nobody"], "no group 'nobody'"),
    ],
)
def test_a_wrong_option_is_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    """It names the value and what would be right."""
    runner = CliRunner()
    trace = tmp_path / "trace"
    runner.invoke(app, ["run", "member-crash", "--out", str(trace)])
    result = runner.invoke(app, ["findings", str(trace), *arguments])
    assert isinstance(result.exception, ConfigError)
    assert words in str(result.exception)


@pytest.mark.parametrize(
    ("began", "words"),
    [
        (False, "Nothing to find, but the length of 1 of 1 rebalance is"),
        (True, "Nothing to find: no "),
    ],
)
def test_a_rebalance_without_a_length_is_not_said_to_cost_nothing(
    began: bool, words: str, tmp_path: Path
) -> None:
    """Records of an offsets topic tell the end of a rebalance alone."""
    told = [
        TraceEvent(event=Event.PREPARE_REBALANCE, ts_us=0, generation=0, group_id="g"),
        TraceEvent(event=Event.JOIN_COMPLETE, ts_us=1, generation=1, members=1, group_id="g"),
        TraceEvent(event=Event.SYNC_LEADER, ts_us=2, generation=1, group_id="g"),
    ]
    info = RunInfo(
        trace_id="t", source=Source.OFFSETS_TOPIC, cluster_id="c", version="0", profile="ingested"
    )
    with RunDirectoryWriter(tmp_path / "trace", info) as writer:
        for seq, event in enumerate(told[not began :]):
            writer.record(replace(event, seq=seq))
    done = CliRunner().invoke(app, ["findings", str(tmp_path / "trace")])
    assert done.stdout.startswith(words), done.stdout
