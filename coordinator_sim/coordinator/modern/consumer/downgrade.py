"""The online downgrade: a consumer group left with classic members alone becomes a classic group.

Here the table of groups changes before the log: the records of the batch are not replayed. A
refused append brings the consumer group back, which nothing has touched.

Source: kafka 4.4, GroupMetadataManager.validateOnlineDowngradeWithFencedMembers,
validateOnlineDowngradeWithReplacedMember and convertToClassicGroup; ClassicGroup.fromConsumerGroup.
"""

from collections.abc import Sequence

from coordinator_sim.coordinator.classic.group import Group, Member, subscriptions_of
from coordinator_sim.coordinator.classic.join_phase import (
    group_record,
    prepare_rebalance,
    start_session,
)
from coordinator_sim.coordinator.modern.consumer.embedded import written_assignment
from coordinator_sim.coordinator.modern.consumer.group import ConsumerGroup, ConsumerGroupMember
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.errors import OperationAborted
from coordinator_sim.messages.embedded.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from coordinator_sim.messages.group_records import GroupMetadataValue, MemberMetadata
from coordinator_sim.messages.join_group import JoinGroupRequestProtocol
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.trace.events import RebalanceReason

Successor = tuple[ConsumerGroupMember, ConsumerGroupMember]
"""A static member, and the classic one that takes its place."""


def downgrades_without(
    runtime: Runtime, group: ConsumerGroup, leavers: Sequence[ConsumerGroupMember]
) -> bool:
    """Whether a group becomes a classic one when these members go.

    Source: validateOnlineDowngradeWithFencedMembers.
    """
    left = len(group.members) - len(leavers)
    classic_leavers = sum(member.classic is not None for member in leavers)
    if left <= 0 or group.epochs.classic_count - classic_leavers != left:
        return False
    return _may_downgrade(runtime, left)


def downgrades_by(runtime: Runtime, group: ConsumerGroup, replaced: ConsumerGroupMember) -> bool:
    """Whether a group becomes a classic one when a classic member replaces a static one.

    Source: validateOnlineDowngradeWithReplacedMember.
    """
    count = len(group.members)
    is_last = replaced.classic is None and group.epochs.classic_count == count - 1
    return is_last and _may_downgrade(runtime, count)


def _may_downgrade(runtime: Runtime, count: int) -> bool:
    config = runtime.config
    return config.group_consumer_migration_policy.downgrades and count <= config.group_max_size


def downgrade_without(
    runtime: Runtime,
    partition: Partition,
    group: ConsumerGroup,
    leavers: Sequence[ConsumerGroupMember],
) -> tuple[LogRecord, ...]:
    """Make a group a classic one without these members, which rebalances at once.

    Returns:
        Records that must not be replayed.

    Raises:
        MalformedBlob: the subscription of a member that stays has no version; nothing is changed.
        OperationAborted: the members that stay have no protocol in common, or up to 4.2 one of
            them never had a target; nothing is changed.
    """
    gone = {member.member_id for member in leavers}
    stay = [member for _, member in group.members.items() if member.member_id not in gone]
    classic, record = _classic_group(runtime, partition, group, stay, None)
    records = (*group.tombstones(), record)
    _replace(runtime, partition, group, classic)
    _rebalance(
        runtime,
        classic,
        f"Downgrade group {group.group_id} from consumer to classic for member leaving.",
    )
    return records


