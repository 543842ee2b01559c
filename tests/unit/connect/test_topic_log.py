"""A topic as a log: its creation, the start, reads to the end, writes, failures."""

from collections.abc import Callable

import pytest

from coordinator_sim.connect import effects
from coordinator_sim.connect.exceptions import (
    ClientException,
    ConfigException,
    ConnectException,
    TimeoutException,
)
from coordinator_sim.connect.stores.topic_log import InternalTopic, TopicLog
from coordinator_sim.connect.thread import Blocking, Pending
from coordinator_sim_conformance.client_cases.topic_bench import TopicBench

TOPIC = InternalTopic(name="t", setting="config.storage.topic", purpose="configurations")


def make_log(
    bench: TopicBench,
    topic: InternalTopic = TOPIC,
    consumed: Callable[[effects.TopicRecord | effects.RecordRun], None] | None = None,
) -> tuple[TopicLog, list[bytes | None]]:
    """A log at the bench, and the values that it hands over."""
    values: list[bytes | None] = []

    def note(record: effects.TopicRecord | effects.RecordRun) -> None:
        assert isinstance(record, effects.TopicRecord)
        values.append(record.value)

    log = TopicLog(bench.outbox, bench.spawn, topic=topic, consumed=consumed or note)
    bench.serve(log)
    return log, values


def test_a_new_topic_is_created_compacted_and_read_to_its_end() -> None:
    """Creation, partitions, reading, end offsets, in this order."""
    bench = TopicBench()
    log, _ = make_log(bench)
    bench.call(log.start())
    assert [type(effect) for effect in bench.asked] == [
        *(
            effects.CreateTopic,
            effects.DescribeTopic,
            effects.StartReading,
            effects.ListEndOffsets,
            effects.ReadToEnd,
        )
    ]
    create = bench.asked[0]
    assert isinstance(create, effects.CreateTopic)
    assert create.configs == {"cleanup.policy": "compact"}
    assert log.partition_count == 1


def test_start_hands_over_all_that_is_there() -> None:
    """What was in the topic has been consumed when start returns; later records follow."""
    bench = TopicBench()
    bench.make_topic("t")
    for value in (b"1", b"2"):
        bench.write("t", "k", value)
    log, values = make_log(bench)
    bench.call(log.start())
    assert values == [b"1", b"2"]
    bench.write("t", "k", b"3")
    bench.settle()
    assert (values, log._positions) == ([b"1", b"2", b"3"], {0: 3})


def test_a_topic_that_may_lose_records_is_refused() -> None:
    """An existing topic must be compacted alone."""
    bench = TopicBench()
    bench.make_topic("t", configs={"cleanup.policy": "compact, delete"})
    log, _ = make_log(bench)
    with pytest.raises(ConfigException, match=r"cleanup\.policy=compact, delete"):
        bench.call(log.start())


def test_the_creation_is_tried_again_while_brokers_are_missing() -> None:
    """A lack of brokers and a timeout are worth a retry, anything else is not."""
    bench = TopicBench()
    bench.failures[effects.CreateTopic] = ["InvalidReplicationFactorException", "TimeoutException"]
    log, _ = make_log(bench)
    bench.call(log.start())
    assert bench.outbox.now_ms == 200
    other = TopicBench()
    other.failures[effects.CreateTopic] = ["PolicyViolationException"]
    log, _ = make_log(other)
    with pytest.raises(ConnectException, match="attempting to create"):
        other.call(log.start())


def test_who_may_not_create_topics_believes_that_they_exist() -> None:
    """A refusal is no failure: the topic may be there, or be made by use."""
    bench = TopicBench()
    bench.make_topic("t")
    bench.failures[effects.CreateTopic] = ["TopicAuthorizationException"]
    log, _ = make_log(bench)
    bench.call(log.start())
    assert log.partition_count == 1


def test_partitions_are_waited_for_30_seconds() -> None:
    """Looks after 100, 300, 700, 1500 ms, then every second; then it is given up."""
    bench = TopicBench()
    bench.make_topic("t", partitions=0)
    log, _ = make_log(bench)
    with pytest.raises(ConnectException, match="Could not look up partition metadata"):
        bench.call(log.start())
    looks = sum(isinstance(effect, effects.DescribeTopic) for effect in bench.asked)
    assert (bench.outbox.now_ms, looks) == (30_500, 34)


def test_end_offsets_are_retried_every_10_seconds_for_15_minutes_at_the_start() -> None:
    """Retriable errors only; then the start fails."""
    bench = TopicBench()
    bench.failures[effects.ListEndOffsets] = ["TimeoutException"] * 200
    log, _ = make_log(bench)
    with pytest.raises(ConnectException, match="after 91 attempts"):
        bench.call(log.start())
    assert bench.outbox.now_ms == 900_000


