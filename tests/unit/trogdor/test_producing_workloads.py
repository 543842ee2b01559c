"""ProduceBench and ConfigurableProducer, with a cluster in memory."""

from collections import deque
from typing import Any

import pytest

from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.trogdor import generator_specs
from coordinator_sim.trogdor.topic_specs import PartitionsSpec, TopicsSpec
from coordinator_sim.trogdor.workload_specs import ConfigurableProducerSpec, ProduceBenchSpec
from coordinator_sim.trogdor.workloads.clients import NotCreated, Workload
from coordinator_sim.trogdor.workloads.produce_bench import producer_settings
from coordinator_sim.trogdor.workloads.registry import workload_of
from tests.unit.trogdor.small_world import Heard, SmallWorld, began

TWO = PartitionsSpec(num_partitions=2)
BENCH = {
    "bootstrap_servers": "b:9092",
    "active_topics": TopicsSpec(topics={"foo": TWO}),
    "target_messages_per_sec": 20,
    "max_messages": 7,
}
WINDOW = generator_specs.ConstantThroughputGenerator(messages_per_window=2, window_size_ms=100)
FREE = {
    "bootstrap_servers": "b:9092",
    "active_topic": TopicsSpec(topics={"foo": TWO}),
    "key_generator": generator_specs.SequentialPayloadGenerator(size=4),
    "value_generator": generator_specs.NullPayloadGenerator(),
    "throughput_generator": WINDOW,
}
TIMED_OUT = NotCreated("REQUEST_TIMED_OUT", "late")


def bench(world: SmallWorld, **changes: Any) -> tuple[Workload, Heard]:  # noqa: ANN401 - of any type
    """A ProduceBench that has begun."""
    spec = ProduceBenchSpec(**{**BENCH, **changes})
    return began(world, lambda heard: workload_of("t", spec, world, heard))


def free(world: SmallWorld, **changes: Any) -> tuple[Workload, Heard]:  # noqa: ANN401 - of any type
    """A ConfigurableProducer that has begun."""
    spec = ConfigurableProducerSpec(**{**FREE, **changes})
    return began(world, lambda heard: workload_of("t", spec, world, heard))


def produced(count: int, committed: int = 0, latency: float = 5.0) -> dict[str, Any]:
    """The status of so many records that took 5 ms each."""
    return {
        "totalSent": count,
        "averageLatencyMs": latency,
        "p50LatencyMs": 5,
        "p95LatencyMs": 5,
        "p99LatencyMs": 5,
        "transactionsCommitted": committed,
    }


# -- ProduceBench ----------------------------------------------------------------------------------


def test_bench_makes_its_topics_and_writes_at_its_rate() -> None:
    """Two records each tenth of a second go to the partitions in turn; then it is over.

    The first record is not counted before it is sent, so that the first tenth has three.
    """
    world = SmallWorld()
    _, heard = bench(world, inactive_topics=TopicsSpec(topics={"idle[1-2]": PartitionsSpec()}))
    world.run_until(10_000)

    assert heard.statuses == ["Creating 3 topic(s)", "Created 3 topic(s)", produced(7)]
    assert list(heard.statuses[-1]) == list(produced(7))
    assert heard.ending == ""
    assert [each.at_ms for each in world.sent] == [1_000] * 3 + [1_100] * 2 + [1_200] * 2
    assert [each.partition for each in world.sent] == [0, 1, 0, 1, 0, 1, 0]
    assert [each.key for each in world.sent] == [n.to_bytes(4, "little") for n in range(7)]
    assert {len(each.value or b"") for each in world.sent} == {512}
    assert sorted(world.topics) == ["foo", "idle1", "idle2"]
    # The producer is flushed at each wait, so that waiting is no part of the latency.
    assert world.done == ["create 3", "close admin", *["flush"] * 3, "close producer"]


def test_bench_tells_its_status_each_half_minute() -> None:
    """The status of a long bench comes 30 s after its first record, and again."""
    world = SmallWorld()
    _, heard = bench(world, max_messages=10_000)
    world.run_until(62_000)

    assert heard.instants == [0, 1_000, 31_000, 61_000]
    assert [each["totalSent"] for each in heard.statuses[2:]] == [601, 1_201]
    assert heard.ending is None


