"""Fetched records on their way to the application, and those in its hands until acknowledged.

Records are offsets with delivery counts: a port hands out no keys or values.

DEVIATION: every record can be deserialised and every batch is intact; Java releases or rejects
the others by itself.

Source: kafka 4.4, clients/.../consumer/internals/ShareInFlightBatch.java,
ShareCompletedFetch.java, ShareFetch.java, ShareFetchBuffer.java, ShareFetchCollector.java.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from coordinator_sim.clients.exceptions import KAFKA, exception_name
from coordinator_sim.clients.share_consumer.acknowledgements import (
    Acknowledgements,
    NodeAcknowledgements,
    TopicIdPartition,
    in_java_order,
)
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.kafka.share_types import AcknowledgeType
from coordinator_sim.log.spans import batches_in
from coordinator_sim.messages.share_fetch import PartitionData

STALE_METADATA: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
)
"""Errors of a partition after which newer metadata is needed."""
_PASSED_OVER: Final = (ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR)


class InFlightBatch:
    """Records that one fetch brought, until each is acknowledged.

    Attributes:
        tip: The partition.
        node_id: The broker that delivered them.
        records: Delivery count of each unacknowledged record, by offset, ascending.
        acknowledgements: What is to be sent.
    """

    __slots__ = (
        "_acknowledged",
        "_renewed",
        "_renewing",
        "acknowledgements",
        "node_id",
        "records",
        "tip",
    )

    def __init__(self, tip: TopicIdPartition, node_id: int) -> None:
        self.tip = tip
        self.node_id = node_id
        self.records: dict[int, int] = {}
        self.acknowledgements = Acknowledgements()
        self._acknowledged: dict[int, None] = {}
        self._renewing: dict[int, int] = {}
        self._renewed: dict[int, int] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a record nor an acknowledgement."""
        return not self.records and not self.acknowledgements.types

    @property
    def has_renewals(self) -> bool:
        """Whether records wait for the outcome of a renewal, or to be handed out again."""
        return bool(self._renewing or self._renewed)

    @property
    def is_all_acknowledged(self) -> bool:
        """Whether the application acknowledged every record (checkAllInFlightAreAcknowledged)."""
        return len(self.records) == len(self._acknowledged)

    def acknowledge(self, offset: int, kind: AcknowledgeType) -> None:
        """Acknowledge one record, or change its type."""
        self.acknowledgements.types[offset] = kind
        self._acknowledged[offset] = None

    def acknowledge_all(self, kind: AcknowledgeType) -> None:
        """Acknowledge the records that are not yet acknowledged."""
        for offset in self.records:
            if offset not in self.acknowledgements.types:
                self.acknowledge(offset, kind)

    def take_acknowledged(self) -> Acknowledgements:
        """Take the acknowledgements off; renewed records wait for the outcome."""
        taken = self.acknowledgements
        for offset in self._acknowledged:
            count = self.records.pop(offset)
            if taken.types[offset] is AcknowledgeType.RENEW:
                self._renewing[offset] = count
        self._acknowledged.clear()
        self.acknowledgements = Acknowledgements()
        return taken

    def renew(self, outcome: Acknowledgements) -> None:
        """Take the outcome of acknowledgements: renewed records may be handed out again."""
        for offset, kind in outcome.types.items() if self._renewing else ():
            count = self._renewing.pop(offset, None)
            if kind is AcknowledgeType.RENEW and count is not None and outcome.error is None:
                self._renewed[offset] = count

    def take_renewed(self) -> None:
        """Hand renewed records out again (takeRenewals)."""
        if self._renewed:
            self.records = dict(sorted((self.records | self._renewed).items()))
            self._renewed.clear()


