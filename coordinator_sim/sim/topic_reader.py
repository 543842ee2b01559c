"""The consumer of one internal topic: fetches, transfers and the processing of records.

As in Java, a broker is asked only for partitions without buffered records, one request at a time;
so the thread's work on records overlaps the next fetches.

Source: kafka trunk, clients/.../consumer/internals/AbstractFetch.java, FetchCollector.java.
"""

from collections import deque
from collections.abc import Callable
from typing import Final, cast

from msgspec import Struct

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.effects import Fetched
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from coordinator_sim.sim.fetched_records import FetchedPart, fetched_part
from coordinator_sim.sim.kafka_client import KafkaClient, leader_of
from coordinator_sim.sim.scenario.world import TopicCosts
from coordinator_sim.sim.topic_admin import EARLIEST, READ_COMMITTED, list_offsets
from coordinator_sim.sim.world import US_PER_MS

FETCH_MAX_WAIT_MS: Final = 500
"""`fetch.max.wait.ms`."""
_LONGEST_WAIT_MS: Final = 2**31 - 1
"""Longest wait that a Fetch can ask for: an idle consumer costs no events."""
_US_PER_S: Final = 1_000_000
_NS_PER_US: Final = 1_000


class _InFlight(Struct, frozen=True):
    """A fetch without an answer, and when it was sent."""

    pending: Pending[object]
    partitions: tuple[int, ...]
    sent_ms: int


class _Buffered(Struct, frozen=True, gc=False):
    """Fetched records of a partition, and when their last byte arrived."""

    part: FetchedPart
    arrived_us: int


