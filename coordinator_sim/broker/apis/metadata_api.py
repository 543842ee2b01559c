"""Metadata: brokers, topics and the leaders of their partitions.

Source: kafka trunk, KafkaApis.handleTopicMetadataRequest, getTopicMetadata;
AutoTopicCreationManager.scala.
"""

from typing import Final

from msgspec.structs import replace

from coordinator_sim.broker.apis.cluster_api import (
    broker_nodes,
    cluster_operations,
    controller_id,
    topic_operations,
)
from coordinator_sim.broker.apis.partition_entries import PartitionEntries
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.metadata.image import TopicState
from coordinator_sim.broker.security.authorizer import Operation
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.topic_names import complaint, is_internal
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from coordinator_sim.messages.requests import NO_AUTHORIZED_OPERATIONS
from coordinator_sim.messages.schema import ZERO_UUID

_NULL_IS_ALL_SINCE: Final = 1
_IDS_SINCE: Final = 12
_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_A_TOPIC: Final = 50
_A_CREATION: Final = 250
"""Costs of a topic without its partitions, and of its creation; see `log.format.steps`."""


class MetadataApi:
    """Answers Metadata.

    Args:
        cluster: The parts of the cluster.
    """

    def __init__(self, cluster: ClusterParts) -> None:
        self._cluster = cluster
        self._partitions = PartitionEntries(cluster)

    def handlers(self) -> Handlers:
        """The handler of Metadata."""
        return {ApiKey.METADATA: self._cluster.jobs.handler(self._steps)}

    def _steps(self, call: Call[MetadataRequest]) -> Steps[MetadataResponse | None]:
        cluster, request = self._cluster, call.request
        asked = request.topics or ()
        if call.context.api_version < _IDS_SINCE and _names_ids(asked):
            return MetadataResponse(topics=tuple(_invalid(topic) for topic in asked))
        topics = yield from self._topics(call)
        operations = request.include_cluster_authorized_operations
        return MetadataResponse(
            cluster_id=cluster.settings.cluster_id,
            controller_id=controller_id(cluster),
            topics=tuple(topics),
            brokers=tuple(
                MetadataResponseBroker(broker_id, host, port)
                for broker_id, host, port in broker_nodes(cluster, call.context.listener)
            ),
            cluster_authorized_operations=cluster_operations(cluster, call, asked=operations),
        )

    def _topics(self, call: Call[MetadataRequest]) -> Steps[list[MetadataResponseTopic]]:
        asked = call.request.topics
        if asked is None or (not asked and call.context.api_version < _NULL_IS_ALL_SINCE):
            return (yield from self._all(call))
        ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != ZERO_UUID)
        if ids:
            return (yield from self._by_id(call, list(ids)))
        names = dict.fromkeys(topic.name for topic in asked)
        nameless = [self._nameless(call)] if None in names else []
        named = yield from self._by_name(call, [name for name in names if name is not None])
        return nameless + named

    def _all(self, call: Call[MetadataRequest]) -> Steps[list[MetadataResponseTopic]]:
        """All topics the caller may DESCRIBE; others are omitted."""
        found = []
        for state in list(self._cluster.image.topics.values()):
            if self._cluster.allows_topic(call, Operation.DESCRIBE, state.name):
                found.append(self._entry(call, state))
            yield _cost(state)
        return found

    def _by_id(
        self, call: Call[MetadataRequest], ids: list[bytes]
    ) -> Steps[list[MetadataResponseTopic]]:
        """Topics by id, unknown ids first; without DESCRIBE a topic's name is null."""
        image = self._cluster.image
        unknown, found, refused = [], [], []
        for topic_id in ids:
            name = image.topic_names.get(topic_id)
            if name is None:
                unknown.append(_missing(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID))
                yield _A_TOPIC
                continue
            if self._cluster.allows_topic(call, Operation.DESCRIBE, name):
                found.append(self._entry(call, image.topics[name]))
            else:
                refused.append(_missing(None, topic_id, _REFUSED))
            yield _cost(image.topics[name])
        return unknown + found + refused

    def _by_name(
        self, call: Call[MetadataRequest], names: list[str]
    ) -> Steps[list[MetadataResponseTopic]]:
        """Topics by name: existing ones, then created ones, then those not authorized."""
        cluster = self._cluster
        creates = cluster.settings.auto_create_topics and call.request.allow_auto_topic_creation
        conceals = cluster.settings.profile.conceals_topics
        refusal = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if conceals else _REFUSED
        found: list[MetadataResponseTopic] = []
        unknown: list[str] = []
        refused: list[MetadataResponseTopic] = []
        for name in names:
            state = cluster.image.topics.get(name)
            if not cluster.allows_topic(call, Operation.DESCRIBE, name):
                refused.append(_missing(name, ZERO_UUID, refusal, internal=False))
            elif state is None:
                unknown.append(name)
            else:
                found.append(self._entry(call, state))
            yield _A_TOPIC if state is None else _cost(state)
        uncreatable: list[MetadataResponseTopic] = []
        for name in unknown:
            if creates and not self._may_create(call, name):
                uncreatable.append(_missing(name, ZERO_UUID, _REFUSED))
            else:
                entry = _missing(name, ZERO_UUID, self._unknown(call, name, creates=creates))
                operations = self._operations(call, name)
                found.append(replace(entry, topic_authorized_operations=operations))
            yield _A_CREATION if creates else _A_TOPIC
        return found + uncreatable + refused

    def _may_create(self, call: Call[MetadataRequest], name: str) -> bool:
        create = Operation.CREATE
        return self._cluster.allows_cluster(call, create) or self._cluster.allows_topic(
            call, create, name
        )

    def _unknown(self, call: Call[MetadataRequest], name: str, *, creates: bool) -> ErrorCode:
        """The error of a missing topic, which is auto-created if allowed."""
        if complaint(name) is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if not creates:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        factor = self._cluster.settings.default_replication_factor
        is_missing = name not in self._cluster.image.topics
        if is_missing and (is_internal(name) or factor <= len(self._cluster.living_ids())):
            topics = self._cluster.topics
            permits = topics.auto_partition_count(name)
            if self._cluster.quotas.mutations_of(call).accepts(permits, call.now.wall_ms):
                topics.create_asked_for(name, call.now)
        # Source: AutoTopicCreationManager.createTopicsInZk, sendCreateTopicRequest.
        if self._cluster.settings.profile.uses_zookeeper:
            return ErrorCode.LEADER_NOT_AVAILABLE
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _entry(self, call: Call[MetadataRequest], state: TopicState) -> MetadataResponseTopic:
        return MetadataResponseTopic(
            name=state.name,
            topic_id=state.topic_id,
            is_internal=is_internal(state.name),
            partitions=self._partitions.of(call, state),
            topic_authorized_operations=self._operations(call, state.name),
        )

    def _nameless(self, call: Call[MetadataRequest]) -> MetadataResponseTopic:
        """The answer for a topic requested neither by id nor by name."""
        entry = _missing(None, ZERO_UUID, ErrorCode.INVALID_TOPIC_EXCEPTION)
        return replace(entry, topic_authorized_operations=self._operations(call, ""))

    def _operations(self, call: Call[MetadataRequest], name: str) -> int:
        if call.request.include_topic_authorized_operations:
            return topic_operations(self._cluster, call, name)
        return NO_AUTHORIZED_OPERATIONS


def _cost(state: TopicState) -> int:
    return _A_TOPIC + 4 * len(state.partitions)


def _names_ids(asked: tuple[MetadataRequestTopic, ...]) -> bool:
    """Whether an entry gives a topic id or no name, which versions below 12 must not."""
    return any(topic.name is None or topic.topic_id != ZERO_UUID for topic in asked)


def _invalid(topic: MetadataRequestTopic) -> MetadataResponseTopic:
    invalid = ErrorCode.INVALID_REQUEST
    return _missing(topic.name or "", topic.topic_id, invalid, internal=False)


def _missing(
    name: str | None, topic_id: bytes, error: ErrorCode, *, internal: bool | None = None
) -> MetadataResponseTopic:
    shown = name is not None and is_internal(name) if internal is None else internal
    return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id, is_internal=shown)
