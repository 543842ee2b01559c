"""A share fetch under way: it waits for records that it may acquire, and acquires them.

Source: kafka 4.3.1, core/.../share/DelayedShareFetch, ShareFetchUtils.processFetchResponse;
server/.../share/fetch/ShareFetch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.records.fetch_request import FetchParams, Isolation
from coordinator_sim.broker.records.fetch_sessions import FetchPlace
from coordinator_sim.broker.shares.answers import Found, unread
from coordinator_sim.broker.shares.log_access import ShareReader, sliced
from coordinator_sim.broker.shares.persister import SharePartitionKey
from coordinator_sim.broker.shares.sessions import SessionKey
from coordinator_sim.broker.shares.share_partition import SharePartition
from coordinator_sim.broker.shares.share_values import (
    AcquireRequest,
    fetched_batches,
)
from coordinator_sim.coordinator.epoch_refusals import Refusal
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.share_types import ShareAcquireMode
from coordinator_sim.messages.fetch import PartitionData as LogData
from coordinator_sim.messages.share_fetch import PartitionData

WatchKey = SharePartitionKey | Place
"""What share fetches wait on: a share partition, or the log of a partition."""


class ShareFetch(NamedTuple):
    """What a member fetches.

    Args:
        key: The member.
        params: Bytes, waiting, isolation.
        acquire_mode: 0 rounds up to whole batches, 1 takes no more than `max_records`.
        epoch: Of its session, by which the partitions take turns to be first.
        max_records: How many it takes at most, about.
        batch_size: In how large a piece they are acquired, about.
        places: From where.
        connection: By which it came.
    """

    key: SessionKey
    params: FetchParams
    acquire_mode: int
    epoch: int
    max_records: int
    batch_size: int
    places: tuple[FetchPlace, ...]
    connection: int


class FetchingBroker(Protocol):
    """The share partitions of a broker, as far as a fetch changes them."""

    reader: ShareReader
    now: Instants

    def earliest_offset(self, place: FetchPlace, leader_epoch: int) -> int | Refusal:
        """Where a log begins that the broker leads at an epoch."""
        ...

    def fence(self, key: SharePartitionKey, refusal: Refusal) -> None:
        """Forget a share partition if the error says that it is another broker's."""
        ...

    def released(self, key: SharePartitionKey, place: Place) -> None:
        """Others may fetch from a share partition again."""
        ...


