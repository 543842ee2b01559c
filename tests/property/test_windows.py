"""Windows of time that touch: what each shows adds up to what both show together.

An ordinary filter of events would lose the generation and the members that a group has at the
start of a window, and with them causes, lengths and what a replay goes on from.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.causes import GroupStory, explain_group
from coordinator_sim.replay.charges import charges_in, trace_of
from coordinator_sim.replay.cost_sums import sums_of
from coordinator_sim.replay.findings import Finding
from coordinator_sim.replay.logs import charges_of, replay_log
from coordinator_sim.replay.recordings import is_recording, replay_recording
from coordinator_sim.replay.report import ReplayReport, RunFigures
from coordinator_sim.replay.savings import findings_in
from coordinator_sim.replay.settings import parse_grid
from coordinator_sim.replay.work import Partitions, known_groups
from coordinator_sim.sim.scenario import Scenario
from coordinator_sim.trace.events import RunInfo, Source, TraceEvent
from coordinator_sim.trace.history import group_lines
from coordinator_sim.trace.window import ALWAYS, Window
from coordinator_sim_scenarios.catalog import all_scenarios
from coordinator_sim_scenarios.strategies import scenarios
from tests.simulated import events_of

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "broker-log" / "server.log"
INFO = RunInfo(trace_id="t", source=Source.SIM, cluster_id="c", version="0", profile="4.4")
STORIES = ("rolling-bounce", "poll-timeout-loop", "connect-worker-crash")
CHOSEN = "flapping-member"
"""A finding about one client of several: another one may be the costliest in a window."""
NOISE_S = 0.1
"""Findings of less are not shown."""


def example() -> list[TraceEvent]:
    """The events of a broker's log."""
    with EXAMPLE.open(encoding="utf-8") as lines:
        return list(parse_broker_log(lines, source_ref=EXAMPLE.name, tz=UTC))


