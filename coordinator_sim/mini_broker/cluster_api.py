"""DescribeCluster and DescribeTopicPartitions.

Source: kafka trunk, AuthHelper.computeDescribeClusterResponse;
DescribeTopicPartitionsRequestHandler.java; KRaftMetadataCache
.getTopicMetadataForDescribeTopicResponse.
"""

from typing import Final

from coordinator_sim.broker.authorizer import Operation
from coordinator_sim.mini_broker.administration import Administration, ApiError
from coordinator_sim.mini_broker.cluster_facts import (
    broker_nodes,
    cluster_operations,
    controller_id,
    described_partitions,
    topic_operations,
)
from coordinator_sim.mini_broker.contract import Call, Handlers
from coordinator_sim.mini_broker.topic_names import is_internal
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.topic_names import complaint
from coordinator_sim.wire.schema import ZERO_UUID, Data

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_TYPED_SINCE: Final = 1
_MAX_PARTITIONS: Final = "max.request.partition.size.limit"


class ClusterApi:
    """Tells of the cluster and of many partitions, page by page.

    Args:
        admin: The cluster.
    """

    __slots__ = ("_admin",)

    def __init__(self, admin: Administration) -> None:
        self._admin = admin

    def handlers(self) -> Handlers:
        """Of the two APIs."""
        return {
            ApiKey.DESCRIBE_CLUSTER: self._describe,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS: self._describe_partitions,
        }

    # -- DescribeCluster -------------------------------------------------------------------

    def _describe(self, call: Call) -> Data:
        admin = self._admin
        error = _endpoint_type_error(call)
        if error is not None:
            return error.fields()
        listener = call.context.listener
        nodes = broker_nodes(admin, listener)
        leading = controller_id(admin)
        asked = call.request["includeClusterAuthorizedOperations"]
        return {
            "clusterId": admin.settings.cluster_id,
            "controllerId": leading if any(node[0] == leading for node in nodes) else -1,
            "endpointType": _BROKERS,
            "clusterAuthorizedOperations": cluster_operations(admin, call, asked=asked),
            "brokers": [
                {"brokerId": broker_id, "host": found.host, "port": found.port, "isFenced": fenced}
                for broker_id in admin.settings.broker_ids
                if (found := admin.registered(broker_id, listener)) is not None
                and (
                    not (fenced := admin.endpoint(broker_id, listener) is None)
                    or call.request.get("includeFencedBrokers", False)
                )
            ],
        }

    # -- DescribeTopicPartitions -----------------------------------------------------------

    def _describe_partitions(self, call: Call) -> Data:
        request = call.request
        cursor = request["cursor"]
        begin = "" if cursor is None else cursor["topicName"]
        fetches_all = not request["topics"]
        asked = [topic["name"] for topic in request["topics"]] or list(self._admin.image.topics)
        names = sorted(dict.fromkeys(name for name in asked if name >= begin))
        is_lost = not fetches_all and begin not in names
        if cursor is not None and (is_lost or cursor["partitionIndex"] < 0):
            return {"topics": [_refused(topic["name"]) for topic in request["topics"]]}
        allowed = [
            name for name in names if self._admin.allows_topic(call, Operation.DESCRIBE, name)
        ]
        page = self._page(call, allowed, is_listed=not fetches_all)
        for topic in page["topics"]:
            operations = topic_operations(self._admin, call, topic["name"])
            topic["topicAuthorizedOperations"] = operations
        if not fetches_all:
            failed = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused = dict.fromkeys(names)
            for name in allowed:
                del refused[name]
            page["topics"] += [_missing(name, failed) for name in refused]
        return page

    def _page(self, call: Call, names: list[str], *, is_listed: bool) -> Data:
        """Topics from the cursor on, up to the limit of partitions; where the next page begins."""
        cursor = call.request["cursor"]
        remaining = self._limit(call)
        topics: list[Data] = []
        for name in names:
            if remaining == 0:
                return {"topics": topics, "nextCursor": _cursor(name, 0)}
            state = self._admin.image.topics.get(name)
            if state is None:
                if is_listed:
                    topics.append(_unknown(name))
                continue
            resumed = cursor is not None and name == cursor["topicName"]
            first = cursor["partitionIndex"] if resumed else 0
            end = min(len(state.partitions), first + remaining)
            partitions = described_partitions(self._admin, call, state, first, end)
            topics.append(
                {
                    "errorCode": 0,
                    "name": name,
                    "topicId": state.topic_id,
                    "isInternal": is_internal(name),
                    "partitions": partitions,
                }
            )
            if end < len(state.partitions):
                return {"topics": topics, "nextCursor": _cursor(name, end)}
            remaining -= len(partitions)
        return {"topics": topics, "nextCursor": None}

    def _limit(self, call: Call) -> int:
        limit = self._admin.configs.broker_value(_MAX_PARTITIONS)
        asked: int = call.request["responsePartitionLimit"]
        return max(min(limit, asked) if isinstance(limit, int) else asked, 1)


def _endpoint_type_error(call: Call) -> ApiError | None:
    """A broker speaks of brokers alone."""
    wanted = call.request.get("endpointType", _BROKERS)
    if wanted == _BROKERS:
        return None
    typed = call.context.api_version >= _TYPED_SINCE
    if wanted != _CONTROLLERS:
        code = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE if typed else ErrorCode.INVALID_REQUEST
        return ApiError(code, f"Unsupported endpoint type {wanted}")
    code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if typed else ErrorCode.INVALID_REQUEST
    text = (
        "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type "
        "CONTROLLER"
    )
    return ApiError(code, text)


def _cursor(name: str, partition: int) -> Data:
    return {"topicName": name, "partitionIndex": partition}


def _unknown(name: str) -> Data:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if complaint(name) is not None:
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
    return {**_missing(name, code), "isInternal": is_internal(name)}


def _refused(name: str) -> Data:
    return _missing(name, ErrorCode.INVALID_REQUEST)


def _missing(name: str, code: ErrorCode) -> Data:
    return {"errorCode": int(code), "name": name, "topicId": ZERO_UUID, "partitions": []}
