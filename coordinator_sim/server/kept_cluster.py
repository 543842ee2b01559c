"""The state of a cluster that outlives its process, in a log directory: metadata and records.

A change that the journal cannot write does not take effect, with one exception: a leader resigns
even if the disk is full, and the change is written as soon as there is room.
"""

from collections.abc import Callable, Container
from typing import Final

from msgspec import structs
from msgspec.msgpack import Decoder

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import (
    Change,
    LeaderElected,
    TopicCreated,
    TopicDeleted,
)
from coordinator_sim.broker.metadata.image import MetadataImage, changes_of, topic_id_for
from coordinator_sim.broker.metadata.topic_operations import INTERNAL_TOPICS, internal_configs
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.scheduler import Scheduler
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.disk.log_directory import METADATA_JOURNAL, LogDirectory
from coordinator_sim.errors import ConfigError, InvariantViolation
from coordinator_sim.kafka.partitioning import (
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
)
from coordinator_sim.kafka.topic_names import check_topic_name
from coordinator_sim.log.contract import SegmentStore

_CHANGES: Final[Decoder[Change]] = Decoder(Change)
_INVENTORY_MS: Final = 5_000
"""Interval of writing the inventory; Kafka's `replica.high.watermark.checkpoint.interval.ms`."""


class KeptCluster:
    """A cluster's log directory, opened.

    In a directory with partitions but no journal, as a Kafka broker leaves it, topics are found by
    their folders; other metadata is unknown.

    Args:
        directory: The log directory, locked and just opened.

    Attributes:
        image: The metadata of the last run.
        storage_failed: Called for a partition that could not be flushed.
        trouble: Called with one line when the inventory could not be written.

    Raises:
        ConfigError: the journal is of a newer version, it has a topic with an invalid name, or
            acknowledged data is missing and the directory does not accept that.
        OSError: something cannot be read or repaired.
    """

    def __init__(self, directory: LogDirectory) -> None:
        self._directory = directory
        self._late: list[Change] = []
        self._scheduler: Scheduler | None = None
        self._seen_ms = 0
        self._inventory_due_ms: int | None = None
        self.image = MetadataImage()
        self.storage_failed: Callable[[Place, OSError], None] | None = None
        self.trouble: Callable[[str], None] | None = None
        self._journal, changes = directory.journal(_CHANGES)
        gone: dict[bytes, None] = {}
        has_misfits = self._apply(changes, gone)
        is_complete = changes and not directory.report.losses
        found = [] if is_complete else self._found_topics(gone)
        for created in found:
            self.image.apply(created)
        directory.go_on(self._partitions(), gone)
        if has_misfits:
            directory.rewrite(self._journal, changes_of(self.image), keeps_old=True)
            return
        for created in found:
            self._journal.append(created)

    def _apply(self, changes: list[Change], gone: dict[bytes, None]) -> bool:
        """Apply the journal's changes; return whether some contradict earlier ones."""
        misfits: list[InvariantViolation] = []
        for change in changes:
            if isinstance(change, TopicCreated):
                _check_name(change.name)
            try:
                if isinstance(change, TopicDeleted):
                    gone[self.image.topic(change.name).topic_id] = None
                self.image.apply(change)
            except InvariantViolation as error:
                misfits.append(error)
        if misfits:
            self._directory.lose_metadata(
                f"contradicts itself {len(misfits)} times, first: {misfits[0]}"
            )
        return bool(misfits)

    def _partitions(self) -> dict[Place, bytes]:
        return {
            (name, partition): topic.topic_id
            for name, topic in self.image.topics.items()
            for partition in range(len(topic.partitions))
        }

    def _found_topics(self, gone: Container[bytes]) -> list[TopicCreated]:
        """Topics that are known only by their folders."""
        counts: dict[str, int] = {}
        ids: dict[str, bytes] = {}
        for (topic, partition), topic_id in self._directory.partitions.items():
            if topic not in self.image.topics and topic_id not in gone:
                counts[topic] = max(counts.get(topic, 0), partition + 1)
                if topic_id is not None:
                    ids.setdefault(topic, topic_id)
        node_id = self._directory.meta.node_id
        return [
            TopicCreated(
                topic,
                ids.get(topic) or topic_id_for(topic, 0),
                ((node_id,),) * count,
                internal_configs(topic),
            )
            for topic, count in counts.items()
        ]

    def adapted(self, settings: ClusterSettings) -> ClusterSettings:
        """The settings adapted to the partition counts of the kept internal topics."""
        counts = {
            name: len(self.image.topics[name].partitions)
            for name in INTERNAL_TOPICS
            if name in self.image.topics
        }
        coordinator = settings.coordinator
        if OFFSETS_TOPIC in counts:
            coordinator = structs.replace(
                coordinator, offsets_topic_num_partitions=counts.pop(OFFSETS_TOPIC)
            )
        return structs.replace(
            settings,
            cluster_id=self._directory.meta.cluster_id,
            coordinator=coordinator,
            transaction_partitions=counts.get(TRANSACTIONS_TOPIC, settings.transaction_partitions),
            share_state_partitions=counts.get(SHARE_STATE_TOPIC, settings.share_state_partitions),
        )

    # -- while it is served ------------------------------------------------------------------

    def journal(self, change: Change) -> None:
        """Write a change to the journal before it takes effect.

        Raises:
            OSError: the change could not be written.
        """
        self._directory.is_stale = True
        self._arm_inventory()
        try:
            if self._journal.is_grown:
                self._directory.rewrite(self._journal, changes_of(self.image))
                self._late.clear()
            while self._late:
                self._journal.append(self._late[0])
                del self._late[0]
            self._journal.append(change)
        except OSError:
            if not isinstance(change, LeaderElected):
                raise
            self._late.append(change)

    def new_store(self, topic: str, partition: int, topic_id: bytes) -> SegmentStore:
        """Open the store of a partition; see `partition_logs.NewStore`."""
        return self._directory.store(topic, partition, topic_id)

    def topic_deleted(self, topic: str, _topic_id: bytes, partitions: int, _now: Instants) -> None:
        """Delete the folders of a deleted topic's partitions."""
        for partition in range(partitions):
            self._directory.delete(topic, partition)

    def expire(self, now: Instants) -> None:
        """Flush the logs that are due by `flush.ms`; write the inventory every 5 s."""
        due_ms = self._next_inventory_ms()
        self._seen_ms = now.wall_ms
        for place, error in self._directory.flush_due(now.group_ms):
            if self.storage_failed is not None:
                self.storage_failed(place, error)
        if due_ms is None or now.wall_ms < due_ms:
            return
        self._inventory_due_ms = None
        try:
            self._directory.keep_inventory()
        except OSError as error:
            self._inventory_due_ms = now.wall_ms + _INVENTORY_MS
            if self.trouble is not None:
                self.trouble(f"{error}; the inventory is not up to date")

    def next_group_deadline_ms(self) -> int | None:
        """When the next flush is due, on the group clock."""
        return self._directory.next_flush_ms()

    def schedule(self, scheduler: Scheduler) -> None:
        """Use a scheduler, which calls `expire` in time."""
        self._scheduler = scheduler
        scheduler.watch(self)

    def arm(self) -> None:
        """Arm the scheduler for the next flush and the next writing of the inventory."""
        if self._scheduler is not None:
            self._scheduler.wake_by_group_ms(self.next_group_deadline_ms())
            self._arm_inventory()

    def log_changed(self, topic_partition: Place) -> None:
        """Arm the scheduler for the flush of one log; asking all logs would cost a square."""
        if self._scheduler is not None:
            deadline_ms = self._directory.flush_deadline_ms(*topic_partition)
            self._scheduler.wake_by_group_ms(deadline_ms)
            self._arm_inventory()

    def _arm_inventory(self) -> None:
        if self._scheduler is not None:
            self._scheduler.wake_by_wall_ms(self._next_inventory_ms())

    def _next_inventory_ms(self) -> int | None:
        """When the inventory is written next; None while it is up to date."""
        if self._inventory_due_ms is None and self._directory.is_stale:
            self._inventory_due_ms = self._seen_ms + _INVENTORY_MS
        return self._inventory_due_ms

    # -- leaving -----------------------------------------------------------------------------

    def wipe(self) -> None:
        """Delete everything: a new, empty cluster starts in the same directory."""
        self._directory.wipe()
        self._late.clear()
        self.image = MetadataImage()

    def close(self) -> None:
        """Close the directory cleanly; the logs must be closed before.

        Raises:
            OSError: something could not be written; the next opening recovers.
        """
        self._directory.close(max(self.image.broker_epochs.values(), default=-1))


def _check_name(topic: str) -> None:
    """Refuse a topic name that breaks checkpoints; an earlier version let such names in.

    Raises:
        ConfigError: the name is not valid for a topic.
    """
    try:
        check_topic_name(topic)
    except ConfigError as error:
        raise ConfigError(f"{METADATA_JOURNAL} in the log directory: {error}") from None
