"""Messages of every Kafka version; the lines are written for these tests."""

import json
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from coordinator_sim.kafka.states import GroupState
from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent

COORDINATOR = "kafka.coordinator.group.GroupCoordinator"
METADATA = "kafka.coordinator.group.GroupMetadataManager"
JAVA = "org.apache.kafka.coordinator.group.GroupMetadataManager"
SHARD = "[GroupCoordinator id=3 topic=__consumer_offsets partition=9] "


def scala(message: str, logger: str = COORDINATOR) -> str:
    """A line of the Scala coordinator."""
    return f"[2024-05-06 12:00:01,250] INFO [GroupCoordinator 3]: {message} ({logger})"


def stored(message: str) -> str:
    """A line of the Scala metadata manager."""
    return (
        f"[2024-05-06 12:00:01,250] INFO [GroupMetadataManager brokerId=3] {message} ({METADATA})"
    )


def java(message: str) -> str:
    """A line of the Java coordinator's shard for partition 9."""
    return f"[2024-05-06 12:00:01,250] INFO {SHARD}{message} ({JAVA})"


def events_of(*lines: str) -> list[TraceEvent]:
    """The events of a log that holds these lines."""
    return list(parse_broker_log(lines, source_ref="server.log", tz=UTC))


MESSAGES = [
    json.loads(line)
    for line in Path(__file__).with_name("broker_messages.jsonl").read_text("utf-8").splitlines()
]
"""What a message is about, who writes it, and its event with columns."""
WRITERS = {"scala": scala, "stored": stored, "java": java}


def about(subject: str) -> pytest.MarkDecorator:
    """Runs a test with each message about a subject."""
    chosen = [each for each in MESSAGES if each["about"] == subject]
    return pytest.mark.parametrize("row", chosen, ids=[each["name"] for each in chosen])


def event_of(row: dict[str, Any]) -> TraceEvent:
    """The only event of a message, with the columns that it must have."""
    (event,) = events_of(WRITERS[row["by"]](row["message"]))
    assert event.event.name == row["event"]
    assert {name: getattr(event, name) for name in row["columns"]} == row["columns"]
    return event


@about("group")
def test_group_message_gives_group_generation_and_members(row: dict[str, Any]) -> None:
    """Each version's wording of a group's life becomes the same event."""
    event = event_of(row)
    assert event.broker_id == 3
    assert event.offsets_partition in (9, None)


@about("epoch")
def test_epochs_of_a_consumer_group_are_numbered(row: dict[str, Any]) -> None:
    """The group's epoch is the generation; the assignor is told from a client's by its name."""
    event_of(row)


@about("member")
def test_member_message_gives_member_and_group(row: dict[str, Any]) -> None:
    """Each version's wording of a member's coming and going names member and group."""
    event_of(row)


def test_static_member_replaced_since_3_0_names_the_old_member_alone() -> None:
    """The new member's id is not in the line; the old one goes to the attributes."""
    line = (
        "Static member with groupInstanceId=i-1 and unknown member id joins group shop in Stable "
        "state. Replacing previously mapped member c-0 with this groupInstanceId."
    )
    (event,) = events_of(java(line))
    assert (event.event, event.group_instance_id) == (Event.STATIC_REPLACED, "i-1")
    assert (event.member_id, event.attrs["old_member_id"]) == (None, "c-0")


@about("fenced")
def test_fenced_static_member_names_both_members(row: dict[str, Any]) -> None:
    """The fenced member is the event's, the one in its place an attribute."""
    event = event_of(row)
    assert event.attrs["current_member_id"] == "c-2"
    assert event.attrs.get("operation") in ("heartbeat", None)


@about("leader")
def test_leader_that_did_not_rejoin_is_replaced(row: dict[str, Any]) -> None:
    """The old leader is an attribute; without members nobody leads."""
    event = event_of(row)
    assert event.attrs["old_leader_id"] == "c-1"
    assert ("outcome" in event.attrs) is (event.leader_id is None)


@pytest.mark.parametrize("members", ["Set(c-1, c-2)", "[c-1, c-2]", "KeySet(c-1, c-2)"])
def test_kicked_members_give_one_event_each(members: str) -> None:
    """A line that lists members tells of each, at the same place in the order."""
    line = f"Group shop removed dynamic members who haven't joined: {members}"
    events = events_of(scala(line))
    assert [event.member_id for event in events] == ["c-1", "c-2"]
    assert {event.event for event in events} == {Event.MEMBER_KICKED}
    assert {event.seq for event in events} == {1}


