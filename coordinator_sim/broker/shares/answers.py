"""Answers to ShareFetch and ShareAcknowledge: partitions by topic, leaders beside errors.

Topics and partitions come in the order in which they were asked for, what is only acknowledged
last. UNSPECIFIED: Kafka has the order of its hash maps, which no client depends on.

Source: kafka 4.3.1, KafkaApis.processShareFetchResponse, processShareAcknowledgeResponse and
combineShareFetchAndShareAcknowledgeResponses; ShareFetchResponse and ShareAcknowledgeResponse.
"""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.records.fetch_sessions import FetchPlace
from coordinator_sim.broker.replicas.replica_manager import LeaderTags
from coordinator_sim.broker.shares.acknowledgements import Outcomes
from coordinator_sim.broker.shares.sessions import ShareFetchContext, partition_of
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import share_acknowledge
from coordinator_sim.messages.codec.compiler import has_tagged_header, response_writer
from coordinator_sim.messages.share_acknowledge import (
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from coordinator_sim.messages.share_fetch import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)

Found = dict[FetchPlace, PartitionData]
"""Answers of partitions, in the order of the answer."""
TagsOf = Callable[[Place], LeaderTags]
"""Tells the leader of a partition."""

_TAGGED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def unread(place: FetchPlace, error: ErrorCode, text: str | None = None) -> PartitionData:
    """The answer of a partition from which nothing is read."""
    return PartitionData(
        partition_index=place.partition, error_code=error, error_message=text, records=b""
    )


def fetched(
    context: ShareFetchContext,
    found: Found,
    tags_of: TagsOf,
    lock_timeout_ms: int,
    throttle_time_ms: int = 0,
) -> ShareFetchResponse:
    """The answer to a ShareFetch before acknowledgements; its session goes on.

    QUIRK: errors of partitions lose their messages here, as in Kafka (getResponsePartitionData).

    QUIRK: records that a throttled ShareFetch acquired are locked, though they are not sent.

    Args:
        context: By which session it was fetched.
        found: What was found.
        tags_of: Tells who leads instead.
        lock_timeout_ms: How long what was acquired is locked.
        throttle_time_ms: How long a quota mutes the sender. If it does, the answer has no
            partitions, and the session does not change.
    """
    nodes: dict[int, NodeEndpoint] = {}
    told = {place: _tagged(place, data, tags_of, nodes) for place, data in found.items()}
    endpoints = tuple(nodes.values())
    if context.is_overtaken:
        return ShareFetchResponse(
            throttle_time_ms=throttle_time_ms,
            error_code=ErrorCode.INVALID_SHARE_SESSION_EPOCH,
            acquisition_lock_timeout_ms=lock_timeout_ms,
            node_endpoints=endpoints,
        )
    topics: dict[bytes, list[PartitionData]] = {}
    included = {} if throttle_time_ms else _included(context, told)
    for place, data in included.items():
        if context.session is not None:
            context.session.answered(partition_of(place), data.error_code, data.records)
        bare = replace(data, error_message=None, records=data.records or b"")
        topics.setdefault(place.topic_id, []).append(bare)
    return ShareFetchResponse(
        throttle_time_ms=throttle_time_ms,
        acquisition_lock_timeout_ms=lock_timeout_ms,
        responses=_by_topic(topics),
        node_endpoints=endpoints,
    )


def size_bytes(context: ShareFetchContext, found: Found, version: int) -> int:
    """The length of the answer with its records. Source: ShareFetchResponse.sizeOf."""
    topics: dict[bytes, list[PartitionData]] = {}
    included = {} if context.is_overtaken else _included(context, found)
    for place, data in included.items():
        topics.setdefault(place.topic_id, []).append(data)
    response = ShareFetchResponse(responses=_by_topic(topics))
    frame = response_writer(ApiKey.SHARE_FETCH, version)(0, response)
    return len(frame) - has_tagged_header(ApiKey.SHARE_FETCH, version)


def _included(context: ShareFetchContext, found: Found) -> Found:
    """The partitions that an answer names: in a session those with news.

    Source: ShareSessionContext.PartitionIterator.
    """
    session = context.session
    if session is None:
        return found
    return {
        place: data
        for place, data in found.items()
        if session.partitions[partition_of(place)].has_news(data.error_code, data.records)
    }


def _tagged(
    place: FetchPlace, data: PartitionData, tags_of: TagsOf, nodes: dict[int, NodeEndpoint]
) -> PartitionData:
    """A partition with its leader, where another one leads; adds its endpoint to `nodes`."""
    if data.error_code not in _TAGGED:
        return data
    tags = tags_of((place.topic or "", place.partition))
    if tags.endpoint is not None:
        nodes[tags.leader_id] = NodeEndpoint(
            node_id=tags.leader_id, host=tags.endpoint.host, port=tags.endpoint.port
        )
    return replace(data, current_leader=LeaderIdAndEpoch(tags.leader_id, tags.leader_epoch))


def _by_topic(
    topics: dict[bytes, list[PartitionData]],
) -> tuple[ShareFetchableTopicResponse, ...]:
    return tuple(
        ShareFetchableTopicResponse(topic_id, tuple(partitions))
        for topic_id, partitions in topics.items()
    )


def with_outcomes(response: ShareFetchResponse, outcomes: Outcomes) -> ShareFetchResponse:
    """The answer with what became of the acknowledgements that came with the fetch."""
    if not outcomes:
        return response
    left = {partition_of(place): data for place, data in outcomes.items()}
    topics: dict[bytes, list[PartitionData]] = {}
    for topic in response.responses:
        told = topics.setdefault(topic.topic_id, [])
        for data in topic.partitions:
            done = left.pop((topic.topic_id, data.partition_index), None)
            told.append(data if done is None else _acknowledged(data, done))
    for (topic_id, index), done in left.items():
        bare = PartitionData(partition_index=index, records=b"")
        topics.setdefault(topic_id, []).append(_acknowledged(bare, done))
    return replace(response, responses=_by_topic(topics))


def _acknowledged(data: PartitionData, done: share_acknowledge.PartitionData) -> PartitionData:
    return replace(
        data,
        acknowledge_error_code=done.error_code,
        acknowledge_error_message=done.error_message,
    )


def acknowledged(
    outcomes: Outcomes, tags_of: TagsOf, lock_timeout_ms: int
) -> ShareAcknowledgeResponse:
    """The answer to a ShareAcknowledge."""
    nodes: dict[int, share_acknowledge.NodeEndpoint] = {}
    topics: dict[bytes, list[share_acknowledge.PartitionData]] = {}
    for place, data in outcomes.items():
        told = data
        if data.error_code in _TAGGED:
            tags = tags_of((place.topic or "", place.partition))
            if tags.endpoint is not None:
                nodes[tags.leader_id] = share_acknowledge.NodeEndpoint(
                    node_id=tags.leader_id, host=tags.endpoint.host, port=tags.endpoint.port
                )
            leader = share_acknowledge.LeaderIdAndEpoch(tags.leader_id, tags.leader_epoch)
            told = replace(data, current_leader=leader)
        topics.setdefault(place.topic_id, []).append(told)
    return ShareAcknowledgeResponse(
        acquisition_lock_timeout_ms=lock_timeout_ms,
        responses=tuple(
            ShareAcknowledgeTopicResponse(topic_id, tuple(partitions))
            for topic_id, partitions in topics.items()
        ),
        node_endpoints=tuple(nodes.values()),
    )
