"""A batch of very many records costs as much as the runs in it that differ."""

from coordinator_sim.broker.shares.in_flight_state import RecordState
from tests.unit.broker.shares.share_stage import ACCEPT, RELEASE, Stage, active

LAST = 899_999
MANY = 10**9


def long_batch(last_offset: int = LAST) -> Stage:
    """A member works on all records of one batch."""
    stage = active(partition_max_record_locks=MANY)
    assert stage.acquire("m", (0, last_offset), max_records=MANY) == [(0, last_offset, 1)]
    return stage


def runs(stage: Stage) -> list[tuple[int, int, RecordState]]:
    """The records in flight."""
    return [
        (first, last, state.state)
        for batch in stage.partition.records.batches
        for first, last, state in batch.parts()
    ]


def written(stage: Stage) -> list[tuple[int, int, int]]:
    """The state batches of the last write."""
    return [
        (one.first_offset, one.last_offset, one.delivery_state)
        for one in stage.persister.written[-1].batches
    ]


def test_acknowledged_part_of_a_long_batch_is_one_run() -> None:
    """Three runs are left, and one state batch is written."""
    stage = long_batch()

    assert stage.acknowledge("m", (10, LAST - 10, ACCEPT)) == [None]
    assert runs(stage) == [
        (0, 9, RecordState.ACQUIRED),
        (10, LAST - 10, RecordState.ACKNOWLEDGED),
        (LAST - 9, LAST, RecordState.ACQUIRED),
    ]
    assert written(stage) == [(10, LAST - 10, RecordState.ACKNOWLEDGED)]


def test_types_of_each_record_make_as_many_runs_as_they_change() -> None:
    """A type for each of 900,000 records, which changes twice."""
    stage = long_batch()
    types = (ACCEPT,) * 400_000 + (RELEASE,) * 100_000 + (ACCEPT,) * 400_000

    assert stage.acknowledge("m", (0, LAST, types)) == [None]
    assert written(stage) == [
        (0, 399_999, RecordState.ACKNOWLEDGED),
        (400_000, 499_999, RecordState.AVAILABLE),
        (500_000, LAST, RecordState.ACKNOWLEDGED),
    ]
    assert stage.partition.next_fetch_offset() == 400_000


def test_released_rest_of_a_long_batch_is_one_run_again() -> None:
    """What is alike is joined once it is written."""
    stage = long_batch()
    stage.acknowledge("m", (5, 5, RELEASE))
    assert stage.release("m") == [None]

    assert runs(stage) == [(0, LAST, RecordState.AVAILABLE)]
    assert stage.acquire("n", (0, LAST), max_records=MANY) == [(0, LAST, 2)]


def test_locks_of_a_split_batch_run_out_in_slices() -> None:
    """Each record is written by itself, as in Kafka; others have their turn after some of them."""
    stage = long_batch(999)
    stage.acknowledge("m", (0, 9, ACCEPT))
    write_count = len(stage.persister.written)
    stage.advance(30_000)

    assert 0 < len(stage.persister.written) - write_count < 500
    assert stage.partition.next_deadline_ms() == stage.now.group_ms
    while stage.partition.next_deadline_ms() is not None:
        stage.advance(0)
    assert len(stage.persister.written) - write_count == 990
    assert runs(stage)[1:] == [(10, 999, RecordState.AVAILABLE)]
