"""A share partition reads its state, its locks run out, its log's start moves, it is fenced."""

import pytest

from coordinator_sim.broker.shares.persister import StateBatch
from coordinator_sim.broker.shares.share_values import PartitionState
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.errors import ErrorCode
from tests.unit.broker.shares import share_stage
from tests.unit.broker.shares.held_answers import HeldLetters

PLACE = "AAECAwQFBgcICQoLDA0ODw:t-0"


def test_partition_is_usable_once_its_state_was_read() -> None:
    """Meanwhile others are told to try again, and no fetch may begin."""
    stage = share_stage.Stage()
    stage.persister.error = None
    told = stage.initialize()

    assert told == []
    assert stage.initialize() == [
        Refusal(
            ErrorCode.LEADER_NOT_AVAILABLE, f"Share partition is already initializing g-{PLACE}"
        )
    ]
    assert not stage.partition.maybe_acquire_fetch_lock("f")
    stage.persister.answer(0, ErrorCode.NONE)
    assert (told, stage.initialize()) == ([None], [None])
    assert stage.partition.state_epoch == 3


def test_partition_whose_state_cannot_be_read_has_failed_for_good() -> None:
    """Whoever keeps it makes another one."""
    stage = share_stage.Stage()
    stage.persister.error = ErrorCode.FENCED_LEADER_EPOCH

    assert stage.initialize() == [
        Refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER, "no FENCED_LEADER_EPOCH")
    ]
    assert stage.initialize() == [
        Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, f"Share partition failed to load g-{PLACE}")
    ]


@pytest.mark.parametrize(
    "batch", [StateBatch(3, 4, 0, 1), StateBatch(9, 8, 0, 1), StateBatch(9, 9, 5, 1)]
)
def test_impossible_state_fails_the_partition(batch: StateBatch) -> None:
    """Records before the start offset, backwards, or in a state that there is not."""
    stage = share_stage.Stage(batch, start_offset=5)

    assert stage.initialize() == [
        Refusal(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"Failed to initialize the share partition g-{PLACE}"
        )
    ]
    assert stage.partition.state is PartitionState.FAILED


@pytest.mark.parametrize(
    ("reset", "offset"), [("latest", 90), ("earliest", 10), ("by_duration:PT1H", 50)]
)
def test_group_without_an_offset_begins_where_its_setting_says(reset: str, offset: int) -> None:
    """`share.auto.offset.reset`."""
    offsets: dict[str, int | None] = {"earliest": 10, "latest": 90, "timestamp": 50}
    stage = share_stage.active(start_offset=-1, offsets=offsets, auto_offset_reset=reset)

    assert stage.partition.next_fetch_offset() == offset


def test_log_without_such_an_offset_fails_the_partition() -> None:
    """Kafka's words name what was looked for: here an hour before the present."""
    stage = share_stage.Stage(
        start_offset=-1, offsets={"timestamp": None}, auto_offset_reset="by_duration:PT1M0.5S"
    )

    assert stage.initialize() == [
        Refusal(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"Offset for timestamp 939500 not found for topic partition: {PLACE}",
        )
    ]


def test_records_whose_lock_runs_out_are_available_even_if_that_is_not_written() -> None:
    """The write is tried, and fetches that wait are looked at."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4))
    stage.persister.error = ErrorCode.NETWORK_EXCEPTION
    assert stage.partition.next_deadline_ms() is not None
    stage.advance(share_stage.LOCK_MS)

    assert stage.persister.written[-1].batches == (StateBatch(0, 4, 0, 1),)
    assert stage.fetchable == 1
    assert stage.acquire("b", (0, 4)) == [(0, 4, 2)]


def test_moved_log_start_archives_what_is_available_and_leaves_what_is_acquired() -> None:
    """Nothing is written; the member's late acknowledgement of lost records is passed over."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4), batch_size=1)
    stage.acquire("b", (5, 9))
    stage.release("a")
    writes = len(stage.persister.written)
    stage.partition.update_cache_and_offsets(7)

    assert (stage.partition.start_offset, stage.partition.end_offset) == (7, 9)
    assert len(stage.persister.written) == writes
    assert stage.acknowledge("b", (5, 9, share_stage.ACCEPT)) == [None]
    assert stage.persister.written[-1].start_offset == 7
    (written,) = stage.persister.written[-1].batches
    assert (written.first_offset, written.last_offset) == (7, 9)


def test_log_start_that_goes_back_is_passed_over() -> None:
    """It cannot, so it is not looked at."""
    stage = share_stage.active(start_offset=9)
    stage.partition.update_cache_and_offsets(5)

    assert stage.partition.start_offset == 9


def test_start_offset_goes_back_when_records_behind_it_time_out() -> None:
    """QUIRK of Kafka: the log's start passed all records, then the last lock runs out."""
    stage = share_stage.active()
    stage.acquire("a", (0, 9))
    stage.partition.update_cache_and_offsets(15)
    assert stage.partition.next_fetch_offset() == 15
    stage.advance(share_stage.LOCK_MS)

    assert (stage.partition.start_offset, stage.partition.next_fetch_offset()) == (10, 10)


