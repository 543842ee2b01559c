"""Admin requests of a live worker about a sink's consumer group, by librdkafka."""

import time
from typing import Final

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
)
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient

from coordinator_sim.connect.effects import (
    AlterGroupOffsets,
    DeleteGroup,
    DeleteGroupOffsets,
    ListGroupOffsets,
)
from coordinator_sim.kafka.resources import TopicPartition

GroupEffect = ListGroupOffsets | AlterGroupOffsets | DeleteGroupOffsets | DeleteGroup
"""Effects carried out here."""

_TIMEOUT_S: Final = 60.0
"""`default.api.timeout.ms` of the admin client."""
_RETRY_BACKOFF_S: Final = 0.1
_RETRIED: Final = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


def carry_out_for_group(admin: AdminClient, effect: GroupEffect) -> object:
    """Carry an effect out and wait; return the value that its docstring names.

    DEVIATION: single offsets are not deleted, for librdkafka's Python client has no such call; the
    request fails as on a broker without it.

    Raises:
        KafkaException: the group refuses, or cannot be asked.
    """
    deadline_s = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            return _carry_out(admin, effect)
        except KafkaException as error:
            # Java's admin client retries these by itself.
            if error.args[0].code() not in _RETRIED or time.monotonic() >= deadline_s:
                raise
        time.sleep(_RETRY_BACKOFF_S)


def _carry_out(admin: AdminClient, effect: GroupEffect) -> object:
    group_id = effect.group_id
    match effect:
        case ListGroupOffsets():
            wanted = ConsumerGroupTopicPartitions(group_id)
            found = admin.list_consumer_group_offsets([wanted])[group_id].result()
            return {
                TopicPartition(each.topic, each.partition): each.offset
                for each in found.topic_partitions or ()
                if each.offset >= 0
            }
        case AlterGroupOffsets(offsets=offsets):
            positions = [Position(*each, offset) for each, offset in offsets.items()]
            altered = ConsumerGroupTopicPartitions(group_id, positions)
            result = admin.alter_consumer_group_offsets([altered])[group_id].result()
            for each in result.topic_partitions or ():
                if each.error is not None:
                    raise KafkaException(each.error)
        case DeleteGroup():
            admin.delete_consumer_groups([group_id])[group_id].result()
        case DeleteGroupOffsets():
            raise KafkaException(KafkaError(KafkaError.UNSUPPORTED_VERSION))
    return None
