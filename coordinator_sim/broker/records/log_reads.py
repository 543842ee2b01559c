"""Reads logs for a Fetch: each partition's answer, within the limits of the request.

Source: kafka trunk, ReplicaManager.readFromLog; Partition.fetchRecords, readRecords,
followerReplicaOrThrow; DelayedFetch.tryComplete.
"""

from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.records.fetch_request import FetchParams, Isolation
from coordinator_sim.broker.records.fetch_sessions import (
    NOT_DIVERGING,
    FetchPlace,
    FetchTerms,
    Found,
    Wanted,
)
from coordinator_sim.broker.replicas.replica_manager import NO_EPOCH, ReplicaManager
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.counted_batches import declared_size
from coordinator_sim.log.format.record_batches import CURRENT_MAGIC
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.log.format.stored_batches import next_batch
from coordinator_sim.log.log_values import ReadResult
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.messages.fetch import AbortedTransaction, EpochEndOffset, PartitionData
from coordinator_sim.messages.schema import ZERO_UUID

_NOWHERE: Final = -1
_MAGIC_1_SINCE: Final = 2
MAGIC_2_SINCE: Final = 4
"""Fetch versions that know record formats 1 and 2; earlier ones get converted records."""


def refusal(partition: int, error: ErrorCode) -> PartitionData:
    """The answer of a partition with an error. Source: FetchResponse.partitionResponse."""
    return PartitionData(
        partition_index=partition,
        error_code=error,
        high_watermark=_NOWHERE,
        aborted_transactions=None,
        records=b"",
    )


class ReadPartitions(Struct, frozen=True):
    """The data read for a Fetch.

    Args:
        found: The partitions' answers, in the order of reading.
        size_bytes: Size of all records.
        is_urgent: Whether an answer has an error or a diverging epoch, which the client must know.
    """

    found: Found
    size_bytes: int
    is_urgent: bool

    def is_enough(self, min_bytes: int) -> bool:
        """Whether the answer can be sent without waiting for more."""
        return self.is_urgent or self.size_bytes >= min_bytes


class LogReader:
    """Reads partitions for fetches."""

    __slots__ = ("_partitions",)

    def __init__(self, partitions: ReplicaManager) -> None:
        self._partitions = partitions

    def read(self, broker_id: int, params: FetchParams, wanted: Wanted) -> ReadPartitions:
        """Read partitions in their order.

        DEVIATION: whole batches only; Kafka fills an answer up to its limit with the beginning of
        a batch, which every client skips.

        The first batch found is returned even if it exceeds the limits, so that a consumer can make
        progress.
        """
        left_bytes = params.max_bytes
        size_bytes = 0
        is_urgent = False
        found: Found = {}
        for place, terms in wanted.items():
            at_least_one = not params.has_hard_limit and not size_bytes
            limit = min(terms.max_bytes, left_bytes)
            answer = self._read(broker_id, params, place, terms, (limit, at_least_one))
            found[place] = answer
            records_bytes = declared_size(answer.records or b"")
            size_bytes += records_bytes
            left_bytes = max(0, left_bytes - records_bytes)
            is_urgent = (
                is_urgent
                or answer.error_code is not ErrorCode.NONE
                or answer.diverging_epoch != NOT_DIVERGING
            )
        return ReadPartitions(found, size_bytes, is_urgent)

    def _read(
        self,
        broker_id: int,
        params: FetchParams,
        place: FetchPlace,
        terms: FetchTerms,
        limit: tuple[int, bool],
    ) -> PartitionData:
        log = self._readable_log(broker_id, params, place, terms)
        if isinstance(log, ErrorCode):
            return refusal(place.partition, log)
        diverging = diverging_epoch(log, terms)
        if isinstance(diverging, ErrorCode):
            return refusal(place.partition, diverging)
        if diverging is not None:
            return _diverged(log, place.partition, diverging)
        read = partial(_read_log, log, params, terms, limit)
        result = self._partitions.attempt(_named(place), read)
        if isinstance(result, ErrorCode):
            return refusal(place.partition, result)
        if result.error is not ErrorCode.NONE:
            return refusal(place.partition, result.error)
        records = result.records
        is_old = params.version < MAGIC_2_SINCE
        is_converted = is_old and log.config.message_format_magic >= CURRENT_MAGIC
        if params.has_hard_limit and not records and not is_converted:
            records = result.cut_off
        return _answer(place.partition, result, records)

    def for_old_reader(
        self, broker_id: int, params: FetchParams, wanted: Wanted, found: Found
    ) -> Steps[Found]:
        """Convert the records read to a format that an old version of Fetch knows.

        Args:
            broker_id: The broker that read the records.
            params: Parameters of the fetch.
            wanted: The partitions that were read.
            found: The answers of `read`.

        Source: KafkaApis.maybeConvertFetchedData; limits apply before the conversion.
        """
        max_magic = int(params.version >= _MAGIC_1_SINCE)
        converted: Found = {}
        for place, answer in found.items():
            converted[place] = answer
            log = self._partitions.hosted(broker_id, _named(place))
            records = answer.records
            if isinstance(log, ErrorCode) or not records or next_batch(records, 0) is None:
                continue
            steps = log.for_old_reader(
                records, wanted[place].fetch_offset, max_magic, answer.high_watermark
            )
            old = yield from self._partitions.attempt_in_steps(_named(place), steps)
            if old is None:
                old = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
            if isinstance(old, ErrorCode):
                converted[place] = refusal(place.partition, old)
            else:
                converted[place] = replace(answer, records=old)
        return converted

    def _readable_log(
        self, broker_id: int, params: FetchParams, place: FetchPlace, terms: FetchTerms
    ) -> PartitionLog | ErrorCode:
        """The log, or the error why the broker may not read it; the checks are in Kafka's order."""
        partitions = self._partitions
        named = _named(place)
        log = partitions.hosted(broker_id, named)
        if isinstance(log, ErrorCode):
            return log
        topic = partitions.image.topics[named[0]]
        if place.topic_id not in (ZERO_UUID, topic.topic_id):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        epoch = terms.current_leader_epoch
        log = partitions.local_log(broker_id, named, epoch, leader_only=params.leader_only)
        if isinstance(log, ErrorCode) or not params.is_follower:
            return log
        followers = topic.partitions[place.partition].replicas
        if params.replica_id in followers and params.replica_id != broker_id:
            return log
        # A follower that is not in the replicas: its metadata may be newer than this broker's.
        if epoch == NO_EPOCH:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def available_bytes(
        self, broker_id: int, params: FetchParams, place: FetchPlace, terms: FetchTerms
    ) -> int | None:
        """Bytes that a waiting fetch would get of a partition; None when it must be answered now.

        Source: DelayedFetch.tryComplete, cases A to H.
        """
        log = self._readable_log(broker_id, params, place, terms)
        if isinstance(log, ErrorCode) or diverging_epoch(log, terms) is not None:
            return None
        end_offset = upper_bound(log, params.isolation)
        if terms.fetch_offset > end_offset or terms.fetch_offset < log.log_start_offset:
            return None
        if terms.fetch_offset == end_offset:
            return 0
        if params.min_bytes <= 1:
            return params.min_bytes
        wanted = min(terms.max_bytes, params.min_bytes)
        read = partial(_read_log, log, params, terms, (wanted, True))
        result = self._partitions.attempt(_named(place), read)
        if isinstance(result, ErrorCode):
            return None
        return min(declared_size(result.records), terms.max_bytes)


