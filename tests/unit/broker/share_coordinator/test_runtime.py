"""Writes and loads of one broker's partitions: what waits, and what is read again."""

from collections.abc import Iterator
from typing import Any

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.share_coordinator.operations import StateResponse
from coordinator_sim.broker.share_coordinator.ports import ShareCoordinatorConfig
from coordinator_sim.broker.share_coordinator.service import ShareCoordinator
from coordinator_sim.harness.share_state_lines import MemoryStateLog
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.share_state_records import encode_share_state
from coordinator_sim.log.format.steps import finished
from coordinator_sim.messages import initialize_share_group_state as initialize
from coordinator_sim.messages import read_share_group_state as read
from coordinator_sim.messages.share_state_records import ShareSnapshotKey

TOPIC = bytes(15) + b"\x07"
START = Instants(0, 0)


class Bench:
    """A coordinator of one partition, with its log in memory.

    Args:
        linger_ms: How long batches wait for more records.
        log: Of another coordinator before it; None for a new one.
    """

    def __init__(self, linger_ms: int = -1, log: MemoryStateLog | None = None) -> None:
        self.appended: list[Any] = []
        self.log = log or MemoryStateLog(self._committed, self.appended.append)
        self.log.committed = self._committed
        config = ShareCoordinatorConfig(
            state_topic_partitions=1, append_linger_ms=linger_ms, write_timeout_ms=1_000
        )
        self.armed: list[int | None] = []
        self.coordinator = ShareCoordinator(config, self.log, self, self.armed.append)
        self.coordinator.startup()
        self.answers: list[StateResponse] = []

    def _committed(self, partition: int, offset: int) -> None:
        self.coordinator.runtime.committed(partition, offset)

    def partition_count(self, topic_id: bytes) -> int | None:
        """There is one topic."""
        return 4 if topic_id == TOPIC else None

    def initialize(self, *partitions: int, now_ms: int = 0) -> None:
        """Begin to keep the state of partitions."""
        asked = tuple(initialize.PartitionData(each, 1, 5) for each in partitions)
        topics = (initialize.InitializeStateData(TOPIC, asked),)
        request = initialize.InitializeShareGroupStateRequest("g", topics)
        finished(self.coordinator.handle(request, self.answers.append, now_ms))

    def read(self, partition: int = 0, now_ms: int = 0) -> None:
        """Read the state of a partition, without an epoch that would be written."""
        topics = (read.ReadStateData(TOPIC, (read.PartitionData(partition, 0),)),)
        request = read.ReadShareGroupStateRequest("g", topics)
        finished(self.coordinator.handle(request, self.answers.append, now_ms))

    def errors(self) -> list[list[ErrorCode]]:
        """The errors of each answer's partitions."""
        return [
            [part.error_code for topic in answer.results for part in topic.partitions]
            for answer in self.answers
        ]


def test_a_batch_lingers_for_more_records() -> None:
    """A request's parts share it, and a read behind them waits too."""
    bench = Bench(linger_ms=20)
    bench.coordinator.on_election(0, 1, START)
    bench.initialize(0, 1, now_ms=100)
    bench.read(now_ms=110)
    assert bench.answers == []
    assert bench.coordinator.next_group_deadline_ms() == 120
    bench.coordinator.expire(120)
    assert bench.errors() == [[ErrorCode.NONE] * 2, [ErrorCode.NONE]]
    assert [record["base"] for record in bench.appended] == [0, 0]


def test_upkeep_arms_the_alarm_once_there_is_state() -> None:
    """Written here, or loaded by the coordinator after it."""
    bench = Bench()
    bench.coordinator.enable(is_enabled=True, now_ms=0)
    bench.coordinator.on_election(0, 1, START)
    assert (bench.armed, bench.coordinator.next_group_deadline_ms()) == ([], None)
    bench.initialize(0)
    assert bench.coordinator.next_group_deadline_ms() in bench.armed

    follower = Bench(log=bench.log)
    follower.coordinator.enable(is_enabled=True, now_ms=0)
    follower.coordinator.on_election(0, 2, START)
    assert follower.coordinator.next_group_deadline_ms() in follower.armed


def test_a_write_that_nobody_commits_times_out() -> None:
    """What is behind it waits as well; both are answered when their time is over."""
    bench = Bench()
    bench.coordinator.on_election(0, 1, START)
    bench.log.is_held = True
    bench.initialize(0, now_ms=0)
    bench.read(now_ms=400)
    bench.coordinator.expire(1_000)
    assert bench.errors() == [[ErrorCode.COORDINATOR_NOT_AVAILABLE]]
    bench.log.commit(0, 1)
    assert bench.errors()[1:] == [[ErrorCode.NONE]]


def test_a_resignation_fails_what_waits() -> None:
    """An older epoch changes nothing."""
    bench = Bench()
    bench.coordinator.on_election(0, 3, START)
    bench.log.is_held = True
    bench.initialize(0)
    bench.coordinator.on_resignation(0, 2, START)
    assert bench.answers == []
    bench.coordinator.on_resignation(0, 4, START)
    assert bench.errors() == [[ErrorCode.NOT_COORDINATOR]]


def test_what_somebody_else_wrote_is_read_before_anything_more() -> None:
    """The partition is loaded again, and the operation refused that found it out."""
    bench = Bench()
    bench.coordinator.on_election(0, 1, START)
    bench.initialize(0)
    gone = encode_share_state(ShareSnapshotKey("g", TOPIC, 0), None)
    bench.log.append(0, 1, [gone], 0)
    bench.initialize(1)
    bench.read(0)
    bench.read(1)
    assert bench.errors() == [
        [ErrorCode.NONE],
        [ErrorCode.NOT_COORDINATOR],
        [ErrorCode.INVALID_REQUEST],
        [ErrorCode.NONE],
    ]


class BrokenLog(MemoryStateLog):
    """Its one record has a value of a version that Kafka does not know."""

    def records(self, partition: int) -> Iterator[tuple[int, bytes, bytes | None]]:
        """Offset, key and value."""
        key, _ = encode_share_state(ShareSnapshotKey("g", TOPIC, 0), None)
        yield partition, key, b"\x00\x09"


def test_a_log_that_cannot_be_read_has_no_coordinator() -> None:
    """Until another election finds it readable."""
    bench = Bench(log=BrokenLog(lambda _partition, _offset: None, lambda _record: None))
    bench.coordinator.on_election(0, 1, START)
    bench.read()
    assert bench.errors() == [[ErrorCode.NOT_COORDINATOR]]


def test_a_coordinator_that_is_shut_down_is_not_available() -> None:
    """What waits is refused; what comes later, in the request's own order."""
    bench = Bench()
    bench.coordinator.on_election(0, 1, START)
    bench.log.is_held = True
    bench.initialize(0)
    bench.coordinator.shutdown(0)
    bench.initialize(1, 0)
    assert bench.errors() == [
        [ErrorCode.NOT_COORDINATOR],
        [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2,
    ]
    last = bench.answers[-1].results[0].partitions
    assert [part.partition for part in last] == [1, 0]
