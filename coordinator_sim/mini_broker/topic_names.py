"""Which names a topic may have.

Source: kafka trunk, clients/.../common/internals/Topic.java.
"""

import re
from typing import Final

from coordinator_sim.broker.discovery import TRANSACTIONS_TOPIC
from coordinator_sim.protocol.partitioning import OFFSETS_TOPIC

CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
SHARE_STATE_TOPIC: Final = "__share_group_state"
_INTERNAL: Final = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})
_MAX_LENGTH: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(name: str) -> bool:
    """Whether it is a topic of the brokers themselves."""
    return name in _INTERNAL


def complaint(name: str) -> str | None:
    """What is wrong with a name, in Kafka's words; None when nothing is."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in {".", ".."}:
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > _MAX_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{_MAX_LENGTH}"
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def metric_name(name: str) -> str:
    """The name as metrics have it: topics that differ only in `.` and `_` collide there."""
    return name.replace(".", "_")
