"""Requests and responses of offsets in transactions, as Kafka's fields."""

from typing import Final

from coordinator_sim.protocol.transaction_messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    MarkerResult,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WritableMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from coordinator_sim.wire.forms.form import Form, error_of
from coordinator_sim.wire.forms.offsets import (
    read_committed_topics,
    read_outcomes,
    write_committed_topics,
    write_outcomes,
)
from coordinator_sim.wire.schema import Data


def _read_add(data: Data, _version: int) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=data["transactionalId"],
        producer_id=data["producerId"],
        producer_epoch=data["producerEpoch"],
        group_id=data["groupId"],
    )


def _write_add(request: AddOffsetsToTxnRequest, _version: int) -> Data:
    return {
        "transactionalId": request.transactional_id,
        "producerId": request.producer_id,
        "producerEpoch": request.producer_epoch,
        "groupId": request.group_id,
    }


def _read_added(
    data: Data, _version: int, _request: AddOffsetsToTxnRequest | None
) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error_of(data))


def _write_added(
    response: AddOffsetsToTxnResponse, _version: int, _request: AddOffsetsToTxnRequest | None
) -> Data:
    return {"errorCode": int(response.error_code)}


def _read_commit(data: Data, _version: int) -> TxnOffsetCommitRequest:
    return TxnOffsetCommitRequest(
        transactional_id=data["transactionalId"],
        group_id=data["groupId"],
        producer_id=data["producerId"],
        producer_epoch=data["producerEpoch"],
        generation_id=data.get("generationIdOrMemberEpoch", -1),
        member_id=data.get("memberId", ""),
        group_instance_id=data.get("groupInstanceId"),
        topics=read_committed_topics(data),
    )


def _write_commit(request: TxnOffsetCommitRequest, _version: int) -> Data:
    return {
        "transactionalId": request.transactional_id,
        "groupId": request.group_id,
        "producerId": request.producer_id,
        "producerEpoch": request.producer_epoch,
        "generationIdOrMemberEpoch": request.generation_id,
        "memberId": request.member_id,
        "groupInstanceId": request.group_instance_id,
        "topics": write_committed_topics(request.topics),
    }


def _read_committed(
    data: Data, _version: int, _request: TxnOffsetCommitRequest | None
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=read_outcomes(data))


def _write_committed(
    response: TxnOffsetCommitResponse, _version: int, _request: TxnOffsetCommitRequest | None
) -> Data:
    return {"topics": write_outcomes(response.topics)}


def _read_markers(data: Data, _version: int) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=tuple(
            WritableMarker(
                producer_id=marker["producerId"],
                producer_epoch=marker["producerEpoch"],
                committed=marker["transactionResult"],
                topics=tuple(
                    (topic["name"], tuple(topic["partitionIndexes"])) for topic in marker["topics"]
                ),
                coordinator_epoch=marker["coordinatorEpoch"],
                transaction_version=marker.get("transactionVersion", 0),
            )
            for marker in data["markers"]
        )
    )


def _write_markers(request: WriteTxnMarkersRequest, _version: int) -> Data:
    return {
        "markers": [
            {
                "producerId": marker.producer_id,
                "producerEpoch": marker.producer_epoch,
                "transactionResult": marker.committed,
                "topics": [
                    {"name": name, "partitionIndexes": list(partitions)}
                    for name, partitions in marker.topics
                ],
                "coordinatorEpoch": marker.coordinator_epoch,
                "transactionVersion": marker.transaction_version,
            }
            for marker in request.markers
        ]
    }


def _read_marked(
    data: Data, _version: int, _request: WriteTxnMarkersRequest | None
) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=tuple(
            MarkerResult(producer_id=marker["producerId"], topics=read_outcomes(marker))
            for marker in data["markers"]
        )
    )


def _write_marked(
    response: WriteTxnMarkersResponse, _version: int, _request: WriteTxnMarkersRequest | None
) -> Data:
    return {
        "markers": [
            {"producerId": marker.producer_id, "topics": write_outcomes(marker.topics)}
            for marker in response.markers
        ]
    }


ADD_OFFSETS_TO_TXN: Final = Form(
    read_request=_read_add,
    write_request=_write_add,
    read_response=_read_added,
    write_response=_write_added,
)
TXN_OFFSET_COMMIT: Final = Form(
    read_request=_read_commit,
    write_request=_write_commit,
    read_response=_read_committed,
    write_response=_write_committed,
)
WRITE_TXN_MARKERS: Final = Form(
    read_request=_read_markers,
    write_request=_write_markers,
    read_response=_read_marked,
    write_response=_write_marked,
)
