"""DeleteShareGroupOffsets: an empty share group forgets topics, and so does the share coordinator.

A record moves the topics to those that are to be forgotten, the call leaves, and another record
takes them off the list once it has succeeded. A deleted topic leaves the list at once: the share
coordinator hears of it by itself.

Source: kafka 4.4, GroupCoordinatorShard.initiateDeleteShareGroupOffsets, GroupMetadataManager
.sharePartitionsEligibleForOffsetDeletion and completeDeleteShareGroupOffsets;
GroupCoordinatorService.deleteShareGroupOffsets, handleTopicsDeletion and what they call;
GroupMetadataManager.maybeCleanupShareGroupState.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec.structs import replace

from coordinator_sim.coordinator.effects import Effect, Parked
from coordinator_sim.coordinator.epoch_refusals import Refusal, group_of_type
from coordinator_sim.coordinator.modern.share.group import (
    ShareGroup,
    ShareState,
    StoredTopic,
    state_record,
    state_value,
)
from coordinator_sim.coordinator.modern.share.persister import DeleteState, PersisterAnswer
from coordinator_sim.coordinator.runtime import (
    Partition,
    PartitionState,
    Runtime,
    partition_error,
)
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.orders.iteration_order import uuid_hash
from coordinator_sim.kafka.orders.java_map import JavaHashMap
from coordinator_sim.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.schema import ZERO_UUID

T = TypeVar("T")


def forget_share_topics(runtime: Runtime, topic_ids: frozenset[bytes]) -> None:
    """Forget topics in the state of every share group, one write for each partition led here."""
    for partition in runtime.active():
        records = _records(runtime, partition, topic_ids)
        if records:
            runtime.submit(partition, None, Effect(records=records))


def _records(
    runtime: Runtime, partition: Partition, topic_ids: frozenset[bytes]
) -> tuple[LogRecord, ...]:
    records: list[LogRecord] = []
    for group_id, state in partition.share_states.items():
        after = ShareState(
            initializing=_without(state.initializing, topic_ids),
            initialized=_without(state.initialized, topic_ids),
            deleting=state.deleting - topic_ids,
        )
        if after != state:
            records.append(state_record(group_id, state_value(after, runtime.topics)))
    return tuple(records)


def _without(topics: Mapping[bytes, T], topic_ids: frozenset[bytes]) -> dict[bytes, T]:
    return {topic_id: each for topic_id, each in topics.items() if topic_id not in topic_ids}


_NOTHING = "There is no offset information to delete."


def refused_offset_deletion(
    error: ErrorCode, text: str | None = None
) -> DeleteShareGroupOffsetsResponse:
    """The answer to a request that is refused as a whole."""
    return DeleteShareGroupOffsetsResponse(
        error_code=error, error_message=error_message(error) if text is None else text
    )


@dataclass(slots=True)
class _Chosen:
    """What a request would have forgotten."""

    initialized: dict[bytes, StoredTopic]
    deleting: set[bytes]
    doomed: list[tuple[bytes, tuple[int, ...]]] = field(default_factory=list)
    refused: list[DeleteShareGroupOffsetsResponseTopic] = field(default_factory=list)


def delete_share_offsets(
    runtime: Runtime, partition: Partition, request: DeleteShareGroupOffsetsRequest, parked: Parked
) -> Effect:
    """Move topics to those that are to be forgotten, and answer when that is done."""
    group_id = request.group_id
    group = group_of_type(ShareGroup, group_id, partition.groups.get(group_id))
    if isinstance(group, Refusal):
        return Effect(response=refused_offset_deletion(group.error, group.text))
    if not group.is_empty:
        return Effect(response=refused_offset_deletion(ErrorCode.NON_EMPTY_GROUP))
    state = partition.share_states.get(group_id)
    if state is None:
        return Effect(response=DeleteShareGroupOffsetsResponse())
    chosen = _chosen(runtime, state, request)
    after = ShareState(state.initializing, chosen.initialized, frozenset(chosen.deleting))
    records = (state_record(group_id, state_value(after, runtime.topics)),)
    refused = tuple(chosen.refused)
    if not chosen.doomed:
        return Effect(records=records, response=DeleteShareGroupOffsetsResponse(responses=refused))
    call = DeleteState(group_id, tuple(chosen.doomed))
    return Effect(records=records, follow=_Deleting(runtime, partition, parked, call, refused))


def _chosen(
    runtime: Runtime, state: ShareState, request: DeleteShareGroupOffsetsRequest
) -> _Chosen:
    """Look at the topics one after the other."""
    chosen = _Chosen(dict(state.initialized), set(state.deleting))
    for asked in request.topics:
        name = asked.topic_name
        topic = runtime.topics.by_name.get(name)
        if topic is None:
            chosen.refused.append(_unknown(name, None))
        elif topic.topic_id in chosen.initialized:
            kept = chosen.initialized.pop(topic.topic_id)
            chosen.doomed.append((topic.topic_id, tuple(sorted(kept.partitions))))
            chosen.deleting.add(topic.topic_id)
        elif topic.topic_id in chosen.deleting:
            chosen.doomed.append((topic.topic_id, tuple(range(topic.partition_count))))
        else:
            chosen.refused.append(_unknown(name, _NOTHING))
    return chosen


def _unknown(name: str, text: str | None) -> DeleteShareGroupOffsetsResponseTopic:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DeleteShareGroupOffsetsResponseTopic(
        name, error_code=error, error_message=error_message(error) if text is None else text
    )


@dataclass(slots=True, frozen=True)
class _Deleting:
    """A deletion whose first record is written, and whose call is under way."""

    runtime: Runtime
    partition: Partition
    parked: Parked
    request: DeleteState
    refused: tuple[DeleteShareGroupOffsetsResponseTopic, ...]

    def finish(self, error: ErrorCode) -> None:
        """Ask once the record is committed; a refused one is told as any is."""
        if error is NO_ERROR:
            self.runtime.ask_persister(self.request, self)

    def answered(self, answer: PersisterAnswer) -> None:
        """Tell what failed; what succeeded is noted first.

        Source: handleDeleteShareGroupOffsetStateResult.
        """
        if answer.failure is not NO_ERROR:
            self.runtime.answer(self.parked, refused_offset_deletion(answer.failure))
            return
        refused = list(self.refused)
        done: JavaHashMap[bytes, str] = JavaHashMap(uuid_hash)
        for topic_id, outcomes in answer.topics:
            topic = self.runtime.topics.by_id.get(topic_id)
            name = "" if topic is None else topic.name
            errors = [outcome.error for outcome in outcomes if outcome.error is not NO_ERROR]
            if not errors:
                done.put(topic_id, name)
                continue
            refused.append(
                DeleteShareGroupOffsetsResponseTopic(
                    name, topic_id, errors[0], error_message(errors[0])
                )
            )
        step = _Complete(self, tuple(done.items()), tuple(refused))
        if len(done):
            self.runtime.scheduled.append(step)
        else:
            self.runtime.answer(self.parked, step.response(()))


@dataclass(slots=True, frozen=True)
class _Complete:
    """The write that takes topics off the list of those to be forgotten."""

    deleting: _Deleting
    done: tuple[tuple[bytes, str], ...]
    refused: tuple[DeleteShareGroupOffsetsResponseTopic, ...]

    def run(self, runtime: Runtime) -> None:
        """Write it, and answer when it is committed."""
        partition, parked = self.deleting.partition, self.deleting.parked
        if partition.state is not PartitionState.ACTIVE:
            runtime.refuse(parked, partition_error(partition, runtime.profile))
            return
        group_id = self.deleting.request.group_id
        state = partition.share_states.get(group_id)
        if state is None:
            runtime.submit(partition, parked, Effect(response=self.response(())))
            return
        after = replace(state, deleting=state.deleting - {topic_id for topic_id, _ in self.done})
        record = state_record(group_id, state_value(after, runtime.topics))
        runtime.submit(
            partition, parked, Effect(records=(record,), response=self.response(self.done))
        )

    def response(self, done: Iterable[tuple[bytes, str]]) -> DeleteShareGroupOffsetsResponse:
        """What succeeded, then what did not.

        Kafka gives a topic that was deleted meanwhile the name null, which it then cannot write.
        Source: KafkaApis.handleDeleteShareGroupOffsetsRequest, handleError.
        """
        topics = (
            *(DeleteShareGroupOffsetsResponseTopic(name, topic_id) for topic_id, name in done),
            *self.refused,
        )
        if any(each.topic_id != ZERO_UUID and not each.topic_name for each in topics):
            return refused_offset_deletion(ErrorCode.UNKNOWN_SERVER_ERROR)
        return DeleteShareGroupOffsetsResponse(responses=topics)
