"""A rebalance to which nobody comes: static members stay, and someone has to look for them."""

import pytest

from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.trace.events import Event
from tests.unit.coordinator.worlds import world_of

BOTH = pytest.mark.parametrize("profile", ["3.9", "4.4"])


def group_of_absent_members(profile: str) -> tuple[GroupDriver, str]:
    """Static i0 and i1 of the rebalance timeout 0, left alone by another member."""
    group = GroupDriver(world_of(profile))
    lead = answer(group.join(version=3), JoinGroupResponse).member_id
    group.sync(lead, 1, {lead: b""})
    group.rebalance_timeout_ms = 0
    steps = [group.join(instance_id="i0"), group.join(instance_id="i1")]
    group.rebalance_timeout_ms = 5_000
    steps.append(group.join(lead))
    ids = {reply.response.member_id for step in steps for reply in step.replies}  # type: ignore[union-attr]
    (first,) = (name for name in ids if name.startswith("i0"))
    for member_id in (lead, *sorted(ids - {lead})):
        group.sync(member_id, group.generation_id, {member_id: b""})
    assert group.state == "Stable"
    group.leave((lead, None))
    return group, first


@BOTH
def test_group_that_looks_all_the_time_needs_no_timer(profile: str) -> None:
    """With a rebalance timeout of 0 nothing is armed but the sessions, whose end ends the wait."""
    group, _ = group_of_absent_members(profile)
    group.harness.advance(1)
    assert group.state == "PreparingRebalance"
    assert {timer.key.kind for timer in group.harness.timers()} >= {TimerKind.SESSION}
    assert all(timer.key.kind is not TimerKind.JOIN for timer in group.harness.timers())
    assert group.harness.coordinator.idle_sessions() is None
    group.harness.advance(10_000)
    assert group.state == "Empty"


@BOTH
def test_first_who_rejoins_ends_the_wait_at_once(profile: str) -> None:
    """The first leads a generation of both: the other, absent still, is static."""
    group, first = group_of_absent_members(profile)
    group.harness.advance(7)
    step = group.join(first, instance_id="i0")
    (reply,) = step.replies
    assert isinstance(reply.response, JoinGroupResponse)
    assert (reply.at_ms, reply.response.leader) == (7, first)
    assert len(reply.response.members) == 2


@BOTH
def test_a_refused_member_does_not_end_the_wait(profile: str) -> None:
    """Nobody has joined, so that there is nobody to lead, and nothing to tell."""
    group, _ = group_of_absent_members(profile)
    group.harness.advance(7)
    step = group.join("stranger")
    assert answer(step, JoinGroupResponse).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    assert all(event.event is not Event.LEADER_REPLACED for event in step.events)
    assert group.state == "PreparingRebalance"
