"""Trogdor's agents in the simulated world, with the workloads that a scenario gives them.

Each node has an agent. A worker is created at the instant at which its task starts, as if the
coordinator's order took no time; when it ends is the agent's own doing.

The simulator's clients for the threads of Trogdor's workloads.

Producers send Produce requests to the leaders, admin clients ask the controller, consumers in a
group are the port of Kafka's; what a producer has written is there for every consumer at the
instant of its acknowledgement.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from coordinator_sim.clock import Action
from coordinator_sim.connect.exceptions import JavaException, TimeoutException
from coordinator_sim.connect.thread import Blocking, Pending, Thread, Wait
from coordinator_sim.errors import ConfigError, InvariantViolation
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import partition_of_key
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
)
from coordinator_sim.sim.kafka_client import KafkaClient
from coordinator_sim.sim.network import Connection, ResponseMessage
from coordinator_sim.sim.polled_consumer import PolledConsumer, partitions_of
from coordinator_sim.sim.scenario.workloads import WorkloadTask
from coordinator_sim.sim.threaded_clients import ThreadedClients
from coordinator_sim.sim.topic_admin import count_brokers, count_partitions, create_topics
from coordinator_sim.sim.topic_logs import WrittenRecord
from coordinator_sim.sim.topic_writer import DELIVERY_TIMEOUT_MS, TopicWriter
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.agent import Agent, Progress
from coordinator_sim.trogdor.contract import StartWork, WorkerOver
from coordinator_sim.trogdor.specs import TaskSpec, class_of
from coordinator_sim.trogdor.topic_specs import PartitionsSpec
from coordinator_sim.trogdor.workloads.clients import ClientFailed, NotCreated, Settings, Told
from coordinator_sim.trogdor.workloads.registry import workload_of

_LINGER_MS: Final = "5"
"""Default of `linger.ms` since Kafka 4.0."""
_BUFFER_BYTES: Final = str(32 * 1024 * 1024)
"""Default of `buffer.memory`."""
_MAX_BLOCK_MS: Final = "60000"
"""Default of `max.block.ms`."""


class VirtualProducer:
    """A producer without transactions.

    Args:
        world: Shared parts of the run.
        client: Its connections.
        settings: Settings by Kafka's names.
        draw: Draws a number below another one.
        serve: Runs a thread of its process.
    """

    def __init__(
        self,
        world: World,
        client: KafkaClient,
        settings: Mapping[str, str],
        *,
        draw: Callable[[int], int],
        serve: Callable[[Blocking[None]], None],
    ) -> None:
        self._world = world
        self._client = client
        self._draw = draw
        self._serve = serve
        self._linger_ms = int(settings.get("linger.ms", _LINGER_MS))
        self._buffer_bytes = int(settings.get("buffer.memory", _BUFFER_BYTES))
        self._max_block_ms = int(settings.get("max.block.ms", _MAX_BLOCK_MS))
        self._timeout_ms = int(settings.get("delivery.timeout.ms", str(DELIVERY_TIMEOUT_MS)))
        self._writers: dict[TopicPartition, TopicWriter] = {}
        self._open: dict[int, tuple[TopicPartition, WrittenRecord, Told]] = {}
        self._open_bytes = 0
        self._count = 0
        self._answered: Pending[bool] = Pending()

    def partitions_for(self, topic: str) -> Blocking[tuple[TopicPartition, ...]]:
        """All partitions of a topic, in order, as the producer's metadata has them."""
        yield from ()
        return partitions_of(self._world, topic)

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        told: Told,
    ) -> Blocking[None]:
        """Hand a record over; it fails when the buffer stays full for `max.block.ms`."""
        deadline_ms = self._client.now_ms + self._max_block_ms
        record = WrittenRecord(self._client.now_ms, key, value)
        size = _size_bytes(record)
        while self._open and self._open_bytes + size > self._buffer_bytes:
            if self._client.now_ms >= deadline_ms:
                told(
                    f"Failed to allocate {size} bytes within the configured max blocking time "
                    f"{self._max_block_ms} ms."
                )
                return
            yield Wait(self._next_answer(), until_ms=deadline_ms)
        where = TopicPartition(topic, self._partition(topic, partition, key))
        self._count += 1
        self._open[self._count] = (where, record, told)
        self._open_bytes += size
        self._writer(where).queue(self._count, where.partition, key, value)

    def flush(self) -> Blocking[None]:
        """Wait until every record that was handed over has its outcome."""
        for writer in self._writers.values():
            writer.flush()
        while self._open:
            yield Wait(self._next_answer())

    def _next_answer(self) -> Pending[bool]:
        """What several threads may wait for: the next outcome of a record."""
        if self._answered.done:
            self._answered = Pending()
        return self._answered

    def init_transactions(self) -> Blocking[None]:
        """Transactions of workloads are refused when a scenario is read."""
        yield from ()
        raise ClientFailed("a producer of the simulator's workloads has no transactions")

    def begin_transaction(self) -> None:
        """See `init_transactions`."""
        raise ClientFailed("a producer of the simulator's workloads has no transactions")

    def end_transaction(self, *, committed: bool) -> Blocking[None]:  # noqa: ARG002 - contract
        """See `init_transactions`."""
        return self.init_transactions()

    def close(self) -> Blocking[None]:
        """Wait for all outcomes, and close."""
        yield from self.flush()
        self._client.close()

    def _partition(self, topic: str, partition: int | None, key: bytes | None) -> int:
        if partition is not None:
            return partition
        count = self._world.partition_count(topic) or 1
        return self._draw(count) if key is None else partition_of_key(key, count)

    def _writer(self, where: TopicPartition) -> TopicWriter:
        """The writer of a partition: partitions do not wait for each other."""
        writer = self._writers.get(where)
        if writer is None:
            writer = self._writers[where] = TopicWriter(
                self._client,
                where.topic,
                linger_ms=self._linger_ms,
                retries=True,
                answer=self._told,
                delivery_timeout_ms=self._timeout_ms,
            )
            self._serve(writer.run())
        return writer

    def _told(self, token: int, _offset: object, error: str | None) -> None:
        """Take the outcome of a record, and let consumers see it."""
        where, record, told = self._open.pop(token)
        self._open_bytes -= _size_bytes(record)
        if error is None:
            now_us = self._world.environment.now_us
            self._world.topic_logs.append_record(where, record, now_us)
        told(error)
        self._answered.complete(value=True)


