"""DescribeCluster and DescribeTopicPartitions.

Source: kafka trunk, AuthHelper.computeDescribeClusterResponse;
DescribeTopicPartitionsRequestHandler.java; KRaftMetadataCache
.getTopicMetadataForDescribeTopicResponse.
"""

from typing import Final

from coordinator_sim.broker.apis.administration import ApiError
from coordinator_sim.broker.apis.cluster_facts import (
    broker_nodes,
    cluster_operations,
    controller_id,
    described_partitions,
    topic_operations,
)
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.metadata.image import NO_LEADER, TopicState
from coordinator_sim.broker.security.authorizer import Operation
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.topic_names import complaint, is_internal
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from coordinator_sim.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponseTopic,
)

_BROKERS: Final = 1
_CONTROLLERS: Final = 2
_TYPED_SINCE: Final = 1
_MAX_PARTITIONS: Final = "max.request.partition.size.limit"
_AN_ANSWER: Final = 10
_A_TOPIC: Final = 60
"""Costs of asking whether a topic may be seen, and of describing it; see `log.format.steps`."""
_Page = tuple[
    list[DescribeTopicPartitionsResponseTopic], DescribeTopicPartitionsResponseCursor | None
]


class ClusterApi:
    """Describes the cluster, and partitions page by page.

    Args:
        cluster: The parts of the cluster.
    """

    __slots__ = ("_cluster",)

    def __init__(self, cluster: ClusterParts) -> None:
        self._cluster = cluster

    def handlers(self) -> Handlers:
        """Handlers of DescribeCluster and DescribeTopicPartitions."""
        return {
            ApiKey.DESCRIBE_CLUSTER: self._describe,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS: self._cluster.jobs.handler(self._descriptions),
        }

    # -- DescribeCluster -------------------------------------------------------------------

    def _describe(self, call: Call[DescribeClusterRequest]) -> DescribeClusterResponse:
        cluster = self._cluster
        error = _endpoint_type_error(call)
        if error is not None:
            return DescribeClusterResponse(error_code=error.code, error_message=error.message)
        listener = call.context.listener
        nodes = broker_nodes(cluster, listener)
        leading = controller_id(cluster)
        asked = call.request.include_cluster_authorized_operations
        return DescribeClusterResponse(
            cluster_id=cluster.settings.cluster_id,
            controller_id=leading if any(node[0] == leading for node in nodes) else NO_LEADER,
            endpoint_type=_BROKERS,
            cluster_authorized_operations=cluster_operations(cluster, call, asked=asked),
            brokers=tuple(
                DescribeClusterBroker(
                    broker_id=broker_id, host=found.host, port=found.port, is_fenced=fenced
                )
                for broker_id in cluster.settings.broker_ids
                if (found := cluster.registered(broker_id, listener)) is not None
                and (
                    not (fenced := cluster.endpoint(broker_id, listener) is None)
                    or call.request.include_fenced_brokers
                )
            ),
        )

    # -- DescribeTopicPartitions -----------------------------------------------------------

    def _descriptions(
        self, call: Call[DescribeTopicPartitionsRequest]
    ) -> Steps[DescribeTopicPartitionsResponse | None]:
        request = call.request
        cursor = request.cursor
        begin = "" if cursor is None else cursor.topic_name
        fetches_all = not request.topics
        asked = [topic.name for topic in request.topics] or list(self._cluster.image.topics)
        names = sorted(dict.fromkeys(name for name in asked if name >= begin))
        is_lost = not fetches_all and begin not in names
        if cursor is not None and (is_lost or cursor.partition_index < 0):
            invalid = ErrorCode.INVALID_REQUEST
            return DescribeTopicPartitionsResponse(
                topics=tuple(_missing(topic.name, invalid) for topic in request.topics)
            )
        allowed = []
        for name in names:
            if self._cluster.allows_topic(call, Operation.DESCRIBE, name):
                allowed.append(name)
            yield _AN_ANSWER
        topics, next_cursor = yield from self._page(call, allowed, is_listed=not fetches_all)
        if not fetches_all:
            failed = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            refused = dict.fromkeys(names)
            for name in allowed:
                del refused[name]
            topics += [_missing(name, failed) for name in refused]
        return DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=next_cursor)

    def _page(
        self, call: Call[DescribeTopicPartitionsRequest], names: list[str], *, is_listed: bool
    ) -> Steps[_Page]:
        """Topics from the cursor on, up to the limit of partitions, and the next page's cursor."""
        cursor = call.request.cursor
        remaining = self._limit(call)
        topics: list[DescribeTopicPartitionsResponseTopic] = []
        for name in names:
            if remaining == 0:
                return topics, DescribeTopicPartitionsResponseCursor(name, 0)
            state = self._cluster.image.topics.get(name)
            if state is None:
                if is_listed:
                    topics.append(self._unknown(call, name))
                yield _A_TOPIC
                continue
            first = 0
            if cursor is not None and name == cursor.topic_name:
                first = cursor.partition_index
            end = min(len(state.partitions), first + remaining)
            described = self._described(call, state, first, end)
            topics.append(described)
            if end < len(state.partitions):
                return topics, DescribeTopicPartitionsResponseCursor(name, end)
            remaining -= len(described.partitions)
            yield _A_TOPIC + 4 * len(described.partitions)
        return topics, None

    def _described(
        self,
        call: Call[DescribeTopicPartitionsRequest],
        state: TopicState,
        first: int,
        end: int,
    ) -> DescribeTopicPartitionsResponseTopic:
        return DescribeTopicPartitionsResponseTopic(
            name=state.name,
            topic_id=state.topic_id,
            is_internal=is_internal(state.name),
            partitions=described_partitions(self._cluster, call, state, first, end),
            topic_authorized_operations=topic_operations(self._cluster, call, state.name),
        )

    def _unknown(
        self, call: Call[DescribeTopicPartitionsRequest], name: str
    ) -> DescribeTopicPartitionsResponseTopic:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if complaint(name) is not None:
            code = ErrorCode.INVALID_TOPIC_EXCEPTION
        return DescribeTopicPartitionsResponseTopic(
            error_code=code,
            name=name,
            is_internal=is_internal(name),
            topic_authorized_operations=topic_operations(self._cluster, call, name),
        )

    def _limit(self, call: Call[DescribeTopicPartitionsRequest]) -> int:
        limit = self._cluster.configs.broker_value(_MAX_PARTITIONS)
        asked = call.request.response_partition_limit
        return max(min(limit, asked) if isinstance(limit, int) else asked, 1)


def _endpoint_type_error(call: Call[DescribeClusterRequest]) -> ApiError | None:
    """The error of an endpoint type other than brokers; None for brokers."""
    wanted = call.request.endpoint_type
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


def _missing(name: str, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name)
