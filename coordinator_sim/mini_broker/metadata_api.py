"""Metadata: brokers, topics and who leads their partitions.

Source: kafka trunk, KafkaApis.handleTopicMetadataRequest.
"""

from collections.abc import Callable
from typing import Final

from coordinator_sim.mini_broker.contract import Call, Handlers, Instants
from coordinator_sim.mini_broker.image import ClusterImage, TopicState
from coordinator_sim.mini_broker.settings import ClusterSettings, Endpoint
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.partitioning import OFFSETS_TOPIC
from coordinator_sim.wire.schema import ZERO_UUID, Data

_NULL_IS_ALL_SINCE: Final = 1
_INTERNAL: Final = frozenset({OFFSETS_TOPIC, "__transaction_state"})


class MetadataApi:
    """Answers Metadata.

    Args:
        image: What there is.
        settings: Of the cluster.
        endpoint: Where a living broker is reached on a listener; None when it is not alive.
        auto_create: Creates a topic that was asked for.
    """

    __slots__ = ("_auto_create", "_endpoint", "_image", "_settings")

    def __init__(
        self,
        image: ClusterImage,
        settings: ClusterSettings,
        *,
        endpoint: Callable[[int, str], Endpoint | None],
        auto_create: Callable[[str, Instants], None],
    ) -> None:
        self._image = image
        self._settings = settings
        self._endpoint = endpoint
        self._auto_create = auto_create

    def handlers(self) -> Handlers:
        """Of Metadata alone."""
        return {ApiKey.METADATA: self._handle}

    def _handle(self, call: Call) -> Data:
        brokers = [
            {"nodeId": broker_id, "host": found.host, "port": found.port, "rack": None}
            for broker_id in self._settings.broker_ids
            if (found := self._endpoint(broker_id, call.context.listener)) is not None
        ]
        return {
            "brokers": brokers,
            "clusterId": self._settings.cluster_id,
            "controllerId": brokers[0]["nodeId"] if brokers else -1,
            "topics": self._topics(call),
        }

    def _topics(self, call: Call) -> list[Data]:
        asked = call.request["topics"]
        if asked is None or (not asked and call.context.api_version < _NULL_IS_ALL_SINCE):
            return [_topic(state) for state in self._image.topics.values()]
        return [self._named(topic, call) for topic in asked]

    def _named(self, topic: Data, call: Call) -> Data:
        name = topic.get("name")
        topic_id = topic.get("topicId", ZERO_UUID)
        if name is None:
            name = self._image.topic_names.get(topic_id)
            if name is None:
                return _missing(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
        state = self._image.topics.get(name)
        if state is not None:
            return _topic(state)
        if self._settings.auto_create_topics and call.request.get("allowAutoTopicCreation", True):
            self._auto_create(name, call.now)
            return _missing(name, ZERO_UUID, ErrorCode.LEADER_NOT_AVAILABLE)
        return _missing(name, ZERO_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _missing(name: str | None, topic_id: bytes, error: ErrorCode) -> Data:
    return {"errorCode": int(error), "name": name, "topicId": topic_id, "partitions": []}


def _topic(state: TopicState) -> Data:
    partitions = [
        {
            "errorCode": 0 if each.leader_id >= 0 else int(ErrorCode.LEADER_NOT_AVAILABLE),
            "partitionIndex": index,
            "leaderId": each.leader_id,
            "leaderEpoch": each.leader_epoch,
            "replicaNodes": list(each.replicas),
            "isrNodes": list(each.isr),
            "offlineReplicas": [],
        }
        for index, each in enumerate(state.partitions)
    ]
    return {
        "errorCode": 0,
        "name": state.name,
        "topicId": state.topic_id,
        "isInternal": state.name in _INTERNAL,
        "partitions": partitions,
    }
