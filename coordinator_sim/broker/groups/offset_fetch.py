"""OffsetFetch before and after the coordinator: authorization of groups and topics.

Source: kafka trunk, KafkaApis.handleOffsetFetchRequestFromCoordinator, fetchOffsetsForGroup and
fetchAllOffsetsForGroup.
"""

from functools import partial
from typing import Final, cast

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.broker.groups.mapped_offsets import answered_fetch, refused_fetch
from coordinator_sim.broker.groups.offset_apis import COMMIT_TOPIC_IDS
from coordinator_sim.broker.metadata.image import Topics
from coordinator_sim.broker.metadata.zookeeper_offsets import ZooKeeperOffsets
from coordinator_sim.broker.security.access import Access, EdgeResult, answered
from coordinator_sim.broker.security.authorizer import Operation, ResourceType
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.offset_maps import OffsetMaps, asked_order
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.schema import ZERO_UUID

_GROUP_ERROR: Final = 2
"""From this version on, OffsetFetch has a group's error once; earlier ones on each partition."""


class CheckedGroup(Struct, frozen=True):
    """One checked group of a fetch.

    Args:
        asked: The group for the coordinator; None when it is refused.
        refused: The refusal of the group, or of some of its topics.
    """

    asked: OffsetFetchRequestGroup | None
    refused: OffsetFetchResponseGroup


