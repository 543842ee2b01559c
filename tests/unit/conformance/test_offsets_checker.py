"""I8 on commits whose fate is open."""

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, OffsetEntry, TraceEvent
from coordinator_sim_conformance.checkers import check_all


def commit(at_us: int, offset: int, error: ErrorCode = ErrorCode.NONE) -> TraceEvent:
    """A commit of one partition, as it was answered."""
    entry = OffsetEntry("orders", 0, offset)
    return TraceEvent(
        event=Event.OFFSET_COMMIT, ts_us=at_us, group_id="g", error_code=error, offsets=(entry,)
    )


def fetch(at_us: int, offset: int) -> TraceEvent:
    """A fetch of the same partition."""
    entry = OffsetEntry("orders", 0, offset)
    return TraceEvent(event=Event.OFFSET_FETCH, ts_us=at_us, group_id="g", offsets=(entry,))


def test_commit_that_was_not_replicated_in_time_may_show() -> None:
    """The client was told an error, and the record is committed later, or never."""
    late = (commit(1, 10), commit(2, 20, ErrorCode.COORDINATOR_NOT_AVAILABLE))

    assert check_all((*late, fetch(3, 20))).violations == ()
    assert check_all((*late, fetch(3, 10))).violations == ()


def test_next_accepted_commit_ends_the_doubt() -> None:
    """From then on only its offset may be fetched."""
    history = (commit(1, 20, ErrorCode.REQUEST_TIMED_OUT), commit(2, 30), fetch(3, 20))

    (violation,) = check_all(history).violations
    assert violation.invariant == "I8"


def test_refusal_of_a_member_leaves_no_doubt() -> None:
    """A fenced commit is not stored."""
    history = (commit(1, 10), commit(2, 20, ErrorCode.ILLEGAL_GENERATION), fetch(3, 20))

    assert [violation.invariant for violation in check_all(history).violations] == ["I8"]


def expiry(at_us: int, **columns: int) -> TraceEvent:
    """A coordinator removes offsets; it tells how many."""
    return TraceEvent(event=Event.OFFSET_EXPIRED, ts_us=at_us, attrs={"count": "1"}, **columns)


def test_offset_that_may_have_expired_may_be_gone() -> None:
    """Nothing but nothing is fetched for it, until it is committed again."""
    old = (commit(1, 10), expiry(2))

    assert check_all((*old, fetch(3, -1))).violations == ()
    assert check_all((*old, fetch(3, 10))).violations == ()
    for wrong in ((*old, fetch(3, 7)), (*old, commit(3, 20), fetch(4, -1))):
        assert [violation.invariant for violation in check_all(wrong).violations] == ["I8"]


def test_expiry_of_another_partition_removes_nothing() -> None:
    """Only groups of the offsets partition that was looked through may lose offsets."""
    entry = OffsetEntry("orders", 0, 10)
    kept = TraceEvent(
        event=Event.OFFSET_COMMIT, ts_us=1, group_id="g", offsets_partition=3, offsets=(entry,)
    )

    assert check_all((kept, expiry(2, offsets_partition=3), fetch(3, -1))).violations == ()
    assert check_all((kept, expiry(2, offsets_partition=4), fetch(3, -1))).violations