def upper_bound(log: PartitionLog, isolation: Isolation) -> int:
    """The offset before which a fetch with this isolation may read."""
    if isolation is Isolation.LOG_END:
        return log.end_offset
    if isolation is Isolation.HIGH_WATERMARK:
        return log.high_watermark
    return log.last_stable_offset


def diverging_epoch(log: PartitionLog, terms: FetchTerms) -> EpochEndOffset | ErrorCode | None:
    """Where the follower's log diverges from this one; None if it does not, or sent no epoch.

    Source: Partition.readRecords, from KIP-595 on.
    """
    if terms.last_fetched_epoch == NO_EPOCH:
        return None
    end = log.end_offset_for_epoch(terms.last_fetched_epoch)
    if end.end_offset == _NOWHERE or end.leader_epoch == NO_EPOCH:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if terms.fetch_offset < log.log_start_offset:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if end.leader_epoch < terms.last_fetched_epoch or end.end_offset < terms.fetch_offset:
        return EpochEndOffset(end.leader_epoch, end.end_offset)
    return None


def _read_log(
    log: PartitionLog, params: FetchParams, terms: FetchTerms, limit: tuple[int, bool]
) -> ReadResult:
    max_bytes, at_least_one = limit
    return log.read(
        terms.fetch_offset,
        max_bytes=max_bytes,
        read_committed=params.isolation is Isolation.LAST_STABLE_OFFSET,
        min_one_batch=at_least_one,
        to_end=params.isolation is Isolation.LOG_END,
    )


def _diverged(log: PartitionLog, partition: int, diverging: EpochEndOffset) -> PartitionData:
    return PartitionData(
        partition_index=partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        diverging_epoch=diverging,
        aborted_transactions=None,
        records=b"",
    )


def _answer(partition: int, result: ReadResult, records: bytes) -> PartitionData:
    aborted = None
    if result.aborted is not None:
        aborted = tuple(
            AbortedTransaction(each.producer_id, each.first_offset) for each in result.aborted
        )
    return PartitionData(
        partition_index=partition,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        aborted_transactions=aborted,
        records=records,
    )


def _named(place: FetchPlace) -> Place:
    return place.topic or "", place.partition
