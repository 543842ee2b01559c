"""What the Scala coordinator does otherwise with a group: one switch of the profile a story."""

import pytest

from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.join_group import JoinGroupResponse
from tests.unit.coordinator.worlds import world_of


def comes_to(*, scala: object, java: object) -> pytest.MarkDecorator:
    """What a story comes to at a Scala and at a Java coordinator."""
    return pytest.mark.parametrize(
        ("profile", "expected"), [("3.9", scala), ("4.4", java)], ids=["scala", "java"]
    )


def drive(profile: str, **settings: int) -> GroupDriver:
    """One group on a broker of that profile; `settings` are those of its members."""
    return GroupDriver(world_of(profile), **settings)


@comes_to(scala=("Stable", True), java=("PreparingRebalance", False))
def test_leave_of_a_pending_id(profile: str, expected: tuple[str, bool]) -> None:
    """Java counts the id among the members that left; Scala drops it, and its timer runs on."""
    group = drive(profile)
    group.stable(1)
    pending = answer(group.join(), JoinGroupResponse).member_id
    group.leave((pending, None))
    timers = [t.key.member_id for t in group.harness.timers() if t.key.kind is TimerKind.SESSION]
    assert (group.state, pending in timers) == expected


@comes_to(scala=0, java=1)
def test_parked_member_that_heartbeats(profile: str, expected: int) -> None:
    """Scala arms no session for a member that waits for the coordinator."""
    group = drive(profile)
    leader, _ = group.stable(2)
    group.join(leader)
    group.heartbeat(leader, group.generation_id)
    armed = [t for t in group.harness.timers() if t.key.member_id == leader]
    assert len(armed) == expected


@comes_to(scala=["range", "sticky"], java=["range"])
def test_failed_replacement_and_the_protocols(profile: str, expected: list[str]) -> None:
    """After a replacement that could not be stored, Java offers the old protocols again."""
    group = drive(profile)
    (leader,) = group.stable(1, static=True)
    group.harness.fail_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    refused = answer(group.join(instance_id="i0", protocols=("range", "sticky")), JoinGroupResponse)
    assert refused.error_code is ErrorCode.NOT_COORDINATOR
    known = group.harness.coordinator.group("g")
    assert known is not None
    offered = [protocol.name for protocol in known.members[leader].protocols]
    assert offered == expected


@comes_to(scala=TimerKind.JOIN, java=TimerKind.SESSION)
def test_shrinking_loaded_group_and_its_sessions(profile: str, expected: TimerKind) -> None:
    """The join timer of an over-sized group is armed before the sessions in Scala."""
    group = drive(profile, rebalance_timeout_ms=10_000)
    group.stable(2)
    small = world_of(profile, elect=False, group_max_size=1)
    for batch in group.harness.log(0):
        small.append(0, batch.records)
    small.elect()
    kinds = [t.key.kind for t in small.timers() if t.key.group_id == "g"]
    assert kinds[0] is expected


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
