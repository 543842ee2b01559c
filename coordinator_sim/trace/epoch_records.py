"""Which record of a group with epochs says what.

Groups of three types have epochs and targets: consumer groups (KIP-848), share groups (KIP-932) and
streams groups (KIP-1071). Their records differ by name and say the same.

Source: kafka 4.4, CoordinatorRecordType: key types 3 to 8 and 16, 10 to 15, 17 and 19 to 23.
"""

from enum import Enum, unique
from typing import Final, cast, get_args

from coordinator_sim.messages import consumer_group_records as consumer
from coordinator_sim.messages import share_group_records as share
from coordinator_sim.messages import streams_group_records as streams
from coordinator_sim.messages.group_records import GroupKey
from coordinator_sim.messages.records import LogKey

CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"
GROUP_TYPES: Final = (CONSUMER, SHARE, STREAMS)
"""Types of the groups with epochs, as Kafka names them; also their protocol types."""

EpochGroupKey = consumer.ConsumerGroupKey | share.ShareGroupKey | streams.StreamsGroupKey
"""A key of a record of a group with epochs."""


@unique
class Says(Enum):
    """What a record is about."""

    MEMBER = "what a member said of itself"
    EPOCH = "the epoch of the group"
    PART = "what a member shall have"
    TARGET = "the epoch of the target"
    STEP = "what a member has"
    TOPICS = "topics with their names"
    TOPOLOGY = "the topology"


SAID_BY: Final[dict[type, Says]] = {
    consumer.ConsumerGroupMemberMetadataKey: Says.MEMBER,
    consumer.ConsumerGroupMetadataKey: Says.EPOCH,
    consumer.ConsumerGroupPartitionMetadataKey: Says.TOPICS,
    consumer.ConsumerGroupTargetAssignmentMemberKey: Says.PART,
    consumer.ConsumerGroupTargetAssignmentMetadataKey: Says.TARGET,
    consumer.ConsumerGroupCurrentMemberAssignmentKey: Says.STEP,
    share.ShareGroupMemberMetadataKey: Says.MEMBER,
    share.ShareGroupMetadataKey: Says.EPOCH,
    share.ShareGroupStatePartitionMetadataKey: Says.TOPICS,
    share.ShareGroupTargetAssignmentMemberKey: Says.PART,
    share.ShareGroupTargetAssignmentMetadataKey: Says.TARGET,
    share.ShareGroupCurrentMemberAssignmentKey: Says.STEP,
    streams.StreamsGroupMemberMetadataKey: Says.MEMBER,
    streams.StreamsGroupMetadataKey: Says.EPOCH,
    streams.StreamsGroupTopologyKey: Says.TOPOLOGY,
    streams.StreamsGroupTargetAssignmentMemberKey: Says.PART,
    streams.StreamsGroupTargetAssignmentMetadataKey: Says.TARGET,
    streams.StreamsGroupCurrentMemberAssignmentKey: Says.STEP,
}
"""By type of key; an expression's record says nothing of its group."""

TYPE_OF_KEY: Final[dict[type, str]] = {
    **dict.fromkeys(get_args(consumer.ConsumerGroupKey), CONSUMER),
    **dict.fromkeys(get_args(share.ShareGroupKey), SHARE),
    **dict.fromkeys(get_args(streams.StreamsGroupKey), STREAMS),
}
"""The type of the group that a record of that type of key is of."""


def is_of_epoch_group(key: LogKey) -> bool:
    """Whether a record of that key is of a group with epochs."""
    return type(key) in TYPE_OF_KEY


def group_of(key: LogKey) -> str:
    """The group of a record of a known type."""
    return key.group if isinstance(key, GroupKey) else cast("EpochGroupKey", key).group_id


def member_of(key: LogKey) -> str:
    """The member that a record is of; empty where it is of the group."""
    return getattr(key, "member_id", "")
