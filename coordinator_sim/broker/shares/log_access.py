"""What share partitions read of the log of a partition: records, and where a group may begin.

Source: kafka 4.3.1, core/.../share/ShareFetchUtils; server/.../share/fetch
/PartitionMaxBytesStrategy.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.records.fetch_request import FetchParams, Isolation
from coordinator_sim.broker.records.fetch_sessions import FetchPlace, FetchTerms, Found
from coordinator_sim.broker.records.log_reads import LogReader, upper_bound
from coordinator_sim.broker.replicas.replica_manager import ReplicaManager
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.counted_batches import declared_size
from coordinator_sim.log.format.steps import finished
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.log.spans import batches_in
from coordinator_sim.messages.share_fetch import AcquiredRecords

T = TypeVar("T")


class LeaderLog:
    """The log of a partition, as long as a broker leads it.

    Args:
        hosted: The partitions that the brokers host.
        broker_id: The broker.
        place: The partition.
        leader_epoch: At which the broker leads it; another one is refused.
    """

    __slots__ = ("_broker_id", "_hosted", "_leader_epoch", "_place")

    def __init__(
        self, hosted: ReplicaManager, broker_id: int, place: Place, leader_epoch: int
    ) -> None:
        self._hosted = hosted
        self._broker_id = broker_id
        self._place = place
        self._leader_epoch = leader_epoch

    def earliest_offset(self) -> int | Refusal:
        """The first offset."""
        return self._asked(lambda log: log.log_start_offset)

    def latest_offset(self) -> int | Refusal:
        """The high watermark: records of open transactions count."""
        return self._asked(lambda log: log.high_watermark)

    def offset_for_timestamp(self, timestamp_ms: int) -> int | Refusal | None:
        """The offset of the first record from an instant on; None if there is none."""

        def find(log: PartitionLog) -> int | None:
            found = finished(log.finding_offset(timestamp_ms, read_committed=False))
            return None if found.offset < 0 else found.offset

        return self._asked(find)

    def _asked(self, ask: Callable[[PartitionLog], T]) -> T | Refusal:
        log = self._hosted.local_log(self._broker_id, self._place, self._leader_epoch)
        if isinstance(log, ErrorCode):
            return Refusal(log, error_message(log))
        found = self._hosted.attempt(self._place, partial(ask, log))
        if isinstance(found, ErrorCode):
            return Refusal(found, error_message(found))
        return found


def bytes_by_place(max_bytes: int, places: Iterable[FetchPlace]) -> dict[FetchPlace, int]:
    """How many bytes are read of each partition: as many of each as may be.

    UNSPECIFIED: what does not divide goes to the first partitions; Kafka draws which.

    Args:
        max_bytes: Of all together, at least 1.
        places: Where the records are read.

    Source: PartitionMaxBytesStrategy.uniformPartitionMaxBytes.
    """
    wanted = list(places)
    share, rest = divmod(max_bytes, len(wanted))
    if not share:
        return {place: int(index < rest) for index, place in enumerate(wanted)}
    return {place: share + (0 if index else rest) for index, place in enumerate(wanted)}


class ShareReader:
    """Reads logs for share fetches at one broker.

    Args:
        hosted: The partitions that the brokers host.
        broker_id: The broker.
    """

    def __init__(self, hosted: ReplicaManager, broker_id: int) -> None:
        self._hosted = hosted
        self._broker_id = broker_id
        self._reader = LogReader(hosted)

    def read(self, params: FetchParams, offsets: dict[FetchPlace, int]) -> Found:
        """Read some partitions, each from its offset on.

        DEVIATION: all are read at once, and the first batch found may exceed the limits. Kafka
        reads those apart whose position it has not cached, and each of both reads has such a batch.
        """
        limits = bytes_by_place(params.max_bytes, offsets)
        wanted = {place: FetchTerms(offset, limits[place]) for place, offset in offsets.items()}
        return self._reader.read(self._broker_id, params, wanted).found

    def is_enough(self, params: FetchParams, offsets: dict[FetchPlace, int]) -> bool:
        """Whether there are enough bytes, or an error that the client must know.

        Source: DelayedShareFetch.isMinBytesSatisfied and anyPartitionHasLogReadError.
        """
        limits = bytes_by_place(params.max_bytes, offsets)
        left_bytes = params.min_bytes
        for place, offset in offsets.items():
            found = self._available_bytes(params, place, offset, limits[place])
            if found is None:
                return True
            left_bytes -= found
        return left_bytes <= 0

    def _available_bytes(
        self, params: FetchParams, place: FetchPlace, offset: int, max_bytes: int
    ) -> int | None:
        """Bytes from an offset on, as far as they count; None when it must be answered now."""
        named = (place.topic or "", place.partition)
        log = self._hosted.local_log(self._broker_id, named)
        if isinstance(log, ErrorCode) or offset < log.log_start_offset:
            return None
        end_offset = upper_bound(log, params.isolation)
        if offset > end_offset:
            return None
        if offset == end_offset or not max_bytes:
            return 0
        if params.min_bytes <= 1:
            return 1
        read = partial(
            log.read,
            offset,
            max_bytes=min(max_bytes, params.min_bytes),
            read_committed=params.isolation is Isolation.LAST_STABLE_OFFSET,
        )
        result = self._hosted.attempt(named, read)
        return None if isinstance(result, ErrorCode) else declared_size(result.records)


def sliced(records: bytes, acquired: tuple[AcquiredRecords, ...]) -> bytes:
    """The batches with what was acquired: those before and after are left out.

    Args:
        records: Whole batches.
        acquired: What was acquired of them; something was.

    Source: ShareFetchUtils.maybeSliceFetchRecords.
    """
    first_offset, last_offset = acquired[0].first_offset, acquired[-1].last_offset
    start = end = 0
    for batch in batches_in(records):
        if end and batch.base_offset > last_offset:
            break
        if batch.base_offset <= first_offset:
            start = batch.position
        end = batch.position + batch.size
    return records[start:end] if end else records