def _size_bytes(record: WrittenRecord) -> int:
    return len(record.key or b"") + len(record.value or b"")


T = TypeVar("T")

_UUID_PARTS: Final = 4
_UUID_PART: Final = 1 << 32


class WorkloadClients(ThreadedClients):
    """The clients of one workload's process, and its threads.

    Args:
        world: Shared parts of the run.
        process: Name of the process in the network.
    """

    def __init__(self, world: World, process: str) -> None:
        super().__init__(world, process)
        self._consumers: list[PolledConsumer] = []
        self._workload: list[Thread] = []
        self._count = 0
        self._is_interrupted = False

    @property
    def now_ms(self) -> int:
        """The clock of the node."""
        return self._reading.now_ms

    def consumer(self, settings: Settings) -> PolledConsumer:
        """A new consumer.

        Raises:
            ClientFailed: a setting is refused.
        """
        try:
            made = PolledConsumer(
                self._world, _texts(settings), host=self._process, woken=self.woken
            )
        except ConfigError as error:
            raise ClientFailed(str(error)) from error
        self._consumers.append(made)
        return made

    def producer(self, settings: Settings) -> VirtualProducer:
        """A new producer."""
        return VirtualProducer(
            self._world,
            self.new_client("producer"),
            _texts(settings),
            draw=self.draw,
            serve=self.serve,
        )

    def admin(self, settings: Settings) -> "VirtualAdmin":  # noqa: ARG002 - contract
        """A new admin client."""
        return VirtualAdmin(self.new_client("admin"))

    def connect(
        self,
        settings: Settings,  # noqa: ARG002 - contract
        timeout_ms: int,
    ) -> Blocking[bool]:
        """Open a connection to one of the brokers and close it; False when it is refused."""
        brokers = self._world.cluster.settings.broker_ids
        attempt = _Attempt(self.woken)
        broker_id = brokers[self.draw(len(brokers))]
        connection = self._world.network.connect(self._process, broker_id, attempt)
        yield Wait(attempt.outcome, until_ms=self.now_ms + timeout_ms)
        connection.close()
        return not attempt.outcome.done or bool(attempt.outcome.value)

    def start(self, thread: Blocking[None]) -> None:
        """Run a thread of the workload."""
        if not self._is_interrupted:
            self._workload.append(self._begin(thread))

    def serve(self, thread: Blocking[None]) -> None:
        """Run a thread of a client, or the one that stops the workload: it is not interrupted."""
        self._begin(thread)

    def interrupt(self) -> None:
        """End every thread of the workload."""
        self._is_interrupted = True
        for thread in self._workload:
            thread.kill()
        for consumer in self._consumers:
            consumer.interrupt()

    def draw(self, below: int) -> int:
        """A number from 0 to `below` - 1."""
        return self._world.choices.choose("workload", self._process, below)

    def unique(self) -> str:
        """A text that no other call gives."""
        return "-".join(f"{self.draw(_UUID_PART):08x}" for _ in range(_UUID_PARTS))

    # -- for its clients -----------------------------------------------------------------------

    def new_client(self, kind: str) -> KafkaClient:
        """Connections of a client's own."""
        self._count += 1
        return self._client(f"{kind}-{self._count}")

    def freeze(self, for_ms: int) -> None:
        """Freeze the process with all its clients."""
        self.pause()
        for consumer in self._consumers:
            consumer.pause(for_ms * US_PER_MS)
        environment = self._world.environment
        environment.call_at(environment.now_us + for_ms * US_PER_MS, self.resume)


