# ruff: noqa: D102 - what the methods of clients do is said in `workloads/clients.py`
"""A cluster in memory and clients of it, on a virtual clock: the place of a workload's tests.

Records are written at once and acknowledged after `ack_ms`; partitions are lists, and a fetch of
records takes a millisecond.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.thread import Blocking, Pending, Threads, Wait
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.trogdor.topic_specs import PartitionsSpec
from coordinator_sim.trogdor.workloads.clients import (
    ClientFailed,
    NotCreated,
    Received,
    Settings,
    Told,
    Workload,
)

T = TypeVar("T")

START_MS = 1_000_000
"""When a world begins: at the beginning of a second."""


class Heard:
    """What a workload told: its statuses with their instants, and how it halted."""

    def __init__(self, world: "SmallWorld") -> None:
        self._world = world
        self.statuses: list[Any] = []
        self.instants: list[int] = []
        self.ending: str | None = None
        self.ended_ms = 0

    def status(self, value: Any) -> None:  # noqa: ANN401 - any JSON
        """Note a status."""
        self.statuses.append(value)
        self.instants.append(self._world.elapsed_ms)

    def halt(self, error: str = "") -> None:
        """Note the first ending."""
        if self.ending is None:
            self.ending, self.ended_ms = error, self._world.elapsed_ms


class Sent(Struct):
    """A record as it was sent."""

    at_ms: int
    partition: int | None
    key: bytes | None
    value: bytes | None
    transaction: int | None = None


class SmallWorld:
    """The world; `Clients` of a workload.

    Attributes:
        topics: Topic -> its partitions, each a list of records.
        ack_ms: Time from a send to its outcome.
        send_failures: What the next sends fail with; empty for success.
        call_failures: Call -> what the next calls fail with; empty for success.
        refused_clients: Kind of client -> why its settings are refused.
        creations: Outcomes of the next attempts to make topics, by topic.
        brokers_refuse: Whether connections are refused.
        sent: Every record that was handed over.
        done: What clients did, as lines.
        settings: The settings of every client.
        arrivals: What waits for the next record.
    """

    def __init__(self, **partition_counts: int) -> None:
        self.now_ms = START_MS
        self.topics: dict[str, list[list[Received]]] = {
            name: [[] for _ in range(count)] for name, count in partition_counts.items()
        }
        self.ack_ms = 5
        self.send_failures: deque[str] = deque()
        self.call_failures: dict[str, deque[str]] = {}
        self.refused_clients: dict[str, str] = {}
        self.creations: deque[Mapping[str, NotCreated]] = deque()
        self.brokers_refuse = False
        self.sent: list[Sent] = []
        self.done: list[str] = []
        self.settings: list[Settings] = []
        self._threads = Threads()
        self._is_interrupted = False
        self._events: list[tuple[int, Callable[[], None]]] = []
        self._count = 0
        self.arrivals: list[Pending[None]] = []

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since the world began."""
        return self.now_ms - START_MS

    # -- `Clients` -----------------------------------------------------------------------------

    def consumer(self, settings: Settings) -> "SmallConsumer":
        self._check("consumer", settings)
        return SmallConsumer(self, settings)

    def producer(self, settings: Settings) -> "SmallProducer":
        self._check("producer", settings)
        return SmallProducer(self)

    def admin(self, settings: Settings) -> "SmallAdmin":
        self._check("admin", settings)
        return SmallAdmin(self)

    def connect(self, settings: Settings, timeout_ms: int) -> Blocking[bool]:
        self._check("connection", settings)
        self.done.append(f"connect within {timeout_ms}")
        yield from ()
        return not self.brokers_refuse

    def start(self, thread: Blocking[None]) -> None:
        if not self._is_interrupted:
            self._threads.start(thread)

    def interrupt(self) -> None:
        self._is_interrupted = True
        self._threads.kill()

    def draw(self, below: int) -> int:
        return below - 1

    def unique(self) -> str:
        self._count += 1
        return f"unique-{self._count}"

    # -- time ----------------------------------------------------------------------------------

    def run_until(self, elapsed_ms: int) -> None:
        """Let time pass until an instant after the beginning."""
        end_ms = START_MS + elapsed_ms
        while True:
            self._threads.run(self.now_ms)
            due_ms = min((at_ms for at_ms, _ in self._events), default=FOREVER)
            next_ms = min(due_ms, self._threads.deadline_ms)
            if next_ms > end_ms:
                break
            self._go_to(next_ms)
        self.now_ms = end_ms

    def finish(self, work: Blocking[T]) -> T:
        """Run what is not a thread of the workload, to its end."""
        while True:
            try:
                wait = next(work)
            except StopIteration as over:
                result: T = over.value
                return result
            while not wait.is_over(self.now_ms):
                due_ms = min((at_ms for at_ms, _ in self._events), default=FOREVER)
                self._go_to(min(due_ms, wait.until_ms))

    def _go_to(self, at_ms: int) -> None:
        assert at_ms < FOREVER, "everything waits for ever"
        self.now_ms = max(self.now_ms, at_ms)
        due = [each for each in self._events if each[0] <= self.now_ms]
        self._events = [each for each in self._events if each[0] > self.now_ms]
        for _, action in due:
            action()

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Do something later."""
        self._events.append((self.now_ms + delay_ms, action))

    # -- inside --------------------------------------------------------------------------------

    def fail(self, call: str) -> None:
        """Fail the next call of that name if a test wants it."""
        waiting = self.call_failures.get(call)
        if waiting and (text := waiting.popleft()):
            raise ClientFailed(text)

    def write(self, partition: TopicPartition, key: bytes | None, value: bytes | None) -> None:
        """Append a record."""
        log = self.topics[partition.topic][partition.partition]
        log.append(Received(partition, len(log), self.now_ms, key, value))
        for arrival in self.arrivals:
            arrival.complete()
        self.arrivals.clear()

    def _check(self, kind: str, settings: Settings) -> None:
        self.settings.append(settings)
        if kind in self.refused_clients:
            raise ClientFailed(self.refused_clients[kind])


class SmallConsumer:
    """A consumer that has all partitions of its topics, from their beginning."""

    def __init__(self, world: SmallWorld, settings: Settings) -> None:
        self._world = world
        self._most = int(settings.get("max.poll.records", 500))
        self._positions: dict[TopicPartition, int] = {}

    def subscribe(self, topics: Sequence[str]) -> None:
        self.assign([each for topic in topics for each in self._partitions(topic)])

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self._positions = dict.fromkeys(partitions, 0)

    def seek_to_end(self) -> None:
        for topic, number in self._positions:
            end = len(self._world.topics[topic][number])
            self._positions[TopicPartition(topic, number)] = end

    def assignment(self) -> Sequence[TopicPartition]:
        return sorted(self._positions)

    def _partitions(self, topic: str) -> tuple[TopicPartition, ...]:
        if topic not in self._world.topics:
            raise ClientFailed(f"no topic {topic}")
        return tuple(TopicPartition(topic, each) for each in range(len(self._world.topics[topic])))

    def partitions_for(self, topic: str) -> Blocking[tuple[TopicPartition, ...]]:
        yield from ()
        return self._partitions(topic)

    def poll(self, timeout_ms: int) -> Blocking[Sequence[Received]]:
        self._world.fail("poll")
        until_ms = self._world.now_ms + timeout_ms
        yield Wait(until_ms=self._world.now_ms + 1)
        while not (found := self._fetched()) and self._world.now_ms < until_ms:
            arrival: Pending[None] = Pending()
            self._world.arrivals.append(arrival)
            yield Wait(arrival, until_ms=until_ms)
        return found

    def _fetched(self) -> list[Received]:
        found: list[Received] = []
        for partition, position in self._positions.items():
            log = self._world.topics[partition.topic][partition.partition]
            records = log[position : position + self._most - len(found)]
            self._positions[partition] += len(records)
            found += records
        return found

    def unsubscribe(self) -> Blocking[None]:
        self._world.done.append("unsubscribe")
        yield from ()

    def close(self) -> Blocking[None]:
        self._world.done.append("close consumer")
        yield from ()


class SmallProducer:
    """A producer; outcomes come in the order of the sends."""

    def __init__(self, world: SmallWorld) -> None:
        self._world = world
        self._open = 0
        self._transaction: int | None = None
        self._quiet: Pending[None] = Pending()

    def partitions_for(self, topic: str) -> Blocking[tuple[TopicPartition, ...]]:
        yield from ()
        if topic not in self._world.topics:
            raise ClientFailed(f"no topic {topic}")
        return tuple(TopicPartition(topic, each) for each in range(len(self._world.topics[topic])))

    def send(
        self, topic: str, partition: int | None, key: bytes | None, value: bytes | None, told: Told
    ) -> Blocking[None]:
        world = self._world
        world.fail("send")
        failure = world.send_failures.popleft() if world.send_failures else ""
        world.sent.append(Sent(world.elapsed_ms, partition, key, value, self._transaction))
        if not failure:
            world.write(TopicPartition(topic, partition or 0), key, value)
        self._open += 1

        def outcome() -> None:
            self._open -= 1
            told(failure or None)
            if not self._open:
                self._quiet.complete()

        world.after(world.ack_ms, outcome)
        yield from ()

    def flush(self) -> Blocking[None]:
        self._world.done.append("flush")
        yield from self._settle()

    def _settle(self) -> Blocking[None]:
        if self._open:
            self._quiet = Pending()
            yield Wait(self._quiet)

    def init_transactions(self) -> Blocking[None]:
        self._world.fail("init")
        self._world.done.append("init")
        yield from ()

    def begin_transaction(self) -> None:
        self._transaction = sum(line == "begin" for line in self._world.done)
        self._world.done.append("begin")

    def end_transaction(self, *, committed: bool) -> Blocking[None]:
        yield from self._settle()
        call = "commit" if committed else "abort"
        self._world.fail(call)
        self._world.done.append(call)

    def close(self) -> Blocking[None]:
        yield from self._settle()
        self._world.done.append("close producer")


class SmallAdmin:
    """An admin client."""

    def __init__(self, world: SmallWorld) -> None:
        self._world = world

    def create_topics(
        self, topics: Mapping[str, PartitionsSpec]
    ) -> Blocking[Mapping[str, NotCreated | None]]:
        world = self._world
        world.fail("create")
        refused = world.creations.popleft() if world.creations else {}
        world.done.append(f"create {len(topics)}")
        # An attempt takes a second.
        yield Wait(until_ms=world.now_ms + 1_000)
        outcomes: dict[str, NotCreated | None] = {}
        for name, spec in topics.items():
            if name in refused:
                outcomes[name] = refused[name]
            elif name in world.topics:
                outcomes[name] = NotCreated("TOPIC_ALREADY_EXISTS", f"Topic '{name}' exists.")
            else:
                outcomes[name] = None
                world.topics[name] = [[] for _ in spec.partition_numbers]
        return outcomes

    def partition_counts(self, topics: Sequence[str]) -> Blocking[Mapping[str, int | None]]:
        yield from ()
        self._world.done.append("describe topics")
        known = self._world.topics
        return {name: len(known[name]) if name in known else None for name in topics}

    def describe_cluster(self) -> Blocking[int]:
        yield from ()
        self._world.fail("describe")
        self._world.done.append("describe cluster")
        return 1

    def close(self) -> Blocking[None]:
        self._world.done.append("close admin")
        yield from ()


def began(world: SmallWorld, make: Callable[[Heard], Workload | None]) -> tuple[Workload, Heard]:
    """A workload that has begun, and what it tells."""
    heard = Heard(world)
    workload = make(heard)
    assert workload is not None
    workload.begin()
    return workload, heard
