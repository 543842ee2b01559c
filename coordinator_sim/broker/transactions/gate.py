"""The check of Produce before it appends records of a transaction.

This module has only the interface, and a gate that lets everything pass; `transactions` has the
implementation.

Source: kafka 4.x, AddPartitionsToTxnManager.verifyTransaction and addOrVerifyTransaction;
ReplicaManager.handleProduceAppend.
"""

from typing import Final, Protocol

from msgspec import Struct

from coordinator_sim.broker.contract import Instants
from coordinator_sim.kafka.errors import ErrorCode

ADDS_PARTITIONS: Final = 12
"""From this version of Produce on, writing to a partition adds it to the transaction."""


class TransactionalWrite(Struct, frozen=True, kw_only=True, gc=False):
    """A write to a partition that has no open transaction of the producer.

    Args:
        topic: Topic of the partition.
        partition: Number of the partition.
        api_version: Version of Produce; see `ADDS_PARTITIONS`.
        now: When the request arrived.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    topic: str
    partition: int
    api_version: int
    now: Instants


class TransactionGate(Protocol):
    """Knows which partitions are part of a producer's transaction."""

    def verify_or_add(self, write: TransactionalWrite) -> ErrorCode:
        """Return NONE to let the write pass, else the coordinator's own error.

        Below `ADDS_PARTITIONS` the partition must be in the transaction already; from there on it
        is added, which may begin the transaction. Produce translates the coordinator's errors for
        the producer.
        """
        ...


class OpenGate:
    """Lets every write pass, as `transaction.partition.verification.enable=false` does."""

    __slots__ = ()

    def verify_or_add(self, _write: TransactionalWrite) -> ErrorCode:
        """Return NONE."""
        return ErrorCode.NONE
