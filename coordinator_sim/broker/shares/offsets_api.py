"""DescribeShareGroupOffsets: where share groups are in their partitions, and how far they lag.

Source: kafka 4.3.1, KafkaApis.handleDescribeShareGroupOffsetsRequest and what it calls;
GroupCoordinatorService.describeShareGroupOffsets, describeShareGroupAllOffsets,
readShareGroupStateSummary and computeShareGroupLagAndBuildResponse; DefaultStatePersister
.readSummary (its maps give the order of the answer).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.groups.group_coordinators import GroupCoordinators
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.broker.scheduler import Jobs
from coordinator_sim.broker.security.access import Access
from coordinator_sim.broker.security.authorizer import Operation, ResourceType
from coordinator_sim.broker.shares.persister import (
    Persister,
    ReadState,
    SharePartitionKey,
    StateSummary,
)
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import (
    computed_hash_order,
    integer_hash,
    uuid_hash,
)
from coordinator_sim.kafka.states import GroupProtocol
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from coordinator_sim.messages.schema import ZERO_UUID

_UNKNOWN: Final = -1
"""A start offset, or a lag, of which nothing is known."""
_ANY_EPOCH: Final = 0
"""The leader epoch of a question that no leader asks."""

Wanted = list[tuple[str, bytes, tuple[int, ...]]]
"""Topics by name and id, with the partitions that are asked for."""


class ShareOffsetsApi:
    """Answers DescribeShareGroupOffsets.

    Args:
        groups: Know which partitions a group has.
        hosted: The partitions that the brokers host.
        access: Authorizes requests.
        persister: Knows where a group is.
        jobs: Runs long work in steps, and takes the answers.
    """

    def __init__(
        self,
        groups: GroupCoordinators,
        hosted: ReplicaManager,
        access: Access,
        *,
        persister: Persister,
        jobs: Jobs,
    ) -> None:
        self._groups = groups
        self._hosted = hosted
        self._access = access
        self.persister = persister
        self._jobs = jobs

    def handlers(self) -> Handlers:
        """The handler of DescribeShareGroupOffsets."""
        return {ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: self._jobs.handler(self._describe)}

    def _describe(self, call: Call[DescribeShareGroupOffsetsRequest]) -> Steps[None]:
        groups = call.request.groups
        told: dict[int, DescribeShareGroupOffsetsResponseGroup] = {}

        def tell(index: int, group: DescribeShareGroupOffsetsResponseGroup) -> None:
            told[index] = group
            if len(told) == len(groups):
                ordered = tuple(told[each] for each in range(len(groups)))
                response = DescribeShareGroupOffsetsResponse(groups=ordered)
                self._jobs.answers.answer(call.context.token, response)

        for index, group in enumerate(groups):
            yield from self._describe_group(call, group, partial(tell, index))
            yield _A_PARTITION
        if not groups:
            self._jobs.answers.answer(call.context.token, DescribeShareGroupOffsetsResponse())

    def _describe_group(
        self,
        call: Call[DescribeShareGroupOffsetsRequest],
        group: DescribeShareGroupOffsetsRequestGroup,
        then: Callable[[DescribeShareGroupOffsetsResponseGroup], None],
    ) -> Steps[None]:
        name = group.group_id
        context = call.context
        if GroupProtocol.SHARE not in self._groups.offers:
            then(_refused(name, ErrorCode.UNSUPPORTED_VERSION))
        elif not self._access.allows(context, Operation.DESCRIBE, ResourceType.GROUP, name):
            then(_refused(name, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        elif group.topics is None:
            found = self._all_of(call.broker_id, name)
            if isinstance(found, ErrorCode):
                then(_refused(name, found, error_message(found)))
                return
            visible = [each for each in found if self._may_describe(call, each[0])]
            yield from self._read(call, name, visible, [], then)
        else:
            yield from self._describe_topics(call, group, then)

    def _describe_topics(
        self,
        call: Call[DescribeShareGroupOffsetsRequest],
        group: DescribeShareGroupOffsetsRequestGroup,
        then: Callable[[DescribeShareGroupOffsetsResponseGroup], None],
    ) -> Steps[None]:
        """Only some topics: those that there are not come after the others, refused ones last."""
        wanted: Wanted = []
        unknown: list[DescribeShareGroupOffsetsResponseTopic] = []
        refused: list[DescribeShareGroupOffsetsResponseTopic] = []
        for topic in group.topics or ():
            name, partitions = topic.topic_name, topic.partitions
            state = self._hosted.image.topics.get(name)
            if not self._may_describe(call, name):
                refused.append(_without_offsets(name, partitions, _DENIED))
            elif state is None:
                unknown.append(_without_offsets(name, partitions, ErrorCode.NONE))
            else:
                wanted.append((name, state.topic_id, partitions))
            yield _A_PARTITION
        yield from self._read(call, group.group_id, wanted, unknown + refused, then)

    def _may_describe(self, call: Call[DescribeShareGroupOffsetsRequest], topic: str) -> bool:
        return self._access.allows(call.context, Operation.DESCRIBE, ResourceType.TOPIC, topic)

    def _all_of(self, broker_id: int, group_id: str) -> Wanted | ErrorCode:
        """All partitions that a group has begun to read; only its coordinator knows them."""
        kept = self._groups.living[broker_id].coordinator.share_partitions_of(group_id)
        if isinstance(kept, ErrorCode):
            return kept
        names = self._hosted.image.topic_names
        return [
            (names[topic_id], topic_id, tuple(sorted(partitions)))
            for topic_id, partitions in kept.items()
            if topic_id in names
        ]

    def _read(
        self,
        call: Call[DescribeShareGroupOffsetsRequest],
        group_id: str,
        wanted: Wanted,
        others: list[DescribeShareGroupOffsetsResponseTopic],
        then: Callable[[DescribeShareGroupOffsetsResponseGroup], None],
    ) -> Steps[None]:
        """Ask for each partition, once, and answer when all are known."""
        places = [partitions for _, _, partitions in wanted]
        if places and not (group_id and all(each and min(each) >= 0 for each in places)):
            # Kafka throws an IllegalArgumentException. Source: DefaultStatePersister.validate.
            error = ErrorCode.UNKNOWN_SERVER_ERROR
            then(_refused(group_id, error, error_message(error)))
            return
        # A topic or partition that is named twice is answered once.
        merged: dict[tuple[str, bytes], list[int]] = {}
        for name, topic_id, partitions in wanted:
            merged.setdefault((name, topic_id), []).extend(partitions)
        called = [(name, topic_id) for name, topic_id, partitions in wanted for _ in partitions]
        wanted = [
            (*topic, tuple(computed_hash_order(merged[topic], hash_of=integer_hash)))
            for topic in computed_hash_order(called, hash_of=lambda topic: uuid_hash(topic[1]))
        ]
        keys = [
            SharePartitionKey(group_id, topic_id, partition)
            for _, topic_id, partitions in wanted
            for partition in partitions
        ]
        reading = _Reading(group_id, wanted, tuple(others), self._lag, then, len(keys))
        if not keys:
            reading.finish()
        for key in keys:
            take = partial(reading.put, key)
            self.persister.summary(ReadState(key, _ANY_EPOCH), take, call.now)
            yield _A_PARTITION

    def _lag(self, topic: str, partition: int, done_offset: int) -> int | ErrorCode:
        """How many records there are from an offset on; its leader knows the log's end."""
        state = self._hosted.image.partition(topic, partition)
        if state is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        log = self._hosted.local_log(state.leader_id, (topic, partition))
        return log if isinstance(log, ErrorCode) else log.high_watermark - done_offset


