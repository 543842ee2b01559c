"""When a group that is assigned here compares the topics it subscribes to with those of before.

Source: kafka 4.4, ModernGroup.hasMetadataExpired, requestMetadataRefresh.
"""

from collections.abc import Iterable
from typing import Any

from coordinator_sim.coordinator.epoch_group import NOT_CHECKED, EpochGroup
from coordinator_sim.coordinator.runtime import Runtime


def has_expired(runtime: Runtime, group: EpochGroup[Any, Any, Any], names: Iterable[str]) -> bool:
    """Whether the topics' hash is to be compared again.

    Args:
        runtime: Its topics and the present.
        group: Whose deadline and version this reads and advances.
        names: Topics that the group needs.
    """
    topics = runtime.topics
    if topics.has_changed(names, group.seen_version):
        group.refresh = NOT_CHECKED
    group.seen_version = topics.version
    deadline_ms, epoch = group.refresh
    return runtime.wall_ms >= deadline_ms or group.epochs.group_epoch < epoch
