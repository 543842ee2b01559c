"""What the trace tells of requests, fencing, leadership and deletion."""

import pytest

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness, Step
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import scala_map_order
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages import offset_delete
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest
from coordinator_sim.messages.group_records import GroupMetadataKey, GroupMetadataValue
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.trace.events import Event, TraceEvent
from tests.unit.coordinator.worlds import world_of

FETCH = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=None),))
BOTH = pytest.mark.parametrize("profile", ["3.9", "4.4"])


def drive(profile: str) -> GroupDriver:
    """One group on a broker of that profile."""
    return GroupDriver(world_of(profile))


def events(step: Step, kind: Event) -> list[TraceEvent]:
    """The events of that kind."""
    return [event for event in step.events if event.event is kind]


def beat(group: GroupDriver, member_id: str) -> TraceEvent:
    """What is told of a heartbeat of instance i0 under that member id."""
    request = HeartbeatRequest(
        group_id=group.group_id,
        generation_id=group.generation_id,
        member_id=member_id,
        group_instance_id="i0",
    )
    (event,) = events(group.harness.call(request, api_version=4), Event.HEARTBEAT)
    return event


@BOTH
def test_a_fenced_request_is_told_with_the_member_that_has_the_instance_id(profile: str) -> None:
    """The one that came back is named; its own heartbeats name nobody."""
    group = drive(profile)
    (old,) = group.stable(1, static=True)
    new = answer(group.join(instance_id="i0"), JoinGroupResponse).member_id
    fenced, accepted = beat(group, old), beat(group, new)
    assert (fenced.error_code, fenced.attrs) == (
        ErrorCode.FENCED_INSTANCE_ID,
        {"current_member_id": new},
    )
    assert (accepted.error_code, accepted.attrs) == (ErrorCode.NONE, {})


@BOTH
def test_a_request_that_is_refused_for_another_reason_names_nobody(profile: str) -> None:
    """A session timeout out of bounds is no fencing, whoever has the instance id."""
    group = drive(profile)
    group.stable(1, static=True)
    request = JoinGroupRequest(
        group_id=group.group_id, session_timeout_ms=1, member_id="old", group_instance_id="i0"
    )
    (told,) = events(group.harness.call(request, api_version=9), Event.JOIN_RESP)
    assert (told.error_code, told.attrs) == (ErrorCode.INVALID_SESSION_TIMEOUT, {})


@BOTH
def test_a_join_that_its_own_instance_repeats_is_fenced_by_nobody_else(profile: str) -> None:
    """A JoinGroup that named no member id is superseded by the next one of its instance."""
    group = drive(profile)
    group.stable(1, static=True)
    group.join(instance_id="i1")
    told = events(group.join(instance_id="i1"), Event.JOIN_RESP)
    assert [(each.error_code, each.attrs) for each in told] == [(ErrorCode.FENCED_INSTANCE_ID, {})]


def test_a_group_that_went_with_another_partition_names_nobody() -> None:
    """A copy of its record lies in a foreign partition, whose unload takes the name along."""
    config = CoordinatorConfig(offsets_topic_num_partitions=2, group_initial_rebalance_delay_ms=0)
    group = GroupDriver(Harness(config, start_ms=0))
    group.stable(1, static=True)
    home = group.harness.partition_of("g")
    copied = Harness(config, start_ms=0, elect=False)
    for batch in group.harness.log(home):
        copied.append(home, batch.records)
        copied.append(1 - home, batch.records)
    copied.elect()
    copied.resign(1 - home)
    told = beat(GroupDriver(copied), "other")
    assert (told.error_code, told.attrs) == (ErrorCode.FENCED_INSTANCE_ID, {})


@BOTH
def test_a_replacement_taken_back_is_told(profile: str) -> None:
    """The old id is back, in place of the one that could not be stored."""
    group = drive(profile)
    (old,) = group.stable(1, static=True)
    group.harness.fail_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    done, undone = events(group.join(instance_id="i0"), Event.STATIC_REPLACED)
    assert undone.member_id == old
    assert undone.attrs == {"old_member_id": done.member_id, "in_state": "Stable", "undone": "1"}


def test_a_join_is_told_with_its_first_protocol() -> None:
    """The subscription of the trace is what the first protocol carries; there may be none."""
    group = drive("4.4")
    (told,) = events(group.join(protocols=("range", "sticky")), Event.JOIN_REQ)
    assert told.subscription == b"range"
    (told,) = events(group.join(protocols=()), Event.JOIN_REQ)
    assert told.subscription is None


@BOTH
def test_a_life_of_a_group_is_told_request_by_request(profile: str) -> None:
    """Requests that change membership when they come, others with their answers."""
    group = drive(profile)
    told: list[str] = []
    group.harness.told = lambda events: told.extend(
        f"{event.event.name} {event.error_code}" for event in events if event.api_key is not None
    )
    (member,) = group.stable(1)
    group.heartbeat(member, 2)
    group.commit(5, member_id=member, generation_id=1, version=8)
    group.commit(5, member_id=member, generation_id=2, version=8)
    group.harness.call(FETCH, api_version=7)
    group.leave((member, None))
    assert told == [
        *("JOIN_REQ None", "JOIN_RESP 0", "SYNC_REQ None", "SYNC_RESP 0", "HEARTBEAT 22"),
        *("OFFSET_COMMIT 0", "OFFSET_COMMIT 22", "OFFSET_FETCH 0", "LEAVE_REQ None"),
    ]


