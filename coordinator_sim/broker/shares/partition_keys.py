"""The names of share partitions: texts, hashes, and the partition of the topic that keeps each.

Source: kafka 4.3, server-common/.../share/SharePartitionKey.java; Uuid.java, fromString;
ShareCoordinatorService.partitionFor.
"""

import re
from base64 import urlsafe_b64decode
from typing import Final

from coordinator_sim.broker.shares.persister import SharePartitionKey
from coordinator_sim.kafka.java_numbers import java_int
from coordinator_sim.kafka.orders.iteration_order import uuid_hash
from coordinator_sim.kafka.partitioning import java_string_hash, partition_for
from coordinator_sim.messages.codec.json_form import uuid_text

_PARTS: Final = 3
_UUID: Final = re.compile(r"([A-Za-z0-9_-]{22})(?:==)?")
_TRIMMED: Final = "".join(map(chr, range(0x21)))
"""What String.trim takes away."""


def coordinator_key(key: SharePartitionKey) -> str:
    """A share partition as FindCoordinator names it. Source: asCoordinatorKey."""
    return f"{key.group_id}:{uuid_text(key.topic_id)}:{key.partition}"


def state_partition(key: SharePartitionKey, partition_count: int) -> int:
    """The partition of `__share_group_state` that keeps a share partition."""
    return partition_for(coordinator_key(key), partition_count)


def key_from(text: str) -> SharePartitionKey | None:
    """The share partition that a text names, read from its end: a group may have colons.

    None where the text names none. Source: SharePartitionKey.getInstance.
    """
    tokens = text.split(":")
    while tokens and not tokens[-1]:
        # As String.split does.
        tokens.pop()
    if len(tokens) < _PARTS:
        return None
    group_id = ":".join(tokens[:-2])
    topic = _UUID.fullmatch(tokens[-2])
    partition = java_int(tokens[-1])
    if not group_id.strip(_TRIMMED) or topic is None or partition is None:
        return None
    return SharePartitionKey(group_id, urlsafe_b64decode(f"{topic[1]}=="), partition)


def share_partition_hash(key: SharePartitionKey) -> int:
    """The signed 32-bit hash of a share partition without its topic's name.

    Source: SharePartitionKey.hashCode, TopicIdPartition.hashCode and TopicPartition.hashCode.
    """
    place = 31 * (31 + uuid_hash(key.topic_id)) + 31 * (31 + key.partition)
    mixed = 31 * (31 + java_string_hash(key.group_id)) + place & 0xFFFFFFFF
    return mixed - (1 << 32) if mixed >= 1 << 31 else mixed
