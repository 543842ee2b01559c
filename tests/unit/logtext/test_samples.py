"""Real logs of public reports, read in place; the repo holds the counts expected of them alone."""

import json
from datetime import UTC
from pathlib import Path

import pytest

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.trace.events import Event, TraceEvent

REPO = Path(__file__).resolve().parents[3]
SAMPLES = REPO.parent / "shared" / "samples" / "broker-logs"
GOLDEN = json.loads((Path(__file__).parent / "sample_counts.json").read_text(encoding="utf-8"))

pytestmark = pytest.mark.skipif(
    not SAMPLES.is_dir(), reason="the collection of public broker logs is not beside the repo"
)


def read(name: str) -> tuple[list[TraceEvent], IngestSummary]:
    """Events and summary of one sample."""
    summary = IngestSummary()
    with (SAMPLES / name).open(encoding="utf-8", errors="replace") as lines:
        events = list(parse_broker_log(lines, source_ref=name, tz=UTC, summary=summary))
    return events, summary


@pytest.mark.parametrize("name", sorted(GOLDEN))
def test_sample_gives_the_counts_recorded(name: str) -> None:
    """Each log gives the same events as when its lines were reviewed one by one."""
    _, summary = read(name)
    assert {
        "lines": summary.lines,
        "known": summary.known,
        "unparsed": summary.unparsed,
        "versions": list(summary.version_ranges),
        "events": {event.value: count for event, count in sorted_counts(summary)},
    } == GOLDEN[name]


def sorted_counts(summary: IngestSummary) -> list[tuple[Event, int]]:
    """Counts by event name."""
    return sorted(summary.by_event.items(), key=lambda entry: entry[0].value)


def test_every_sample_has_its_counts() -> None:
    """A log added to the collection must be reviewed."""
    assert sorted(path.name for path in SAMPLES.glob("*.log")) == sorted(GOLDEN)


def test_group_that_died_comes_back_in_its_next_incarnation() -> None:
    """A group of this log dies at generation 3 and starts over at 0."""
    events, _ = read("002.log")
    of_group = [event for event in events if event.group_id == "auth.consumer-client"]
    dead_at = next(i for i, event in enumerate(of_group) if event.event is Event.GROUP_DEAD)
    assert {event.incarnation for event in of_group[: dead_at + 1]} == {0}
    assert of_group[dead_at].generation == 3
    restart = next(e for e in of_group[dead_at:] if e.event is Event.PREPARE_REBALANCE)
    assert (restart.generation, restart.incarnation) == (0, 1)


def test_generations_without_a_leaders_sync_are_seen() -> None:
    """In the first minute two groups complete a join, and their leader then fails unsynced."""
    events, _ = read("002.log")
    open_joins: dict[str, TraceEvent] = {}
    ghosts = []
    for event in events[:40]:
        if event.group_id is None:
            continue
        if event.event is Event.JOIN_COMPLETE:
            open_joins[event.group_id] = event
        elif event.event is Event.SYNC_LEADER:
            open_joins.pop(event.group_id, None)
        elif event.event is Event.PREPARE_REBALANCE and event.group_id in open_joins:
            ghosts.append(open_joins.pop(event.group_id).generation)
    assert sorted(generation for generation in ghosts if generation is not None) == [2, 7]
