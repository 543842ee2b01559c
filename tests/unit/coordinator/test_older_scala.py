"""What 2.8 and 0.10.2 do otherwise with a group: one switch of the profile a story."""

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)


def drive(profile: str, max_size: int = 100) -> GroupDriver:
    """One group on a broker of that profile, without initial delay."""
    config = CoordinatorConfig(
        offsets_topic_num_partitions=1, group_initial_rebalance_delay_ms=0, group_max_size=max_size
    )
    return GroupDriver(Harness(config, profile_named(profile), start_ms=0))


def beat(profile: str, instance_id: str) -> ErrorCode:
    """What a heartbeat of a member is told that names an instance id of nobody."""
    group = drive(profile)
    (member_id,) = group.stable(1)
    request = HeartbeatRequest(
        group_id=group.group_id, generation_id=1, member_id=member_id, group_instance_id=instance_id
    )
    step = group.harness.call(request, api_version=4)
    return answer(step, HeartbeatResponse).error_code


def test_an_unknown_instance_id_is_not_looked_at_in_2_8() -> None:
    """Kafka 2.8 fences by known instance ids alone; later every one is checked."""
    assert beat("2.8", "nobody") is ErrorCode.NONE
    assert beat("3.9", "nobody") is ErrorCode.UNKNOWN_MEMBER_ID


def leave_pending(profile: str) -> LeaveGroupResponse:
    """A pending id that leaves with an instance id."""
    group = drive(profile)
    pending = answer(group.join(), JoinGroupResponse).member_id
    entry = MemberIdentity(member_id=pending, group_instance_id="i")
    request = LeaveGroupRequest(group_id=group.group_id, members=(entry,))
    return answer(group.harness.call(request, api_version=4), LeaveGroupResponse)


def test_a_pending_static_leaver_fails_the_whole_request_in_2_8() -> None:
    """Kafka 2.8 throws; later the instance id does not matter."""
    assert leave_pending("2.8").error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert leave_pending("3.9").members[0].error_code is ErrorCode.NONE


def test_0_10_2_knows_no_largest_size() -> None:
    """group.max.size came with 2.2."""
    group = drive("0.10.2", max_size=1)
    assert len(group.stable(2)) == 2


def test_0_10_2_refuses_an_empty_group_id_to_joins_alone() -> None:
    """A heartbeat of the group without a name is of an unknown member, not of an invalid group."""
    harness = Harness(CoordinatorConfig(), profile_named("0.10.2"), start_ms=0)
    request = HeartbeatRequest(group_id="", generation_id=1, member_id="m")
    step = harness.call(request, api_version=0)
    assert answer(step, HeartbeatResponse).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_0_10_2_keeps_the_older_of_two_sessions_that_end_at_one_instant() -> None:
    """A heartbeat at the instant of another arms one more; a later one calls them off for good."""
    group = drive("0.10.2")
    (member_id,) = group.stable(1)
    armed = []
    for wait_ms in (1, 0, 0, 1):
        group.harness.advance(wait_ms)
        group.heartbeat(member_id, group.generation_id)
        armed.append(len(group.harness.timers()))
    assert [count - armed[0] for count in armed] == [0, 1, 2, 0]
    timers = [each for each in group.harness.timers() if each.key.member_id == member_id]
    assert [each.data for each in timers] == [None]


def test_0_10_2_a_session_that_outlives_its_group_does_not_disturb_the_next_of_that_name() -> None:
    """The group of a member long gone was removed; its session ends beside the new group."""
    config = CoordinatorConfig(
        offsets_topic_num_partitions=1,
        group_initial_rebalance_delay_ms=0,
        offsets_retention_check_interval_ms=60_000,
    )
    harness = Harness(config, profile_named("0.10.2"), start_ms=0)
    group = GroupDriver(harness, session_timeout_ms=200_000, rebalance_timeout_ms=5_000)
    first = answer(group.join(version=1), JoinGroupResponse).member_id
    group.sync(first, 1, {first: b"x"})
    group.join(version=1)
    (admitted,) = harness.advance(5_000).replies
    second = admitted.response.member_id  # type: ignore[union-attr]
    group.leave((second, None))
    harness.advance(60_000)
    assert group.state == "none"
    harness.advance(100_000)
    third = answer(group.join(version=1), JoinGroupResponse).member_id
    group.sync(third, 1, {third: b"x"})
    harness.advance(100_000)
    assert group.state == "Stable"
