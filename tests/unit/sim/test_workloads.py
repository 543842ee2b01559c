"""Trogdor's workloads in virtual time: their clients, faults that hit them, how they end."""

from typing import Any

import msgspec

from coordinator_sim.sim.scenario.files import scenario_from_json
from coordinator_sim.sim.scenario.tasks import tasks_to_json
from coordinator_sim.trace.events import Event, TraceEvent
from tests.simulated import events_of

WORKLOAD = "org.apache.kafka.trogdor.workload"
READERS = {
    "class": f"{WORKLOAD}.ConsumeBenchSpec",
    "startMs": 1_000,
    "durationMs": 60_000,
    "consumerNode": "client",
    "maxMessages": 1_000_000,
    "consumerGroup": "bench",
    "threadsPerWorker": 3,
    "activeTopics": ["orders"],
}


def task_file(
    *tasks: tuple[str, dict[str, Any]], until_ms: int = 200_000, records_per_s: int = 50
) -> bytes:
    """A world with one topic of six partitions, and these tasks."""
    orders = {"name": "orders", "partitions": 6, "records_per_s": records_per_s}
    return msgspec.json.encode(
        {
            "name": "bench",
            "title": "",
            "story": "",
            "duration_ms": until_ms,
            "topics": [orders],
            "tasks": [{"id": name, "spec": spec} for name, spec in tasks],
        }
    )


def run(text: bytes) -> list[TraceEvent]:
    """The events of a run."""
    return events_of(scenario_from_json(text))


