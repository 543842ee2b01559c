"""Members of groups with epochs: found for a heartbeat, and timed.

A member has a session, and a time to give partitions or tasks up.

A classic member of a consumer group has a time to join again too, and one to sync.

Source: kafka 4.4, GroupMetadataManager.schedule...GroupSessionTimeout,
schedule...GroupRebalanceTimeout, cancelTimers; CoordinatorTimerImpl, which tries again;
getOrMaybeSubscribeDynamicConsumerGroupMember, getOrMaybeSubscribeStaticConsumerGroupMember,
replaceMember and their kin for streams groups; throwIfConsumerGroupMemberEpochIsInvalid and
throwIfStreamsGroupMemberEpochIsInvalid.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Generic

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.effects import NO_EFFECT, Effect
from coordinator_sim.coordinator.epoch_group import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    EpochGroup,
    EpochMember,
    EpochsT,
    MemberT,
    TargetT,
)
from coordinator_sim.coordinator.epoch_refusals import (
    Refusal,
    fenced_epoch,
    fenced_instance,
    unknown_instance,
    unknown_member,
    unreleased_instance,
)
from coordinator_sim.coordinator.modern.consumer.group import ConsumerGroupMember
from coordinator_sim.coordinator.runtime import NOT_LED, Partition, PartitionState, Runtime
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from coordinator_sim.trace.epoch_groups import NOTHING_BESIDE, Beside
from coordinator_sim.trace.events import Event

Heartbeat = ConsumerGroupHeartbeatRequest | StreamsGroupHeartbeatRequest


class Found(Struct, Generic[MemberT], frozen=True):
    """A member, the records that put it into another's place, and the other's id."""

    member: MemberT
    records: tuple[LogRecord, ...] = ()
    replaced_id: str | None = None


def member_of(
    group: EpochGroup[MemberT, TargetT, EpochsT], member_id: str, instance_id: str | None
) -> MemberT | Refusal:
    """The member that a request names; a static one must own its instance id."""
    if instance_id is None:
        member = group.members.entries.get(member_id)
        return unknown_member(group.group_id, member_id) if member is None else member
    lost_id = group.lost_member(instance_id)
    if lost_id is not None:
        return unknown_member(group.group_id, lost_id)
    member = group.static_member(instance_id)
    if member is None:
        return unknown_instance(instance_id)
    if member.member_id != member_id:
        return fenced_instance(instance_id, member_id, member.member_id)
    return member


def found_member(
    group: EpochGroup[MemberT, TargetT, EpochsT],
    request: Heartbeat,
    new: MemberT,
    has_no_more: Callable[[MemberT], bool],
    *,
    rejoins: bool,
) -> Found[MemberT] | Refusal:
    """The member of a heartbeat, its epoch checked.

    A member whose last answer was lost repeats its previous epoch, and reports no more than it has.

    Args:
        group: As it is.
        request: The heartbeat.
        new: A new member with the id of the request, or one that was made for it.
        has_no_more: Whether the heartbeat reports no more than that member has.
        rejoins: Whether a member may join again at any epoch.
    """
    member_id, instance_id, received = new.member_id, request.instance_id, request.member_epoch
    joins = received == JOIN_EPOCH
    if joins and instance_id is not None:
        return _joining_static_member(group, new, instance_id)
    found: MemberT | Refusal
    if joins:
        found = group.members.entries.get(member_id, new)
    else:
        found = member_of(group, member_id, instance_id)
    if isinstance(found, Refusal):
        return found
    current = found.member_epoch
    if received == current or (joins and rejoins):
        return Found(found)
    is_previous = received == found.previous_member_epoch and received < current
    if is_previous and has_no_more(found):
        return Found(found)
    return fenced_epoch(group.group_type, received, current)


def _joining_static_member(
    group: EpochGroup[MemberT, TargetT, EpochsT], new: MemberT, instance_id: str
) -> Found[MemberT] | Refusal:
    member_id, lost_id = new.member_id, group.lost_member(instance_id)
    if lost_id is not None:
        return unknown_member(group.group_id, lost_id)
    owner = group.static_member(instance_id)
    if owner is None:
        return Found(group.members.entries.get(member_id, new))
    if not owner.uses_classic_protocol and owner.member_epoch != STATIC_LEAVE_EPOCH:
        return unreleased_instance(instance_id, member_id, owner.member_id)
    return replacing_member(group, owner, member_id)


def replacing_member(
    group: EpochGroup[MemberT, TargetT, EpochsT], old: MemberT, member_id: str
) -> Found[MemberT]:
    """Another member in the place of a static one, with all that it has.

    QUIRK: the old one's timers run on, and find no member.
    """
    new = replace(old, member_id=member_id, member_epoch=JOIN_EPOCH, previous_member_epoch=0)
    records = (
        *group.member_tombstones(old.member_id),
        group.member_record(new),
        group.target_record(member_id, group.targets.get(old.member_id) or group.no_target),
        group.assignment_record(new),
    )
    return Found(new, records, old.member_id if old.member_id != member_id else None)


RETRY_BACKOFF_MS: Final = 500
"""When a timer whose write failed fires again. Source: CoordinatorTimerImpl.schedule."""

AnyEpochGroup = EpochGroup[Any, Any, Any]
Fence = Callable[[Runtime, Partition, Any, Any], Effect | Refusal]
"""Makes the records that remove a member from a group."""


class MemberTimeout(Struct, frozen=True):
    """What a timer of a member was armed for.

    Args:
        partition: The offsets partition that the group was on.
        group_type: Of which type it was.
        group_id: The group.
        member_id: The member, who may be gone.
        kind: What ran out: a session, or the time to give partitions up, to join again, to sync.
        epoch: The member's, if the timer counts only while it stays there; None if it always does.
    """

    partition: Partition
    group_type: type[AnyEpochGroup]
    group_id: str
    member_id: str
    kind: TimerKind = TimerKind.CONSUMER_SESSION
    epoch: int | None = None


class RetryTimeout(Struct, frozen=True):
    """A timer whose write failed fires again after a while."""

    runtime: Runtime
    timeout: MemberTimeout

    def finish(self, error: ErrorCode) -> None:
        """Arm it anew, unless the write went through or the partition is not led any more."""
        is_led = self.timeout.partition.state is PartitionState.ACTIVE
        if error is ErrorCode.NONE or error in NOT_LED or not is_led:
            return
        _arm(self.runtime, self.timeout, RETRY_BACKOFF_MS)


def _arm(runtime: Runtime, timeout: MemberTimeout, delay_ms: int) -> None:
    """Arm a timer of a member, in place of the one of the same name."""
    key = TimerKey(timeout.kind, timeout.group_id, timeout.member_id)
    deadline_ms = runtime.now_ms + delay_ms
    runtime.timers.schedule(key, deadline_ms, now_ms=runtime.now_ms, data=timeout)


def start_session(
    runtime: Runtime, partition: Partition, group: AnyEpochGroup, member_id: str
) -> None:
    """Give a member its whole session timeout from now."""
    timeout = MemberTimeout(partition, type(group), group.group_id, member_id)
    _arm(runtime, timeout, getattr(runtime.config_of(group.group_id), group.session_setting))


def start_classic_session(
    runtime: Runtime, partition: Partition, group: AnyEpochGroup, member: ConsumerGroupMember
) -> None:
    """Give a classic member the session timeout that it brought. Others have none to bring."""
    if member.classic is not None:
        timeout = MemberTimeout(partition, type(group), group.group_id, member.member_id)
        _arm(runtime, timeout, member.classic.session_timeout_ms)


def start_rebalance(
    runtime: Runtime, partition: Partition, group: AnyEpochGroup, member: EpochMember
) -> None:
    """Give a member its rebalance timeout to leave the epoch it is at, if it gives anything up.

    Another has nothing to give up any more, and its timer is cancelled.
    """
    kind, member_id = TimerKind.CONSUMER_REBALANCE, member.member_id
    if not member.is_revoking:
        runtime.timers.cancel(TimerKey(kind, group.group_id, member_id))
        return
    epoch = member.member_epoch
    timeout = MemberTimeout(partition, type(group), group.group_id, member_id, kind, epoch)
    _arm(runtime, timeout, member.rebalance_timeout_ms)


def start_joining(
    runtime: Runtime, partition: Partition, group: AnyEpochGroup, member: ConsumerGroupMember
) -> None:
    """Give a classic member that has to join again its rebalance timeout, once."""
    kind = TimerKind.CONSUMER_JOIN
    timeout = MemberTimeout(partition, type(group), group.group_id, member.member_id, kind)
    if runtime.timers.get(TimerKey(kind, group.group_id, member.member_id)) is None:
        _arm(runtime, timeout, member.rebalance_timeout_ms)


def start_syncing(
    runtime: Runtime, partition: Partition, group: AnyEpochGroup, member_id: str, timeout_ms: int
) -> None:
    """Give a classic member that has joined so long to sync."""
    kind = TimerKind.CONSUMER_SYNC
    _arm(
        runtime, MemberTimeout(partition, type(group), group.group_id, member_id, kind), timeout_ms
    )


_MEMBER_TIMERS: Final = (
    TimerKind.CONSUMER_SESSION,
    TimerKind.CONSUMER_REBALANCE,
    TimerKind.CONSUMER_JOIN,
    TimerKind.CONSUMER_SYNC,
)


def cancel_member_timers(
    runtime: Runtime, group_id: str, member_id: str, kinds: Iterable[TimerKind] = _MEMBER_TIMERS
) -> None:
    """Cancel timers of a member, all if it goes."""
    for kind in kinds:
        runtime.timers.cancel(TimerKey(kind, group_id, member_id))


def start_timers_of(runtime: Runtime, partition: Partition, group: AnyEpochGroup) -> None:
    """Start the timers of every member of a group that was loaded. Source: onLoaded.

    QUIRK: a delay of the first target that was under way is not taken up again.
    """
    for member_id, member in group.members.items():
        start_session(runtime, partition, group, member_id)
        if member.is_revoking:
            start_rebalance(runtime, partition, group, member)


def expire_member(runtime: Runtime, timeout: MemberTimeout, fence: Fence) -> None:
    """Fence a member whose time is over, unless it is gone or has left the epoch in question."""
    partition = timeout.partition
    if partition.state is not PartitionState.ACTIVE:
        return
    group = partition.groups.get(timeout.group_id)
    retry = RetryTimeout(runtime, timeout)
    effect: Effect | Refusal = NO_EFFECT
    beside = NOTHING_BESIDE
    if isinstance(group, timeout.group_type):
        member = group.members.get(timeout.member_id)
        if member is not None and timeout.epoch in (None, member.member_epoch):
            beside = _departure(runtime, timeout, group, member)
            try:
                effect = fence(runtime, partition, group, member)
            except OperationAborted:
                retry.finish(ErrorCode.UNKNOWN_SERVER_ERROR)
                return
    if isinstance(effect, Refusal):
        # QUIRK: a downgrade that is refused looks like a group that is gone: nothing is repeated.
        effect = NO_EFFECT
    if effect is not NO_EFFECT or not partition.is_settled:
        # QUIRK: a write without records that is late is repeated too, until one is in time.
        submit_by_timer(runtime, partition, replace(effect, follow=retry, beside=beside))


def _departure(
    runtime: Runtime, timeout: MemberTimeout, group: AnyEpochGroup, member: EpochMember
) -> Beside:
    """Which time of a member was over, for the trace."""
    if timeout.epoch is None:
        session_ms = getattr(runtime.config_of(timeout.group_id), group.session_setting)
        return Beside(departure=Event.MEMBER_FAILED, departed={"session_timeout_ms": session_ms})
    columns = {
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "attrs": {"cause": "rebalance_timeout", "member_epoch": str(timeout.epoch)},
    }
    return Beside(departure=Event.MEMBER_KICKED, departed=columns)


def submit_by_timer(runtime: Runtime, partition: Partition, effect: Effect) -> None:
    """Append what a timer caused; nobody waits for an answer."""
    try:
        runtime.submit(partition, None, effect)
    except OperationAborted:
        return
