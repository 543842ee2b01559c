"""The Scala coordinator's one expiry job, over the groups of all partitions.

What may expire is decided as in Java, in `expiry`, but for offsets that carry their own end.

Source: kafka 3.9, GroupMetadataManager.startup and cleanupGroupMetadata; GroupMetadata
.removeExpiredOffsets.
"""

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.offsets.expiry import is_expired, may_expire_offsets
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.coordinator.scala.cleanup import clean_up
from coordinator_sim.coordinator.scala.group_offsets import Place
from coordinator_sim.coordinator.tracing import trace_offsets_expired
from coordinator_sim.messages.group_records import OffsetCommitValue

EXPIRY_KEY = TimerKey(TimerKind.EXPIRY, "")
"""The name of the broker's one expiry job."""


def start_expiry(runtime: Runtime) -> None:
    """Run the expiry job now, when there is nothing yet, and at an interval from now on."""
    if runtime.timers.get(EXPIRY_KEY) is None:
        deadline_ms = runtime.now_ms + runtime.config.offsets_retention_check_interval_ms
        runtime.timers.schedule(EXPIRY_KEY, deadline_ms, now_ms=runtime.now_ms)


def scala_expire(runtime: Runtime) -> None:
    """Remove expired offsets of every group; a failed append is not repeated."""
    count = clean_up(
        runtime, runtime.groups_in_cache_order(), lambda group: _remove_expired(runtime, group)
    )
    runtime.counters.offset_expirations += count
    if count and runtime.tracing:
        trace_offsets_expired(runtime, None, count)
    start_expiry(runtime)


def _remove_expired(runtime: Runtime, group: Group) -> list[Place]:
    """Source: GroupMetadata.removeExpiredOffsets."""
    if runtime.profile.offsets_carry_expiry:
        now_ms = runtime.wall_ms
        return group.offsets.remove_expired(lambda _, value: value.expire_timestamp < now_ms)
    if not may_expire_offsets(group):
        return []
    in_use = group.subscriptions.topics() or frozenset()

    def expired(place: Place, value: OffsetCommitValue) -> bool:
        return place.topic not in in_use and is_expired(runtime, group, value)

    return group.offsets.remove_expired(expired)
