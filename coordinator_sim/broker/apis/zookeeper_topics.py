"""Validation of new topics and partitions as by a controller with ZooKeeper.

The checks have another order and other messages than KRaft's.

DEVIATION: 0.10.2 uses 2.8's messages; its errors and their order are its own.

Source: kafka 2.8, ZkAdminManager.createTopics, createPartitions; AdminUtils
.assignReplicasToBrokers; AdminZkClient.validateTopicCreate; Topic.validate.
"""

from typing import Final

from coordinator_sim.broker.apis.administration import NO_ERROR, ApiError
from coordinator_sim.broker.apis.config_validation import topic_error
from coordinator_sim.broker.apis.placement import Replicas, spread
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.topic_names import MAX_LENGTH, complaint, metric_name
from coordinator_sim.messages.create_partitions import CreatePartitionsTopic
from coordinator_sim.messages.create_topics import CreatableTopic

FOUND_TWICE: Final = ApiError(ErrorCode.INVALID_REQUEST, "Found multiple entries for this topic.")
_DEFAULT: Final = -1


def zookeeper_plan(cluster: ClusterParts, asked: CreatableTopic) -> tuple[Replicas, ...] | ApiError:
    """The replicas of a new topic, or the error."""
    name = asked.name
    said = {each.name: each.value for each in asked.configs}
    configs = {key: value for key, value in said.items() if value is not None}
    if name in cluster.image.topics:
        return _error(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    nulls = [key for key, value in said.items() if value is None]
    if nulls:
        text = f"Null value not supported for topic configs : {','.join(nulls)}"
        return _error(ErrorCode.INVALID_REQUEST, text)
    replicas = _replicas(cluster, asked)
    if isinstance(replicas, ApiError):
        return replicas
    error = _name_error(cluster, name)
    if not error.is_failure:
        error = _assignment_error(asked)
    if not error.is_failure and configs:
        error = topic_error(cluster.configs, name, configs)
    return error if error.is_failure else replicas


def zookeeper_growth(
    cluster: ClusterParts, asked: CreatePartitionsTopic, present: int, factor: int
) -> tuple[Replicas, ...] | ApiError:
    """The replicas of partitions to add to a topic, or the error."""
    count, assignments = asked.count, asked.assignments
    if count < present:
        text = (
            f"Topic currently has {present} partitions, which is higher than the requested {count}."
        )
        return _error(ErrorCode.INVALID_PARTITIONS, text)
    if count == present:
        return _error(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partitions.")
    if assignments is None:
        return spread(cluster.living_ids(), present, count - present, factor)
    told = tuple(each.broker_ids for each in assignments)
    unknown = [str(each) for ids in told for each in ids if each not in cluster.settings.broker_ids]
    if unknown:
        text = f"Unknown broker(s) in replica assignment: {', '.join(dict.fromkeys(unknown))}."
        return _error(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    if len(told) != count - present:
        text = (
            f"Increasing the number of partitions by {count - present} but {len(told)} "
            "assignments provided."
        )
        return _error(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)
    return _growth_error(cluster, told, present, factor) or told


def _growth_error(
    cluster: ClusterParts, told: tuple[Replicas, ...], present: int, factor: int
) -> ApiError | None:
    """The error of replicas that a client chose for new partitions; None if they are valid.

    DEVIATION: of several faulty partitions the first is named; among more than four Kafka names the
    first in the order of Scala's hash map.

    Source: kafka 2.8, AdminZkClient.validateReplicaAssignment.
    """
    invalid = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    living = cluster.living_ids()
    for number, ids in enumerate(told, present):
        specified = ", ".join(map(str, ids))
        if not ids:
            return _error(
                invalid, f"Cannot have replication factor of 0 for partition id {number}."
            )
        if len(dict.fromkeys(ids)) != len(ids):
            text = (
                f"Duplicate brokers not allowed in replica assignment: {specified} for partition "
                f"id {number}."
            )
            return _error(invalid, text)
        if any(each not in living for each in ids):
            text = (
                f"Some brokers specified for partition id {number} are not available. Specified "
                f"brokers: {specified}, available brokers: {', '.join(map(str, living))}."
            )
            return _error(ErrorCode.BROKER_NOT_AVAILABLE, text)
    others = {number: len(ids) for number, ids in enumerate(told, present) if len(ids) != factor}
    if not others:
        return None
    text = (
        f"Inconsistent replication factor between partitions, partition 0 has {factor} while "
        f"partitions [{', '.join(map(str, others))}] have replication factors "
        f"[{', '.join(map(str, others.values()))}], respectively."
    )
    return _error(invalid, text)


def _error(code: ErrorCode, text: str) -> ApiError:
    return ApiError(code, text)


def _replicas(cluster: ClusterParts, asked: CreatableTopic) -> tuple[Replicas, ...] | ApiError:
    count, factor = asked.num_partitions, asked.replication_factor
    if asked.assignments:
        if (count, factor) != (_DEFAULT, _DEFAULT):
            text = (
                "Both numPartitions or replicationFactor and replicasAssignments were set. Both "
                "cannot be used at the same time."
            )
            return _error(ErrorCode.INVALID_REQUEST, text)
        told = {each.partition_index: each.broker_ids for each in asked.assignments}
        return tuple(told[index] for index in sorted(told))
    settings = cluster.settings
    count = settings.num_partitions if count == _DEFAULT else count
    factor = settings.default_replication_factor if factor == _DEFAULT else factor
    living = cluster.living_ids()
    if count <= 0:
        text = "Number of partitions must be larger than 0."
        return _error(ErrorCode.INVALID_PARTITIONS, text)
    if factor <= 0:
        text = "Replication factor must be larger than 0."
        return _error(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    if factor > len(living):
        text = f"Replication factor: {factor} larger than available brokers: {len(living)}."
        return _error(ErrorCode.INVALID_REPLICATION_FACTOR, text)
    return spread(living, 0, count, factor)


def _name_error(cluster: ClusterParts, name: str) -> ApiError:
    if complaint(name) is not None:
        return _error(ErrorCode.INVALID_TOPIC_EXCEPTION, _name_text(name))
    others = [each for each in cluster.image.alike.get(metric_name(name), ()) if each != name]
    if others:
        text = f"Topic '{name}' collides with existing topics: {', '.join(others)}"
        return _error(ErrorCode.INVALID_TOPIC_EXCEPTION, text)
    return NO_ERROR


def _name_text(name: str) -> str:
    if not name:
        return "Topic name is illegal, it can't be empty"
    if name in {".", ".."}:
        return 'Topic name cannot be "." or ".."'
    if len(name) > MAX_LENGTH:
        return (
            f"Topic name is illegal, it can't be longer than {MAX_LENGTH} characters, topic "
            f"name: {name}"
        )
    return (
        f'Topic name "{name}" is illegal, it contains a character other than ASCII '
        "alphanumerics, '.', '_' and '-'"
    )


def _assignment_error(asked: CreatableTopic) -> ApiError:
    """The error of replicas that a client chose; brokers that do not exist are allowed."""
    told = {each.partition_index: each.broker_ids for each in asked.assignments}
    invalid = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if len(dict.fromkeys(len(ids) for ids in told.values())) > 1:
        return _error(invalid, "All partitions should have the same number of replicas")
    for ids in told.values():
        if len(dict.fromkeys(ids)) != len(ids):
            found = ", ".join(f"{index} -> {list(replicas)}" for index, replicas in told.items())
            return _error(invalid, f"Duplicate replica assignment found: Map({found})")
    if sorted(told) != list(range(len(told))):
        return _error(invalid, "partitions should be a consecutive 0-based integer sequence")
    return NO_ERROR
