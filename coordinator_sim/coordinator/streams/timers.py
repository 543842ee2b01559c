"""The timers of a streams group: sessions, time to give tasks up, the delay of the first target.

A member's have the keys of a consumer group's, which they replace and are replaced by.

Source: kafka 4.4, GroupMetadataManager.scheduleStreamsGroupSessionTimeout,
scheduleStreamsGroupRebalanceTimeout, streamsInitialRebalanceKey.
"""

from dataclasses import dataclass

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.consumer.timers import MemberTimeout, arm
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.streams.member import MemberState, StreamsMember


@dataclass(slots=True, frozen=True)
class StreamsTimeout(MemberTimeout):
    """What a timer of a member was armed for."""


@dataclass(slots=True, frozen=True)
class InitialAssignment:
    """The first target of a group is due.

    Args:
        partition: The offsets partition that the group was on.
        group_id: The group.
    """

    partition: Partition
    group_id: str


def start_streams_session(
    runtime: Runtime, partition: Partition, group_id: str, member_id: str
) -> None:
    """Give a member its whole session timeout from now."""
    timeout = StreamsTimeout(partition, group_id, member_id)
    arm(runtime, timeout, runtime.config_of(group_id).group_streams_session_timeout_ms)


def start_streams_rebalance(
    runtime: Runtime, partition: Partition, group_id: str, member: StreamsMember
) -> None:
    """Give a member its rebalance timeout to leave the epoch it is at."""
    kind = TimerKind.CONSUMER_REBALANCE
    timeout = StreamsTimeout(partition, group_id, member.member_id, kind, member.member_epoch)
    arm(runtime, timeout, member.rebalance_timeout_ms)


def start_streams_timers(runtime: Runtime, partition: Partition, group: StreamsGroup) -> None:
    """Start the timers of every member of a group that was loaded. Source: onLoaded.

    QUIRK: a delay of the first target that was under way is not taken up again.
    """
    for member_id, member in group.members.items():
        start_streams_session(runtime, partition, group.group_id, member_id)
        if member.state is MemberState.UNREVOKED_TASKS:
            start_streams_rebalance(runtime, partition, group.group_id, member)


def _delay_key(group_id: str) -> TimerKey:
    return TimerKey(TimerKind.STREAMS_INITIAL_DELAY, group_id, "")


def start_initial_delay(runtime: Runtime, partition: Partition, group_id: str) -> None:
    """Let the first target wait for more members, unless it waits already."""
    delay_ms = runtime.config_of(group_id).group_streams_initial_rebalance_delay_ms
    if delay_ms <= 0 or is_delayed(runtime, group_id):
        return
    data = InitialAssignment(partition, group_id)
    deadline_ms = runtime.now_ms + delay_ms
    runtime.timers.schedule(_delay_key(group_id), deadline_ms, now_ms=runtime.now_ms, data=data)


def is_delayed(runtime: Runtime, group_id: str) -> bool:
    """Whether the first target waits."""
    return runtime.timers.get(_delay_key(group_id)) is not None


def cancel_initial_delay(runtime: Runtime, group_id: str) -> None:
    """The group goes. Source: StreamsGroup.cancelTimers."""
    runtime.timers.cancel(_delay_key(group_id))
