"""The unions of requests and responses: what may go where."""

from coordinator_sim.protocol.admin_messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from coordinator_sim.protocol.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_sim.protocol.transaction_messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    CompleteTransaction,
    TransactionCompleted,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

OneGroupRequest = (
    JoinGroupRequest
    | SyncGroupRequest
    | HeartbeatRequest
    | LeaveGroupRequest
    | OffsetCommitRequest
    | TxnOffsetCommitRequest
    | OffsetDeleteRequest
)
"""The requests that only the coordinator of their one group may answer."""

WaitingRequest = OneGroupRequest | CompleteTransaction
"""What one coordinator may be slow to answer."""

SpanningRequest = (
    OffsetFetchRequest | DescribeGroupsRequest | ListGroupsRequest | DeleteGroupsRequest
)
"""The requests of several groups, which may belong to several offsets partitions."""

GroupRequest = OneGroupRequest | SpanningRequest
"""What a group coordinator is asked."""

Request = (
    FindCoordinatorRequest
    | MetadataRequest
    | GroupRequest
    | AddOffsetsToTxnRequest
    | WriteTxnMarkersRequest
)
"""What a broker is asked over the wire."""

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
    | TransactionCompleted
)
"""What a group coordinator answers."""

Response = (
    FindCoordinatorResponse
    | MetadataResponse
    | GroupResponse
    | AddOffsetsToTxnResponse
    | WriteTxnMarkersResponse
)
"""What a broker answers."""
