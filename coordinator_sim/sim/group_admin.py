"""Admin requests of a worker about a sink's consumer group, sent to the group's coordinator.

Source: kafka trunk, clients/.../admin/internals/, ListConsumerGroupOffsetsHandler,
AlterConsumerGroupOffsetsHandler, DeleteConsumerGroupOffsetsHandler, DeleteConsumerGroupsHandler.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TypeVar

from msgspec import Struct

from coordinator_sim.connect.effects import (
    AlterGroupOffsets,
    DeleteGroup,
    DeleteGroupOffsets,
    ListGroupOffsets,
)
from coordinator_sim.connect.thread import Blocking
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from coordinator_sim.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from coordinator_sim.messages.requests import Request
from coordinator_sim.sim.kafka_client import DEFAULT_API_TIMEOUT_MS, KafkaClient, ask, leader_of

GroupEffect = ListGroupOffsets | AlterGroupOffsets | DeleteGroupOffsets | DeleteGroup
"""Effects carried out here."""
R = TypeVar("R", bound=Struct)


def carry_out_for_group(client: KafkaClient, effect: GroupEffect) -> Blocking[object]:
    """Carry an effect out; return the value that its docstring names.

    Raises:
        TimeoutException: no answer came within a minute.
        ClientException: an error that is not retriable.
    """
    match effect:
        case ListGroupOffsets(group_id=group_id):
            return (yield from _list(client, group_id))
        case AlterGroupOffsets(group_id=group_id, offsets=offsets):
            commit = OffsetCommitRequest(
                group_id=group_id,
                topics=tuple(
                    OffsetCommitRequestTopic(
                        topic,
                        partitions=tuple(
                            OffsetCommitRequestPartition(each.partition, offsets[each])
                            for each in own
                        ),
                    )
                    for topic, own in _by_topic(offsets)
                ),
            )
            yield from _ask(client, group_id, commit, OffsetCommitResponse, _commit_errors)
        case DeleteGroupOffsets(group_id=group_id, partitions=partitions):
            topics = tuple(
                OffsetDeleteRequestTopic(
                    topic, tuple(OffsetDeleteRequestPartition(each.partition) for each in own)
                )
                for topic, own in _by_topic(partitions)
            )
            delete = OffsetDeleteRequest(group_id=group_id, topics=topics)
            yield from _ask(client, group_id, delete, OffsetDeleteResponse, _delete_errors)
        case DeleteGroup(group_id=group_id):
            wanted = DeleteGroupsRequest(groups_names=(group_id,))
            yield from _ask(client, group_id, wanted, DeleteGroupsResponse, _group_errors)
    return None


def _list(client: KafkaClient, group_id: str) -> Blocking[dict[TopicPartition, int]]:
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=None),))
    response = yield from _ask(client, group_id, request, OffsetFetchResponse, _fetch_errors)
    return {
        TopicPartition(topic.name, each.partition_index): each.committed_offset
        for topic in response.groups[0].topics
        for each in topic.partitions
        if each.committed_offset >= 0
    }


def _ask(
    client: KafkaClient,
    group_id: str,
    request: Request,
    kind: type[R],
    errors_of: Callable[[R], Iterable[ErrorCode]],
) -> Blocking[R]:
    """Ask the group's coordinator until an answer has no retriable error."""

    def coordinator() -> int | None:
        return leader_of(client, OFFSETS_TOPIC, client.world.offsets_partition_of(group_id))

    deadline_ms = client.now_ms + DEFAULT_API_TIMEOUT_MS
    return (
        yield from ask(
            client, coordinator, request, kind, errors_of=errors_of, deadline_ms=deadline_ms
        )
    )


def _fetch_errors(response: OffsetFetchResponse) -> Iterable[ErrorCode]:
    for group in response.groups:
        yield group.error_code
        yield from (each.error_code for topic in group.topics for each in topic.partitions)


def _commit_errors(response: OffsetCommitResponse) -> Iterable[ErrorCode]:
    return (each.error_code for topic in response.topics for each in topic.partitions)


def _delete_errors(response: OffsetDeleteResponse) -> Iterable[ErrorCode]:
    yield response.error_code
    yield from (each.error_code for topic in response.topics for each in topic.partitions)


def _group_errors(response: DeleteGroupsResponse) -> Iterable[ErrorCode]:
    return (result.error_code for result in response.results)


def _by_topic(
    partitions: Iterable[TopicPartition],
) -> list[tuple[str, Sequence[TopicPartition]]]:
    ordered = sorted(partitions)
    return [(topic, list(own)) for topic, own in groupby(ordered, key=lambda each: each.topic)]
