"""Carries out one Connect worker's topic effects at the simulated network.

As in Connect, each log of the worker has a consumer and a producer, all logs share one admin
client, and a leader may have a fencible producer: each has connections of its own.

The consumer of one internal topic: fetches, transfers and the processing of records.

As in Java, a broker is asked only for partitions without buffered records, one request at a time;
so the thread's work on records overlaps the next fetches.

What a consumer makes of a partition's bytes in a Fetch response.

Admin requests of a worker about a sink's consumer group, sent to the group's coordinator.

Source: kafka trunk, clients/.../consumer/internals/AbstractFetch.java, FetchCollector.java;
clients/.../consumer/internals/CompletedFetch.java; clients/.../admin/internals/,
ListConsumerGroupOffsetsHandler, AlterConsumerGroupOffsetsHandler,
DeleteConsumerGroupOffsetsHandler, DeleteConsumerGroupsHandler.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final, TypeVar, cast

from msgspec import Struct

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect import effects
from coordinator_sim.connect.effects import (
    AlterGroupOffsets,
    DeleteGroup,
    DeleteGroupOffsets,
    Fetched,
    ListGroupOffsets,
    RecordRun,
    TopicRecord,
)
from coordinator_sim.connect.exceptions import JavaException
from coordinator_sim.connect.thread import Blocking, Pending, Thread, Wait
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format.counted_batches import counted_batch, declared_size
from coordinator_sim.log.format.log_batches import marker_of
from coordinator_sim.log.spans import batches_in
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from coordinator_sim.messages.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from coordinator_sim.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from coordinator_sim.messages.requests import Request
from coordinator_sim.sim import topic_admin
from coordinator_sim.sim.kafka_client import DEFAULT_API_TIMEOUT_MS, KafkaClient, ask, leader_of
from coordinator_sim.sim.scenario.world import TopicCosts
from coordinator_sim.sim.threaded_clients import ThreadedClients
from coordinator_sim.sim.topic_admin import EARLIEST, READ_COMMITTED, list_offsets
from coordinator_sim.sim.topic_writer import Answer, TopicWriter, TransactionalWriter
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import Event, TraceEvent

GroupEffect = ListGroupOffsets | AlterGroupOffsets | DeleteGroupOffsets | DeleteGroup
"""Effects carried out here."""
R = TypeVar("R", bound=Struct)


def carry_out_for_group(client: KafkaClient, effect: GroupEffect) -> Blocking[object]:
    """Carry an effect out; return the value that its docstring names.

    Raises:
        TimeoutException: no answer came within a minute.
        ClientException: an error that is not retriable.
    """
    match effect:
        case ListGroupOffsets(group_id=group_id):
            return (yield from _list(client, group_id))
        case AlterGroupOffsets(group_id=group_id, offsets=offsets):
            commit = OffsetCommitRequest(
                group_id=group_id,
                topics=tuple(
                    OffsetCommitRequestTopic(
                        topic,
                        partitions=tuple(
                            OffsetCommitRequestPartition(each.partition, offsets[each])
                            for each in own
                        ),
                    )
                    for topic, own in _by_topic(offsets)
                ),
            )
            yield from _ask(client, group_id, commit, OffsetCommitResponse, _commit_errors)
        case DeleteGroupOffsets(group_id=group_id, partitions=partitions):
            topics = tuple(
                OffsetDeleteRequestTopic(
                    topic, tuple(OffsetDeleteRequestPartition(each.partition) for each in own)
                )
                for topic, own in _by_topic(partitions)
            )
            delete = OffsetDeleteRequest(group_id=group_id, topics=topics)
            yield from _ask(client, group_id, delete, OffsetDeleteResponse, _delete_errors)
        case DeleteGroup(group_id=group_id):
            wanted = DeleteGroupsRequest(groups_names=(group_id,))
            yield from _ask(client, group_id, wanted, DeleteGroupsResponse, _group_errors)
    return None


def _list(client: KafkaClient, group_id: str) -> Blocking[dict[TopicPartition, int]]:
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group_id, topics=None),))
    response = yield from _ask(client, group_id, request, OffsetFetchResponse, _fetch_errors)
    return {
        TopicPartition(topic.name, each.partition_index): each.committed_offset
        for topic in response.groups[0].topics
        for each in topic.partitions
        if each.committed_offset >= 0
    }


def _ask(
    client: KafkaClient,
    group_id: str,
    request: Request,
    kind: type[R],
    errors_of: Callable[[R], Iterable[ErrorCode]],
) -> Blocking[R]:
    """Ask the group's coordinator until an answer has no retriable error."""

    def coordinator() -> int | None:
        return leader_of(client, OFFSETS_TOPIC, client.world.offsets_partition_of(group_id))

    deadline_ms = client.now_ms + DEFAULT_API_TIMEOUT_MS
    return (
        yield from ask(
            client, coordinator, request, kind, errors_of=errors_of, deadline_ms=deadline_ms
        )
    )


