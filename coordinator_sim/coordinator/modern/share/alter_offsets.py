"""AlterShareGroupOffsets: from where the partitions of an empty share group are read.

The group coordinator notes the partitions and has the share coordinator initialise them anew; a
group that is not there yet comes into being so.

Source: kafka 4.4, GroupMetadataManager.alterShareGroupOffsets; GroupCoordinatorService
.alterShareGroupOffsets, persisterInitialize and buildErrorResponse.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from coordinator_sim.coordinator.common.timeline import Timeline
from coordinator_sim.coordinator.effects import Effect, Parked
from coordinator_sim.coordinator.epoch_refusals import other_type
from coordinator_sim.coordinator.modern.share.group import ShareGroup, StoredTopic
from coordinator_sim.coordinator.modern.share.initializing import Initializing, initializing_record
from coordinator_sim.coordinator.modern.share.persister import (
    InitializeState,
    PartitionStart,
    PersisterAnswer,
)
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from coordinator_sim.trace.epoch_members import id_text
from coordinator_sim.trace.epoch_records import SHARE


def refused_alteration(error: ErrorCode, text: str | None = None) -> AlterShareGroupOffsetsResponse:
    """The answer to a request that is refused as a whole."""
    return AlterShareGroupOffsetsResponse(
        error_code=error, error_message=error_message(error) if text is None else text
    )


def alter_share_offsets(
    runtime: Runtime, partition: Partition, request: AlterShareGroupOffsetsRequest, parked: Parked
) -> Effect | ErrorCode | None:
    """Note the partitions, ask for their state, and answer when that was answered."""
    known = partition.groups.get(request.group_id)
    if known is not None and not isinstance(known, ShareGroup):
        refusal = other_type(SHARE, request.group_id)
        runtime.answer(parked, refused_alteration(refusal.error, refusal.text))
        return None
    group = known or ShareGroup(Timeline(), request.group_id, runtime.profile)
    if not group.is_empty:
        return ErrorCode.NON_EMPTY_GROUP
    now_ms = runtime.wall_ms
    wanted: dict[bytes, StoredTopic] = {}
    starts: list[tuple[bytes, tuple[PartitionStart, ...]]] = []
    answered: list[AlterShareGroupOffsetsResponseTopic] = []
    for topic in request.topics:
        found = runtime.topics.by_name.get(topic.topic_name)
        count = 0 if found is None else found.partition_count
        outcomes = _outcomes(topic, count)
        if found is None:
            answered.append(
                AlterShareGroupOffsetsResponseTopic(topic.topic_name, partitions=outcomes)
            )
            continue
        offsets = {
            each.partition_index: each.start_offset
            for each in topic.partitions
            if each.partition_index < count
        }
        wanted[found.topic_id] = StoredTopic(topic.topic_name, frozenset(offsets), now_ms)
        if offsets:
            epoch = group.epochs.group_epoch
            partitions = tuple(
                PartitionStart(index, epoch, offsets[index]) for index in sorted(offsets)
            )
            starts.append((found.topic_id, partitions))
        answered.append(
            AlterShareGroupOffsetsResponseTopic(topic.topic_name, found.topic_id, outcomes)
        )
    record = initializing_record(runtime, partition, request.group_id, wanted) if wanted else None
    response = AlterShareGroupOffsetsResponse(responses=tuple(answered))
    records = () if record is None else (record,)
    if not starts:
        return Effect(records=records, response=response)
    call = InitializeState(request.group_id, tuple(starts))
    follow = _Altering(runtime, partition, parked, call, response)
    return Effect(records=records, follow=follow)


def _outcomes(
    topic: AlterShareGroupOffsetsRequestTopic, count: int
) -> tuple[AlterShareGroupOffsetsResponsePartition, ...]:
    """What becomes of the partitions: those beyond the topic's are refused."""
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return tuple(
        AlterShareGroupOffsetsResponsePartition(each.partition_index)
        if each.partition_index < count
        else _failed(each.partition_index, unknown)
        for each in topic.partitions
    )


def _failed(index: int, error: ErrorCode) -> AlterShareGroupOffsetsResponsePartition:
    return AlterShareGroupOffsetsResponsePartition(index, error, error_message(error))


@dataclass(slots=True, frozen=True)
class _Altering:
    """An alteration whose record is written, and whose call is under way."""

    runtime: Runtime
    partition: Partition
    parked: Parked
    request: InitializeState
    response: AlterShareGroupOffsetsResponse

    def finish(self, error: ErrorCode) -> None:
        """Call the persister once the record is committed.

        QUIRK: a negative partition is refused only after its record is written.
        Source: DefaultStatePersister.validate.
        """
        if error is not NO_ERROR:
            return
        for topic_id, indexes in self.request.partitions_by_topic():
            for index in indexes:
                if index < 0:
                    text = (
                        "Initialize share group parameters has invalid partitionId - "
                        f"{self.request.group_id} {id_text(topic_id)} {index}"
                    )
                    refusal = refused_alteration(ErrorCode.UNKNOWN_SERVER_ERROR, text)
                    self.runtime.answer(self.parked, refusal)
                    return
        self.runtime.ask_persister(self.request, self)

    def answered(self, answer: PersisterAnswer) -> None:
        """Tell what the share coordinator said; what was asked for stays asked for if it failed."""
        if answer.failure is not NO_ERROR:
            self.runtime.answer(self.parked, self._failed_alike(answer.failure))
            return
        errors: dict[tuple[bytes, int], ErrorCode] = {
            (topic_id, outcome.partition): outcome.error
            for topic_id, outcomes in answer.topics
            for outcome in outcomes
            if outcome.error is not NO_ERROR
        }
        if errors:
            self.runtime.answer(self.parked, self._failed_partly(errors))
            return
        self.runtime.enqueue(_Initialized(self, answer))
        self.runtime.answer(self.parked, self.response)

    def _failed_alike(self, error: ErrorCode) -> AlterShareGroupOffsetsResponse:
        return AlterShareGroupOffsetsResponse(
            error_code=error,
            error_message=error_message(error),
            responses=tuple(
                replace(
                    topic,
                    partitions=tuple(
                        _failed(each.partition_index, error) for each in topic.partitions
                    ),
                )
                for topic in self.response.responses
            ),
        )

    def _failed_partly(
        self, errors: dict[tuple[bytes, int], ErrorCode]
    ) -> AlterShareGroupOffsetsResponse:
        def merged(
            topic_id: bytes, outcome: AlterShareGroupOffsetsResponsePartition
        ) -> AlterShareGroupOffsetsResponsePartition:
            error = errors.get((topic_id, outcome.partition_index))
            is_own = outcome.error_code is not NO_ERROR
            return outcome if is_own or error is None else _failed(outcome.partition_index, error)

        return AlterShareGroupOffsetsResponse(
            responses=tuple(
                replace(
                    topic,
                    partitions=tuple(merged(topic.topic_id, each) for each in topic.partitions),
                )
                for topic in self.response.responses
            )
        )


@dataclass(slots=True, frozen=True)
class _Initialized:
    """The state is kept: that is noted in a step of its own, for which nobody waits."""

    altering: _Altering
    answer: PersisterAnswer

    def run(self, runtime: Runtime) -> None:
        """Note it."""
        altering = self.altering
        Initializing(runtime, altering.partition, altering.request).answered(self.answer)
