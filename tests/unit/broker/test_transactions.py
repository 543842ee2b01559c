"""Offsets in transactions, from the producer's first request to the marker in the log."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from coordinator_sim.broker.authorizer import Acl, AclAuthorizer, Operation, ResourceType
from coordinator_sim.broker.logs import DataLog
from coordinator_sim.broker.transactions import TransactionState
from coordinator_sim.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from coordinator_sim.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from coordinator_sim.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.partitioning import OFFSETS_TOPIC
from coordinator_sim.protocol.resources import TopicPartition

if TYPE_CHECKING:
    from .conftest import Client

NONE = ErrorCode.NONE


def begin(client: "Client") -> tuple[int, int]:
    """A producer with the transactional id x: its id and epoch."""
    error, producer_id, epoch = client.services.transactions.init_producer_id("x")
    assert error is NONE
    return producer_id, epoch


def add(client: "Client", producer: tuple[int, int], version: int = 3) -> ErrorCode:
    """AddOffsetsToTxn for the group g."""
    request = AddOffsetsToTxnRequest(
        transactional_id="x", producer_id=producer[0], producer_epoch=producer[1], group_id="g"
    )
    response = client.ask(client.leader, request, version)
    assert isinstance(response, AddOffsetsToTxnResponse)
    return response.error_code


def commit(
    client: "Client", producer: tuple[int, int], offset: int = 7, version: int = 3
) -> ErrorCode:
    """TxnOffsetCommit of t-0 in the group g."""
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=(
            OffsetCommitRequestTopic("t", partitions=(OffsetCommitRequestPartition(0, offset),)),
        ),
    )
    response = client.ask(client.leader, request, version)
    assert isinstance(response, TxnOffsetCommitResponse)
    return response.topics[0].partitions[0].error_code


def end(client: "Client", producer: tuple[int, int], *, committed: bool) -> WritableTxnMarker:
    """The marker to write for the end of the transaction."""
    error, marker = client.services.transactions.end("x", *producer, committed=committed)
    assert error is NONE
    assert marker is not None
    return marker


def write(client: "Client", marker: WritableTxnMarker, broker_id: int | None = None) -> ErrorCode:
    """The outcome of WriteTxnMarkers in the partition of g, told to the transaction."""
    request = WriteTxnMarkersRequest(markers=(marker,))
    response = client.ask(client.leader if broker_id is None else broker_id, request, 1)
    assert isinstance(response, WriteTxnMarkersResponse)
    topics = response.markers[0].topics
    outcomes = {
        TopicPartition(topic.name, found.partition_index): found.error_code
        for topic in topics
        for found in topic.partitions
    }
    client.services.transactions.markers_written("x", outcomes)
    return topics[0].partitions[0].error_code


@pytest.mark.parametrize(("committed", "offset"), [(True, 7), (False, -1)])
def test_offsets_count_once_their_transaction_commits(
    client: "Client", *, committed: bool, offset: int
) -> None:
    """Until the marker a stable read is told to wait; then the offset is there, or dropped."""
    producer = begin(client)
    assert add(client, producer) is NONE
    assert commit(client, producer) is NONE
    unstable = client.offset(client.leader, stable=True)
    assert unstable.error_code is ErrorCode.UNSTABLE_OFFSET_COMMIT
    marker = end(client, producer, committed=committed)
    assert client.services.transactions.state_of("x") in {
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
    }
    assert write(client, marker) is NONE
    assert client.offset(client.leader, stable=True).committed_offset == offset
    state = client.services.transactions.state_of("x")
    assert state is not None
    assert state.value == ("CompleteCommit" if committed else "CompleteAbort")


def test_transactions_survive_a_failover(client: "Client") -> None:
    """A marker that finds no leader is written again where the partition is led now."""
    producer = begin(client)
    add(client, producer)
    commit(client, producer)
    marker = end(client, producer, committed=True)
    old = client.leader
    for outcome in client.cluster.move(client.partition, None, 0):
        client.take(outcome.broker_id, outcome.result)
        load = outcome.load
    assert load is not None
    refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert write(client, marker, old) is refused
    assert write(client, marker) is refused
    assert client.services.transactions.state_of("x") is TransactionState.PREPARE_COMMIT
    for outcome in client.cluster.finish_load(load, 0):
        client.take(outcome.broker_id, outcome.result)
    assert write(client, marker) is NONE
    assert client.offset(client.leader).committed_offset == 7


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (3, ErrorCode.INVALID_TXN_STATE),
        (4, ErrorCode.TRANSACTION_ABORTABLE),
        (5, ErrorCode.NONE),
    ],
)
def test_partition_that_was_not_added(client: "Client", version: int, error: ErrorCode) -> None:
    """Offsets of a partition that takes no part are refused; from version 5 on it is added."""
    assert commit(client, begin(client), version=version) is error


def test_verified_once(client: "Client") -> None:
    """Once the log has something of the transaction nobody asks whether it takes part."""
    producer = begin(client)
    add(client, producer)
    commit(client, producer)
    client.services.transactions.end("x", *producer, committed=True)
    assert commit(client, producer, 8) is NONE


def test_old_epoch_is_fenced(client: "Client") -> None:
    """A producer with an old epoch is told so by whoever sees it first."""
    first = begin(client)
    add(client, first)
    commit(client, first)
    write(client, end(client, first, committed=True))
    second = begin(client)
    assert second == (first[0], first[1] + 1)
    assert add(client, first, 2) is ErrorCode.PRODUCER_FENCED
    assert add(client, first, 1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert commit(client, first) is ErrorCode.INVALID_PRODUCER_EPOCH
    add(client, second)
    assert commit(client, second) is NONE
    found = client.services.offsets_logs.producers(client.partition)
    assert found.has_open_transaction(*second)
    assert not found.has_open_transaction(*first)


def test_log_refuses_old_epochs_itself(client: "Client") -> None:
    """The append of a marker with an old epoch, or of an old coordinator, is refused."""
    producer = begin(client)
    add(client, producer)
    commit(client, producer)
    marker = end(client, producer, committed=True)

    def sent(epoch: int, coordinator_epoch: int) -> ErrorCode:
        changed = WritableTxnMarker(
            producer_id=marker.producer_id,
            producer_epoch=epoch,
            transaction_result=True,
            topics=marker.topics,
            coordinator_epoch=coordinator_epoch,
        )
        response = client.ask(client.leader, WriteTxnMarkersRequest(markers=(changed,)), 1)
        assert isinstance(response, WriteTxnMarkersResponse)
        return response.markers[0].topics[0].partitions[0].error_code

    assert sent(producer[1] - 1, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert sent(producer[1], 5) is NONE
    assert sent(producer[1], 4) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_order_of_checks(client: "Client") -> None:
    """Unknown ids, other producers, old epochs and ends under way each have their error."""
    transactions = client.services.transactions
    place = TopicPartition("t", 0)
    assert transactions.add_partition("", 0, 0, place) is ErrorCode.INVALID_REQUEST
    unknown = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert transactions.add_partition("x", 0, 0, place) is unknown
    assert transactions.end("", 0, 0, committed=True)[0] is ErrorCode.INVALID_REQUEST
    assert transactions.end("x", 0, 0, committed=True)[0] is unknown
    producer_id, epoch = begin(client)
    assert transactions.add_partition("x", producer_id + 1, epoch, place) is unknown
    assert transactions.end("x", producer_id, epoch, committed=True)[0] is (
        ErrorCode.INVALID_TXN_STATE
    )
    assert transactions.end("x", producer_id, epoch + 1, committed=True)[0] is (
        ErrorCode.PRODUCER_FENCED
    )
    transactions.add_partition("x", producer_id, epoch, place)
    busy = ErrorCode.CONCURRENT_TRANSACTIONS
    assert transactions.init_producer_id("x") == (busy, -1, -1)
    end(client, (producer_id, epoch), committed=True)
    assert transactions.add_partition("x", producer_id, epoch, place) is busy
    assert transactions.end("x", producer_id, epoch, committed=True) == (busy, None)
    assert transactions.end("x", producer_id, epoch, committed=False)[0] is (
        ErrorCode.INVALID_TXN_STATE
    )
    assert transactions.markers_written("x", {place: NONE}) is None
    assert transactions.end("x", producer_id, epoch, committed=True) == (NONE, None)
    assert transactions.markers_written("x", {}) is None
    assert transactions.state_of("nobody") is None


# -- WriteTxnMarkers -----------------------------------------------------------------------


def test_markers_of_several_partitions(client: "Client") -> None:
    """Each partition has its outcome, those of ordinary topics and unknown ones too."""
    marker = WritableTxnMarker(
        producer_id=5,
        producer_epoch=0,
        transaction_result=True,
        topics=(
            WritableTxnMarkerTopic("t", (0, 9)),
            WritableTxnMarkerTopic(OFFSETS_TOPIC, (client.partition,)),
        ),
    )
    response = client.ask(client.leader, WriteTxnMarkersRequest(markers=(marker,)), 1)
    assert isinstance(response, WriteTxnMarkersResponse)
    unknown = WritableTxnMarkerPartitionResult(9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert response.markers[0].topics == (
        WritableTxnMarkerTopicResult(
            "t", partitions=(WritableTxnMarkerPartitionResult(0, NONE), unknown)
        ),
        WritableTxnMarkerTopicResult(
            OFFSETS_TOPIC, partitions=(WritableTxnMarkerPartitionResult(client.partition, NONE),)
        ),
    )
    assert client.services.data_logs[TopicPartition("t", 0)].end_offset == 1


def test_no_markers(client: "Client") -> None:
    """A request without markers is answered at once."""
    response = client.ask(client.leader, WriteTxnMarkersRequest(markers=()), 1)
    assert response == WriteTxnMarkersResponse(markers=())


def test_rights(make_client: "Callable[..., Client]") -> None:
    """Markers need ALTER or CLUSTER_ACTION on the cluster, offsets WRITE on the id and READ."""

    def allowed(*rules: tuple[Operation, ResourceType, str]) -> "Client":
        acls = (
            Acl(operation=operation, resource_type=kind, name=name, principal="User:ANONYMOUS")
            for operation, kind, name in rules
        )
        return make_client(authorizer=AclAuthorizer(acls))

    write_x = (Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "x")
    client = allowed()
    assert add(client, begin(client)) is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    client = allowed(write_x)
    assert add(client, begin(client)) is ErrorCode.GROUP_AUTHORIZATION_FAILED
    marker = WritableTxnMarker(
        producer_id=5,
        producer_epoch=0,
        transaction_result=True,
        topics=(WritableTxnMarkerTopic("t", (0,)),),
    )
    for operation, error in (
        (Operation.DESCRIBE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (Operation.ALTER, NONE),
        (Operation.CLUSTER_ACTION, NONE),
    ):
        client = allowed((operation, ResourceType.CLUSTER, "kafka-cluster"))
        response = client.ask(1, WriteTxnMarkersRequest(markers=(marker,)), 1)
        assert isinstance(response, WriteTxnMarkersResponse)
        assert response.markers[0].topics[0].partitions[0].error_code is error


# -- logs ----------------------------------------------------------------------------------


def test_last_stable_offset() -> None:
    """Readers of committed records stop where the oldest open transaction begins."""
    log = DataLog(0)
    log.append(3)
    log.append(2, producer_id=1, producer_epoch=0, transactional=True)
    log.append(4)
    assert (log.end_offset, log.last_stable_offset()) == (9, 3)
    assert log.append(1, producer_id=1, producer_epoch=-1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert log.end_offset == 9
