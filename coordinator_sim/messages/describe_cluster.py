"""The messages of DescribeCluster.

Written by tools/write_messages.py from schemas/DescribeCluster.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class DescribeClusterRequest(Struct, frozen=True, gc=False):
    """DescribeClusterRequest of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_CLUSTER
    include_cluster_authorized_operations: bool = False
    endpoint_type: int = 1
    include_fenced_brokers: bool = False


class DescribeClusterBroker(Struct, frozen=True, gc=False):
    """An entry of `brokers`."""

    broker_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    is_fenced: bool = False


class DescribeClusterResponse(Struct, frozen=True, gc=False):
    """DescribeClusterResponse of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_CLUSTER
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    endpoint_type: int = 1
    cluster_id: str = ""
    controller_id: int = -1
    brokers: tuple[DescribeClusterBroker, ...] = ()
    cluster_authorized_operations: int = -2_147_483_648
