"""DescribeLogDirs and DescribeProducers: what brokers tell of the insides of their logs.

Source: kafka trunk, KafkaApis.handleDescribeLogDirsRequest and handleDescribeProducersRequest;
ReplicaManager.describeLogDirs and activeProducerState; Topic.validate.
"""

from collections.abc import Callable

from msgspec import Struct

from coordinator_sim.broker.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.broker.passage import Access
from coordinator_sim.mini_broker.contract import Call, Handlers
from coordinator_sim.mini_broker.hosted_partitions import HostedPartitions
from coordinator_sim.mini_broker.purgatory import Place
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.error_texts import error_message
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.topic_names import complaint
from coordinator_sim.wire.schema import Data


class LogVolume(Struct, frozen=True, gc=False):
    """The one log directory of a broker, and the volume that it is on.

    Args:
        path: Absolute.
        total_bytes: Of the volume; -1 unknown.
        usable_bytes: That are left of it; -1 unknown.
    """

    path: str
    total_bytes: int = -1
    usable_bytes: int = -1


class DescribeLogsApi:
    """Answers DescribeLogDirs and DescribeProducers.

    Args:
        partitions: What the brokers host.
        access: Whom to ask.
        volume: Of the broker of that id.
    """

    __slots__ = ("_access", "_partitions", "_volume")

    def __init__(
        self, partitions: HostedPartitions, access: Access, volume: Callable[[int], LogVolume]
    ) -> None:
        self._partitions = partitions
        self._access = access
        self._volume = volume

    def handlers(self) -> Handlers:
        """Of both."""
        return {
            ApiKey.DESCRIBE_LOG_DIRS: self._log_dirs,
            ApiKey.DESCRIBE_PRODUCERS: self._producers,
        }

    # -- DescribeLogDirs -------------------------------------------------------------------

    def _log_dirs(self, call: Call) -> Data:
        if not self._access.allows(
            call.context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME
        ):
            return {"errorCode": int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), "results": []}
        volume = self._volume(call.broker_id)
        topics: dict[str, list[Data]] = {}
        for place in self._asked(call):
            told = self._sizes(call, place)
            if told is not None:
                topics.setdefault(place[0], []).append(told)
        return {
            "errorCode": 0,
            "results": [
                {
                    "errorCode": 0,
                    "logDir": volume.path,
                    "topics": [{"name": name, "partitions": told} for name, told in topics.items()],
                    "totalBytes": volume.total_bytes,
                    "usableBytes": volume.usable_bytes,
                }
            ],
        }

    def _asked(self, call: Call) -> list[Place]:
        asked = call.request["topics"]
        if asked is None:
            return [
                (topic.name, index)
                for topic in self._partitions.image.topics.values()
                for index in range(len(topic.partitions))
            ]
        named = ((topic["topic"], index) for topic in asked for index in topic["partitions"])
        return list(dict.fromkeys(named))

    def _sizes(self, call: Call, place: Place) -> Data | None:
        log = self._partitions.hosted(call.broker_id, place)
        if isinstance(log, ErrorCode):
            return None
        return {
            "partitionIndex": place[1],
            "partitionSize": log.size_bytes,
            "offsetLag": max(log.high_watermark - log.end_offset, 0),
            "isFutureKey": False,
        }

    # -- DescribeProducers -----------------------------------------------------------------

    def _producers(self, call: Call) -> Data:
        return {
            "topics": [
                {
                    "name": topic["name"],
                    "partitions": self._producers_of(call, topic),
                }
                for topic in call.request["topics"]
            ]
        }

    def _producers_of(self, call: Call, topic: Data) -> list[Data]:
        name = topic["name"]
        error, message = self._topic_error(call, name)
        indexes = topic["partitionIndexes"]
        if error is ErrorCode.NONE:
            return [self._active_producers(call, (name, index)) for index in indexes]
        return [
            {"partitionIndex": index, "errorCode": int(error), "errorMessage": message}
            for index in indexes
        ]

    def _topic_error(self, call: Call, name: str) -> tuple[ErrorCode, str | None]:
        message = complaint(name)
        if message is not None:
            return ErrorCode.INVALID_TOPIC_EXCEPTION, message
        error = ErrorCode.NONE
        if not self._access.allows(call.context, Operation.READ, ResourceType.TOPIC, name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif name not in self._partitions.image.topics:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return error, None if error is ErrorCode.NONE else error_message(error)

    def _active_producers(self, call: Call, place: Place) -> Data:
        log = self._partitions.hosted(call.broker_id, place)
        if isinstance(log, ErrorCode):
            return {"partitionIndex": place[1], "errorCode": int(log)}
        return {
            "partitionIndex": place[1],
            "errorCode": 0,
            "activeProducers": [
                {
                    "producerId": each.producer_id,
                    "producerEpoch": each.producer_epoch,
                    "lastSequence": each.last_sequence,
                    "lastTimestamp": each.last_timestamp_ms,
                    "coordinatorEpoch": each.coordinator_epoch,
                    "currentTxnStartOffset": each.current_txn_start_offset,
                }
                for each in log.producers()
            ],
        }
