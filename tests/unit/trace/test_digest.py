from coordinator_sim.trace.digest import TraceDigest, digest_of
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder, NullRecorder


def join(ts_us: int, **columns: object) -> TraceEvent:
    """A JoinGroup request."""
    return TraceEvent(event=Event.JOIN_REQ, ts_us=ts_us, group_id="g", **columns)  # type: ignore[arg-type]


def test_digest_of_no_events_is_that_of_no_bytes() -> None:
    """An empty trace has the SHA-256 of nothing."""
    assert digest_of([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_digest_ignores_where_a_trace_was_read() -> None:
    """Source reference and original text are no part of the digest."""
    plain = join(1, seq=0)
    read = join(1, seq=0, source_ref="broker.log", raw="[2024] ...")
    assert digest_of([plain]) == digest_of([read])


def test_digest_ignores_the_order_of_attributes() -> None:
    """Attributes are sorted by name before they are hashed."""
    one = join(1, attrs={"b": "2", "a": "1"})
    other = join(1, attrs={"a": "1", "b": "2"})
    assert digest_of([one]) == digest_of([other])


def test_digest_ignores_how_a_full_confidence_was_given() -> None:
    """A confidence of 1 is the default, whichever float object holds it."""
    assert digest_of([join(1, confidence=float("1.0"))]) == digest_of([join(1)])


def test_digest_depends_on_order_and_columns() -> None:
    """Swapped events, and a changed column, change the digest."""
    first, second = join(1), join(2)
    digests = {
        digest_of([first, second]),
        digest_of([second, first]),
        digest_of([first, join(2, member_id="m")]),
    }
    assert len(digests) == 3


def test_digest_may_be_read_between_events() -> None:
    """Reading the digest does not change what follows, however long the trace."""
    events = [join(number, member_id=f"member-{number}") for number in range(2_000)]
    digest = TraceDigest()
    for event in events:
        digest.add(event)
        if event.ts_us == 1_000:
            digest.hexdigest()
    assert digest.count == 2_000
    assert digest.hexdigest() == digest_of(events)


def test_memory_recorder_numbers_events_by_position() -> None:
    """An event without a number gets its position; one of an importer keeps its own."""
    recorder = MemoryRecorder()
    recorder.record(join(5))
    recorder.record(join(6, seq=77))
    recorder.record(join(7))
    assert [event.seq for event in recorder.events] == [0, 77, 2]
    assert recorder.digest == digest_of(recorder.events)


def test_null_recorder_takes_events_in_silence() -> None:
    """The recorder of a run without a trace keeps nothing."""
    recorder = NullRecorder()
    recorder.record(join(1))
    assert not hasattr(recorder, "events")
