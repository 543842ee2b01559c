"""Producers and their transactions at one coordinator: every step, and every refusal.

Source: kafka 4.3, TransactionCoordinatorTest and TransactionMetadataTest (what must hold).
"""

import time

import pytest

from coordinator_sim.broker.transactions.coordinator import NOBODY, ProducerIdentity
from coordinator_sim.broker.transactions.inspection import list_transactions
from coordinator_sim.broker.transactions.markers import RETRY_MS
from coordinator_sim.broker.transactions.metadata import MAX_EPOCH, TV_0, TV_2, TransactionState
from coordinator_sim.broker.transactions.ports import TransactionConfig
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from tests.unit.broker.transactions_bench import START, T0, T1, Bench

BOTH = pytest.mark.parametrize("version", [TV_0, TV_2])


@pytest.fixture
def bench() -> Bench:
    """A coordinator of a cluster that speaks version 2 of transactions."""
    return Bench()


# -- InitProducerId --------------------------------------------------------------------------


def test_idempotent_producers_get_ids_from_a_reserved_block(bench: Bench) -> None:
    """A producer without transactions gets an id of its own, in a block written down before."""
    given = [bench.init(None)[1] for _ in range(3)]
    assert [each.producer_id for each in given] == [0, 1, 2]
    assert bench.reserved() == 1000


def test_a_new_block_is_reserved_when_one_is_used_up(bench: Bench) -> None:
    """The thousand-and-first id comes out of the next block."""
    given = [bench.init(None)[1].producer_id for _ in range(1001)]
    assert given[-1] == 1000
    assert bench.reserved() == 2000


def test_a_coordinator_that_starts_anew_gives_no_id_twice(bench: Bench) -> None:
    """What is left of a block is lost with the broker that had it."""
    bench.init(None)
    bench.fail_over()
    assert bench.init(None)[1].producer_id == 1000


def test_a_transactional_id_begins_empty_with_epoch_0(bench: Bench) -> None:
    """The first producer of an id."""
    assert bench.init() == (ErrorCode.NONE, ProducerIdentity(0, 0))
    assert bench.state() is TransactionState.EMPTY


def test_the_next_producer_of_an_id_has_the_next_epoch(bench: Bench) -> None:
    """And fences the one before."""
    first = bench.producer()
    assert bench.init() == (ErrorCode.NONE, ProducerIdentity(0, 1))
    assert bench.add(first) is ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_out_of_bounds_is_refused(bench: Bench, timeout_ms: int) -> None:
    """A transaction timeout must be positive and at most `transaction.max.timeout.ms`."""
    assert bench.init(timeout_ms=timeout_ms) == (ErrorCode.INVALID_TRANSACTION_TIMEOUT, NOBODY)


def test_an_empty_transactional_id_is_no_request(bench: Bench) -> None:
    """In every API that names one."""
    producer = ProducerIdentity(0, 0)
    assert bench.init("")[0] is ErrorCode.INVALID_REQUEST
    assert bench.add(producer, transactional_id="") is ErrorCode.INVALID_REQUEST
    assert bench.end(producer, transactional_id="")[0] is ErrorCode.INVALID_REQUEST
    verified = bench.coordinator.verify_partitions("", producer, [T0])
    assert verified == {T0: ErrorCode.INVALID_REQUEST}


def test_two_phase_commit_is_off_unless_switched_on(bench: Bench) -> None:
    """And prepared transactions are kept by no release."""
    assert bench.init(two_phase=True)[0] is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert bench.init(keep_prepared=True)[0] is ErrorCode.UNSUPPORTED_VERSION


def test_a_two_phase_transaction_never_times_out() -> None:
    """Where it is switched on, its timeout is the largest there is and is not looked at."""
    bench = Bench(config=TransactionConfig(two_phase_commit_enable=True))
    error, producer = bench.init(two_phase=True, timeout_ms=-1)
    assert error is ErrorCode.NONE
    bench.add(producer)
    bench.advance(3_600_000)
    assert bench.state() is TransactionState.ONGOING


def test_a_producer_that_says_who_it_is_goes_on(bench: Bench) -> None:
    """With its current epoch it gets the next; repeated with the last one, the same again."""
    producer = bench.producer()
    bumped = ProducerIdentity(producer.producer_id, 1)
    assert bench.init(expected=producer) == (ErrorCode.NONE, bumped)
    assert bench.init(expected=producer) == (ErrorCode.NONE, bumped)


def test_a_producer_with_an_old_epoch_is_fenced(bench: Bench) -> None:
    """Another producer of the id came in between."""
    producer = bench.producer()
    bench.init()
    bench.init()
    assert bench.init(expected=producer) == (ErrorCode.PRODUCER_FENCED, NOBODY)


