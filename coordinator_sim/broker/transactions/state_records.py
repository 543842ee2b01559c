"""Conversion between records of the state log and the state of a transactional id.

Source: kafka 4.3, TransactionLog.java, valueToBytes and read.
"""

from typing import Final

from msgspec.structs import replace

from coordinator_sim.broker.transactions.metadata import (
    TransactionMetadata,
    TransactionState,
    TxnTransit,
)
from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.log_values import LogEntry
from coordinator_sim.messages.codec.records import front, key_bytes, read_value, value_bytes
from coordinator_sim.messages.transaction_log_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

_TAGGED_FROM: Final = 1
_STATUSES: Final = frozenset(int(state) for state in TransactionState)


def value_version(transaction_version: int) -> int:
    """The version of values at a level of `transaction.version`.

    Source: TransactionVersion.transactionLogValueVersion.
    """
    return min(transaction_version, _TAGGED_FROM)


def entry_of(transactional_id: str, transit: TxnTransit, transaction_version: int) -> LogEntry:
    """The record of a step, at a level of `transaction.version`."""
    is_empty = transit.state is TransactionState.EMPTY
    version = value_version(transaction_version)
    value = TransactionLogValue(
        producer_id=transit.producer_id,
        producer_epoch=transit.producer_epoch,
        transaction_timeout_ms=transit.timeout_ms,
        transaction_status=int(transit.state),
        transaction_partitions=None if is_empty else _by_topic(transit.partitions),
        transaction_last_update_timestamp_ms=transit.updated_ms,
        transaction_start_timestamp_ms=transit.started_ms,
    )
    if version >= _TAGGED_FROM:
        value = replace(
            value,
            previous_producer_id=transit.previous_producer_id,
            next_producer_id=transit.next_producer_id,
            client_transaction_version=transit.client_version,
        )
    return key_bytes(TransactionLogKey(transactional_id)), value_bytes(value, version)


def _by_topic(partitions: tuple[TopicPartition, ...]) -> tuple[PartitionsSchema, ...]:
    topics: dict[str, list[int]] = {}
    for place in partitions:
        topics.setdefault(place.topic, []).append(place.partition)
    return tuple(PartitionsSchema(topic, tuple(indexes)) for topic, indexes in topics.items())


def metadata_from(transactional_id: str, data: bytes) -> TransactionMetadata | None:
    """Decode the state of an id from a record's value; None for an unknown version.

    The previous epoch is not stored: a producer that repeats its request after the coordinator
    moved is fenced.

    Raises:
        WireFormatError: the value is truncated, or its state is unknown.
    """
    if not 0 <= front(data, "transaction value") <= _TAGGED_FROM:
        return None
    value: TransactionLogValue = read_value(TransactionLogKey(transactional_id), data)[0]
    if value.transaction_status not in _STATUSES:
        raise WireFormatError(f"{value.transaction_status} is no state of a transaction", 0)
    state = TransactionState(value.transaction_status)
    partitions: dict[TopicPartition, None] = {}
    if state is not TransactionState.EMPTY:
        for each in value.transaction_partitions or ():
            for index in each.partition_ids:
                partitions[TopicPartition(each.topic, index)] = None
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=partitions,
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        client_version=value.client_transaction_version,
    )
