"""Timers of members of groups with epochs: sessions, and the time to give partitions or tasks up.

A classic member of a consumer group has a time to join again too, and one to sync.

Source: kafka 4.4, GroupMetadataManager.schedule...GroupSessionTimeout,
schedule...GroupRebalanceTimeout, cancelTimers; CoordinatorTimerImpl, which tries again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.consumer.group import ConsumerGroupMember
from coordinator_sim.coordinator.effects import NO_EFFECT, Effect
from coordinator_sim.coordinator.epoch_group import EpochGroup, EpochMember
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.coordinator.refusals import NOT_LED
from coordinator_sim.coordinator.runtime import Partition, PartitionState, Runtime
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.epoch_groups import NOTHING_BESIDE, Beside
from coordinator_sim.trace.events import Event

RETRY_BACKOFF_MS: Final = 500
"""When a timer whose write failed fires again. Source: CoordinatorTimerImpl.schedule."""

AnyEpochGroup = EpochGroup[Any, Any, Any]
Fence = Callable[[Runtime, Partition, Any, Any], Effect | Refusal]
"""Makes the records that remove a member from a group."""


@dataclass(slots=True, frozen=True)
class MemberTimeout:
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


@dataclass(slots=True, frozen=True)
class RetryTimeout:
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
    _arm(runtime, timeout, group.session_timeout_ms(runtime.config_of(group.group_id)))


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
        session_ms = group.session_timeout_ms(runtime.config_of(timeout.group_id))
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
