"""What the names of topics tell. Which names a topic may have is `protocol.topic_names`.

Source: kafka trunk, clients/.../common/internals/Topic.java.
"""

from typing import Final

from coordinator_sim.broker.discovery import TRANSACTIONS_TOPIC
from coordinator_sim.protocol.partitioning import OFFSETS_TOPIC

CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
SHARE_STATE_TOPIC: Final = "__share_group_state"
_INTERNAL: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})


def is_internal(name: str) -> bool:
    """Whether it is a topic of the brokers themselves."""
    return name in _INTERNAL


def has_metric_signs(name: str) -> bool:
    """Whether metrics may confuse the topic with another: it has a `.` or `_`."""
    return "." in name or "_" in name


def metric_name(name: str) -> str:
    """The name as metrics have it: topics that differ only in `.` and `_` collide there."""
    return name.replace(".", "_")