def _fetch_errors(response: OffsetFetchResponse) -> Iterable[ErrorCode]:
    for group in response.groups:
        yield group.error_code
        yield from (each.error_code for topic in group.topics for each in topic.partitions)


def _commit_errors(response: OffsetCommitResponse) -> Iterable[ErrorCode]:
    return (each.error_code for topic in response.topics for each in topic.partitions)


def _delete_errors(response: OffsetDeleteResponse) -> Iterable[ErrorCode]:
    yield response.error_code
    yield from (each.error_code for topic in response.topics for each in topic.partitions)


def _group_errors(response: DeleteGroupsResponse) -> Iterable[ErrorCode]:
    return (result.error_code for result in response.results)


def _by_topic(
    partitions: Iterable[TopicPartition],
) -> list[tuple[str, Sequence[TopicPartition]]]:
    ordered = sorted(partitions)
    return [(topic, list(own)) for topic, own in groupby(ordered, key=lambda each: each.topic)]


class FetchedPart(Struct, frozen=True, kw_only=True):
    """What was read of one partition.

    Args:
        next_offset: The position afterwards, past holes, markers and aborted records.
        size_bytes: Size on the wire.
        record_count: Number of records, those of runs included.
    """

    partition: int
    records: tuple[TopicRecord | RecordRun, ...]
    next_offset: int
    size_bytes: int
    record_count: int


def fetched_part(answer: PartitionData, position: int) -> FetchedPart | None:
    """Read a partition's answer; None if it has no records.

    Args:
        answer: The answer, without an error; it names aborted transactions if they are to be
            passed over.
        position: The offset that was asked for; a batch may begin before it.
    """
    data, partition = answer.records, answer.partition_index
    if not data:
        return None
    counted = counted_batch(data)
    if counted is not None:
        run = RecordRun(
            partition=partition,
            first_offset=counted.base_offset,
            count=counted.count,
            size_bytes=counted.size_bytes,
        )
        return FetchedPart(
            partition=partition,
            records=(run,),
            next_offset=counted.next_offset,
            size_bytes=declared_size(data),
            record_count=counted.count,
        )
    records, next_offset = _records(data, partition, position, answer.aborted_transactions or ())
    return FetchedPart(
        partition=partition,
        records=records,
        next_offset=next_offset,
        size_bytes=len(data),
        record_count=len(records),
    )


def _records(
    data: bytes, partition: int, position: int, aborted: tuple[AbortedTransaction, ...]
) -> tuple[tuple[TopicRecord, ...], int]:
    """The records from a position on, and the offset after the last batch."""
    found: list[TopicRecord] = []
    to_begin = deque(sorted(aborted, key=lambda each: each.first_offset))
    aborting: set[int] = set()
    for batch in batches_in(data):
        while to_begin and to_begin[0].first_offset <= batch.last_offset:
            aborting.add(to_begin.popleft().producer_id)
        if batch.control:
            marker = marker_of(batch)
            if marker is not None and not marker.committed:
                aborting.discard(batch.producer_id)
        elif not (batch.transactional and batch.producer_id in aborting):
            found.extend(
                TopicRecord(
                    partition=partition,
                    offset=record.offset,
                    key=record.key,
                    value=record.value,
                    timestamp_ms=record.timestamp_ms,
                )
                for record in batch.records()
                if record.offset >= position
            )
        position = max(position, batch.next_offset)
    return tuple(found), position


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


_ADMIN: Final = "shared-admin"


