"""Metadata: brokers, topics and the leaders of their partitions.

Source: kafka trunk, KafkaApis.handleTopicMetadataRequest, getTopicMetadata;
AutoTopicCreationManager.scala.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from coordinator_sim.broker.apis.administration import Administration
from coordinator_sim.broker.apis.cluster_facts import (
    broker_nodes,
    cluster_operations,
    controller_id,
    topic_operations,
)
from coordinator_sim.broker.apis.partition_entries import PartitionEntries
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.metadata.image import TopicState
from coordinator_sim.broker.metadata.topic_names import is_internal
from coordinator_sim.broker.security.authorizer import Operation
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.topic_names import complaint
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


class MetadataApi:
    """Answers Metadata.

    Args:
        admin: The cluster.
    """

    __slots__ = ("_admin", "_partitions")

    def __init__(self, admin: Administration) -> None:
        self._admin = admin
        self._partitions = PartitionEntries(admin)

    def handlers(self) -> Handlers:
        """The handler of Metadata."""
        return {ApiKey.METADATA: self._handle}

    def _handle(self, call: Call[MetadataRequest]) -> MetadataResponse:
        admin, request = self._admin, call.request
        asked = request.topics or ()
        if call.context.api_version < _IDS_SINCE and _names_ids(asked):
            return MetadataResponse(topics=tuple(_invalid(topic) for topic in asked))
        operations = request.include_cluster_authorized_operations
        return MetadataResponse(
            cluster_id=admin.settings.cluster_id,
            controller_id=controller_id(admin),
            topics=tuple(self._topics(call)),
            brokers=tuple(
                MetadataResponseBroker(broker_id, host, port)
                for broker_id, host, port in broker_nodes(admin, call.context.listener)
            ),
            cluster_authorized_operations=cluster_operations(admin, call, asked=operations),
        )

    def _topics(self, call: Call[MetadataRequest]) -> list[MetadataResponseTopic]:
        asked = call.request.topics
        if asked is None or (not asked and call.context.api_version < _NULL_IS_ALL_SINCE):
            return self._all(call)
        ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != ZERO_UUID)
        if ids:
            return self._by_id(call, list(ids))
        names = dict.fromkeys(topic.name for topic in asked)
        nameless = [self._nameless(call)] if None in names else []
        return nameless + self._by_name(call, [name for name in names if name is not None])

    def _all(self, call: Call[MetadataRequest]) -> list[MetadataResponseTopic]:
        """All topics the caller may DESCRIBE; others are omitted."""
        return [
            self._entry(call, state)
            for state in self._admin.image.topics.values()
            if self._admin.allows_topic(call, Operation.DESCRIBE, state.name)
        ]

    def _by_id(self, call: Call[MetadataRequest], ids: list[bytes]) -> list[MetadataResponseTopic]:
        """Topics by id, unknown ids first; without DESCRIBE a topic's name is null."""
        image = self._admin.image
        known = {each: name for each in ids if (name := image.topic_names.get(each)) is not None}
        allowed, refused = self._parted(call, known.values())
        unknown = (each for each in ids if each not in known)
        return [
            *(_missing(None, each, ErrorCode.UNKNOWN_TOPIC_ID) for each in unknown),
            *(self._entry(call, image.topics[name]) for name in allowed),
            *(_missing(None, image.topics[name].topic_id, _REFUSED) for name in refused),
        ]

    def _parted(
        self, call: Call[MetadataRequest], names: Iterable[str]
    ) -> tuple[list[str], list[str]]:
        """The names of topics the caller may DESCRIBE, and the other names."""
        allowed: list[str] = []
        refused: list[str] = []
        for name in names:
            may = self._admin.allows_topic(call, Operation.DESCRIBE, name)
            (allowed if may else refused).append(name)
        return allowed, refused

    def _by_name(
        self, call: Call[MetadataRequest], names: list[str]
    ) -> list[MetadataResponseTopic]:
        """Topics by name: existing ones, then created ones, then those not authorized."""
        admin = self._admin
        allowed, refused = self._parted(call, names)
        creates = admin.settings.auto_create_topics and call.request.allow_auto_topic_creation
        found: list[MetadataResponseTopic] = []
        unknown: list[str] = []
        for name in allowed:
            state = admin.image.topics.get(name)
            if state is None:
                unknown.append(name)
            else:
                found.append(self._entry(call, state))
        uncreatable: list[MetadataResponseTopic] = []
        for name in unknown:
            if creates and not self._may_create(call, name):
                uncreatable.append(_missing(name, ZERO_UUID, _REFUSED))
            else:
                entry = _missing(name, ZERO_UUID, self._unknown(call, name, creates=creates))
                operations = self._operations(call, name)
                found.append(replace(entry, topic_authorized_operations=operations))
        found += uncreatable
        conceals = admin.settings.profile.conceals_topics
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if conceals else _REFUSED
        return found + [_missing(name, ZERO_UUID, error, internal=False) for name in refused]

    def _may_create(self, call: Call[MetadataRequest], name: str) -> bool:
        create = Operation.CREATE
        return self._admin.allows_cluster(call, create) or self._admin.allows_topic(
            call, create, name
        )

    def _unknown(self, call: Call[MetadataRequest], name: str, *, creates: bool) -> ErrorCode:
        """The error of a missing topic, which is auto-created if allowed."""
        if complaint(name) is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if not creates:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        factor = self._admin.settings.default_replication_factor
        if is_internal(name) or factor <= len(self._admin.living_ids()):
            self._admin.topics.create_asked_for(name, call.now)
        return self._admin.auto_creation_answer

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
            return topic_operations(self._admin, call, name)
        return NO_AUTHORIZED_OPERATIONS


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
