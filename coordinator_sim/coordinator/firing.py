"""What timers that came due cause.

Source: kafka trunk, CoordinatorTimerImpl.java; kafka 3.9, DelayedOperation.scala.
"""

from typing import Final

from coordinator_sim.clock.timer_queue import Timer, TimerKind
from coordinator_sim.coordinator.common.runtime import OpenBatch
from coordinator_sim.coordinator.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.consumer.leaving import fence_consumer_member
from coordinator_sim.coordinator.epoch_timers import Fence, MemberTimeout, expire_member
from coordinator_sim.coordinator.expiry import expire_offsets
from coordinator_sim.coordinator.gauges import Gauge, expire_gauge
from coordinator_sim.coordinator.group import Group
from coordinator_sim.coordinator.join_phase import (
    InitialDelay,
    OwnSession,
    complete_join,
    expire_initial_join,
)
from coordinator_sim.coordinator.membership import (
    expire_own_session,
    expire_pending_sync,
    expire_session,
)
from coordinator_sim.coordinator.runtime import (
    NO_EFFECT,
    Effect,
    Partition,
    PartitionState,
    Runtime,
    Write,
)
from coordinator_sim.coordinator.scala.expiry import EXPIRY_KEY, scala_expire
from coordinator_sim.coordinator.scala.transactions import Materialisation, materialise
from coordinator_sim.coordinator.share.group import ShareGroup
from coordinator_sim.coordinator.share.heartbeat import fence_share_member
from coordinator_sim.coordinator.share.initializing import AskToInitialize
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.streams.leaving import expire_initial_delay, fence_streams_member
from coordinator_sim.coordinator.streams.timers import InitialAssignment
from coordinator_sim.errors import OperationAborted
from coordinator_sim.log.format.steps import SLICE

_A_TIMER: Final = 100
"""Cost of firing a timer, as `log.format.steps` counts: 50 us (measured)."""


_FENCES: Final[dict[type, Fence]] = {
    ConsumerGroup: fence_consumer_member,
    ShareGroup: fence_share_member,
    StreamsGroup: fence_streams_member,
}
"""What removes a member whose time is over, by the type of its group."""


def fire_due(runtime: Runtime) -> None:
    """Fire timers that are due; whenever none is, another thread gets its turn; for a slice.

    What is left is due at the next call. Terminates: each turn takes some of the slice.
    """
    left = SLICE
    while True:
        while left > 0 and (timer := runtime.timers.pop_due(runtime.now_ms)) is not None:
            fire(runtime, timer)
            runtime.run_scheduled()
            left -= _A_TIMER
        if not runtime.in_background or left <= 0:
            return
        key, steps = next(iter(runtime.in_background.items()))
        try:
            while left > 0:
                left -= next(steps)
        except StopIteration as done:
            left -= 1
            del runtime.in_background[key]
            runtime.scheduled.append(done.value)
            runtime.run_scheduled()


def fire(runtime: Runtime, timer: Timer) -> None:
    """Do what a timer that came due, and is out of the queue, was armed for."""
    key, data = timer.key, timer.data
    if isinstance(data, Write):
        runtime.expire_write(data)
        return
    if isinstance(data, OpenBatch):
        runtime.end_linger(data)
        return
    if isinstance(data, Partition):
        expire_offsets(runtime, data)
        return
    if isinstance(data, Materialisation):
        materialise(runtime, data)
        return
    if key == EXPIRY_KEY:
        scala_expire(runtime)
        return
    if isinstance(data, Gauge):
        expire_gauge(runtime, data)
        return
    if isinstance(data, AskToInitialize):
        data.ask()
    elif isinstance(data, InitialAssignment):
        expire_initial_delay(runtime, data)
    elif isinstance(data, MemberTimeout):
        expire_member(runtime, data, _FENCES[data.group_type])
    else:
        _fire_of_group(runtime, timer)


def _fire_of_group(runtime: Runtime, timer: Timer) -> None:
    """Do what a timer of a classic group was armed for."""
    key = timer.key
    group = runtime.groups.get(key.group_id)
    index = runtime.partition_index(key.group_id)
    if group is not None and runtime.profile.has_coordinator_runtime:
        # A foreign record may have brought a group whose id belongs elsewhere; Java keeps it there.
        index = group.offsets_partition
    partition = runtime.partitions[index]
    try:
        effect = _fire_in_group(runtime, timer)
    except OperationAborted:
        return
    # A write without records waits behind others, and its own timeout turns the wheel.
    is_led = partition.state is PartitionState.ACTIVE
    if effect is not NO_EFFECT or (is_led and not partition.is_settled):
        runtime.submit(partition, None, effect)


def _fire_in_group(runtime: Runtime, timer: Timer) -> Effect:
    key, data = timer.key, timer.data
    if isinstance(data, OwnSession):
        return expire_own_session(runtime, data.group, data.member_id)
    if isinstance(data, Group):
        return expire_own_session(runtime, data, key.member_id)
    group = runtime.groups.get(key.group_id)
    if group is None or key.kind is TimerKind.ORPHAN:
        return NO_EFFECT
    match key.kind:
        case TimerKind.SESSION:
            return expire_session(runtime, group, key.member_id)
        case TimerKind.SYNC:
            return expire_pending_sync(runtime, group, data)
        case _:
            if isinstance(data, InitialDelay):
                return expire_initial_join(runtime, group, data)
            return complete_join(runtime, group)
