"""The messages of AddPartitionsToTxn.

Written by tools/write_messages.py from schemas/AddPartitionsToTxn.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class AddPartitionsToTxnTopic(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    name: str = ""
    partitions: tuple[int, ...] = ()


class AddPartitionsToTxnTransaction(Struct, frozen=True, gc=False):
    """An entry of `transactions`."""

    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: tuple[AddPartitionsToTxnTopic, ...] = ()


class AddPartitionsToTxnRequest(Struct, frozen=True, gc=False):
    """AddPartitionsToTxnRequest of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.ADD_PARTITIONS_TO_TXN
    transactions: tuple[AddPartitionsToTxnTransaction, ...] = ()
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = ()


class AddPartitionsToTxnPartitionResult(Struct, frozen=True, gc=False):
    """An entry of `resultsByPartition`."""

    partition_index: int = 0
    partition_error_code: ErrorCode = ErrorCode.NONE


class AddPartitionsToTxnTopicResult(Struct, frozen=True, gc=False):
    """An entry of `topicResults`."""

    name: str = ""
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = ()


class AddPartitionsToTxnResult(Struct, frozen=True, gc=False):
    """An entry of `resultsByTransaction`."""

    transactional_id: str = ""
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = ()


class AddPartitionsToTxnResponse(Struct, frozen=True, gc=False):
    """AddPartitionsToTxnResponse of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.ADD_PARTITIONS_TO_TXN
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = ()
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = ()
