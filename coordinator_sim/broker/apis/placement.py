"""Placement of the replicas of new partitions: chosen by the cluster or by the client.

Source: kafka trunk, StripedReplicaPlacer.java; ReplicationControlManager
.validateManualPartitionAssignment.
"""

from collections.abc import Sequence

from coordinator_sim.broker.apis.administration import ApiError
from coordinator_sim.kafka.errors import ErrorCode

Replicas = tuple[int, ...]


def shortage(
    replication_factor: int, registered: int, living: int, *, may_be_cordoned: bool
) -> str | None:
    """Error message, in Kafka's words, when so many replicas cannot be placed; None if they can.

    Args:
        replication_factor: Replicas of a partition.
        registered: Number of registered brokers.
        living: Number of living brokers.
        may_be_cordoned: Whether the message also mentions cordoned directories.
    """
    if living == 0:
        return "All brokers are currently fenced."
    if replication_factor > registered:
        cordoned = " or some brokers have all their log directories cordoned"
        return (
            f"The target replication factor of {replication_factor} cannot be reached because "
            f"only {registered} broker(s) are registered{cordoned if may_be_cordoned else ''}."
        )
    return None


def spread(broker_ids: Sequence[int], first: int, count: int, factor: int) -> tuple[Replicas, ...]:
    """Replicas of new partitions, each starting at the next broker.

    UNSPECIFIED: Kafka begins at a random broker; here partition 0 begins at the first.

    Args:
        broker_ids: Living brokers, at least one, followed by the others.
        first: Number of the first partition.
        count: How many partitions.
        factor: Replicas of each, at most as many as there are brokers.
    """
    size = len(broker_ids)
    return tuple(
        tuple(broker_ids[(partition + place) % size] for place in range(factor))
        for partition in range(first, first + count)
    )


def assignment_error(
    replicas: Sequence[int], registered: Sequence[int], factor: int | None
) -> ApiError | None:
    """The error of replicas that a client chose; None if they are valid.

    Args:
        replicas: Replicas of one partition.
        registered: Ids of all brokers.
        factor: Number of replicas of the partitions before; None for the first partition.
    """
    text = _assignment_complaint(replicas, registered, factor)
    if text is None:
        return None
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"The manual partition assignment {text}")


def _assignment_complaint(
    replicas: Sequence[int], registered: Sequence[int], factor: int | None
) -> str | None:
    if not replicas:
        return "includes an empty replica list."
    previous: int | None = None
    for broker_id in sorted(replicas):
        if broker_id not in registered:
            return f"includes broker {broker_id}, but no such broker is registered."
        if broker_id == previous:
            return f"includes the broker {broker_id} more than once."
        previous = broker_id
    if factor is not None and len(replicas) != factor:
        return (
            f"includes a partition with {len(replicas)} replica(s), but this is not consistent "
            f"with previous partitions, which have {factor} replica(s)."
        )
    return None
