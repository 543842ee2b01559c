"""Keys and values of transaction log records.

Written by tools/write_messages.py from schemas/TransactionLogRecord.json.
"""

from typing import ClassVar

from msgspec import Struct


class TransactionLogKey(Struct, frozen=True, gc=False):
    """TransactionLogKey of versions 0 to 1."""

    record_type: ClassVar[int] = 0
    transactional_id: str = ""


class PartitionsSchema(Struct, frozen=True, gc=False):
    """An entry of `transactionPartitions`."""

    topic: str = ""
    partition_ids: tuple[int, ...] = ()


class TransactionLogValue(Struct, frozen=True, gc=False):
    """TransactionLogValue of versions 0 to 1."""

    record_type: ClassVar[int] = 0
    producer_id: int = 0
    previous_producer_id: int = -1
    next_producer_id: int = -1
    producer_epoch: int = 0
    next_producer_epoch: int = -1
    transaction_timeout_ms: int = 0
    transaction_status: int = 0
    transaction_partitions: tuple[PartitionsSchema, ...] | None = ()
    transaction_last_update_timestamp_ms: int = 0
    transaction_start_timestamp_ms: int = 0
    client_transaction_version: int = 0
