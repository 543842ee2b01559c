"""Markers, leaders that come and go, coordinators that move, and time."""

import pytest

from coordinator_sim.broker.transactions.coordinator import ProducerIdentity
from coordinator_sim.broker.transactions.markers import RETRY_MS
from coordinator_sim.broker.transactions.metadata import TV_0, TV_2, TransactionState
from coordinator_sim.broker.transactions.ports import TransactionConfig
from coordinator_sim.kafka.errors import ErrorCode
from tests.unit.broker.transactions_bench import T0, T1, Bench

DAY_MS = 24 * 3_600_000


@pytest.fixture
def bench() -> Bench:
    """A coordinator of a cluster that speaks version 2 of transactions."""
    return Bench()


def test_a_marker_is_written_again_until_it_is_there(bench: Bench) -> None:
    """While it fails, the end stays prepared; others are not written twice."""
    producer = bench.producer()
    bench.add(producer, T0)
    bench.markers.answer = ErrorCode.NOT_LEADER_OR_FOLLOWER
    bench.end(producer)
    assert bench.state() is TransactionState.PREPARE_COMMIT
    assert bench.coordinator.markers.due_ms == bench.now_ms + RETRY_MS
    bench.markers.answer = ErrorCode.NONE
    bench.advance(RETRY_MS)
    assert bench.state() is TransactionState.COMPLETE_COMMIT
    assert [place for place, _ in bench.markers.written] == [T0]


def test_a_marker_waits_for_a_leader(bench: Bench) -> None:
    """A partition without one holds the completion back, and no other."""
    producer = bench.producer()
    bench.add(producer, T0, T1)
    bench.markers.lose_leader(T1)
    bench.end(producer)
    assert [place for place, _ in bench.markers.written] == [T0]
    assert list(bench.metadata().partitions) == [T1]
    bench.markers.leaders.clear()
    bench.coordinator.markers.retry(bench.now)
    assert bench.state() is TransactionState.COMPLETE_COMMIT


def test_a_deleted_partition_needs_no_marker(bench: Bench) -> None:
    """A transaction completes without a marker for a partition that was deleted."""
    producer = bench.producer()
    bench.add(producer, T0, T1)
    bench.markers.leaders[T0] = None
    bench.end(producer)
    assert bench.state() is TransactionState.COMPLETE_COMMIT
    assert [place for place, _ in bench.markers.written] == [T1]


def test_a_fenced_coordinator_gives_up(bench: Bench) -> None:
    """The transaction stays prepared: who fenced it goes on."""
    producer = bench.producer()
    bench.add(producer)
    bench.markers.answer = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    bench.end(producer)
    bench.markers.answer = ErrorCode.NONE
    bench.advance(10_000)
    assert bench.state() is TransactionState.PREPARE_COMMIT
    assert not bench.markers.written