def downgrade_by(
    runtime: Runtime,
    partition: Partition,
    group: ConsumerGroup,
    successor: Successor,
    *,
    rebalances: bool,
) -> tuple[LogRecord, ...]:
    """Make a group a classic one with a classic member in a static one's place.

    Args:
        runtime: The coordinator.
        partition: Of the group.
        group: The group.
        successor: The member that goes, and the one that comes.
        rebalances: Whether the group rebalances at once.

    Returns:
        As above.

    Raises:
        MalformedBlob: As above.
        OperationAborted: As above.
    """
    replaced, joiner = successor
    # QUIRK: up to 4.3 the member that goes may have taken another instance id meanwhile; then it is
    # not left out, and the downgrade fails because it is no classic member.
    stay = [
        member for _, member in group.members.items() if member.instance_id != joiner.instance_id
    ]
    classic, record = _classic_group(runtime, partition, group, [*stay, joiner], replaced)
    renamed = {replaced.member_id: joiner.member_id}
    records = (*group.tombstones(renamed), record)
    _replace(runtime, partition, group, classic)
    if rebalances:
        what = (
            "with stale assignment"
            if runtime.profile.downgrade_awaits_target
            else "for static member replacement with different subscription"
        )
        _rebalance(
            runtime, classic, f"Downgrade group {group.group_id} from consumer to classic {what}."
        )
    return records


def _rebalance(runtime: Runtime, classic: Group, text: str) -> None:
    # No effect comes of it: nobody has joined, so the group waits for its members.
    prepare_rebalance(runtime, classic, RebalanceReason.DOWNGRADE, text)


def _classic_group(
    runtime: Runtime,
    partition: Partition,
    group: ConsumerGroup,
    members: Sequence[ConsumerGroupMember],
    replaced: ConsumerGroupMember | None,
) -> tuple[Group, LogRecord]:
    """A Stable group of these members and its record; the last one has the replaced one's target.

    Source: ClassicGroup.fromConsumerGroup and createClassicGroupRecords.
    """
    classic = Group(runtime, group.group_id, partition.index)
    classic.restore(
        GroupMetadataValue(
            protocol_type=CONSUMER_PROTOCOL_TYPE,
            generation=group.epochs.group_epoch,
            protocol=None,
            leader=None,
            current_state_timestamp=runtime.wall_ms,
            members=tuple([_stored(each) for each in members]),
        )
    )
    for each in members:
        if each.instance_id is not None and each.instance_id in classic.static_members:
            raise OperationAborted(f"two members have the instance id {each.instance_id}")
        classic.add(_classic_member(each))
    name = classic.protocol_name = classic.select_protocol()
    classic.subscriptions = subscriptions_of(CONSUMER_PROTOCOL_TYPE, name, classic.members.values())
    successors = {} if replaced is None else {members[-1].member_id: replaced.member_id}
    for member in classic.ordered():
        target = group.targets.get(successors.get(member.member_id, member.member_id))
        if target is None and not runtime.profile.downgrade_takes_untargeted:
            raise OperationAborted(f"member {member.member_id} never had a target")
        member.assignment = written_assignment(target or {}, runtime.topics, member.metadata(name))
    assignments = {member.member_id: member.assignment for member in classic.members.values()}
    return classic, group_record(runtime, classic, classic.as_record(assignments))


def _stored(member: ConsumerGroupMember) -> MemberMetadata:
    """A member as a record that knows nothing of its protocols would have it."""
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=0 if member.classic is None else member.classic.session_timeout_ms,
        subscription=b"",
        assignment=b"",
    )


def _classic_member(member: ConsumerGroupMember) -> Member:
    metadata = member.classic
    if metadata is None:
        raise OperationAborted(f"member {member.member_id} is no classic member")
    return Member(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        metadata.session_timeout_ms,
        member.rebalance_timeout_ms,
        CONSUMER_PROTOCOL_TYPE,
        tuple(
            [
                JoinGroupRequestProtocol(each.name, each.metadata)
                for each in metadata.supported_protocols
            ]
        ),
    )


def _replace(runtime: Runtime, partition: Partition, group: ConsumerGroup, classic: Group) -> None:
    """Put the classic group into the table and start its members' sessions."""
    partition.drop_consumer_group(group.group_id)
    runtime.add_group(classic)
    runtime.add_new_group(partition, classic)
    for member in classic.ordered():
        start_session(runtime, classic, member)
