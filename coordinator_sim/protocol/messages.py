"""Version-neutral requests and responses of the group APIs.

One struct an API, holding the union of all versions' fields with Kafka's names; what a version
lacks is at its default. The version a request came in travels beside it, in `RequestContext`.
Durations are milliseconds.

Source: kafka trunk, clients/src/main/resources/common/message/*.json.
"""

from typing import ClassVar, Final

from msgspec import Struct

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode

UNKNOWN_MEMBER_ID: Final = ""
"""The member id of a client that has none yet."""
NO_GENERATION_ID: Final = -1
"""The generation of a client outside any generation, and of every JoinGroup error."""


class RequestContext(Struct, frozen=True, kw_only=True, gc=False):
    """Who sent a request and how: what the broker's network layer knows of it.

    Args:
        token: Names the reply; unique among the requests a coordinator has not answered.
        api_version: Version the request was sent in; decides version-dependent behaviour.
        client_host: As Java prints an address, with a leading slash.
    """

    token: int
    api_version: int
    client_id: str = ""
    client_host: str = "/127.0.0.1"
    principal: str = "User:ANONYMOUS"
    listener: str = "PLAINTEXT"


class Node(Struct, frozen=True, kw_only=True, gc=False):
    """A broker as clients see it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class FindCoordinatorRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Asks which broker coordinates each key. `key_type` 0 is a group, 1 a transaction."""

    api_key: ClassVar[ApiKey] = ApiKey.FIND_COORDINATOR
    keys: tuple[str, ...]
    key_type: int = 0


class CoordinatorOfKey(Struct, frozen=True, kw_only=True, gc=False):
    """The coordinator of one key; on error `node_id` and `port` are -1 and `host` is empty.

    Args:
        error_message: None for what a broker of the request's version says beside that error.
    """

    key: str
    node_id: int = -1
    host: str = ""
    port: int = -1
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class FindCoordinatorResponse(Struct, frozen=True, kw_only=True, gc=False):
    """One entry a requested key, in request order."""

    coordinators: tuple[CoordinatorOfKey, ...]


class MetadataRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Asks for brokers and topics. `topics` None means every topic."""

    api_key: ClassVar[ApiKey] = ApiKey.METADATA
    topics: tuple[str, ...] | None = None


class PartitionMetadata(Struct, frozen=True, kw_only=True, gc=False):
    """One partition's leader (-1 for none), leader epoch and the racks of its replicas."""

    partition: int
    leader_id: int
    leader_epoch: int = 0
    replica_racks: tuple[str, ...] = ()


class TopicMetadata(Struct, frozen=True, kw_only=True, gc=False):
    """One topic's partitions in ascending order; internal ones are the broker's own."""

    name: str
    partitions: tuple[PartitionMetadata, ...]
    error_code: ErrorCode = ErrorCode.NONE
    is_internal: bool = False


class MetadataResponse(Struct, frozen=True, kw_only=True, gc=False):
    """The cluster as the answering broker knows it."""

    brokers: tuple[Node, ...]
    topics: tuple[TopicMetadata, ...]


class JoinGroupProtocol(Struct, frozen=True, gc=False):
    """One protocol a member offers: an assignor's name and its subscription bytes."""

    name: str
    metadata: bytes


class JoinGroupRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Asks to be part of the group's next generation.

    `rebalance_timeout_ms` -1 (JoinGroup v0) stands for the session timeout.
    `protocols` are in the member's order of preference.
    """

    api_key: ClassVar[ApiKey] = ApiKey.JOIN_GROUP
    group_id: str
    session_timeout_ms: int
    member_id: str
    protocol_type: str
    protocols: tuple[JoinGroupProtocol, ...]
    rebalance_timeout_ms: int = -1
    group_instance_id: str | None = None
    reason: str | None = None


class JoinGroupMember(Struct, frozen=True, gc=False):
    """A member as the leader sees it: its metadata is that of the chosen protocol."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes


class JoinGroupResponse(Struct, frozen=True, kw_only=True, gc=False):
    """Admission to a generation, or an error with generation -1.

    `members` is empty for everyone but the leader.
    """

    error_code: ErrorCode = ErrorCode.NONE
    generation_id: int = NO_GENERATION_ID
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: tuple[JoinGroupMember, ...] = ()


class SyncGroupAssignment(Struct, frozen=True, gc=False):
    """One member's assignment, as the leader computed it."""

    member_id: str
    assignment: bytes


class SyncGroupRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Asks for this member's assignment; the leader brings everyone's."""

    api_key: ClassVar[ApiKey] = ApiKey.SYNC_GROUP
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[SyncGroupAssignment, ...] = ()


class SyncGroupResponse(Struct, frozen=True, kw_only=True, gc=False):
    """The member's assignment, empty on error."""

    error_code: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Says the member is alive and asks whether its generation still is."""

    api_key: ClassVar[ApiKey] = ApiKey.HEARTBEAT
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None = None


class HeartbeatResponse(Struct, frozen=True, kw_only=True, gc=False):
    """NONE, or why the member's generation is over."""

    error_code: ErrorCode = ErrorCode.NONE


class LeavingMember(Struct, frozen=True, kw_only=True, gc=False):
    """One member that leaves; an administrator names a static one by instance id alone."""

    member_id: str
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroupRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Removes members from the group; one member up to version 2."""

    api_key: ClassVar[ApiKey] = ApiKey.LEAVE_GROUP
    group_id: str
    members: tuple[LeavingMember, ...]


class LeftMember(Struct, frozen=True, kw_only=True, gc=False):
    """The result for one entry of a LeaveGroup, echoing the ids as sent."""

    member_id: str
    group_instance_id: str | None = None
    error_code: ErrorCode = ErrorCode.NONE


class LeaveGroupResponse(Struct, frozen=True, kw_only=True, gc=False):
    """The group's error, and one result an entry in request order."""

    error_code: ErrorCode = ErrorCode.NONE
    members: tuple[LeftMember, ...] = ()


class OffsetCommitPartition(Struct, frozen=True, gc=False):
    """The offset to store for one partition; leader epoch -1 means unknown.

    `commit_timestamp_ms` is -1 (the broker's clock) but for version 1.
    """

    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = ""
    commit_timestamp_ms: int = -1


class OffsetCommitTopic(Struct, frozen=True, gc=False):
    """The partitions of one topic in a commit; the broker adds the topic's id, if it knows it.

    From version 10 a client names the topic by its id alone, and the broker adds the name.
    """

    name: str
    partitions: tuple[OffsetCommitPartition, ...]
    topic_id: bytes | None = None


class OffsetCommitRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Stores consumed positions. Generation -1 and an empty member id mean a simple consumer.

    `retention_time_ms` is -1 (the broker's default) but for versions 2 to 4.
    """

    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_COMMIT
    group_id: str
    topics: tuple[OffsetCommitTopic, ...]
    generation_id: int = NO_GENERATION_ID
    member_id: str = UNKNOWN_MEMBER_ID
    group_instance_id: str | None = None
    retention_time_ms: int = -1


class PartitionError(Struct, frozen=True, gc=False):
    """The outcome for one partition."""

    partition: int
    error_code: ErrorCode


class OffsetCommitTopicResult(Struct, frozen=True, gc=False):
    """The outcomes of one topic's partitions, in request order; the id is told from version 10."""

    name: str
    partitions: tuple[PartitionError, ...]
    topic_id: bytes | None = None


class OffsetCommitResponse(Struct, frozen=True, kw_only=True, gc=False):
    """One outcome a partition: a commit has no error of its own."""

    topics: tuple[OffsetCommitTopicResult, ...]


class OffsetFetchTopic(Struct, frozen=True, gc=False):
    """The partitions of one topic whose offsets are wanted; named by its id from version 10."""

    name: str
    partitions: tuple[int, ...]
    topic_id: bytes | None = None


class OffsetFetchGroup(Struct, frozen=True, kw_only=True, gc=False):
    """One group of an OffsetFetch. `topics` None means every topic with an offset."""

    group_id: str
    topics: tuple[OffsetFetchTopic, ...] | None = None
    member_id: str | None = None
    member_epoch: int = -1


class OffsetFetchRequest(Struct, frozen=True, kw_only=True, gc=False):
    """Asks for stored offsets; one group up to version 7, a batch from 8."""

    api_key: ClassVar[ApiKey] = ApiKey.OFFSET_FETCH
    groups: tuple[OffsetFetchGroup, ...]
    require_stable: bool = False


class FetchedOffset(Struct, frozen=True, gc=False):
    """A stored offset; -1 with empty metadata where there is none."""

    partition: int
    offset: int = -1
    leader_epoch: int = -1
    metadata: str | None = ""
    error_code: ErrorCode = ErrorCode.NONE


class FetchedTopic(Struct, frozen=True, gc=False):
    """The stored offsets of one topic; the id is told from version 10."""

    name: str
    partitions: tuple[FetchedOffset, ...]
    topic_id: bytes | None = None


class FetchedGroup(Struct, frozen=True, kw_only=True, gc=False):
    """The stored offsets of one group, or the group's error."""

    group_id: str
    topics: tuple[FetchedTopic, ...] = ()
    error_code: ErrorCode = ErrorCode.NONE


class OffsetFetchResponse(Struct, frozen=True, kw_only=True, gc=False):
    """One entry a requested group, in request order."""

    groups: tuple[FetchedGroup, ...]
