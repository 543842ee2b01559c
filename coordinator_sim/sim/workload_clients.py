"""The simulator's clients for the threads of Trogdor's workloads.

Producers send Produce requests to the leaders, admin clients ask the controller, consumers in a
group are the port of Kafka's; what a producer has written is there for every consumer at the
instant of its acknowledgement.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

from coordinator_sim.clock import Action
from coordinator_sim.connect.exceptions import JavaException, TimeoutException
from coordinator_sim.connect.thread import Blocking, Pending, Thread, Wait
from coordinator_sim.errors import ConfigError, InvariantViolation
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
)
from coordinator_sim.sim.kafka_client import KafkaClient
from coordinator_sim.sim.network import Connection, ResponseMessage
from coordinator_sim.sim.polled_consumer import PolledConsumer
from coordinator_sim.sim.threaded_clients import ThreadedClients
from coordinator_sim.sim.topic_admin import count_brokers, count_partitions, create_topics
from coordinator_sim.sim.workload_producer import VirtualProducer
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trogdor.topic_specs import PartitionsSpec
from coordinator_sim.trogdor.workloads.clients import ClientFailed, NotCreated, Settings

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