class DataPlane(ThreadedClients):
    """The Kafka clients of one incarnation of a worker, apart from its group membership.

    Args:
        world: Shared parts of the run.
        worker: Name of the worker in the network.
        costs: Costs of reading, and the producers' linger.
        once_sent: Topics whose producer does not retry, such as that of statuses.
        answer: Takes token, value and error: the worker's `answered`.
        fetched: Takes the records of a topic's consumer: the worker's `fetched`.
        group_id: Id of the cluster for the trace; without one it records nothing.
    """

    def __init__(  # noqa: PLR0913 - what a worker's clients are made with, by keyword
        self,
        world: World,
        worker: str,
        *,
        costs: TopicCosts,
        once_sent: tuple[str, ...],
        answer: Answer,
        fetched: Callable[[effects.Fetched], None],
        group_id: str | None = None,
    ) -> None:
        super().__init__(world, worker)
        self._costs = costs
        self._once_sent = once_sent
        self._answer = answer
        self._fetched = fetched
        self._group_id = group_id
        self._began_us: dict[str, int] = {}
        self._readers: dict[str, TopicReader] = {}
        self._writers: dict[str, TopicWriter] = {}
        self._transactional: dict[str, TransactionalWriter] = {}

    def carry_out(self, effect: effects.WorkerEffect) -> bool:
        """Begin an effect that concerns topics; return whether it does.

        Answers come later, never during this call.
        """
        if isinstance(effect, effects.ReadToEnd):
            self._tell_of_end(effect.topic)
            return True
        if isinstance(effect, effects.CloseProducer):
            # At once, even while the process is frozen: its successor has the same name.
            self._close_producer(effect.transactional_id)
            return True
        main = self._main_of(effect)
        if main is None:
            return False
        self._begin(main)
        return True

    def records_read(self, topic: str) -> int:
        """Return the number of records that the topic's consumer has handed over, with runs."""
        reader = self._readers.get(topic)
        return 0 if reader is None else reader.record_count

    # -- effects ---------------------------------------------------------------------------

    def _main_of(self, effect: effects.WorkerEffect) -> Blocking[None] | None:
        """Return the thread that carries an effect out; None if it does not concern topics."""
        match effect:
            case effects.Produce(topic=topic):
                return self._queue(self._writer(topic), effect)
            case effects.StartReading(topic=topic, read_committed=read_committed):
                return self._start_reading(topic, read_committed=read_committed)
            case effects.StopReading(topic=topic):
                return self._stop_reading(topic)
            case effects.InitTransactions(token=token, transactional_id=transactional_id):
                return self._new_transactional(transactional_id).init_transactions(token)
            case effects.ProduceInTransaction(transactional_id=transactional_id):
                return self._transactional[transactional_id].produce(effect)
            case _:
                return self._admin_call(effect)

    def _admin_call(self, effect: effects.WorkerEffect) -> Blocking[None] | None:
        main: Blocking[object]
        match effect:
            case effects.DescribeCluster():
                main = topic_admin.cluster_id(self._client(_ADMIN))
            case effects.CreateTopic():
                main = topic_admin.create_topic(self._client(_ADMIN), effect)
            case effects.DescribeTopic(topic=topic):
                main = topic_admin.count_partitions(self._client(_ADMIN), topic)
            case effects.DescribeTopicConfig(topic=topic, name=name):
                main = topic_admin.topic_config(self._client(_ADMIN), topic, name)
            case effects.ListEndOffsets():
                main = self._end_offsets(effect)
            case effects.FenceProducers(transactional_ids=transactional_ids):
                main = topic_admin.fence_producers(self._client(_ADMIN), transactional_ids)
            case (
                effects.ListGroupOffsets()
                | effects.AlterGroupOffsets()
                | effects.DeleteGroupOffsets()
                | effects.DeleteGroup()
            ):
                main = carry_out_for_group(self._client("group-admin"), effect)
            case _:
                return None
        return self._answering(effect.token, main)

    def _end_offsets(self, effect: effects.ListEndOffsets) -> Blocking[object]:
        admin = self._client(_ADMIN)
        return topic_admin.list_offsets(
            admin,
            effect.topic,
            topic_admin.LATEST,
            read_committed=effect.read_committed,
            deadline_ms=admin.now_ms + DEFAULT_API_TIMEOUT_MS,
        )

    def _answering(self, token: int, main: Blocking[object]) -> Blocking[None]:
        try:
            value = yield from main
        except JavaException as exception:
            self._answer(token, None, exception.name)
            return
        self._answer(token, value, None)

    def _queue(self, writer: TopicWriter, effect: effects.Produce) -> Blocking[None]:
        writer.produce(effect)
        yield from ()

    def _tell_of_end(self, topic: str) -> None:
        """Record in the trace how long a topic's first reading took."""
        now_us = self._world.environment.now_us
        if self._group_id is None:
            return
        self._world.record(
            TraceEvent(
                event=Event.LIFECYCLE,
                ts_us=now_us,
                group_id=self._group_id,
                client_id=self._process,
                reason_text="read to its end",
                attrs={
                    "phase": "reading",
                    "topic": topic,
                    "records": str(self.records_read(topic)),
                    "took_ms": str((now_us - self._began_us[topic]) // US_PER_MS),
                },
            )
        )

    def _start_reading(self, topic: str, *, read_committed: bool) -> Blocking[None]:
        self._began_us[topic] = self._world.environment.now_us
        reader = self._readers[topic] = TopicReader(
            self._client(f"{topic}-consumer"),
            topic,
            read_committed=read_committed,
            costs=self._costs,
            fetched=self._fetched,
        )
        yield from reader.run()

    def _stop_reading(self, topic: str) -> Blocking[None]:
        reader = self._readers.pop(topic, None)
        if reader is not None:
            reader.stop()
            self._clients.pop(f"{topic}-consumer")
        yield from ()

    def _close_producer(self, transactional_id: str) -> None:
        writer = self._transactional.pop(transactional_id, None)
        if writer is not None:
            writer.close()
            self._clients.pop(transactional_id)

    def _writer(self, topic: str) -> TopicWriter:
        writer = self._writers.get(topic)
        if writer is None:
            writer = self._writers[topic] = TopicWriter(
                self._client(f"{topic}-producer"),
                topic,
                linger_ms=self._costs.linger_ms,
                retries=topic not in self._once_sent,
                answer=self._answer,
            )
            self._threads.append(Thread(writer.run()))
        return writer

    def _new_transactional(self, transactional_id: str) -> TransactionalWriter:
        writer = TransactionalWriter(self._client(transactional_id), transactional_id, self._answer)
        self._transactional[transactional_id] = writer
        return writer
