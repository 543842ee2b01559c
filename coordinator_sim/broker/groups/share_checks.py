"""The checks before requests of share groups: the release knows such groups, the caller may ask.

Source: kafka 4.4, KafkaApis.handleShareGroupHeartbeat, handleShareGroupDescribe,
handleAlterShareGroupOffsetsRequest and handleDeleteShareGroupOffsetsRequest, which check the
feature before authorization.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from coordinator_sim.broker.security.access import Access, EdgeResult, answered
from coordinator_sim.broker.security.authorizer import Operation, ResourceType
from coordinator_sim.coordinator.share.alter_offsets import refused_alteration
from coordinator_sim.coordinator.share.delete_offsets import refused_offset_deletion
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from coordinator_sim.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from coordinator_sim.messages.requests import Request, Response
from coordinator_sim.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


def share_checks(
    profile: Profile, access: Access
) -> dict[type[Request], Callable[[Any, RequestContext], EdgeResult]]:
    """The check of each request."""
    return {
        ShareGroupHeartbeatRequest: partial(_beat, profile, access),
        ShareGroupDescribeRequest: partial(_describe, profile, access),
        AlterShareGroupOffsetsRequest: partial(_alter, profile, access),
        DeleteShareGroupOffsetsRequest: partial(_delete, profile, access),
    }


def _beat(
    profile: Profile,
    access: Access,
    request: ShareGroupHeartbeatRequest,
    context: RequestContext,
) -> EdgeResult:
    """READ on the group, DESCRIBE on each topic that it names."""
    if not profile.share_groups:
        return _refused(ErrorCode.UNSUPPORTED_VERSION)
    if not access.allows(context, Operation.READ, ResourceType.GROUP, request.group_id):
        return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    for name in request.subscribed_topic_names or ():
        if not access.allows(context, Operation.DESCRIBE, ResourceType.TOPIC, name):
            return _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return EdgeResult(request)


def _refused(error: ErrorCode) -> EdgeResult:
    return answered(ShareGroupHeartbeatResponse(error_code=error))


def _alter(
    profile: Profile,
    access: Access,
    request: AlterShareGroupOffsetsRequest,
    context: RequestContext,
) -> EdgeResult:
    """READ on the group. DEVIATION: Kafka looks at each topic as well, here nobody does."""
    error = _group_error(profile, access, Operation.READ, request.group_id, context)
    return EdgeResult(request) if error is None else answered(refused_alteration(error))


def _delete(
    profile: Profile,
    access: Access,
    request: DeleteShareGroupOffsetsRequest,
    context: RequestContext,
) -> EdgeResult:
    """DELETE on the group. DEVIATION: Kafka looks at each topic as well, here nobody does."""
    error = _group_error(profile, access, Operation.DELETE, request.group_id, context)
    return EdgeResult(request) if error is None else answered(refused_offset_deletion(error))


def _group_error(
    profile: Profile,
    access: Access,
    operation: Operation,
    group_id: str,
    context: RequestContext,
) -> ErrorCode | None:
    if not profile.share_groups:
        return ErrorCode.UNSUPPORTED_VERSION
    if not access.allows(context, operation, ResourceType.GROUP, group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    return None


def _describe(
    profile: Profile,
    access: Access,
    request: ShareGroupDescribeRequest,
    context: RequestContext,
) -> EdgeResult:
    """DESCRIBE on each group; those without it come first in the answer."""
    refused: list[DescribedGroup] = []
    allowed: list[str] = []
    for name in request.group_ids:
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        if not profile.share_groups:
            error = ErrorCode.UNSUPPORTED_VERSION
        elif access.allows(context, Operation.DESCRIBE, ResourceType.GROUP, name):
            allowed.append(name)
            continue
        refused.append(DescribedGroup(group_id=name, error_code=error))
    if not refused:
        return EdgeResult(request)
    finish = partial(_with_refused, tuple(refused))
    if not allowed:
        return answered(ShareGroupDescribeResponse(groups=tuple(refused)))
    return EdgeResult(replace(request, group_ids=tuple(allowed)), finish)


def _with_refused(refused: tuple[DescribedGroup, ...], response: Response | None) -> Response:
    described = cast("ShareGroupDescribeResponse", response).groups
    return ShareGroupDescribeResponse(groups=refused + described)
