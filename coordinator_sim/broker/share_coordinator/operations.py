"""The five APIs of the share coordinator: what each asks of a shard, and the shape of its answers.

Source: kafka 4.3, ShareCoordinatorService.java and the response classes of the five APIs.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.broker.share_coordinator.shard import (
    Records,
    Refusal,
    ShareCoordinatorShard,
    Writing,
)
from coordinator_sim.broker.shares.persister import SharePartitionKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import delete_share_group_state as delete
from coordinator_sim.messages import initialize_share_group_state as initialize
from coordinator_sim.messages import read_share_group_state as read
from coordinator_sim.messages import read_share_group_state_summary as summary
from coordinator_sim.messages import write_share_group_state as write
from coordinator_sim.messages.share_state_records import StateBatch

StateRequest = (
    initialize.InitializeShareGroupStateRequest
    | read.ReadShareGroupStateRequest
    | write.WriteShareGroupStateRequest
    | delete.DeleteShareGroupStateRequest
    | summary.ReadShareGroupStateSummaryRequest
)
"""A request to the share coordinator."""
StateResponse = (
    initialize.InitializeShareGroupStateResponse
    | read.ReadShareGroupStateResponse
    | write.WriteShareGroupStateResponse
    | delete.DeleteShareGroupStateResponse
    | summary.ReadShareGroupStateSummaryResponse
)
"""Its answer."""


class ApiOperation(Struct, frozen=True, kw_only=True):
    """One API.

    Args:
        name: What Kafka calls the operation.
        words: Behind "Unable to" where it fails.
        looks_before: Whether the request's form is looked at before the coordinator's own state.
        wants_partitions: Whether a topic without partitions makes the answer empty.
        act: What a shard does for one share partition: the records, and the partition's result.
        response: The struct of answers.
        topic_result: That of a topic in one.
        partition_result: That of a partition; its first fields are number, error and message.
    """

    name: str
    words: str
    looks_before: bool = False
    wants_partitions: bool = True
    act: Callable[[ShareCoordinatorShard, SharePartitionKey, Any, int], tuple[Records, Any]]
    response: Callable[..., StateResponse]
    topic_result: Callable[..., Any]
    partition_result: Callable[..., Any]


def failed_everywhere(
    request: StateRequest, error: ErrorCode, message: str | None
) -> StateResponse:
    """The answer that refuses every partition alike, in the order of the request."""
    operation = API_OPERATIONS[type(request)]
    return operation.response(
        tuple(
            operation.topic_result(
                topic.topic_id,
                tuple(
                    operation.partition_result(each.partition, error, message)
                    for each in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


def _initialize(
    shard: ShareCoordinatorShard,
    key: SharePartitionKey,
    asked: initialize.PartitionData,
    now_ms: int,
) -> tuple[Records, initialize.PartitionResult]:
    records, refusal = shard.initialize(key, asked.state_epoch, asked.start_offset, now_ms)
    return records, _outcome(initialize.PartitionResult, key, refusal)


def _write(
    shard: ShareCoordinatorShard, key: SharePartitionKey, asked: write.PartitionData, now_ms: int
) -> tuple[Records, write.PartitionResult]:
    writing = Writing(
        key=key,
        state_epoch=asked.state_epoch,
        leader_epoch=asked.leader_epoch,
        start_offset=asked.start_offset,
        delivery_complete_count=asked.delivery_complete_count,
        batches=tuple(
            StateBatch(
                each.first_offset, each.last_offset, each.delivery_state, each.delivery_count
            )
            for each in asked.state_batches
        ),
    )
    records, refusal = shard.write(writing, now_ms)
    return records, _outcome(write.PartitionResult, key, refusal)


def _delete(
    shard: ShareCoordinatorShard, key: SharePartitionKey, _asked: object, _now_ms: int
) -> tuple[Records, delete.PartitionResult]:
    records, refusal = shard.delete(key)
    return records, _outcome(delete.PartitionResult, key, refusal)


def _read(
    shard: ShareCoordinatorShard, key: SharePartitionKey, asked: read.PartitionData, now_ms: int
) -> tuple[Records, read.PartitionResult]:
    records, state = shard.read(key, asked.leader_epoch, now_ms)
    if isinstance(state, Refusal):
        return records, _outcome(read.PartitionResult, key, state)
    return records, read.PartitionResult(
        partition=key.partition,
        state_epoch=state.state_epoch,
        start_offset=state.start_offset,
        state_batches=tuple(
            read.StateBatch(
                each.first_offset, each.last_offset, each.delivery_state, each.delivery_count
            )
            for each in state.state_batches
        ),
    )


def _summary(
    shard: ShareCoordinatorShard, key: SharePartitionKey, _asked: object, _now_ms: int
) -> tuple[Records, summary.PartitionResult]:
    state = shard.summary(key)
    if isinstance(state, Refusal):
        return (), _outcome(summary.PartitionResult, key, state)
    return (), summary.PartitionResult(
        partition=key.partition,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
    )


def _outcome(result: Callable[..., Any], key: SharePartitionKey, refusal: Refusal | None) -> Any:  # noqa: ANN401 - as `result`
    if refusal is None:
        return result(key.partition)
    return result(key.partition, refusal.error, refusal.message)


API_OPERATIONS: Final[dict[type, ApiOperation]] = {
    initialize.InitializeShareGroupStateRequest: ApiOperation(
        name="initialize-share-group-state",
        words="initialize share group state",
        wants_partitions=False,
        act=_initialize,
        response=initialize.InitializeShareGroupStateResponse,
        topic_result=initialize.InitializeStateResult,
        partition_result=initialize.PartitionResult,
    ),
    read.ReadShareGroupStateRequest: ApiOperation(
        name="read-update-leader-epoch-state",
        words="read share group state",
        looks_before=True,
        act=_read,
        response=read.ReadShareGroupStateResponse,
        topic_result=read.ReadStateResult,
        partition_result=read.PartitionResult,
    ),
    write.WriteShareGroupStateRequest: ApiOperation(
        name="write-share-group-state",
        words="write share group state",
        looks_before=True,
        act=_write,
        response=write.WriteShareGroupStateResponse,
        topic_result=write.WriteStateResult,
        partition_result=write.PartitionResult,
    ),
    delete.DeleteShareGroupStateRequest: ApiOperation(
        name="delete-share-group-state",
        words="delete share group state",
        act=_delete,
        response=delete.DeleteShareGroupStateResponse,
        topic_result=delete.DeleteStateResult,
        partition_result=delete.PartitionResult,
    ),
    summary.ReadShareGroupStateSummaryRequest: ApiOperation(
        name="read-share-group-state-summary",
        words="read share group state summary",
        act=_summary,
        response=summary.ReadShareGroupStateSummaryResponse,
        topic_result=summary.ReadStateSummaryResult,
        partition_result=summary.PartitionResult,
    ),
}
"""By the struct of requests."""
