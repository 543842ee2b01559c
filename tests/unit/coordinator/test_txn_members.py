"""Who may commit offsets in a transaction: the member, its instance and its generation."""

import pytest

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.txn_validation import verification_error
from coordinator_sim.harness.group_driver import GroupDriver
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from coordinator_sim.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

EVERY = pytest.mark.parametrize("profile", ["2.8", "3.9", "4.4"])


def drive(profile: str) -> GroupDriver:
    """One group on a broker of that profile, without initial delay."""
    config = CoordinatorConfig(offsets_topic_num_partitions=1, group_initial_rebalance_delay_ms=0)
    return GroupDriver(Harness(config, profile_named(profile), start_ms=0))


def outcome(
    group: GroupDriver,
    member_id: str = "",
    generation_id: int = -1,
    instance_id: str | None = None,
) -> ErrorCode:
    """How a commit in a transaction ends."""
    topic = OffsetCommitRequestTopic("t", partitions=(OffsetCommitRequestPartition(0, 1),))
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id=group.group_id,
        producer_id=7,
        producer_epoch=0,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=(topic,),
    )
    response = group.harness.call(request, api_version=3).response
    assert isinstance(response, TxnOffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


@EVERY
def test_an_instance_that_another_member_has_is_fenced(profile: str) -> None:
    """The member that came back may commit, the one before it may not."""
    group = drive(profile)
    (old,) = group.stable(1, static=True)
    group.join(instance_id="i0")
    known = group.harness.coordinator.group("g")
    assert known is not None
    (new,) = known.members
    assert outcome(group, old, 1, "i0") is ErrorCode.FENCED_INSTANCE_ID
    assert outcome(group, new, 1, "i0") is ErrorCode.NONE


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("2.8", [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.ILLEGAL_GENERATION]),
        (
            "3.9",
            [
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.ILLEGAL_GENERATION,
                ErrorCode.UNKNOWN_MEMBER_ID,
            ],
        ),
    ],
)
def test_2_8_looks_at_what_a_request_names_alone(profile: str, expected: list[ErrorCode]) -> None:
    """An instance of nobody, a member without a generation, a generation without a member."""
    group = drive(profile)
    (member,) = group.stable(1)
    assert [
        outcome(group, member, 1, "nobody"),
        outcome(group, member),
        outcome(group, "", 2),
    ] == expected


@pytest.mark.parametrize("profile", ["3.9", "4.4"])
def test_who_names_nothing_may_commit_beside_a_generation(profile: str) -> None:
    """Producers without ids pass, before and during a generation; 0 counts as a generation."""
    group = drive(profile)
    assert outcome(group) is ErrorCode.NONE
    assert outcome(group, "", 0) is ErrorCode.UNKNOWN_MEMBER_ID
    assert outcome(group, "gone") is ErrorCode.NONE
    group.stable(1)
    assert outcome(group) is ErrorCode.NONE
    assert outcome(group, "", 0) is ErrorCode.UNKNOWN_MEMBER_ID
    assert outcome(group, "", -1, "nobody") is ErrorCode.UNKNOWN_MEMBER_ID


@EVERY
def test_a_dead_group_sends_the_producer_to_its_coordinator(profile: str) -> None:
    """A group that is unloaded or removed meanwhile is not available."""
    group = drive(profile)
    group.commit(1, version=5)
    known = group.harness.coordinator.group("g")
    assert known is not None
    known.die()
    assert outcome(group) is ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("generation_id", [0, 1])
def test_an_unknown_group_has_no_generation(generation_id: int) -> None:
    """Also generation 0 is one that Java's coordinator does not know."""
    assert outcome(drive("4.4"), "m", generation_id) is ErrorCode.ILLEGAL_GENERATION


def test_a_transaction_that_is_not_open_is_abortable_since_version_4() -> None:
    """Before it is an invalid state; other findings are told as they are."""
    found = [
        verification_error(error, version)
        for error in (ErrorCode.INVALID_TXN_STATE, ErrorCode.NETWORK_EXCEPTION)
        for version in (3, 4, 5)
    ]
    assert found == [
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.TRANSACTION_ABORTABLE,
        *[ErrorCode.NETWORK_EXCEPTION] * 3,
    ]