def test_bench_counts_failed_records_as_sent() -> None:
    """A record that fails is in the total, and in the latency."""
    world = SmallWorld()
    world.send_failures = deque(["broken", "", "broken"])
    _, heard = bench(world, max_messages=3)
    world.run_until(10_000)

    assert heard.ending == ""
    assert heard.statuses[-1]["totalSent"] == 3
    assert [len(log) for log in world.topics["foo"]] == [0, 1]


def test_bench_whose_generator_is_none_fails() -> None:
    """A component without a generator is missed when it is drawn."""
    world = SmallWorld()
    values = generator_specs.RandomComponentPayloadGenerator(
        components=(generator_specs.RandomComponent(percent=100),)
    )
    _, heard = bench(world, value_generator=values)
    world.run_until(10_000)

    assert (heard.ending or "").startswith("no generator")
    assert heard.statuses[-1]["totalSent"] == 0


def test_bench_leaves_partitions_and_flushes_out_if_asked() -> None:
    """The producer chooses partitions, and is not flushed."""
    world = SmallWorld()
    bench(world, use_configured_partitioner=True, skip_flush=True)
    world.run_until(10_000)

    assert {each.partition for each in world.sent} == {None}
    assert "flush" not in world.done


def test_stopped_bench_tells_what_it_has_sent() -> None:
    """A stop waits for what was handed over, closes the producer and tells the last status."""
    world = SmallWorld()
    workload, heard = bench(world, max_messages=10_000)
    world.run_until(2_000)
    world.finish(workload.end())

    assert heard.ending == ""
    assert heard.statuses[-1]["totalSent"] == len(world.sent) == 23
    assert world.done[-1] == "close producer"
    world.run_until(20_000)
    assert len(world.sent) == 23


def test_bench_that_is_over_has_nothing_to_stop() -> None:
    """The stop after the end tells nothing more."""
    world = SmallWorld()
    workload, heard = bench(world)
    world.run_until(10_000)
    told = list(heard.statuses)
    world.finish(workload.end())

    assert heard.statuses == told
    assert world.done.count("close producer") == 1


def test_bench_stopped_while_topics_are_made_has_no_producer() -> None:
    """Nothing is sent, and nothing but the ending is told."""
    world = SmallWorld()
    workload, heard = bench(world)
    world.run_until(500)
    world.finish(workload.end())

    assert heard.statuses == ["Creating 1 topic(s)"]
    assert world.sent == []


def test_bench_without_topics_fails() -> None:
    """No topic is named."""
    world = SmallWorld()
    _, heard = bench(world, active_topics=TopicsSpec())
    world.run_until(10)

    assert heard.ending == "You must specify at least one active topic."
    assert heard.statuses == []


def test_bench_with_a_broken_range_fails() -> None:
    """A range of names that ends before it starts is told."""
    world = SmallWorld()
    _, heard = bench(world, active_topics=TopicsSpec(topics={"foo[3-1]": TWO}))
    world.run_until(10)

    assert heard.ending == "Invalid range: start 3 is higher than end 1"


@pytest.mark.parametrize("kind", ["admin", "producer"])
def test_bench_whose_settings_are_refused_fails(kind: str) -> None:
    """The error is the client's."""
    world = SmallWorld()
    world.refused_clients = {kind: "no such setting"}
    _, heard = bench(world)
    world.run_until(10_000)

    assert heard.ending == "no such setting"


def test_bench_whose_producer_fails_ends_with_its_error() -> None:
    """The error comes before the last status, which counts what was sent."""
    world = SmallWorld()
    world.call_failures = {"send": deque(["", "", "fenced"])}
    _, heard = bench(world)
    world.run_until(10_000)

    assert heard.ending == "fenced"
    assert heard.statuses[-1]["totalSent"] == 2
    assert world.done[-1] == "close producer"


# -- transactions ----------------------------------------------------------------------------------

PAIRS = generator_specs.UniformTransactionsGenerator(messages_per_transaction=2)


