"""The messages of DescribeLogDirs.

Written by tools/write_messages.py from schemas/DescribeLogDirs.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class DescribableLogDirTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic: str = ""
    partitions: tuple[int, ...] = ()


class DescribeLogDirsRequest(Struct, frozen=True, gc=False):
    """DescribeLogDirsRequest of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_LOG_DIRS
    topics: tuple[DescribableLogDirTopic, ...] | None = ()


class DescribeLogDirsPartition(Struct, frozen=True, gc=False):
    """An entry of `partitions`."""

    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False


class DescribeLogDirsTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partitions: tuple[DescribeLogDirsPartition, ...] = ()


class DescribeLogDirsResult(Struct, frozen=True, gc=False):
    """An entry of `results`."""

    error_code: ErrorCode = ErrorCode.NONE
    log_dir: str = ""
    topics: tuple[DescribeLogDirsTopic, ...] = ()
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


class DescribeLogDirsResponse(Struct, frozen=True, gc=False):
    """DescribeLogDirsResponse of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_LOG_DIRS
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    results: tuple[DescribeLogDirsResult, ...] = ()