class CompletedFetch:
    """One partition's part of a ShareFetch response, handed out in portions.

    Attributes:
        tip: The partition.
        node_id: The broker.
        error: The partition's error.
        is_consumed: Whether everything was handed out.
    """

    __slots__ = ("_acquired", "_delivered", "_next", "_records", "error", "is_consumed", "node_id",
                 "tip")  # fmt: skip

    def __init__(self, tip: TopicIdPartition, node_id: int, answer: PartitionData) -> None:
        self.tip = tip
        self.node_id = node_id
        self.error = answer.error_code
        self.is_consumed = False
        acquired = {
            offset: each.delivery_count
            for each in reversed(answer.acquired_records)
            for offset in range(each.first_offset, each.last_offset + 1)
        }
        self._acquired = iter(sorted(acquired.items()))
        self._next = next(self._acquired, None)
        self._records = _records(answer.records or b"")
        self._delivered: InFlightBatch | None = None

    @property
    def awaits_acknowledgements(self) -> bool:
        """Whether records of it are in the application's hands (hasPendingAcknowledgements)."""
        batch = self._delivered
        return batch is not None and (bool(batch.records) or batch.has_renewals)

    def fetch(self, max_records: int) -> InFlightBatch:
        """Hand out the next acquired records, up to the end of a batch of the log.

        Offsets that were acquired but have no record are acknowledged as gaps.

        Source: ShareCompletedFetch.fetchRecords, nextFetchedRecord.
        """
        batch = InFlightBatch(self.tip, self.node_id)
        if not self.awaits_acknowledgements:
            self._delivered = batch
        if self.is_consumed:
            return batch
        has_more = False
        while len(batch.records) < max_records or has_more:
            offset, has_more = next(self._records, (None, False))
            if offset is None:
                self.is_consumed = True
            while self._next is not None:
                wanted, count = self._next
                if offset is not None and offset < wanted:
                    break
                self._next = next(self._acquired, None)
                if offset == wanted:
                    batch.records[wanted] = count
                    break
                batch.acknowledgements.types[wanted] = AcknowledgeType.GAP
            if offset is None:
                break
        return batch


def _records(data: bytes) -> Iterator[tuple[int, bool]]:
    """Yield each record's offset, and whether its batch has more; none of control batches."""
    for batch in batches_in(data):
        if batch.control:
            continue
        offsets: Sequence[int] = range(batch.base_offset, batch.next_offset)
        if batch.count != len(offsets):
            # Compaction left gaps, which only the records show.
            offsets = [record.offset for record in batch.records()]
        for index, offset in enumerate(offsets, 1):
            yield offset, index < len(offsets)


class ShareFetch:
    """Records that the application has, or will get with its present poll."""

    __slots__ = ("_batches",)

    def __init__(self) -> None:
        self._batches: dict[TopicIdPartition, list[InFlightBatch]] = {}

    def add(self, batch: InFlightBatch) -> None:
        """Add a batch of a partition."""
        self._batches.setdefault(batch.tip, []).append(batch)

    def _all(self) -> Iterator[InFlightBatch]:
        for _, batches in in_java_order(self._batches):
            yield from batches

    @property
    def is_empty(self) -> bool:
        """Whether there is no record; batches of which nothing is left are dropped."""
        kept = {
            tip: [each for each in batches if not each.is_empty or each.has_renewals]
            for tip, batches in self._batches.items()
        }
        self._batches = {tip: batches for tip, batches in kept.items() if batches}
        return not any(each.records for each in self._all())

    @property
    def has_renewals(self) -> bool:
        """Whether some record is being renewed, or waits to be handed out again."""
        return any(each.has_renewals for each in self._all())

    @property
    def is_all_acknowledged(self) -> bool:
        """Whether every record is acknowledged (checkAllInFlightAreAcknowledged)."""
        return all(each.is_all_acknowledged for each in self._all())

    def records(self) -> dict[TopicPartition, dict[int, int]]:
        """Return the delivery count of each record by partition and offset."""
        found: dict[TopicPartition, dict[int, int]] = {}
        for batch in self._all():
            if batch.records:
                found.setdefault(batch.tip.topic_partition, {}).update(batch.records)
        return found

    def acknowledge(self, partition: TopicPartition, offset: int, kind: AcknowledgeType) -> bool:
        """Acknowledge a record; return whether the application has it."""
        for tip, batches in self._batches.items():
            for batch in batches if tip.topic_partition == partition else ():
                if offset in batch.records:
                    batch.acknowledge(offset, kind)
                    return True
        return False

    def acknowledge_all(self, kind: AcknowledgeType) -> None:
        """Acknowledge what is not yet acknowledged."""
        for batch in self._all():
            batch.acknowledge_all(kind)

    def take_acknowledged(self) -> dict[TopicIdPartition, NodeAcknowledgements]:
        """Take the acknowledgements off (takeAcknowledgedRecords)."""
        taken: dict[TopicIdPartition, NodeAcknowledgements] = {}
        for tip, batches in in_java_order(self._batches):
            merged = Acknowledgements()
            for batch in batches:
                merged.merge(batch.take_acknowledged())
            if merged.types:
                taken[tip] = NodeAcknowledgements(batches[0].node_id, merged)
        return taken

    def renew(self, outcomes: Mapping[TopicIdPartition, Acknowledgements]) -> None:
        """Take the outcomes of acknowledgements."""
        for tip, outcome in outcomes.items():
            for batch in self._batches.get(tip, ()):
                batch.renew(outcome)

    def take_renewed(self) -> None:
        """Hand renewed records out again (takeRenewedRecords)."""
        for batch in self._all():
            batch.take_renewed()