def said(events: list[TraceEvent], event: Event) -> list[tuple[int, str | None, str | None]]:
    """Instant in ms, client and text of all events of a kind."""
    return [
        (each.ts_us // 1_000, each.client_id, each.client_reason)
        for each in events
        if each.event is event
    ]


def done(events: list[TraceEvent]) -> dict[str, tuple[int, dict[str, str]]]:
    """Task -> when it was done, and what the trace says of it."""
    return {
        each.attrs["task"]: (each.ts_us // 1_000, each.attrs)
        for each in events
        if each.reason_text == "TaskDone"
    }


def test_stopping_several_consumers_stalls_their_group_for_100_s() -> None:
    """Only the first one leaves; the others are members that never poll again.

    Seen on Trogdor 4.3.1: they were evicted after the rebalance timeout of 100 s, and left in vain.
    """
    events = run(task_file(("readers", READERS)))

    over_ms, attrs = done(events)["readers"]
    assert over_ms == 61_001
    assert "error" not in attrs
    first, *late = sorted(said(events, Event.LEAVE_REQ))
    assert first == (61_000, "consumer.readers-0", "the consumer unsubscribed from all topics")
    assert {client for _, client, _ in late} == {"consumer.readers-1", "consumer.readers-2"}
    assert {reason for _, _, reason in late} == {"consumer poll timeout has expired."}
    assert all(161_000 < at_ms < 161_100 for at_ms, _, _ in late)
    kicked = [(at_ms, client) for at_ms, client, _ in said(events, Event.MEMBER_KICKED)]
    assert sorted(kicked) == [(161_000, f"consumer.readers-{number}") for number in (1, 2)]


def test_a_partition_between_nodes_cuts_off_the_clients_of_a_workload() -> None:
    """All sessions expire while the node of the workload is cut off, and all join anew."""
    nodes = [["client"], ["broker-1", "broker-2", "broker-3"]]
    cut = {
        "class": "org.apache.kafka.trogdor.fault.NetworkPartitionFaultSpec",
        "startMs": 20_000,
        "durationMs": 15_000,
        "partitions": nodes,
    }
    readers = {**READERS, "consumerConf": {"session.timeout.ms": "10000"}}
    events = run(task_file(("readers", readers), ("cut", cut), until_ms=60_000))

    failed = said(events, Event.MEMBER_FAILED)
    assert len(failed) == 3
    assert all(20_000 < at_ms < 35_000 for at_ms, _, _ in failed)
    stable = [at_ms for at_ms, _, _ in said(events, Event.GROUP_STABLE)]
    assert len(stable) == 2
    assert stable[1] > 35_000


def test_a_stopped_process_stands_still_with_all_its_clients() -> None:
    """A process stop freezes the heartbeats of every consumer of the workload."""
    stop = {
        "class": "org.apache.kafka.trogdor.fault.ProcessStopFaultSpec",
        "startMs": 20_000,
        "durationMs": 15_000,
        "nodeNames": ["client"],
        "javaProcessName": "ConsumeBench",
    }
    readers = {**READERS, "commonClientConf": {"session.timeout.ms": "10000"}}
    events = run(task_file(("readers", readers), ("stop", stop), until_ms=60_000))

    beats = [at_ms for at_ms, _, _ in said(events, Event.HEARTBEAT)]
    assert [at_ms for at_ms in beats if 20_001 < at_ms < 35_000] == []
    assert len(said(events, Event.MEMBER_FAILED)) == 3


def test_a_slow_network_delays_what_a_workload_sends() -> None:
    """Half a second more for each request: the group is complete that much later."""
    slow = {
        "class": "org.apache.kafka.trogdor.fault.DegradedNetworkFaultSpec",
        "durationMs": 60_000,
        "nodeSpecs": {"client": {"latencyMs": 500}},
    }
    at_once = said(run(task_file(("readers", READERS), until_ms=60_000)), Event.GROUP_STABLE)
    late = run(task_file(("readers", READERS), ("slow", slow), until_ms=60_000))
    assert said(late, Event.GROUP_STABLE)[0][0] > at_once[0][0] + 500


def test_a_task_of_enough_records_is_over_a_minute_later() -> None:
    """QUIRK: that all consumers are done is noticed once a minute."""
    events = run(task_file(("readers", {**READERS, "maxMessages": 10}), until_ms=100_000))

    over_ms, attrs = done(events)["readers"]
    assert 61_000 <= over_ms <= 61_010
    status = msgspec.json.decode(attrs["status"])
    assert [each["totalMessagesReceived"] for each in status.values()] == [10, 10, 10]
    # Each left when it had read enough.
    assert len(said(events, Event.LEAVE_REQ)) == 3


def test_partitions_by_name_need_no_group() -> None:
    """A consumer that is told its partitions commits offsets and joins nothing."""
    alone = {
        **READERS,
        "threadsPerWorker": 1,
        "activeTopics": ["orders:[0-1]"],
        "maxMessages": 4_000,
    }
    events = run(task_file(("readers", alone), until_ms=100_000))

    assert said(events, Event.MEMBER_ADDED) == []
    commits = [each for each in events if each.event is Event.OFFSET_COMMIT]
    assert {(each.group_id, each.generation) for each in commits} == {("bench", -1)}
    status = msgspec.json.decode(done(events)["readers"][1]["status"])
    assert status["consumer.readers-0"]["totalMessagesReceived"] == 4_000


def test_two_consumers_of_one_group_cannot_have_partitions_by_name() -> None:
    """The task fails with Kafka's words."""
    events = run(task_file(("readers", {**READERS, "activeTopics": ["orders:1"]})))

    assert done(events)["readers"][1]["error"].startswith(
        "You may not specify an explicit partition assignment when using multiple consumers in the "
        "same group."
    )


def test_what_a_producer_writes_its_readers_read() -> None:
    """ProduceBench makes its topic and ConsumeBench reads every record with its bytes."""
    topic = {"lines": {"numPartitions": 3, "replicationFactor": 3}}
    writer = {
        "class": f"{WORKLOAD}.ProduceBenchSpec",
        "durationMs": 60_000,
        "producerNode": "writers",
        "targetMessagesPerSec": 100,
        "maxMessages": 300,
        "activeTopics": topic,
    }
    reader = {**READERS, "threadsPerWorker": 1, "maxMessages": 300, "activeTopics": ["lines"]}
    over = done(run(task_file(("writer", writer), ("reader", reader), until_ms=80_000)))

    written = msgspec.json.decode(over["writer"][1]["status"])
    assert written["totalSent"] == 300
    read = msgspec.json.decode(over["reader"][1]["status"])["consumer.reader-0"]
    assert read["totalMessagesReceived"] == 300
    # Keys of 4 bytes and values of 512.
    assert read["totalBytesReceived"] == 300 * 516


def test_every_record_goes_round() -> None:
    """RoundTrip reads what it wrote, through the crash of a broker, and commits for its group."""
    trip = {
        "class": f"{WORKLOAD}.RoundTripWorkloadSpec",
        "durationMs": 100_000,
        "clientNode": "client",
        "targetMessagesPerSec": 20,
        "maxMessages": 400,
        "activeTopics": {"round": {"numPartitions": 3, "replicationFactor": 3}},
    }
    crash = {
        "class": "coordinatorsim.CrashBroker",
        "startMs": 5_000,
        "durationMs": 5_000,
        "broker": 2,
    }
    events = run(task_file(("trip", trip), ("crash", crash), until_ms=120_000))

    over_ms, attrs = done(events)["trip"]
    assert msgspec.json.decode(attrs["status"]) == {"totalUniqueSent": 400, "totalReceived": 400}
    assert 19_000 <= over_ms < 30_000
    groups = {each.group_id for each in events if each.event is Event.OFFSET_COMMIT}
    assert groups == {"round-trip-consumer-group-trip"}


def test_connections_are_counted_and_refused_by_dead_brokers() -> None:
    """ConnectionStress opens twenty a second on each of two nodes; a dead broker refuses."""
    stress = {
        "class": f"{WORKLOAD}.ConnectionStressSpec",
        "durationMs": 10_000,
        "clientNode": ["near", "far"],
        "targetConnectionsPerSec": 20,
        "action": "CONNECT",
    }
    crash = {"class": "coordinatorsim.CrashBroker", "durationMs": 10_000, "broker": 2}
    over = done(run(task_file(("stress", stress), ("crash", crash), until_ms=20_000)))

    for process in ("stress/near", "stress/far"):
        status = msgspec.json.decode(over[process][1]["status"])
        assert status["totalConnections"] == 200
        assert 0 < status["totalFailedConnections"] < 200


def test_a_command_with_the_spec_of_a_workload_is_that_workload() -> None:
    """What runs under a Java agent as an external command runs in virtual time as a workload."""
    command = {
        "class": f"{WORKLOAD}.ExternalCommandSpec",
        "startMs": 1_000,
        "durationMs": 60_000,
        "commandNode": "client",
        "command": ["python", "-m", "coordinator_sim.live.trogdor.workload_process"],
        "workload": {**READERS, "startMs": 77, "consumerNode": "elsewhere"},
    }
    assert run(task_file(("readers", command))) == run(task_file(("readers", READERS)))


def test_workloads_are_written_as_the_tasks_that_they_were() -> None:
    """A task file that is read and written is the same scenario."""
    scenario = scenario_from_json(task_file(("readers", READERS)))
    assert scenario_from_json(tasks_to_json(scenario)) == scenario
    assert scenario.calm_from_ms() == 61_000
