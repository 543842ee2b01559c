"""Timers that nobody sees, but for the order of others and for what runs out in vain."""

import pytest

from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.harness.group_driver import GroupDriver
from coordinator_sim.harness.harness import Harness
from coordinator_sim.messages import offset_commit
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest
from coordinator_sim.trace.events import Event
from tests.unit.coordinator.worlds import world_of

BOTH = pytest.mark.parametrize("profile", ["3.9", "4.4"])


def armed(world: Harness, kind: TimerKind) -> list[tuple[str, int]]:
    """The timers of that kind: whose, and when."""
    return [
        (timer.key.member_id, timer.deadline_ms)
        for timer in world.timers()
        if timer.key.kind is kind
    ]


def test_a_timer_that_changes_nothing_waits_behind_writes_with_a_timeout_of_its_own() -> None:
    """An id that was handed out runs out while a commit waits.

    Source: CoordinatorTimerImpl, whose operation is a CoordinatorWriteEvent as any other.
    """
    world = world_of("4.4", group_coordinator_append_linger_ms=0)
    group = GroupDriver(world)
    group.join()
    world.advance(9_000)
    world.hold(high_watermark=True)
    group.commit(1)
    world.advance(1_000)
    assert [at_ms for _, at_ms in armed(world, TimerKind.WRITE)] == [14_000, 15_000]


@BOTH
def test_a_member_that_did_not_rejoin_has_no_session_any_more(profile: str) -> None:
    """It goes with its timer. Source: completeClassicGroupJoin."""
    world = world_of(profile)
    group = GroupDriver(world, rebalance_timeout_ms=5_000)
    leader, _ = group.stable(2)
    group.join(leader)
    world.advance(5_000)
    assert armed(world, TimerKind.SESSION) == [(leader, 15_000)]


@BOTH
def test_members_that_do_not_sync_go_in_the_order_in_which_the_group_has_them(profile: str) -> None:
    """Source: GroupMetadataManager.expirePendingSync."""
    world = world_of(profile, group_initial_rebalance_delay_ms=3_000)
    group = GroupDriver(world, rebalance_timeout_ms=5_000)
    for _ in range(7):
        group.join(version=3)
    joined = [reply.response for reply in world.advance(5_000).replies]
    (leader,) = [each for each in joined if isinstance(each, JoinGroupResponse) and each.members]
    step = world.advance(5_000)
    kicked = [each.member_id for each in step.events if each.event is Event.MEMBER_KICKED]
    assert kicked == [member.member_id for member in leader.members]


@pytest.mark.parametrize("has_transaction", [False, True])
def test_a_transactional_write_turns_the_wheel_when_it_would_have_lingered(
    has_transaction: bool,
) -> None:
    """Its batch has a linger timer too, which ends with the write, and whose bucket stays.

    Two members run out of time at one millisecond. Who waits in the coarse bucket drops behind
    who was placed in the fine one, which the wheel reaches only as it has been turned.

    Source: kafka 4.1, CoordinatorContext.maybeAllocateNewBatch.
    """
    world = world_of("4.1", idle_timers=True, group_coordinator_append_linger_ms=5)
    first, second = GroupDriver(world, "first"), GroupDriver(world, "second")
    leaders = [group.stable(1)[0] for group in (first, second)]
    world.advance(1_020)
    GroupDriver(world, "turns the wheel").join(version=3)
    world.advance(7)
    first.rebalance_timeout_ms = 23
    first.join(leaders[0])
    world.advance(3)
    if has_transaction:
        partition = offset_commit.OffsetCommitRequestPartition(0, 5)
        topic = offset_commit.OffsetCommitRequestTopic("t", partitions=(partition,))
        request = TxnOffsetCommitRequest(
            transactional_id="x", group_id="third", producer_id=7, producer_epoch=0, topics=(topic,)
        )
        world.call(request, api_version=3)
    world.advance(7)
    second.rebalance_timeout_ms = 13
    second.join(leaders[1])
    step = world.advance(13)
    kicked = [each.group_id for each in step.events if each.event is Event.MEMBER_KICKED]
    assert kicked == (["second", "first"] if has_transaction else ["first", "second"])


def test_what_a_timer_causes_elsewhere_comes_before_the_next_timer() -> None:
    """A driver that is late fires two at once: the second half of a deletion is between them.

    Its tombstone lies in the open batch before the record of a group that lost its last member.
    """
    world = world_of("4.1", group_coordinator_append_linger_ms=5)
    GroupDriver(world, "members").stable(1)
    doomed = GroupDriver(world, "doomed")
    world.advance(9_994)
    doomed.commit(1)
    request = DeleteGroupsRequest(groups_names=("doomed",))
    world.call(request, api_version=2)
    world.coordinator.expire(10_010)
    (batch,) = world.coordinator.expire(10_020).batches
    assert [record.key.group for record in batch.records] == ["doomed", "doomed", "members"]
