"""The messages of ShareGroupDescribe.

Written by tools/write_messages.py from schemas/ShareGroupDescribe.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.schema import ZERO_UUID


class ShareGroupDescribeRequest(Struct, frozen=True, gc=False):
    """ShareGroupDescribeRequest of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.SHARE_GROUP_DESCRIBE
    group_ids: tuple[str, ...] = ()
    include_authorized_operations: bool = False


class TopicPartitions(Struct, frozen=True, gc=False):
    """An entry of `topicPartitions`."""

    topic_id: bytes = ZERO_UUID
    topic_name: str = ""
    partitions: tuple[int, ...] = ()


class Assignment(Struct, frozen=True, gc=False):
    """The value of `assignment`."""

    topic_partitions: tuple[TopicPartitions, ...] = ()


class Member(Struct, frozen=True, gc=False):
    """An entry of `members`."""

    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    assignment: Assignment = Assignment()


class DescribedGroup(Struct, frozen=True, gc=False):
    """An entry of `groups`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: tuple[Member, ...] = ()
    authorized_operations: int = -2_147_483_648


class ShareGroupDescribeResponse(Struct, frozen=True, gc=False):
    """ShareGroupDescribeResponse of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.SHARE_GROUP_DESCRIBE
    throttle_time_ms: int = 0
    groups: tuple[DescribedGroup, ...] = ()
