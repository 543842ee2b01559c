"""The messages of ListTransactions.

Written by tools/write_messages.py from schemas/ListTransactions.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class ListTransactionsRequest(Struct, frozen=True, gc=False):
    """ListTransactionsRequest of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_TRANSACTIONS
    state_filters: tuple[str, ...] = ()
    producer_id_filters: tuple[int, ...] = ()
    duration_filter: int = -1
    transactional_id_pattern: str | None = None


class TransactionState(Struct, frozen=True, gc=False):
    """An entry of `transactionStates`."""

    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""


class ListTransactionsResponse(Struct, frozen=True, gc=False):
    """ListTransactionsResponse of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_TRANSACTIONS
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    unknown_state_filters: tuple[str, ...] = ()
    transaction_states: tuple[TransactionState, ...] = ()