class FetchApi:
    """The edge of OffsetFetch.

    Args:
        topics: The existing topics.
        access: Authorizes requests.
        old_offsets: Offsets of version 0 commits.
    """

    __slots__ = ("_access", "_old_offsets", "_profile", "_rearranges", "_topics")

    def __init__(
        self, topics: Topics, access: Access, profile: Profile, old_offsets: ZooKeeperOffsets
    ) -> None:
        self._topics = topics
        self._access = access
        self._profile = profile
        self._rearranges = profile.offset_maps.rearranges
        self._old_offsets = old_offsets

    def fetch(self, request: OffsetFetchRequest, context: RequestContext) -> EdgeResult:
        """Check a request; groups fail one by one, and only version 0 checks that topics exist."""
        if context.api_version == 0:
            group = self._fetch_of_old(request.groups[0], context)
            return answered(OffsetFetchResponse(groups=(group,)))
        by_id = context.api_version >= COMMIT_TOPIC_IDS
        if self._access.is_open and not by_id:
            if not self._rearranges:
                return EdgeResult(request)
            maps = self._profile.offset_maps
            return EdgeResult(request, partial(_rearranged, maps, request, context.api_version))
        checked = [self._check_group(group, context, by_id=by_id) for group in request.groups]
        asked = tuple(group.asked for group in checked if group.asked is not None)
        passed = replace(request, groups=asked) if asked else None
        return EdgeResult(passed, partial(self._finish, checked, context))

    def _fetch_of_old(
        self, group: OffsetFetchRequestGroup, context: RequestContext
    ) -> OffsetFetchResponseGroup:
        """Answer version 0, whose offsets are in ZooKeeper; refused without ZooKeeper."""
        profile, maps, group_id = self._profile, self._profile.offset_maps, group.group_id
        error = self._group_error(group_id, context)
        if error is ErrorCode.NONE and not profile.uses_zookeeper:
            error = ErrorCode.UNSUPPORTED_VERSION
        if error is not ErrorCode.NONE:
            refused = OffsetFetchResponseGroup(group_id=group_id, error_code=error)
            return refused_fetch(maps, refused, group.topics)
        places: dict[TopicPartition, ErrorCode] = {}
        denied: dict[TopicPartition, ErrorCode] = {}
        for topic in group.topics or ():
            error = self._topic_error(topic.name, context)
            of_topic = dict.fromkeys(
                (TopicPartition(topic.name, p) for p in topic.partition_indexes), error
            )
            (places if error is ErrorCode.NONE else denied).update(of_topic)
        places |= denied
        ordered = asked_order(maps, tuple(places), transactional=False)
        found = tuple(
            OffsetFetchResponseTopics(
                place.topic, partitions=(self._old_offset(group_id, place, places[place]),)
            )
            for place in ordered
        )
        return answered_fetch(maps, OffsetFetchResponseGroup(group_id=group_id, topics=found))

    def _old_offset(
        self, group_id: str, place: TopicPartition, error: ErrorCode
    ) -> OffsetFetchResponsePartitions:
        """The offset of a partition in ZooKeeper, or the error."""
        if error is ErrorCode.NONE and not self._exists(place):
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if error is not ErrorCode.NONE:
            return OffsetFetchResponsePartitions(
                place.partition, error_code=error, committed_offset=-1
            )
        return self._old_offsets.fetch(group_id, place, self._profile)

    def _exists(self, place: TopicPartition) -> bool:
        if not self._topics.exists(place.topic):
            return False
        known = self._topics.partitions(place.topic)
        return (
            not self._profile.commit_checks_partitions or known is None or place.partition in known
        )

    def _group_error(self, group_id: str, context: RequestContext) -> ErrorCode:
        operation = Operation.READ if self._profile.fetch_needs_read else Operation.DESCRIBE
        if self._access.allows(context, operation, ResourceType.GROUP, group_id):
            return ErrorCode.NONE
        return ErrorCode.GROUP_AUTHORIZATION_FAILED

    def _check_group(
        self, group: OffsetFetchRequestGroup, context: RequestContext, *, by_id: bool
    ) -> CheckedGroup:
        group_id = group.group_id
        error = self._group_error(group_id, context)
        if error is not ErrorCode.NONE:
            return CheckedGroup(None, OffsetFetchResponseGroup(group_id=group_id, error_code=error))
        if group.topics is None:
            return CheckedGroup(group, OffsetFetchResponseGroup(group_id=group_id))
        kept: list[OffsetFetchRequestTopics] = []
        refused: list[OffsetFetchResponseTopics] = []
        for asked in group.topics:
            topic = self._named(asked) if by_id else asked
            error = ErrorCode.UNKNOWN_TOPIC_ID
            if topic.name or not by_id:
                error = self._topic_error(topic.name, context)
            if error is ErrorCode.NONE:
                kept.append(topic)
            else:
                refused.append(_refusal(topic, error))
        asked_group = replace(group, topics=tuple(kept))
        return CheckedGroup(
            asked_group, OffsetFetchResponseGroup(group_id=group_id, topics=tuple(refused))
        )

    def _named(self, topic: OffsetFetchRequestTopics) -> OffsetFetchRequestTopics:
        name = self._topics.name_of(topic.topic_id)
        return topic if name is None else replace(topic, name=name)

    def _topic_error(self, name: str, context: RequestContext) -> ErrorCode:
        if self._access.allows(context, Operation.DESCRIBE, ResourceType.TOPIC, name):
            return ErrorCode.NONE
        if self._profile.conceals_topics:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED

    # -- after the coordinator -------------------------------------------------------------

    def _finish(
        self, checked: list[CheckedGroup], context: RequestContext, response: Response | None
    ) -> Response:
        """Complete the response: all groups in request order."""
        found = iter(() if response is None else cast("OffsetFetchResponse", response).groups)
        groups = tuple(
            group.refused
            if group.asked is None
            else self._finish_group(group.asked, group.refused, next(found), context)
            for group in checked
        )
        answer = OffsetFetchResponse(groups=groups)
        maps = self._profile.offset_maps
        if not maps.rearranges:
            return answer
        return _rearranged(maps, None, context.api_version, answer)

    def _finish_group(
        self,
        asked: OffsetFetchRequestGroup,
        refused: OffsetFetchResponseGroup,
        found: OffsetFetchResponseGroup,
        context: RequestContext,
    ) -> OffsetFetchResponseGroup:
        if found.error_code is not ErrorCode.NONE:
            return found
        if asked.topics is None:
            return replace(found, topics=self._visible(found.topics, context))
        if context.api_version < COMMIT_TOPIC_IDS:
            # Scala's coordinator answers a topic that is named twice once.
            return replace(found, topics=found.topics + refused.topics)
        topics = tuple(
            replace(topic, topic_id=wanted.topic_id)
            for topic, wanted in zip(found.topics, asked.topics, strict=True)
        )
        return replace(found, topics=topics + refused.topics)

    def _visible(
        self, topics: tuple[OffsetFetchResponseTopics, ...], context: RequestContext
    ) -> tuple[OffsetFetchResponseTopics, ...]:
        """The topics that the sender may DESCRIBE, with ids if the version needs them."""
        by_id = context.api_version >= COMMIT_TOPIC_IDS
        shown: list[OffsetFetchResponseTopics] = []
        for topic in topics:
            if self._topic_error(topic.name, context) is not ErrorCode.NONE:
                continue
            topic_id = topic.topic_id
            if topic_id == ZERO_UUID:
                topic_id = self._topics.id_of(topic.name) or ZERO_UUID
            # A topic without an id cannot be named, so it is left out.
            if topic_id != ZERO_UUID or not by_id:
                shown.append(replace(topic, topic_id=topic_id))
        return tuple(shown)


def _rearranged(
    maps: OffsetMaps, request: OffsetFetchRequest | None, version: int, response: Response | None
) -> Response:
    """The response with each group's offsets in the order of Kafka's hash maps."""
    groups = cast("OffsetFetchResponse", response).groups
    if request and version < _GROUP_ERROR and groups[0].error_code is not ErrorCode.NONE:
        refused = refused_fetch(maps, groups[0], request.groups[0].topics)
        return OffsetFetchResponse(groups=(refused,))
    return OffsetFetchResponse(groups=tuple(answered_fetch(maps, group) for group in groups))


def _refusal(topic: OffsetFetchRequestTopics, error: ErrorCode) -> OffsetFetchResponseTopics:
    outcomes = tuple(
        OffsetFetchResponsePartitions(index, error_code=error, committed_offset=-1)
        for index in topic.partition_indexes
    )
    return OffsetFetchResponseTopics(topic.name, partitions=outcomes, topic_id=topic.topic_id)
