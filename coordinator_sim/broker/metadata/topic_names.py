"""Internal topics and names in metrics. `kafka.topic_names` checks which names are valid.

Source: kafka trunk, clients/.../common/internals/Topic.java.
"""

from typing import Final

from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC

CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
_INTERNAL: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})


def is_internal(name: str) -> bool:
    """Whether a topic is internal."""
    return name in _INTERNAL


def has_metric_signs(name: str) -> bool:
    """Whether the name has a `.` or `_`, so that it may collide with another in metrics."""
    return "." in name or "_" in name


def metric_name(name: str) -> str:
    """The topic's name in metrics, where names that differ only in `.` and `_` collide."""
    return name.replace(".", "_")
