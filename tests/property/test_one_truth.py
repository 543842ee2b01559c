"""One trace, one set of figures: costs, findings and a replay as it is, for each word of time.

`tests/reports/test_rebalance_costs.py` holds the tables of a report to the same costs and findings.
"""

from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.messages.embedded.contents import SERVER_PREFIX, is_cooperative
from coordinator_sim.replay.charges import Charge, charges_in, trace_of
from coordinator_sim.replay.cost_sums import sums_of
from coordinator_sim.replay.findings import MEMBER_SECONDS, SECONDS_REBALANCING, Finding
from coordinator_sim.replay.logs import charges_of, replay_log
from coordinator_sim.replay.recordings import is_recording, replay_recording
from coordinator_sim.replay.report import Coverage, ReplayReport, WhatIf, sum_of
from coordinator_sim.replay.savings import findings_in, weigh
from coordinator_sim.replay.settings import parse_grid
from coordinator_sim.replay.work import Partitions, known_groups
from coordinator_sim.sim.scenario import Scenario
from coordinator_sim.trace.events import Event, RunInfo, Source, TraceEvent
from coordinator_sim.trace.schema import RunManifest
from coordinator_sim_scenarios.catalog import all_scenarios
from coordinator_sim_scenarios.strategies import scenarios
from tests.simulated import events_of

REPO = Path(__file__).resolve().parents[2]
SAMPLES = REPO.parent / "shared" / "samples" / "broker-logs"
EXAMPLE = REPO / "examples" / "broker-log" / "server.log"
INFO = RunInfo(trace_id="t", source=Source.SIM, cluster_id="c", version="0", profile="4.4")
NO_PARTITIONS = Partitions({})
TIMES = (SECONDS_REBALANCING, MEMBER_SECONDS)
STORIES = (
    *("rolling-bounce", "static-rolling-bounce", "mixed-clients-cooperative", "poll-timeout-loop"),
    *("connect-eager-round-robin", "connect-worker-crash"),
)


def simulated(scenario: Scenario, seed: int = 0) -> list[TraceEvent]:
    """The events of a scenario, numbered as on disk."""
    return [replace(event, seq=place) for place, event in enumerate(events_of(scenario, seed=seed))]


def logged(path: Path) -> list[TraceEvent]:
    """The events of a broker's log."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        return list(parse_broker_log(lines, source_ref=path.name, tz=UTC))


def replayed(events: list[TraceEvent], info: RunInfo) -> ReplayReport:
    """The groups of a trace, replayed as they are and with another session timeout."""
    grid = parse_grid(["session.timeout.ms=20000"])
    if is_recording(info):
        return replay_recording(events, info, grid).report
    known, charges = known_groups(events, NO_PARTITIONS), charges_of(events, info)
    return replay_log(events, info, grid, known=known, charges=charges).report


def check(events: list[TraceEvent], info: RunInfo) -> None:
    """All commands have one figure for each word, and no saving exceeds what it is about."""
    charges: dict[str, list[Charge]] = {}
    for each in charges_in(trace_of(events, info.source)):
        charges.setdefault(each.group_id, []).append(each)
    told = replayed(events, info)
    for entry in told.what_if:
        own = [each for each in charges[entry.group_id] if each.source_ref == entry.source_ref]
        check_replay(entry, own)
    fidelity: dict[str, list[Coverage]] = {}
    for group in told.groups:
        fidelity.setdefault(group.group_id, []).append(group.coverage)
    found = findings_in(events, info.source)
    for finding in found:
        if finding.cost_unit in TIMES:
            check_finding(finding, charges[finding.group_id])
    for weighed in weigh(found, events, info, NO_PARTITIONS):
        assert weighed.finding.saves_s is None or weighed.finding.saves_s <= weighed.finding.cost_s
        assert (weighed.finding.saves_s is None) == (weighed.finding.more_rebalances is None)
        if weighed.coverage.rebalances:
            assert weighed.coverage == sum_of(fidelity[weighed.finding.group_id])


def check_replay(entry: WhatIf, charges: Sequence[Charge]) -> None:
    """A replay as it is has the costs' own times, to the millisecond that it counts in."""
    run, sums = entry.as_is, sums_of(charges)
    if run is None:
        return
    if sums.rebalancing_s is not None:
        assert run.rebalancing_ms == round(sums.rebalancing_s * 1000)
    assert run.is_bound == any(each.unowned_us is None for each in charges)
    if run.sharing is None:
        return
    for name in ("paused", "stopped", "unowned"):
        told_s = getattr(sums, f"{name}_s")
        if told_s is not None:
            assert getattr(run.sharing, f"{name}_ms") == round(told_s * 1000), name


