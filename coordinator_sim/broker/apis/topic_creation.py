"""Validation of new topics, and the plan of their partitions and settings.

Source: kafka trunk, ReplicationControlManager.createTopics, createTopic, validateNewTopicNames,
computeConfigChanges.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.broker.apis.administration import NO_ERROR, ApiError
from coordinator_sim.broker.apis.config_validation import topic_error
from coordinator_sim.broker.apis.placement import Replicas, assignment_error, shortage, spread
from coordinator_sim.broker.apis.zookeeper_topics import zookeeper_plan
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.topic_names import complaint, metric_name
from coordinator_sim.messages.create_topics import CreatableTopic

_DEFAULT: Final = -1


class PlannedTopic(Struct, frozen=True):
    """A topic that may be created.

    Args:
        replicas: Replicas of each partition, in order.
        configs: Settings that differ from the brokers'.
    """

    name: str
    replicas: tuple[Replicas, ...]
    configs: dict[str, str]


def plan_topic(cluster: ClusterParts, asked: CreatableTopic) -> PlannedTopic | ApiError:
    """Validate and plan one topic of a CreateTopics request.

    Args:
        cluster: The parts of the cluster.
        asked: The topic's entry.
    """
    said = {each.name: each.value for each in asked.configs}
    configs = {name: value for name, value in said.items() if value is not None}
    if cluster.settings.profile.uses_zookeeper:
        found = zookeeper_plan(cluster, asked)
        if isinstance(found, ApiError):
            return found
        return PlannedTopic(asked.name, found, configs)
    error = _name_error(cluster, asked.name)
    if error.is_failure:
        return error
    # Order of errors: existing topic, bad name, null config, bad config, replicas.
    nulls = [each.name for each in asked.configs if each.value is None]
    if nulls:
        text = f"Null value not supported for topic configs: {','.join(nulls)}"
        return ApiError(ErrorCode.INVALID_CONFIG, text)
    error = topic_error(cluster.configs, asked.name, configs) if configs else NO_ERROR
    if error.is_failure:
        return error
    replicas = _told(cluster, asked) if asked.assignments else _chosen(cluster, asked)
    if isinstance(replicas, ApiError):
        return replicas
    return PlannedTopic(asked.name, replicas, configs)


def _name_error(cluster: ClusterParts, name: str) -> ApiError:
    if name in cluster.image.topics:
        return ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    text = complaint(name)
    other = next(iter(cluster.image.alike.get(metric_name(name), ())), None)
    if other is not None:
        text = f"Topic '{name}' collides with existing topic: {other}"
    return NO_ERROR if text is None else ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, text)


def _told(cluster: ClusterParts, asked: CreatableTopic) -> tuple[Replicas, ...] | ApiError:
    """Replicas as the client assigned them, or the error."""
    for number, what in (
        (asked.replication_factor, "replication factor"),
        (asked.num_partitions, "numPartitions"),
    ):
        if number != _DEFAULT:
            text = f"A manual partition assignment was specified, but {what} was not set to -1."
            return ApiError(ErrorCode.INVALID_REQUEST, text)
    partitions: dict[int, Replicas] = {}
    factor: int | None = None
    for assignment in asked.assignments:
        index, broker_ids = assignment.partition_index, assignment.broker_ids
        error = _told_error(cluster, index, broker_ids, partitions=partitions, factor=factor)
        if error is not None:
            return error
        factor = len(broker_ids)
        partitions[index] = broker_ids
    if sorted(partitions) != list(range(len(partitions))):
        text = "partitions should be a consecutive 0-based integer sequence"
        return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    return tuple(partitions[index] for index in range(len(partitions)))


def _told_error(
    cluster: ClusterParts,
    index: int,
    broker_ids: Replicas,
    *,
    partitions: dict[int, Replicas],
    factor: int | None,
) -> ApiError | None:
    if index in partitions:
        text = f"Found multiple manual partition assignments for partition {index}"
        return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    error = assignment_error(broker_ids, cluster.settings.broker_ids, factor)
    return error or fenced_error(cluster, index, broker_ids)


def fenced_error(cluster: ClusterParts, index: int, broker_ids: Replicas) -> ApiError | None:
    """The error when none of a partition's brokers is alive, else None."""
    if any(cluster.leadership.is_living(each) for each in broker_ids):
        return None
    text = (
        f"All brokers specified in the manual partition assignment for partition {index} are "
        "fenced or in controlled shutdown."
    )
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def _chosen(cluster: ClusterParts, asked: CreatableTopic) -> tuple[Replicas, ...] | ApiError:
    """Replicas spread over the brokers, or the error."""
    factor, count = asked.replication_factor, asked.num_partitions
    if factor < _DEFAULT or factor == 0:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        return ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    if count < _DEFAULT or count == 0:
        text = "Number of partitions was set to an invalid non-positive value."
        return ApiError(ErrorCode.INVALID_PARTITIONS, text)
    settings = cluster.settings
    factor = settings.default_replication_factor if factor == _DEFAULT else factor
    count = settings.num_partitions if count == _DEFAULT else count
    lack = shortage(
        factor,
        len(settings.broker_ids),
        len(cluster.living_ids()),
        may_be_cordoned=settings.profile.cordons_log_dirs,
    )
    if lack is not None:
        text = f"Unable to replicate the partition {factor} time(s): {lack}"
        return ApiError(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    return spread(brokers_in_order(cluster), 0, count, factor)


def brokers_in_order(cluster: ClusterParts) -> list[int]:
    """Ids of all brokers, living ones first."""
    return sorted(
        cluster.settings.broker_ids, key=lambda each: not cluster.leadership.is_living(each)
    )
