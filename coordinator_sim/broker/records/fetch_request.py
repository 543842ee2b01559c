"""The parameters of a Fetch request of any version.

Source: kafka trunk, FetchRequest.fetchData and forgottenTopics; FetchParams.java,
FetchIsolation.of.
"""

from collections.abc import Mapping
from enum import Enum, unique
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.broker.contract import Call
from coordinator_sim.broker.records.fetch_sessions import (
    FetchMetadata,
    FetchPlace,
    FetchTerms,
    Wanted,
)
from coordinator_sim.messages.fetch import FetchRequest, FetchTopic, ForgottenTopic
from coordinator_sim.messages.schema import ZERO_UUID

CLIENT_METADATA_SINCE: Final = 11
"""From this version on, consumers send their rack and may read from any replica."""
TOPIC_IDS_SINCE: Final = 13
LEADER_TAGS_SINCE: Final = 16
_REPLICA_STATE_SINCE: Final = 15
_HARD_LIMIT_UNTIL: Final = 2
_FUTURE_REPLICA: Final = -3
_READ_COMMITTED: Final = 1


@unique
class Isolation(Enum):
    """Up to where a fetch may read."""

    LOG_END = "log end"
    HIGH_WATERMARK = "high watermark"
    LAST_STABLE_OFFSET = "last stable offset"


class FetchParams(Struct, frozen=True, kw_only=True, gc=False):
    """Parameters of a Fetch for all of its partitions together.

    Args:
        replica_id: Broker id of the fetching follower; negative for a consumer.
        max_bytes: Limit of all records together; the first batch may exceed it.
        has_hard_limit: Whether the limits are strict, even if that tears a batch (old versions).
        leader_only: Whether only the leader may answer.
    """

    version: int
    replica_id: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: Isolation
    has_hard_limit: bool
    leader_only: bool

    @property
    def is_follower(self) -> bool:
        """Whether the sender is a follower that replicates."""
        return self.replica_id >= 0

    def bounded(self, max_bytes: int) -> "FetchParams":
        """The parameters with another limit, where that is lower."""
        most = min(self.max_bytes, max_bytes)
        return replace(self, max_bytes=most, min_bytes=min(self.min_bytes, most))


def params_of(call: Call[FetchRequest], max_bytes: int) -> FetchParams:
    """The parameters of a Fetch request.

    Args:
        call: A Fetch request.
        max_bytes: `fetch.max.bytes` of the broker.
    """
    request, version = call.request, call.context.api_version
    replica_id = _replica_id(request, version)
    most = min(request.max_bytes, max_bytes)
    return FetchParams(
        version=version,
        replica_id=replica_id,
        max_wait_ms=request.max_wait_ms,
        min_bytes=min(request.min_bytes, most),
        max_bytes=most,
        isolation=_isolation(replica_id, request.isolation_level),
        has_hard_limit=version <= _HARD_LIMIT_UNTIL,
        leader_only=replica_id != _FUTURE_REPLICA
        and (replica_id >= 0 or version < CLIENT_METADATA_SINCE),
    )


def _replica_id(request: FetchRequest, version: int) -> int:
    if version >= _REPLICA_STATE_SINCE:
        return request.replica_state.replica_id
    return request.replica_id


def _isolation(replica_id: int, level: int) -> Isolation:
    if replica_id >= 0 or replica_id == _FUTURE_REPLICA:
        return Isolation.LOG_END
    return Isolation.LAST_STABLE_OFFSET if level == _READ_COMMITTED else Isolation.HIGH_WATERMARK


def metadata_of(request: FetchRequest) -> FetchMetadata:
    """The session id and epoch of the request."""
    return FetchMetadata(request.session_id, request.session_epoch)


def wanted_of(request: FetchRequest, version: int, topic_names: Mapping[bytes, str]) -> Wanted:
    """The partitions that the request names; if one is named twice, the last entry wins."""
    wanted: Wanted = {}
    for topic in request.topics:
        topic_id, name = _identity(topic, version, topic_names)
        for each in topic.partitions:
            wanted[FetchPlace(topic_id, name, each.partition)] = FetchTerms(
                each.fetch_offset,
                each.partition_max_bytes,
                max(each.current_leader_epoch, -1),
                max(each.last_fetched_epoch, -1),
                each.log_start_offset,
            )
    return wanted


def forgotten_of(
    request: FetchRequest, version: int, topic_names: Mapping[bytes, str]
) -> list[FetchPlace]:
    """The partitions that the session is to forget."""
    return [
        FetchPlace(*_identity(topic, version, topic_names), partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]


def _identity(
    topic: FetchTopic | ForgottenTopic, version: int, topic_names: Mapping[bytes, str]
) -> tuple[bytes, str | None]:
    if version >= TOPIC_IDS_SINCE:
        return topic.topic_id, topic_names.get(topic.topic_id)
    return ZERO_UUID, topic.topic
