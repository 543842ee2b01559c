"""When a write is finished, in the Java and in the Scala way."""

from dataclasses import dataclass, field

import pytest

from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.runtime import Effect, Partition, Runtime, ScalaRuntime, Write
from coordinator_sim.harness.harness import FailingAppends
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.seeded_ids import SeededIds
from coordinator_sim.messages.group_records import GroupMetadataKey
from coordinator_sim.messages.records import EndTransactionMarker, LogBatch, LogRecord

RECORDS = (LogRecord(GroupMetadataKey("g"), None, 3),)


@dataclass
class Story:
    """Hears what becomes of writes, in order."""

    heard: list[str] = field(default_factory=list)


@dataclass
class Told:
    """The follow-up of one write."""

    story: Story
    name: str

    def finish(self, error: ErrorCode) -> None:
        """Note how the write ended."""
        self.story.heard.append(f"{self.name} {error.name}")

    def applied(self, batch: LogBatch, written: int) -> None:  # noqa: ARG002 - of no interest here
        """Note that the log took the batch."""
        self.story.heard.append(f"{self.name} at {batch.base_offset}")


class Bench:
    """A runtime with one partition whose high watermark is held."""

    def __init__(self, profile: str, *, held: bool = True, idle_timers: bool = False) -> None:
        self.appends = FailingAppends()
        config = CoordinatorConfig(hold_high_watermark=held, trace=False, idle_timers=idle_timers)
        known = profile_named(profile)
        kind = Runtime if known.has_coordinator_runtime else ScalaRuntime
        self.runtime = kind(config, known, SeededIds(0), self.appends)
        self.partition = Partition(index=0, profile=known, present_ms=lambda: 0)
        self.story = Story()

    def submit(self, name: str, records: tuple[LogRecord, ...] = RECORDS) -> None:
        """Submit a write of that name."""
        told = Told(self.story, name)
        self.runtime.submit(self.partition, None, Effect(records, follow=told, apply=told))

    def commit(self, offset: int) -> None:
        """Advance the high watermark."""
        self.partition.high_watermark = offset
        self.runtime.release(self.partition)


def test_java_write_without_records_waits_behind_earlier_ones() -> None:
    """In Java an operation that appends nothing waits for the position it saw."""
    bench = Bench("4.4")
    bench.submit("a")
    bench.submit("b", ())
    assert bench.story.heard == ["a at 0"]
    bench.commit(1)
    assert bench.story.heard == ["a at 0", "a NONE", "b NONE"]


def test_scala_write_without_records_is_finished_at_once() -> None:
    """In Scala an operation that appends nothing waits for nobody."""
    bench = Bench("3.9")
    bench.submit("a")
    bench.submit("b", ())
    assert bench.story.heard == ["a at 0", "b NONE"]


def test_scala_writes_are_finished_batch_by_batch() -> None:
    """In Scala each write is finished when its own batch is committed."""
    bench = Bench("3.9")
    bench.submit("a")
    bench.submit("b")
    bench.commit(1)
    assert bench.story.heard == ["a at 0", "b at 1", "a NONE"]


@pytest.mark.parametrize("profile", ["3.9", "4.4"])
def test_refused_append_is_told_at_once_and_not_applied(profile: str) -> None:
    """A refused append finishes its write with the error, while others wait."""
    bench = Bench(profile)
    bench.submit("a")
    bench.appends.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)
    bench.submit("b")
    assert bench.story.heard == ["a at 0", "b NOT_LEADER_OR_FOLLOWER"]
    assert bench.partition.end_offset == 1


@pytest.mark.parametrize("profile", ["3.9", "4.4"])
def test_write_times_out_and_a_later_commit_says_nothing(profile: str) -> None:
    """A write not committed in time ends with REQUEST_TIMED_OUT, once."""
    bench = Bench(profile)
    bench.submit("a")
    timer = bench.runtime.timers.pop_due(5_000)
    assert timer is not None
    assert timer.key.kind is TimerKind.WRITE
    assert isinstance(timer.data, Write)
    bench.runtime.expire_write(timer.data)
    bench.commit(1)
    assert bench.story.heard == ["a at 0", "a REQUEST_TIMED_OUT"]


def test_marker_is_a_batch_of_one_offset() -> None:
    """A control batch carries its producer and takes one offset."""
    bench = Bench("4.4", held=False)
    marker = EndTransactionMarker(committed=True)
    bench.runtime.submit(
        bench.partition, None, Effect(producer_id=7, producer_epoch=1, marker=marker)
    )
    (batch,) = bench.runtime.take().batches
    assert (batch.producer_id, batch.producer_epoch, batch.marker) == (7, 1, marker)
    assert bench.partition.end_offset == 1


def wakes_up_for(effect: Effect, error: ErrorCode) -> bool:
    """Whether the timing wheel turns by the timeout of a write that has ended so."""
    bench = Bench("4.4", held=False, idle_timers=True)
    if error is not ErrorCode.NONE:
        bench.appends.fail(error, 1)
    bench.runtime.submit(bench.partition, None, effect)
    return bench.runtime.timers.wake_up_ms() is not None


def test_a_write_that_is_refused_alone_never_had_a_timeout() -> None:
    """Transactional records and markers are appended at once, all others by a later event."""
    plain = Effect(RECORDS)
    transactional = Effect(RECORDS, producer_id=7, transactional=True)
    marker = Effect(producer_id=7, marker=EndTransactionMarker(committed=True))
    refused = ErrorCode.NOT_LEADER_OR_FOLLOWER
    for effect, expected in ((plain, True), (transactional, False), (marker, False)):
        assert wakes_up_for(effect, ErrorCode.NONE)
        assert wakes_up_for(effect, refused) is expected


def test_unacknowledged_append_ignores_faults_and_the_held_watermark() -> None:
    """Tombstones of Scala's clean-up go to the log whatever appends do."""
    bench = Bench("3.9")
    bench.appends.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)
    bench.runtime.append_unacknowledged(bench.partition, RECORDS)
    assert bench.partition.end_offset == 1
    assert not bench.partition.deferred
