"""Converts responses of group APIs to and from the conventions of one version.

A coordinator answers in one form for all versions. `fitted` turns it into the response that a
broker sends in one version, as the constructors of Kafka's responses do; `understood` adds what a
client takes from its request, where an old version does not repeat it.

Source: kafka trunk, clients/.../common/requests/{JoinGroup,LeaveGroup,OffsetFetch,
FindCoordinator}Response.java.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.describe_groups import DescribeGroupsResponse
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupResponse
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

_NULLABLE_PROTOCOL: Final = 7
"""First version of JoinGroup whose answer may have no protocol name."""
_BATCHED_LEAVE: Final = 3
_BATCHED_FETCH: Final = 8
_GROUP_ERROR_IN_FETCH: Final = 2
_BATCHED_FIND: Final = 4
_FIND_SAYS_MORE: Final = 1
"""First version of FindCoordinator with a text beside the error."""
_DESCRIPTION_ERRORS: Final = 6
"""First version of DescribeGroups that has a text beside the error."""

_Change = Callable[[Any, int, Any], Any]
"""Takes a response, its version and the request; gives the response as it is to be."""


# -- as a broker sends it ------------------------------------------------------------------


def _fitted_join(response: JoinGroupResponse, version: int, _request: object) -> JoinGroupResponse:
    """No protocol is an empty name before version 7 and null from it on."""
    name = response.protocol_name or ("" if version < _NULLABLE_PROTOCOL else None)
    return response if name == response.protocol_name else replace(response, protocol_name=name)


def _fitted_leave(
    response: LeaveGroupResponse, version: int, _request: object
) -> LeaveGroupResponse:
    """Before version 3 the member's error is the answer's."""
    if version >= _BATCHED_LEAVE:
        return response
    error = response.error_code
    if error is ErrorCode.NONE and response.members:
        error = response.members[0].error_code
    return LeaveGroupResponse(error_code=error)


def _fitted_fetch(
    response: OffsetFetchResponse, version: int, request: OffsetFetchRequest | None
) -> OffsetFetchResponse:
    """Before version 2 a group's error stands at each partition that was asked for.

    Source: OffsetFetchResponse.groupError.
    """
    if version >= _GROUP_ERROR_IN_FETCH:
        return response
    (group,) = response.groups
    topics = group.topics
    if group.error_code is not ErrorCode.NONE and not topics and request is not None:
        topics = tuple(
            OffsetFetchResponseTopics(
                topic.name,
                partitions=tuple(
                    OffsetFetchResponsePartitions(
                        index, committed_offset=-1, error_code=group.error_code
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in request.groups[0].topics or ()
        )
    return OffsetFetchResponse(groups=(OffsetFetchResponseGroup(group.group_id, topics),))


def _usual_message(error: ErrorCode, version: int) -> str:
    """Error message of a response: Kafka's text up to version 3, empty from 4.

    Source: kafka 3.9, KafkaApis.handleFindCoordinatorRequestLessThanV4 and ...V4AndAbove.
    """
    return "" if version >= _BATCHED_FIND else error_message(error)


def _fitted_find(
    response: FindCoordinatorResponse, version: int, _request: object
) -> FindCoordinatorResponse:
    """An error without a text has that of its version."""
    return replace(
        response,
        coordinators=tuple(
            replace(each, error_message=_usual_message(each.error_code, version))
            if each.error_message is None
            else each
            for each in response.coordinators
        ),
    )


def _fitted_descriptions(
    response: DescribeGroupsResponse, version: int, _request: object
) -> DescribeGroupsResponse:
    if version >= _DESCRIPTION_ERRORS:
        return response
    groups = tuple(replace(group, error_message=None) for group in response.groups)
    return replace(response, groups=groups)


FITTED: Final[dict[type, _Change]] = {
    JoinGroupResponse: _fitted_join,
    LeaveGroupResponse: _fitted_leave,
    OffsetFetchResponse: _fitted_fetch,
    FindCoordinatorResponse: _fitted_find,
    DescribeGroupsResponse: _fitted_descriptions,
}
"""How an answer is fitted to a version. Other answers are the same in every version."""


def fitted(response: Any, version: int, request: Any = None) -> Any:  # noqa: ANN401 - any message
    """An answer as a broker sends it in one version.

    The request names the partitions that OffsetFetch 0 and 1 repeat with a group's error.
    """
    change = FITTED.get(type(response))
    return response if change is None else change(response, version, request)


# -- as a client hears it ------------------------------------------------------------------


def _understood_find(
    response: FindCoordinatorResponse, version: int, request: FindCoordinatorRequest | None
) -> FindCoordinatorResponse:
    """Take the key from the request before version 4, and drop an error's default message."""

    def understood_one(each: Coordinator) -> Coordinator:
        key = each.key
        if version < _BATCHED_FIND and request is not None:
            key = request.coordinator_keys[0]
        said = each.error_message if version >= _FIND_SAYS_MORE else None
        usual = _usual_message(each.error_code, version)
        return replace(each, key=key, error_message=None if said == usual else said)

    coordinators = tuple(understood_one(each) for each in response.coordinators)
    return replace(response, coordinators=coordinators)


def _understood_fetch(
    response: OffsetFetchResponse, version: int, request: OffsetFetchRequest | None
) -> OffsetFetchResponse:
    """Before version 8 the group is that of the request."""
    if version >= _BATCHED_FETCH or request is None:
        return response
    group = replace(response.groups[0], group_id=request.groups[0].group_id)
    return replace(response, groups=(group,))


def _understood_metadata(
    response: MetadataResponse, _version: int, _request: object
) -> MetadataResponse:
    """Partitions are in ascending order; an error that Kafka 4.4 does not have is unknown."""
    return replace(
        response,
        topics=tuple(
            replace(
                topic,
                partitions=tuple(sorted(topic.partitions, key=lambda each: each.partition_index)),
                error_code=ErrorCode.__members__.get(
                    topic.error_code.name, ErrorCode.UNKNOWN_SERVER_ERROR
                ),
            )
            for topic in response.topics
        ),
    )


_UNDERSTOOD: Final[dict[type, _Change]] = {
    MetadataResponse: _understood_metadata,
    FindCoordinatorResponse: _understood_find,
    OffsetFetchResponse: _understood_fetch,
}


def understood(response: Any, version: int, request: Any = None) -> Any:  # noqa: ANN401
    """An answer of one version as a client understands it.

    The request names the group or key that old versions do not repeat.
    """
    change = _UNDERSTOOD.get(type(response))
    return response if change is None else change(response, version, request)
