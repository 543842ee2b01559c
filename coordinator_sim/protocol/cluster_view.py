"""A cluster as the simulator's clients see it: brokers, topics, leaders.

Source: kafka trunk, clients/src/main/resources/common/message/Metadata{Request,Response}.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode


class Node(Struct, frozen=True, kw_only=True, gc=False):
    """A broker as clients see it."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


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