@dataclass(slots=True)
class DelayedShareFetch:
    """One share fetch.

    Args:
        broker: Whose share partitions they are.
        fetch: What is fetched.
        fetch_id: Names it at the share partitions' locks.
        then: Takes the answer.

    Attributes:
        partitions: The share partitions, in the order of fetching.
        erroneous: Why others cannot be used.
    """

    broker: FetchingBroker
    fetch: ShareFetch
    fetch_id: int
    then: Callable[[Found], None]
    partitions: dict[FetchPlace, SharePartition] = field(default_factory=dict)
    erroneous: dict[FetchPlace, Refusal] = field(default_factory=dict)
    _is_over: bool = False

    def finish(self, found: Found) -> None:
        """Answer, once: with what was found, and why other partitions could not be used."""
        if self._is_over:
            return
        self._is_over = True
        refused = {
            place: unread(place, refusal.error, refusal.text)
            for place, refusal in self.erroneous.items()
        }
        self.then(found | refused)

    def try_complete(self, _key: WatchKey) -> bool:
        """Answer if there are enough bytes of what may be acquired, or an error."""
        if self._is_over:
            return True
        offsets = self._acquirable()
        if not offsets:
            return False
        if not self.broker.reader.is_enough(self.fetch.params, offsets):
            self._unlock(offsets)
            return False
        self._complete(offsets)
        return True

    def expire(self) -> None:
        """Answer with whatever may be acquired now."""
        if self._is_over:
            return
        offsets = self._acquirable()
        if offsets:
            self._complete(offsets)
        else:
            self.finish({})

    def abandon(self) -> None:
        """End it without an answer, and acquire nothing: its client is gone.

        DEVIATION: Kafka looks at a connection only when it has answered, and so acquires records
        for a client that is gone, which are released when that is noticed.
        """
        self._is_over = True

    def _acquirable(self) -> dict[FetchPlace, int]:
        """The partitions that nobody else fetches from and that have room, and from where on.

        They are locked against other fetches. Source: DelayedShareFetch.acquirablePartitions.
        """
        offsets: dict[FetchPlace, int] = {}
        for place, partition in self.partitions.items():
            if not partition.maybe_acquire_fetch_lock(self.fetch_id):
                continue
            if partition.can_acquire_records():
                offsets[place] = partition.next_fetch_offset()
            else:
                partition.release_fetch_lock(self.fetch_id)
        return offsets

    def _unlock(self, places: dict[FetchPlace, int]) -> None:
        for place in places:
            self.partitions[place].release_fetch_lock(self.fetch_id)

    def _complete(self, offsets: dict[FetchPlace, int]) -> None:
        """Read, acquire, answer; others have their turn afterwards.

        Source: processAcquiredTopicPartitionsForLocalLogFetch.
        """
        wanted = {each: at for each, at in offsets.items() if each not in self.erroneous}
        try:
            found = self._acquired(wanted)
        except OperationAborted as error:
            found = {}
            refusal = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
            self.erroneous |= dict.fromkeys(offsets, refusal)
        self._unlock(offsets)
        self.finish(found)
        for place in offsets:
            named = (place.topic or "", place.partition)
            self.broker.released(self._key(place), named)

    def _acquired(self, offsets: dict[FetchPlace, int]) -> Found:
        found: Found = {}
        left = self.fetch.max_records
        read = self.broker.reader.read(self.fetch.params, offsets) if offsets else {}
        for place, data in read.items():
            answer, count = self._processed(place, offsets[place], data, left)
            left -= count
            if answer is not None:
                found[place] = answer
        return found

    def _processed(
        self, place: FetchPlace, offset: int, data: LogData, max_records: int
    ) -> tuple[PartitionData | None, int]:
        """What is answered of one partition, and how many records were acquired.

        Source: ShareFetchUtils.processFetchResponse.
        """
        if data.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
            return self._moved(place), 0
        if data.error_code is not ErrorCode.NONE:
            return unread(place, data.error_code), 0
        params = self.fetch.params
        records = data.records or b""
        acquired = self.partitions[place].acquire(
            AcquireRequest(
                member_id=self.fetch.key.member_id,
                mode=ShareAcquireMode(self.fetch.acquire_mode),
                batch_size=self.fetch.batch_size,
                max_fetch_records=max_records,
                fetch_offset=offset,
                batches=fetched_batches(records),
                aborted=data.aborted_transactions or (),
                is_read_committed=params.isolation is Isolation.LAST_STABLE_OFFSET,
            ),
            self.broker.now,
        )
        if not acquired.records:
            return unread(place, ErrorCode.NONE), 0
        answer = PartitionData(
            partition_index=place.partition,
            records=sliced(records, acquired.records),
            acquired_records=acquired.records,
        )
        return answer, acquired.count

    def _moved(self, place: FetchPlace) -> PartitionData | None:
        """The log begins later than the share partition: that goes on where the log begins."""
        partition = self.partitions[place]
        start = self.broker.earliest_offset(place, partition.leader_epoch)
        if not isinstance(start, Refusal):
            partition.update_cache_and_offsets(start)
            return unread(place, ErrorCode.NONE)
        self.erroneous[place] = start
        self.broker.fence(self._key(place), start)
        return None

    def _key(self, place: FetchPlace) -> SharePartitionKey:
        return SharePartitionKey(self.fetch.key.group_id, place.topic_id, place.partition)
