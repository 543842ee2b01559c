"""The messages of GroupMetadata's key and value.

Written by tools/write_messages.py from schemas/GroupMetadataRecord.json.
"""

from msgspec import Struct


class GroupMetadataKey(Struct, frozen=True, gc=False):
    """GroupMetadataKey of versions 0 to 4."""

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

    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: int = -1
    members: tuple[MemberMetadata, ...] = ()
