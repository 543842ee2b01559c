"""The verbs of a coordinator where no group is involved, and what it tells the trace."""

import pytest

from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.coordinator.contract import NOTHING, CoordinatorConfig
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import DEFAULT_PROFILE
from coordinator_sim.kafka.seeded_ids import SeededIds
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from coordinator_sim.trace.events import Event
from tests.unit.coordinator.worlds import world_of


def make_coordinator() -> GroupCoordinator:
    """A coordinator that leads nothing and lets every append through."""
    config = CoordinatorConfig(offsets_topic_num_partitions=1)
    return GroupCoordinator(config, DEFAULT_PROFILE, ids=SeededIds())


def test_without_append_policy_everything_is_appended() -> None:
    """A commit goes into the log of a coordinator that nobody told to refuse appends."""
    coordinator = make_coordinator()
    coordinator.begin_load(0, 1, 0)
    coordinator.finish_load(0, ErrorCode.NONE, 0)
    topics = (OffsetCommitRequestTopic("t", partitions=(OffsetCommitRequestPartition(0, 5),)),)
    request = OffsetCommitRequest(group_id="g", topics=topics)
    result = coordinator.handle(request, RequestContext(token=1, api_version=9), 0)
    assert len(result.batches) == 1
    assert coordinator.end_offset(0) == 1


def test_verbs_of_a_partition_never_led_do_nothing() -> None:
    """Unload, replication and the end of a load are ignored for a partition without a load."""
    coordinator = make_coordinator()
    assert coordinator.advance_high_watermark(0, 7, 0) is NOTHING
    assert coordinator.finish_load(0, ErrorCode.NONE, 0) is NOTHING
    assert coordinator.unload(0, None, 0) is NOTHING
    assert (coordinator.end_offset(0), coordinator.next_deadline_ms()) == (0, None)


def test_older_high_watermark_is_ignored() -> None:
    """Replication cannot go back: nothing is answered, and nobody waits for it anew."""
    group = GroupDriver(Harness(CoordinatorConfig(group_initial_rebalance_delay_ms=0)))
    (leader,) = group.stable(1)
    group.commit(2, member_id=leader, generation_id=1)
    assert group.harness.commit(group.harness.partition_of("g"), 1).replies == ()
    assert group.heartbeat(leader, 1).error_code is ErrorCode.NONE


def test_one_partition_may_wait_for_replication_alone() -> None:
    """Its commits wait for the high watermark; those of another partition do not."""
    world = Harness(CoordinatorConfig(offsets_topic_num_partitions=2))
    held, other = (GroupDriver(world, name) for name in ("b", "a"))
    assert (world.partition_of("b"), world.partition_of("a")) == (0, 1)
    world.coordinator.hold_high_watermark(hold=True, partition=0)
    assert held.commit(1).response is None
    assert other.commit(1).response is not None
    assert len(world.commit(0).replies) == 1
    world.coordinator.hold_high_watermark(hold=False, partition=0)
    assert held.commit(2).response is not None


def test_wake_up_is_never_after_the_deadline() -> None:
    """A heartbeat moves the deadline; the cheap instant for alarms stays before it."""
    group = GroupDriver(Harness(CoordinatorConfig(group_initial_rebalance_delay_ms=0)))
    coordinator = group.harness.coordinator
    assert coordinator.wake_up_ms() == group.harness.now_ms + 600_000
    (leader,) = group.stable(1)
    group.harness.advance(3_000)
    group.heartbeat(leader, group.generation_id)
    wake_up_ms, deadline_ms = coordinator.wake_up_ms(), coordinator.next_deadline_ms()
    assert deadline_ms == group.harness.now_ms + 10_000
    assert wake_up_ms is not None
    assert wake_up_ms <= deadline_ms


def test_a_coordinator_is_idle_once_what_was_written_is_committed() -> None:
    """Until then its sessions are not all that is under way."""
    group = GroupDriver(Harness(CoordinatorConfig(group_initial_rebalance_delay_ms=0)))
    (member,) = group.stable(1)
    idle = group.harness.coordinator.idle_sessions()
    assert idle == {("g", member): group.harness.now_ms + 10_000}
    group.harness.hold(high_watermark=True)
    group.commit(1, member_id=member, generation_id=1)
    assert group.harness.coordinator.idle_sessions() is None
    group.harness.commit()
    assert group.harness.coordinator.idle_sessions() == idle


def test_a_partition_led_anew_is_replicated_again() -> None:
    """That its replicas were behind ends with the leadership."""
    group = GroupDriver(Harness(CoordinatorConfig(offsets_topic_num_partitions=1)))
    group.harness.coordinator.hold_high_watermark(hold=True, partition=0)
    assert group.commit(1).response is None
    group.harness.resign()
    group.harness.elect(leader_epoch=2)
    assert group.commit(1).response is not None


def test_fetch_of_no_groups_is_answered() -> None:
    """A batch of nothing gets an answer of nothing."""
    step = Harness().call(OffsetFetchRequest(groups=()), api_version=8)
    assert answer(step, OffsetFetchResponse).groups == ()


def test_trace_names_every_protocol_offered() -> None:
    """A JOIN_REQ event carries the names of all protocols, in the member's order."""
    step = GroupDriver(Harness()).join(protocols=("range", "cooperative-sticky"))
    assert step.events[0].attrs == {"protocols": "range,cooperative-sticky"}


# -- A rebalance to which nobody comes: static members stay, and someone has to look for them --


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
