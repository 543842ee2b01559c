"""A worker's stores without a worker: their topic effects are carried out at once.

Time stands still while anything can run, and then jumps to the next deadline of a thread. A topic
can be held, so that its readers see no new records, and an answer can be made to fail.
"""

from typing import Final, TypeVar, cast

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.effects import (
    CloseProducer,
    CreateTopic,
    DescribeTopic,
    DescribeTopicConfig,
    FenceProducers,
    Fetched,
    InitTransactions,
    ListEndOffsets,
    Produce,
    ProduceInTransaction,
    ReadToEnd,
    StartReading,
    StopReading,
    TopicRecord,
    WorkerEffect,
)
from coordinator_sim.connect.stores.topic_log import TopicLog
from coordinator_sim.connect.thread import Blocking, Outbox, Thread, Threads
from coordinator_sim.errors import InvariantViolation

T = TypeVar("T")

_CLEANUP_POLICY: Final = "cleanup.policy"


class _Topic:
    """A topic of one or more partitions; records go to the first by default."""

    def __init__(self, partitions: int, configs: dict[str, str]) -> None:
        self.partitions = partitions
        self.configs = configs
        self.records: list[TopicRecord] = []
        self.is_held = False
        self.read_to: int | None = None

    def end_offsets(self) -> dict[int, int]:
        """Return partition -> end offset."""
        ends = dict.fromkeys(range(self.partitions), 0)
        ends[0] = len(self.records)
        return ends


