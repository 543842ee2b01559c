"""Kafka's checks of the APIs of consumer, share and streams groups.

The feature comes first, then rights on the group, then fields, then rights on topics. Brokers offer
the APIs of a protocol also where it is off: clients learn that from the finalized features, or from
the answers.

Source: kafka 4.4, KafkaApis.isConsumerGroupProtocolEnabled, isStreamsGroupProtocolEnabled and
isShareGroupProtocolEnabled; handleConsumerGroupHeartbeat and its siblings of other groups,
handleConsumerGroupDescribe and its siblings (which differ in what a group's topics are and in one
sentence), handleAlterShareGroupOffsetsRequest, handleDeleteShareGroupOffsetsRequest,
handleStreamsGroupTopologyDescriptionUpdate.
"""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final, NamedTuple, cast

from msgspec.structs import replace

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.groups.internal_topics import InternalTopics
from coordinator_sim.broker.metadata.image import MetadataImage, Topics
from coordinator_sim.broker.security.access import Access, EdgeResult, answered
from coordinator_sim.broker.security.authorizer import GROUP_OPERATIONS, Operation, ResourceType
from coordinator_sim.coordinator.inspection import Description
from coordinator_sim.coordinator.modern.share.alter_offsets import refused_alteration
from coordinator_sim.coordinator.modern.share.delete_offsets import refused_offset_deletion
from coordinator_sim.coordinator.spanning import DESCRIPTIONS
from coordinator_sim.coordinator.streams.describe import topology_topics
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.states import GroupProtocol
from coordinator_sim.kafka.topic_names import complaint, is_internal
from coordinator_sim.messages import alter_share_group_offsets as alter
from coordinator_sim.messages import delete_share_group_offsets as delete
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from coordinator_sim.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordinator_sim.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)

_LONGEST_MEMBER_ID: Final = 36
"""Characters of a UUID as people read it."""
_NO_PLUGIN: Final = "The broker has no streams group topology description plugin configured."
PROTOCOLS: Final = "group.coordinator.rebalance.protocols"


_FEATURES: Final = {
    GroupProtocol.CONSUMER: "group.version",
    GroupProtocol.STREAMS: "streams.version",
    GroupProtocol.SHARE: "share.version",
}
"""The feature of each protocol; level 0 is off."""

Offers = AbstractSet[GroupProtocol]
"""The protocols that are on now."""


class GroupProtocols:
    """The protocols of a cluster.

    Args:
        profile: Its Kafka version; the Scala coordinator has none of these protocols.
        image: Its finalized features.
        configs: Its settings.

    Attributes:
        offers: Those that are on now.
    """

    __slots__ = ("_configs", "_image", "_profile", "offers")

    def __init__(self, profile: Profile, image: MetadataImage, configs: Configs) -> None:
        self._profile = profile
        self._image = image
        self._configs = configs
        self.offers: set[GroupProtocol] = set()
        self.update()

    def update(self, _change: object = None) -> None:
        """Read again which protocols are on."""
        self.offers.clear()
        self.offers.update(filter(self._is_on, GroupProtocol))

    def _is_on(self, protocol: GroupProtocol) -> bool:
        """Whether the feature of a protocol is on, and the brokers' settings name it.

        Share groups need the feature alone: `PROTOCOLS` may name them, and nobody asks.
        """
        if protocol is GroupProtocol.CLASSIC:
            return True
        if not self._profile.has_coordinator_runtime:
            return False
        if self._image.features.get(_FEATURES[protocol], 0) == 0:
            return False
        if protocol is GroupProtocol.SHARE:
            return True
        named = self._configs.broker_value(PROTOCOLS)
        return isinstance(named, list) and protocol.value in named


def offers_of(profile: Profile) -> Offers:
    """All that a Kafka version has is on: of a broker without a cluster around it."""
    offers = {GroupProtocol.CLASSIC}
    if profile.has_coordinator_runtime:
        offers |= {GroupProtocol.CONSUMER, GroupProtocol.STREAMS}
    return offers | {GroupProtocol.SHARE} if profile.share_groups else offers


Invalid = tuple[ErrorCode, str | None]
"""An error of a request's fields, with its message."""
_VALID: Final[Invalid] = (ErrorCode.NONE, None)


def is_member_id(text: str | None) -> bool:
    """Whether requests of share groups may name their member so. Source: isMemberIdValid."""
    return text is not None and 0 < len(text) <= _LONGEST_MEMBER_ID


def _share_error(request: ShareGroupHeartbeatRequest) -> Invalid:
    return _VALID if is_member_id(request.member_id) else (ErrorCode.INVALID_REQUEST, None)


def _streams_names(request: StreamsGroupHeartbeatRequest) -> list[str]:
    if request.topology is None:
        return []
    return list(dict.fromkeys(topology_topics(request.topology.subtopologies or ())))


