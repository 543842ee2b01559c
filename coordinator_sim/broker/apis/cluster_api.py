"""DescribeCluster and DescribeTopicPartitions.

Source: kafka trunk, AuthHelper.computeDescribeClusterResponse;
DescribeTopicPartitionsRequestHandler.java; KRaftMetadataCache
.getTopicMetadataForDescribeTopicResponse, getPartitionMetadata, getAliveBrokerNodes,
getOfflineReplicas; AclEntry.supportedOperations.
"""

from typing import Any, Final

from coordinator_sim.broker.apis.administration import ApiError
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.metadata.image import NO_LEADER, PartitionState, TopicState
from coordinator_sim.broker.security.authorizer import CLUSTER_NAME, Operation, ResourceType
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
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from coordinator_sim.messages.requests import NO_AUTHORIZED_OPERATIONS

_TOPIC_OPERATIONS: Final = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DESCRIBE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_CLUSTER_OPERATIONS: Final = (
    Operation.CREATE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
    Operation.ALTER,
    Operation.DESCRIBE,
)


def broker_nodes(cluster: ClusterParts, listener: str) -> list[tuple[int, str, int]]:
    """Id, host and port of each living broker that has the listener, by id."""
    return [
        (broker_id, found.host, found.port)
        for broker_id in cluster.settings.broker_ids
        if (found := cluster.endpoint(broker_id, listener)) is not None
    ]


def controller_id(cluster: ClusterParts) -> int:
    """The broker that clients are told is the controller; -1 when no broker is alive.

    UNSPECIFIED: a KRaft broker names a living broker drawn by chance; here it is the first.
    """
    return next(iter(cluster.living_ids()), NO_LEADER)


def topic_operations(cluster: ClusterParts, call: Call[Any], name: str) -> int:
    """Bits of the operations that the sender may do on a topic."""
    topic = ResourceType.TOPIC
    return cluster.access.bits(call.context, _TOPIC_OPERATIONS, topic, name)


def cluster_operations(cluster: ClusterParts, call: Call[Any], *, asked: bool) -> int:
    """Bits of the operations the sender may do on the cluster; 0 without DESCRIBE on it."""
    if not asked:
        return NO_AUTHORIZED_OPERATIONS
    if not cluster.allows_cluster(call, Operation.DESCRIBE):
        return 0
    kind = ResourceType.CLUSTER
    return cluster.access.bits(call.context, _CLUSTER_OPERATIONS, kind, CLUSTER_NAME)


def described_partitions(
    cluster: ClusterParts,
    call: Call[DescribeTopicPartitionsRequest],
    topic: TopicState,
    first: int,
    end: int,
) -> tuple[DescribeTopicPartitionsResponsePartition, ...]:
    """Partitions of a topic, as DescribeTopicPartitions shows them: without errors.

    Args:
        cluster: The parts of the cluster.
        call: The request; its listener decides which leaders are reachable.
        topic: The topic.
        first: Number of the first partition to show.
        end: Number after the last one.
    """
    listener = call.context.listener
    return tuple(
        DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            leader_id=_reachable_leader(cluster, listener, state),
            leader_epoch=state.leader_epoch,
            replica_nodes=state.replicas,
            isr_nodes=state.isr,
            eligible_leader_replicas=(),
            last_known_elr=(),
            offline_replicas=_offline(cluster, listener, state),
        )
        for index, state in list(enumerate(topic.partitions))[first:end]
    )


def _reachable_leader(cluster: ClusterParts, listener: str, state: PartitionState) -> int:
    has_leader = cluster.endpoint(state.leader_id, listener) is not None
    return state.leader_id if has_leader else NO_LEADER


def _offline(cluster: ClusterParts, listener: str, state: PartitionState) -> tuple[int, ...]:
    return tuple(each for each in state.replicas if cluster.endpoint(each, listener) is None)


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
            described = DescribeTopicPartitionsResponseTopic(
                name=state.name,
                topic_id=state.topic_id,
                is_internal=is_internal(state.name),
                partitions=described_partitions(self._cluster, call, state, first, end),
                topic_authorized_operations=topic_operations(self._cluster, call, state.name),
            )
            topics.append(described)
            if end < len(state.partitions):
                return topics, DescribeTopicPartitionsResponseCursor(name, end)
            remaining -= len(described.partitions)
            yield _A_TOPIC + 4 * len(described.partitions)
        return topics, None

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