class TopicBench:
    """Topics in memory, and the threads that use them.

    Attributes:
        outbox: Outbox for making stores.
        asked: Every effect so far, oldest first.
        failures: Effect class -> errors of its next answers, in order.
        held: Effect classes that are not carried out until `release_held`.
        fenced: Transactional ids whose producer another process has taken since.
        threads: All threads that run here.
    """

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.asked: list[WorkerEffect] = []
        self.failures: dict[type, list[str]] = {}
        self.fenced: list[str] = []
        self.held: set[type] = set()
        self.threads = Threads()
        self._logs: dict[str, TopicLog] = {}
        self._topics: dict[str, _Topic] = {}

    def spawn(self, main: Blocking[None]) -> Thread:
        """Begin another thread."""
        return self.threads.start(main)

    def serve(self, log: TopicLog) -> None:
        """Pass this log the records fetched of its topic."""
        self._logs[log.topic.name] = log

    def make_topic(
        self, name: str, partitions: int = 1, configs: dict[str, str] | None = None
    ) -> None:
        """Create a topic before it is requested."""
        self._topics[name] = _Topic(partitions, configs or {_CLEANUP_POLICY: "compact"})

    def write(self, topic: str, key: str | None, value: bytes | None) -> int:
        """Append a record as another process does; return its offset."""
        found = self._topics[topic]
        offset = len(found.records)
        encoded = None if key is None else key.encode()
        record = TopicRecord(
            partition=0,
            offset=offset,
            key=encoded,
            value=value,
            timestamp_ms=self.outbox.now_ms,
        )
        found.records.append(record)
        return offset

    def records(self, topic: str) -> list[tuple[str, bytes | None]]:
        """Return keys and values of a topic, oldest first."""
        found = self._topics[topic].records
        return [((record.key or b"").decode(), record.value) for record in found]

    def hold(self, topic: str) -> None:
        """Keep new records from readers."""
        self._topics[topic].is_held = True

    def release(self, topic: str) -> None:
        """Show held records to readers."""
        self._topics[topic].is_held = False

    def call(self, main: Blocking[T]) -> T:
        """Run a blocking method, and all threads with it, until it returns.

        Raises:
            JavaException: the method throws it.
            InvariantViolation: the method waits for something that never comes.
        """
        returned: list[T] = []

        def body() -> Blocking[None]:
            returned.append((yield from main))

        thread = self.threads.start(body())
        while not thread.is_finished:
            self.settle()
            if not thread.is_finished:
                self._sleep()
        return returned[0]

    def settle(self) -> None:
        """Run the threads and carry out their effects, until nothing changes."""
        is_moving = True
        while is_moving:
            is_moving = self.threads.run(self.outbox.now_ms)
            for effect in self.outbox.take():
                self.asked.append(effect)
                self._carry_out(effect)
                is_moving = True
            for name in self._topics:
                is_moving |= self._deliver(name)

    def advance(self, duration_ms: int) -> None:
        """Let time pass."""
        self.outbox.now_ms += duration_ms
        self.settle()

    def _sleep(self) -> None:
        deadline_ms = self.threads.deadline_ms
        if deadline_ms >= FOREVER:
            raise InvariantViolation("the call waits for something that never comes")
        self.outbox.now_ms = max(self.outbox.now_ms, deadline_ms)

    def _deliver(self, name: str) -> bool:
        topic, log = self._topics[name], self._logs.get(name)
        end = len(topic.records)
        if log is None or topic.is_held or topic.read_to is None or topic.read_to >= end:
            return False
        records = tuple(topic.records[topic.read_to :])
        topic.read_to = end
        log.fetched(Fetched(topic=name, records=records, positions={0: end}))
        return True

    def release_held(self, kind: type[WorkerEffect]) -> None:
        """Carry out effects of this class that were held."""
        self.held.discard(kind)
        for effect in self.asked:
            if isinstance(effect, kind):
                self._carry_out(effect)
        self.settle()

    def _carry_out(self, effect: WorkerEffect) -> None:
        if type(effect) in self.held:
            return
        errors = self.failures.get(type(effect))
        if errors:
            token = cast("Produce", effect).token
            self.outbox.answered(token, error=errors.pop(0))
            return
        match effect:
            case StartReading(topic=name):
                self._topics[name].read_to = 0
            case StopReading(topic=name):
                self._topics[name].read_to = None
            case CloseProducer() | ReadToEnd():
                pass
            case Produce(token=token, topic=name, key=key, value=value):
                offset = self.write(name, None if key is None else key.decode(), value)
                self.outbox.answered(token, offset)
            case ProduceInTransaction(token=token, transactional_id=producer):
                self._produce_in_transaction(effect, token, producer)
            case InitTransactions(token=token, transactional_id=producer):
                self.fenced = [other for other in self.fenced if other != producer]
                self.outbox.answered(token)
            case FenceProducers(token=token, transactional_ids=producers):
                self.fenced.extend(producers)
                self.outbox.answered(token)
            case _:
                self._describe(effect)

    def _describe(self, effect: WorkerEffect) -> None:
        match effect:
            case CreateTopic(token=token, topic=name):
                is_new = name not in self._topics
                if is_new:
                    self.make_topic(name, max(effect.partitions, 1), effect.configs)
                self.outbox.answered(token, is_new)
            case DescribeTopic(token=token, topic=name):
                topic = self._topics.get(name)
                self.outbox.answered(token, 0 if topic is None else topic.partitions)
            case DescribeTopicConfig(token=token, topic=name, name=setting):
                self.outbox.answered(token, self._topics[name].configs.get(setting, ""))
            case ListEndOffsets(token=token, topic=name):
                self.outbox.answered(token, self._topics[name].end_offsets())
            case _:
                self.carry_out_other(effect)

    def carry_out_other(self, effect: WorkerEffect) -> None:
        """Refuse an effect that no store requests; subclasses may carry it out.

        Raises:
            InvariantViolation: always.
        """
        raise InvariantViolation(f"no effect of a store: {type(effect).__name__}")

    def _produce_in_transaction(
        self, effect: ProduceInTransaction, token: int, producer: str
    ) -> None:
        if producer in self.fenced:
            self.outbox.answered(token, error="ProducerFencedException")
            return
        for key, value in effect.records:
            self.write(effect.topic, key.decode(), value)
        self.outbox.answered(token)
