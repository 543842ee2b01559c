"""Offsets of version 0, which brokers keep in ZooKeeper and no group coordinator hears of.

Each is a node `/consumers/GROUP/offsets/TOPIC/PARTITION` whose data is the offset in decimal
digits. Nothing else is kept: neither metadata nor a time, so that nothing expires. Topics and
rights are checked by `offset_apis` and `fetch_api`.

Source: kafka 0.10.2, KafkaApis.handleOffsetCommitRequest and handleOffsetFetchRequest with ZkUtils;
2.8, the same with KafkaZkClient.
"""

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from coordinator_sim.coordinator.offset_records import java_length
from coordinator_sim.coordinator.refusals import outcomes_by_topic
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponseTopic,
)
from coordinator_sim.messages.offset_fetch import OffsetFetchResponsePartitions
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.offset_maps import asked_order
from coordinator_sim.protocol.profiles import Profile
from coordinator_sim.protocol.resources import TopicPartition

Nodes = dict[str, str | None]
"""Data of each node by its path; None of a node that is there only for those below it."""

_BEYOND_BMP: Final = "\U00010000-\U0010ffff"
_ILLEGAL: Final = re.compile(f"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff{_BEYOND_BMP}]")
"""Source: zookeeper 3.5, PathUtils.validatePath, which looks at UTF-16 units."""
_ILLEGAL_TO_ZKCLIENT: Final = re.compile(
    f"[\x00-\x1e\x80-\x9e\ud801-\uf8fe\ufff1-\ufffe{_BEYOND_BMP}]"
)
"""Source: zookeeper 3.4, PathUtils.validatePath, whose ranges leave out their ends."""


def offset_path(group_id: str, topic: str, index: int) -> str:
    """Where the offset of a partition is kept. Source: ZKGroupTopicDirs, ConsumerOffset.path."""
    return f"/consumers/{group_id}/offsets/{topic}/{index}"


def put_node(nodes: Nodes, path: str, data: str) -> None:
    """Give a node its data; it and those on the way to it are made if absent."""
    nodes[path] = data
    parent, slash, _ = path.rpartition("/")
    while parent and slash and parent not in nodes:
        nodes[parent] = None
        parent, slash, _ = parent.rpartition("/")


class ZooKeeperOffsets:
    """The offsets that the brokers of a cluster keep in its ZooKeeper.

    Args:
        metadata_limit: `offset.metadata.max.bytes`, compared with UTF-16 units.
        nodes: What is there already; the tree is changed by `write` alone.
        write: Makes a node have data, for good when it returns; None puts it into `nodes`. It may
            raise OSError.
    """

    __slots__ = ("_metadata_limit", "_nodes", "_write")

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
        """Keep offsets of topics that exist; a partition named twice is kept as named last."""
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
            # As for any failure of ZooKeeper. Source: Errors.forException.
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return ErrorCode.NONE

    def fetch(
        self, group_id: str, place: TopicPartition, profile: Profile
    ) -> OffsetFetchResponsePartitions:
        """The offset of a partition of a topic that exists; none is an unknown partition."""
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
            # QUIRK: a node without data is no number to 0.10.2, which a later Kafka takes for none.
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        return OffsetFetchResponsePartitions(place.partition, error_code=error, committed_offset=-1)


def _is_path(path: str, profile: Profile) -> bool:
    """Whether ZooKeeper takes a path; others are an IllegalArgumentException to the broker."""
    illegal = _ILLEGAL_TO_ZKCLIENT if profile.uses_zkclient else _ILLEGAL
    names = path.removeprefix("/").split("/")
    return not any(name in {"", ".", ".."} for name in names) and illegal.search(path) is None
