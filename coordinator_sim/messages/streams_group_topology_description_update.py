"""The messages of StreamsGroupTopologyDescriptionUpdate.

Written by tools/write_messages.py from schemas/StreamsGroupTopologyDescriptionUpdate.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class TopologyDescriptionNode(Struct, frozen=True, gc=False):
    """An entry of `nodes`."""

    name: str = ""
    node_type: int = 0
    source_topics: tuple[str, ...] = ()
    sink_topic: str | None = None
    stores: tuple[str, ...] = ()
    successors: tuple[str, ...] = ()


class TopologyDescriptionSubtopology(Struct, frozen=True, gc=False):
    """An entry of `subtopologies`."""

    subtopology_id: str = ""
    nodes: tuple[TopologyDescriptionNode, ...] = ()


class TopologyDescriptionGlobalStore(Struct, frozen=True, gc=False):
    """An entry of `globalStores`."""

    source: TopologyDescriptionNode = TopologyDescriptionNode()
    processor: TopologyDescriptionNode = TopologyDescriptionNode()


class TopologyDescription(Struct, frozen=True, gc=False):
    """The value of `topologyDescription`."""

    subtopologies: tuple[TopologyDescriptionSubtopology, ...] = ()
    global_stores: tuple[TopologyDescriptionGlobalStore, ...] = ()


class StreamsGroupTopologyDescriptionUpdateRequest(Struct, frozen=True, gc=False):
    """StreamsGroupTopologyDescriptionUpdateRequest of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE
    group_id: str = ""
    member_id: str = ""
    topology_epoch: int = 0
    topology_description: TopologyDescription = TopologyDescription()


class StreamsGroupTopologyDescriptionUpdateResponse(Struct, frozen=True, gc=False):
    """StreamsGroupTopologyDescriptionUpdateResponse of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
