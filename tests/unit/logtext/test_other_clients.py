"""Lines of librdkafka, kafkajs, aiokafka and kafka-python; written for these tests."""

import json
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.logtext.reading.block_reader import BlockReader
from coordinator_sim.logtext.reading.broker_log import BrokerLog, parse_broker_log
from coordinator_sim.logtext.reading.client_log import speaker_of
from coordinator_sim.logtext.reading.envelopes import peel
from coordinator_sim.logtext.reading.instants import InstantReader
from coordinator_sim.logtext.reading.messages import find
from coordinator_sim.logtext.wordings.kafkajs import KAFKAJS
from coordinator_sim.logtext.wordings.librdkafka import LIBRDKAFKA
from coordinator_sim.logtext.wordings.python_clients import PYTHON_CLIENTS
from coordinator_sim.messages.embedded.consumer_protocol import decode_assignment
from coordinator_sim.trace.batches import Names
from coordinator_sim.trace.events import Event, Source, TraceEvent

LINES: Final = Path(__file__).with_name("client_lines_of_other_libraries.jsonl")
"""Lines with the source of their wording, the row, and the event that they become."""
CASES: Final[list[dict[str, Any]]] = list(map(json.loads, LINES.read_text("utf-8").splitlines()))
COLUMNS: Final = (
    *("group_id", "client_id", "member_id", "generation", "leader_id", "protocol_name"),
    "client_reason",
)


def read(*lines: str) -> list[TraceEvent]:
    """Return the events of a log that holds these lines."""
    return list(parse_broker_log(lines, source_ref="client.log", tz=UTC))


def held(event: TraceEvent) -> list[str]:
    """Return the partitions of an event's assignment."""
    assignment = decode_assignment(event.assignment or b"")
    return [f"{one.topic}-{one.partition}" for one in assignment.partitions]


def kinds(events: Sequence[TraceEvent]) -> list[str]:
    """Return the names of the kinds of events."""
    return [event.event.name for event in events]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["row"])
def test_line_becomes_the_event_of_its_wording(case: dict[str, Any]) -> None:
    """Each wording gives its event, with what it names of group, member, generation and reason."""
    events = read(case["line"])

    assert kinds(events)[:1] == ([] if case["event"] is None else [case["event"]])
    for event in events[:1]:
        told = {name: getattr(event, name) for name in COLUMNS if name in case}
        assert told == {name: case[name] for name in told}
        assert event.source is Source.CONSUMER_LOG
        assert event.error_code is (ErrorCode[case["error"]] if "error" in case else None)
        assert event.attrs.items() >= case.get("attrs", {}).items()
    if "partitions" in case:
        assert events[-1].event is Event.ASSIGNED
        assert held(events[-1]) == case["partitions"]


def test_every_row_has_a_line_and_every_line_its_row() -> None:
    """No wording is without a line that shows it, and no line is read by another row."""
    found = []
    for case in CASES:
        envelope = peel(case["line"], InstantReader(UTC))
        speaker = speaker_of(envelope)
        assert speaker is not None
        match = find(envelope.message, speaker.rows)
        found.append(None if match is None else match[0].name)

    assert found == [case["row"] for case in CASES]
    rows = (*LIBRDKAFKA, *KAFKAJS, *PYTHON_CLIENTS)
    assert [row.name for row in rows if row.name not in found] == []