def test_a_producer_with_a_foreign_id_is_fenced(bench: Bench) -> None:
    """The producer id must be the one that is known."""
    bench.producer()
    stranger = ProducerIdentity(77, 0)
    assert bench.init(expected=stranger)[0] is ErrorCode.PRODUCER_FENCED


def test_a_producer_of_an_expired_id_gets_a_new_producer_id(bench: Bench) -> None:
    """Whoever is not known any more may say what it likes."""
    assert bench.init(expected=ProducerIdentity(77, 5)) == (ErrorCode.NONE, ProducerIdentity(0, 0))


def test_a_repeated_request_over_a_fail_over_is_fenced(bench: Bench) -> None:
    """The log does not keep the last epoch."""
    producer = bench.producer()
    bench.init(expected=producer)
    bench.fail_over()
    assert bench.init(expected=producer)[0] is ErrorCode.PRODUCER_FENCED


def test_epochs_that_run_out_bring_another_producer_id(bench: Bench) -> None:
    """The last epoch that a producer is told is the last but one that there is."""
    bench.producer()
    bench.metadata().producer_epoch = MAX_EPOCH - 1
    assert bench.init() == (ErrorCode.NONE, ProducerIdentity(1, 0))


def test_a_repeated_rotation_is_told_the_same_id(bench: Bench) -> None:
    """The producer repeats its request with the id whose epochs had run out."""
    producer = bench.producer()
    bench.metadata().producer_epoch = MAX_EPOCH - 1
    last = ProducerIdentity(producer.producer_id, MAX_EPOCH - 1)
    rotated = bench.init(expected=last)
    assert rotated == (ErrorCode.NONE, ProducerIdentity(1, 0))
    assert bench.init(expected=last) == rotated


def test_a_new_producer_aborts_what_was_left_open(bench: Bench) -> None:
    """InitProducerId is told to retry while the open transaction is aborted, its epoch fenced."""
    old = bench.producer()
    bench.add(old)
    assert bench.init() == (ErrorCode.CONCURRENT_TRANSACTIONS, NOBODY)
    assert bench.state() is TransactionState.COMPLETE_ABORT
    ((place, marker),) = bench.markers.written
    assert (place, marker.committed) == (T0, False)
    assert marker.producer_epoch == 1
    assert bench.init() == (ErrorCode.NONE, ProducerIdentity(0, 2))


def test_an_abort_by_the_coordinator_bumps_once_at_version_0() -> None:
    """With transaction.version 0 the coordinator's abort bumps the epoch once, as 3.9 does."""
    bench = Bench(TV_0)
    bench.add(bench.producer())
    bench.init()
    ((_, marker),) = bench.markers.written
    assert marker.producer_epoch == 1
    assert bench.init() == (ErrorCode.NONE, ProducerIdentity(0, 2))


