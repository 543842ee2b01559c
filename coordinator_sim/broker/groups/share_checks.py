"""The edge around requests of share groups: feature, rights, names, topics.

Source: kafka 4.3 and 4.4, KafkaApis.handleShareGroupHeartbeat,
handleAlterShareGroupOffsetsRequest and handleDeleteShareGroupOffsetsRequest, which check the
feature before authorization.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

from msgspec.structs import replace

from coordinator_sim.broker.groups.group_protocols import GroupProtocol, Offers
from coordinator_sim.broker.metadata.topic_ids import Topics
from coordinator_sim.broker.security.access import Access, EdgeResult, answered
from coordinator_sim.broker.security.authorizer import Operation, ResourceType
from coordinator_sim.coordinator.share.alter_offsets import refused_alteration
from coordinator_sim.coordinator.share.delete_offsets import refused_offset_deletion
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
)
from coordinator_sim.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

_LONGEST_MEMBER_ID: Final = 36
"""Characters of a UUID as people read it."""


def is_member_id(text: str | None) -> bool:
    """Whether requests of share groups may name their member so. Source: isMemberIdValid."""
    return text is not None and 0 < len(text) <= _LONGEST_MEMBER_ID


class ShareChecks:
    """The checks, and what becomes of the answers.

    Args:
        access: Authorizes requests.
        offers: Whether a protocol of groups is on now.
        topics: The existing topics.
    """

    __slots__ = ("_access", "_offers", "_topics")

    def __init__(self, access: Access, offers: Offers, topics: Topics) -> None:
        self._access = access
        self._offers = offers
        self._topics = topics

    def checks(self) -> dict[type[Request], Callable[[Any, RequestContext], EdgeResult]]:
        """The check of each request."""
        return {
            ShareGroupHeartbeatRequest: self._beat,
            AlterShareGroupOffsetsRequest: self._alter,
            DeleteShareGroupOffsetsRequest: self._delete,
        }

    def _group_error(
        self, operation: Operation, group_id: str, context: RequestContext
    ) -> ErrorCode | None:
        if not self._offers(GroupProtocol.SHARE):
            return ErrorCode.UNSUPPORTED_VERSION
        if not self._access.allows(context, operation, ResourceType.GROUP, group_id):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        return None

    def _may(self, context: RequestContext, operation: Operation, topic: str) -> bool:
        return self._access.allows(context, operation, ResourceType.TOPIC, topic)

    # -- heartbeats ------------------------------------------------------------------------

    def _beat(self, request: ShareGroupHeartbeatRequest, context: RequestContext) -> EdgeResult:
        """READ on the group, a member id, DESCRIBE on each topic that it names."""
        error = self._group_error(Operation.READ, request.group_id, context)
        if error is None and not is_member_id(request.member_id):
            error = ErrorCode.INVALID_REQUEST
        if error is None:
            names = request.subscribed_topic_names or ()
            if not all(self._may(context, Operation.DESCRIBE, name) for name in names):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if error is None:
            return EdgeResult(request)
        return answered(ShareGroupHeartbeatResponse(error_code=error))

    # -- offsets ---------------------------------------------------------------------------

    def _alter(self, request: AlterShareGroupOffsetsRequest, context: RequestContext) -> EdgeResult:
        """READ on the group and on each topic, which must exist; refused ones come first."""
        error = self._group_error(Operation.READ, request.group_id, context)
        if error is not None:
            return answered(refused_alteration(error))
        refused: list[AlterShareGroupOffsetsResponseTopic] = []
        allowed: list[AlterShareGroupOffsetsRequestTopic] = []
        for topic in request.topics:
            if not self._may(context, Operation.READ, topic.topic_name):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif not self._topics.exists(topic.topic_name):
                error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                allowed.append(topic)
                continue
            if topic.partitions:
                refused.append(self._unaltered(topic, error))
        if not refused:
            return EdgeResult(replace(request, topics=tuple(allowed)))
        finish = partial(_altered, tuple(refused))
        return EdgeResult(replace(request, topics=tuple(allowed)), finish)

    def _unaltered(
        self, topic: AlterShareGroupOffsetsRequestTopic, error: ErrorCode
    ) -> AlterShareGroupOffsetsResponseTopic:
        text = error_message(error)
        return AlterShareGroupOffsetsResponseTopic(
            topic.topic_name,
            self._topics.id_of(topic.topic_name) or ZERO_UUID,
            tuple(
                AlterShareGroupOffsetsResponsePartition(each.partition_index, error, text)
                for each in topic.partitions
            ),
        )

    def _delete(
        self, request: DeleteShareGroupOffsetsRequest, context: RequestContext
    ) -> EdgeResult:
        """DELETE on the group, READ on each topic; refused ones come first."""
        error = self._group_error(Operation.DELETE, request.group_id, context)
        if error is not None:
            return answered(refused_offset_deletion(error))
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        may = {
            each.topic_name: self._may(context, Operation.READ, each.topic_name)
            for each in request.topics
        }
        refused = tuple(
            DeleteShareGroupOffsetsResponseTopic(
                each.topic_name, error_code=denied, error_message=error_message(denied)
            )
            for each in request.topics
            if not may[each.topic_name]
        )
        allowed = tuple(each for each in request.topics if may[each.topic_name])
        if not refused:
            return EdgeResult(request)
        return EdgeResult(replace(request, topics=allowed), partial(_deleted, refused))


def _altered(
    refused: tuple[AlterShareGroupOffsetsResponseTopic, ...], response: Response | None
) -> Response:
    told = cast("AlterShareGroupOffsetsResponse", response)
    if told.error_code is not ErrorCode.NONE:
        return AlterShareGroupOffsetsResponse(
            error_code=told.error_code, error_message=told.error_message
        )
    return replace(told, responses=refused + told.responses)


def _deleted(
    refused: tuple[DeleteShareGroupOffsetsResponseTopic, ...], response: Response | None
) -> Response:
    told = cast("DeleteShareGroupOffsetsResponse", response)
    if told.error_code is not ErrorCode.NONE:
        return told
    return replace(told, responses=refused + told.responses)
