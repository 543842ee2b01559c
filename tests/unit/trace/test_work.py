"""Counts of work on stretches written by hand."""

import pytest

from coordinator_sim.trace.events import Event, OffsetEntry, TraceEvent
from coordinator_sim.trace.work import WorkCount, count_work, total_of

S = 1_000_000


def stretch(
    client: str, offsets: tuple[int, int], times_s: tuple[int, int], **attrs: str
) -> TraceEvent:
    """One client's records of partition 0."""
    return TraceEvent(
        event=Event.RECORDS_PROCESSED,
        ts_us=times_s[1] * S,
        latency_us=(times_s[1] - times_s[0]) * S,
        group_id="g",
        client_id=client,
        offsets=(OffsetEntry("t", 0, offsets[0]),),
        position=offsets[1],
        attrs=attrs,
    )


def count(*events: TraceEvent) -> WorkCount:
    """The counts of the one group."""
    (counted,) = count_work(events)
    assert counted.processed - counted.duplicates + counted.gaps == counted.span
    return counted


def test_an_unbroken_handover_repeats_and_skips_nothing() -> None:
    """Two owners, one after the other, each record once."""
    counted = count(stretch("a", (0, 10), (0, 5)), stretch("b", (10, 30), (6, 9)))

    assert (counted.processed, counted.duplicates, counted.gaps) == (30, 0, 0)
    assert counted.double_run_us == 0


def test_records_after_the_last_commit_are_processed_again() -> None:
    """The next owner begins where the last commit was."""
    counted = count(stretch("a", (0, 10), (0, 5)), stretch("b", (7, 20), (6, 9)))

    assert (counted.processed, counted.duplicates, counted.gaps) == (23, 3, 0)


def test_what_two_did_at_once_is_no_rewind() -> None:
    """The successor of an owner that let go reprocesses; a zombie beside it duplicates."""
    after = count(stretch("a", (0, 10), (0, 5)), stretch("b", (7, 20), (6, 9)))
    beside = count(stretch("a", (0, 10), (0, 7)), stretch("b", (7, 20), (6, 9)))

    assert (after.duplicates, after.reprocessed) == (3, 3)
    assert (beside.duplicates, beside.reprocessed) == (3, 0)


def test_a_third_time_counts_as_a_third() -> None:
    """Each time after the first is a duplicate."""
    events = [stretch(name, (0, 10), (0, 1)) for name in "abc"]

    assert count(*events).duplicates == 20


def test_records_committed_but_not_processed_are_skipped() -> None:
    """An owner that processed nothing still tells where it began."""
    counted = count(stretch("a", (0, 0), (0, 5)), stretch("b", (8, 20), (6, 9)))

    assert (counted.processed, counted.duplicates, counted.gaps, counted.span) == (12, 0, 8, 20)


def test_a_gap_that_another_owner_fills_is_none() -> None:
    """Records may be processed late and out of order."""
    counted = count(stretch("a", (8, 20), (0, 5)), stretch("b", (0, 9), (6, 9)))

    assert (counted.duplicates, counted.gaps) == (1, 0)


def test_two_at_once_are_double_run_time() -> None:
    """A zombie and the new owner share three seconds; one owner's stretches share none."""
    counted = count(
        stretch("a", (0, 5), (0, 5)), stretch("a", (5, 10), (5, 9)), stretch("b", (0, 4), (6, 12))
    )

    assert counted.double_run_us == 3 * S


def test_a_task_runs_once_with_many_partitions() -> None:
    """Two partitions of one run of a task overlap in time and are still one run."""
    one = stretch("w1", (0, 5), (0, 5), task="t:c-0", run="1")
    other = stretch("w1", (0, 7), (0, 5), task="t:c-0", run="1")
    again = stretch("w1", (0, 1), (4, 6), task="t:c-0", run="2")

    assert count(one, other).double_run_us == 0
    assert count(one, again).double_run_us == 1 * S


def test_lag_is_the_worst_and_the_last() -> None:
    """The most any partition waited, and what waits at the end."""
    counted = count(
        stretch("a", (0, 5), (0, 5), lag="3", max_lag="40"),
        stretch("b", (5, 9), (5, 9), lag="7", max_lag="11"),
    )

    assert (counted.max_lag, counted.final_lag) == (40, 7)


@pytest.mark.parametrize("events", [[], [TraceEvent(event=Event.HEARTBEAT, ts_us=1, group_id="g")]])
def test_a_trace_without_stretches_counts_nothing(events: list[TraceEvent]) -> None:
    """What is not told is not counted as zero."""
    assert count_work(events) == ()


def test_groups_add_up() -> None:
    """Counts add; the worst lag is the worst of all."""
    counted = count(stretch("a", (0, 10), (0, 5), lag="2"))

    total = total_of([counted, counted])
    assert (total.processed, total.final_lag, total.max_lag) == (20, 4, 2)
