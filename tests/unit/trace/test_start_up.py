"""The phases of a worker's start, told from its trace."""

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace import start_up
from coordinator_sim.trace.events import Event, TraceEvent


def started(client: str, ts_us: int) -> TraceEvent:
    """A process began."""
    return TraceEvent(event=Event.LIFECYCLE, ts_us=ts_us, client_id=client, reason_text="started")


def read(client: str, topic: str, ts_us: int, took_ms: int, records: int) -> TraceEvent:
    """A topic was read to its end."""
    attrs = {"phase": "reading", "topic": topic, "records": str(records), "took_ms": str(took_ms)}
    return TraceEvent(event=Event.LIFECYCLE, ts_us=ts_us, client_id=client, attrs=attrs)


def asked(client: str, ts_us: int, member: str = "") -> TraceEvent:
    """A JoinGroup arrived."""
    return TraceEvent(event=Event.JOIN_REQ, ts_us=ts_us, client_id=client, member_id=member)


def synced(member: str, ts_us: int, error: ErrorCode = ErrorCode.NONE) -> TraceEvent:
    """A SyncGroup was answered."""
    return TraceEvent(event=Event.SYNC_RESP, ts_us=ts_us, member_id=member, error_code=error)


def test_a_start_is_cut_where_its_waits_end() -> None:
    """Process, topics, discovery, join; what comes after the first assignment is no start."""
    events = [
        started("w", 500_000),
        read("w", "offsets", 4_500_000, 3_000, 1_000),
        read("w", "status", 4_600_000, 50, 0),
        asked("w", 4_700_000),
        asked("w", 4_800_000, "w-1"),
        started("v", 4_900_000),
        synced("other", 5_000_000),
        synced("w-1", 6_000_000, ErrorCode.REBALANCE_IN_PROGRESS),
        synced("w-1", 7_800_000),
        asked("w", 9_000_000, "w-1"),
        synced("w-1", 9_900_000),
    ]
    (found,) = start_up.start_ups(events)
    assert found == start_up.StartUp(
        "w",
        500_000,
        (
            start_up.Phase("process", 1_000_000),
            start_up.Phase("offsets", 3_000_000, 1_000),
            start_up.Phase("status", 100_000, 0),
            start_up.Phase("discovery", 100_000),
            start_up.Phase("join", 3_100_000),
        ),
    )
    assert start_up.start_up_line(found) == (
        "start of w at 0.500 s: process 1.000, offsets 3.000 (1,000 records), "
        "status 0.100 (0 records), discovery 0.100, join 3.100; 7.300 s in all"
    )


def test_only_long_readings_are_worth_a_word() -> None:
    """A second or more; events that tell of no reading are none."""
    long, short = read("w", "t", 9_000_000, 1_000, 5), read("w", "t", 9_000_000, 999, 5)
    assert [start_up.reading_us(event) >= start_up.LONG_READING_US for event in (long, short)] == [
        True,
        False,
    ]
    assert start_up.reading_us(started("w", 0)) > start_up.LONG_READING_US
    starts = [
        start_up.start_ups([started("w", 0), event])[0].has_long_reading for event in (long, short)
    ]
    assert starts == [True, False]


def test_every_incarnation_starts_anew_and_consumers_do_not() -> None:
    """A start that ends early has the phases it came to; who reads nothing is left out."""
    events = [
        started("w", 0),
        started("consumer", 0),
        asked("consumer", 10),
        synced("c-1", 20),
        read("w", "offsets", 2_000, 1, 5),
        started("w", 10_000),
        read("w", "offsets", 12_000, 1, 5),
    ]
    assert [start.phases for start in start_up.start_ups(events)] == [
        (start_up.Phase("process", 1_000), start_up.Phase("offsets", 1_000, 5))
    ] * 2
