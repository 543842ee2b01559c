"""What of a cluster outlives its process, in a log directory: metadata and records.

What a journal cannot take did not happen, with one exception: a leader that resigns because the
disk is full resigns all the same, and the journal hears of it as soon as there is room.
"""

from collections.abc import Callable
from typing import Final

from msgspec import structs
from msgspec.msgpack import Decoder

from coordinator_sim.broker.topics import topic_id_for
from coordinator_sim.errors import ConfigError
from coordinator_sim.mini_broker.changes import Change, LeaderElected, TopicCreated
from coordinator_sim.mini_broker.contract import Instants
from coordinator_sim.mini_broker.image import ClusterImage
from coordinator_sim.mini_broker.image_changes import changes_of
from coordinator_sim.mini_broker.purgatory import Place
from coordinator_sim.mini_broker.settings import ClusterSettings
from coordinator_sim.mini_broker.topics import INTERNAL_TOPICS, internal_configs
from coordinator_sim.protocol.partitioning import OFFSETS_TOPIC
from coordinator_sim.protocol.topic_names import check_topic_name
from coordinator_sim.storage.contract import SegmentStore
from coordinator_sim.storage.log_directory import METADATA_JOURNAL, LogDirectory

_CHANGES: Final[Decoder[Change]] = Decoder(Change)


class KeptCluster:
    """A cluster's log directory, opened.

    Topics of a directory that has partitions and no journal, as a Kafka broker leaves it, are
    found by their folders; of its other metadata nothing is known.

    Args:
        directory: Locked, and recovered.

    Attributes:
        image: The metadata as it was left.
        storage_failed: Hears of a partition that could not be flushed.

    Raises:
        ConfigError: the journal is none, or one of a newer version, or it has a topic whose name no
            topic may have.
        OSError: it cannot be read.
    """

    __slots__ = ("_directory", "_journal", "_late", "image", "storage_failed")

    def __init__(self, directory: LogDirectory) -> None:
        self._directory = directory
        self._late: list[Change] = []
        self.image = ClusterImage()
        self.storage_failed: Callable[[Place, OSError], None] | None = None
        self._journal, changes = directory.journal(_CHANGES)
        for change in changes:
            if isinstance(change, TopicCreated):
                _check_name(change.name)
            self.image.apply(change)
        if not changes:
            self._find_topics()
        for topic, partition in list(directory.partitions):
            if self.image.partition(topic, partition) is None:
                directory.put_aside(topic, partition)

    def _find_topics(self) -> None:
        """Topics that only their folders tell of."""
        counts: dict[str, int] = {}
        for topic, partition in self._directory.partitions:
            counts[topic] = max(counts.get(topic, 0), partition + 1)
        for topic, count in counts.items():
            known = (self._directory.partitions.get((topic, each)) for each in range(count))
            topic_id = next((each for each in known if each is not None), topic_id_for(topic, 0))
            node_id = self._directory.meta.node_id
            created = TopicCreated(topic, topic_id, ((node_id,),) * count, internal_configs(topic))
            self._journal.append(created)
            self.image.apply(created)

    def adapted(self, settings: ClusterSettings) -> ClusterSettings:
        """The settings of a cluster that goes on with this."""
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
            transaction_partitions=next(iter(counts.values()), settings.transaction_partitions),
        )

    # -- while it is served ------------------------------------------------------------------

    def journal(self, change: Change) -> None:
        """Keep a change before it takes effect.

        Raises:
            OSError: it could not be kept.
        """
        try:
            if self._journal.is_grown:
                self._journal.rewrite(changes_of(self.image))
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
        """The store of a partition; as `PartitionLogs` wants it."""
        return self._directory.store(topic, partition, topic_id)

    def topic_deleted(self, topic: str, _topic_id: bytes, partitions: int, _now: Instants) -> None:
        """A topic is gone, with the folders that nobody had opened."""
        for partition in range(partitions):
            self._directory.delete(topic, partition)

    def expire(self, now: Instants) -> None:
        """Flush what `flush.ms` wants flushed by now."""
        for place, error in self._directory.flush_due(now.group_ms):
            if self.storage_failed is not None:
                self.storage_failed(place, error)

    def next_group_deadline_ms(self) -> int | None:
        """When the next flush is due, on the clock of appends."""
        return self._directory.next_flush_ms()

    def next_wall_deadline_ms(self) -> int | None:
        """None: nothing here goes by the wall."""
        return None

    # -- leaving -----------------------------------------------------------------------------

    def wipe(self) -> None:
        """Keep nothing of what there is: a cluster begins from nothing in the same directory."""
        self._directory.wipe()
        self._late.clear()
        self.image = ClusterImage()

    def close(self) -> None:
        """Leave in order; the logs were closed before.

        Raises:
            OSError: something could not be written; the next opening recovers.
        """
        self._directory.close(max(self.image.broker_epochs.values(), default=-1))


def _check_name(topic: str) -> None:
    """Refuse a journal into which an earlier version let a name that breaks checkpoints.

    Raises:
        ConfigError: no topic may have that name.
    """
    try:
        check_topic_name(topic)
    except ConfigError as error:
        raise ConfigError(f"{METADATA_JOURNAL} in the log directory: {error}") from None
