"""The messages of ElectLeaders.

Written by tools/write_messages.py from schemas/ElectLeaders.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class TopicPartitions(Struct, frozen=True, gc=False):
    """An entry of `topicPartitions`."""

    topic: str = ""
    partitions: tuple[int, ...] = ()


class ElectLeadersRequest(Struct, frozen=True, gc=False):
    """ElectLeadersRequest of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.ELECT_LEADERS
    election_type: int = 0
    topic_partitions: tuple[TopicPartitions, ...] | None = ()
    timeout_ms: int = 60_000


class PartitionResult(Struct, frozen=True, gc=False):
    """An entry of `partitionResult`."""

    partition_id: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""


class ReplicaElectionResult(Struct, frozen=True, gc=False):
    """An entry of `replicaElectionResults`."""

    topic: str = ""
    partition_result: tuple[PartitionResult, ...] = ()


class ElectLeadersResponse(Struct, frozen=True, gc=False):
    """ElectLeadersResponse of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.ELECT_LEADERS
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()
