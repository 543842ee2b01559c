"""The messages of OffsetCommit's key and value.

Written by tools/write_messages.py from schemas/OffsetCommitRecord.json.
"""

from msgspec import Struct

from coordinator_sim.messages.schema import ZERO_UUID


class OffsetCommitKey(Struct, frozen=True, gc=False):
    """OffsetCommitKey of versions 0 to 4."""

    group: str = ""
    topic: str = ""
    partition: int = 0


class OffsetCommitValue(Struct, frozen=True, gc=False):
    """OffsetCommitValue of versions 0 to 4."""

    offset: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1
    topic_id: bytes = ZERO_UUID
