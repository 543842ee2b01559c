"""Members acknowledge records of a share partition, and writes of it come late or fail."""

import pytest

from coordinator_sim.broker.shares.persister import StateBatch
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.kafka.errors import ErrorCode
from tests.unit.broker.shares import share_stage

NOT_ACQUIRED = "The offset cannot be acknowledged. The offset is not acquired."


def test_accepted_records_are_written_and_move_the_start_offset() -> None:
    """What is done with at the start is forgotten, and waiting fetches are looked at."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4), batch_size=1)
    stage.acquire("a", (5, 9))

    assert stage.acknowledge("a", (0, 4, share_stage.ACCEPT)) == [None]

    (write,) = stage.persister.written
    assert (write.state_epoch, write.leader_epoch, write.start_offset) == (3, 7, 0)
    assert write.delivery_complete_count == 5
    assert write.batches == (StateBatch(0, 4, 2, 1),)
    assert (stage.partition.start_offset, stage.partition.delivery_complete_count) == (5, 0)
    assert stage.fetchable == 1


def test_accepted_records_behind_open_ones_only_count_as_complete() -> None:
    """The start offset waits for the first record that is not done with."""
    stage = share_stage.active()
    stage.acquire("a", (0, 9))
    stage.acknowledge("a", (3, 9, share_stage.ACCEPT))

    assert (stage.partition.start_offset, stage.partition.delivery_complete_count) == (0, 7)
    stage.acknowledge("a", (0, 2, share_stage.REJECT))
    assert (stage.partition.start_offset, stage.partition.end_offset) == (10, 10)


def test_record_released_after_its_last_delivery_is_archived() -> None:
    """`share.delivery.count.limit` bounds the deliveries."""
    stage = share_stage.active(delivery_count_limit=2)
    for _ in range(2):
        stage.acquire("a", (0, 0))
        stage.acknowledge("a", (0, 0, share_stage.RELEASE))

    assert stage.persister.written[-1].batches == (StateBatch(0, 0, 4, 2),)
    assert stage.partition.start_offset == 1


def test_another_members_records_cannot_be_acknowledged() -> None:
    """Neither as a batch nor by offset; and nothing is written."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4))

    assert stage.acknowledge("b", (0, 4, share_stage.ACCEPT)) == share_stage.invalid_state(
        "Member is not the owner of batch record"
    )
    stage.acknowledge("a", (0, 1, share_stage.ACCEPT))
    assert stage.acknowledge("b", (2, 4, share_stage.ACCEPT)) == share_stage.invalid_state(
        "Member is not the owner of offset"
    )
    assert len(stage.persister.written) == 1


def test_wrong_acknowledgement_undoes_the_right_ones_before_it() -> None:
    """A request counts as a whole."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4))
    stage.acquire("b", (5, 9))

    told = stage.acknowledge("a", (0, 4, share_stage.ACCEPT), (5, 9, share_stage.ACCEPT))

    assert told == share_stage.invalid_state("Member is not the owner of batch record")
    assert stage.partition.delivery_complete_count == 0
    assert stage.acknowledge("a", (0, 4, share_stage.ACCEPT)) == [None]


@pytest.mark.parametrize(
    ("first", "last", "error", "text"),
    [
        (
            0,
            2,
            ErrorCode.INVALID_RECORD_STATE,
            "Batch record not found. The request batch offsets are not found in the cache.",
        ),
        (
            20,
            25,
            ErrorCode.INVALID_REQUEST,
            "Batch record not found. The first offset in request is past acquired records.",
        ),
        (
            12,
            25,
            ErrorCode.INVALID_REQUEST,
            "Batch record not found. The last offset in request is past acquired records.",
        ),
    ],
)
def test_offsets_that_nobody_acquired_are_refused(
    first: int, last: int, error: ErrorCode, text: str
) -> None:
    """By where they are: before all that is cached, behind it, or partly behind it."""
    stage = share_stage.active(StateBatch(10, 14, 0, 1))

    assert stage.acknowledge("a", (first, last, share_stage.ACCEPT)) == [Refusal(error, text)]


def test_acknowledgement_of_records_before_the_start_offset_is_passed_over() -> None:
    """They are done with, however."""
    stage = share_stage.active(start_offset=10)

    assert stage.acknowledge("a", (0, 9, share_stage.ACCEPT)) == [None]


def test_unknown_type_is_an_invalid_request() -> None:
    """The words have all types of the batch."""
    stage = share_stage.active()
    stage.acquire("a", (0, 1))

    assert stage.acknowledge("a", (0, 1, (1, 9))) == [
        Refusal(ErrorCode.INVALID_REQUEST, "Invalid acknowledge type: [1, 9]")
    ]


def test_records_are_nobodys_while_their_acknowledgement_is_written() -> None:
    """A second acknowledgement is refused, and nobody else gets them, though they are released."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4))
    stage.persister.error = None
    told = stage.acknowledge("a", (0, 4, share_stage.RELEASE))

    assert told == []
    assert stage.acknowledge("a", (0, 4, share_stage.ACCEPT)) == share_stage.invalid_state(
        "The batch cannot be acknowledged. The batch is not in the acquired state."
    )
    assert stage.acquire("b", (0, 4)) == []
    stage.persister.answer(0, ErrorCode.NONE)
    assert told == [None]
    assert stage.acquire("b", (0, 4)) == [(0, 4, 2)]


