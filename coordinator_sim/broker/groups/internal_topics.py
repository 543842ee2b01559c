"""The topics that streams groups need, created by the broker whose coordinator asks for them.

A broker sends CreateTopics to the controller with the rights of the member whose heartbeat it was,
and does not wait: members hear with a later heartbeat what became of it. A topic that could not
be created is tried again when its error has expired.

Source: kafka 4.4, DefaultAutoTopicCreationManager.createStreamsInternalTopics; ExpiringErrorCache.
"""

from collections.abc import Iterable
from functools import partial
from heapq import heappop, heappush
from typing import Final, cast

from msgspec.structs import replace

from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.coordinator.effects import InternalTopic
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import StreamsStatus
from coordinator_sim.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.streams_group_heartbeat import Status, StreamsGroupHeartbeatResponse

_CAPACITY: Final = 1_000
"""Errors that a broker remembers. Source: DefaultAutoTopicCreationManager."""
_DEFAULT: Final = -1
_LISTED_ERRORS: Final = 3
"""Topics that could not be created whose errors an answer lists."""


class TopicErrors:
    """Why topics could not be created, each for a while; the first to expire go first.

    Args:
        capacity: How many are remembered at most.
    """

    __slots__ = ("_by_topic", "_capacity", "_expiries")

    def __init__(self, capacity: int = _CAPACITY) -> None:
        self._capacity = capacity
        self._by_topic: dict[str, tuple[int, str]] = {}
        self._expiries: list[tuple[int, str]] = []

    def put(self, topic: str, text: str, now_ms: int, ttl_ms: int) -> None:
        """Remember an error from now on for so many milliseconds."""
        self._by_topic[topic] = (now_ms + ttl_ms, text)
        heappush(self._expiries, (now_ms + ttl_ms, topic))
        while self._expiries and (
            self._expiries[0][0] <= now_ms or len(self._by_topic) > self._capacity
        ):
            expired_ms, name = heappop(self._expiries)
            if self._by_topic.get(name, (None, ""))[0] == expired_ms:
                del self._by_topic[name]

    def of(self, topics: Iterable[str], now_ms: int) -> dict[str, str]:
        """The errors of some topics that have not expired, in the order of the topics."""
        known = ((name, self._by_topic[name]) for name in topics if name in self._by_topic)
        return {name: text for name, (expires_ms, text) in known if expires_ms > now_ms}


class InternalTopics:
    """Has topics created for the streams groups that one broker coordinates.

    Args:
        broker_id: The broker.
        cluster: Takes CreateTopics, when the heartbeat is dealt with.
    """

    __slots__ = ("_broker_id", "_cluster", "_errors", "_in_flight")

    def __init__(self, broker_id: int, cluster: ClusterParts) -> None:
        self._broker_id = broker_id
        self._cluster = cluster
        self._errors = TopicErrors()
        self._in_flight: dict[str, None] = {}

    def create_missing(
        self,
        access: Access,
        context: RequestContext,
        topics: tuple[InternalTopic, ...],
        response: Response,
    ) -> Response:
        """Have topics created that a group needs; say so where the member may not, or that failed.

        An error is remembered for two heartbeats.
        """
        heartbeat = cast("StreamsGroupHeartbeatResponse", response)
        names = [topic.name for topic in topics]
        hidden = _not_creatable(access, context, names)
        if hidden:
            text = f"Unauthorized to CREATE on topics {', '.join(hidden)}."
            return _with_missing(heartbeat, text, adds=True)
        failed = self.create(topics, context, 2 * heartbeat.heartbeat_interval_ms)
        if not failed:
            return heartbeat
        listed = ", ".join(
            f"{name} ({text})" for name, text in list(failed.items())[:_LISTED_ERRORS]
        )
        if len(failed) > _LISTED_ERRORS:
            listed += f" and {len(failed) - _LISTED_ERRORS} more"
        return _with_missing(heartbeat, f"Creation failed: {listed}.", adds=False)

    def create(
        self, topics: Iterable[InternalTopic], context: RequestContext, ttl_ms: int
    ) -> dict[str, str]:
        """Have topics created soon, but those that are being created or failed lately.

        Args:
            topics: What is needed, in the order of Kafka's map.
            context: Of the heartbeat; its sender must have the right.
            ttl_ms: How long an error is remembered.

        Returns:
            Why those that failed lately did.
        """
        by_name = {topic.name: topic for topic in topics}
        failed = self._errors.of(by_name, self._cluster.latest.group_ms)
        wanted = [
            topic
            for name, topic in by_name.items()
            if name not in failed and name not in self._in_flight
        ]
        if wanted:
            self._in_flight.update(dict.fromkeys(topic.name for topic in wanted))
            send = partial(self._send, tuple(map(_creatable, wanted)), context, ttl_ms)
            self._cluster.scheduler.at_wall_ms(0, send)
        return failed

    def _send(
        self,
        topics: tuple[CreatableTopic, ...],
        context: RequestContext,
        ttl_ms: int,
        _now: Instants,
    ) -> None:
        """Send CreateTopics with the rights of the member that needs the topics."""
        request = CreateTopicsRequest(topics=topics)
        created = partial(self._created, topics, ttl_ms)
        self._cluster.send(self._broker_id, request, context, created)

    def _created(
        self, topics: tuple[CreatableTopic, ...], ttl_ms: int, response: CreateTopicsResponse
    ) -> None:
        """Topics without an error exist; each error is kept for a while."""
        now_ms = self._cluster.latest.group_ms
        for topic in topics:
            self._in_flight.pop(topic.name, None)
        for result in response.topics:
            if result.error_code is not ErrorCode.NONE:
                text = result.error_message or error_message(result.error_code)
                self._errors.put(result.name, text, now_ms, ttl_ms)


def _not_creatable(access: Access, context: RequestContext, names: list[str]) -> list[str]:
    """Topics that the sender of a heartbeat may not create."""
    allows, create = access.allows, Operation.CREATE
    if allows(context, create, ResourceType.CLUSTER, CLUSTER_NAME):
        return []
    return [name for name in names if not allows(context, create, ResourceType.TOPIC, name)]


def _with_missing(
    heartbeat: StreamsGroupHeartbeatResponse, text: str, *, adds: bool
) -> StreamsGroupHeartbeatResponse:
    """An answer that says more of missing topics, behind what it says already.

    Args:
        heartbeat: The answer.
        text: What more there is to say.
        adds: Whether it is also said where the answer does not speak of missing topics.
    """
    code = int(StreamsStatus.MISSING_INTERNAL_TOPICS)
    statuses = list(heartbeat.status or ())
    for index, status in enumerate(statuses):
        if status.status_code == code:
            statuses[index] = Status(code, f"{status.status_detail}; {text}")
            break
    else:
        if adds:
            statuses.append(Status(code, text))
    return replace(heartbeat, status=tuple(statuses))


def _creatable(topic: InternalTopic) -> CreatableTopic:
    """Source: InternalTopicManager.toCreatableTopic."""
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor or _DEFAULT,
        configs=tuple(CreatableTopicConfig(key, value) for key, value in topic.configs),
    )
