"""Settings of the share coordinator, and what it uses of the rest of the cluster.

Source: kafka 4.3, ShareCoordinatorConfig.java; coordinator-common/.../PartitionWriter.java and
CoordinatorLoader.java.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE, Profile
from coordinator_sim.log.log_values import LogEntry


class ShareCoordinatorConfig(Struct, frozen=True, kw_only=True):
    """The settings of a broker that its share coordinator reads. Defaults are Kafka's.

    Args:
        state_topic_partitions: `share.coordinator.state.topic.num.partitions`.
        updates_per_snapshot: `share.coordinator.snapshot.update.records.per.snapshot`.
        write_timeout_ms: `share.coordinator.write.timeout.ms`.
        append_linger_ms: `share.coordinator.append.linger.ms`; -1 appends as soon as nothing else
            waits.
        prune_interval_ms: `share.coordinator.state.topic.prune.interval.ms`.
        cold_interval_ms: `share.coordinator.cold.partition.snapshot.interval.ms`; None in releases
            without it, which make no such snapshots.
        profile: The Kafka version.
        load_ms: Time that loading a partition with records takes; 0 loads within the election.
    """

    state_topic_partitions: int = 50
    updates_per_snapshot: int = 500
    write_timeout_ms: int = 5_000
    append_linger_ms: int = -1
    prune_interval_ms: int = 300_000
    cold_interval_ms: int | None = 300_000
    profile: Profile = DEFAULT_PROFILE
    load_ms: int = 0


class StateLog(Protocol):
    """The partitions of `__share_group_state`."""

    def append(
        self,
        partition: int,
        leader_epoch: int,
        entries: Sequence[LogEntry],
        now_ms: int,
        times_ms: Sequence[int] = (),
    ) -> ErrorCode:
        """Append one batch, or say why not; see `StateTopic.append`."""
        ...

    def records(self, partition: int) -> Iterable[tuple[int, bytes, bytes | None]]:
        """Offset, key and value of each record of a partition, oldest first."""
        ...

    def end_offset(self, partition: int) -> int:
        """The offset after the last record of a partition."""
        ...

    def high_watermark(self, partition: int) -> int:
        """The offset up to which a partition is committed."""
        ...

    def delete_before(self, partition: int, offset: int) -> ErrorCode:
        """Delete the records before an offset, or say why not."""
        ...


class KnownTopics(Protocol):
    """The cluster's topics, by id."""

    def partition_count(self, topic_id: bytes) -> int | None:
        """How many partitions a topic has; None where there is no such topic."""
        ...