class VirtualAdmin:
    """An admin client.

    Args:
        client: Its connections.
    """

    def __init__(self, client: KafkaClient) -> None:
        self._client = client

    def create_topics(
        self, topics: Mapping[str, PartitionsSpec]
    ) -> Blocking[Mapping[str, NotCreated | None]]:
        """Ask for new topics; the outcome of each is None, or why it was not created."""
        wanted = tuple(_new_topic(name, spec) for name, spec in topics.items())
        try:
            results = yield from create_topics(self._client, wanted)
        except TimeoutException as exception:
            refused = NotCreated(ErrorCode.REQUEST_TIMED_OUT.name, exception.name)
            return dict.fromkeys(topics, refused)
        return {each.name: _refusal(each) for each in results}

    def partition_counts(self, topics: Sequence[str]) -> Blocking[Mapping[str, int | None]]:
        """How many partitions each topic has; None for an unknown one."""
        found: dict[str, int | None] = {}
        for topic in topics:
            count = yield from _told_as_client(count_partitions(self._client, topic))
            found[topic] = count or None
        return found

    def describe_cluster(self) -> Blocking[int]:
        """The number of brokers that the cluster has."""
        return (yield from _told_as_client(count_brokers(self._client)))

    def close(self) -> Blocking[None]:
        """Close it."""
        yield from ()
        self._client.close()


class _Attempt:
    """The client's end of a connection that is opened to see whether it opens."""

    def __init__(self, woken: Action) -> None:
        self.outcome: Pending[bool] = Pending()
        self._woken = woken

    def connected(self, _connection: Connection) -> None:
        self._over(is_open=True)

    def disconnected(self, _connection: Connection) -> None:
        self._over(is_open=False)

    def received(self, _connection: Connection, message: ResponseMessage) -> None:
        raise InvariantViolation(f"nothing was asked: {message}")

    def _over(self, *, is_open: bool) -> None:
        self.outcome.complete(is_open)
        self._woken()


