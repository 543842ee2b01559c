"""The edge around ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe.

Source: kafka 4.4, KafkaApis.handleConsumerGroupDescribe, handleShareGroupDescribe,
handleStreamsGroupDescribe, which differ in what a group's topics are and in one sentence.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from coordinator_sim.broker.groups.group_protocols import GroupProtocol, Offers
from coordinator_sim.broker.security.access import Access, EdgeResult, answered
from coordinator_sim.broker.security.authorizer import GROUP_OPERATIONS, Operation, ResourceType
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import (
    consumer_group_describe,
    share_group_describe,
    streams_group_describe,
)
from coordinator_sim.messages.requests import Request

_HIDDEN_TOPICS: Final = (
    "The group has described topic(s) that the client is not authorized to describe."
)
_HIDDEN_STREAMS_TOPICS: Final = (
    "The described group uses topics that the client is not authorized to describe."
)


class Description(NamedTuple):
    """How the groups of one protocol are described.

    Args:
        protocol: Of the groups.
        response: Type of the answer.
        group: Type of a group in it.
        topics: Topics of a described group, as often as it has them.
        hidden_topics: Error text of a group with topics that the sender may not describe.
    """

    protocol: GroupProtocol
    response: type[Any]
    group: type[Any]
    topics: Callable[[Any], Iterable[str]]
    hidden_topics: str = _HIDDEN_TOPICS


def _consumer_topics(group: consumer_group_describe.DescribedGroup) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            yield from (each.topic_name for each in assignment.topic_partitions)


def _share_topics(group: share_group_describe.DescribedGroup) -> Iterator[str]:
    for member in group.members:
        yield from (each.topic_name for each in member.assignment.topic_partitions)


def _streams_topics(group: streams_group_describe.DescribedGroup) -> Iterator[str]:
    if group.topology is not None:
        yield from topology_topics(group.topology.subtopologies or ())


def topology_topics(subtopologies: Iterable[Any]) -> Iterator[str]:
    """Topics that subtopologies of a heartbeat or a description name, as often as they do."""
    for part in subtopologies:
        yield from part.source_topics
        yield from part.repartition_sink_topics
        yield from (each.name for each in part.repartition_source_topics)
        yield from (each.name for each in part.state_changelog_topics)


DESCRIPTIONS: Final[dict[type[Request], Description]] = {
    consumer_group_describe.ConsumerGroupDescribeRequest: Description(
        GroupProtocol.CONSUMER,
        consumer_group_describe.ConsumerGroupDescribeResponse,
        consumer_group_describe.DescribedGroup,
        _consumer_topics,
    ),
    share_group_describe.ShareGroupDescribeRequest: Description(
        GroupProtocol.SHARE,
        share_group_describe.ShareGroupDescribeResponse,
        share_group_describe.DescribedGroup,
        _share_topics,
    ),
    streams_group_describe.StreamsGroupDescribeRequest: Description(
        GroupProtocol.STREAMS,
        streams_group_describe.StreamsGroupDescribeResponse,
        streams_group_describe.DescribedGroup,
        _streams_topics,
        _HIDDEN_STREAMS_TOPICS,
    ),
}


class DescribeChecks:
    """The checks of the three requests, and what becomes of the answers.

    Args:
        access: Authorizes requests.
        offers: Whether a protocol of groups is on now.
    """

    __slots__ = ("_access", "_offers")

    def __init__(self, access: Access, offers: Offers) -> None:
        self._access = access
        self._offers = offers

    def checks(self) -> dict[type[Request], Callable[[Any, RequestContext], EdgeResult]]:
        """The check of each request."""
        return {request: partial(self._check, kind) for request, kind in DESCRIPTIONS.items()}

    def _check(self, kind: Description, request: Any, context: RequestContext) -> EdgeResult:  # noqa: ANN401 - any of the three
        """Check the feature, then DESCRIBE on each group; refused groups come first in the answer.

        The request is one of the three, whose fields are equal.
        """
        if not self._offers(kind.protocol):
            error = ErrorCode.UNSUPPORTED_VERSION
            groups = tuple(
                kind.group(group_id=each, error_code=error) for each in request.group_ids
            )
            return answered(kind.response(groups=groups))
        allowed: list[str] = []
        refused: list[Any] = []
        for name in request.group_ids:
            if self._access.allows(context, Operation.DESCRIBE, ResourceType.GROUP, name):
                allowed.append(name)
            else:
                error = ErrorCode.GROUP_AUTHORIZATION_FAILED
                refused.append(kind.group(group_id=name, error_code=error))
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
        allows = self._access.allows
        for topic in dict.fromkeys(kind.topics(group)):
            if not allows(context, Operation.DESCRIBE, ResourceType.TOPIC, topic):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                text = kind.hidden_topics
                return kind.group(group_id=group.group_id, error_code=error, error_message=text)
        if not wants_operations or group.error_code is not ErrorCode.NONE:
            return group
        bits = self._access.bits(context, GROUP_OPERATIONS, ResourceType.GROUP, group.group_id)
        return replace(group, authorized_operations=bits)
