"""OffsetCommit, TxnOffsetCommit and OffsetDelete before and after the coordinator.

What names no topic or no partition, or what its sender may not touch, is refused here, partition
by partition; the coordinator sees the rest, and its outcomes follow the refusals topic by topic.

Source: kafka trunk, KafkaApis.handleOffsetCommitRequest, handleTxnOffsetCommitRequest and
handleOffsetDeleteRequest; the builders of OffsetCommitResponse, TxnOffsetCommitResponse and
OffsetDeleteResponse.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final, cast

from msgspec.structs import replace

from coordinator_sim.broker.groups.mapped_offsets import answered_commit, answered_delete, requested
from coordinator_sim.broker.metadata.image import Topics
from coordinator_sim.broker.metadata.zookeeper_offsets import ZooKeeperOffsets
from coordinator_sim.broker.security.access import Access, EdgeResult, answered
from coordinator_sim.broker.security.authorizer import Operation, ResourceType
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.orders.offset_maps import OffsetMaps
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordinator_sim.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

COMMIT_TOPIC_IDS: Final = 10
"""OffsetCommit and OffsetFetch name topics by id from this version on."""
_TXN_TOPIC_IDS: Final = 6
_LOADING_UNDERSTOOD: Final = 2
# Members of enumerations under names of their own, for the path of every commit.
_READ: Final = Operation.READ
_GROUP: Final = ResourceType.GROUP
_TOPIC: Final = ResourceType.TOPIC

Refused = list[OffsetCommitResponseTopic]
"""What is not handed to the coordinator, in the order of the request; a topic may stand twice."""


class OffsetApis:
    """The edge of the APIs that change offsets.

    Args:
        topics: What exists.
        access: Whom to ask.
        old_offsets: Takes those of version 0.
    """

    __slots__ = ("_access", "_maps", "_old_offsets", "_profile", "_rearranges", "_topics")

    def __init__(
        self, topics: Topics, access: Access, profile: Profile, old_offsets: ZooKeeperOffsets
    ) -> None:
        self._topics = topics
        self._access = access
        self._profile = profile
        self._maps = profile.offset_maps
        self._rearranges = self._maps.rearranges
        self._old_offsets = old_offsets

    # -- the APIs --------------------------------------------------------------------------

    def commit(self, request: OffsetCommitRequest, context: RequestContext) -> EdgeResult:
        """OffsetCommit. There is no error of the whole: each partition has the group's."""
        error = self._commit_error(request, context)
        if error is not NO_ERROR:
            return answered(OffsetCommitResponse(topics=_all_refused(request.topics, error)))
        by_id = context.api_version >= COMMIT_TOPIC_IDS
        kept, refused = self._check(request.topics, context, by_id=by_id)
        maps = self._maps
        if kept and self._rearranges:
            kept = requested(maps, kept, request.topics)
        if kept and context.api_version == 0:
            return answered(self._commit_of_old(request, kept, refused))
        passed = replace(request, topics=kept) if kept else None
        if passed is not None and not refused and not self._rearranges:
            return EdgeResult(passed)
        return EdgeResult(passed, partial(_merge_commit, maps, refused, by_id))

    def _commit_of_old(
        self,
        request: OffsetCommitRequest,
        topics: tuple[OffsetCommitRequestTopic, ...],
        refused: Refused,
    ) -> Response:
        """Version 0: ZooKeeper keeps the offsets; without one the request is refused whole.

        Args:
            request: As it came.
            topics: What is left of it.
            refused: The rest.
        """
        profile = self._profile
        if not profile.uses_zookeeper:
            error = ErrorCode.UNSUPPORTED_VERSION
            return OffsetCommitResponse(topics=_all_refused(request.topics, error))
        kept = self._old_offsets.commit(request.group_id, topics, profile)
        return _merge_commit(profile.offset_maps, refused, False, OffsetCommitResponse(topics=kept))  # noqa: FBT003 - as the partials name it

    def txn_commit(self, request: TxnOffsetCommitRequest, context: RequestContext) -> EdgeResult:
        """TxnOffsetCommit, which asks for the right to the transactional id too."""
        error = self._txn_commit_error(request, context)
        if error is not NO_ERROR:
            return answered(TxnOffsetCommitResponse(topics=_all_refused(request.topics, error)))
        by_id = context.api_version >= _TXN_TOPIC_IDS
        kept, refused = self._check(request.topics, context, by_id=by_id)
        passed = replace(request, topics=kept) if kept else None
        knows_loading = context.api_version >= _LOADING_UNDERSTOOD
        return EdgeResult(
            passed,
            partial(_merge_txn_commit, self._maps, refused, by_id, knows_loading),
        )

    def delete(self, request: OffsetDeleteRequest, context: RequestContext) -> EdgeResult:
        """OffsetDelete. The coordinator is asked even if no partition is left."""
        group_id = request.group_id
        if not self._access.allows(context, Operation.DELETE, _GROUP, group_id):
            error = ErrorCode.GROUP_AUTHORIZATION_FAILED
            return answered(OffsetDeleteResponse(error_code=error))
        kept: list[OffsetDeleteRequestTopic] = []
        refused: list[OffsetDeleteResponseTopic] = []
        for topic in request.topics:
            good, bad = self._part_deletions(topic, context)
            if bad:
                refused.append(OffsetDeleteResponseTopic(topic.name, bad))
            if good:
                kept.append(OffsetDeleteRequestTopic(topic.name, good))
        return EdgeResult(
            replace(request, topics=tuple(kept)),
            partial(_merge_delete, self._maps, refused),
        )

    # -- checks ----------------------------------------------------------------------------

    def _commit_error(self, request: OffsetCommitRequest, context: RequestContext) -> ErrorCode:
        if not self._access.allows(context, _READ, _GROUP, request.group_id):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        if request.group_instance_id is not None and not self._profile.static_membership:
            return ErrorCode.UNSUPPORTED_VERSION
        return NO_ERROR

    def _txn_commit_error(
        self, request: TxnOffsetCommitRequest, context: RequestContext
    ) -> ErrorCode:
        allows = self._access.allows
        transactional_id = request.transactional_id
        if not allows(context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
            return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if not allows(context, _READ, _GROUP, request.group_id):
            return ErrorCode.GROUP_AUTHORIZATION_FAILED
        return NO_ERROR

    def _check(
        self, topics: Iterable[OffsetCommitRequestTopic], context: RequestContext, *, by_id: bool
    ) -> tuple[tuple[OffsetCommitRequestTopic, ...], Refused]:
        """Part the topics into what the coordinator is to see and what is refused."""
        kept: list[OffsetCommitRequestTopic] = []
        refused: Refused = []
        checks_partitions = self._profile.commit_checks_partitions
        for asked in topics:
            topic = self._named(asked) if by_id else asked
            name, partitions = topic.name, topic.partitions
            is_named = bool(name) or not by_id
            error = self._topic_error(name, context) if is_named else ErrorCode.UNKNOWN_TOPIC_ID
            if error is not NO_ERROR:
                refused.append(_refusal(topic, error))
                continue
            found = self._topics.get(name)
            if found is not None and checks_partitions:
                known = range(found.partition_count)
                numbers = [p.partition_index for p in partitions]
                if numbers and not (min(numbers) >= 0 and max(numbers) < len(known)):
                    missing = tuple(p for p in partitions if p.partition_index not in known)
                    bad = replace(topic, partitions=missing)
                    refused.append(_refusal(bad, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                    partitions = tuple(p for p in partitions if p.partition_index in known)
            if partitions:
                topic_id = topic.topic_id if found is None else found.topic_id
                kept.append(OffsetCommitRequestTopic(name, topic_id, partitions))
        return tuple(kept), refused

    def _named(self, topic: OffsetCommitRequestTopic) -> OffsetCommitRequestTopic:
        """The topic with the name that its id has, if any."""
        name = self._topics.name_of(topic.topic_id)
        return topic if name is None else replace(topic, name=name)

    def _part_deletions(
        self, topic: OffsetDeleteRequestTopic, context: RequestContext
    ) -> tuple[tuple[OffsetDeleteRequestPartition, ...], tuple[OffsetDeleteResponsePartition, ...]]:
        """The partitions of a topic that exist, and the outcomes of the others."""
        error = self._topic_error(topic.name, context)
        if error is not NO_ERROR:
            return (), tuple(
                OffsetDeleteResponsePartition(each.partition_index, error)
                for each in topic.partitions
            )
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        known = self._partitions(topic.name)
        exists = [known is None or each.partition_index in known for each in topic.partitions]
        good = tuple(p for p, known in zip(topic.partitions, exists, strict=True) if known)
        bad = (p for p, known in zip(topic.partitions, exists, strict=True) if not known)
        return good, tuple(
            OffsetDeleteResponsePartition(each.partition_index, unknown) for each in bad
        )

    def _topic_error(self, name: str, context: RequestContext) -> ErrorCode:
        """Why no partition of a topic may be touched."""
        allows = self._access.allows
        exists = self._topics.exists(name)
        if self._profile.conceals_topics:
            # Source: kafka 0.10.2, KafkaApis.handleOffsetCommitRequest.
            exists = exists and allows(context, Operation.DESCRIBE, _TOPIC, name)
            if not exists:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not allows(context, _READ, _TOPIC, name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return NO_ERROR if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _partitions(self, name: str) -> range | None:
        """The partitions of a topic that exists; None where nobody looks at their numbers."""
        return self._topics.partitions(name) if self._profile.commit_checks_partitions else None


# -- refusals and outcomes -----------------------------------------------------------------


def _all_refused(
    topics: Iterable[OffsetCommitRequestTopic], error: ErrorCode
) -> tuple[OffsetCommitResponseTopic, ...]:
    """The same error for every partition of a request."""
    return tuple(_refusal(topic, error) for topic in topics)


def _refusal(topic: OffsetCommitRequestTopic, error: ErrorCode) -> OffsetCommitResponseTopic:
    outcomes = tuple(
        OffsetCommitResponsePartition(p.partition_index, error) for p in topic.partitions
    )
    return OffsetCommitResponseTopic(topic.name, partitions=outcomes, topic_id=topic.topic_id)


def _key(name: str, topic_id: bytes, *, by_id: bool) -> str | bytes:
    return topic_id if by_id else name


def _merge(
    refused: Refused, topics: Iterable[OffsetCommitResponseTopic], *, by_id: bool
) -> tuple[OffsetCommitResponseTopic, ...]:
    """The refusals, then the coordinator's outcomes, topic by topic."""
    if not refused:
        return tuple(topics)
    found: dict[str | bytes, list[OffsetCommitResponseTopic]] = {}
    for topic in (*refused, *topics):
        found.setdefault(_key(topic.name, topic.topic_id, by_id=by_id), []).append(topic)
    return tuple(
        replace(same[0], partitions=tuple(each for topic in same for each in topic.partitions))
        for same in found.values()
    )


def _merge_commit(
    maps: OffsetMaps, refused: Refused, by_id: bool, response: Response | None
) -> Response:
    topics = () if response is None else cast("OffsetCommitResponse", response).topics
    if maps.rearranges:
        topics = answered_commit(maps, refused, topics, transactional=False)
        return OffsetCommitResponse(topics=topics)
    return OffsetCommitResponse(topics=_merge(refused, topics, by_id=by_id))


def _merge_txn_commit(
    maps: OffsetMaps,
    refused: Refused,
    by_id: bool,
    knows_loading: bool,
    response: Response | None,
) -> Response:
    """The outcomes; producers before version 2 are not told that a load is under way.

    Source: KafkaApis.handleTxnOffsetCommitRequest; KAFKA-7296.
    """
    topics = () if response is None else cast("TxnOffsetCommitResponse", response).topics
    if maps.rearranges:
        merged = answered_commit(maps, refused, topics, transactional=True)
    else:
        merged = _merge(refused, topics, by_id=by_id)
    if not knows_loading:
        merged = tuple(
            replace(topic, partitions=tuple(_without_loading(p) for p in topic.partitions))
            for topic in merged
        )
    return TxnOffsetCommitResponse(topics=merged)


def _without_loading(outcome: OffsetCommitResponsePartition) -> OffsetCommitResponsePartition:
    if outcome.error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        return OffsetCommitResponsePartition(
            outcome.partition_index, ErrorCode.COORDINATOR_NOT_AVAILABLE
        )
    return outcome


def _merge_delete(
    maps: OffsetMaps, refused: list[OffsetDeleteResponseTopic], response: Response | None
) -> Response:
    """The refusals, then the outcomes; an error of the group takes the place of everything."""
    answer = cast("OffsetDeleteResponse", response)
    if answer.error_code is not NO_ERROR:
        return answer
    if maps.rearranges:
        return OffsetDeleteResponse(topics=answered_delete((*refused, *answer.topics)))
    if not refused:
        return answer
    found: dict[str, list[OffsetDeleteResponsePartition]] = {}
    for topic in (*refused, *answer.topics):
        found.setdefault(topic.name, []).extend(topic.partitions)
    return OffsetDeleteResponse(
        topics=tuple(OffsetDeleteResponseTopic(name, tuple(told)) for name, told in found.items())
    )
