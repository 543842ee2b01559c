"""The story of a group's rebalances."""

import re
from datetime import UTC
from pathlib import Path

import pytest

from coordinator_sim.cli.explain import told
from coordinator_sim.errors import ConfigError
from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.replay.causes import GroupStory, explain_group, group_named
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from coordinator_sim.trace.history import group_lines

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "broker-log" / "server.log"


def story_of(group_id: str, events: list[TraceEvent]) -> GroupStory:
    """The story of a group in these events."""
    others = [event for event in events if event.group_id is None]
    return explain_group(group_id, group_lines(events)[group_id], others)


@pytest.fixture(scope="module")
def example() -> list[TraceEvent]:
    """The events of the example log."""
    with EXAMPLE.open(encoding="utf-8") as lines:
        return list(parse_broker_log(lines, source_ref="server.log", tz=UTC))


def rebalance(at_ms: int, generation: int, **columns: object) -> list[TraceEvent]:
    """Four lines: prepare, complete 100 ms later, assigned 10 ms after that."""
    start = {"reason": RebalanceReason.MEMBER_JOINED, "member_id": "a-1", **columns}
    common = {"group_id": "g"}
    return [
        TraceEvent(
            event=Event.PREPARE_REBALANCE,
            ts_us=at_ms * 1000,
            generation=generation - 1,
            **common,
            **start,
        ),
        TraceEvent(
            event=Event.JOIN_COMPLETE,
            ts_us=(at_ms + 100) * 1000,
            generation=generation,
            members=2,
            **common,
        ),
        TraceEvent(
            event=Event.SYNC_LEADER,
            ts_us=(at_ms + 110) * 1000,
            generation=generation,
            leader_id="a-1",
            members=2,
            **common,
        ),
    ]


def test_each_rebalance_has_cause_course_and_end(example: list[TraceEvent]) -> None:
    """What the example's fleet did to `billing` is told in order, with generations that add up."""
    story = story_of("billing", example)
    generations = [each.generation for each in story.rebalances]
    assert generations == sorted(generations, key=lambda number: number or 0)
    assert all(each.because for each in story.rebalances)
    assert story.outcomes["STABLE"] == 6
    assert sum(story.reasons.values()) + story.follow_ups == len(story.rebalances)


def test_story_names_members_by_eight_digits(example: list[TraceEvent]) -> None:
    """A member id's random part is cut, so that a line can be read."""
    text = "\n".join(told(story_of("billing", example)))
    assert "why: " in text
    assert re.search(r"why: [a-z0-9.-]+-[0-9a-f]{8} joined", text)
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", text)


def test_second_round_of_a_cooperative_rebalance_is_a_follow_up() -> None:
    """A consumer that gave partitions up rejoins at once: no new cause, but the same one."""
    again = {
        "reason": RebalanceReason.LEADER_REJOIN,
        "client_reason": "need to revoke partitions and re-join",
    }
    story = story_of("g", [*rebalance(1000, 1), *rebalance(1200, 2, **again)])
    assert [each.follows for each in story.rebalances] == [None, 1]
    assert (story.follow_ups, story.disturbances) == (1, 1)
    assert story.convergence_ms == 310


@pytest.mark.parametrize(
    ("generations", "words"),
    [
        ((1, 2, 3), "generations 1 to 3"),
        ((4, 5, 1), "generations 4 to 5, then 1 to 1"),
        ((2, 1, 1, 2, 1, 1, 0, 0), "generations 2 to 2, then 1 to 2, then 1 to 1, and 1 time more"),
    ],
)
def test_group_that_begins_anew_counts_anew(generations: tuple[int, ...], words: str) -> None:
    """The head line tells where the generations of each life of the group went."""
    lines = [
        line for at, reached in enumerate(generations) for line in rebalance(at * 60_000, reached)
    ]
    assert told(story_of("g", lines))[0].endswith(words)


def test_rebalances_half_a_minute_apart_are_two_disturbances() -> None:
    """A gap of 30 s ends a disturbance."""
    story = story_of("g", [*rebalance(1000, 1), *rebalance(31_200, 2)])
    assert story.disturbances == 2


def test_fault_before_a_rebalance_is_told_with_it() -> None:
    """What was done to the cluster in the minute before stands beside the cause."""
    fault = TraceEvent(
        event=Event.FAULT, ts_us=900_000, reason_text="CrashMember", attrs={"member": "a"}
    )
    (only,) = story_of("g", [fault, *rebalance(1000, 1)]).rebalances
    assert only.before == ("FAULT CrashMember a (0.100 s before)",)


def test_unknown_group_is_answered_with_close_names() -> None:
    """A misspelt group names the ones that it may be."""
    with pytest.raises(ConfigError, match="did you mean orders-service"):
        group_named("order-service", ["billing", "orders-service"])
