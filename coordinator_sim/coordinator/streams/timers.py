"""The delay of the first target of a streams group.

Source: kafka 4.4, GroupMetadataManager.streamsInitialRebalanceKey.
"""

from dataclasses import dataclass

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.runtime import Partition, Runtime


@dataclass(slots=True, frozen=True)
class InitialAssignment:
    """The first target of a group is due.

    Args:
        partition: The offsets partition that the group was on.
        group_id: The group.
    """

    partition: Partition
    group_id: str


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
