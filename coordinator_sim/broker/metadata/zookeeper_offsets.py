"""Offsets of version 0 commits, which brokers keep in ZooKeeper without a group coordinator.

Each is a node `/consumers/GROUP/offsets/TOPIC/PARTITION` whose data is the offset in decimal
digits. Metadata and timestamp are not kept, so nothing expires. `offset_apis` and `offset_fetch`
check topics and authorization.

Source: kafka 0.10.2, KafkaApis.handleOffsetCommitRequest and handleOffsetFetchRequest with ZkUtils;
2.8, the same with KafkaZkClient.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from coordinator_sim.coordinator.offsets.offset_records import java_length
from coordinator_sim.coordinator.runtime import outcomes_by_topic
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.offset_maps import asked_order
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponseTopic,
)
from coordinator_sim.messages.offset_fetch import OffsetFetchResponsePartitions

Nodes = dict[str, str | None]
"""Data of each node by its path; None for a node that only has children."""

_BEYOND_BMP: Final = "\U00010000-\U0010ffff"
_ILLEGAL: Final = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff{_BEYOND_BMP}]")
"""Illegal UTF-16 units of a path. Source: zookeeper 3.5, PathUtils.validatePath."""
_ILLEGAL_TO_ZKCLIENT: Final = re.compile(
    f"[\x00-\x1e\x80-\x9e\ud801-\uf8fe\ufff1-\ufffe{_BEYOND_BMP}]"
)
"""The same, with ranges without their ends. Source: zookeeper 3.4, PathUtils.validatePath."""


def offset_path(group_id: str, topic: str, index: int) -> str:
    """Path of a partition's offset. Source: ZKGroupTopicDirs, ConsumerOffset.path."""
    return f"/consumers/{group_id}/offsets/{topic}/{index}"


def put_node(nodes: Nodes, path: str, data: str) -> None:
    """Set a node's data; the node and its parents are created if absent."""
    nodes[path] = data
    parent, slash, _ = path.rpartition("/")
    while parent and slash and parent not in nodes:
        nodes[parent] = None
        parent, slash, _ = parent.rpartition("/")


class ZooKeeperOffsets:
    """The offsets that the brokers of a cluster store in ZooKeeper.

    Args:
        metadata_limit: `offset.metadata.max.bytes`, compared with UTF-16 units.
        nodes: Existing nodes; only `write` changes them.
        write: Sets a node's data durably; may raise OSError. None puts it into `nodes`.
    """

    def __init__(
        self,
        metadata_limit: int,
        nodes: Nodes | None = None,
        write: Callable[[str, str], None] | None = None,
    ) -> None:
        self._metadata_limit = metadata_limit
        self._nodes: Nodes = {} if nodes is None else nodes
        self._write = partial(put_node, self._nodes) if write is None else write

    def commit(
        self, group_id: str, topics: tuple[OffsetCommitRequestTopic, ...], profile: Profile
    ) -> tuple[OffsetCommitResponseTopic, ...]:
        """Store offsets of existing topics; if a partition is named twice, the last one wins."""
        asked = {
            TopicPartition(topic.name, entry.partition_index): entry
            for topic in topics
            for entry in topic.partitions
        }
        places = asked_order(profile.offset_maps, tuple(asked), transactional=False)
        return outcomes_by_topic(
            (place, self._commit_one(group_id, place, asked[place], profile)) for place in places
        )

    def _commit_one(
        self,
        group_id: str,
        place: TopicPartition,
        entry: OffsetCommitRequestPartition,
        profile: Profile,
    ) -> ErrorCode:
        if java_length(entry.committed_metadata or "") > self._metadata_limit:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        path = offset_path(group_id, place.topic, place.partition)
        if not _is_path(path, profile):
            return ErrorCode.UNKNOWN_SERVER_ERROR
        try:
            self._write(path, str(entry.committed_offset))
        except OSError:
            # The error of any ZooKeeper failure. Source: Errors.forException.
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return ErrorCode.NONE

    def fetch(
        self, group_id: str, place: TopicPartition, profile: Profile
    ) -> OffsetFetchResponsePartitions:
        """The offset of an existing topic's partition; UNKNOWN_TOPIC_OR_PARTITION without one."""
        path = offset_path(group_id, place.topic, place.partition)
        if not _is_path(path, profile):
            return OffsetFetchResponsePartitions(
                place.partition, error_code=ErrorCode.UNKNOWN_SERVER_ERROR, committed_offset=-1
            )
        data = self._nodes.get(path)
        if data is not None:
            return OffsetFetchResponsePartitions(place.partition, int(data))
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if profile.uses_zkclient and path in self._nodes:
            # QUIRK: 0.10.2 fails to parse a node without data; later Kafkas see no offset.
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        return OffsetFetchResponsePartitions(place.partition, error_code=error, committed_offset=-1)


def _is_path(path: str, profile: Profile) -> bool:
    """Whether ZooKeeper accepts a path; others raise IllegalArgumentException in the broker."""
    illegal = _ILLEGAL_TO_ZKCLIENT if profile.uses_zkclient else _ILLEGAL
    names = path.removeprefix("/").split("/")
    return not any(name in {"", ".", ".."} for name in names) and illegal.search(path) is None
