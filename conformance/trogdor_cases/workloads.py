"""Cases: specs of workloads as they are read and shown, and workloads at a cluster."""

from typing import Final

from coordinator_sim.trogdor.workload_specs import ConsumeBenchSpec
from coordinator_sim.trogdor.workloads.consume_bench import consumer_settings
from coordinator_sim_conformance.trogdor_cases.case import table_case, trogdor_case
from coordinator_sim_conformance.trogdor_cases.story import (
    OK,
    WHATEVER,
    Starts,
    create,
    done,
    expect,
    expect_members,
    expect_task,
    running,
    stop,
)
from coordinator_sim_conformance.trogdor_cases.task_specs import consume_at, produce, round_trip_at
from coordinator_sim_conformance.trogdor_cases.trogdor import Json, Member, Setup, Topic, Trogdor

AT_A_CLUSTER: Final = Setup(
    topics={"full": Topic(records=10), "empty": Topic(), "foo": Topic(partitions=2)}
)
_PLENTY: Final = 1_000_000_000


@trogdor_case("J22", "SequentialPayloadGenerator")
def offset_of_payloads_is_shown_under_another_name(trogdor: Trogdor) -> None:
    """The first number of sequential payloads is read as `offset` and shown as `startOffset`."""
    keys = {"type": "sequential", "size": 8}
    spec = produce(key_generator=keys | {"offset": 1}, start_ms=9_000, duration_ms=1)
    create(trogdor, "p", spec)

    shown = trogdor.coordinator("GET", "/coordinator/tasks/p").body["spec"]["keyGenerator"]
    expect("key generator", shown, keys | {"startOffset": 1})


@trogdor_case("E04", "TaskWorker.stop", setup=AT_A_CLUSTER)
def workload_that_its_duration_ends_has_succeeded(trogdor: Trogdor) -> None:
    """A workload that its duration ends is done without an error, however little it did."""
    spec = consume_at(trogdor, "empty", start_ms=100, duration_ms=5_050, maxMessages=_PLENTY)
    create(trogdor, "c", spec)

    trogdor.at(3_000)
    expect_task(trogdor, "c", running(WHATEVER, 100, None))
    trogdor.at(8_000)
    # In its first minute, it has no status.
    expect_task(trogdor, "c", done(WHATEVER, 100, WHATEVER, status=None))


@trogdor_case("J03", "ConsumeBenchWorker.Prepare.consumeTasks", setup=AT_A_CLUSTER)
def partitions_by_name_and_a_shared_group_exclude_each_other(trogdor: Trogdor) -> None:
    """Several consumers of one group read topics; partitions by name are for one consumer."""
    settings = {"maxMessages": 1, "consumerGroup": "cg", "threadsPerWorker": 2}
    spec = consume_at(trogdor, "foo:1", start_ms=100, duration_ms=60_000, **settings)
    create(trogdor, "c", spec)

    trogdor.at(6_000)
    error = Starts(
        "You may not specify an explicit partition assignment when using multiple consumers in the "
        "same group."
    )
    expect_task(trogdor, "c", done(WHATEVER, 100, WHATEVER, status=None, error=error))


@trogdor_case("J05", "CloseStatusUpdater.run", setup=AT_A_CLUSTER)
def end_of_consuming_is_noticed_once_a_minute(trogdor: Trogdor) -> None:
    """A ConsumeBench that has read all is over, and has a status, at its next full minute."""
    spec = consume_at(trogdor, "full", start_ms=100, duration_ms=600_000, maxMessages=10)
    create(trogdor, "c", spec)

    trogdor.at(30_000)
    expect_task(trogdor, "c", running(WHATEVER, 100, None))
    # A minute, two heartbeats, and the start of a process.
    trogdor.at(64_000)
    read: Json = dict.fromkeys(
        (
            "averageLatencyMs",
            "averageMessageSizeBytes",
            "p50LatencyMs",
            "p95LatencyMs",
            "p99LatencyMs",
            "totalBytesReceived",
        ),
        WHATEVER,
    )
    read |= {"assignedPartitions": ["full-0"], "totalMessagesReceived": 10}
    status = {"consumer.c-0": read}
    expect_task(trogdor, "c", done(WHATEVER, 100, WHATEVER, status=status))


@table_case("J06", "ConsumeBenchWorker.Prepare.consumer")
def consumers_are_named_and_set() -> None:
    """Consumers are named after task and number; common settings yield to those of consumers."""
    spec = ConsumeBenchSpec(
        bootstrap_servers="b:9092",
        consumer_group="cg",
        common_client_conf={"session.timeout.ms": "6000", "auto.offset.reset": "latest"},
        consumer_conf={"session.timeout.ms": "7000"},
    )
    for index in range(2):
        wanted = {
            "bootstrap.servers": "b:9092",
            "client.id": f"consumer.c-{index}",
            "group.id": "cg",
            "auto.offset.reset": "latest",
            "max.poll.interval.ms": 100_000,
            "session.timeout.ms": "7000",
        }
        expect(f"consumer {index}", dict(consumer_settings("c", spec, index, "cg")), wanted)


@trogdor_case("J06.2", "ConsumeBenchWorker.Prepare.consumer", setup=AT_A_CLUSTER)
def group_coordinator_sees_the_settings_of_consumers(trogdor: Trogdor) -> None:
    """The members of a group have the client ids and timeouts that the spec and the worker give."""
    spec = consume_at(
        trogdor,
        "foo",
        start_ms=100,
        duration_ms=60_000,
        maxMessages=_PLENTY,
        consumerGroup="cg",
        threadsPerWorker=2,
        commonClientConf={"session.timeout.ms": "6000", "auto.offset.reset": "latest"},
        consumerConf={"session.timeout.ms": "7000"},
    )
    create(trogdor, "c", spec)

    trogdor.at(8_000)
    members = (
        Member(
            client_id=f"consumer.c-{index}",
            session_timeout_ms=7_000,
            rebalance_timeout_ms=100_000,
        )
        for index in range(2)
    )
    expect_members(trogdor, "cg", *members)
    expect("stop", stop(trogdor, "c"), OK)


@trogdor_case("J09", "RoundTripWorkerBase.Prepare", setup=AT_A_CLUSTER)
def round_trip_needs_a_rate(trogdor: Trogdor) -> None:
    """A RoundTrip without a rate fails before it makes its topics."""
    topics = {"foo": {"numPartitions": 1, "replicationFactor": 1}}
    settings = {"targetMessagesPerSec": 0, "maxMessages": 1, "activeTopics": topics}
    spec = round_trip_at(trogdor, start_ms=100, duration_ms=60_000, **settings)
    create(trogdor, "r", spec)

    trogdor.at(6_000)
    error = "Can't have targetMessagesPerSec <= 0."
    expect_task(trogdor, "r", done(WHATEVER, 100, WHATEVER, status=None, error=error))