def check_finding(finding: Finding, charges: Sequence[Charge]) -> None:
    """A finding's cost is a part of the costs of its group, and its sentences tell it."""
    sums = sums_of(charges)
    if finding.cost_unit == MEMBER_SECONDS:
        own = [each for each in charges if is_eager(each)]
        assert finding.cost_s == sum(each.paused_us or 0 for each in own) / 1e6
        stopped_s = sum(each.stopped_us or 0 for each in own) / 1e6
        assert f"{stopped_s:.1f} s nobody" in finding.what
        assert ("at most" in finding.what) == any(each.unowned_us is None for each in own)
        assert finding.cost_s <= (sums.paused_s or 0) + 1e-9
    else:
        assert finding.cost_s <= (sums.rebalancing_s or 0) + 1e-9
    assert f"{finding.cost_s:.1f} s" in finding.what
    assert (finding.setting or "").partition("=")[0] in finding.change
    assert bool(finding.assumes) == bool(finding.setting)


def is_eager(charge: Charge) -> bool:
    """Whether members of a group that had some gave up everything."""
    name = charge.cost.protocol_name
    is_classic = bool(name) and not (name or "").startswith(SERVER_PREFIX)
    return is_classic and not is_cooperative(name) and not charge.cost.initial_ms


@pytest.mark.parametrize("name", STORIES)
def test_commands_agree_on_a_story(name: str) -> None:
    """Eager and cooperative, dynamic and static, consumers and workers."""
    scenario = all_scenarios()[name]
    check(simulated(scenario), replace(INFO, profile=scenario.profile))


def test_commands_agree_on_the_example_log() -> None:
    """It tells no owners: every figure of pauses and standstill is an upper bound."""
    info = replace(INFO, source=Source.BROKER_LOG, profile="ingested")
    check(logged(EXAMPLE), info)


def test_a_group_by_itself_has_the_figures_that_it_has_among_others() -> None:
    """What nobody owns at the end goes on until the trace ends, with whatever group that is."""
    killed = simulated(all_scenarios()["member-crash"])
    held = [each for each in killed if each.ts_us < 35_000_000]
    later = replace(held[-1], event=Event.HEARTBEAT, group_id="other", ts_us=99_000_000)
    facts = {"format": "jsonl", "digest": "", "counts": {}, "last_ts_us": later.ts_us}
    info = RunManifest(**structs.asdict(INFO), **facts)
    alone = charges_of(held, info)
    assert alone == charges_of([*held, later], INFO)
    assert alone != charges_of(held, INFO)


@pytest.mark.property
@settings(max_examples=100, deadline=None)
@given(scenario=scenarios(), seed=st.integers(0, 2**16))
def test_commands_agree_on_drawn_runs(scenario: Scenario, seed: int) -> None:
    """Whatever happens to members, brokers and the network."""
    check(simulated(scenario, seed), replace(INFO, profile=scenario.profile))


@pytest.mark.property
@pytest.mark.skipif(not SAMPLES.is_dir(), reason="needs the logs of ../shared")
def test_commands_agree_on_real_logs() -> None:
    """Logs of 0.10 to 4.x."""
    info = replace(INFO, source=Source.BROKER_LOG, profile="ingested")
    for path in sorted(SAMPLES.glob("*.log")):
        check(logged(path), info)