def windows_at(cuts: Iterable[int]) -> list[Window]:
    """Windows that touch at these instants and cover everything, at whole milliseconds."""
    ends = [ALWAYS.from_us, *sorted({at_us // 1000 * 1000 for at_us in cuts}), ALWAYS.until_us]
    return [Window(*pair) for pair in pairwise(ends)]


def cuts_of(events: Sequence[TraceEvent]) -> list[int]:
    """Two instants, at the beginning of a rebalance and in the middle of one."""
    starts = [each.seen_us for each in charges_in(trace_of(events, INFO.source))]
    third = len(starts) // 3
    return [starts[third], starts[-third - 1] + 1000] if starts else []


def check(events: list[TraceEvent], info: RunInfo, cuts: Sequence[int]) -> None:
    """Whatever a command counts, it counts once, in the window in which it began."""
    windows = windows_at(cuts)
    check_stories(events, windows)
    charges = charges_in(trace_of(events, info.source))
    parts = [[each for each in charges if own.holds(each.seen_us)] for own in windows]
    whole = sums_of(charges)
    for name in whole.__struct_fields__:
        sums = [getattr(sums_of(part), name) or 0 for part in parts]
        assert sum(sums) == pytest.approx(getattr(whole, name) or 0), name
    check_findings(
        findings_in(events, info.source),
        [each for own in windows for each in findings_in(events, info.source, window=own)],
        len(windows),
    )
    check_replays(replayed(events, info, ALWAYS), [replayed(events, info, own) for own in windows])


def check_stories(events: list[TraceEvent], windows: Sequence[Window]) -> None:
    """`explain`: the same rebalances, word for word, and counts that add up."""
    for group_id, lines in group_lines(events).items():
        whole = explain_group(group_id, lines, [])
        parts = [explain_group(group_id, lines, [], window) for window in windows]
        assert [each for part in parts for each in part.rebalances] == list(whole.rebalances)
        for name in ("follow_ups", "disturbances", "open_count", "unsettled"):
            assert sum(getattr(part, name) for part in parts) == getattr(whole, name), name
        for name in ("reasons", "outcomes"):
            assert added(getattr(part, name) for part in parts) == getattr(whole, name), name
        assert abs(sum(part.rebalancing_ms for part in parts) - whole.rebalancing_ms) < len(parts)
        assert sum(part.last_ms - part.first_ms for part in parts) == span_of(whole)
        if whole.records is not None:
            for name in ("deliveries", "again", "rejected"):
                told = [getattr(part.records, name, 0) for part in parts]
                assert sum(told) == getattr(whole.records, name), name


def span_of(story: GroupStory) -> int:
    """How long a group's lines go on."""
    return story.last_ms - story.first_ms


def added(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Counts by name, added up."""
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def check_findings(whole: list[Finding], parts: list[Finding], windows: int) -> None:
    """A finding is found in the whole trace, and each window shows its own part of it."""
    cost: dict[tuple[str, str, str], float] = defaultdict(float)
    for each in parts:
        assert each.first_us is None or each.last_us is None or each.first_us <= each.last_us
        cost[each.group_id, each.kind, each.cost_unit] += each.cost_s
    told: dict[tuple[str, str, str], float] = defaultdict(float)
    for each in whole:
        told[each.group_id, each.kind, each.cost_unit] += each.cost_s
    for key, cost_s in told.items():
        if key[1] != CHOSEN:
            assert cost_s - NOISE_S * windows <= cost[key] <= cost_s + 1e-6, key


def replayed(events: list[TraceEvent], info: RunInfo, window: Window) -> ReplayReport:
    """A trace replayed as it is and with another setting."""
    grid = parse_grid(["session.timeout.ms=20000"])
    if is_recording(info):
        return replay_recording(events, info, grid, window=window).report
    known, charges = known_groups(events, Partitions({})), charges_of(events, info)
    return replay_log(events, info, grid, known=known, charges=charges, window=window).report


def check_replays(whole: ReplayReport, parts: Sequence[ReplayReport]) -> None:
    """`replay`: every row is compared once; the prefix is played in each."""
    for kind, tally in whole.totals().items():
        for name in ("in_source", "reproduced", "assumed"):
            told = [part.totals()[kind] for part in parts if kind in part.totals()]
            assert sum(getattr(each, name) for each in told) == getattr(tally, name), (kind, name)
    if not whole.is_reproduced:
        return
    for place, entry in enumerate(whole.what_if):
        entries = [part.what_if[place] for part in parts]
        for name in ("as_is", "with_settings"):
            run = getattr(entry, name)
            if run is not None:
                check_run(run, [getattr(each, name) for each in entries])


def check_run(whole: RunFigures, parts: Sequence[RunFigures]) -> None:
    """The figures of runs add up, those in whole milliseconds but for what is rounded."""
    for name in ("rebalances", "removed", "unnoticed_ms", "returns", "away_ms"):
        assert sum(getattr(part, name) for part in parts) == getattr(whole, name), name
    assert abs(sum(part.join_ms for part in parts) - whole.join_ms) < len(parts)
    assert added(part.outcomes for part in parts) == whole.outcomes
    if whole.sharing is None:
        return
    for name in ("rebalances", "follow_ups", "moved", "needless", "interrupted"):
        told = [getattr(part.sharing, name) or 0 for part in parts]
        assert sum(told) == (getattr(whole.sharing, name) or 0), name


@pytest.mark.parametrize("name", STORIES)
def test_windows_of_a_story_add_up(name: str) -> None:
    """Members are away at the cuts, go and come in loops, and workers crash."""
    scenario = all_scenarios()[name]
    events = simulated(scenario)
    check(events, replace(INFO, profile=scenario.profile), cuts_of(events))


def test_windows_of_a_log_add_up() -> None:
    """A log alone: its groups have a state at the start of each window."""
    events = example()
    check(events, replace(INFO, source=Source.BROKER_LOG, profile="ingested"), cuts_of(events))


def test_a_window_without_its_past_would_tell_something_else() -> None:
    """What the rule is for: the events of a window alone have other causes, and no deploy."""
    lines = group_lines(example())["orders-service"]
    cut_ms = explain_group("orders-service", lines, []).rebalances[5].start_ms or 0
    window = Window(cut_ms * 1000, ALWAYS.until_us)
    told = explain_group("orders-service", lines, [], window).rebalances
    own = [each for each in lines if window.holds(each.ts_us)]
    alone = explain_group("orders-service", own, [])
    assert [each.number for each in told] == list(range(6, 6 + len(told)))
    assert told[0].deploy == 1
    assert told[0].root == 5
    assert alone.rebalances[0].root == 1


def simulated(scenario: Scenario, seed: int = 0) -> list[TraceEvent]:
    """The events of a scenario, numbered as on disk."""
    return [replace(event, seq=place) for place, event in enumerate(events_of(scenario, seed=seed))]


@pytest.mark.property
@settings(max_examples=60, deadline=None)
@given(
    scenario=scenarios(),
    seed=st.integers(0, 2**16),
    cuts=st.lists(st.integers(0, 200_000_000), max_size=4),
)
def test_windows_of_drawn_runs_add_up(scenario: Scenario, seed: int, cuts: list[int]) -> None:
    """Wherever the cuts are, and whatever happens to members, brokers and the network."""
    events = simulated(scenario, seed)
    check(events, replace(INFO, profile=scenario.profile), [*cuts, *cuts_of(events)])
