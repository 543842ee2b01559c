"""Requests and responses that look at groups and remove them or their offsets.

As in `messages`: one struct an API, all versions' fields, Kafka's names.

Source: kafka trunk, clients/src/main/resources/common/message/{DescribeGroups,ListGroups,
DeleteGroups,OffsetDelete}*.json.
"""

from typing import ClassVar, Final

from msgspec import Struct

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode

NO_AUTHORIZED_OPERATIONS: Final = -2_147_483_648
"""What a description says when the authorised operations were not asked for."""


class DescribeGroupsRequest(Struct, frozen=True, kw_only=True):
    """Asks what groups are made of, one description a name in the request."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_GROUPS
    groups: tuple[str, ...]
    include_authorized_operations: bool = False


class DescribedMember(Struct, frozen=True, kw_only=True):
    """A member as described; metadata is that of the chosen protocol, empty outside Stable."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(Struct, frozen=True, kw_only=True):
    """One group; on error everything but the id is empty.

    Args:
        group_state: The name clients see, `CompletingRebalance` for AwaitingSync since 1.1.
        protocol_data: The chosen protocol, empty outside Stable.
        error_message: From version 6.
    """

    group_id: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedMember, ...] = ()
    authorized_operations: int = NO_AUTHORIZED_OPERATIONS


class DescribeGroupsResponse(Struct, frozen=True, kw_only=True):
    """The descriptions, in the order the profile's coordinator gives them."""

    groups: tuple[DescribedGroup, ...]


class ListGroupsRequest(Struct, frozen=True, kw_only=True):
    """Asks for all groups of a broker; an empty filter lets everything through."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_GROUPS
    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()


class ListedGroup(Struct, frozen=True, kw_only=True):
    """One group of a listing; the protocol type is empty for a simple group."""

    group_id: str
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = "classic"


class ListGroupsResponse(Struct, frozen=True, kw_only=True):
    """The groups, or why the broker cannot list them (or not all)."""

    error_code: ErrorCode = ErrorCode.NONE
    groups: tuple[ListedGroup, ...] = ()


class DeleteGroupsRequest(Struct, frozen=True, kw_only=True):
    """Deletes groups with their offsets; a name given twice counts once."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_GROUPS
    groups_names: tuple[str, ...]


class DeletedGroup(Struct, frozen=True, kw_only=True):
    """The outcome for one group. The message is of version 3."""

    group_id: str
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DeleteGroupsResponse(Struct, frozen=True, kw_only=True):
    """One outcome a group, in the order the profile's coordinator gives them."""

    results: tuple[DeletedGroup, ...]


class OffsetDeleteTopic(Struct, frozen=True):
    """The partitions of one topic whose offsets are to be deleted."""

    name: str
    partitions: tuple[int, ...]


class OffsetDeleteRequest(Struct, frozen=True, kw_only=True):
    """Deletes single offsets of a group that does not consume them."""

    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_DELETE
    group_id: str
    topics: tuple[OffsetDeleteTopic, ...]


class DeletedOffset(Struct, frozen=True, gc=False):
    """The outcome for one partition."""

    partition: int
    error_code: ErrorCode = ErrorCode.NONE


class DeletedOffsetTopic(Struct, frozen=True):
    """The outcomes of one topic's partitions, in request order."""

    name: str
    partitions: tuple[DeletedOffset, ...]


class OffsetDeleteResponse(Struct, frozen=True, kw_only=True):
    """The group's error with no topics, or one outcome a partition."""

    error_code: ErrorCode = ErrorCode.NONE
    topics: tuple[DeletedOffsetTopic, ...] = ()
