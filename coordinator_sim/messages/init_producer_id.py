"""The messages of InitProducerId.

Written by tools/write_messages.py from schemas/InitProducerId.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class InitProducerIdRequest(Struct, frozen=True, gc=False):
    """InitProducerIdRequest of versions 0 to 6."""

    api_key: ClassVar[ApiKey] = ApiKey.INIT_PRODUCER_ID
    transactional_id: str | None = ""
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    enable2_pc: bool = False
    keep_prepared_txn: bool = False


class InitProducerIdResponse(Struct, frozen=True, gc=False):
    """InitProducerIdResponse of versions 0 to 6."""

    api_key: ClassVar[ApiKey] = ApiKey.INIT_PRODUCER_ID
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    producer_epoch: int = 0
    ongoing_txn_producer_id: int = -1
    ongoing_txn_producer_epoch: int = -1