def test_a_fence_that_was_not_written_is_not_counted_again() -> None:
    """The epoch that nobody was told of is used by the next fence."""
    bench = Bench(TV_0)
    bench.add(bench.producer())
    bench.log.failure = ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.init()[0] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.log.failure = ErrorCode.NONE
    assert bench.init()[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.markers.written[0][1].producer_epoch == 1


# -- partitions ------------------------------------------------------------------------------


def test_the_first_partition_begins_a_transaction(bench: Bench) -> None:
    """With the present as its start."""
    producer = bench.producer()
    bench.now_ms += 5
    assert bench.add(producer) is ErrorCode.NONE
    assert bench.state() is TransactionState.ONGOING
    assert bench.metadata().started_ms == START + 5


def test_a_partition_that_is_in_it_already_writes_nothing(bench: Bench) -> None:
    """The answer is NONE at once."""
    producer = bench.producer()
    bench.add(producer, T0, T1)
    written = sum(len(each) for each in bench.log.partitions.values())
    assert bench.add(producer, T1) is ErrorCode.NONE
    assert sum(len(each) for each in bench.log.partitions.values()) == written


def test_partitions_of_an_unknown_producer_are_refused(bench: Bench) -> None:
    """By its transactional id, its producer id and its epoch, in this order."""
    producer = bench.producer()
    other = ProducerIdentity(9, producer.producer_epoch)
    newer = ProducerIdentity(producer.producer_id, 1)
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert bench.add(producer, transactional_id="new") is mapping
    assert bench.add(other) is mapping
    assert bench.add(newer) is ErrorCode.PRODUCER_FENCED


def test_partitions_wait_for_markers_that_are_pending(bench: Bench) -> None:
    """CONCURRENT_TRANSACTIONS until the last marker is written, then a new transaction begins."""
    bench.markers.holds = True
    producer = bench.producer()
    bench.add(producer)
    assert bench.end(producer)[0] is ErrorCode.NONE
    assert bench.add(producer) is ErrorCode.CONCURRENT_TRANSACTIONS
    assert bench.init()[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    bench.markers.release(bench.now)
    assert bench.add(producer) is ErrorCode.NONE


def test_verification_finds_what_was_added(bench: Bench) -> None:
    """And nothing else; it changes nothing."""
    producer = bench.producer()
    bench.add(producer, T0)
    verify = bench.coordinator.verify_partitions
    assert verify("id", producer, [T0, T1]) == {
        T0: ErrorCode.NONE,
        T1: ErrorCode.TRANSACTION_ABORTABLE,
    }
    newer = ProducerIdentity(producer.producer_id, 5)
    assert verify("id", newer, [T0]) == {T0: ErrorCode.PRODUCER_FENCED}
    assert verify("new", newer, [T0]) == {T0: ErrorCode.INVALID_PRODUCER_ID_MAPPING}


# -- EndTxn ----------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [True, False])
def test_an_end_at_version_0_keeps_the_epoch(bench: Bench, *, committed: bool) -> None:
    """Markers go to every partition, and the producer is told no identity."""
    producer = bench.producer()
    bench.add(producer, T0, T1)
    assert bench.end(producer, committed=committed) == (ErrorCode.NONE, NOBODY)
    assert [place for place, _ in bench.markers.written] == [T0, T1]
    assert {marker.committed for _, marker in bench.markers.written} == {committed}
    expected = TransactionState.COMPLETE_COMMIT if committed else TransactionState.COMPLETE_ABORT
    assert bench.state() is expected
    assert bench.add(producer) is ErrorCode.NONE


def test_a_repeated_end_at_version_0_is_acknowledged(bench: Bench) -> None:
    """The other end is refused; nothing is written twice."""
    producer = bench.producer()
    bench.add(producer)
    bench.end(producer)
    assert bench.end(producer)[0] is ErrorCode.NONE
    assert bench.end(producer, committed=False)[0] is ErrorCode.INVALID_TXN_STATE
    assert len(bench.markers.written) == 1


def test_an_end_of_nothing_at_version_0_is_refused(bench: Bench) -> None:
    """Commit and abort alike."""
    producer = bench.producer()
    assert bench.end(producer)[0] is ErrorCode.INVALID_TXN_STATE
    assert bench.end(producer, committed=False)[0] is ErrorCode.INVALID_TXN_STATE


def test_an_end_with_pending_markers_is_told_to_wait(bench: Bench) -> None:
    """The same end CONCURRENT_TRANSACTIONS, at version 0 because a step is pending."""
    bench.markers.holds = True
    producer = bench.producer()
    bench.add(producer)
    bench.end(producer)
    assert bench.end(producer)[0] is ErrorCode.CONCURRENT_TRANSACTIONS


@BOTH
def test_an_end_of_another_producer_is_refused(bench: Bench, version: int) -> None:
    """By its transactional id, its producer id and its epoch, in this order."""
    producer = bench.producer()
    bench.add(producer)
    mapping = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert bench.end(producer, transactional_id="new", version=version)[0] is mapping
    assert bench.end(ProducerIdentity(9, 0), version=version)[0] is mapping
    newer = ProducerIdentity(producer.producer_id, 1)
    assert bench.end(newer, version=version)[0] is ErrorCode.PRODUCER_FENCED
    assert bench.state() is TransactionState.ONGOING


def test_an_end_at_version_2_bumps_the_epoch(bench: Bench) -> None:
    """Markers carry the new epoch, and the producer is told it."""
    producer = bench.producer()
    bench.add(producer, version=TV_2)
    bumped = ProducerIdentity(producer.producer_id, 1)
    assert bench.end(producer, version=TV_2) == (ErrorCode.NONE, bumped)
    assert bench.markers.written[0][1].producer_epoch == 1
    assert bench.add(producer, version=TV_2) is ErrorCode.PRODUCER_FENCED
    assert bench.add(bumped, version=TV_2) is ErrorCode.NONE


NONE, INVALID = ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("before", "committed", "is_retry", "error"),
    [
        (None, False, True, ErrorCode.PRODUCER_FENCED),
        (None, False, False, NONE),
        (None, True, True, ErrorCode.PRODUCER_FENCED),
        (None, True, False, INVALID),
        (False, False, True, NONE),
        (False, False, False, NONE),
        (False, True, True, INVALID),
        (False, True, False, INVALID),
        (True, False, True, INVALID),
        (True, False, False, NONE),
        (True, True, True, NONE),
        (True, True, False, INVALID),
    ],
)
def test_an_end_without_a_transaction_at_version_2(
    bench: Bench, *, before: bool | None, committed: bool, is_retry: bool, error: ErrorCode
) -> None:
    """Kafka's table: a retry has the epoch before, and only an abort may be new."""
    producer = bench.producer()
    if before is not None:
        bench.add(producer, version=TV_2)
        _, producer = bench.end(producer, committed=before, version=TV_2)
    asking = producer
    if is_retry:
        asking = ProducerIdentity(producer.producer_id, producer.producer_epoch - 1)
    answered, identity = bench.end(asking, committed=committed, version=TV_2)
    assert answered is error
    if error is NONE:
        bumped = producer.producer_epoch + (0 if is_retry else 1)
        assert identity == ProducerIdentity(producer.producer_id, bumped)
    else:
        assert identity == NOBODY


def test_a_retry_with_pending_markers_at_version_2_is_told_to_wait(bench: Bench) -> None:
    """And so is any other request, whoever asks."""
    bench.markers.holds = True
    producer = bench.producer()
    bench.add(producer, version=TV_2)
    bench.end(producer, version=TV_2)
    assert bench.end(producer, version=TV_2)[0] is ErrorCode.CONCURRENT_TRANSACTIONS
    other = bench.end(producer, committed=False, version=TV_2)
    assert other[0] is ErrorCode.CONCURRENT_TRANSACTIONS


def test_an_end_that_uses_the_last_epoch_brings_a_new_producer_id(bench: Bench) -> None:
    """The marker has the last epoch of the old id; the producer goes on with the new id."""
    producer = bench.producer()
    bench.metadata().producer_epoch = MAX_EPOCH - 1
    last = ProducerIdentity(producer.producer_id, MAX_EPOCH - 1)
    bench.add(last, version=TV_2)
    error, told = bench.end(last, version=TV_2)
    assert error is ErrorCode.NONE
    assert told == ProducerIdentity(producer.producer_id, MAX_EPOCH)
    ((_, marker),) = bench.markers.written
    assert (marker.producer_id, marker.producer_epoch) == (producer.producer_id, MAX_EPOCH)
    rotated = ProducerIdentity(1, 0)
    assert bench.end(last, version=TV_2) == (ErrorCode.NONE, rotated), "a retry hears of it"
    assert bench.add(rotated, version=TV_2) is ErrorCode.NONE


def test_an_end_that_cannot_be_written_changes_nothing(bench: Bench) -> None:
    """The client hears the coordinator's error and may try again."""
    producer = bench.producer()
    bench.add(producer)
    for failure, told in (
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ):
        bench.log.failure = failure
        assert bench.end(producer) == (told, NOBODY)
    bench.log.failure = ErrorCode.NONE
    assert bench.state() is TransactionState.ONGOING
    assert bench.end(producer)[0] is ErrorCode.NONE


# -- ListTransactions ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("", ["id", "other"]),
        ("id", ["id"]),
        ("i", []),
        (".*", ["id", "other"]),
        ("o.*r", ["other"]),
        ("(?:id|other)", ["id", "other"]),
        ("[io*+(].*", ["id", "other"]),
        (r"\w+", ["id", "other"]),
        ("(id)?", ["id"]),
    ],
)
def test_ids_are_listed_by_a_pattern(bench: Bench, pattern: str, found: list[str]) -> None:
    """Which must match the whole id."""
    bench.producer("id")
    bench.producer("other")
    request = ListTransactionsRequest(transactional_id_pattern=pattern)
    listed = list_transactions(bench.coordinator.states, request, bench.now_ms)
    assert sorted(each.transactional_id for each in listed.transaction_states) == found


