"""Offsets in transactions, from the producer's first request to the marker in the log."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, partition_for
from coordinator_sim.messages import (
    add_offsets_to_txn,
    offset_commit,
    txn_offset_commit,
    write_txn_markers,
)
from coordinator_sim.messages.end_txn import EndTxnRequest, EndTxnResponse
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from .conftest import Client

NONE = ErrorCode.NONE
TRANSACTIONS_TOPIC = "__transaction_state"
Producer = tuple[int, int]
"""Producer id and epoch."""


@pytest.fixture(autouse=True)
def state_topic(client: "Client") -> Iterator[None]:
    """The first question for a transactional id has made the topic of their states."""
    client.ask(1, FindCoordinatorRequest(coordinator_keys=("x",), key_type=1), 6)
    client.answers.clear()
    return iter((None,))


def coordinator_of(client: "Client") -> int:
    """Who coordinates the transactional id x."""
    partitions = client.cluster.image.topics[TRANSACTIONS_TOPIC].partitions
    return partitions[partition_for("x", len(partitions))].leader_id


def begin(client: "Client") -> Producer:
    """A producer with the transactional id x."""
    request = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    response = client.ask(coordinator_of(client), request, 4)
    assert isinstance(response, InitProducerIdResponse)
    assert response.error_code is NONE
    return response.producer_id, response.producer_epoch


def add(client: "Client", producer: Producer, version: int = 3) -> ErrorCode:
    """AddOffsetsToTxn for the group g."""
    request = add_offsets_to_txn.AddOffsetsToTxnRequest(
        transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], group_id="g"
    )
    response = client.ask(coordinator_of(client), request, version)
    assert isinstance(response, add_offsets_to_txn.AddOffsetsToTxnResponse)
    return response.error_code


def commit(client: "Client", producer: Producer, offset: int = 7, version: int = 3) -> ErrorCode:
    """TxnOffsetCommit of t-0 in the group g."""
    request = txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=(
            offset_commit.OffsetCommitRequestTopic(
                "t", partitions=(offset_commit.OffsetCommitRequestPartition(0, offset),)
            ),
        ),
    )
    response = client.ask(client.leader, request, version)
    assert isinstance(response, txn_offset_commit.TxnOffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


def end(client: "Client", producer: Producer, *, committed: bool = True) -> ErrorCode:
    """EndTxn as a client without version 2 of transactions sends it."""
    request = EndTxnRequest("x", *producer, committed)
    response = client.ask(coordinator_of(client), request, 4)
    assert isinstance(response, EndTxnResponse)
    return response.error_code


@pytest.mark.parametrize(("committed", "offset"), [(True, 7), (False, -1)])
def test_offsets_count_once_their_transaction_ends(
    client: "Client", *, committed: bool, offset: int
) -> None:
    """Until the marker a stable read is told to wait; then the offset is there, or dropped."""
    producer = begin(client)
    assert add(client, producer) is NONE
    assert commit(client, producer) is NONE
    unstable = client.offset(client.leader, stable=True)
    assert unstable.error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert end(client, producer, committed=committed) is NONE
    assert client.offset(client.leader, stable=True).committed_offset == offset


def test_transactions_survive_a_failover(client: "Client") -> None:
    """The marker is written where the partition is led by then, and the offset counts."""
    producer = begin(client)
    add(client, producer)
    commit(client, producer)
    client.move()
    assert client.offset(client.leader, stable=True).error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT
    assert end(client, producer) is NONE
    assert client.offset(client.leader).committed_offset == 7


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE), (5, ErrorCode.NONE)],
)
def test_partition_that_was_not_added(client: "Client", version: int, error: ErrorCode) -> None:
    """Offsets of a partition that takes no part are refused; from version 5 on it is added."""
    assert commit(client, begin(client), version=version) is error


def test_old_epoch_is_fenced(client: "Client") -> None:
    """A producer with an old epoch is told so by whoever sees it first."""
    first = begin(client)
    add(client, first)
    commit(client, first)
    end(client, first)
    second = begin(client)
    assert second == (first[0], first[1] + 1)
    assert add(client, first, 2) is ErrorCode.PRODUCER_FENCED
    assert add(client, first, 1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert commit(client, first) is ErrorCode.INVALID_PRODUCER_EPOCH
    add(client, second)
    assert commit(client, second) is NONE


def test_log_refuses_old_epochs_itself(client: "Client") -> None:
    """The append of a marker with an old epoch, or of an old coordinator, is refused."""
    begin(client)
    producer = begin(client)
    add(client, producer)
    commit(client, producer)

    def sent(epoch: int, coordinator_epoch: int) -> ErrorCode:
        marker = write_txn_markers.WritableTxnMarker(
            producer_id=producer[0],
            producer_epoch=epoch,
            transaction_result=True,
            topics=(write_txn_markers.WritableTxnMarkerTopic(OFFSETS_TOPIC, (client.partition,)),),
            coordinator_epoch=coordinator_epoch,
        )
        response = client.ask(
            client.leader, write_txn_markers.WriteTxnMarkersRequest(markers=(marker,)), 1
        )
        assert isinstance(response, write_txn_markers.WriteTxnMarkersResponse)
        return response.markers[0].topics[0].partitions[0].error_code

    assert sent(producer[1] - 1, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert sent(producer[1], 5) is NONE
    assert sent(producer[1], 4) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
