"""Costs of rebalances: to what they are charged, what adds up, what is not told."""

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
from coordinator_sim.errors import ConfigError
from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.charges import Charge, Told, charges_in, trace_of
from coordinator_sim.replay.cost_sums import DAY, DEPLOY, GROUP, Sums, storms_in, summed
from coordinator_sim.replay.costs import RebalanceCost
from coordinator_sim.replay.savings import weigh_deploys
from coordinator_sim.replay.storms import STORM_COUNT, STORM_MS, storms_of
from coordinator_sim.replay.work import Partitions
from coordinator_sim.runs.holdings import covered, gaps
from coordinator_sim.sim.scenario import Scenario
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.rebalances import RebalanceOutcome
from coordinator_sim_scenarios.catalog import all_scenarios
from coordinator_sim_scenarios.strategies import scenarios
from tests.simulated import events_of

REPO = Path(__file__).resolve().parents[3]
EXAMPLE = REPO / "examples" / "broker-log" / "server.log"
INFO = RunInfo(trace_id="t", source=Source.SIM, cluster_id="c", version="0", profile="4.4")
FIGURES = Sums.__struct_fields__
app = typer.Typer()
app.command()(run)
app.command()(findings)


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


def cost_at(number: int, start_ms: int) -> RebalanceCost:
    """A rebalance that began then."""
    return RebalanceCost(
        number=number,
        start_ms=start_ms,
        length_us=1_000,
        trigger="joined",
        client="a",
        root=number,
        confidence=1.0,
        initial_ms=0,
        dead_ms=0,
        slow_ms=0,
        restart="",
        deploy=0,
        members=1,
        outcome=RebalanceOutcome.STABLE,
        is_follow_up=False,
        protocol_name=None,
        line="event 1",
    )


@given(pauses=st.lists(st.integers(0, STORM_MS // 3), max_size=30))
def test_a_storm_is_what_its_definition_says(pauses: list[int]) -> None:
    """A rebalance is in a storm exactly where it is one of five in a row within five minutes."""
    starts = [sum(pauses[:place]) for place in range(len(pauses) + 1)]
    costs = [cost_at(number, at_ms) for number, at_ms in enumerate(starts, 1)]
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
