"""The messages of EndTxn.

Written by tools/write_messages.py from schemas/EndTxn.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class EndTxnRequest(Struct, frozen=True, gc=False):
    """EndTxnRequest of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.END_TXN
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    committed: bool = False


class EndTxnResponse(Struct, frozen=True, gc=False):
    """EndTxnResponse of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.END_TXN
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    producer_epoch: int = -1
