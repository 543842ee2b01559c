"""One broker in virtual time, and its JSON form."""

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.harness.ids import SeededIds
from coordinator_sim.harness.kafka_json import read_request, write_records, write_response
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    HeartbeatRequest,
    LeaveGroupResponse,
    LeftMember,
    OffsetCommitResponse,
)


def test_ids_are_those_of_the_java_oracle() -> None:
    """The same seed draws the UUIDs that SplittableRandom and randomUUID make of it in Java."""
    ids = SeededIds(2)
    assert ids.new_uuid() == "40bdc511-e517-4dfc-ba76-82815f611519"


def test_scripted_ids_come_first() -> None:
    """Given UUIDs are handed out before any is drawn."""
    ids = SeededIds(2)
    ids.script("00000000-0000-4000-8000-000000000000")
    assert ids.new_uuid() == "00000000-0000-4000-8000-000000000000"


def test_advance_fires_each_timer_at_its_own_time() -> None:
    """Answers carry the instant they left, not the end of the wait."""
    group = GroupDriver(Harness(CoordinatorConfig(group_initial_rebalance_delay_ms=3_000)))
    group.join(version=3)
    step = group.harness.advance(10_000)
    assert (step.now_ms, step.replies[0].at_ms) == (1_010_000, 1_003_000)


def test_unknown_topics_are_refused_before_the_coordinator() -> None:
    """A commit to a partition that does not exist never reaches the group."""
    harness = Harness()
    harness.set_topic("t", 0)
    response = answer(GroupDriver(harness).commit(1), OffsetCommitResponse)
    error = response.topics[0].partitions[0].error_code
    assert error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert harness.coordinator.group("g") is None


def test_request_is_read_from_kafka_json() -> None:
    """Fields a version lacks are at their defaults."""
    data = {"groupId": "g", "generationId": 3, "memberId": "m"}
    expected = HeartbeatRequest(group_id="g", generation_id=3, member_id="m")
    assert read_request("Heartbeat", 0, data) == expected


def test_response_is_written_for_its_version() -> None:
    """Old LeaveGroup answers carry the single member's error at the top."""
    request = read_request("LeaveGroup", 2, {"groupId": "g", "memberId": "m"})
    member = LeftMember(member_id="m", error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    response = LeaveGroupResponse(members=(member,))
    assert write_response(request, 2, response) == {"throttleTimeMs": 0, "errorCode": 25}
    assert write_response(request, 3, response)["members"][0]["errorCode"] == 25


def test_records_are_written_with_their_offsets() -> None:
    """A record's JSON has its place in the log, its key and its value's version."""
    group = GroupDriver(Harness())
    group.commit(7)
    records = write_records(group.commit(8).batches[0])
    assert [(record["offset"], record["value"]["version"]) for record in records] == [(1, 4)]
    assert records[0]["value"]["data"]["offset"] == 8