_A_PARTITION: Final = 60
"""Cost of a share partition: 25 us (measured); see `log.format.steps`."""
_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED


@dataclass(slots=True)
class _Reading:
    """The offsets of one group, as far as they are known.

    Args:
        group_id: The group.
        wanted: What is asked for.
        others: What is told without asking.
        lag: Counts records from an offset on, or says why not.
        then: Takes the answer.
        asked_count: How many partitions are asked for.
    """

    group_id: str
    wanted: Wanted
    others: tuple[DescribeShareGroupOffsetsResponseTopic, ...]
    lag: Callable[[str, int, int], int | ErrorCode]
    then: Callable[[DescribeShareGroupOffsetsResponseGroup], None]
    asked_count: int
    _summaries: dict[SharePartitionKey, StateSummary] = field(default_factory=dict)

    def put(self, key: SharePartitionKey, summary: StateSummary) -> None:
        """Take in what is known of one partition, and answer when it is the last."""
        self._summaries[key] = summary
        if len(self._summaries) == self.asked_count:
            self.finish()

    def finish(self) -> None:
        """Answer: all is known."""
        topics = tuple(
            DescribeShareGroupOffsetsResponseTopic(
                name, topic_id, tuple(self._told(name, topic_id, each) for each in partitions)
            )
            for name, topic_id, partitions in self.wanted
        )
        self.then(
            DescribeShareGroupOffsetsResponseGroup(
                group_id=self.group_id, topics=topics + self.others
            )
        )

    def _told(
        self, topic: str, topic_id: bytes, partition: int
    ) -> DescribeShareGroupOffsetsResponsePartition:
        summary = self._summaries[SharePartitionKey(self.group_id, topic_id, partition)]
        if summary.error is not ErrorCode.NONE:
            return DescribeShareGroupOffsetsResponsePartition(partition, _UNKNOWN)
        if _UNKNOWN in (summary.start_offset, summary.delivery_complete_count):
            return DescribeShareGroupOffsetsResponsePartition(
                partition, summary.start_offset, summary.leader_epoch
            )
        done_offset = summary.start_offset + summary.delivery_complete_count
        lag = self.lag(topic, partition, done_offset)
        if isinstance(lag, ErrorCode):
            return DescribeShareGroupOffsetsResponsePartition(
                partition, error_code=lag, error_message=error_message(lag)
            )
        return DescribeShareGroupOffsetsResponsePartition(
            partition, summary.start_offset, summary.leader_epoch, lag
        )


def _refused(
    group_id: str, error: ErrorCode, text: str | None = None
) -> DescribeShareGroupOffsetsResponseGroup:
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id, error_code=error, error_message=text
    )


def _without_offsets(
    topic: str, partitions: tuple[int, ...], error: ErrorCode
) -> DescribeShareGroupOffsetsResponseTopic:
    text = None if error is ErrorCode.NONE else error_message(error)
    return DescribeShareGroupOffsetsResponseTopic(
        topic,
        ZERO_UUID,
        tuple(
            DescribeShareGroupOffsetsResponsePartition(
                each, _UNKNOWN, error_code=error, error_message=text
            )
            for each in partitions
        ),
    )
