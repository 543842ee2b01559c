"""ConsumeBench and RoundTrip, with a cluster in memory."""

from collections import deque
from typing import Any

import pytest

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.trogdor.generator_specs import ConstantPayloadGenerator
from coordinator_sim.trogdor.topic_specs import PartitionsSpec, TopicsSpec
from coordinator_sim.trogdor.workload_specs import ConsumeBenchSpec, RoundTripWorkloadSpec
from coordinator_sim.trogdor.workloads.clients import Workload
from coordinator_sim.trogdor.workloads.registry import workload_of
from coordinator_sim.trogdor.workloads.round_trip import consumer_settings, producer_settings
from tests.unit.trogdor.small_world import Heard, SmallWorld, began

TRIP = {
    "bootstrap_servers": "b:9092",
    "active_topics": TopicsSpec(topics={"foo": PartitionsSpec(num_partitions=2)}),
    "target_messages_per_sec": 100,
    "max_messages": 25,
}


def consume(world: SmallWorld, **settings: Any) -> tuple[Workload, Heard]:  # noqa: ANN401 - of any type
    """A ConsumeBench that has begun."""
    spec = ConsumeBenchSpec(**settings)
    return began(world, lambda heard: workload_of("t", spec, world, heard))


def trip(world: SmallWorld, **changes: Any) -> tuple[Workload, Heard]:  # noqa: ANN401 - of any type
    """A RoundTrip that has begun."""
    spec = RoundTripWorkloadSpec(**{**TRIP, **changes})
    return began(world, lambda heard: workload_of("t", spec, world, heard))


def trip_status(sent: int, received: int) -> dict[str, int]:
    """The status of a RoundTrip."""
    return {"totalUniqueSent": sent, "totalReceived": received}


# -- ConsumeBench ----------------------------------------------------------------------------------


def test_consume_bench_is_over_at_the_full_minute() -> None:
    """All is read at once; that it is, is seen and told after a minute."""
    world = SmallWorld(foo=2)
    for number in range(10):
        world.write(TopicPartition("foo", number % 2), b"k", b"v" * 9)
    # The name in the status is the worker's, even where the client id is another.
    _, heard = consume(
        world, active_topics=("foo",), max_messages=10, consumer_conf={"client.id": "mine"}
    )
    world.run_until(59_999)
    assert heard.statuses == []
    world.run_until(60_000)

    assert heard.ending == ""
    assert heard.statuses[-1] == {
        "consumer.t-0": {
            "assignedPartitions": ["foo-0", "foo-1"],
            "totalMessagesReceived": 10,
            "totalBytesReceived": 100,
            "averageMessageSizeBytes": 10,
            "averageLatencyMs": 1.0,
            "p50LatencyMs": 1,
            "p95LatencyMs": 1,
            "p99LatencyMs": 1,
        }
    }
    assert world.done == ["unsubscribe", "close consumer"]


def test_consume_bench_reads_at_its_rate() -> None:
    """A rate of 20 a second is two each tenth of a second.

    What each consumer has read comes into the status a minute later than the first status.
    """
    world = SmallWorld(foo=1)
    for _ in range(2_000):
        world.write(TopicPartition("foo", 0), None, b"v")
    _, heard = consume(
        world, active_topics=("foo",), max_messages=10_000, target_messages_per_sec=20
    )
    world.run_until(61_000)
    assert heard.statuses == [{}]
    world.run_until(121_000)

    assert heard.ending is None
    assert heard.statuses[-1]["consumer.t-0"]["totalMessagesReceived"] == 1_201


def test_consume_bench_that_is_stopped_closes_one_consumer() -> None:
    """The second consumer stays open."""
    world = SmallWorld(foo=1)
    workload, heard = consume(world, active_topics=("foo",), max_messages=9, threads_per_worker=2)
    world.run_until(1_000)
    world.finish(workload.end())

    assert heard.ending == ""
    assert heard.statuses == []
    assert world.done == ["unsubscribe", "close consumer"]


def test_consume_bench_shares_no_group_by_hand() -> None:
    """Partitions by name, a group and two consumers exclude one another."""
    world = SmallWorld(foo=2)
    settings = {"active_topics": ("foo:1",), "threads_per_worker": 2, "max_messages": 1}
    _, heard = consume(world, consumer_group="cg", **settings)
    world.run_until(10)
    assert (heard.ending or "").startswith("You may not specify an explicit partition assignment")

    # Without a group, each consumer has one of its own and all partitions.
    _, heard = consume(world, **settings)
    assert heard.ending is None


def test_consume_bench_ends_with_the_error_of_a_poll() -> None:
    """The failed consumer is not closed."""
    world = SmallWorld(foo=1)
    world.call_failures = {"poll": deque(["", "no offset"])}
    _, heard = consume(world, active_topics=("foo",), max_messages=1)
    world.run_until(1_000)

    assert heard.ending == "no offset"
    assert world.done == []


# -- RoundTrip -------------------------------------------------------------------------------------


def test_round_trip_is_over_when_all_came_and_was_acknowledged() -> None:
    """Ten records each tenth of a second; the end waits for the last outcome."""
    world = SmallWorld()
    world.ack_ms = 400
    _, heard = trip(world)
    world.run_until(20_000)

    assert heard.statuses == [
        "Creating 1 topic(s)",
        "Created 1 topic(s)",
        # The eleventh is chosen before it is throttled.
        trip_status(11, 0),
        trip_status(25, 25),
    ]
    assert heard.ending == ""
    assert heard.ended_ms == 1_200 + 400
    assert [each.partition for each in world.sent[:4]] == [0, 1, 0, 1]
    assert {len(each.value or b"") for each in world.sent} == {32}


