"""The messages of ControlledShutdown.

Written by tools/write_messages.py from schemas/ControlledShutdown.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class ControlledShutdownRequest(Struct, frozen=True, gc=False):
    """ControlledShutdownRequest of versions 0 to 3."""

    api_key: ClassVar[ApiKey] = ApiKey.CONTROLLED_SHUTDOWN
    broker_id: int = 0
    broker_epoch: int = -1


class RemainingPartition(Struct, frozen=True, gc=False):
    """An entry of `remainingPartitions`."""

    topic_name: str = ""
    partition_index: int = 0


class ControlledShutdownResponse(Struct, frozen=True, gc=False):
    """ControlledShutdownResponse of versions 0 to 3."""

    api_key: ClassVar[ApiKey] = ApiKey.CONTROLLED_SHUTDOWN
    error_code: ErrorCode = ErrorCode.NONE
    remaining_partitions: tuple[RemainingPartition, ...] = ()
