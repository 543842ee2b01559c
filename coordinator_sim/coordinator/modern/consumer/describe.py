"""ConsumerGroupDescribe: what consumer groups are made of, as far as it is committed.

Source: kafka 4.4, ConsumerGroup.asDescribedGroup and
ConsumerGroupMember.asConsumerGroupDescribeMember.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from coordinator_sim.coordinator.inspection import Description
from coordinator_sim.coordinator.modern.consumer.group import (
    ConsumerGroup,
    ConsumerGroupMember,
    Target,
)
from coordinator_sim.coordinator.runtime import (
    Runtime,
)
from coordinator_sim.kafka.orders.iteration_order import java_string_key
from coordinator_sim.kafka.states import GroupProtocol
from coordinator_sim.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

_CLASSIC: Final = 0
_CONSUMER: Final = 1


def _fields(
    runtime: Runtime, _request: object, group: ConsumerGroup, position: int
) -> dict[str, Any]:
    members = tuple(
        _member(runtime, member, group.targets.get(member.member_id, position) or {})
        for _, member in group.members.items(position)
    )
    default = runtime.config.group_consumer_assignors[0]
    return {"assignor_name": group.preferred_assignor(position) or default, "members": members}


def _member(runtime: Runtime, member: ConsumerGroupMember, target: Target) -> Member:
    """A member; topics that are gone are left out of what it has and shall have."""
    held = {topic_id: set(partitions) for topic_id, partitions in member.assigned.items()}
    if runtime.profile.consumer_describes_revocations:
        for topic_id, partitions in member.pending_revocation.items():
            held.setdefault(topic_id, set()).update(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(sorted(member.subscribed_topic_names, key=java_string_key)),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(runtime, held),
        target_assignment=_assignment(runtime, target),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(runtime: Runtime, held: Mapping[bytes, Iterable[int]]) -> Assignment:
    by_id = runtime.topics.by_id
    return Assignment(
        tuple(
            TopicPartitions(topic_id, by_id[topic_id].name, tuple(sorted(partitions)))
            for topic_id, partitions in sorted(held.items())
            if topic_id in by_id
        )
    )


def _topics(group: DescribedGroup) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            yield from (each.topic_name for each in assignment.topic_partitions)


CONSUMER_GROUPS: Final = Description(
    GroupProtocol.CONSUMER,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    ConsumerGroup,
    _fields,
    _topics,
)
