"""When a producer begins and commits transactions.

Source: kafka trunk, trogdor/.../trogdor/workload/UniformTransactionsGenerator.java,
TimeIntervalTransactionsGenerator.java.
"""

from enum import Enum, unique
from typing import Protocol

from coordinator_sim.trogdor.generator_specs import (
    TimeIntervalTransactionsGenerator,
    TransactionGenerator,
    UniformTransactionsGenerator,
)


@unique
class TransactionAction(Enum):
    """What to do before the next record; no generator of Kafka's aborts."""

    BEGIN_TRANSACTION = "BEGIN_TRANSACTION"
    COMMIT_TRANSACTION = "COMMIT_TRANSACTION"
    ABORT_TRANSACTION = "ABORT_TRANSACTION"
    NO_OP = "NO_OP"


class Transactions(Protocol):
    """What decides on transactions."""

    def next_action(self, now_ms: int) -> TransactionAction:
        """What to do before the next record; asked again after anything but NO_OP."""


class _Uniform:
    def __init__(self, spec: UniformTransactionsGenerator) -> None:
        self._most = spec.messages_per_transaction
        self._count: int | None = None

    def next_action(self, now_ms: int) -> TransactionAction:
        del now_ms
        if self._count is None:
            self._count = 0
            return TransactionAction.BEGIN_TRANSACTION
        if self._count == self._most:
            self._count = None
            return TransactionAction.COMMIT_TRANSACTION
        self._count += 1
        return TransactionAction.NO_OP


class _Interval:
    def __init__(self, spec: TimeIntervalTransactionsGenerator) -> None:
        self._interval_ms = spec.transaction_interval_ms
        self._began_ms: int | None = None

    def next_action(self, now_ms: int) -> TransactionAction:
        if self._began_ms is None:
            self._began_ms = now_ms
            return TransactionAction.BEGIN_TRANSACTION
        if now_ms - self._began_ms >= self._interval_ms:
            self._began_ms = None
            return TransactionAction.COMMIT_TRANSACTION
        return TransactionAction.NO_OP


def transactions_of(spec: TransactionGenerator) -> Transactions:
    """What decides on transactions by a spec.

    Raises:
        TypeError: the class of the spec is unknown (a bug here).
    """
    match spec:
        case UniformTransactionsGenerator():
            return _Uniform(spec)
        case TimeIntervalTransactionsGenerator():
            return _Interval(spec)
    raise TypeError(f"no transactions for {type(spec).__name__}")
