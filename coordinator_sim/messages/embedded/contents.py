"""The data inside JoinGroup metadata and SyncGroup assignments, decoded.

Consumers and Connect workers exchange these as opaque bytes; the modules beside have the codecs.

Source: kafka trunk, ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json;
connect/runtime ConnectProtocol.java and IncrementalCooperativeConnectProtocol.java.
"""

import re
from enum import IntEnum, unique
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition

SERVER_PREFIX: Final = "server:"
"""What the protocol name of a consumer group (KIP-848) begins with in a trace, before the assignor.

A broker's `range` is thus told from a client's.
"""
COOPERATIVE_PROTOCOLS: Final = f"^(cooperative-.*|stream|compatible|sessioned|{SERVER_PREFIX}.*)$"
"""Regular expression of protocol names whose members keep what they own in a rebalance.

An own assignor is cooperative if its name begins as that of Kafka's does; a broker's always is.
Kafka Streams' is since 2.4 (StreamsPartitionAssignor.supportedProtocols).
"""


def is_cooperative(protocol_name: str | None) -> bool:
    """Whether members of the protocol keep what they own while the group rebalances."""
    return re.match(COOPERATIVE_PROTOCOLS, protocol_name or "") is not None


class Subscription(Struct, frozen=True, kw_only=True):
    """What a consumer offers to one assignor.

    Fields a version lacks are at their defaults. `owned_partitions` keep their wire order.
    """

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned_partitions: tuple[TopicPartition, ...] = ()
    generation_id: int = -1
    rack_id: str | None = None


class ConsumerAssignment(Struct, frozen=True, kw_only=True):
    """What a consumer is given, in list order."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None


@unique
class ConnectError(IntEnum):
    """The error field of a Connect assignment."""

    NO_ERROR = 0
    CONFIG_MISMATCH = 1


class ConnectAssignment(Struct, frozen=True, kw_only=True):
    """What a Connect worker is given, and in versions 1 and 2 what it must give up.

    Args:
        version: 0 eager, 1 compatible, 2 sessioned.
        config_offset: Position in the config topic that the assignment was computed from.
        delay_ms: Until the scheduled rebalance; 0 for none.
    """

    version: int
    error: ConnectError = ConnectError.NO_ERROR
    leader: str = ""
    leader_url: str = ""
    config_offset: int = -1
    connectors: tuple[str, ...] = ()
    tasks: tuple[ConnectorTaskId, ...] = ()
    revoked_connectors: tuple[str, ...] = ()
    revoked_tasks: tuple[ConnectorTaskId, ...] = ()
    delay_ms: int = 0


class WorkerMetadata(Struct, frozen=True, kw_only=True):
    """What a Connect worker brings to JoinGroup; version 0 has no allocation."""

    version: int
    url: str
    config_offset: int
    allocation: ConnectAssignment | None = None
