"""OffsetCommit, TxnOffsetCommit and OffsetFetch of the Scala coordinator.

A commit marks its offsets pending, appends them, and is answered by whatever becomes of the append.
A fetch reads the memory as it is. There is no waiting for the writes of others.

Source: kafka 3.9, GroupCoordinator.scala (handleCommitOffsets, handleTxnCommitOffsets,
handleFetchOffsets), GroupMetadataManager.storeOffsets and getOffsets, GroupCoordinatorAdapter.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.classic.join import create_group
from coordinator_sim.coordinator.offsets.commit_validation import (
    validate_commit,
    validate_txn_member,
    verify,
)
from coordinator_sim.coordinator.offsets.offset_records import (
    NO_RETENTION,
    java_length,
    offset_value_version,
)
from coordinator_sim.coordinator.runtime import (
    Effect,
    Parked,
    Partition,
    Runtime,
    commit_error,
    outcomes_by_topic,
)
from coordinator_sim.coordinator.scala.group_offsets import (
    Place,
    immutable_order,
)
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.offset_maps import asked_order, kept_order
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from coordinator_sim.messages.records import NO_PRODUCER_ID, LogBatch, LogRecord
from coordinator_sim.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)


def scala_commit(
    runtime: Runtime,
    partition: Partition,
    request: OffsetCommitRequest,
    parked: Parked,
) -> None:
    """Store offsets. Source: handleCommitOffsets and doCommitOffsets."""
    group = partition.classic_group(request.group_id)
    if group is None and request.generation_id_or_member_epoch >= 0:
        runtime.refuse(parked, ErrorCode.ILLEGAL_GENERATION)
        return
    if group is None:
        group = create_group(runtime, partition, request.group_id)
    error = validate_commit(runtime, request, group)
    if error is not ErrorCode.NONE:
        runtime.refuse(parked, error)
        return
    values = _values(runtime, request.topics, request.retention_time_ms)
    _store(runtime, partition, group, parked, values)


def scala_txn_commit(
    runtime: Runtime,
    partition: Partition,
    request: TxnOffsetCommitRequest,
    parked: Parked,
) -> None:
    """Hold offsets until the transaction ends. Source: handleTxnCommitOffsets."""
    group = partition.classic_group(request.group_id)
    if group is None:
        # QUIRK: also for a member of a generation, who is then told that it is unknown.
        group = create_group(runtime, partition, request.group_id)
    error = verify(runtime.verifier, request, parked.context.api_version)
    if error is ErrorCode.NONE:
        error = validate_txn_member(group, request)
    if error is not ErrorCode.NONE:
        runtime.refuse(parked, error)
        return
    _store(runtime, partition, group, parked, _values(runtime, request.topics, NO_RETENTION))


def _values(
    runtime: Runtime, topics: Iterable[OffsetCommitRequestTopic], retention_ms: int
) -> dict[Place, OffsetCommitValue]:
    """What is asked to be stored; a partition named twice is stored once, as named last."""
    return {
        Place(topic.name, p.partition_index): OffsetCommitValue(
            offset=p.committed_offset,
            leader_epoch=p.committed_leader_epoch,
            metadata=p.committed_metadata or "",
            commit_timestamp=times_ms[0],
            expire_timestamp=times_ms[1],
        )
        for topic in topics
        for p in topic.partitions
        for times_ms in (_times_ms(runtime, p.commit_timestamp, retention_ms),)
    }


def _times_ms(runtime: Runtime, given_ms: int, retention_ms: int) -> tuple[int, int]:
    """When an offset was committed and when it expires; -1 leaves that to the broker's retention.

    Source: KafkaApis.handleOffsetCommitRequest.
    """
    now_ms = runtime.wall_ms
    base_ms = now_ms if given_ms == -1 else given_ms
    is_open = retention_ms == NO_RETENTION
    if runtime.profile.offsets_carry_expiry:
        kept_ms = runtime.config.offsets_retention_ms if is_open else retention_ms
        return now_ms, base_ms + kept_ms
    return base_ms, NO_RETENTION if is_open else now_ms + retention_ms


def _store(
    runtime: Runtime,
    partition: Partition,
    group: Group,
    parked: Parked,
    values: dict[Place, OffsetCommitValue],
) -> None:
    """Source: GroupMetadataManager.storeOffsets."""
    request = parked.request
    producer_id, producer_epoch = NO_PRODUCER_ID, -1
    if isinstance(request, TxnOffsetCommitRequest):
        producer_id, producer_epoch = request.producer_id, request.producer_epoch
    limit = runtime.config.offset_metadata_max_bytes
    asked = tuple(values)
    valid = frozenset(
        place for place, value in values.items() if java_length(value.metadata) <= limit
    )
    store = StoreOffsets(runtime, group, parked, asked, producer_id)
    if not valid:
        if runtime.profile.appends_empty_commits:
            group.offsets.prepare(values)
            runtime.submit(partition, None, Effect(follow=store, is_empty_batch=True))
        else:
            store.answer()
        return
    maps, is_txn = runtime.profile.offset_maps, producer_id != NO_PRODUCER_ID
    ordered = kept_order(maps, asked, valid, transactional=is_txn)
    store.values = kept = {place: values[place] for place in ordered}
    # QUIRK: what was refused may be prepared too, and then nothing ever takes it back.
    prepared = values if runtime.profile.overlong_metadata_stays_pending else kept
    if not is_txn:
        group.offsets.prepare(prepared)
    else:
        runtime.open_groups.setdefault(producer_id, {})[group.group_id] = None
        group.offsets.prepare_txn(producer_id, prepared)
    effect = Effect(
        records=_records(runtime, group, kept),
        follow=store,
        apply=store,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=is_txn,
    )
    runtime.submit(partition, None, effect)


def _records(
    runtime: Runtime, group: Group, values: dict[Place, OffsetCommitValue]
) -> tuple[LogRecord, ...]:
    """What the log gets. Source: GroupMetadataManager.offsetCommitKey and offsetCommitValue."""
    return tuple(
        LogRecord(
            OffsetCommitKey(group.group_id, place.topic, place.partition),
            value,
            offset_value_version(runtime, value.expire_timestamp),
        )
        for place, value in values.items()
    )


@dataclass(slots=True, eq=False)
class StoreOffsets:
    """One commit on its way into the log. Source: createPutCacheCallback."""

    runtime: Runtime
    group: Group
    parked: Parked
    asked: tuple[Place, ...]
    producer_id: int
    values: dict[Place, OffsetCommitValue] | None = None
    base_offset: int = -1

    def applied(self, batch: LogBatch, written: int) -> None:  # noqa: ARG002 - Java looks back
        """The log has the batch; whether it counts is not known yet."""
        self.base_offset = batch.base_offset

    def finish(self, error: ErrorCode) -> None:
        """The append is through, or failed, or is late."""
        if self.group.state is not GroupState.DEAD:
            self._settle(error)
        if error is ErrorCode.NONE:
            self.runtime.counters.offset_commits += 1
        self.answer(commit_error(error))

    def _settle(self, error: ErrorCode) -> None:
        offsets, producer_id = self.group.offsets, self.producer_id
        for place, value in (self.values or {}).items():
            if error is not ErrorCode.NONE:
                # QUIRK: the group stays among those of the producer.
                if producer_id == NO_PRODUCER_ID:
                    offsets.failed(place, value)
                else:
                    offsets.failed_txn(producer_id, place)
            elif producer_id == NO_PRODUCER_ID:
                offsets.appended(place, value, self.base_offset)
            else:
                offsets.appended_txn(producer_id, place, value, self.base_offset)

    def answer(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Tell the outcome of each partition: `error` of those that were on their way."""
        kept = self.values or {}
        maps, is_txn = self.runtime.profile.offset_maps, self.producer_id != NO_PRODUCER_ID
        results = outcomes_by_topic(
            (place, error if place in kept else ErrorCode.OFFSET_METADATA_TOO_LARGE)
            for place in asked_order(maps, self.asked, transactional=is_txn)
        )
        if self.producer_id == NO_PRODUCER_ID:
            self.runtime.answer(self.parked, OffsetCommitResponse(topics=results))
        else:
            self.runtime.answer(self.parked, TxnOffsetCommitResponse(topics=results))