def test_failed_write_gives_the_records_back_to_their_member() -> None:
    """The member is told why, and may acknowledge again."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4))
    stage.persister.error = ErrorCode.NOT_COORDINATOR

    assert stage.acknowledge("a", (0, 4, share_stage.ACCEPT)) == [
        Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "no NOT_COORDINATOR")
    ]
    assert (stage.partition.start_offset, stage.partition.delivery_complete_count) == (0, 0)
    stage.persister.error = ErrorCode.NONE
    assert stage.acknowledge("a", (0, 4, share_stage.ACCEPT)) == [None]


def test_failed_write_after_the_locks_time_makes_the_records_available() -> None:
    """The time ran out while the acknowledgement was written; nobody is waited for."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4))
    stage.persister.error = None
    stage.acknowledge("a", (0, 4, share_stage.ACCEPT))
    stage.advance(share_stage.LOCK_MS)
    assert stage.partition.next_fetch_offset() == 5

    stage.persister.answer(0, ErrorCode.UNKNOWN_SERVER_ERROR)

    assert stage.acquire("b", (0, 4)) == [(0, 4, 2)]


def test_renewal_begins_the_locks_time_anew_and_writes_nothing() -> None:
    """Of a batch, and of single records."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4))
    stage.acquire("a", (5, 6))
    stage.advance(share_stage.LOCK_MS - 1)
    assert stage.acknowledge(
        "a", (0, 4, share_stage.RENEW), (5, 6, (share_stage.RENEW, share_stage.ACCEPT))
    ) == [None]
    stage.advance(share_stage.LOCK_MS - 1)

    assert stage.partition.next_fetch_offset() == 7
    assert [one.batches for one in stage.persister.written] == [(StateBatch(6, 6, 2, 1),)]
    stage.advance(1)
    assert stage.partition.next_fetch_offset() == 0


def test_renewal_is_refused_where_the_group_forbids_it() -> None:
    """`share.renew.acknowledge.enable` is off."""
    stage = share_stage.active(is_renew_acknowledge_enabled=False)
    stage.acquire("a", (0, 4))

    refused = share_stage.invalid_state("Renewing acquisition locks is not enabled for the group.")
    assert stage.acknowledge("a", (0, 4, share_stage.RENEW)) == refused


def test_end_of_a_session_releases_what_the_member_has() -> None:
    """And nothing of other members; the deliveries count."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4))
    stage.acquire("b", (5, 9))

    assert stage.release("a") == [None]

    assert stage.persister.written[-1].batches == (StateBatch(0, 4, 0, 1),)
    assert stage.acquire("c", (0, 4), (5, 9)) == [(0, 4, 2)]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_share_coordinators_error_is_told_as_one_that_members_know(
    error: ErrorCode, told: ErrorCode
) -> None:
    """Members find coordinators and leaders anew, or give up."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4))
    stage.persister.error = error

    assert stage.acknowledge("a", (0, 4, share_stage.ACCEPT)) == [Refusal(told, f"no {error.name}")]


def test_acknowledgement_of_a_record_that_timed_out_is_refused() -> None:
    """The record is available by then."""
    stage = share_stage.active()
    stage.acquire("a", (0, 4))
    stage.acknowledge("a", (0, 0, share_stage.ACCEPT))
    stage.advance(share_stage.LOCK_MS)

    assert stage.acknowledge("a", (1, 4, share_stage.ACCEPT)) == share_stage.invalid_state(
        NOT_ACQUIRED
    )
