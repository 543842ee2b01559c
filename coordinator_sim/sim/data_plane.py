"""Carries out one Connect worker's topic effects at the simulated network.

As in Connect, each log of the worker has a consumer and a producer, all logs share one admin
client, and a leader may have a fencible producer: each has connections of its own.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.clock import Action, Alarmed
from coordinator_sim.connect.effects import (
    AlterGroupOffsets,
    CloseProducer,
    CreateTopic,
    DeleteGroup,
    DeleteGroupOffsets,
    DescribeCluster,
    DescribeTopic,
    DescribeTopicConfig,
    FenceProducers,
    Fetched,
    InitTransactions,
    ListEndOffsets,
    ListGroupOffsets,
    Produce,
    ProduceInTransaction,
    ReadToEnd,
    StartReading,
    StopReading,
    WorkerEffect,
)
from coordinator_sim.connect.exceptions import JavaException
from coordinator_sim.connect.thread import Blocking, Thread
from coordinator_sim.sim.data_messages import (
    CreateTopicRequest,
    CreateTopicResponse,
    DataRequest,
    DataResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicRequest,
    DescribeTopicResponse,
    ListOffsetsRequest,
)
from coordinator_sim.sim.group_admin import carry_out_for_group
from coordinator_sim.sim.kafka_client import (
    DEFAULT_API_TIMEOUT_MS,
    KafkaClient,
    call,
    list_offsets,
    partition_count,
)
from coordinator_sim.sim.scenario.world import TopicCosts
from coordinator_sim.sim.topic_reader import TopicReader
from coordinator_sim.sim.topic_writer import (
    Answer,
    TopicWriter,
    TransactionalWriter,
    init_producer_id,
)
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import Event, TraceEvent

R = TypeVar("R", bound=DataResponse)

_ADMIN: Final = "shared-admin"


class DataPlane(Alarmed):
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
        fetched: Callable[[Fetched], None],
        group_id: str | None = None,
    ) -> None:
        super().__init__(world.environment)
        self._world = world
        self._worker = worker
        self._costs = costs
        self._once_sent = once_sent
        self._answer = answer
        self._fetched = fetched
        self._group_id = group_id
        self._began_us: dict[str, int] = {}
        self._clients: dict[str, KafkaClient] = {}
        self._readers: dict[str, TopicReader] = {}
        self._writers: dict[str, TopicWriter] = {}
        self._transactional: dict[str, TransactionalWriter] = {}
        self._threads: list[Thread] = []
        self._is_alive = True
        self._is_running = False
        self._late: list[Action] | None = None

    def carry_out(self, effect: WorkerEffect) -> bool:
        """Begin an effect that concerns topics; return whether it does.

        Answers come later, never during this call.
        """
        if isinstance(effect, ReadToEnd):
            self._tell_of_end(effect.topic)
            return True
        if isinstance(effect, CloseProducer):
            # At once, even while the process is frozen: its successor has the same name.
            self._close_producer(effect.transactional_id)
            return True
        main = self._main_of(effect)
        if main is None:
            return False
        self._threads.append(Thread(main))
        self._happened(_nothing)
        return True

    def records_read(self, topic: str) -> int:
        """Return the number of records that the topic's consumer has handed over, with runs."""
        reader = self._readers.get(topic)
        return 0 if reader is None else reader.record_count

    def pause(self) -> None:
        """Freeze the process: network events wait, nothing is sent."""
        if self._late is None:
            self._late = []

    def resume(self) -> None:
        """Continue, beginning with the events that arrived meanwhile."""
        late, self._late = self._late, None
        for action in late or ():
            action()
        self._run()

    def kill(self) -> None:
        """End the process: the kernel closes its connections."""
        self._is_alive = False
        self.switch_alarm_off()
        for client in self._clients.values():
            client.close()
        self._threads.clear()

    # -- effects ---------------------------------------------------------------------------

    def _main_of(self, effect: WorkerEffect) -> Blocking[None] | None:
        """Return the thread that carries an effect out; None if it does not concern topics."""
        match effect:
            case Produce(topic=topic):
                return self._queue(self._writer(topic), effect)
            case StartReading(topic=topic, read_committed=read_committed):
                return self._start_reading(topic, read_committed=read_committed)
            case StopReading(topic=topic):
                return self._stop_reading(topic)
            case InitTransactions(token=token, transactional_id=transactional_id):
                return self._new_transactional(transactional_id).init_transactions(token)
            case ProduceInTransaction(transactional_id=transactional_id):
                return self._transactional[transactional_id].produce(effect)
            case _:
                return self._admin_call(effect)

    def _admin_call(self, effect: WorkerEffect) -> Blocking[None] | None:
        match effect:
            case DescribeCluster(token=token):
                return self._answering(token, self._describe_cluster())
            case CreateTopic(token=token):
                return self._answering(token, self._create_topic(effect))
            case DescribeTopic(token=token, topic=topic):
                return self._answering(token, self._describe_topic(topic))
            case DescribeTopicConfig(token=token, topic=topic, name=name):
                return self._answering(token, self._describe_config(topic, name))
            case ListEndOffsets(token=token):
                return self._answering(token, self._end_offsets(effect))
            case FenceProducers(token=token, transactional_ids=ids):
                return self._answering(token, self._fence(ids))
            case ListGroupOffsets() | AlterGroupOffsets() | DeleteGroupOffsets() | DeleteGroup():
                group_admin = self._client("group-admin", is_data=False)
                return self._answering(effect.token, carry_out_for_group(group_admin, effect))
            case _:
                return None

    def _answering(self, token: int, main: Blocking[object]) -> Blocking[None]:
        try:
            value = yield from main
        except JavaException as exception:
            self._answer(token, None, exception.name)
            return
        self._answer(token, value, None)

    def _describe_cluster(self) -> Blocking[object]:
        response = yield from self._ask_any(DescribeClusterRequest(), DescribeClusterResponse)
        return response.cluster_id

    def _create_topic(self, effect: CreateTopic) -> Blocking[object]:
        request = CreateTopicRequest(
            topic=effect.topic,
            partitions=effect.partitions,
            replication_factor=effect.replication_factor,
            configs=effect.configs,
        )
        response = yield from self._ask_any(request, CreateTopicResponse)
        return response.created

    def _describe_topic(self, topic: str) -> Blocking[object]:
        response = yield from self._ask_any(DescribeTopicRequest(topic), DescribeTopicResponse)
        return response.partitions

    def _describe_config(self, topic: str, name: str) -> Blocking[object]:
        request = DescribeTopicRequest(topic, name)
        response = yield from self._ask_any(request, DescribeTopicResponse)
        return response.value

    def _end_offsets(self, effect: ListEndOffsets) -> Blocking[object]:
        admin = self._client(_ADMIN)
        request = ListOffsetsRequest(
            effect.topic,
            tuple(range(partition_count(admin, effect.topic))),
            read_committed=effect.read_committed,
        )
        deadline_ms = admin.now_ms + DEFAULT_API_TIMEOUT_MS
        return (yield from list_offsets(admin, request, deadline_ms=deadline_ms))

    def _fence(self, transactional_ids: tuple[str, ...]) -> Blocking[object]:
        for transactional_id in transactional_ids:
            yield from init_producer_id(self._client(_ADMIN), transactional_id)
        return None

    def _ask_any(self, request: DataRequest, kind: type[R]) -> Blocking[R]:
        admin = self._client(_ADMIN)
        deadline_ms = admin.now_ms + DEFAULT_API_TIMEOUT_MS
        return (yield from call(admin, admin.any_broker, request, kind, deadline_ms=deadline_ms))

    def _queue(self, writer: TopicWriter, effect: Produce) -> Blocking[None]:
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
                client_id=self._worker,
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

    def _client(self, name: str, *, is_data: bool = True) -> KafkaClient:
        client = self._clients.get(name)
        if client is None:
            client = self._clients[name] = KafkaClient(
                self._world,
                self._worker,
                f"{self._worker}-{name}",
                self._happened,
                is_data=is_data,
            )
        return client

    # -- the threads -----------------------------------------------------------------------

    def _on_alarm(self) -> None:
        self._happened(self._expire)

    def _expire(self) -> None:
        for client in list(self._clients.values()):
            client.expire()

    def _happened(self, action: Action) -> None:
        """Apply an event of the network or the clock, and let the threads run on."""
        if not self._is_alive:
            return
        if self._late is not None:
            self._late.append(action)
            return
        action()
        self._run()

    def _run(self) -> None:
        if self._is_running or self._late is not None:
            return
        self._is_running = True
        now_ms = self._world.environment.now_us // US_PER_MS
        is_moving = True
        while is_moving and self._is_alive:
            is_moving = False
            for thread in list(self._threads):
                is_moving |= thread.run(now_ms)
        self._is_running = False
        if not self._is_alive:
            return
        self._threads = [thread for thread in self._threads if not thread.is_finished]
        deadline_ms = min(
            (
                *(thread.deadline_ms for thread in self._threads),
                *(client.deadline_ms for client in self._clients.values()),
            ),
            default=FOREVER,
        )
        if deadline_ms >= FOREVER:
            self.switch_alarm_off()
        else:
            self.set_alarm(deadline_ms * US_PER_MS)


def _nothing() -> None:
    """Do nothing; used only to let the threads run on."""
