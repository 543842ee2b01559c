"""The state of a share group's partitions: the share coordinator is asked to begin with it.

A heartbeat finds topics that are subscribed to and not initialised; a record notes that they are
asked for, the call leaves once that is committed, and its answer moves them on in another record.

Source: kafka 4.4, GroupMetadataManager.subscribedTopicsChangeMap, addInitializingTopicsRecords,
initializeShareGroupState and uninitializeShareGroupState; GroupCoordinatorService
.persisterInitialize and what it calls.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.effects import Effect
from coordinator_sim.coordinator.modern.share.group import (
    ShareGroup,
    ShareState,
    StoredTopic,
    combined,
    state_record,
    state_value,
    topic_name,
)
from coordinator_sim.coordinator.modern.share.persister import (
    InitializeState,
    PartitionStart,
    PersisterAnswer,
)
from coordinator_sim.coordinator.runtime import Partition, PartitionState, Runtime
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.orders.iteration_order import uuid_hash
from coordinator_sim.kafka.orders.java_map import JavaHashMap
from coordinator_sim.messages.records import LogRecord

_ANY_OFFSET: Final = -1
_FIRST_OFFSET: Final = 0

Partitions = Mapping[bytes, frozenset[int]]
"""Partitions by topic id."""


def topics_to_initialize(
    runtime: Runtime, partition: Partition, group_id: str, names: Iterable[str]
) -> dict[bytes, StoredTopic]:
    """Partitions of these topics whose state is not kept, nor was asked for a short while ago.

    Source: subscribedTopicsChangeMap; GroupCoordinatorConfig.
    """
    now_ms = runtime.wall_ms
    config = runtime.config
    # A call is not repeated before the record of its answer can be late.
    retry_ms = max(
        config.group_share_initialize_retry_interval_ms, config.offsets_commit_timeout_ms
    )
    state = partition.share_states.get(group_id) or ShareState()
    fresh = {
        topic_id: topic
        for topic_id, topic in state.initializing.items()
        if now_ms - topic.replayed_ms < retry_ms
    }
    known = combined(state.initialized, fresh)
    found: dict[bytes, StoredTopic] = {}
    for name in names:
        topic = runtime.topics.by_name.get(name)
        if topic is None:
            continue
        has = known[topic.topic_id].partitions if topic.topic_id in known else frozenset[int]()
        if not has or len(has) < topic.partition_count:
            missing = frozenset(range(topic.partition_count)) - has
            found[topic.topic_id] = StoredTopic(name, missing, now_ms)
    return found


def initializing_record(
    runtime: Runtime, partition: Partition, group_id: str, missing: Mapping[bytes, StoredTopic]
) -> LogRecord:
    """Note that these partitions are asked for. Source: addInitializingTopicsRecords."""
    state = partition.share_states.get(group_id) or ShareState()
    initializing = combined(state.initializing, missing)
    after = ShareState(
        initializing=initializing,
        initialized=state.initialized,
        deleting=state.deleting - initializing.keys(),
    )
    return state_record(group_id, state_value(after, runtime.topics))


def initialize_call(
    runtime: Runtime,
    partition: Partition,
    group_id: str,
    epoch: int,
    missing: Mapping[bytes, StoredTopic],
) -> InitializeState:
    """The call for these partitions; from 4.4 on new partitions of a known topic begin at 0.

    Source: buildInitializeShareGroupStateRequest.
    """
    state = partition.share_states.get(group_id) or ShareState()
    known = {*state.initialized, *state.initializing}
    begins_at_zero = runtime.profile.share_new_partitions_begin_at_zero
    ordered = JavaHashMap(uuid_hash, missing.items())
    topics = []
    for topic_id, topic in ordered.items():
        start = _FIRST_OFFSET if begins_at_zero and topic_id in known else _ANY_OFFSET
        starts = tuple(PartitionStart(index, epoch, start) for index in sorted(topic.partitions))
        topics.append((topic_id, starts))
    return InitializeState(group_id, tuple(topics))


@dataclass(slots=True, frozen=True)
class AskToInitialize:
    """Once the record is committed the call leaves; the heartbeat's answer does not wait for it."""

    runtime: Runtime
    partition: Partition
    request: InitializeState

    def finish(self, error: ErrorCode) -> None:
        """Ask by a timer that is due at once, unless the record was refused."""
        if error is NO_ERROR:
            runtime = self.runtime
            name = str(runtime.new_call_id())
            key = TimerKey(TimerKind.PERSISTER, self.request.group_id, name)
            runtime.timers.schedule(key, runtime.now_ms, now_ms=runtime.now_ms, data=self)

    def ask(self) -> None:
        """Ask now."""
        asked = Initializing(self.runtime, self.partition, self.request)
        self.runtime.ask_persister(self.request, asked)


