"""Keys and values of group records.

Written by tools/write_messages.py from schemas/GroupMetadataRecord.json,
schemas/OffsetCommitRecord.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.messages.schema import ZERO_UUID


class GroupMetadataKey(Struct, frozen=True, gc=False):
    """GroupMetadataKey of versions 0 to 4."""

    record_type: ClassVar[int] = 2
    group: str = ""


class MemberMetadata(Struct, frozen=True, gc=False):
    """An entry of `members`."""

    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    session_timeout: int = 0
    subscription: bytes = b""
    assignment: bytes = b""


class GroupMetadataValue(Struct, frozen=True, gc=False):
    """GroupMetadataValue of versions 0 to 4."""

    record_type: ClassVar[int] = 2
    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: int = -1
    members: tuple[MemberMetadata, ...] = ()


class OffsetCommitKey(Struct, frozen=True, gc=False):
    """OffsetCommitKey of versions 0 to 4."""

    record_type: ClassVar[int] = 1
    group: str = ""
    topic: str = ""
    partition: int = 0


class OffsetCommitValue(Struct, frozen=True, gc=False):
    """OffsetCommitValue of versions 0 to 4."""

    record_type: ClassVar[int] = 1
    offset: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1
    topic_id: bytes = ZERO_UUID


GroupKey = GroupMetadataKey | OffsetCommitKey
"""A key of these records."""


GroupValue = GroupMetadataValue | OffsetCommitValue
"""A value of these records."""
