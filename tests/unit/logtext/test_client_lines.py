"""Lines of consumers and Connect workers; written for these tests."""

import json
from datetime import UTC
from pathlib import Path

import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition
from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.messages.embedded.connect_protocol import decode_connect_assignment
from coordinator_sim.messages.embedded.consumer_protocol import decode_assignment
from coordinator_sim.trace.client_reasons import words_of
from coordinator_sim.trace.events import Event, Source, TraceEvent

FAILURES = Path(__file__).with_name("failed_requests.jsonl")
"""What a consumer logs of failed requests, and the event and error of each."""

CONSUMER = "org.apache.kafka.clients.consumer.internals.ConsumerCoordinator"
WORKER = "org.apache.kafka.connect.runtime.distributed.WorkerCoordinator"
OLD = "org.apache.kafka.clients.consumer.internals.AbstractCoordinator"


def consumer(message: str) -> str:
    """A line of a consumer since 1.0."""
    prefix = "[Consumer clientId=c-1, groupId=shop] "
    return f"[2024-05-06 12:00:01,250] INFO {prefix}{message} ({CONSUMER}:666)"


def worker(message: str) -> str:
    """A line of a Connect worker."""
    prefix = "[Worker clientId=connect-1, groupId=copy] "
    return f"[2024-05-06 12:00:01,250] INFO {prefix}{message} ({WORKER}:672)"


def read(*lines: str) -> list[TraceEvent]:
    """The events of a log that holds these lines."""
    return list(parse_broker_log(lines, source_ref="client.log", tz=UTC))


def generation(member: str = "m-1", number: int = 7) -> str:
    """A client's generation as it prints it since 2.6."""
    return f"Generation{{generationId={number}, memberId='{member}', protocol='range'}}"


def test_join_names_why_the_client_joins_again() -> None:
    """The reason stands in the line before the one that joins."""
    reason, join = (
        consumer("Request joining group due to: cached metadata has changed from a to b"),
        consumer("(Re-)joining group"),
    )
    events = read(reason, join, join)
    assert [event.event for event in events] == [Event.JOIN_REQ, Event.JOIN_REQ]
    assert events[0].client_reason == "cached metadata has changed from a to b"
    assert events[1].client_reason is None
    assert (events[0].group_id, events[0].client_id) == ("shop", "c-1")
    assert (events[0].source, events[0].protocol_type) == (Source.CONSUMER_LOG, "consumer")


def test_joined_and_synced_since_2_6() -> None:
    """The join and the sync phase end apart, each with member and generation."""
    events = read(
        consumer(f"Successfully joined group with generation {generation()}"),
        consumer(f"Successfully synced group in generation {generation()}"),
    )
    assert [event.event for event in events] == [Event.JOIN_RESP, Event.SYNC_RESP]
    for event in events:
        assert (event.member_id, event.generation, event.protocol_name) == ("m-1", 7, "range")
        assert event.error_code is ErrorCode.NONE


def test_failed_sync_has_the_generation_that_it_sent() -> None:
    """The line's own generation counts; without one, that of an earlier join is not it."""
    old = consumer(f"Successfully synced group in generation {generation(number=6)}")
    again = consumer("(Re-)joining group")
    sent = f"Sent generation was {generation(number=8)}"
    failed = consumer(f"SyncGroup failed: The group began another rebalance. {sent}")
    bare = consumer("SyncGroup failed: The coordinator is not available.")
    assert [event.generation for event in read(old, again, failed)] == [6, 6, 8]
    assert [event.generation for event in read(old, again, bare)] == [6, 6, None]


@pytest.mark.parametrize(
    "line",
    [
        consumer("Successfully joined group with generation 7"),
        (
            "[2024-05-06 12:00:01,250] INFO Successfully joined group shop with generation 7 "
            f"({OLD})"
        ),
        (
            "2024-05-06 12:00:01,250 - kafka.coordinator - INFO - Successfully joined group "
            "shop with generation 7"
        ),
    ],
)
def test_joined_before_2_6_means_synced(line: str) -> None:
    """In old clients and kafka-python the line stands after SyncGroup."""
    (event,) = read(line)
    assert (event.event, event.group_id, event.generation) == (Event.SYNC_RESP, "shop", 7)


def test_leaders_plan_gives_every_members_assignment() -> None:
    """The leader alone logs who gets what, at INFO, as partitions by member."""
    plan = "{m-1=Assignment(partitions=[a-b-0, t-1]), m, 2=Assignment(partitions=[])}"
    events = read(
        consumer(f"Successfully joined group with generation {generation()}"),
        consumer(f"Finished assignment for group at generation 7: {plan}"),
    )[1:]
    assert [event.member_id for event in events] == ["m-1", "m, 2"]
    assert {(event.generation, event.leader_id) for event in events} == {(7, "m-1")}
    assert events[0].assignment is not None
    assert decode_assignment(events[0].assignment).partitions == (
        TopicPartition("a-b", 0),
        TopicPartition("t", 1),
    )


