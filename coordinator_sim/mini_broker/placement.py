"""Which brokers hold the replicas of new partitions, chosen or told.

Source: kafka trunk, StripedReplicaPlacer.java; ReplicationControlManager
.validateManualPartitionAssignment.
"""

from collections.abc import Sequence

from coordinator_sim.mini_broker.administration import ApiError
from coordinator_sim.protocol.errors import ErrorCode

Replicas = tuple[int, ...]


def shortage(
    replication_factor: int, registered: int, living: int, *, may_be_cordoned: bool
) -> str | None:
    """Why so many replicas cannot be placed, in Kafka's words; None when they can.

    Args:
        replication_factor: Replicas of a partition.
        registered: Brokers that there are.
        living: Those of them that live.
        may_be_cordoned: Whether the text speaks of cordoned directories, too.
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
    """Replicas of partitions, each beginning with another broker.

    UNSPECIFIED: Kafka begins at a broker drawn by chance; here partition 0 begins at the first.

    Args:
        broker_ids: Those that live, at least one, before those that do not.
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
    """What is wrong with replicas that a client chose; None when nothing is.

    Args:
        replicas: Of one partition.
        registered: Ids of all brokers.
        factor: Replicas of the partitions before it; None for the first.
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