JOINED: Final = (
    "JoinGroup response: GenerationId {}, Protocol range, LeaderId t-9, my MemberId {}, member "
    "metadata count 0: {}"
)
TOO_LATE: Final = (
    "Application maximum poll interval (9000ms) exceeded by 4ms (adjust max.poll.interval.ms for "
    "long-running message processing): leaving group"
)
STORY: Final = (
    ("CGRPSTATE", 'Group "tills" changed state wait-broker-transport -> up (join-state init)'),
    ("JOIN", 'b1:9092/1: Joining group "tills" with 1 subscribed topic(s) and member id ""'),
    (
        "JOINGROUP",
        JOINED.format(8, "t-1", "(no error)"),
    ),
    ("SYNCGROUP", "SyncGroup response: Success (30 bytes of MemberState data)"),
    (
        "MAXPOLL",
        TOO_LATE,
    ),
    ("LEAVE", 'Group "tills": leave (in state up)'),
    ("LOST", 'Group "tills": current assignment of 3 partition(s) lost: too late'),
    (
        "ASSIGN",
        'Group "tills": delegating revoke of 3 partition(s) to application on queue q: too late',
    ),
    ("REJOIN", 'Group "tills": Rejoining group without an assignment: Unassignment done'),
    ("JOIN", 'b1:9092/1: Joining group "tills" with 1 subscribed topic(s) and member id "t-1"'),
)
NAME: Final = "till-1#consumer-3"
LAYOUTS: Final = {
    "librdkafka, rdlog.c": "%7|1715000000.123|{fac}|" + NAME + "| [thrd:main]: {text}",
    "librdkafka in Docker Compose": (
        "tills-1     | %7|1715000000.123|{fac}|" + NAME + "| [thrd:main]: {text}"
    ),
    "confluent-kafka-python, log_cb": (
        "2024-05-06 12:53:20,123 - app - DEBUG - {fac} [" + NAME + "] [thrd:main]: {text}"
    ),
    "confluent-kafka-go, LogEvent.String": (
        "[2024-05-06T12:53:20Z][" + NAME + "][{fac}][7][thrd:main]: {text}"
    ),
    "confluent-kafka-dotnet, ConsoleLogger": (
        "Debug|2024-05-06 12:53:20.123|" + NAME + "|{fac}| [thrd:main]: {text}"
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_librdkafka_is_read_in_the_layout_of_every_binding(layout: str) -> None:
    """One story gives the same events in each layout, each told once, with group and member."""
    events = read(*(layout.format(fac=fac, text=text) for fac, text in STORY))

    assert kinds(events) == ["JOIN_REQ", "JOIN_RESP", "SYNC_RESP", "LEAVE_REQ", "LOST", "JOIN_REQ"]
    assert {event.group_id for event in events} == {"tills"}
    assert {event.client_id for event in events} == {"till-1"}
    assert [event.member_id for event in events] == [None, *["t-1"] * 5]
    assert [event.generation for event in events[1:5]] == [8] * 4
    assert events[3].client_reason == "maximum poll interval (9000ms) exceeded by 4ms"
    assert events[5].client_reason == "too late"
    assert all(event.ts_us // 1_000_000 == 1_715_000_000 for event in events)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_list_of_partitions_is_the_members_assignment(layout: str) -> None:
    """What a member holds comes a line each; a list whose end or beginning is missing is none."""
    listed = ("List with 2 partition(s):", " pay [0] offset INVALID", " pay [2] offset INVALID")
    head, *rest = (layout.format(fac="GRPASSIGNMENT", text=text) for text in listed)
    dumped = [layout.format(fac="DUMP_ALL", text=text) for text in listed]
    story = [layout.format(fac=fac, text=text) for fac, text in STORY[:4]]

    events = read(*story, head, *rest, rest[0], *dumped, head, rest[0], story[1])[3:]

    assert kinds(events) == ["ASSIGNED", "JOIN_REQ"]
    assert (held(events[0]), events[0].generation) == (["pay-0", "pay-2"], 8)
    assert (events[0].group_id, events[0].member_id) == ("tills", "t-1")


def test_generation_ends_with_a_join_that_gets_none() -> None:
    """A member that was fenced joins without a generation, until it gets another."""
    layout = LAYOUTS["librdkafka, rdlog.c"]
    story = [layout.format(fac=fac, text=text) for fac, text in STORY]
    refused = JOINED.format(-1, "t-2", "Broker: Group member needs a valid member ID")

    events = read(*story, layout.format(fac="JOINGROUP", text=refused), story[1])

    assert [event.generation for event in events[-2:]] == [None, None]


def test_node_rdkafka_as_json_is_read_without_a_client() -> None:
    """node-rdkafka passes on no name of the instance: one instance a log is taken for granted.

    Source: node-rdkafka, src/callbacks.cc, EventDispatcher.Flush.
    """
    lines = (
        json.dumps({"severity": 7, "fac": fac, "message": f"[thrd:main]: {text}"})
        for fac, text in STORY
    )
    events = read(*lines)

    assert kinds(events) == ["JOIN_REQ", "JOIN_RESP", "SYNC_RESP", "LEAVE_REQ", "LOST", "JOIN_REQ"]
    assert {(event.group_id, event.client_id) for event in events} == {("tills", None)}


def test_warning_alone_has_no_group() -> None:
    """Without debug lines nothing names the group, which stays unknown."""
    (event,) = read(f"%4|1715000000.123|MAXPOLL|{NAME}| [thrd:main]: {STORY[4][1]}")

    assert (event.event, event.group_id, event.client_id) == (Event.LEAVE_REQ, None, "till-1")


def test_instances_of_one_client_id_do_not_mix() -> None:
    """The number of an instance tells two consumers of one process apart."""
    layout = LAYOUTS["librdkafka, rdlog.c"]
    first = [layout.format(fac=fac, text=text) for fac, text in STORY[:3]]
    other = layout.format(fac=STORY[3][0], text=STORY[3][1]).replace("#consumer-3", "#consumer-4")

    assert read(*first, other)[-1].group_id is None
    assert read(*first, other.replace("#consumer-4", "#consumer-3"))[-1].member_id == "t-1"


def aio(text: str, layout: str = "2024-05-06 12:00:01,250 INFO {logger}: {text}") -> str:
    """Return a line of aiokafka."""
    return layout.format(logger="aiokafka.consumer.group_coordinator", text=text)


def test_python_consumer_keeps_member_and_reason() -> None:
    """Lines of one consumer in a log are of its member; a heartbeat tells why it joins again."""
    events = read(
        aio("Joined group 'tills' (generation 8) with member_id m-1"),
        aio("Elected group leader -- performing partition assignments using range"),
        aio("Successfully synced group tills with generation 8"),
        aio("Heartbeat failed for group tills because it is rebalancing"),
        aio("(Re-)joining group tills"),
        aio("LeaveGroup request succeeded"),
        aio("Joined group 'tills' (generation 9) with member_id m-2"),
        aio("Successfully synced group tills with generation 9"),
    )

    assert [event.member_id for event in events] == [*["m-1"] * 5, "m-2", "m-2"]
    assert events[1].protocol_name == "range"
    assert (events[3].event, events[3].client_reason) == (Event.JOIN_REQ, "is rebalancing")
    assert events[4].group_id == "tills"


def test_two_python_consumers_in_one_log_are_not_guessed() -> None:
    """Lines without a member, in a log of two members of a group, have none."""
    events = read(
        aio("Joined group 'tills' (generation 8) with member_id m-1"),
        aio("Joined group 'tills' (generation 8) with member_id m-2"),
        aio("Successfully synced group tills with generation 8"),
        aio("Joined group 'other' (generation 3) with member_id m-3"),
        aio("LeaveGroup request succeeded"),
    )

    assert [event.member_id for event in events] == ["m-1", "m-2", None, "m-3", None]
    assert events[-1].group_id is None


PYTHON_LAYOUTS: Final = (
    "2024-05-06 12:00:01,250 {logger} INFO {text}",
    "2024-05-06 12:00:01,250 [INFO] {logger}: {text}",
    "2024-05-06 12:00:01,250 INFO {text}",
    "2024-05-06 12:00:01,250 {text}",
    "INFO:{logger}:{text}",
)


@pytest.mark.parametrize("layout", PYTHON_LAYOUTS)
def test_python_layouts_are_read(layout: str) -> None:
    """The default layout and usual ones, with and without a logger, give the same event."""
    (event,) = read(aio("(Re-)joining group tills", layout))

    assert (event.event, event.group_id) == (Event.JOIN_REQ, "tills")


def test_quoted_line_of_a_python_client_is_none() -> None:
    """Without a logger, a line that has other words first is another program's."""
    assert read("2024-05-06 12:00:01,250 INFO worker: why is it (Re-)joining group tills") == []


def test_kafkajs_crash_is_why_the_consumer_leaves() -> None:
    """What crashed a consumer stands in the line before it stops."""
    crash, stopped = (case["line"] for case in CASES if case["row"] in ("k-crash", "k-stopped"))

    (event,) = read(crash, stopped)

    assert event.client_reason == "KafkaJSNumberOfRetriesExceeded: no answer"


def test_kafkajs_is_read_behind_and_inside_what_collectors_add() -> None:
    """Collectors wrap or precede lines; winston and others put what kafkajs adds in `extra`."""
    line = next(case["line"] for case in CASES if case["row"] == "k-joined")
    members = json.loads(line)
    own = {"level": members.pop("level"), "message": members.pop("message")}

    wrapped = read(json.dumps({"log": line + "\n", "time": "2024-05-06T12:00:02Z"}))
    nested = read(json.dumps({**own, "extra": members, "time": members["timestamp"]}))

    composed = read(f"app_1  | {line}")
    kept = read(f"2024-05-06T12:00:02.000000001Z stdout F {line}")

    plain = [(event.event, event.member_id, event.assignment) for event in read(line)]
    for events in (wrapped, nested, composed, kept):
        assert [(event.event, event.member_id, event.assignment) for event in events] == plain


def test_java_line_in_json_keeps_to_its_own_words() -> None:
    """Java's JSON may have members that are named as those of kafkajs are."""
    prefix = "[Consumer clientId=c-1, groupId=shop] "
    members = {"groupId": "till", "memberId": "m-9", "error": "none", "logger": "o.a.k.X"}
    members |= {"level": "INFO", "timestamp": "2024-05-06T12:00:02Z"}

    (event,) = read(json.dumps({"message": f"{prefix}(Re-)joining group", **members}))

    assert (event.group_id, event.member_id, event.client_reason) == ("shop", None, None)


def test_damaged_numbers_of_partitions_leave_the_assignment_out() -> None:
    """A partition that the protocol cannot carry was damaged on the way."""
    line = next(case["line"] for case in CASES if case["row"] == "k-joined")

    assert read(line.replace("[0, 2]", "[99999999999]"))[1].assignment is None


def test_blocks_of_lines_give_what_single_lines_give() -> None:
    """Client lines among broker lines are the same events, read in blocks or alone."""
    lines = [case["line"] + "\n" for case in CASES] * 3
    log = BrokerLog("client.log", UTC)
    blocks = BlockReader(log, Names()).read(["".join(lines).encode()])

    found = [event for batch in blocks for event in batch.events()]

    assert found == list(BrokerLog("client.log", UTC).read(lines))