def test_cut_plan_gives_the_members_whose_entry_is_whole() -> None:
    """What is cut off is not guessed."""
    line = consumer(
        "Finished assignment for group at generation 7: {m-1=Assignment(partitions=[t-0]), "
        "m-2=Assignment(partitions=[t-1])}"
    )
    events = read(consumer("(Re-)joining group"), line[: line.index("t-1")])[1:]
    assert [event.member_id for event in events] == ["m-1"]
    assert events[0].attrs["truncated"] == "1"


@pytest.mark.parametrize(
    ("message", "event"),
    [
        ("Adding newly assigned partitions: t-0, t-1", Event.ASSIGNED),
        ("Setting newly assigned partitions t-0, t-1", Event.ASSIGNED),
        ("Revoke previously assigned partitions t-0, t-1", Event.REVOKED),
        ("Revoking previously assigned partitions t-0, t-1", Event.REVOKED),
        ("Lost previously assigned partitions t-0, t-1", Event.LOST),
    ],
)
def test_own_partitions_are_told_as_they_come_and_go(message: str, event: Event) -> None:
    """A consumer tells what changes for itself, not what it holds."""
    (found,) = read(consumer(message))
    assert (found.event, found.attrs["partitions"]) == (event, "t-0, t-1")
    assert found.assignment is None


def test_newly_assigned_partitions_are_a_difference() -> None:
    """What is added is no whole assignment, so it has no generation to be counted in."""
    events = read(
        consumer(f"Successfully joined group with generation {generation()}"),
        consumer("Adding newly assigned partitions: t-0"),
        consumer("Revoke previously assigned partitions t-0"),
    )
    assert (events[1].generation, events[1].attrs["delta"]) == (None, "1")
    assert (events[2].generation, events[2].member_id) == (7, "m-1")


def test_leave_names_member_and_reason() -> None:
    """A client says why it leaves."""
    (event,) = read(
        consumer(
            "Member m-1 sending LeaveGroup request to coordinator h:9092 (id: 2147483646 rack: "
            "null) due to the consumer is being closed"
        )
    )
    assert (event.event, event.member_id) == (Event.LEAVE_REQ, "m-1")
    assert event.client_reason == "the consumer is being closed"


@pytest.mark.parametrize("line", FAILURES.read_text("utf-8").splitlines())
def test_failed_request_names_its_error(line: str) -> None:
    """The error is told by its name or in words; unknown words stay words."""
    case = json.loads(line)
    (found,) = read(consumer(case["message"]))
    assert found.event.name == case["event"]
    assert (found.error_code and found.error_code.name) == case["error"]
    assert found.attrs["error_text"]


ASSIGNMENT = (
    "Assignment{error=0, leader='w-1', leaderUrl='http://h:8083/', offset=4, "
    "connectorIds=[sink-1], taskIds=[sink-1-0, sink-1-1], revokedConnectorIds=[old], "
    "revokedTaskIds=[old-0], delay=250}"
)


def test_workers_assignment_is_the_bytes_it_was_read_from() -> None:
    """A worker logs its own assignment; encoded again it is what the group handed out."""
    joined = f"Successfully joined group with generation {generation('w-1')}"
    told = f"Joined group at generation 7 with protocol version 2 and got assignment: {ASSIGNMENT}"
    event = read(worker(joined), worker(f"{told} with rebalance delay: 250"))[1]
    assert (event.event, event.source) == (Event.ASSIGNED, Source.CONNECT_LOG)
    assert (event.member_id, event.leader_id, event.generation) == ("w-1", "w-1", 7)
    assert (event.protocol_type, event.protocol_name) == ("connect", "sessioned")
    assert event.attrs["delta"] == "1"
    assert event.assignment is not None
    assignment = decode_connect_assignment(event.assignment)
    assert assignment.connectors == ("sink-1",)
    assert assignment.tasks == (ConnectorTaskId("sink-1", 0), ConnectorTaskId("sink-1", 1))
    assert assignment.revoked_connectors == ("old",)
    assert assignment.revoked_tasks == (ConnectorTaskId("old", 0),)
    assert (assignment.config_offset, assignment.delay_ms) == (4, 250)


