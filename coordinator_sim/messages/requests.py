"""Unions of requests and responses, by the part that handles them."""

from collections.abc import Iterable
from typing import ClassVar, Final, Protocol, get_args

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.completion import CompleteTransaction, TransactionCompleted
from coordinator_sim.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from coordinator_sim.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from coordinator_sim.messages.catalogue import name_of
from coordinator_sim.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from coordinator_sim.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from coordinator_sim.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from coordinator_sim.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from coordinator_sim.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from coordinator_sim.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from coordinator_sim.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from coordinator_sim.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from coordinator_sim.messages.share_acknowledge import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from coordinator_sim.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from coordinator_sim.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from coordinator_sim.messages.streams_group_describe import (
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from coordinator_sim.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from coordinator_sim.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

NO_AUTHORIZED_OPERATIONS: Final = -2_147_483_648
"""Value of authorized operations that were not requested."""


class AnyRequest(Protocol):
    """The struct of a request."""

    api_key: ClassVar[ApiKey]
    """What is asked for."""


OneGroupRequest = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | TxnOffsetCommitRequest
    | OffsetDeleteRequest
    | ConsumerGroupHeartbeatRequest
    | ShareGroupHeartbeatRequest
    | StreamsGroupHeartbeatRequest
    | AlterShareGroupOffsetsRequest
    | DeleteShareGroupOffsetsRequest
)
"""Requests that only the coordinator of their one group may answer."""

WaitingRequest = OneGroupRequest | CompleteTransaction
"""Requests whose answer by a coordinator may be delayed."""

SpanningRequest = (
    OffsetFetchRequest
    | DescribeGroupsRequest
    | ListGroupsRequest
    | DeleteGroupsRequest
    | ConsumerGroupDescribeRequest
    | ShareGroupDescribeRequest
    | StreamsGroupDescribeRequest
)
"""Requests of several groups, which may belong to several offsets partitions."""

GroupRequest = OneGroupRequest | SpanningRequest
"""Requests to a group coordinator."""

Request = (
    FindCoordinatorRequest
    | MetadataRequest
    | GroupRequest
    | AddOffsetsToTxnRequest
    | WriteTxnMarkersRequest
    | ShareFetchRequest
    | ShareAcknowledgeRequest
)
"""Requests to a broker over the wire."""

GroupResponse = (
    JoinGroupResponse
    | SyncGroupResponse
    | HeartbeatResponse
    | LeaveGroupResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | DescribeGroupsResponse
    | ListGroupsResponse
    | DeleteGroupsResponse
    | OffsetDeleteResponse
    | TxnOffsetCommitResponse
    | ConsumerGroupHeartbeatResponse
    | ConsumerGroupDescribeResponse
    | ShareGroupHeartbeatResponse
    | ShareGroupDescribeResponse
    | StreamsGroupHeartbeatResponse
    | StreamsGroupDescribeResponse
    | AlterShareGroupOffsetsResponse
    | DeleteShareGroupOffsetsResponse
    | TransactionCompleted
)
"""Responses of a group coordinator."""

Response = (
    FindCoordinatorResponse
    | MetadataResponse
    | GroupResponse
    | AddOffsetsToTxnResponse
    | WriteTxnMarkersResponse
    | ShareFetchResponse
    | ShareAcknowledgeResponse
)
"""Responses of a broker."""

GROUP_COORDINATOR_APIS: Final[frozenset[ApiKey]] = frozenset(
    each.api_key for each in get_args(GroupRequest)
)
"""The APIs that the group coordinators of a served cluster answer."""
_NOT_OF_GROUPS: Final = (MetadataRequest, ShareFetchRequest, ShareAcknowledgeRequest)
GROUP_APIS: Final[tuple[ApiKey, ...]] = tuple(
    sorted(each.api_key for each in get_args(Request) if each not in _NOT_OF_GROUPS)
)
"""The APIs that have a JSON form: those of groups, their discovery and their transactions."""


def metadata_request(topics: Iterable[str] | None) -> MetadataRequest:
    """The request for some topics by name; None asks for every topic."""
    if topics is None:
        return MetadataRequest(topics=None)
    return MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in topics))


def group_api_named(name: str) -> ApiKey:
    """A group API by Kafka's name, for example `JoinGroup`.

    Raises:
        UnsupportedVersion: no such API; the message lists the known ones.
    """
    for api in GROUP_APIS:
        if name_of(api) == name:
            return api
    known = ", ".join(name_of(api) for api in GROUP_APIS)
    raise UnsupportedVersion(f"unknown API {name!r}: use one of {known}")