def test_sync_timeout_kick_says_so() -> None:
    """Members that did not send SyncGroup in time are kicked for another reason."""
    line = "Group shop removed members who haven't sent their sync requests: [c-1]"
    (event,) = events_of(java(line))
    assert (event.event, event.attrs["cause"]) == (Event.MEMBER_KICKED, "sync_timeout")


def test_deleted_groups_die_each() -> None:
    """One line tells of all groups that a request deleted."""
    line = "The following groups were deleted: shop, till. A total of 12 offsets were removed."
    events = events_of(java(line))
    assert [(event.event, event.group_id) for event in events] == [
        (Event.GROUP_DEAD, "shop"),
        (Event.GROUP_DEAD, "till"),
    ]


@about("partition")
def test_partition_message_names_the_partition(row: dict[str, Any]) -> None:
    """A coordinator's partitions are elected, loaded and unloaded; times are durations."""
    assert event_of(row).broker_id == 3


def test_java_load_tells_records_and_bytes() -> None:
    """The size of an offsets partition is in no other line of a log."""
    line = (
        "Finished loading of metadata from __consumer_offsets-9 with epoch 2 in 17ms where 4ms "
        "was spent in the scheduler. Loaded 12 records which total to 340 bytes."
    )
    (event,) = events_of(java(line))
    assert (event.attrs["records"], event.attrs["bytes"]) == ("12", "340")


def test_loaded_member_keeps_the_stored_generation_apart() -> None:
    """The generation in this line is the one before the group's: it must not count as a fall."""
    line = (
        "[2024-05-06 12:00:01,250] INFO Loaded member MemberMetadata(memberId=c-1, "
        "groupInstanceId=None, clientId=c, clientHost=/h, sessionTimeoutMs=10000, "
        "rebalanceTimeoutMs=300000, supportedProtocols=List(range)) in group shop with generation "
        "1. (kafka.coordinator.group.GroupMetadata$)"
    )
    (event,) = events_of(line)
    assert (event.event, event.member_id, event.generation) == (Event.GROUP_LOADED, "c-1", None)
    assert event.attrs["stored_generation"] == "1"


@about("offsets")
def test_offset_housekeeping_tells_its_count(row: dict[str, Any]) -> None:
    """Expiry and deletion of offsets are counted by the broker itself."""
    assert event_of(row).attrs["count"] == "3"


def test_coordinator_starts_and_stops() -> None:
    """The coordinator's own start and stop bound what its log can tell."""
    events = events_of(scala("Starting up."), scala("Shutdown complete."))
    assert [event.attrs["what"] for event in events] == ["Starting up", "Shutdown complete"]


def test_converted_group_names_both_types() -> None:
    """A group that changes its protocol goes on under its name."""
    (event,) = events_of(
        java("[GroupId shop] Converted the empty classic group to a consumer group.")
    )
    assert (event.event, event.group_id) == (Event.LIFECYCLE, "shop")
    assert (event.attrs["from_type"], event.attrs["to_type"]) == ("classic", "consumer")


def test_store_failure_names_error() -> None:
    """A failing append is the only sign that a generation was lost."""
    (event,) = events_of(scala("Failed to persist metadata for group shop: disk on fire"))
    assert (event.event, event.group_id) == (Event.STORE_FAILED, "shop")
    assert event.attrs["error"] == "disk on fire"


def test_known_lines_give_no_event_and_are_not_unparsed() -> None:
    """Lines of no consequence are counted as known."""
    summary = IngestSummary()
    lines = (
        java("[GroupId shop] Computed new metadata hash: 12."),
        scala("Attempt to add rejoining member c-1 of group shop in unexpected group state Dead"),
        stored("Scheduling unloading of offsets and group metadata from __consumer_offsets-9"),
        scala("anything at all").replace("INFO", "DEBUG"),
    )
    assert list(parse_broker_log(lines, source_ref="x", tz=UTC, summary=summary)) == []
    assert (summary.known, summary.unparsed) == (4, 0)


