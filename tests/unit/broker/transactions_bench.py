"""A transaction coordinator with a log and partitions in memory, for the tests of transactions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import FeatureSet, TopicCreated
from coordinator_sim.broker.metadata.image import NO_LEADER, MetadataImage
from coordinator_sim.broker.scheduler import Scheduler
from coordinator_sim.broker.transactions import coordinator
from coordinator_sim.broker.transactions.ending import EndRequest
from coordinator_sim.broker.transactions.metadata import (
    TV_0,
    TV_2,
    TransactionMetadata,
    TransactionState,
)
from coordinator_sim.broker.transactions.ports import Marker, MarkerDone, TransactionConfig
from coordinator_sim.broker.transactions.states import Owned, TransactionStates
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import TRANSACTIONS_TOPIC
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format.steps import finished
from coordinator_sim.log.log_values import LogEntry

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
START = 1_000_000


class MemoryLog:
    """The state log. `failure` is what the next appends fail with."""

    def __init__(self) -> None:
        self.partitions: dict[int, list[LogEntry]] = {}
        self.failure = ErrorCode.NONE

    def append(
        self, partition: int, _leader_epoch: int, entries: Sequence[LogEntry], _now_ms: int
    ) -> ErrorCode:
        """As `StateLog.append`."""
        if self.failure is ErrorCode.NONE:
            self.partitions.setdefault(partition, []).extend(entries)
        return self.failure

    def entries(self, partition: int) -> Iterator[LogEntry]:
        """As `StateLog.entries`."""
        return iter(self.partitions.get(partition, ()))


@dataclass
class MemoryMarkers:
    """Partitions that take markers.

    Attributes:
        leaders: Of partitions that are not led by broker 1; None for one that is deleted.
        answer: What the next markers are answered.
        late: Markers whose answer the test gives itself.
        holds: Whether markers go to `late`.
    """

    leaders: dict[TopicPartition, int | None] = field(default_factory=dict)
    written: list[tuple[TopicPartition, Marker]] = field(default_factory=list)
    answer: ErrorCode = ErrorCode.NONE
    holds: bool = False
    late: list[tuple[TopicPartition, Marker, MarkerDone]] = field(default_factory=list)

    def leader_of(self, place: TopicPartition) -> int | None:
        """As `MarkerWriting.leader_of`."""
        return self.leaders.get(place, 1)

    def write(
        self,
        _broker_id: int,
        place: TopicPartition,
        marker: Marker,
        now: Instants,
        done: MarkerDone,
    ) -> None:
        """As `MarkerWriting.write`."""
        if self.holds:
            self.late.append((place, marker, done))
            return
        if self.answer is ErrorCode.NONE:
            self.written.append((place, marker))
        done(place, self.answer, now)

    def leaders_changed(self) -> None:
        """As `MarkerWriting.leaders_changed`."""

    def release(self, now: Instants) -> None:
        """Write what was held back."""
        held, self.late = self.late, []
        self.holds = False
        for place, marker, done in held:
            self.written.append((place, marker))
            done(place, ErrorCode.NONE, now)

    def lose_leader(self, place: TopicPartition) -> None:
        """Leave that partition without a leader."""
        self.leaders[place] = NO_LEADER


class Bench:
    """One coordinator, which leads every partition of the state log, at instants of a clock.

    Args:
        transaction_version: The finalized level of the feature.
        config: Of the broker.
    """

    def __init__(
        self, transaction_version: int = TV_2, config: TransactionConfig | None = None
    ) -> None:
        self.image = MetadataImage()
        self.image.apply(FeatureSet("transaction.version", transaction_version))
        replicas = tuple((1,) for _ in range(3))
        self.image.apply(TopicCreated(TRANSACTIONS_TOPIC, b"t" * 16, replicas))
        self.log = MemoryLog()
        self.markers = MemoryMarkers()
        self.config = TransactionConfig() if config is None else config
        self.now_ms = START
        self.epoch = 0
        self.coordinator = self._new()
        self.elect()

    def _new(self) -> coordinator.TransactionCoordinator:
        states = TransactionStates(self.config, self.image, self.log)
        ids = coordinator.ProducerIds(self.image, self.image.apply)
        return coordinator.TransactionCoordinator(
            self.config, states, ids, self.markers, Scheduler(), self.now_ms
        )

    @property
    def now(self) -> Instants:
        """The present; both clocks are one."""
        return Instants(self.now_ms, self.now_ms)

    def elect(self) -> None:
        """Lead all partitions of the state log."""
        for partition in range(3):
            self.coordinator.on_election(partition, self.epoch, self.now)

    def fail_over(self) -> None:
        """Another broker takes over: what was not written is lost."""
        self.epoch += 1
        self.coordinator = self._new()
        self.elect()

    def advance(self, duration_ms: int) -> None:
        """Let time pass, and whatever is due happen."""
        end_ms = self.now_ms + duration_ms
        while (due_ms := self.coordinator.next_group_deadline_ms()) is not None:
            if due_ms > end_ms:
                break
            self.now_ms = max(due_ms, self.now_ms)
            finished(self.coordinator.expire(self.now))
        self.now_ms = end_ms
        finished(self.coordinator.expire(self.now))

    # -- requests -----------------------------------------------------------------------------

    def init(
        self,
        transactional_id: str | None = "id",
        *,
        timeout_ms: int = 60_000,
        expected: coordinator.ProducerIdentity | None = None,
        keep_prepared: bool = False,
        two_phase: bool = False,
    ) -> tuple[ErrorCode, coordinator.ProducerIdentity]:
        """InitProducerId."""
        request = coordinator.InitRequest(
            transactional_id=transactional_id,
            timeout_ms=timeout_ms,
            expected=expected,
            keep_prepared=keep_prepared,
            enable_two_phase_commit=two_phase,
        )
        return self.coordinator.init_producer_id(request, self.now)

    def producer(self, transactional_id: str = "id") -> coordinator.ProducerIdentity:
        """A producer that begins."""
        error, identity = self.init(transactional_id)
        assert error is ErrorCode.NONE
        return identity

    def add(
        self,
        producer: coordinator.ProducerIdentity,
        *places: TopicPartition,
        version: int = TV_0,
        transactional_id: str = "id",
    ) -> ErrorCode:
        """AddPartitionsToTxn."""
        return self.coordinator.add_partitions(
            transactional_id, producer, places or (T0,), self.now, client_version=version
        )

    def end(
        self,
        producer: coordinator.ProducerIdentity,
        *,
        committed: bool = True,
        version: int = TV_0,
        transactional_id: str = "id",
    ) -> tuple[ErrorCode, coordinator.ProducerIdentity]:
        """EndTxn."""
        request = EndRequest(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            committed=committed,
            client_version=version,
        )
        return self.coordinator.end(request, self.now)

    # -- what is known ------------------------------------------------------------------------

    def metadata(self, transactional_id: str = "id") -> TransactionMetadata:
        """Of an id that is there."""
        owned = self.coordinator.states.find(transactional_id)
        assert isinstance(owned, Owned)
        return owned.metadata

    def state(self, transactional_id: str = "id") -> TransactionState:
        """Of an id that is there."""
        return self.metadata(transactional_id).state

    def reserved(self) -> int:
        """The producer ids that may be in use."""
        return self.image.next_producer_id