def test_round_trip_sends_failed_records_again() -> None:
    """A record that failed is sent again, with the same key and value, to the next partition."""
    world = SmallWorld()
    world.send_failures = deque(["", "broken", "", "broken"])
    _, heard = trip(world)
    world.run_until(20_000)

    assert heard.ending == ""
    assert heard.statuses[-1] == trip_status(25, 25)
    assert len(world.sent) == 27
    (first, again) = (each for each in world.sent if each.key == b"\x01\0\0\0")
    assert first.value == again.value


def test_round_trip_waits_for_ever_for_its_last_record() -> None:
    """The last record fails after nothing else was to be sent."""
    world = SmallWorld()
    world.send_failures = deque([""] * 24 + ["broken"])
    workload, heard = trip(world)
    world.run_until(3_600_000)
    assert heard.ending is None
    assert heard.statuses[-1] == trip_status(25, 24)

    world.finish(workload.end())
    assert heard.ending == ""
    assert world.done[-2:] == ["close consumer", "close producer"]


def test_round_trip_of_nothing_goes_on_until_it_is_stopped() -> None:
    """As Kafka's, which looks for the end at each number that comes."""
    world = SmallWorld()
    _, heard = trip(world, max_messages=0)
    world.run_until(40_000)

    assert heard.ending is None
    assert heard.statuses[-1] == trip_status(0, 0)


def test_round_trip_tells_its_status_each_half_minute() -> None:
    """At once, and each 30 s."""
    world = SmallWorld()
    _, heard = trip(world, max_messages=100_000)
    world.run_until(70_000)

    assert heard.instants == [0, 1_000, 1_000, 31_000, 61_000]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"target_messages_per_sec": 0}, "Can't have targetMessagesPerSec <= 0."),
        ({"active_topics": TopicsSpec()}, "You must specify at least one active topic."),
    ],
)
def test_round_trip_that_asks_for_nothing_fails(changes: dict[str, Any], error: str) -> None:
    """The rate is looked at before the topics."""
    world = SmallWorld()
    _, heard = trip(world, **changes)
    world.run_until(10)

    assert heard.ending == error
    assert heard.statuses == []


@pytest.mark.parametrize(
    ("key", "error"),
    [(None, "java.lang.NullPointerException"), (b"abc", "java.nio.BufferUnderflowException")],
)
def test_round_trip_fails_over_records_of_others(key: bytes | None, error: str) -> None:
    """A record without a number in its key ends it."""
    world = SmallWorld(foo=2)
    world.write(TopicPartition("foo", 0), key, b"v")
    _, heard = trip(world)
    world.run_until(5_000)

    assert heard.ending == error


def test_round_trip_passes_over_records_that_it_does_not_wait_for() -> None:
    """A number that is not under way is not counted, nor one that comes twice."""
    world = SmallWorld(foo=2)
    for number in (999, 3):
        world.write(TopicPartition("foo", 0), number.to_bytes(4, "little"), b"v")
    _, heard = trip(world)
    world.run_until(20_000)

    assert heard.ending == ""
    assert heard.statuses[-1] == trip_status(25, 25)


@pytest.mark.parametrize("kind", ["producer", "consumer"])
def test_round_trip_whose_settings_are_refused_fails(kind: str) -> None:
    """The error is the client's."""
    world = SmallWorld()
    world.refused_clients = {kind: "no such setting"}
    _, heard = trip(world)
    world.run_until(5_000)

    assert heard.ending == "no such setting"


@pytest.mark.parametrize("call", ["send", "poll"])
def test_round_trip_ends_with_the_error_of_a_client(call: str) -> None:
    """Either thread ends it."""
    world = SmallWorld()
    world.call_failures = {call: deque(["", "fenced"])}
    _, heard = trip(world)
    world.run_until(5_000)

    assert heard.ending == "fenced"


def test_round_trip_settings() -> None:
    """Each may be overridden but the group."""
    conf = {"group.id": "mine", "client.id": "me", "acks": "1"}
    spec = RoundTripWorkloadSpec(
        bootstrap_servers="b:9092", common_client_conf=conf, value_generator=_VALUE
    )
    assert producer_settings("t", spec) == {
        "bootstrap.servers": "b:9092",
        "batch.size": 16_384,
        "buffer.memory": 65_536,
        "max.block.ms": 1_000,
        "client.id": "me",
        "acks": "1",
        "request.timeout.ms": 105_000,
        "group.id": "mine",
    }
    plain = RoundTripWorkloadSpec(bootstrap_servers="b:9092")
    assert consumer_settings("t", plain) == {
        "bootstrap.servers": "b:9092",
        "client.id": "consumer.t",
        "auto.offset.reset": "earliest",
        "request.timeout.ms": 105_000,
        "max.poll.interval.ms": 100_000,
        "group.id": "round-trip-consumer-group-t",
    }
    assert consumer_settings("t", spec)["group.id"] == "round-trip-consumer-group-t"


_VALUE = ConstantPayloadGenerator(size=1)
