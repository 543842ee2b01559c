"""Carries out one Connect worker's topic effects at the simulated network.

As in Connect, each log of the worker has a consumer and a producer, all logs share one admin
client, and a leader may have a fencible producer: each has connections of its own.
"""

from collections.abc import Callable
from typing import Final

from coordinator_sim.connect import effects
from coordinator_sim.connect.exceptions import JavaException
from coordinator_sim.connect.thread import Blocking, Thread
from coordinator_sim.sim import topic_admin
from coordinator_sim.sim.group_admin import carry_out_for_group
from coordinator_sim.sim.kafka_client import DEFAULT_API_TIMEOUT_MS
from coordinator_sim.sim.scenario.world import TopicCosts
from coordinator_sim.sim.threaded_clients import ThreadedClients
from coordinator_sim.sim.topic_reader import TopicReader
from coordinator_sim.sim.topic_writer import Answer, TopicWriter, TransactionalWriter
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import Event, TraceEvent

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
