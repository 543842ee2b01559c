"""Topics that are gone leave what is known of the state of their partitions.

The share coordinator hears of them by itself.

Source: kafka 4.4, GroupMetadataManager.maybeCleanupShareGroupState; GroupCoordinatorService
.handleTopicsDeletion, CoordinatorRuntime.scheduleWriteAllOperation.
"""

from collections.abc import Mapping
from typing import TypeVar

from coordinator_sim.coordinator.effects import Effect
from coordinator_sim.coordinator.inspection import partitions_in_order
from coordinator_sim.coordinator.runtime import Partition, PartitionState, Runtime
from coordinator_sim.coordinator.share.group import state_record
from coordinator_sim.coordinator.share.state import ShareState, state_value
from coordinator_sim.messages.records import LogRecord

T = TypeVar("T")


def forget_share_topics(runtime: Runtime, topic_ids: frozenset[bytes]) -> None:
    """Forget topics in the state of every share group, one write for each partition led here."""
    for partition in partitions_in_order(runtime):
        if partition.state is not PartitionState.ACTIVE:
            continue
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
