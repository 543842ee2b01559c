"""What a coordinator's metrics show: totals counted on the way, gauges computed when asked.

Kafka's rates are totals over a window of the broker's clock; here are the totals alone. The timers
that Kafka keeps for its gauges change nothing, but turn the timing wheel: which of the timers due
at one instant fires first may depend on them (see `clock.timer_queue`).

Source: kafka 3.9, GroupMetadataManager.scala and GroupCoordinator.scala (gauges of
`kafka.coordinator.group:type=GroupMetadataManager`, sensors of `group-coordinator-metrics`); kafka
trunk, GroupCoordinatorMetrics.java and CoordinatorRuntimeMetricsImpl.java;
GroupCoordinatorShard.scheduleClassicGroupSizeCounter.
"""

from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.runtime import NOT_LED, Effect, Partition, PartitionState, Runtime
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupState

_INTERVAL_MS = 60_000
"""How often groups are counted.

Source: GroupCoordinatorShard.DEFAULT_GROUP_GAUGES_UPDATE_INTERVAL_MS.
"""
_RETRY_MS = 500
"""How soon a failed run is repeated. Source: CoordinatorTimer.schedule without a retry backoff."""


@dataclass(slots=True, frozen=True)
class Gauge:
    """What the timer remembers: the partition whose groups are counted."""

    partition: Partition


def gauge_key(partition: Partition) -> TimerKey:
    """The name of a partition's gauge timer."""
    return TimerKey(TimerKind.GAUGE, "", str(partition.index))


def arm_gauge(runtime: Runtime, partition: Partition, delay_ms: int = _INTERVAL_MS) -> None:
    """Count the groups again after a while, if gauges are wanted at all."""
    if runtime.config.idle_timers:
        now_ms = runtime.now_ms
        key = gauge_key(partition)
        runtime.timers.schedule(key, now_ms + delay_ms, now_ms=now_ms, data=Gauge(partition))


def expire_gauge(runtime: Runtime, gauge: Gauge) -> None:
    """Count, which shows nowhere, and arm the timer anew."""
    partition = gauge.partition
    arm_gauge(runtime, partition)
    runtime.submit(partition, None, Effect(follow=GaugeRetry(runtime, partition)))


@dataclass(slots=True, eq=False)
class GaugeRetry:
    """A run that waited too long for earlier writes is repeated soon."""

    runtime: Runtime
    partition: Partition

    def finish(self, error: ErrorCode) -> None:
        """Arm the timer for the retry, replacing the next run."""
        if error is ErrorCode.NONE or error in NOT_LED:
            return
        if self.partition.state is PartitionState.ACTIVE:
            arm_gauge(self.runtime, self.partition, _RETRY_MS)


class CoordinatorMetrics(Struct, frozen=True, kw_only=True):
    """The metrics of one broker's coordinator at one instant; `KAFKA_NAMES` has Kafka's names."""

    num_offsets: int
    num_groups: int
    num_groups_preparing_rebalance: int
    num_groups_completing_rebalance: int
    num_groups_stable: int
    num_groups_dead: int
    num_groups_empty: int
    num_partitions_active: int
    num_partitions_loading: int
    num_partitions_failed: int
    offset_commit_count: int
    offset_expiration_count: int
    offset_deletion_count: int
    group_completed_rebalance_count: int


KAFKA_NAMES: Final = {
    "num_offsets": "NumOffsets",
    "num_groups": "NumGroups",
    "num_groups_preparing_rebalance": "NumGroupsPreparingRebalance",
    "num_groups_completing_rebalance": "NumGroupsCompletingRebalance",
    "num_groups_stable": "NumGroupsStable",
    "num_groups_dead": "NumGroupsDead",
    "num_groups_empty": "NumGroupsEmpty",
    "num_partitions_active": "num-partitions{state=active}",
    "num_partitions_loading": "num-partitions{state=loading}",
    "num_partitions_failed": "num-partitions{state=failed}",
    "offset_commit_count": "offset-commit-count",
    "offset_expiration_count": "offset-expiration-count",
    "offset_deletion_count": "offset-deletion-count",
    "group_completed_rebalance_count": "group-completed-rebalance-count",
}
"""Field to the name of the MBean (a gauge) or attribute (a sensor's total) that shows it."""


def measured(runtime: Runtime) -> CoordinatorMetrics:
    """The metrics as they are now."""
    counters = runtime.counters
    groups = dict.fromkeys(GroupState, 0)
    for group in runtime.groups.values():
        groups[group.state] += 1
    partitions: dict[str, int] = {}
    offsets = 0
    for partition in runtime.partitions.values():
        state = partition.state.value
        partitions[state] = partitions.get(state, 0) + 1
        offsets += partition.offsets.count()
        offsets += sum(
            len(group.offsets.committed) for group in partition.classic_groups().values()
        )
    return CoordinatorMetrics(
        num_offsets=offsets,
        num_groups=len(runtime.groups),
        num_groups_preparing_rebalance=groups[GroupState.PREPARING_REBALANCE],
        num_groups_completing_rebalance=groups[GroupState.AWAITING_SYNC],
        num_groups_stable=groups[GroupState.STABLE],
        num_groups_dead=groups[GroupState.DEAD],
        num_groups_empty=groups[GroupState.EMPTY],
        num_partitions_active=partitions.get("active", 0),
        num_partitions_loading=partitions.get("loading", 0),
        num_partitions_failed=partitions.get("failed", 0),
        offset_commit_count=counters.offset_commits,
        offset_expiration_count=counters.offset_expirations,
        offset_deletion_count=counters.offset_deletions,
        group_completed_rebalance_count=counters.completed_rebalances,
    )
