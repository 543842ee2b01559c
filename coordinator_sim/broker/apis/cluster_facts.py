"""Brokers and partitions as clients see them through the listener that they use.

Source: kafka trunk, KRaftMetadataCache.scala (getPartitionMetadata, getAliveBrokerNodes,
getOfflineReplicas); AclEntry.supportedOperations.
"""

from typing import Any, Final

from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call
from coordinator_sim.broker.metadata.image import NO_LEADER, PartitionState, TopicState
from coordinator_sim.broker.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponsePartition,
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
