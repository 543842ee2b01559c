"""Metadata: brokers, topics and who leads their partitions.

Source: kafka trunk, KafkaApis.handleTopicMetadataRequest, getTopicMetadata;
AutoTopicCreationManager.scala.
"""

from collections.abc import Iterable
from typing import Final

from coordinator_sim.broker.authorizer import Operation
from coordinator_sim.mini_broker.administration import Administration
from coordinator_sim.mini_broker.cluster_facts import (
    broker_nodes,
    cluster_operations,
    controller_id,
    partition_entries,
    topic_operations,
)
from coordinator_sim.mini_broker.contract import Call, Handlers
from coordinator_sim.mini_broker.image import TopicState
from coordinator_sim.mini_broker.topic_names import is_internal
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.topic_names import complaint
from coordinator_sim.wire.schema import ZERO_UUID, Data

_NULL_IS_ALL_SINCE: Final = 1
_IDS_SINCE: Final = 12
_REFUSED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class MetadataApi:
    """Answers Metadata.

    Args:
        admin: The cluster.
    """

    __slots__ = ("_admin",)

    def __init__(self, admin: Administration) -> None:
        self._admin = admin

    def handlers(self) -> Handlers:
        """Of Metadata alone."""
        return {ApiKey.METADATA: self._handle}

    def _handle(self, call: Call) -> Data:
        admin, request = self._admin, call.request
        if call.context.api_version < _IDS_SINCE and _names_ids(request["topics"] or []):
            return {"brokers": [], "topics": [_invalid(topic) for topic in request["topics"]]}
        answer: Data = {
            "clusterId": admin.settings.cluster_id,
            "controllerId": controller_id(admin),
            "topics": self._topics(call),
            "brokers": [
                {"nodeId": broker_id, "host": host, "port": port, "rack": None}
                for broker_id, host, port in broker_nodes(admin, call.context.listener)
            ],
        }
        if request.get("includeClusterAuthorizedOperations", False):
            operations = cluster_operations(admin, call, asked=True)
            answer["clusterAuthorizedOperations"] = operations
        return answer

    def _topics(self, call: Call) -> list[Data]:
        asked: list[Data] | None = call.request["topics"]
        if asked is None or (not asked and call.context.api_version < _NULL_IS_ALL_SINCE):
            return self._all(call)
        ids = dict.fromkeys(
            topic["topicId"] for topic in asked if topic.get("topicId", ZERO_UUID) != ZERO_UUID
        )
        if ids:
            return self._by_id(call, list(ids))
        return self._by_name(call, list(dict.fromkeys(topic["name"] for topic in asked)))

    def _all(self, call: Call) -> list[Data]:
        """Those that may be described; of the others nothing is said."""
        return [
            self._entry(call, state)
            for state in self._admin.image.topics.values()
            if self._admin.allows_topic(call, Operation.DESCRIBE, state.name)
        ]

    def _by_id(self, call: Call, ids: list[bytes]) -> list[Data]:
        """Unknown ids first; a name that may not be described stays unsaid."""
        image = self._admin.image
        known = {each: name for each in ids if (name := image.topic_names.get(each)) is not None}
        allowed, refused = self._parted(call, known.values())
        unknown = (each for each in ids if each not in known)
        return [
            *(_missing(None, each, ErrorCode.UNKNOWN_TOPIC_ID) for each in unknown),
            *(self._entry(call, image.topics[name]) for name in allowed),
            *(_missing(None, image.topics[name].topic_id, _REFUSED) for name in refused),
        ]

    def _parted(self, call: Call, names: Iterable[str]) -> tuple[list[str], list[str]]:
        """Names of topics: those that may be described, and the others."""
        allowed: list[str] = []
        refused: list[str] = []
        for name in names:
            may = self._admin.allows_topic(call, Operation.DESCRIBE, name)
            (allowed if may else refused).append(name)
        return allowed, refused

    def _by_name(self, call: Call, names: list[str]) -> list[Data]:
        """Topics that there are, those being made, those that may not be made or described."""
        admin = self._admin
        allowed, refused = self._parted(call, names)
        creates = admin.settings.auto_create_topics and call.request.get(
            "allowAutoTopicCreation", True
        )
        found: list[Data] = []
        unknown: list[str] = []
        for name in allowed:
            state = admin.image.topics.get(name)
            if state is None:
                unknown.append(name)
            else:
                found.append(self._entry(call, state))
        uncreatable: list[Data] = []
        for name in unknown:
            if creates and not self._may_create(call, name):
                uncreatable.append(_missing(name, ZERO_UUID, _REFUSED))
            else:
                entry = _missing(name, ZERO_UUID, self._unknown(call, name, creates=creates))
                found.append(self._with_operations(call, entry))
        found += uncreatable
        conceals = admin.settings.profile.conceals_topics
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if conceals else _REFUSED
        return found + [_missing(name, ZERO_UUID, error, internal=False) for name in refused]

    def _may_create(self, call: Call, name: str) -> bool:
        create = Operation.CREATE
        return self._admin.allows_cluster(call, create) or self._admin.allows_topic(
            call, create, name
        )

    def _unknown(self, call: Call, name: str, *, creates: bool) -> ErrorCode:
        """The error of a topic that there is not; it may come into being meanwhile."""
        if complaint(name) is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if not creates:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        factor = self._admin.settings.default_replication_factor
        if is_internal(name) or factor <= len(self._admin.living_ids()):
            self._admin.topics.create_asked_for(name, call.now)
        return self._admin.auto_creation_answer

    def _entry(self, call: Call, state: TopicState) -> Data:
        entry = {
            "errorCode": 0,
            "name": state.name,
            "topicId": state.topic_id,
            "isInternal": is_internal(state.name),
            "partitions": partition_entries(self._admin, call, state),
        }
        return self._with_operations(call, entry)

    def _with_operations(self, call: Call, entry: Data) -> Data:
        if call.request.get("includeTopicAuthorizedOperations", False):
            operations = topic_operations(self._admin, call, entry["name"])
            entry["topicAuthorizedOperations"] = operations
        return entry


def _names_ids(asked: list[Data]) -> bool:
    """Whether versions without ids are asked for one, or for no name."""
    return any(
        topic["name"] is None or topic.get("topicId", ZERO_UUID) != ZERO_UUID for topic in asked
    )


def _invalid(topic: Data) -> Data:
    name, topic_id = topic["name"] or "", topic.get("topicId", ZERO_UUID)
    return _missing(name, topic_id, ErrorCode.INVALID_REQUEST, internal=False)


def _missing(
    name: str | None, topic_id: bytes, error: ErrorCode, *, internal: bool | None = None
) -> Data:
    shown = name is not None and is_internal(name) if internal is None else internal
    return {
        "errorCode": int(error),
        "name": name,
        "topicId": topic_id,
        "isInternal": shown,
        "partitions": [],
    }
