"""The messages of DescribeTransactions.

Written by tools/write_messages.py from schemas/DescribeTransactions.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class DescribeTransactionsRequest(Struct, frozen=True, gc=False):
    """DescribeTransactionsRequest of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_TRANSACTIONS
    transactional_ids: tuple[str, ...] = ()


class TopicData(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic: str = ""
    partitions: tuple[int, ...] = ()


class TransactionState(Struct, frozen=True, gc=False):
    """An entry of `transactionStates`."""

    error_code: ErrorCode = ErrorCode.NONE
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: tuple[TopicData, ...] = ()


class DescribeTransactionsResponse(Struct, frozen=True, gc=False):
    """DescribeTransactionsResponse of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_TRANSACTIONS
    throttle_time_ms: int = 0
    transaction_states: tuple[TransactionState, ...] = ()
