"""The log of `__consumer_offsets` behind the group coordinators: written before anybody is told.

A coordinator gives each batch to its `PartitionWriter` before it takes it: what cannot be stored is
refused, and so is never acknowledged.

Source: kafka trunk, PartitionWriterImpl.scala (append), CoordinatorLoaderImpl.scala (load).
"""

import errno
from collections.abc import Callable, Iterator

from msgspec import structs

from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.log.format.consumer_records import typed
from coordinator_sim.log.format.log_batches import BatchForm, form_of, log_batches_of
from coordinator_sim.log.format.segments import SegmentReader
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.records import LogBatch, LogKey, OpaqueKey

FindLog = Callable[[str, int], PartitionLog | None]
"""The log of a partition; None when there is no such partition."""

MediumFailed = Callable[[Place, OSError], None]
"""Hears that a log could not be written."""


ReadFailed = Callable[[int], None]
"""Hears that a broker's files of a partition could not be read."""


class OffsetsTopic:
    """Every partition's log, as group coordinators write and load it.

    Args:
        profile: How batches are put into the log.
        hosted: The logs as the brokers may use them, with faults of appends.
        log_of: See `FindLog`.
        medium_failed: See `MediumFailed`.
        cluster_events: Readers of the topic hear of appends.
    """

    __slots__ = (
        "_apart",
        "_cluster_events",
        "_form",
        "_forms",
        "_hosted",
        "_log_of",
        "_medium_failed",
        "_reads_consumer_groups",
        "_unreadable",
    )

    def __init__(
        self,
        profile: Profile,
        hosted: ReplicaManager,
        log_of: FindLog,
        *,
        medium_failed: MediumFailed,
        cluster_events: ClusterEvents,
    ) -> None:
        self._form = form_of(profile)
        self._reads_consumer_groups = profile.has_coordinator_runtime
        self._forms: dict[int, BatchForm] = {}
        self._hosted = hosted
        self._log_of = log_of
        self._medium_failed = medium_failed
        self._cluster_events = cluster_events
        self._apart: dict[tuple[int, int], None] = {}
        self._unreadable: dict[int, tuple[str, ReadFailed]] = {}

    def part(self, broker_id: int, partition: int) -> None:
        """Keep what a broker appends to a partition out of the log, as a copy that is truncated."""
        self._apart[broker_id, partition] = None

    def follow(self, broker_id: int, partition: int) -> None:
        """End what `part` began: the broker's copy is the log again."""
        self._apart.pop((broker_id, partition), None)

    def fail_reads(self, broker_id: int, prefix: str, told: ReadFailed) -> None:
        """Let a broker's reads of its own copies fail, of folders whose name begins so.

        A leader reads what followers fetch, and what its coordinator loads; what it appends then is
        on no other broker.
        """
        self._unreadable[broker_id] = (prefix, told)

    def mend_reads(self, broker_id: int) -> None:
        """End what `fail_reads` began."""
        self._unreadable.pop(broker_id, None)

    def writer_of(self, broker_id: int) -> "BrokerPartitionWriter":
        """The `PartitionWriter` of one broker's coordinator."""
        return BrokerPartitionWriter(self, broker_id)

    def append(self, broker_id: int, batch: LogBatch) -> ErrorCode:
        """Store a batch, or say why not; a leader that was deposed stores nothing."""
        hosted = self._hosted
        if hosted.append_failure is not NO_ERROR:
            return hosted.append_failure
        if self._apart and (broker_id, batch.partition) in self._apart:
            return NO_ERROR
        place = (OFFSETS_TOPIC, batch.partition)
        state = hosted.image.partition(*place)
        if state is None or state.leader_id != broker_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not batch.records and batch.marker is None:
            return NO_ERROR
        if len(state.isr) > 1 and self._does_read_fail(broker_id, batch.partition):
            return NO_ERROR
        try:
            log = self._log_of(*place)
            if log is None:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if hosted.before_append is not None:
                hosted.before_append(place)
            form = self._forms.get(state.leader_epoch) or self._form_at(state.leader_epoch)
            error = log.append_batch(batch, now_ms=batch.timestamp_ms, form=form)
        except OSError as failure:
            self._medium_failed(place, failure)
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._cluster_events.touched(place)
        return error

    def has_records(self, partition: int) -> bool:
        """Whether one partition holds anything to load."""
        log = self._log_of(OFFSETS_TOPIC, partition)
        return log is not None and log.end_offset > 0

    def is_readable(self, broker_id: int, partition: int) -> bool:
        """Whether a broker can load a partition from its own copy; an empty one is not read."""
        return not (self.has_records(partition) and self._does_read_fail(broker_id, partition))

    def _does_read_fail(self, broker_id: int, partition: int) -> bool:
        """Whether reading a broker's replica fails; reports the failure to storage listeners."""
        unreadable = self._unreadable.get(broker_id)
        if unreadable is None:
            return False
        prefix, told = unreadable
        if not folder_of(partition).startswith(prefix):
            return False
        told(partition)
        return True

    def batches(self, partition: int) -> Iterator[LogBatch]:
        """What one partition holds, for a coordinator that loads it.

        Raises:
            OSError: the medium fails, or a batch is damaged.
        """
        log = self._log_of(OFFSETS_TOPIC, partition)
        if log is None:
            return
        keys: dict[bytes, LogKey] = {}
        reached = 0
        for chunk in log.chunks():
            reader = SegmentReader(chunk)
            for stored in reader:
                for batch in log_batches_of(stored, partition, keys):
                    reached = batch.next_offset
                    yield self._typed(batch) if self._reads_consumer_groups else batch
            if reader.damage is not None:
                name = f"{OFFSETS_TOPIC}-{partition}"
                raise OSError(errno.EIO, f"after offset {reached}: {reader.damage.reason}", name)
        if reached < log.end_offset:
            yield LogBatch(
                partition=partition, base_offset=log.end_offset, timestamp_ms=0, records=()
            )

    def _typed(self, batch: LogBatch) -> LogBatch:
        """A batch with the records of consumer groups as what they say.

        Raises:
            OSError: a record cannot be read.
        """
        if not any(isinstance(record.key, OpaqueKey) for record in batch.records):
            return batch
        try:
            return structs.replace(batch, records=tuple(map(typed, batch.records)))
        except WireFormatError as error:
            name = f"{OFFSETS_TOPIC}-{batch.partition}"
            text = f"at offset {batch.base_offset}: {error}"
            raise OSError(errno.EIO, text, name) from None

    def unreadable(self, partition: int, failure: OSError) -> None:
        """Tell that a partition cannot be loaded."""
        self._medium_failed((OFFSETS_TOPIC, partition), failure)

    def _form_at(self, leader_epoch: int) -> BatchForm:
        form = structs.replace(self._form, leader_epoch=leader_epoch)
        self._forms[leader_epoch] = form
        return form


def folder_of(partition: int) -> str:
    """Return the name of the folder in which a broker keeps a partition."""
    return f"{OFFSETS_TOPIC}-{partition}"


class BrokerPartitionWriter:
    """Writes the batches of one broker's coordinator; a `PartitionWriter`."""

    __slots__ = ("_broker_id", "_topic")

    def __init__(self, topic: OffsetsTopic, broker_id: int) -> None:
        self._topic = topic
        self._broker_id = broker_id

    def append(self, batch: LogBatch) -> ErrorCode:
        """Write the batch, or say why not; see `PartitionWriter.append`."""
        return self._topic.append(self._broker_id, batch)

    def takes_unacknowledged(self, batch: LogBatch) -> bool:
        """Write the batch; False where it could not be written."""
        return self._topic.append(self._broker_id, batch) is NO_ERROR