def test_a_broker_that_cannot_tell_the_admin_is_asked_by_the_consumer() -> None:
    """Save where only committed records are read: then the start fails."""
    bench = TopicBench()
    bench.failures[effects.ListEndOffsets] = ["UnsupportedVersionException"]
    log, _ = make_log(bench)
    bench.call(log.start())
    last = bench.asked[-2]
    assert isinstance(last, effects.ListEndOffsets)
    assert last.by_consumer
    other = TopicBench()
    other.failures[effects.ListEndOffsets] = ["UnsupportedVersionException"]
    committed = InternalTopic(name="t", setting="s", purpose="p", read_committed=True)
    log, _ = make_log(other, committed)
    with pytest.raises(ClientException, match="UnsupportedVersionException"):
        other.call(log.start())


def test_a_read_to_the_end_sees_what_was_sent_before() -> None:
    """Sent, written, read back."""
    bench = TopicBench()
    log, values = make_log(bench)
    bench.call(log.start())
    log.send(b"k", b"v")
    bench.call(log.await_end(1_000))
    assert values == [b"v"]


def test_one_pass_serves_the_calls_queued_before_it_began() -> None:
    """Two calls queued together cost one question for end offsets; one queued later its own."""
    bench = TopicBench()
    log, _ = make_log(bench)
    bench.call(log.start())
    bench.asked.clear()

    def both() -> Blocking[list[Pending[object]]]:
        return [(yield from log.read_to_end()), (yield from log.read_to_end())]

    calls = bench.call(both())
    bench.settle()
    assert [call.done for call in calls] == [True, True]
    assert [type(effect) for effect in bench.asked] == [effects.ListEndOffsets]
    bench.call(log.await_end(1_000))
    assert [type(effect) for effect in bench.asked] == [effects.ListEndOffsets] * 2


def test_a_reader_behind_keeps_its_callers_waiting() -> None:
    """The caller's own timeout ends its wait; the call itself is served later."""
    bench = TopicBench()
    log, values = make_log(bench)
    bench.call(log.start())
    bench.hold("t")
    bench.write("t", "k", b"v")
    with pytest.raises(TimeoutException):
        bench.call(log.await_end(3_000))
    assert (bench.outbox.now_ms, values) == (3_000, [])
    later = bench.call(log.read_to_end())
    bench.settle()
    assert not later.done
    bench.release("t")
    bench.settle()
    assert (later.done, values) == (True, [b"v"])


def test_a_retriable_error_begins_the_pass_anew_and_another_fails_its_calls() -> None:
    """In the background nothing is slept between tries."""
    bench = TopicBench()
    log, _ = make_log(bench)
    bench.call(log.start())
    bench.failures[effects.ListEndOffsets] = ["TimeoutException", "LeaderNotAvailableException"]
    bench.call(log.await_end(1_000))
    bench.failures[effects.ListEndOffsets] = ["TopicAuthorizationException"]
    call = bench.call(log.read_to_end())
    bench.settle()
    assert call.error == "ConnectException"
    bench.call(log.await_end(1_000))


def test_what_the_owner_throws_costs_the_rest_of_the_poll() -> None:
    """The records behind the bad one in the same poll are never handed over."""
    bench = TopicBench()
    bench.make_topic("t")
    for value in (b"1", b"bad", b"3"):
        bench.write("t", "k", value)
    seen: list[bytes | None] = []

    def choosy(record: effects.TopicRecord | effects.RecordRun) -> None:
        assert isinstance(record, effects.TopicRecord)
        if record.value == b"bad":
            raise ConnectException("bad")
        seen.append(record.value)

    log, _ = make_log(bench, consumed=choosy)
    bench.call(log.start())
    bench.write("t", "k", b"4")
    bench.settle()
    assert seen == [b"1", b"4"]


def test_flush_waits_for_writes_and_not_for_their_success() -> None:
    """A failed record is the sender's affair."""
    bench = TopicBench()
    log, values = make_log(bench)
    bench.call(log.start())
    bench.failures[effects.Produce] = ["RecordTooLargeException"]
    failed = log.send(b"k", b"1")
    log.send(b"k", b"2")
    bench.call(log.flush())
    assert (failed.error, values) == ("RecordTooLargeException", [b"2"])


def test_stop_ends_the_thread_and_closes_the_consumer() -> None:
    """Records written afterwards are not handed over."""
    bench = TopicBench()
    log, values = make_log(bench)
    bench.call(log.start())
    bench.call(log.stop())
    bench.write("t", "k", b"v")
    bench.settle()
    assert (values, type(bench.asked[-1])) == ([], effects.StopReading)