class TopicReader:
    """Reads all partitions of a topic from the beginning, for ever.

    Args:
        client: The consumer's connections.
        topic: Topic to read.
        read_committed: Whether records of open and aborted transactions stay hidden.
        costs: Costs of reading.
        fetched: Takes the records of each poll.
    """

    __slots__ = (
        "_buffered",
        "_busy_until_us",
        "_client",
        "_costs",
        "_fetched",
        "_in_flight",
        "_positions",
        "_read_committed",
        "_retry_at_ms",
        "_stopped",
        "_topic",
        "record_count",
    )

    def __init__(
        self,
        client: KafkaClient,
        topic: str,
        *,
        read_committed: bool,
        costs: TopicCosts,
        fetched: Callable[[Fetched], None],
    ) -> None:
        self._client = client
        self._topic = topic
        self._read_committed = read_committed
        self._costs = costs
        self._fetched = fetched
        self._positions: dict[int, int] = {}
        self._in_flight: dict[int, _InFlight] = {}
        self._buffered: deque[_Buffered] = deque()
        self._busy_until_us = 0
        self._retry_at_ms = 0
        self._stopped: Pending[object] = Pending()
        self.record_count = 0
        """Records handed over so far, including those of runs."""

    def stop(self) -> None:
        """End the thread and close the connections."""
        self._stopped.complete()
        self._client.close()

    def run(self) -> Blocking[None]:
        """Run the consumer's thread."""
        yield from self._seek_to_beginning()
        while not self._stopped.done:
            self._take_answers()
            self._work()
            self._send_fetches()
            flying = (flight.pending for flight in self._in_flight.values())
            yield Wait(self._stopped, *flying, until_ms=self._next_ms())

    def _leader_of(self, partition: int) -> int | None:
        return leader_of(self._client, self._topic, partition)

    def _seek_to_beginning(self) -> Blocking[None]:
        """Look up where each partition begins, as a consumer without committed offsets does."""
        self._positions = yield from list_offsets(
            self._client, self._topic, EARLIEST, deadline_ms=FOREVER
        )

    def _take_answers(self) -> None:
        for broker_id, flight in list(self._in_flight.items()):
            if not flight.pending.done:
                continue
            del self._in_flight[broker_id]
            if flight.pending.error is not None:
                self._retry_at_ms = self._client.now_ms + self._client.backoff_ms(0)
                continue
            self._buffer(cast("FetchResponse", flight.pending.result()))

    def _buffer(self, response: FetchResponse) -> None:
        """Keep the records; look for another leader after the backoff if one was refused."""
        costs = self._costs
        parts: list[FetchedPart] = []
        for topic in response.responses:
            for answer in topic.partitions:
                if answer.error_code is not ErrorCode.NONE:
                    self._retry_at_ms = self._client.now_ms + self._client.backoff_ms(0)
                    continue
                part = fetched_part(answer, self._positions[answer.partition_index])
                if part is not None:
                    parts.append(part)
        size_bytes = sum(part.size_bytes for part in parts)
        way_us = costs.fetch_us + size_bytes * _US_PER_S // costs.bytes_per_s
        arrived_us = self._client.world.environment.now_us + way_us
        self._buffered.extend(_Buffered(part, arrived_us) for part in parts)

    def _work(self) -> None:
        """Hand over the records that the thread has finished by now."""
        now_us = self._client.world.environment.now_us
        while self._buffered:
            head = self._buffered[0]
            done_us = self._done_us(head)
            # The clock of threads counts milliseconds: less than one is done at once, and the
            # remainder is added before the next piece.
            if done_us - now_us >= US_PER_MS:
                return
            self._busy_until_us = done_us
            self._buffered.popleft()
            self._hand_over(head.part)

    def _done_us(self, head: _Buffered) -> int:
        costs, part = self._costs, head.part
        work_us = part.record_count * costs.record_ns // _NS_PER_US
        work_us += part.size_bytes * _US_PER_S // costs.work_bytes_per_s
        return max(self._busy_until_us, head.arrived_us) + work_us

    def _hand_over(self, part: FetchedPart) -> None:
        self._positions[part.partition] = part.next_offset
        self.record_count += part.record_count
        self._fetched(
            Fetched(
                topic=self._topic,
                records=part.records,
                positions={part.partition: part.next_offset},
            )
        )

    def _send_fetches(self) -> None:
        """Ask every leader without a request in flight for all fetchable partitions."""
        now_ms = self._client.now_ms
        if now_ms < self._retry_at_ms:
            return
        wanted: dict[int, dict[int, int]] = {}
        for partition, leader_id in self._fetchable():
            if leader_id is None:
                self._retry_at_ms = now_ms + self._client.backoff_ms(0)
                continue
            again = self._taken_back(leader_id, now_ms)
            if again is not None:
                wanted.setdefault(leader_id, again)[partition] = self._positions[partition]
        for leader_id, positions in wanted.items():
            request = self._fetch(positions)
            pending = self._client.request(leader_id, request, timeout_ms=FOREVER - now_ms)
            self._in_flight[leader_id] = _InFlight(pending, tuple(positions), now_ms)

    def _fetch(self, positions: dict[int, int]) -> FetchRequest:
        partitions = tuple(
            FetchPartition(
                partition=partition,
                fetch_offset=offset,
                partition_max_bytes=self._costs.partition_fetch_bytes,
            )
            for partition, offset in positions.items()
        )
        return FetchRequest(
            max_wait_ms=_LONGEST_WAIT_MS,
            min_bytes=1,
            max_bytes=self._costs.fetch_bytes,
            isolation_level=READ_COMMITTED if self._read_committed else 0,
            topics=(FetchTopic(topic=self._topic, partitions=partitions),),
        )

    def _fetchable(self) -> list[tuple[int, int | None]]:
        """Return partitions without buffered or requested records, with their leaders."""
        busy = {buffered.part.partition for buffered in self._buffered}
        for flight in self._in_flight.values():
            busy.update(flight.partitions)
        return [(p, self._leader_of(p)) for p in self._positions if p not in busy]

    def _taken_back(self, leader_id: int, now_ms: int) -> dict[int, int] | None:
        """Return positions to ask a leader for again, beside other partitions; None to wait.

        A fetch waits here until there is data. Java's ends after `fetch.max.wait.ms`, and only
        then can other partitions of the leader be fetched, together with those waited for; so one
        fetch waits for all of them in the end.
        """
        flight = self._in_flight.get(leader_id)
        if flight is None:
            return {}
        if (
            flight.pending.done
            or (now_ms - flight.sent_ms) % FETCH_MAX_WAIT_MS
            or (now_ms == flight.sent_ms)
        ):
            return None
        self._client.abandon(flight.pending)
        del self._in_flight[leader_id]
        return {partition: self._positions[partition] for partition in flight.partitions}

    def _next_ms(self) -> int:
        """Return the next instant with work that needs no answer."""
        now_ms = self._client.now_ms
        next_ms = FOREVER
        if self._buffered:
            next_ms = self._done_us(self._buffered[0]) // US_PER_MS
        if self._retry_at_ms > now_ms:
            return min(next_ms, self._retry_at_ms)
        for _, leader_id in self._fetchable():
            flight = None if leader_id is None else self._in_flight.get(leader_id)
            if flight is not None:
                waits = (now_ms - flight.sent_ms) // FETCH_MAX_WAIT_MS + 1
                next_ms = min(next_ms, flight.sent_ms + waits * FETCH_MAX_WAIT_MS)
        return next_ms
