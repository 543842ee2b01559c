"""The edge around requests of streams groups: feature, rights, names, topics to create.

Source: kafka 4.4, KafkaApis.handleStreamsGroupHeartbeat and
handleStreamsGroupTopologyDescriptionUpdate.
"""

from functools import partial
from typing import Final, cast

from msgspec.structs import replace

from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.groups.describe_checks import topology_topics
from coordinator_sim.broker.groups.group_protocols import GroupProtocol, Offers
from coordinator_sim.broker.groups.internal_topics import InternalTopics
from coordinator_sim.broker.metadata.topic_names import is_internal
from coordinator_sim.broker.security.access import Access, EdgeResult, answered
from coordinator_sim.broker.security.authorizer import (
    CLUSTER_NAME,
    Operation,
    ResourceType,
)
from coordinator_sim.coordinator.effects import InternalTopic
from coordinator_sim.coordinator.streams.topology import StatusCode
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.topic_names import complaint
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.streams_group_heartbeat import (
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordinator_sim.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)

_TOLD_ERRORS: Final = 3
"""Topics that could not be created whose errors an answer tells."""
_NO_PLUGIN: Final = "The broker has no streams group topology description plugin configured."


class TopologyDescriptions:
    """StreamsGroupTopologyDescriptionUpdate: refused, because no plugin stores descriptions.

    Args:
        access: Authorizes requests.
        offers: Whether a protocol of groups is on now.

    Source: kafka 4.4.0, KafkaApis.handleStreamsGroupTopologyDescriptionUpdate,
    GroupCoordinatorService.throwIfStreamsGroupTopologyDescriptionUpdateInvalid; KIP-1331.
    """

    __slots__ = ("_access", "_offers")

    def __init__(self, access: Access, offers: Offers) -> None:
        self._access = access
        self._offers = offers

    def handlers(self) -> Handlers:
        """The handler of StreamsGroupTopologyDescriptionUpdate."""
        return {ApiKey.STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE: self._handle}

    def _handle(
        self, call: Call[StreamsGroupTopologyDescriptionUpdateRequest]
    ) -> StreamsGroupTopologyDescriptionUpdateResponse:
        """The feature first, then READ on the group, then the plugin, whose lack has words."""
        refused = StreamsGroupTopologyDescriptionUpdateResponse
        group_id = call.request.group_id
        if not self._offers(GroupProtocol.STREAMS):
            return refused(error_code=ErrorCode.UNSUPPORTED_VERSION)
        if not self._access.allows(call.context, Operation.READ, ResourceType.GROUP, group_id):
            return refused(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return refused(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=_NO_PLUGIN)


class StreamsChecks:
    """The checks, and what becomes of the answers.

    Args:
        access: Authorizes requests.
        offers: Whether a protocol of groups is on now.
        internal_topics: Creates what groups need; None leaves it to the driver.
    """

    __slots__ = ("_access", "_internal_topics", "_offers")

    def __init__(
        self, access: Access, offers: Offers, internal_topics: InternalTopics | None
    ) -> None:
        self._access = access
        self._offers = offers
        self._internal_topics = internal_topics

    # -- StreamsGroupHeartbeat -------------------------------------------------------------

    def beat(self, request: StreamsGroupHeartbeatRequest, context: RequestContext) -> EdgeResult:
        """READ on the group, then the names of the topology's topics, and DESCRIBE on each."""
        if not self._offers(GroupProtocol.STREAMS):
            return _refused(ErrorCode.UNSUPPORTED_VERSION)
        if not self._access.allows(context, Operation.READ, ResourceType.GROUP, request.group_id):
            return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        if request.topology is not None:
            names = list(dict.fromkeys(topology_topics(request.topology.subtopologies or ())))
            text = _wrong_names(names)
            if text is not None:
                return _refused(ErrorCode.STREAMS_INVALID_TOPOLOGY, text)
            if not all(self._may_describe(context, name) for name in names):
                return _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if self._internal_topics is None:
            return EdgeResult(request)
        return EdgeResult(request, create=partial(self._create, self._internal_topics, context))

    def _may_describe(self, context: RequestContext, topic: str) -> bool:
        return self._access.allows(context, Operation.DESCRIBE, ResourceType.TOPIC, topic)

    def _create(
        self,
        internal_topics: InternalTopics,
        context: RequestContext,
        topics: tuple[InternalTopic, ...],
        response: Response,
    ) -> Response:
        """Have topics created that a group needs; say so where the member may not, or that failed.

        An error is remembered for two heartbeats.
        """
        beat = cast("StreamsGroupHeartbeatResponse", response)
        names = [topic.name for topic in topics]
        hidden = self._not_creatable(context, names)
        if hidden:
            text = f"Unauthorized to CREATE on topics {', '.join(hidden)}."
            return _with_missing(beat, text, adds=True)
        failed = internal_topics.create(topics, context, 2 * beat.heartbeat_interval_ms)
        if not failed:
            return beat
        told = ", ".join(f"{name} ({text})" for name, text in list(failed.items())[:_TOLD_ERRORS])
        if len(failed) > _TOLD_ERRORS:
            told += f" and {len(failed) - _TOLD_ERRORS} more"
        return _with_missing(beat, f"Creation failed: {told}.", adds=False)

    def _not_creatable(self, context: RequestContext, names: list[str]) -> list[str]:
        allows, create = self._access.allows, Operation.CREATE
        if allows(context, create, ResourceType.CLUSTER, CLUSTER_NAME):
            return []
        return [name for name in names if not allows(context, create, ResourceType.TOPIC, name)]


def _wrong_names(names: list[str]) -> str | None:
    """What is wrong with the names of a topology's topics, in Kafka's words; None if nothing is."""
    prohibited = [name for name in names if is_internal(name)]
    if prohibited:
        listed = ",".join(prohibited)
        return f"Use of Kafka internal topics {listed} in a Kafka Streams topology is prohibited."
    invalid = [name for name in names if complaint(name) is not None]
    return f"Topic names {','.join(invalid)} are not valid topic names." if invalid else None


def _refused(error: ErrorCode, text: str | None = None) -> EdgeResult:
    return answered(StreamsGroupHeartbeatResponse(error_code=error, error_message=text))


def _with_missing(
    beat: StreamsGroupHeartbeatResponse, text: str, *, adds: bool
) -> StreamsGroupHeartbeatResponse:
    """An answer that says more of missing topics, behind what it says already.

    Args:
        beat: The answer.
        text: What more there is to say.
        adds: Whether it is also said where the answer does not speak of missing topics.
    """
    code = int(StatusCode.MISSING_INTERNAL_TOPICS)
    statuses = list(beat.status or ())
    for index, status in enumerate(statuses):
        if status.status_code == code:
            statuses[index] = Status(code, f"{status.status_detail}; {text}")
            break
    else:
        if adds:
            statuses.append(Status(code, text))
    return replace(beat, status=tuple(statuses))
