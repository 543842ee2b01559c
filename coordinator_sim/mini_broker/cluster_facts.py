"""What clients are told of brokers and partitions, on the listener that they came in by.

Source: kafka trunk, KRaftMetadataCache.scala (getPartitionMetadata, getAliveBrokerNodes,
getOfflineReplicas); AclEntry.supportedOperations.
"""

from typing import Final

from coordinator_sim.broker.authorizer import CLUSTER_NAME, Operation, ResourceType
from coordinator_sim.mini_broker.administration import Administration
from coordinator_sim.mini_broker.contract import Call
from coordinator_sim.mini_broker.image import NO_LEADER, PartitionState, TopicState
from coordinator_sim.protocol.admin_messages import NO_AUTHORIZED_OPERATIONS
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.wire.schema import Data

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
_NAMES_LISTENER_SINCE: Final = 6
_HIDES_BROKERS_UNTIL: Final = 0


def broker_nodes(admin: Administration, listener: str) -> list[tuple[int, str, int]]:
    """Id, host and port of each living broker that has the listener, by id."""
    return [
        (broker_id, found.host, found.port)
        for broker_id in admin.settings.broker_ids
        if (found := admin.endpoint(broker_id, listener)) is not None
    ]


def controller_id(admin: Administration) -> int:
    """Whom clients take for the controller; -1 when no broker lives.

    UNSPECIFIED: a KRaft broker names a living broker drawn by chance; here it is the first.
    """
    return next(iter(admin.living_ids()), NO_LEADER)


def topic_operations(admin: Administration, call: Call, name: str) -> int:
    """Bits of what the sender may do to a topic."""
    topic = ResourceType.TOPIC
    return admin.access.bits(call.context, _TOPIC_OPERATIONS, topic, name)


def cluster_operations(admin: Administration, call: Call, *, asked: bool) -> int:
    """Bits of what the sender may do to the cluster; none when not allowed to look at it."""
    if not asked:
        return NO_AUTHORIZED_OPERATIONS
    if not admin.allows_cluster(call, Operation.DESCRIBE):
        return 0
    cluster = ResourceType.CLUSTER
    return admin.access.bits(call.context, _CLUSTER_OPERATIONS, cluster, CLUSTER_NAME)


def described_partitions(
    admin: Administration, call: Call, topic: TopicState, first: int = 0, end: int | None = None
) -> list[Data]:
    """Partitions of a topic, as DescribeTopicPartitions shows them: without errors.

    Args:
        admin: The cluster.
        call: Whose listener counts.
        topic: Whose partitions.
        first: Number of the first to show.
        end: Number after the last; None for all.
    """
    listener = call.context.listener
    shown = list(enumerate(topic.partitions))[first:end]
    return [_partition(admin, listener, index, state) for index, state in shown]


def partition_entries(admin: Administration, call: Call, topic: TopicState) -> list[Data]:
    """All partitions of a topic, as Metadata shows them: with what is wrong with each."""
    listener, version = call.context.listener, call.context.api_version
    entries: list[Data] = []
    for index, state in enumerate(topic.partitions):
        entry = _partition(admin, listener, index, state)
        error = _leader_error(admin, listener, state, version)
        if version <= _HIDES_BROKERS_UNTIL:
            error = _hide_missing(entry) if error is ErrorCode.NONE else error
        entries.append({**entry, "errorCode": int(error)})
    return entries


def _partition(admin: Administration, listener: str, index: int, state: PartitionState) -> Data:
    has_leader = admin.endpoint(state.leader_id, listener) is not None
    return {
        "errorCode": 0,
        "partitionIndex": index,
        "leaderId": state.leader_id if has_leader else NO_LEADER,
        "leaderEpoch": state.leader_epoch,
        "replicaNodes": list(state.replicas),
        "isrNodes": list(state.isr),
        "eligibleLeaderReplicas": [],
        "lastKnownElr": [],
        "offlineReplicas": [
            each for each in state.replicas if admin.endpoint(each, listener) is None
        ],
    }


def _leader_error(
    admin: Administration, listener: str, state: PartitionState, version: int
) -> ErrorCode:
    """LISTENER_NOT_FOUND tells a setup apart where the version can say so."""
    if admin.endpoint(state.leader_id, listener) is not None:
        return ErrorCode.NONE
    if version >= _NAMES_LISTENER_SINCE and admin.is_alive(state.leader_id):
        return ErrorCode.LISTENER_NOT_FOUND
    return ErrorCode.LEADER_NOT_AVAILABLE


def _hide_missing(entry: Data) -> ErrorCode:
    """Leave dead brokers out of an entry of version 0, and say that something is missing."""
    offline = entry["offlineReplicas"]
    for field in ("replicaNodes", "isrNodes"):
        shown = [each for each in entry[field] if each not in offline]
        if shown != entry[field]:
            entry["replicaNodes"] = [e for e in entry["replicaNodes"] if e not in offline]
            entry["isrNodes"] = [e for e in entry["isrNodes"] if e not in offline]
            return ErrorCode.REPLICA_NOT_AVAILABLE
    return ErrorCode.NONE
