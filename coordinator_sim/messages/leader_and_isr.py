"""The messages of LeaderAndIsr.

Written by tools/write_messages.py from schemas/LeaderAndIsr.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class LeaderAndIsrPartitionState(Struct, frozen=True, gc=False):
    """An entry of `ungroupedPartitionStates`."""

    topic_name: str = ""
    partition_index: int = 0
    controller_epoch: int = 0
    leader: int = 0
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    partition_epoch: int = 0
    replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    is_new: bool = False
    leader_recovery_state: int = 0


class LeaderAndIsrTopicState(Struct, frozen=True, gc=False):
    """An entry of `topicStates`."""

    topic_name: str = ""
    topic_id: bytes = ZERO_UUID
    partition_states: tuple[LeaderAndIsrPartitionState, ...] = ()


class LeaderAndIsrLiveLeader(Struct, frozen=True, gc=False):
    """An entry of `liveLeaders`."""

    broker_id: int = 0
    host_name: str = ""
    port: int = 0


class LeaderAndIsrRequest(Struct, frozen=True, gc=False):
    """LeaderAndIsrRequest of versions 0 to 7."""

    api_key: ClassVar[ApiKey] = ApiKey.LEADER_AND_ISR
    controller_id: int = 0
    is_kraft_controller: bool = False
    controller_epoch: int = 0
    broker_epoch: int = -1
    type: int = 0
    ungrouped_partition_states: tuple[LeaderAndIsrPartitionState, ...] = ()
    topic_states: tuple[LeaderAndIsrTopicState, ...] = ()
    live_leaders: tuple[LeaderAndIsrLiveLeader, ...] = ()


class LeaderAndIsrPartitionError(Struct, frozen=True, gc=False):
    """An entry of `partitionErrors`."""

    topic_name: str = ""
    partition_index: int = 0
    error_code: ErrorCode = ErrorCode.NONE


class LeaderAndIsrTopicError(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_id: bytes = ZERO_UUID
    partition_errors: tuple[LeaderAndIsrPartitionError, ...] = ()


class LeaderAndIsrResponse(Struct, frozen=True, gc=False):
    """LeaderAndIsrResponse of versions 0 to 7."""

    api_key: ClassVar[ApiKey] = ApiKey.LEADER_AND_ISR
    error_code: ErrorCode = ErrorCode.NONE
    partition_errors: tuple[LeaderAndIsrPartitionError, ...] = ()
    topics: tuple[LeaderAndIsrTopicError, ...] = ()