def test_bench_commits_transactions() -> None:
    """Full transactions are committed, the last one too; one that is not full is left open."""
    world = SmallWorld()
    _, heard = bench(world, transaction_generator=PAIRS, max_messages=4)
    world.run_until(10_000)

    assert heard.statuses[-1] == produced(4, committed=2)
    assert [each.transaction for each in world.sent] == [0, 0, 1, 1]
    wanted = ["init", "begin", "commit", "begin", "commit", "close producer"]
    assert [line for line in world.done[2:] if line != "flush"] == wanted

    world = SmallWorld()
    _, heard = bench(world, transaction_generator=PAIRS, max_messages=3)
    world.run_until(10_000)
    assert heard.statuses[-1]["transactionsCommitted"] == 1
    assert [line for line in world.done if line in {"begin", "commit"}] == [
        "begin",
        "commit",
        "begin",
    ]


def test_failed_transaction_is_aborted() -> None:
    """The bench ends with the error; one of the abort takes its place."""
    world = SmallWorld()
    world.call_failures = {"commit": deque(["", "no commit"])}
    _, heard = bench(world, transaction_generator=PAIRS)
    world.run_until(10_000)
    assert heard.ending == "no commit"
    assert world.done[-2:] == ["abort", "close producer"]
    assert heard.statuses[-1]["transactionsCommitted"] == 1

    world = SmallWorld()
    world.call_failures = {"init": deque(["no init"]), "abort": deque(["no abort"])}
    _, heard = bench(world, transaction_generator=PAIRS)
    world.run_until(10_000)
    assert heard.ending == "no abort"


def test_stopped_bench_aborts_its_transaction() -> None:
    """The open transaction is aborted before the producer is closed."""
    world = SmallWorld()
    workload, heard = bench(world, transaction_generator=PAIRS, max_messages=1_000)
    world.run_until(1_500)
    world.finish(workload.end())

    assert heard.ending == ""
    assert world.done[-2:] == ["abort", "close producer"]


def test_producer_settings_are_overridden_in_order() -> None:
    """The worker's own are weakest, the producer's strongest."""
    spec = ProduceBenchSpec(
        bootstrap_servers="b:9092",
        transaction_generator=PAIRS,
        common_client_conf={"acks": "1", "linger.ms": "7", "transactional.id": "mine"},
        producer_conf={"acks": "all"},
    )
    assert producer_settings(spec, "u") == {
        "bootstrap.servers": "b:9092",
        "transactional.id": "mine",
        "acks": "all",
        "linger.ms": "7",
    }
    plain = ProduceBenchSpec(bootstrap_servers="b:9092")
    assert producer_settings(plain, "u") == {"bootstrap.servers": "b:9092"}


# -- topics ----------------------------------------------------------------------------------------


def test_topics_are_asked_for_in_batches_of_ten() -> None:
    """Twelve topics are two requests."""
    world = SmallWorld()
    bench(world, active_topics=TopicsSpec(topics={"foo[1-12]": TWO}), max_messages=0)
    world.run_until(10_000)

    assert world.done[:2] == ["create 10", "create 2"]
    assert world.settings[0] == {"bootstrap.servers": "b:9092", "request.timeout.ms": 25_000}


def test_topics_that_time_out_are_asked_for_again() -> None:
    """Without a pause, until they are made; only those that are missing."""
    world = SmallWorld()
    late = {"foo1": TIMED_OUT, "foo3": NotCreated("NOT_ENOUGH_REPLICAS", "few")}
    world.creations = deque([late, {"foo3": TIMED_OUT}])
    _, heard = bench(world, active_topics=TopicsSpec(topics={"foo[1-3]": TWO}))
    world.run_until(20_000)

    assert world.done[:4] == ["create 3", "create 2", "create 1", "close admin"]
    assert heard.ending == ""


def test_topics_are_given_up_after_three_minutes() -> None:
    """The error has no blank after the names, as Kafka's has none."""
    world = SmallWorld()
    world.creations = deque([{"foo1": TIMED_OUT, "foo2": TIMED_OUT}] * 200)
    _, heard = bench(world, active_topics=TopicsSpec(topics={"foo[1-2]": TWO}))
    world.run_until(300_000)

    named = ", ".join(java_hash_order(["foo1", "foo2"]))
    assert heard.ending == f"Unable to create topic(s): {named}after 181 attempt(s)"
    assert world.done[-1] == "close admin"


