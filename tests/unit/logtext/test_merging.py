from collections.abc import Iterator

from coordinator_sim.logtext.reading.incarnations import IncarnationCounter
from coordinator_sim.logtext.reading.merging import LogMerge, TimedLog
from coordinator_sim.trace.batches import EventBatch, Names, batch_of, batches_of
from coordinator_sim.trace.events import Event, TraceEvent

NAMES = Names()


def log(name: str, *times: int) -> TimedLog:
    """A log of events at these times."""
    events = [
        TraceEvent(event=Event.MEMBER_LEFT, ts_us=ts_us, source_ref=name, seq=seq)
        for seq, ts_us in enumerate(times)
    ]
    return TimedLog(times[0] if times else 0, batches_of(events, NAMES))


def order(*logs: TimedLog) -> list[tuple[str | None, int]]:
    """What comes out: log and time of each event."""
    merge = LogMerge(
        TimedLog(log.first_us, log.batches, (0, number)) for number, log in enumerate(logs)
    )
    return [
        (event.source_ref, event.ts_us) for batch in merge.batches() for event in batch.events()
    ]


def test_logs_side_by_side_are_merged_by_time() -> None:
    """Two brokers' logs become one story."""
    merged = order(log("b", 20, 40), log("a", 10, 30, 50))
    assert [ts_us for _, ts_us in merged] == [10, 20, 30, 40, 50]


def test_line_order_rules_inside_a_log() -> None:
    """A clock that runs back does not let a line overtake the one before it."""
    merged = order(log("a", 10, 30, 20), log("b", 25, 35))
    assert merged == [("a", 10), ("b", 25), ("a", 30), ("a", 20), ("b", 35)]


def test_equal_times_keep_the_order_given() -> None:
    """Ties go to the log named first."""
    assert order(log("b", 10), log("a", 10)) == [("b", 10), ("a", 10)]


def test_log_is_started_when_its_time_has_come() -> None:
    """A month of hourly files is not opened at once."""
    started: list[int] = []

    def hour(number: int) -> Iterator[EventBatch]:
        started.append(number)
        yield batch_of([TraceEvent(event=Event.MEMBER_LEFT, ts_us=number)], NAMES)
        yield batch_of([TraceEvent(event=Event.MEMBER_LEFT, ts_us=number)], NAMES)

    merged = LogMerge(TimedLog(number, hour(number), (0, number)) for number in range(3)).batches()
    next(merged)
    assert started == [0]
    assert len(list(merged)) == 5


def test_log_without_events_is_passed_over() -> None:
    """A file of other programs' lines adds nothing."""
    assert order(log("empty"), log("a", 5)) == [("a", 5)]


def test_incarnations_are_counted_over_all_logs() -> None:
    """A group that dies on one broker comes back on another."""
    dead = TraceEvent(event=Event.GROUP_DEAD, ts_us=1, group_id="shop", generation=3)
    back = TraceEvent(event=Event.JOIN_COMPLETE, ts_us=2, group_id="shop", generation=1)
    later, earlier = (batches_of([event], NAMES) for event in (back, dead))
    merged = LogMerge([TimedLog(2, later, (0, 0)), TimedLog(1, earlier, (0, 1))]).batches()
    counter = IncarnationCounter()
    numbered = (event for batch in merged for event in counter.number(batch).events())
    assert [event.incarnation for event in numbered] == [0, 1]