def _streams_error(request: StreamsGroupHeartbeatRequest) -> Invalid:
    """What is wrong with the names of a topology's topics, in Kafka's words."""
    names = _streams_names(request)
    prohibited = [name for name in names if is_internal(name)]
    invalid = [name for name in names if complaint(name) is not None]
    if prohibited:
        listed = ",".join(prohibited)
        text = f"Use of Kafka internal topics {listed} in a Kafka Streams topology is prohibited."
    elif invalid:
        text = f"Topic names {','.join(invalid)} are not valid topic names."
    else:
        return _VALID
    return ErrorCode.STREAMS_INVALID_TOPOLOGY, text


class HeartbeatCheck(NamedTuple):
    """How heartbeats of one protocol are checked.

    Args:
        protocol: Of the groups.
        response: Type of the answer.
        topics: Topics that a request names; its sender needs DESCRIBE on each.
        field_error: The error of a request's fields.
    """

    protocol: GroupProtocol
    response: type[Any]
    topics: Callable[[Any], Iterable[str]]
    field_error: Callable[[Any], Invalid] = lambda _: _VALID


HEARTBEATS: Final[dict[type[Request], HeartbeatCheck]] = {
    ConsumerGroupHeartbeatRequest: HeartbeatCheck(
        GroupProtocol.CONSUMER,
        ConsumerGroupHeartbeatResponse,
        lambda request: request.subscribed_topic_names or (),
    ),
    ShareGroupHeartbeatRequest: HeartbeatCheck(
        GroupProtocol.SHARE,
        ShareGroupHeartbeatResponse,
        lambda request: request.subscribed_topic_names or (),
        _share_error,
    ),
    StreamsGroupHeartbeatRequest: HeartbeatCheck(
        GroupProtocol.STREAMS, StreamsGroupHeartbeatResponse, _streams_names, _streams_error
    ),
}


