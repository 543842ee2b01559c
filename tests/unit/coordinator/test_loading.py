"""What a load takes over, what is left of one that failed, and what is left of an unload."""

import pytest

from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import group_records
from coordinator_sim.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from coordinator_sim.messages.records import LogBatch, LogRecord
from coordinator_sim.trace.events import Event
from tests.unit.coordinator.worlds import world_of

BOTH = pytest.mark.parametrize("profile", ["3.9", "4.4"])


def generation(*members: str) -> LogRecord:
    """A stored generation of group g; the record of its members has one timeout for both."""
    stored = tuple(
        group_records.MemberMetadata(
            member_id=member_id,
            group_instance_id=None,
            client_id="client",
            client_host="/127.0.0.1",
            rebalance_timeout=-1,
            session_timeout=9_000,
            subscription=b"range",
            assignment=b"",
        )
        for member_id in members
    )
    value = group_records.GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader=members[0], members=stored
    )
    return LogRecord(group_records.GroupMetadataKey("g"), value, 0)


def listed(world: Harness) -> list[str]:
    """The groups that ListGroups names."""
    step = world.call(ListGroupsRequest(), api_version=4)
    return [group.group_id for group in answer(step, ListGroupsResponse).groups]


@BOTH
def test_nothing_is_left_of_a_load_that_failed(profile: str) -> None:
    """The next one begins with a log that lost its end, and has what is in it alone."""
    world = world_of(profile, elect=False)
    coordinator = world.coordinator
    offset = group_records.OffsetCommitValue(offset=5, commit_timestamp=0)
    records = (
        generation("a"),
        LogRecord(group_records.OffsetCommitKey("other", "t", 0), offset, 3),
    )
    coordinator.begin_load(0, 1, 0)
    coordinator.replay(0, LogBatch(partition=0, base_offset=0, timestamp_ms=0, records=records))
    coordinator.finish_load(0, ErrorCode.UNKNOWN_SERVER_ERROR, 0)
    coordinator.begin_load(0, 2, 1)
    coordinator.finish_load(0, ErrorCode.NONE, 1)
    assert listed(world) == []


@BOTH
def test_a_member_stored_without_a_rebalance_timeout_has_that_of_its_session(profile: str) -> None:
    """Records of version 0 know one alone. Source: GroupMetadataManager.replay, loadGroup."""
    world = world_of(profile, elect=False)
    world.append(0, (generation("a", "b"),))
    world.elect()
    group = GroupDriver(world)
    group.rebalance_timeout_ms = 1_000
    group.join("a", protocols=("range",))
    (due_ms,) = [each.deadline_ms for each in world.timers() if each.key.kind is TimerKind.JOIN]
    assert due_ms == 9_000


def test_a_session_that_ended_twice_is_told_of_by_its_member_after_the_unload() -> None:
    """One began with its JoinGroup and one with its SyncGroup: both know whose they are."""
    world = world_of("0.10.2")
    (leader,) = GroupDriver(world).stable(1)
    world.resign()
    step = world.advance(20_000)
    ended = [each.member_id for each in step.events if each.event is Event.LIFECYCLE]
    assert ended == [leader, leader]