def test_refused_topic_ends_the_workload() -> None:
    """The error is what the broker says."""
    world = SmallWorld()
    world.creations = deque([{"foo": NotCreated("INVALID_REPLICATION_FACTOR", "3 of 1")}])
    _, heard = bench(world)
    world.run_until(10_000)

    assert heard.ending == "3 of 1"
    assert heard.statuses == ["Creating 1 topic(s)"]


def test_existing_topics_must_have_the_partitions() -> None:
    """Another number of partitions is an error; with brokers named it is not looked at."""
    world = SmallWorld(foo=3)
    _, heard = bench(world)
    world.run_until(10_000)
    assert heard.ending == (
        "Topic 'foo' exists, but has 3 partitions, while requested  number of partitions is 2"
    )

    world = SmallWorld(foo=2)
    _, heard = bench(world)
    world.run_until(10_000)
    assert heard.ending == ""

    world = SmallWorld(foo=3)
    named = PartitionsSpec(partition_assignments={0: (1,), 1: (1,)})
    _, heard = bench(world, active_topics=TopicsSpec(topics={"foo": named}))
    world.run_until(10_000)
    assert heard.ending == ""


def test_existing_topic_that_cannot_be_found_is_looked_for_three_times() -> None:
    """Two and a half seconds after the third look, the workload ends."""
    world = SmallWorld()
    exists = NotCreated("TOPIC_ALREADY_EXISTS", "there")
    world.creations = deque([{"foo": exists}])
    _, heard = bench(world)
    world.run_until(60_000)

    assert heard.ending == "This server does not host this topic-partition."
    assert heard.ended_ms == 1_000 + 3 * 2_500
    assert world.done.count("describe topics") == 3


# -- ConfigurableProducer --------------------------------------------------------------------------


def test_configurable_producer_goes_on_until_it_is_stopped() -> None:
    """Its rate and flushes are those of its generators; the last status has no transactions."""
    world = SmallWorld()
    flushes = generator_specs.ConstantFlushGenerator(messages_per_flush=3)
    workload, heard = free(world, flush_generator=flushes, active_partition=1)
    world.run_until(1_450)
    assert heard.ending is None
    world.finish(workload.end())

    wanted = produced(10)
    del wanted["transactionsCommitted"]
    assert heard.statuses == ["Creating 1 topic(s)", "Created 1 topic(s)", wanted]
    assert heard.ending == ""
    assert world.done.count("flush") == 3
    assert {(each.partition, each.value) for each in world.sent} == {(1, None)}


def test_configurable_producer_may_leave_the_partition_open() -> None:
    """-1 stands for any partition."""
    world = SmallWorld()
    free(world, active_partition=-1)
    world.run_until(1_500)

    assert {each.partition for each in world.sent} == {None}


def test_configurable_producer_has_one_topic() -> None:
    """A range of two names is refused."""
    world = SmallWorld()
    _, heard = free(world, active_topic=TopicsSpec(topics={"foo[1-2]": TWO}))
    world.run_until(10)

    assert heard.ending == "Can only run against 1 topic."


def test_configurable_producer_fails_without_generators() -> None:
    """Keys are missed before anything is sent, the throughput after the first record."""
    world = SmallWorld()
    _, heard = free(world, key_generator=None)
    world.run_until(5_000)
    assert heard.ending == "no generator: keyGenerator, valueGenerator or a component is absent"
    assert heard.statuses[-1]["totalSent"] == 0

    world = SmallWorld()
    _, heard = free(world, throughput_generator=None)
    world.run_until(5_000)
    assert heard.ending == "throughputGenerator is absent: say how fast to produce"
    assert heard.statuses[-1]["totalSent"] == 1
    assert world.done[-1] == "close producer"


def test_configurable_producer_ends_with_the_error_of_its_producer() -> None:
    """A send that fails at once ends it."""
    world = SmallWorld()
    world.call_failures = {"send": deque(["", "closed"])}
    _, heard = free(world)
    world.run_until(5_000)

    assert heard.ending == "closed"
    assert heard.statuses[-1]["totalSent"] == 1
