"""Logs whose times run backwards: the order of their lines holds, and nothing becomes negative."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.replay.causes import GroupStory, explain_group
from coordinator_sim.replay.logs import replay_log
from coordinator_sim.trace.batches import Names, batches_of
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.history import SteadyTimes, group_lines
from tests.simulated import INGESTED

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "broker-log" / "server.log"
TIME = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\]")
LINES = EXAMPLE.read_text(encoding="utf-8").splitlines()
COORDINATOR_LINES = [number for number, line in enumerate(LINES) if "GroupCoordinator" in line]


def retimed(
    change: dict[int, timedelta], zone: tzinfo = UTC, since: datetime | None = None
) -> Iterator[str]:
    """The example's lines with some times changed, told in a zone, from another instant on."""
    first: datetime | None = None
    for number, line in enumerate(LINES):
        match = TIME.match(line)
        if match is None:
            yield line
            continue
        at = time_of(number) + change.get(number, timedelta())
        first = first or at
        if since is not None:
            at = since + (at - first)
        local = at.astimezone(zone)
        shown = f"{local:%Y-%m-%d %H:%M:%S},{local.microsecond // 1000:03}"
        yield f"[{shown}]{line[match.end() :]}"


def read(lines: list[str], tz: tzinfo = UTC) -> tuple[list[TraceEvent], IngestSummary]:
    """The events of a log as `ingest` writes them."""
    summary = IngestSummary()
    events = parse_broker_log(lines, source_ref="server.log", tz=tz, summary=summary)
    times = SteadyTimes()
    batches = (times.steady(batch) for batch in batches_of(events, Names()))
    return [event for batch in batches for event in batch.events()], summary


def stories(events: list[TraceEvent]) -> dict[str, GroupStory]:
    """What `explain` tells."""
    return {
        group_id: explain_group(group_id, lines, [])
        for group_id, lines in group_lines(events).items()
    }


def check(events: list[TraceEvent]) -> None:
    """Everything is reproduced, and no duration is negative."""
    report = replay_log(events, INGESTED).report
    assert [(group.group_id, group.first_difference) for group in report.groups] == [
        (group.group_id, "") for group in report.groups
    ]
    for story in stories(events).values():
        for each in story.rebalances:
            lengths = (each.join_ms, each.sync_ms, each.length_ms)
            assert all(length is None or length >= 0 for length in lengths)


BERLIN = ZoneInfo("Europe/Berlin")
SUMMER_ENDS = datetime(2024, 10, 27, 1, 0, tzinfo=UTC)

CERTAIN = {
    number
    for number in COORDINATOR_LINES
    if "Preparing to rebalance" in LINES[number] or "Assignment received" in LINES[number]
}
"""Lines whose cause stands above them; what a member's own line caused may stand below."""


def time_of(number: int) -> datetime:
    """The time of one of the example's lines."""
    match = TIME.match(LINES[number])
    assert match is not None
    at = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    return at + timedelta(milliseconds=int(match[2]))


def middle() -> timedelta:
    """From the first line of the example to one in the middle of its rebalances."""
    return time_of(COORDINATOR_LINES[60]) - time_of(0)


def test_repeated_hour_is_read_by_line_order_where_the_zone_is_known() -> None:
    """At the end of summer time the lines tell which of the two hours a time is of."""
    since = SUMMER_ENDS - middle()
    plain, _ = read(list(retimed({}, UTC, since)))
    local, summary = read(list(retimed({}, BERLIN, since)), BERLIN)
    assert [event.ts_us for event in local] == [event.ts_us for event in plain]
    assert summary.clock_regressions == 0
    check(local)


def test_repeated_hour_without_the_zone_goes_on_at_its_own_pace() -> None:
    """Read as UTC, the clock is set back once: told, and only what spans it is inexact."""
    since = SUMMER_ENDS - middle()
    plain, _ = read(list(retimed({}, UTC, since)))
    events, summary = read(list(retimed({}, BERLIN, since)))
    assert 3_580_000_000 < max(summary.set_backs.values()) <= 3_600_000_000
    check(events)
    expected = stories(plain)
    for group_id, story in stories(events).items():
        exact = [each for each in story.rebalances if each.is_exact]
        assert len(story.rebalances) - len(exact) <= 1
        for each in exact:
            assert each.length_ms == expected[group_id].rebalances[each.number - 1].length_ms


def test_clock_that_has_caught_up_is_believed_again() -> None:
    """A clock set back by ten minutes and right again after a pause ends where it says."""
    before, during, after = COORDINATOR_LINES[30], COORDINATOR_LINES[60], len(LINES)
    change = {n: timedelta(minutes=-10) for n in range(before, during)}
    change |= {n: timedelta(0) for n in range(during, after)}
    events, summary = read(list(retimed(change)))
    plain, _ = read(LINES)
    assert list(summary.set_backs) == [before + 1]
    assert events[-1].ts_us == plain[-1].ts_us
    check(events)


@pytest.mark.parametrize("back_ms", [60, 1_400, 20_000])
def test_line_that_was_timed_too_early_is_reproduced_and_marked(back_ms: int) -> None:
    """Each coordinator line in turn is behind the one above: what it bounds is not exact."""
    for above, number in pairwise(COORDINATOR_LINES):
        if number in CERTAIN and time_of(number) - time_of(above) < timedelta(
            milliseconds=back_ms - 50
        ):
            events, _ = read(list(retimed({number: timedelta(milliseconds=-back_ms)})))
            check(events)


@settings(max_examples=25, deadline=None)
@given(
    drawn=st.dictionaries(
        st.sampled_from([n for n, line in enumerate(COORDINATOR_LINES) if n and line in CERTAIN]),
        st.integers(51, 4_000),
        max_size=6,
    )
)
def test_any_few_lines_timed_before_the_line_above_are_reproduced(drawn: dict[int, int]) -> None:
    """Order is that of lines whichever of them have a wrong time."""
    change = {}
    for index, behind_ms in drawn.items():
        above, number = COORDINATOR_LINES[index - 1], COORDINATOR_LINES[index]
        change[number] = time_of(above) - time_of(number) - timedelta(milliseconds=behind_ms)
    events, _ = read(list(retimed(change)))
    check(events)
    assert [(event.seq, event.event) for event in events] == [
        (event.seq, event.event) for event in read(LINES)[0]
    ]