@pytest.mark.parametrize("group", ["a in state b", "with (brackets)", "x-1, y", "Größe"])
def test_odd_group_ids_survive(group: str) -> None:
    """A group id may contain blanks, brackets and the words around it."""
    line = (
        f"Preparing to rebalance group {group} in state PreparingRebalance with old generation 4 "
        "(__consumer_offsets-9) (reason: Adding new member c (1) with group instance id None)"
    )
    (event,) = events_of(scala(line))
    assert (event.group_id, event.generation) == (group, 4)
    assert (event.reason, event.member_id) == (RebalanceReason.MEMBER_JOINED, "c (1)")
    assert event.state_to is GroupState.PREPARING_REBALANCE


@pytest.mark.parametrize("cut", ["Some(inst", "Some(", "No", "nul", "inst-1"])
def test_an_instance_id_that_is_cut_makes_no_static_member(cut: str) -> None:
    """Half of `None` is no instance, and half of an instance id names nobody."""
    (event,) = events_of(
        *(
            "[2024-05-06 12:00:01,250] INFO [GroupCoordinator 1]: Preparing to rebalance group g "
            "in state PreparingRebalance with old generation 3 (__consumer_offsets-5) (reason: "
            f"Adding new member a-1 with group instance id {cut}"
        ).splitlines()
    )
    assert (event.reason, event.member_id) == (RebalanceReason.MEMBER_JOINED, "a-1")
    assert event.group_instance_id is None


@pytest.mark.parametrize("tail", ["", " (kafka.coordinator.group.GroupMetadataManager)"])
def test_the_exception_below_a_failure_is_its_error(tail: str) -> None:
    """Brokers up to 3.9 log why loading failed as an exception in the next line alone."""
    failed, done = events_of(
        *(
            "[2024-05-06 12:00:01,250] ERROR [GroupMetadataManager brokerId=1] Error loading "
            f"offsets from __consumer_offsets-5{tail}\n"
            "org.apache.kafka.common.errors.KafkaStorageException: Disk error\n"
            "\tat kafka.log.Log.read(Log.scala:1)\n"
            "[2024-05-06 12:00:02,250] INFO [GroupMetadataManager brokerId=1] Finished loading "
            "offsets and group metadata from __consumer_offsets-5 in 7 milliseconds"
        ).splitlines()
    )
    assert (failed.event, done.event) == (Event.LOAD_FAILED, Event.LOAD_DONE)
    assert failed.attrs["error"].endswith("KafkaStorageException: Disk error")
    assert "error" not in done.attrs


def test_failures_in_a_row_keep_their_own_errors() -> None:
    """An exception belongs to the line right above it."""
    line = (
        "[2024-05-06 12:00:01,250] ERROR [GroupMetadataManager brokerId=1] Error loading offsets "
    )
    logger = " (kafka.coordinator.group.GroupMetadataManager)"
    events = events_of(
        *(
            f"{line}from __consumer_offsets-1{logger}\n{line}from __consumer_offsets-2{logger}\n"
            f"java.lang.IllegalStateException\n{line}from __consumer_offsets-3{logger}"
        ).splitlines()
    )
    assert [event.offsets_partition for event in events] == [1, 2, 3]
    assert [event.attrs.get("error") for event in events] == [
        None,
        "java.lang.IllegalStateException",
        None,
    ]


@pytest.mark.parametrize(
    ("message", "event"),
    [
        ("Scheduling loading of metadata from __consumer_offsets-5 with epoch 3", "LOAD_START"),
        ("Finished loading offsets from __consumer_offsets-5 in 7 milliseconds", "LOAD_DONE"),
        ("Failed to load metadata from __consumer_offsets-5 with epoch 3", "LOAD_FAILED"),
        ("Finished unloading __consumer_offsets-5. Removed 3 cached offsets", "UNLOAD_DONE"),
        ("Elected as the group coordinator for partition 5 in epoch 3", "COORD_ELECTED"),
    ],
)
def test_a_load_or_unload_line_alone_is_a_coordinators(message: str, event: str) -> None:
    """No prefix and no logger are needed to know who wrote it."""
    (told,) = events_of(f"[2024-05-06 12:00:01,250] INFO {message}")
    assert (told.event.value, told.offsets_partition) == (event, 5)