class GroupChecks:
    """The checks, and what becomes of the answers.

    Args:
        access: Authorizes requests.
        offers: The protocols of groups that are on now.
        topics: The existing topics.
        internal_topics: Creates what streams groups need; None leaves it to the driver.
    """

    __slots__ = ("_access", "_internal_topics", "_offers", "_topics")

    def __init__(
        self,
        access: Access,
        offers: Offers,
        topics: Topics,
        internal_topics: InternalTopics | None,
    ) -> None:
        self._access = access
        self._offers = offers
        self._topics = topics
        self._internal_topics = internal_topics

    def checks(self) -> dict[type[Request], Callable[[Any, RequestContext], EdgeResult]]:
        """The check of each request."""
        return {
            **{each: partial(self._heartbeat, kind) for each, kind in HEARTBEATS.items()},
            **{each: partial(self._describe, kind) for each, kind in DESCRIPTIONS.items()},
            StreamsGroupHeartbeatRequest: self._streams_heartbeat,
            alter.AlterShareGroupOffsetsRequest: self._alter,
            delete.DeleteShareGroupOffsetsRequest: self._delete,
        }

    def _group_error(
        self,
        protocol: GroupProtocol,
        operation: Operation,
        request: Any,  # noqa: ANN401 - any request about one group
        context: RequestContext,
    ) -> ErrorCode:
        """The error of a sender who may not do an operation on a group; the feature comes first."""
        if protocol not in self._offers:
            return ErrorCode.UNSUPPORTED_VERSION
        if not self._access.allows(context, operation, ResourceType.GROUP, request.group_id):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        return ErrorCode.NONE

    def _may_read(self, context: RequestContext, topic: str) -> bool:
        return self._access.allows(context, Operation.READ, ResourceType.TOPIC, topic)

    def _may_describe(self, context: RequestContext, topics: Iterable[str]) -> bool:
        allows, describe = self._access.allows, Operation.DESCRIBE
        return all(allows(context, describe, ResourceType.TOPIC, name) for name in topics)

    # -- heartbeats ------------------------------------------------------------------------

    def _heartbeat(self, kind: HeartbeatCheck, request: Any, context: RequestContext) -> EdgeResult:  # noqa: ANN401 - any of the three
        """Check READ on the group, then the fields, then DESCRIBE on each topic."""
        error, text = self._group_error(kind.protocol, Operation.READ, request, context), None
        if error is ErrorCode.NONE:
            error, text = kind.field_error(request)
        if error is ErrorCode.NONE:
            if self._access.authorizer is None or self._may_describe(context, kind.topics(request)):
                return EdgeResult(request)
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return answered(kind.response(error_code=error, error_message=text))

    def _streams_heartbeat(
        self, request: StreamsGroupHeartbeatRequest, context: RequestContext
    ) -> EdgeResult:
        """Check a heartbeat of a streams group, and have topics created that the group needs."""
        checked = self._heartbeat(HEARTBEATS[StreamsGroupHeartbeatRequest], request, context)
        if checked.request is None or self._internal_topics is None:
            return checked
        create = partial(self._internal_topics.create_missing, self._access, context)
        return EdgeResult(request, create=create)

    # -- offsets of share groups -----------------------------------------------------------

    def _alter(
        self, request: alter.AlterShareGroupOffsetsRequest, context: RequestContext
    ) -> EdgeResult:
        """Check READ on the group and on each topic, which must exist; refused ones come first."""
        error = self._group_error(GroupProtocol.SHARE, Operation.READ, request, context)
        if error is not ErrorCode.NONE:
            return answered(refused_alteration(error))
        refused: list[alter.AlterShareGroupOffsetsResponseTopic] = []
        allowed: list[alter.AlterShareGroupOffsetsRequestTopic] = []
        for topic in request.topics:
            if not self._may_read(context, topic.topic_name):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not self._topics.exists(topic.topic_name):
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                allowed.append(topic)
                continue
            if topic.partitions:
                refused.append(self._unaltered(topic, error))
        passed = replace(request, topics=tuple(allowed))
        return EdgeResult(passed, partial(_after, tuple(refused)) if refused else None)

    def _unaltered(
        self, topic: alter.AlterShareGroupOffsetsRequestTopic, error: ErrorCode
    ) -> alter.AlterShareGroupOffsetsResponseTopic:
        text = error_message(error)
        return alter.AlterShareGroupOffsetsResponseTopic(
            topic.topic_name,
            self._topics.id_of(topic.topic_name) or ZERO_UUID,
            tuple(
                alter.AlterShareGroupOffsetsResponsePartition(each.partition_index, error, text)
                for each in topic.partitions
            ),
        )

    def _delete(
        self, request: delete.DeleteShareGroupOffsetsRequest, context: RequestContext
    ) -> EdgeResult:
        """Check DELETE on the group and READ on each topic; refused ones come first."""
        error = self._group_error(GroupProtocol.SHARE, Operation.DELETE, request, context)
        if error is not ErrorCode.NONE:
            return answered(refused_offset_deletion(error))
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        refused: list[delete.DeleteShareGroupOffsetsResponseTopic] = []
        allowed: list[delete.DeleteShareGroupOffsetsRequestTopic] = []
        for topic in request.topics:
            if self._may_read(context, topic.topic_name):
                allowed.append(topic)
                continue
            refused.append(
                delete.DeleteShareGroupOffsetsResponseTopic(
                    topic.topic_name, error_code=error, error_message=error_message(error)
                )
            )
        passed = replace(request, topics=tuple(allowed))
        return EdgeResult(passed, partial(_after, tuple(refused)) if refused else None)

    # -- descriptions ----------------------------------------------------------------------

    def _describe(self, kind: Description, request: Any, context: RequestContext) -> EdgeResult:  # noqa: ANN401 - any of the three
        """Check the feature, then DESCRIBE on each group; refused groups come first in the answer.

        The request is one of the three, whose fields are equal.
        """
        if kind.protocol not in self._offers:
            error = ErrorCode.UNSUPPORTED_VERSION
            groups = tuple(
                kind.described(group_id=each, error_code=error) for each in request.group_ids
            )
            return answered(kind.response(groups=groups))
        allowed: list[str] = []
        refused: list[Any] = []
        for name in request.group_ids:
            if self._access.allows(context, Operation.DESCRIBE, ResourceType.GROUP, name):
                allowed.append(name)
            else:
                error = ErrorCode.GROUP_AUTHORIZATION_FAILED
                refused.append(kind.described(group_id=name, error_code=error))
        wants_operations = request.include_authorized_operations
        if not wants_operations and self._access.is_open:
            return EdgeResult(request)

        def finish(response: Any) -> Any:  # noqa: ANN401 - the answer of that request
            seen = tuple(
                self._as_seen(kind, group, context, wants_operations=wants_operations)
                for group in response.groups
            )
            return kind.response(groups=(*refused, *seen))

        return EdgeResult(replace(request, group_ids=tuple(allowed)), finish)

    def _as_seen(
        self,
        kind: Description,
        group: Any,  # noqa: ANN401 - of that kind
        context: RequestContext,
        *,
        wants_operations: bool,
    ) -> Any:  # noqa: ANN401 - of that kind
        """A group, or an error if it has topics that the sender may not describe."""
        if not self._may_describe(context, dict.fromkeys(kind.topics(group))):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            text = kind.hidden_topics
            return kind.described(group_id=group.group_id, error_code=error, error_message=text)
        if not wants_operations or group.error_code is not ErrorCode.NONE:
            return group
        bits = self._access.bits(context, GROUP_OPERATIONS, ResourceType.GROUP, group.group_id)
        return replace(group, authorized_operations=bits)


def _after(refused: tuple[Any, ...], response: Response | None) -> Response:
    """The coordinator's answer behind the refused topics; an error of the whole stands alone."""
    answer: Any = response
    if answer.error_code is not ErrorCode.NONE:
        return cast(
            "Response",
            type(answer)(error_code=answer.error_code, error_message=answer.error_message),
        )
    return cast("Response", replace(answer, responses=refused + answer.responses))


class TopologyDescriptions:
    """StreamsGroupTopologyDescriptionUpdate: refused, because no plugin stores descriptions.

    Args:
        access: Authorizes requests.
        offers: The protocols of groups that are on now.

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
        response = StreamsGroupTopologyDescriptionUpdateResponse
        group_id = call.request.group_id
        if GroupProtocol.STREAMS not in self._offers:
            return response(error_code=ErrorCode.UNSUPPORTED_VERSION)
        if not self._access.allows(call.context, Operation.READ, ResourceType.GROUP, group_id):
            return response(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return response(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=_NO_PLUGIN)
