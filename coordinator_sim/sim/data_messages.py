"""What the producers, consumers and admin clients of a Connect worker ask of brokers, and hear.

Only what the worker's internal topics need, in the shape that the need has: no versions, no bytes.
Each request says what to answer; `error_code` is NONE, or the answer's other fields mean nothing.
"""

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode


class StoredRecord(Struct, frozen=True, gc=False):
    """A record in a log."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 0


class StoredRun(Struct, frozen=True, gc=False):
    """Many records that are only counted; their keys are all different.

    Args:
        first_offset: Of the first.
        next_offset: Past the last; compaction may have left holes between.
        count: How many.
        size_bytes: Keys and values of all together.
    """

    first_offset: int
    next_offset: int
    count: int
    size_bytes: int


class DescribeClusterRequest(Struct, frozen=True, gc=False):
    """Which cluster is this?"""


class DescribeClusterResponse(Struct, frozen=True, gc=False):
    """The cluster's id."""

    cluster_id: str
    error_code: ErrorCode = ErrorCode.NONE


class CreateTopicRequest(Struct, frozen=True, kw_only=True):
    """Create a topic unless it exists."""

    topic: str
    partitions: int
    replication_factor: int
    configs: dict[str, str]


class CreateTopicResponse(Struct, frozen=True, gc=False):
    """Whether it is new."""

    created: bool = False
    error_code: ErrorCode = ErrorCode.NONE


class DescribeTopicRequest(Struct, frozen=True, gc=False):
    """How many partitions has a topic, and one of its settings?"""

    topic: str
    setting: str = ""


class DescribeTopicResponse(Struct, frozen=True, gc=False):
    """The number of partitions, 0 of an unknown topic; the setting, empty where it has none."""

    partitions: int = 0
    value: str = ""
    error_code: ErrorCode = ErrorCode.NONE


class ListOffsetsRequest(Struct, frozen=True, gc=False):
    """Where do these partitions end, or begin?"""

    topic: str
    partitions: tuple[int, ...]
    earliest: bool = False
    read_committed: bool = False


class ListOffsetsResponse(Struct, frozen=True):
    """Partition -> offset."""

    offsets: dict[int, int] = {}
    error_code: ErrorCode = ErrorCode.NONE


class ProduceRequest(Struct, frozen=True, kw_only=True):
    """Append records to one partition, all or none.

    Args:
        records: Keys and values.
        transactional_id: None outside of transactions; producer id and epoch then mean nothing.
    """

    topic: str
    partition: int
    records: tuple[tuple[bytes | None, bytes | None], ...]
    transactional_id: str | None = None
    producer_id: int = -1
    producer_epoch: int = -1


class ProduceResponse(Struct, frozen=True, gc=False):
    """The offset of the first."""

    base_offset: int = -1
    error_code: ErrorCode = ErrorCode.NONE


class FetchRequest(Struct, frozen=True, kw_only=True):
    """Give me what there is from these positions on; wait until there is something.

    Args:
        positions: Partition -> offset.
        max_bytes: Of the answer; the first partition that has records answers all the same.
        partition_max_bytes: Of each partition's part.
    """

    topic: str
    positions: dict[int, int]
    read_committed: bool = False
    max_bytes: int = 52_428_800
    partition_max_bytes: int = 1_048_576


class FetchedPartition(Struct, frozen=True, kw_only=True):
    """What was read of one partition.

    Args:
        next_offset: The position afterwards, past holes, markers and what was aborted.
        size_bytes: On the wire.
        record_count: In all, those of runs included.
    """

    partition: int
    entries: tuple[StoredRecord | StoredRun, ...]
    next_offset: int
    size_bytes: int
    record_count: int


class FetchResponse(Struct, frozen=True):
    """The partitions that had something."""

    partitions: tuple[FetchedPartition, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE


class FindTransactionCoordinatorRequest(Struct, frozen=True, gc=False):
    """Which broker coordinates this transactional id?"""

    transactional_id: str


class FindTransactionCoordinatorResponse(Struct, frozen=True, gc=False):
    """The id of the broker that coordinates it."""

    broker_id: int = -1
    error_code: ErrorCode = ErrorCode.NONE


class InitProducerIdRequest(Struct, frozen=True, gc=False):
    """Make me the one producer of this transactional id."""

    transactional_id: str


class InitProducerIdResponse(Struct, frozen=True, gc=False):
    """The producer's id and epoch."""

    producer_id: int = -1
    producer_epoch: int = -1
    error_code: ErrorCode = ErrorCode.NONE


class EndTxnRequest(Struct, frozen=True, gc=False):
    """End the transaction of this producer."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool = True


class EndTxnResponse(Struct, frozen=True, gc=False):
    """Ended."""

    error_code: ErrorCode = ErrorCode.NONE


DataRequest = (
    DescribeClusterRequest
    | CreateTopicRequest
    | DescribeTopicRequest
    | ListOffsetsRequest
    | ProduceRequest
    | FetchRequest
    | FindTransactionCoordinatorRequest
    | InitProducerIdRequest
    | EndTxnRequest
)
"""Whatever is asked of a broker's data plane."""
DataResponse = (
    DescribeClusterResponse
    | CreateTopicResponse
    | DescribeTopicResponse
    | ListOffsetsResponse
    | ProduceResponse
    | FetchResponse
    | FindTransactionCoordinatorResponse
    | InitProducerIdResponse
    | EndTxnResponse
)
"""Whatever it answers."""
