"""The timers of a member: its session, and the time it has to give partitions up.

A classic member has a time to join again too, and one to sync.

Source: kafka 4.4, GroupMetadataManager.scheduleConsumerGroupSessionTimeout,
scheduleConsumerGroupRebalanceTimeout, cancelTimers; CoordinatorTimerImpl, which tries again.
"""

from dataclasses import dataclass
from typing import Final

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.consumer.member import ConsumerMember
from coordinator_sim.coordinator.modern.member import MemberState
from coordinator_sim.coordinator.refusals import NOT_LED
from coordinator_sim.coordinator.runtime import Partition, PartitionState, Runtime
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.epoch_groups import Beside
from coordinator_sim.trace.events import Event

RETRY_BACKOFF_MS: Final = 500
"""When a timer whose write failed fires again. Source: CoordinatorTimerImpl.schedule."""


@dataclass(slots=True, frozen=True)
class MemberTimeout:
    """What a timer of a member was armed for.

    Args:
        partition: The offsets partition that the group was on.
        group_id: The group.
        member_id: The member, who may be gone.
        kind: What ran out: a session, or the time to give partitions up, to join again, to sync.
        epoch: The member's, if the timer counts only while it stays there; None if it always does.
    """

    partition: Partition
    group_id: str
    member_id: str
    kind: TimerKind = TimerKind.CONSUMER_SESSION
    epoch: int | None = None

    @property
    def key(self) -> TimerKey:
        """The name of the timer."""
        return TimerKey(self.kind, self.group_id, self.member_id)


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
        arm(self.runtime, self.timeout, RETRY_BACKOFF_MS)


def departure(timeout: MemberTimeout, session_ms: int, rebalance_ms: int) -> Beside:
    """Which time of a member was over, for the trace.

    Args:
        timeout: The timer that has fired.
        session_ms: How long a session of the group is.
        rebalance_ms: How long the member had to give up what it was told to.
    """
    if timeout.epoch is None:
        return Beside(departure=Event.MEMBER_FAILED, departed={"session_timeout_ms": session_ms})
    columns = {
        "rebalance_timeout_ms": rebalance_ms,
        "attrs": {"cause": "rebalance_timeout", "member_epoch": str(timeout.epoch)},
    }
    return Beside(departure=Event.MEMBER_KICKED, departed=columns)


def arm(runtime: Runtime, timeout: MemberTimeout, delay_ms: int) -> None:
    """Arm a timer of a member, in place of the one of the same name."""
    deadline_ms = runtime.now_ms + delay_ms
    runtime.timers.schedule(timeout.key, deadline_ms, now_ms=runtime.now_ms, data=timeout)


def start_consumer_session(
    runtime: Runtime, partition: Partition, group_id: str, member_id: str
) -> None:
    """Give a member its whole session timeout from now."""
    timeout = MemberTimeout(partition, group_id, member_id)
    arm(runtime, timeout, runtime.config_of(group_id).group_consumer_session_timeout_ms)


def start_classic_session(
    runtime: Runtime, partition: Partition, group_id: str, member: ConsumerMember
) -> None:
    """Give a classic member the session timeout that it brought. Others have none to bring."""
    if member.classic is not None:
        timeout = MemberTimeout(partition, group_id, member.member_id)
        arm(runtime, timeout, member.classic.session_timeout_ms)


def start_rebalance(
    runtime: Runtime, partition: Partition, group_id: str, member: ConsumerMember
) -> None:
    """Give a member its rebalance timeout to leave the epoch it is at."""
    kind = TimerKind.CONSUMER_REBALANCE
    timeout = MemberTimeout(partition, group_id, member.member_id, kind, member.member_epoch)
    arm(runtime, timeout, member.rebalance_timeout_ms)


def start_joining(
    runtime: Runtime, partition: Partition, group_id: str, member: ConsumerMember
) -> None:
    """Give a classic member that was told to join again its rebalance timeout, once."""
    timeout = MemberTimeout(partition, group_id, member.member_id, TimerKind.CONSUMER_JOIN)
    if runtime.timers.get(timeout.key) is None:
        arm(runtime, timeout, member.rebalance_timeout_ms)


def start_syncing(
    runtime: Runtime, partition: Partition, group_id: str, member_id: str, timeout_ms: int
) -> None:
    """Give a classic member that has joined so long to sync."""
    timeout = MemberTimeout(partition, group_id, member_id, TimerKind.CONSUMER_SYNC)
    arm(runtime, timeout, timeout_ms)


def cancel_joining(runtime: Runtime, group_id: str, member_id: str) -> None:
    """The classic member has joined."""
    runtime.timers.cancel(TimerKey(TimerKind.CONSUMER_JOIN, group_id, member_id))


def cancel_syncing(runtime: Runtime, group_id: str, member_id: str) -> None:
    """The classic member has synced."""
    runtime.timers.cancel(TimerKey(TimerKind.CONSUMER_SYNC, group_id, member_id))


def cancel_rebalance(runtime: Runtime, group_id: str, member_id: str) -> None:
    """The member has nothing to give up any more."""
    runtime.timers.cancel(TimerKey(TimerKind.CONSUMER_REBALANCE, group_id, member_id))


def cancel_member_timers(runtime: Runtime, group_id: str, member_id: str) -> None:
    """The member goes."""
    runtime.timers.cancel(TimerKey(TimerKind.CONSUMER_SESSION, group_id, member_id))
    cancel_rebalance(runtime, group_id, member_id)
    cancel_joining(runtime, group_id, member_id)
    cancel_syncing(runtime, group_id, member_id)


def start_timers_of(runtime: Runtime, partition: Partition, group: ConsumerGroup) -> None:
    """Start the timers of every member of a group that was loaded. Source: onLoaded."""
    for member_id, member in group.members.items():
        start_consumer_session(runtime, partition, group.group_id, member_id)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            start_rebalance(runtime, partition, group.group_id, member)