@dataclass(slots=True, frozen=True)
class Initializing:
    """A call under way."""

    runtime: Runtime
    partition: Partition
    request: InitializeState

    def answered(self, answer: PersisterAnswer) -> None:
        """Move the partitions on, or back if any of them failed.

        Source: handlePersisterInitializeResponse.
        """
        group_id = self.request.group_id
        if answer.failure is not NO_ERROR:
            failed = {
                topic_id: frozenset(each) for topic_id, each in self.request.partitions_by_topic()
            }
            uninitialize(self.runtime, self.partition, group_id, failed)
            return
        partitions = {
            topic_id: frozenset(outcome.partition for outcome in outcomes)
            for topic_id, outcomes in answer.topics
        }
        has_failed = any(
            outcome.error is not NO_ERROR for _, outcomes in answer.topics for outcome in outcomes
        )
        if has_failed:
            uninitialize(self.runtime, self.partition, group_id, partitions)
        elif partitions:
            _initialize(self.runtime, self.partition, group_id, partitions)


@dataclass(slots=True, frozen=True)
class UninitializeOnError:
    """The record of an answer was refused, or is late: the partitions are asked for no more."""

    runtime: Runtime
    partition: Partition
    group_id: str
    partitions: Partitions

    def finish(self, error: ErrorCode) -> None:
        """Go back in a step of its own."""
        if error is not NO_ERROR:
            self.runtime.scheduled.append(self)

    def run(self, runtime: Runtime) -> None:
        """Take them back."""
        uninitialize(runtime, self.partition, self.group_id, self.partitions)


def _initialize(
    runtime: Runtime, partition: Partition, group_id: str, partitions: Partitions
) -> None:
    """The state of these partitions is kept now: they may be assigned."""
    follow = UninitializeOnError(runtime, partition, group_id, partitions)
    if partition.state is not PartitionState.ACTIVE:
        return
    if not isinstance(partition.groups.get(group_id), ShareGroup):
        follow.run(runtime)
        return
    now_ms = runtime.wall_ms
    done = {
        topic_id: StoredTopic(topic_name(runtime.topics, topic_id), numbers, now_ms)
        for topic_id, numbers in partitions.items()
    }
    state = partition.share_states.get(group_id) or ShareState()
    after = ShareState(
        initializing=without(state.initializing, partitions),
        initialized=combined(state.initialized, done),
        deleting=state.deleting,
    )
    record = state_record(group_id, state_value(after, runtime.topics))
    _write(runtime, partition, Effect(records=(record,), follow=follow))


def uninitialize(
    runtime: Runtime, partition: Partition, group_id: str, partitions: Partitions
) -> None:
    """Stop initializing these share partitions. Source: uninitializeShareGroupState."""
    if partition.state is not PartitionState.ACTIVE:
        return
    state = partition.share_states.get(group_id)
    if state is None or not state.initializing or not partitions:
        _write(runtime, partition, Effect())
        return
    after = replace(state, initializing=without(state.initializing, partitions))
    record = state_record(group_id, state_value(after, runtime.topics))
    _write(runtime, partition, Effect(records=(record,)))


def _write(runtime: Runtime, partition: Partition, effect: Effect) -> None:
    try:
        runtime.submit(partition, None, effect)
    except OperationAborted:
        return


def without(
    topics: Mapping[bytes, StoredTopic], partitions: Partitions
) -> dict[bytes, StoredTopic]:
    """The topics without these partitions; one that has none left is left out."""
    found: dict[bytes, StoredTopic] = {}
    for topic_id, topic in topics.items():
        if topic_id not in partitions:
            found[topic_id] = topic
        elif left := topic.partitions - partitions[topic_id]:
            found[topic_id] = replace(topic, partitions=left)
    return found