def test_a_leave_under_an_id_that_was_replaced_is_told_with_the_member_there_now() -> None:
    """The leaver is fenced, and the one that has its instance id named."""
    group = drive("4.4")
    (old,) = group.stable(1, static=True)
    new = answer(group.join(instance_id="i0"), JoinGroupResponse).member_id
    heard: list[TraceEvent] = []
    group.harness.told = heard.extend
    group.leave((old, "i0"))
    (fenced,) = [event for event in heard if event.event is Event.MEMBER_FENCED]
    assert (fenced.member_id, fenced.group_instance_id) == (old, "i0")
    assert fenced.attrs == {"current_member_id": new, "operation": "leave-group"}


def test_deleted_offsets_are_told_with_their_partitions() -> None:
    """Java names those that were there; without any there is nothing to tell."""
    group = drive("4.4")
    group.commit(1)
    topic = offset_delete.OffsetDeleteRequestTopic(
        "t", tuple(map(offset_delete.OffsetDeleteRequestPartition, (0, 1)))
    )
    request = offset_delete.OffsetDeleteRequest(group_id="g", topics=(topic,))
    told = [group.harness.call(request, api_version=0).events for _ in range(2)]
    assert [[(event.event, event.attrs) for event in events] for events in told] == [
        [(Event.OFFSET_TOMBSTONE, {"partitions": "t-0", "count": "1"})],
        [],
    ]


def test_scala_opens_loaded_groups_in_the_order_of_its_map() -> None:
    """A table that takes its twelfth group doubles."""
    group = drive("3.9")
    world = group.harness
    names = [f"group-{number}" for number in range(12)]
    world.resign()
    value = GroupMetadataValue(generation=1, protocol_type="consumer", protocol=None, leader=None)
    world.append(0, tuple(LogRecord(GroupMetadataKey(name), value, 3) for name in names))
    told = events(world.elect(leader_epoch=2), Event.GROUP_LOADED)
    assert [event.group_id for event in told] == scala_map_order(names)


@pytest.mark.parametrize(("profile", "partition"), [("3.9", None), ("4.4", 0)])
def test_expired_offsets_are_told_with_their_number(profile: str, partition: int | None) -> None:
    """Java looks through partition by partition, Scala through all."""
    config = CoordinatorConfig(
        offsets_topic_num_partitions=1,
        offsets_retention_ms=60_000,
        offsets_retention_check_interval_ms=60_000,
    )
    group = GroupDriver(Harness(config, profile_named(profile), start_ms=0))
    group.commit(1, version=5)
    (told,) = events(group.harness.advance(120_000), Event.OFFSET_EXPIRED)
    assert (told.offsets_partition, told.attrs) == (partition, {"count": "1"})


def test_deleted_groups_are_told_with_their_offsets() -> None:
    """One event for a partition, with the groups that went and how many offsets they had."""
    group = drive("4.4")
    group.commit(5)
    request = DeleteGroupsRequest(groups_names=("g", "ghost"))
    (told,) = events(group.harness.call(request, api_version=2), Event.LIFECYCLE)
    assert (told.offsets_partition, told.reason_text) == (0, "groups deleted")
    assert told.attrs == {"groups": "g", "offsets": "1"}


def resigned(step: Step) -> list[tuple[Event, str | None, dict[str, str]]]:
    """What a resignation tells."""
    return [(event.event, event.reason_text, event.attrs) for event in step.events]


def test_scala_tells_of_a_resignation_without_anything_to_unload() -> None:
    """A partition never led is unloaded all the same, with nothing in it."""
    nothing = {"groups": "0", "offsets": "0"}
    world = Harness(CoordinatorConfig(), profile_named("3.9"), elect=False)
    assert resigned(world.resign(0)) == [
        (Event.COORD_RESIGNED, None, {}),
        (Event.UNLOAD_DONE, None, nothing),
    ]
    assert resigned(world.resign(0, 9)) == [
        (Event.COORD_RESIGNED, None, {"epoch": "9"}),
        (Event.UNLOAD_DONE, None, {"epoch": "9", **nothing}),
    ]


def test_scala_tells_of_a_resignation_that_comes_too_late() -> None:
    """An older epoch unloads nothing."""
    group = drive("3.9")
    group.harness.elect(0, 5)
    assert resigned(group.harness.resign(0, 3)) == [
        (Event.COORD_RESIGNED, None, {"epoch": "3"}),
        (Event.LIFECYCLE, "unload refused", {"epoch": "3", "current_epoch": "5"}),
    ]
    assert group.harness.coordinator.metrics().num_partitions_active == 1