def test_a_completion_that_cannot_be_written_is_tried_again(bench: Bench) -> None:
    """Until the completion is written, the transactional id answers CONCURRENT_TRANSACTIONS."""
    producer = bench.producer()
    bench.add(producer)
    bench.markers.holds = True
    bench.end(producer)
    bench.log.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.markers.release(bench.now)
    assert bench.add(producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.log.failure = ErrorCode.NONE
    bench.advance(RETRY_MS)
    assert bench.state() is TransactionState.COMPLETE_COMMIT
    assert bench.add(producer) is ErrorCode.NONE


@pytest.mark.parametrize("version", [TV_0, TV_2])
@pytest.mark.parametrize("committed", [True, False])
def test_a_decided_end_is_completed_by_the_next_coordinator(
    bench: Bench, version: int, *, committed: bool
) -> None:
    """What was prepared comes true, with the epoch that was decided."""
    producer = bench.producer()
    bench.add(producer, T0, T1, version=version)
    bench.markers.holds = True
    error, _ = bench.end(producer, committed=committed, version=version)
    assert error is ErrorCode.NONE
    decided = bench.metadata().producer_epoch
    bench.markers = type(bench.markers)()
    bench.fail_over()
    assert [place for place, _ in bench.markers.written] == [T0, T1]
    for _, marker in bench.markers.written:
        assert (marker.committed, marker.producer_epoch) == (committed, decided)
        assert marker.coordinator_epoch == 1
    expected = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
    assert bench.state() is expected


def test_answers_to_a_coordinator_that_moved_are_dropped(bench: Bench) -> None:
    """A marker's late outcome changes nothing at whoever lost the id."""
    producer = bench.producer()
    bench.add(producer)
    bench.markers.holds = True
    bench.end(producer)
    for partition in range(3):
        bench.coordinator.on_resignation(partition, None, bench.now)
    bench.markers.release(bench.now)
    assert bench.coordinator.states.find("id") is ErrorCode.NOT_COORDINATOR
    assert bench.coordinator.markers.pending_count == 0


def test_an_open_transaction_survives_a_fail_over(bench: Bench) -> None:
    """With its partitions, its start and the producer's epoch."""
    producer = bench.producer()
    bench.add(producer, T0, T1)
    before = bench.metadata()
    bench.fail_over()
    after = bench.metadata()
    assert after is not before
    assert after == before
    assert bench.end(producer)[0] is ErrorCode.NONE


def test_an_id_that_is_being_loaded_cannot_be_asked_for(bench: Bench) -> None:
    """COORDINATOR_LOAD_IN_PROGRESS until the log is read."""
    producer = bench.producer()
    states = bench.coordinator.states
    partition = states.partition_for("id")
    states.begin_load(partition, 1)
    assert bench.init()[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert bench.add(producer) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    states.finish_load(partition, bench.now_ms)
    assert bench.add(producer) is ErrorCode.NONE


def test_another_brokers_id_is_not_coordinated_here(bench: Bench) -> None:
    """NOT_COORDINATOR, also for an id that nobody used."""
    producer = bench.producer()
    for partition in range(3):
        bench.coordinator.on_resignation(partition, None, bench.now)
    assert bench.init()[0] is ErrorCode.NOT_COORDINATOR
    assert bench.end(producer)[0] is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", [TV_0, TV_2])
def test_a_transaction_that_takes_too_long_is_aborted(version: int) -> None:
    """At the first sweep after its timeout, every ten seconds, with a bumped epoch."""
    bench = Bench(version)
    producer = bench.producer()
    bench.add(producer)
    bench.advance(60_000)
    assert bench.state() is TransactionState.ONGOING, "the timeout must be exceeded"
    assert bench.coordinator.next_group_deadline_ms() == bench.now_ms + 10_000
    bench.advance(10_000)
    assert bench.state() is TransactionState.COMPLETE_ABORT
    assert bench.markers.written[0][1].producer_epoch == 1
    assert bench.add(producer) is ErrorCode.PRODUCER_FENCED
    assert bench.end(producer)[0] is ErrorCode.PRODUCER_FENCED


def test_a_timeout_that_cannot_be_written_waits_for_the_next_sweep() -> None:
    """An abort by timeout that cannot be written is tried again by the next sweep, not at once."""
    bench = Bench(TV_0)
    bench.add(bench.producer())
    bench.log.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.advance(70_000)
    assert bench.coordinator.next_group_deadline_ms() == bench.now_ms + 10_000
    bench.log.failure = ErrorCode.NONE
    bench.advance(10_000)
    assert bench.state() is TransactionState.COMPLETE_ABORT


def test_an_id_that_nobody_uses_is_forgotten(bench: Bench) -> None:
    """After seven days, at a sweep every hour; its tombstone is in the log."""
    bench.producer()
    bench.advance(7 * DAY_MS)
    assert bench.coordinator.states.find("id") is None
    (entries,) = bench.log.partitions.values()
    assert entries[-1][1] is None
    assert bench.init() == (ErrorCode.NONE, ProducerIdentity(1, 0))


def test_expired_ids_are_removed_by_the_interval_of_their_own() -> None:
    """The sweep every three seconds finds an id that nobody used for ten."""
    config = TransactionConfig(transactional_id_expiration_ms=10_000, expiration_interval_ms=3_000)
    bench = Bench(config=config)
    bench.producer()
    bench.advance(11_999)
    assert bench.coordinator.states.find("id") is not None
    bench.advance(1)
    assert bench.coordinator.states.find("id") is None


def test_an_open_transaction_is_never_forgotten(bench: Bench) -> None:
    """A transactional id does not expire while its markers wait for a leader."""
    producer = bench.producer()
    bench.add(producer)
    bench.markers.lose_leader(T0)
    bench.end(producer)
    bench.advance(8 * DAY_MS)
    assert bench.state() is TransactionState.PREPARE_COMMIT


def test_a_tombstone_that_cannot_be_written_leaves_the_id(bench: Bench) -> None:
    """The next sweep tries again."""
    producer = bench.producer()
    bench.log.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.advance(7 * DAY_MS)
    assert bench.add(producer) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.log.failure = ErrorCode.NONE
    assert bench.add(producer) is ErrorCode.NONE


@pytest.mark.parametrize("value", [b"\x00\x01\x00", b"\x00\x00" + bytes(14) + b"\x09" + bytes(20)])
def test_a_record_that_cannot_be_read_ends_the_load(bench: Bench, value: bytes) -> None:
    """What came before it is served, what comes behind it is not."""
    producer = bench.producer()
    partition = bench.coordinator.states.partition_for("id")
    behind = bench.log.partitions[partition][-1]
    bench.log.partitions[partition].append((behind[0], value))
    bench.add(producer)
    bench.fail_over()
    assert bench.state() is TransactionState.EMPTY
    assert bench.add(producer) is ErrorCode.NONE