def test_old_workers_assignment_has_no_generation() -> None:
    """Up to 2.2 the line does not say which generation it is of."""
    text = "Assignment{error=0, leader='w-1', leaderUrl='u', offset=4, connectorIds=[], taskIds=[]}"
    (event,) = read(worker(f"Joined group and got assignment: {text}"))
    assert (event.generation, event.protocol_name) == (None, "default")
    assert "delta" not in event.attrs


@pytest.mark.parametrize(
    "damage", ["error=99", "offset=99999999999999999999999", "taskIds=[t-99999999999]"]
)
def test_assignment_no_worker_can_have_sent_stays_text(damage: str) -> None:
    """Numbers that the protocol cannot carry are a damaged line's."""
    text = f"Assignment{{{damage}, leader='w-1'}}"
    (event,) = read(worker(f"Joined group and got assignment: {text}"))
    assert event.assignment is None
    assert damage in event.attrs["assignment_text"]


def test_workers_tasks_start_and_stop() -> None:
    """Downtime of tasks lies between these two lines."""
    events = read(
        worker("Finished stopping tasks in preparation for rebalance"),
        worker("Finished starting connectors and tasks"),
        worker("Broker coordinator was unreachable for 3000ms. Revoking previous assignment X"),
    )
    assert [event.event for event in events] == [
        Event.TASKS_STOPPED,
        Event.TASKS_STARTED,
        Event.LOST,
    ]


def test_static_clients_prefix_names_its_instance() -> None:
    """Since 2.3 a static member's lines begin with its instance id."""
    line = consumer("(Re-)joining group").replace("clientId", "instanceId=i-1, clientId")
    (event,) = read(line)
    assert (event.group_instance_id, event.client_id) == ("i-1", "c-1")


def test_clients_do_not_mix() -> None:
    """Two clients in one log each keep their own member id."""
    other = consumer("Revoke previously assigned partitions t-0").replace("=c-1", "=c-2")
    events = read(consumer(f"Successfully joined group with generation {generation()}"), other)
    assert (events[1].client_id, events[1].member_id) == ("c-2", None)


def test_lines_of_no_consequence_are_known() -> None:
    """A client's other lines are recognised and give no event."""
    summary = IngestSummary()
    lines = (
        consumer("Cluster ID: Xk2-fLZQTJm4sZJ1QpVx2w"),
        consumer("Resetting generation and member id due to: leaving"),
        "%7|1715000000.123|HEARTBEAT|rdkafka#consumer-1| [thrd:main]: GroupCoordinator/0: fine",
    )
    assert list(parse_broker_log(lines, source_ref="x", tz=UTC, summary=summary)) == []
    assert (summary.known, summary.unparsed) == (3, 0)


def test_a_process_that_logs_as_text_and_as_json_is_read_whole() -> None:
    """JSON ends a message by itself: the same in text below it is not cut."""
    said = "[Consumer clientId=c-1, groupId=shop] Subscribed to topic(s): tills.EU"
    entry = {"@timestamp": "2024-05-06T17:30:01.250+05:30", "logger": CONSUMER, "message": said}
    text = f"2024-05-06 12:00:02.250 INFO  [main] o.a.k.c.c.KafkaConsumer: {said}"
    events = read(json.dumps(entry), text)
    assert [event.attrs for event in events] == 2 * [{"sign": "subscribed", "named": "tills.EU"}]
    assert events[1].ts_us - events[0].ts_us == 1_000_000


def test_a_heartbeat_that_hears_of_a_rebalance_tells_nothing_else_since_3_0() -> None:
    """The request to join is of that rebalance: a heartbeat and the reason of the next join."""
    heard, join = read(
        consumer("Request joining group due to: group is already rebalancing"),
        consumer("(Re-)joining group"),
    )
    assert (heard.event, heard.error_code) == (Event.HEARTBEAT, ErrorCode.REBALANCE_IN_PROGRESS)
    assert join.client_reason == "group is already rebalancing"


def test_a_worker_tells_that_it_lags_behind_the_configuration() -> None:
    """It forces a rebalance of its own accord."""
    said = "Current config state offset -1 does not match group assignment 1. Forcing rebalance."
    (sign,) = read(worker(said))
    assert sign.attrs["sign"] == "config-behind"
    assert words_of(sign).endswith("and forced a rebalance")


def test_a_leave_names_its_reason_whatever_stands_for_the_coordinator() -> None:
    """People shorten the broker's address where they quote the line."""
    node = "b-1:9092 (id: 2147483646 rack: null)"
    for broker in (node, "b-1:9092"):
        (left,) = read(
            consumer(f"Member m-1 sending LeaveGroup request to coordinator {broker} due to x y")
        )
        assert (left.member_id, left.client_reason) == ("m-1", "x y")
