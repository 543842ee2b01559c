"""The messages of TxnOffsetCommit.

Written by tools/write_messages.py from schemas/TxnOffsetCommit.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

__all__ = [
    "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic",
    "OffsetCommitResponsePartition",
    "OffsetCommitResponseTopic",
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitResponse",
]


class TxnOffsetCommitRequest(Struct, frozen=True, gc=False):
    """TxnOffsetCommitRequest of versions 0 to 6."""

    api_key: ClassVar[ApiKey] = ApiKey.TXN_OFFSET_COMMIT
    transactional_id: str = ""
    group_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    generation_id_or_member_epoch: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    topics: tuple[OffsetCommitRequestTopic, ...] = ()


class TxnOffsetCommitResponse(Struct, frozen=True, gc=False):
    """TxnOffsetCommitResponse of versions 0 to 6."""

    api_key: ClassVar[ApiKey] = ApiKey.TXN_OFFSET_COMMIT
    throttle_time_ms: int = 0
    topics: tuple[OffsetCommitResponseTopic, ...] = ()