def scala_fetch_group(
    partition: Partition, wanted: OffsetFetchRequestGroup, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    """Read one group's offsets. Source: GroupMetadataManager.getOffsets."""
    group = partition.classic_group(wanted.group_id)
    if wanted.topics is None:
        places = [] if group is None else group.offsets.listed()
    else:
        places = immutable_order(
            Place(topic.name, index) for topic in wanted.topics for index in topic.partition_indexes
        )
    found: dict[str, list[OffsetFetchResponsePartitions]] = {}
    for place in places:
        found.setdefault(place.topic, []).append(_fetched(group, place, stable=require_stable))
    return OffsetFetchResponseGroup(
        group_id=wanted.group_id,
        topics=tuple(
            OffsetFetchResponseTopics(name, partitions=tuple(offsets))
            for name, offsets in found.items()
        ),
    )


def _fetched(group: Group | None, place: Place, *, stable: bool) -> OffsetFetchResponsePartitions:
    index = place.partition
    if group is None:
        return OffsetFetchResponsePartitions(index, committed_offset=-1)
    if stable and group.offsets.is_unstable(place):
        return OffsetFetchResponsePartitions(
            index, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT, committed_offset=-1
        )
    held = group.offsets.committed.get(place)
    if held is None:
        return OffsetFetchResponsePartitions(index, committed_offset=-1)
    value = held[0]
    return OffsetFetchResponsePartitions(index, value.offset, value.leader_epoch, value.metadata)