class ShareFetchBuffer:
    """Responses whose records the application has not got, or not acknowledged.

    Attributes:
        completed: Parts of responses in the order of arrival.
    """

    __slots__ = ("_next_in_line", "_unacknowledged", "completed")

    def __init__(self) -> None:
        self.completed: deque[CompletedFetch] = deque()
        self._next_in_line: CompletedFetch | None = None
        self._unacknowledged: list[CompletedFetch] = []

    def nodes(self) -> dict[int, None]:
        """Return the brokers of the records here or in the application's hands (bufferedNodes)."""
        line = self._next_in_line
        waiting = [] if line is None else [line]
        self._unacknowledged = [e for e in self._unacknowledged if e.awaits_acknowledgements]
        kept = [e for e in waiting if not e.is_consumed or e.awaits_acknowledgements]
        return dict.fromkeys(e.node_id for e in (*kept, *self.completed, *self._unacknowledged))

    def collect(self, max_records: int) -> tuple[ShareFetch, list[TopicPartition], str | None]:
        """Take records off for one poll.

        Returns:
            The records; partitions that need newer metadata; the name of an exception to raise.

        Source: ShareFetchCollector.collect, handleInitializeErrors.
        """
        fetch, left = ShareFetch(), max_records
        stale: list[TopicPartition] = []
        while left > 0:
            line = self._next_in_line
            if line is None or line.is_consumed:
                if not self.completed:
                    break
                first = self.completed[0]
                error = _fatal_error(first)
                if error is not None:
                    if fetch.is_empty:
                        self.completed.popleft()
                        return fetch, stale, error
                    break
                self._set_next_in_line(None if first.error is not ErrorCode.NONE else first)
                if first.error in STALE_METADATA:
                    stale.append(first.tip.topic_partition)
                self.completed.popleft()
                continue
            batch = line.fetch(left)
            if batch.is_empty:
                line.is_consumed = True
            left -= len(batch.records)
            fetch.add(batch)
        return fetch, stale, None

    def _set_next_in_line(self, fetch: CompletedFetch | None) -> None:
        if self._next_in_line is not None and self._next_in_line.awaits_acknowledgements:
            self._unacknowledged.append(self._next_in_line)
        self._next_in_line = fetch


def _fatal_error(fetch: CompletedFetch) -> str | None:
    """Return the exception that a partition's error raises in the poll; None for none."""
    error = fetch.error
    if error is ErrorCode.NONE or error in STALE_METADATA or error in _PASSED_OVER:
        return None
    if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return exception_name(error)
    return KAFKA
