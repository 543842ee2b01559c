"""The messages of AddOffsetsToTxn.

Written by tools/write_messages.py from schemas/AddOffsetsToTxn.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class AddOffsetsToTxnRequest(Struct, frozen=True, gc=False):
    """AddOffsetsToTxnRequest of versions 0 to 4."""

    api_key: ClassVar[ApiKey] = ApiKey.ADD_OFFSETS_TO_TXN
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    group_id: str = ""


class AddOffsetsToTxnResponse(Struct, frozen=True, gc=False):
    """AddOffsetsToTxnResponse of versions 0 to 4."""

    api_key: ClassVar[ApiKey] = ApiKey.ADD_OFFSETS_TO_TXN
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
