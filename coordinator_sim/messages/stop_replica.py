"""The messages of StopReplica.

Written by tools/write_messages.py from schemas/StopReplica.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class StopReplicaPartitionV0(Struct, frozen=True, gc=False):
    """An entry of `ungroupedPartitions`."""

    topic_name: str = ""
    partition_index: int = 0


class StopReplicaTopicV1(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partition_indexes: tuple[int, ...] = ()


class StopReplicaPartitionState(Struct, frozen=True, gc=False):
    """An entry of `partitionStates`."""

    partition_index: int = 0
    leader_epoch: int = -1
    delete_partition: bool = False


class StopReplicaTopicState(Struct, frozen=True, gc=False):
    """An entry of `topicStates`."""

    topic_name: str = ""
    partition_states: tuple[StopReplicaPartitionState, ...] = ()


class StopReplicaRequest(Struct, frozen=True, gc=False):
    """StopReplicaRequest of versions 0 to 4."""

    api_key: ClassVar[ApiKey] = ApiKey.STOP_REPLICA
    controller_id: int = 0
    is_kraft_controller: bool = False
    controller_epoch: int = 0
    broker_epoch: int = -1
    delete_partitions: bool = False
    ungrouped_partitions: tuple[StopReplicaPartitionV0, ...] = ()
    topics: tuple[StopReplicaTopicV1, ...] = ()
    topic_states: tuple[StopReplicaTopicState, ...] = ()


class StopReplicaPartitionError(Struct, frozen=True, gc=False):
    """An entry of `partitionErrors`."""

    topic_name: str = ""
    partition_index: int = 0
    error_code: ErrorCode = ErrorCode.NONE


class StopReplicaResponse(Struct, frozen=True, gc=False):
    """StopReplicaResponse of versions 0 to 4."""

    api_key: ClassVar[ApiKey] = ApiKey.STOP_REPLICA
    error_code: ErrorCode = ErrorCode.NONE
    partition_errors: tuple[StopReplicaPartitionError, ...] = ()
