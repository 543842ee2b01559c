"""Whether the topics that a group subscribes to are as they were when its epoch was written.

From 4.1 on a hash of them stands in the record of the epoch; before, a record of its own has them
by name, id and number of partitions.

Source: kafka 4.4, ModernGroup.computeMetadataHash; 4.0, ModernGroup.computeSubscriptionMetadata and
GroupMetadataManager.consumerGroupHeartbeat.
"""

from collections.abc import Iterable

from msgspec import Struct

from coordinator_sim.coordinator.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.kafka.orders.iteration_order import java_string_key
from coordinator_sim.messages.consumer_group_records import TopicMetadata
from coordinator_sim.messages.records import LogRecord


class TopicsSeen(Struct, frozen=True):
    """What a look at the topics found.

    Args:
        has_changed: Whether they are not as they were.
        metadata_hash: For the record of the epoch; 0 where topics have a record of their own.
        records: That record, where it is to be written; it comes before the epoch's.
        topics: What it says; None where there is a hash.
    """

    has_changed: bool
    metadata_hash: int = 0
    records: tuple[LogRecord, ...] = ()
    topics: tuple[TopicMetadata, ...] | None = None


def topics_seen(runtime: Runtime, group: ConsumerGroup, names: Iterable[str]) -> TopicsSeen:
    """Compare topics with those that the group knew last.

    Args:
        runtime: Its topics and its profile.
        group: As it is.
        names: What its members will subscribe to; those that do not exist count for nothing.
    """
    topics = runtime.topics
    if runtime.profile.consumer_hashes_topics:
        metadata_hash = topics.hash_of_all(names)
        return TopicsSeen(metadata_hash != group.epochs.metadata_hash, metadata_hash)
    known = (
        topics.by_name[name]
        for name in sorted(names, key=java_string_key)
        if name in topics.by_name
    )
    found = tuple(TopicMetadata(each.topic_id, each.name, each.partition_count) for each in known)
    if found == group.epochs.topics:
        return TopicsSeen(has_changed=False, topics=found)
    record = group.topics_record(found)
    return TopicsSeen(has_changed=True, records=(record,), topics=found)