def test_start_offset_stays_where_kafka_looks_for_a_record_that_is_not_there() -> None:
    """QUIRK of Kafka: records with states of their own, passed by the log's start."""
    stage = share_stage.active()
    stage.acquire("a", (0, 9))
    stage.acknowledge("a", (0, 0, share_stage.RELEASE))
    stage.partition.update_cache_and_offsets(15)

    assert stage.release("a") == [None]
    assert (stage.partition.start_offset, stage.fetchable) == (15, 0)


def test_acknowledgement_over_a_gap_that_the_log_start_reached_is_aborted() -> None:
    """QUIRK of Kafka: it throws, and the client is told of a server error."""
    stage = share_stage.active(StateBatch(20, 24, 0, 1), start_offset=10)
    stage.partition.update_cache_and_offsets(12)

    with pytest.raises(OperationAborted):
        stage.acknowledge("a", (11, 24, share_stage.ACCEPT))


def test_acknowledgement_over_the_start_offset_of_an_empty_cache_is_aborted() -> None:
    """QUIRK of Kafka: a late member names records that others are done with, and one more."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4))
    stage.acknowledge("a", (0, 4, share_stage.ACCEPT))

    with pytest.raises(OperationAborted):
        stage.acknowledge("b", (4, 5, share_stage.ACCEPT))


def test_fenced_partition_hands_out_nothing_and_still_takes_acknowledgements() -> None:
    """The write will tell whether this leader is too old."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4))
    stage.partition.mark_fenced()

    assert stage.acquire("a", (5, 9)) == []
    assert not stage.partition.maybe_acquire_fetch_lock("f")
    assert stage.initialize() == [
        Refusal(ErrorCode.LEADER_NOT_AVAILABLE, f"Share partition is fenced g-{PLACE}")
    ]
    assert stage.acknowledge("a", (0, 4, share_stage.ACCEPT)) == [None]


def test_one_fetch_is_under_way_at_a_time() -> None:
    """Whoever ends a fetch that is not its own ends the one under way."""
    partition = share_stage.active().partition

    assert partition.maybe_acquire_fetch_lock("one")
    assert not partition.maybe_acquire_fetch_lock("two")
    partition.release_fetch_lock("two")
    assert partition.maybe_acquire_fetch_lock("two")


def test_rejected_record_is_archived_once_the_queue_has_it() -> None:
    """From 4.4 on, where the group has a queue for dead letters; until then it is archiving."""
    letters = HeldLetters()
    letters.enabled = letters.is_held = True
    stage = share_stage.active(letters=letters)
    stage.acquire("a", (0, 4))

    assert stage.acknowledge("a", (0, 4, share_stage.REJECT)) == [None]
    assert letters.taken == [[0, 4, 1, "CLIENT_REJECT"]]
    assert stage.persister.written[-1].batches == (StateBatch(0, 4, 3, 1),)
    assert (stage.partition.start_offset, stage.partition.delivery_complete_count) == (0, 0)
    letters.answer(0, stage.now)
    assert stage.persister.written[-1].batches == (StateBatch(0, 4, 4, 1),)
    assert stage.partition.start_offset == 5


def test_record_that_times_out_for_the_last_time_is_a_dead_letter() -> None:
    """The cause is the number of its deliveries."""
    letters = HeldLetters()
    letters.enabled = True
    stage = share_stage.active(letters=letters, delivery_count_limit=2)
    for _ in range(2):
        stage.acquire("a", (0, 0))
        stage.advance(share_stage.LOCK_MS)

    assert letters.taken == [[0, 0, 2, "DELIVERY_COUNT_EXCEEDED"]]
    assert stage.partition.start_offset == 1


def test_leader_of_4_4_ends_what_an_earlier_one_began_to_archive() -> None:
    """Even without a queue; one of 4.3 leaves the records as they are."""
    stored = StateBatch(0, 4, 3, 1)
    new = share_stage.active(stored, letters=HeldLetters())
    old = share_stage.active(stored, letters=None)

    assert (new.partition.start_offset, old.partition.start_offset) == (5, 0)
    assert new.persister.written[-1].batches == (StateBatch(0, 4, 4, 1),)


def test_without_a_queue_rejected_records_are_archived_at_once() -> None:
    """As before 4.4."""
    stage = share_stage.active(letters=HeldLetters())
    stage.acquire("a", (0, 4))
    stage.acknowledge("a", (0, 4, share_stage.REJECT))

    assert stage.persister.written[-1].batches == (StateBatch(0, 4, 4, 1),)
    assert stage.acknowledge("a", (0, 4, share_stage.ACCEPT)) == [None]
    assert stage.acknowledge("a", (5, 5, share_stage.ACCEPT)) == share_stage.invalid_state(
        "Batch record not found. The request batch offsets are not found in the cache."
    )
