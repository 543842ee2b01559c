"""When a group that is assigned here compares the topics it subscribes to with those it knew.

Source: kafka 4.4, ModernGroup.hasMetadataExpired, requestMetadataRefresh.
"""

from collections.abc import Iterable
from typing import Protocol

from coordinator_sim.coordinator.consumer.group import NOT_CHECKED
from coordinator_sim.coordinator.runtime import Runtime


class _Heads(Protocol):
    @property
    def group_epoch(self) -> int: ...


class _Counts(Protocol):
    @property
    def entries(self) -> Iterable[str]: ...


class Refreshed(Protocol):
    """A group whose topics are compared now and then; see `ConsumerGroup`."""

    refresh: tuple[int, int]
    seen_version: int

    @property
    def topic_counts(self) -> _Counts:
        """How many subscribe to each topic."""
        ...

    @property
    def heads(self) -> _Heads:
        """The numbers of the group."""
        ...


def has_expired(runtime: Runtime, group: Refreshed) -> bool:
    """Whether the topics' hash is to be compared again."""
    topics = runtime.topics
    if topics.has_changed(group.topic_counts.entries, group.seen_version):
        group.refresh = NOT_CHECKED
    group.seen_version = topics.version
    deadline_ms, epoch = group.refresh
    return runtime.wall_ms >= deadline_ms or group.heads.group_epoch < epoch
