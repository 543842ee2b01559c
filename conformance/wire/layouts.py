"""Layouts that kio does not have: versions that Kafka has dropped, and its newest ones.

They are classes of kio's kind, so that kio reads and writes them. Where a version looks like its
neighbour on the wire, it is the neighbour's class.

Source: the message schemas of Kafka 3.9 and 4.4, clients/src/main/resources/common/message.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final
from uuid import UUID

from kio.schema.api_versions.v4.response import ApiVersionsResponse
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.errors import ErrorCode
from kio.schema.offset_commit.v2.response import OffsetCommitResponse
from kio.schema.offset_fetch.v1.request import OffsetFetchRequest
from kio.schema.offset_fetch.v1.response import OffsetFetchResponse
from kio.schema.request_header.v1.header import RequestHeader
from kio.schema.request_header.v2.header import RequestHeader as FlexibleRequestHeader
from kio.schema.response_header.v1.header import ResponseHeader as FlexibleResponseHeader
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i32Timedelta, i64

_NAMED: Final = {"kafka_type": "string"}
_NUMBERED: Final = {"kafka_type": "int32"}
_OFFSET: Final = {"kafka_type": "int64"}
_ID: Final = {"kafka_type": "uuid"}
_ERROR: Final = {"kafka_type": "error_code"}
_SPAN: Final = {"kafka_type": "timedelta_i32"}


class _OldCommit:
    """What the classes of OffsetCommit's oldest requests have in common."""

    __slots__ = ()
    __type__: ClassVar = EntityType.nested
    __flexible__: ClassVar[bool] = False
    __api_key__: ClassVar[i16] = i16(8)
    __header_schema__: ClassVar[Any] = RequestHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestPartition0(_OldCommit):
    """A partition, version 0."""

    __version__: ClassVar[i16] = i16(0)
    partition_index: i32 = field(metadata=_NUMBERED)
    committed_offset: i64 = field(metadata=_OFFSET)
    committed_metadata: str | None = field(metadata=_NAMED)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestTopic0(_OldCommit):
    """A topic, version 0."""

    __version__: ClassVar[i16] = i16(0)
    name: str = field(metadata=_NAMED)
    partitions: tuple[OffsetCommitRequestPartition0, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequest0(_OldCommit):
    """OffsetCommit, version 0: of a group, by nobody."""

    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(0)
    group_id: str = field(metadata=_NAMED)
    topics: tuple[OffsetCommitRequestTopic0, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestPartition1(_OldCommit):
    """A partition, version 1: with the time of the commit, or -1."""

    __version__: ClassVar[i16] = i16(1)
    partition_index: i32 = field(metadata=_NUMBERED)
    committed_offset: i64 = field(metadata=_OFFSET)
    commit_timestamp: i64 = field(metadata=_OFFSET, default=i64(-1))
    committed_metadata: str | None = field(metadata=_NAMED)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequestTopic1(_OldCommit):
    """A topic, version 1."""

    __version__: ClassVar[i16] = i16(1)
    name: str = field(metadata=_NAMED)
    partitions: tuple[OffsetCommitRequestPartition1, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitRequest1(_OldCommit):
    """OffsetCommit, version 1: by a member, or by nobody."""

    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(1)
    group_id: str = field(metadata=_NAMED)
    generation_id_or_member_epoch: i32 = field(metadata=_NUMBERED, default=i32(-1))
    member_id: str = field(metadata=_NAMED)
    topics: tuple[OffsetCommitRequestTopic1, ...]


class _NewTxnCommit:
    """What the classes of TxnOffsetCommit, version 6, have in common."""

    __slots__ = ()
    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(6)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(28)
    __header_schema__: ClassVar[Any] = FlexibleRequestHeader


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequestPartition6(_NewTxnCommit):
    """A partition."""

    partition_index: i32 = field(metadata=_NUMBERED)
    committed_offset: i64 = field(metadata=_OFFSET)
    committed_leader_epoch: i32 = field(metadata=_NUMBERED, default=i32(-1))
    committed_metadata: str | None = field(metadata=_NAMED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequestTopic6(_NewTxnCommit):
    """A topic, by its id."""

    topic_id: UUID | None = field(metadata=_ID)
    partitions: tuple[TxnOffsetCommitRequestPartition6, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitRequest6(_NewTxnCommit):
    """TxnOffsetCommit, version 6."""

    __type__: ClassVar = EntityType.request
    transactional_id: str = field(metadata=_NAMED)
    group_id: str = field(metadata=_NAMED)
    producer_id: i64 = field(metadata=_OFFSET)
    producer_epoch: i16 = field(metadata={"kafka_type": "int16"})
    generation_id_or_member_epoch: i32 = field(metadata=_NUMBERED, default=i32(-1))
    member_id: str = field(metadata=_NAMED, default="")
    group_instance_id: str | None = field(metadata=_NAMED, default=None)
    topics: tuple[TxnOffsetCommitRequestTopic6, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponsePartition6(_NewTxnCommit):
    """What came of a partition."""

    __header_schema__: ClassVar[Any] = FlexibleResponseHeader
    partition_index: i32 = field(metadata=_NUMBERED)
    error_code: ErrorCode = field(metadata=_ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponseTopic6(_NewTxnCommit):
    """What came of a topic."""

    __header_schema__: ClassVar[Any] = FlexibleResponseHeader
    topic_id: UUID | None = field(metadata=_ID)
    partitions: tuple[TxnOffsetCommitResponsePartition6, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnOffsetCommitResponse6(_NewTxnCommit):
    """The answer to TxnOffsetCommit, version 6."""

    __type__: ClassVar = EntityType.response
    __header_schema__: ClassVar[Any] = FlexibleResponseHeader
    throttle_time: i32Timedelta = field(metadata=_SPAN)
    topics: tuple[TxnOffsetCommitResponseTopic6, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletableGroupResult3:
    """What came of the deletion of a group, with words to an error."""

    __type__: ClassVar = EntityType.nested
    __version__: ClassVar[i16] = i16(3)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(42)
    __header_schema__: ClassVar[Any] = FlexibleResponseHeader
    group_id: str = field(metadata=_NAMED)
    error_code: ErrorCode = field(metadata=_ERROR)
    error_message: str | None = field(metadata=_NAMED, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteGroupsResponse3:
    """The answer to DeleteGroups, version 3."""

    __type__: ClassVar = EntityType.response
    __version__: ClassVar[i16] = i16(3)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(42)
    __header_schema__: ClassVar[Any] = FlexibleResponseHeader
    throttle_time: i32Timedelta = field(metadata=_SPAN)
    results: tuple[DeletableGroupResult3, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest5:
    """ApiVersions, version 5: with whom the client takes the broker for."""

    __type__: ClassVar = EntityType.request
    __version__: ClassVar[i16] = i16(5)
    __flexible__: ClassVar[bool] = True
    __api_key__: ClassVar[i16] = i16(18)
    __header_schema__: ClassVar[Any] = FlexibleRequestHeader
    client_software_name: str = field(metadata=_NAMED)
    client_software_version: str = field(metadata=_NAMED)
    cluster_id: str | None = field(metadata=_NAMED, default=None)
    node_id: i32 = field(metadata=_NUMBERED, default=i32(-1))


LAYOUTS: Final[dict[tuple[str, int], tuple[type, type]]] = {
    ("OffsetCommit", 0): (OffsetCommitRequest0, OffsetCommitResponse),
    ("OffsetCommit", 1): (OffsetCommitRequest1, OffsetCommitResponse),
    ("OffsetFetch", 0): (OffsetFetchRequest, OffsetFetchResponse),
    ("TxnOffsetCommit", 6): (TxnOffsetCommitRequest6, TxnOffsetCommitResponse6),
    ("DeleteGroups", 3): (DeleteGroupsRequest, DeleteGroupsResponse3),
    ("ApiVersions", 5): (ApiVersionsRequest5, ApiVersionsResponse),
}
"""API and version -> the classes of its request and of its response."""