def _told_as_client(call: Blocking[T]) -> Blocking[T]:
    """A call whose exceptions are those of a workload's client."""
    try:
        return (yield from call)
    except JavaException as exception:
        raise ClientFailed(exception.name) from exception


def _refusal(result: CreatableTopicResult) -> NotCreated | None:
    if result.error_code is ErrorCode.NONE:
        return None
    return NotCreated(result.error_code.name, result.error_message or "")


def _new_topic(name: str, spec: PartitionsSpec) -> CreatableTopic:
    configs = tuple(CreatableTopicConfig(key, value) for key, value in spec.configs.items())
    if spec.partition_assignments:
        assignments = tuple(
            CreatableReplicaAssignment(number, tuple(spec.partition_assignments[number]))
            for number in spec.partition_numbers
        )
        return CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=assignments,
            configs=configs,
        )
    return CreatableTopic(
        name=name,
        num_partitions=spec.effective_num_partitions,
        replication_factor=spec.effective_replication_factor,
        configs=configs,
    )


def _texts(settings: Settings) -> dict[str, str]:
    return {name: str(value) for name, value in settings.items()}


class WorkloadProcess:
    """One worker: the process of a workload.

    Args:
        world: Shared parts of the run.
        name: Name of the process in the network.
        start: What it is to do.
        progress: Takes what it tells.
    """

    def __init__(self, world: World, name: str, start: StartWork, progress: Progress) -> None:
        self._progress = progress
        self._clients = WorkloadClients(world, name)
        workload = workload_of(start.task_id, start.spec, self._clients, progress)
        if workload is None:
            raise InvariantViolation(f"{type(start.spec).__name__} is no workload")
        self._workload = workload

    def begin(self) -> None:
        """Start."""
        self._workload.begin()
        self._progress.started()

    def end(self) -> None:
        """Stop."""
        self._clients.serve(self._end())

    def pause(self, for_ms: int) -> None:
        """Freeze the process."""
        self._clients.freeze(for_ms)

    def _end(self) -> Blocking[None]:
        yield from self._workload.end()
        self._clients.kill()
        self._progress.stopped()


class WorkloadAgents:
    """The agents of all nodes.

    Args:
        world: Shared parts of the run.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._agents: dict[str, Agent] = {}
        self._processes: dict[str, WorkloadProcess] = {}
        self._names: dict[int, str] = {}

    def schedule(self, task: WorkloadTask) -> None:
        """Have a workload run from its start on."""
        spec = task.parsed
        for node, process in task.processes().items():
            create: Action = partial(self._create, node, process, task.id, spec)
            self._world.environment.call_at(spec.start_ms * US_PER_MS, create)

    def pause(self, process: str, for_ms: int) -> None:
        """Freeze the process of a workload; ignored while it does not run."""
        running = self._processes.get(process)
        if running is not None:
            running.pause(for_ms)

    def _create(self, node: str, process: str, task_id: str, spec: TaskSpec) -> None:
        agent = self._agents.get(node)
        if agent is None:
            agent = self._agents[node] = Agent(self._world.environment, self._work)
            agent.over = partial(self._over, agent)
        worker_id = len(self._names) + 1
        self._names[worker_id] = process
        self._world.record_fault("TaskRunning", task=process, kind=class_of(spec))
        agent.create_worker(worker_id, task_id, spec, _nothing)

    def _work(self, start: StartWork, progress: Progress) -> WorkloadProcess:
        process = self._names[start.worker_id]
        made = WorkloadProcess(self._world, process, start, progress)
        self._processes[process] = made
        return made

    def _over(self, agent: Agent, over: WorkerOver) -> None:
        process = self._names[over.worker_id]
        self._processes.pop(process, None)
        state = agent.workers()[over.worker_id]
        attrs = {"status": jackson.text(state.status)} if state.status is not None else {}
        if over.error:
            attrs["error"] = over.error
        self._world.record_fault("TaskDone", task=process, kind=class_of(state.spec), **attrs)


def _nothing() -> None:
    """Take the answer to the creation of a worker, for which nobody waits here."""
