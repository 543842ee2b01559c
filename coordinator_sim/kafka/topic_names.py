"""Which names a topic may have, which topics are internal, and names in metrics.

Source: kafka trunk, clients/.../common/internals/Topic.java.
"""

import re
from typing import Final

from coordinator_sim.errors import ConfigError
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


MAX_LENGTH: Final = 249
"""Characters of a topic's name: a folder of its name, a partition and a suffix has 255."""
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")
_SHOWN: Final = 2 * MAX_LENGTH


def complaint(name: str) -> str | None:
    """What is wrong with a name, in Kafka's words; None when nothing is."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in {".", ".."}:
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than the max allowed length "
            f"{MAX_LENGTH}"
        )
    if not _LEGAL.fullmatch(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def check_topic_name(name: str) -> None:
    """Refuse a name that no topic may have, in one line whatever the name is made of.

    Raises:
        ConfigError: a topic may not have that name.
    """
    wrong = complaint(name if name.isprintable() else repr(name[:_SHOWN])[1:-1])
    if wrong is not None:
        raise ConfigError(wrong)
