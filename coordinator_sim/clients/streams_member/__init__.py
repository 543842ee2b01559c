"""A port of the consumer of Kafka Streams with `group.protocol=streams` (KIP-1071)."""

from coordinator_sim.clients.streams_member.member import (
    GroupMembershipOperation,
    StreamsMember,
    streams_config,
)
from coordinator_sim.clients.streams_member.rebalance_data import (
    StreamsRebalanceData,
    Subtopology,
    TopicInfo,
)

__all__ = [
    "GroupMembershipOperation",
    "StreamsMember",
    "StreamsRebalanceData",
    "Subtopology",
    "TopicInfo",
    "streams_config",
]
