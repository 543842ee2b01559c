"""The question that Produce asks before it appends records of a transaction.

Transactions answer it; here is only the question, and the answer of a broker that never asks.

Source: kafka 4.x, AddPartitionsToTxnManager.verifyTransaction and addOrVerifyTransaction;
ReplicaManager.handleProduceAppend.
"""

from typing import Final, Protocol

from msgspec import Struct

from coordinator_sim.mini_broker.contract import Instants
from coordinator_sim.protocol.errors import ErrorCode

ADDS_PARTITIONS: Final = 12
"""From this version of Produce on a partition joins the transaction by being written to."""


class TransactionalWrite(Struct, frozen=True, kw_only=True, gc=False):
    """A write that a partition knows no open transaction for.

    Args:
        topic: Of the partition.
        partition: Its number.
        api_version: Of Produce; see `ADDS_PARTITIONS`.
        now: When the request came.
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
        """NONE to let the write pass, else the coordinator's own error.

        Below `ADDS_PARTITIONS` the partition must be in the transaction already; from there on it
        is added, which may begin the transaction. What the producer is told instead of an error of
        the coordinator is Produce's to say.
        """
        ...


class OpenGate:
    """Lets every write pass, as `transaction.partition.verification.enable=false` does."""

    __slots__ = ()

    def verify_or_add(self, _write: TransactionalWrite) -> ErrorCode:
        """Always NONE."""
        return ErrorCode.NONE