@pytest.mark.parametrize("pattern", ["((", "(" * 9_000, "a{1001}", "(?=a)"])
def test_an_invalid_pattern_is_refused(bench: Bench, pattern: str) -> None:
    """The patterns are RE2's, as in Kafka."""
    request = ListTransactionsRequest(transactional_id_pattern=pattern)
    answer = list_transactions(bench.coordinator.states, request, bench.now_ms)
    assert answer == ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)


@pytest.mark.parametrize(
    "pattern", ["(a+)+", "(a|a)*", "((a*)b?)*", "a*" * 20, "a?" * 40 + "a" * 40, ".*a.*a.*"]
)
def test_no_pattern_takes_long(bench: Bench, pattern: str) -> None:
    """With a search that goes back, forty optional letters would take 2^40 steps."""
    bench.producer("a" * 20_000 + "b")
    bench.producer("a" * 40 + "b")
    began = time.thread_time()
    request = ListTransactionsRequest(transactional_id_pattern=pattern)
    listed = list_transactions(bench.coordinator.states, request, bench.now_ms)
    assert listed.error_code is ErrorCode.NONE
    assert time.thread_time() - began < 0.5


# -- Markers, leaders that come and go, coordinators that move, and time -----------------------


DAY_MS = 24 * 3_600_000


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
