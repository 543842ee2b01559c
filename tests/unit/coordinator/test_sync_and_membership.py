"""SyncGroup, Heartbeat, LeaveGroup, static members, and time running out."""

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import GroupDriver, join_answer, sync_answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import JoinGroupResponse, SyncGroupResponse
from coordinator_sim.protocol.records import GroupMetadataValue
from coordinator_sim.trace.events import Event


def make_group() -> GroupDriver:
    """A group on a broker without initial delay."""
    return GroupDriver(Harness(CoordinatorConfig(group_initial_rebalance_delay_ms=0)))


def test_follower_waits_for_the_leader() -> None:
    """SYNC-002: a follower's SyncGroup is parked until the leader's assignment is stored."""
    group = make_group()
    leader, follower = group.stable(2)
    group.join(leader)
    group.join(follower)
    generation = group.generation_id
    assert group.sync(follower, generation).response is None
    step = group.sync(leader, generation, {follower: b"F", leader: b"L"})
    found = {
        reply.response.assignment
        for reply in step.replies
        if isinstance(reply.response, SyncGroupResponse)
    }
    assert found == {b"F", b"L"}


def test_missing_assignment_is_empty() -> None:
    """SYNC-003, SYNC-004: a member the leader forgot gets nothing; a stranger's share is lost."""
    group = make_group()
    leader, follower = group.stable(2)
    group.join(leader)
    group.join(follower)
    group.sync(leader, group.generation_id, {leader: b"L", "stranger": b"S"})
    assert sync_answer(group.sync(follower, group.generation_id)).assignment == b""


def test_sync_of_a_wrong_generation_is_refused() -> None:
    """SYNC checks the member first, then the generation."""
    group = make_group()
    (leader,) = group.stable(1)
    assert sync_answer(group.sync(leader, 7)).error_code is ErrorCode.ILLEGAL_GENERATION
    assert sync_answer(group.sync("ghost", 7)).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_failed_assignment_rebalances() -> None:
    """SYNC-025: an assignment that cannot be stored refuses the syncs and rebalances."""
    group = make_group()
    leader, follower = group.stable(2)
    group.join(leader)
    group.join(follower)
    group.sync(follower, group.generation_id)
    group.harness.fail_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    step = group.sync(leader, group.generation_id, {leader: b"L"})
    refused = SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR)
    assert [reply.response for reply in step.replies] == [refused, refused]
    assert group.state == "PreparingRebalance"


def test_member_that_never_syncs_is_evicted() -> None:
    """PSYN-001: after the rebalance timeout, heartbeats or not."""
    group = make_group()
    group.session_timeout_ms = 100_000
    leader, follower = group.stable(2)
    group.join(leader)
    group.join(follower)
    group.sync(leader, group.generation_id, {})
    group.harness.advance(60_000)
    assert group.state == "PreparingRebalance"
    code = group.heartbeat(follower, group.generation_id).error_code
    assert code is ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeat_by_state() -> None:
    """HB-004 to HB-007: wrong generation, Stable, and while others are awaited."""
    group = make_group()
    leader, follower = group.stable(2)
    generation = group.generation_id
    assert group.heartbeat(follower, generation - 1).error_code is ErrorCode.ILLEGAL_GENERATION
    assert group.heartbeat(follower, generation).error_code is ErrorCode.NONE
    group.join(leader)
    code = group.heartbeat(follower, generation).error_code
    assert code is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_keep_the_session() -> None:
    """HB-013: a session ends a whole timeout after the last heartbeat."""
    group = make_group()
    (leader,) = group.stable(1)
    for _ in range(3):
        assert group.harness.advance(9_999).events == ()
        group.heartbeat(leader, group.generation_id)
    failed = [
        e.ts_us for e in group.harness.advance(10_000).events if e.event is Event.MEMBER_FAILED
    ]
    assert failed == [(1_000_000 + 3 * 9_999 + 10_000) * 1_000]


def test_commit_keeps_the_session() -> None:
    """HB-015, COMMIT-018: an accepted commit restarts the session."""
    group = make_group()
    (leader,) = group.stable(1)
    group.harness.advance(9_000)
    group.commit(1, member_id=leader, generation_id=group.generation_id)
    group.harness.advance(9_000)
    assert group.state == "Stable"


def test_last_member_leaves() -> None:
    """LEAVE-018, REB-017: the group turns Empty and its generation grows; both are stored."""
    group = make_group()
    (leader,) = group.stable(1)
    assert group.leave((leader, None)).members[0].error_code is ErrorCode.NONE
    assert (group.state, group.generation_id) == ("Empty", 2)
    batch = group.harness.log(group.harness.partition_of("g"))[-1]
    value = batch.records[0].value
    assert isinstance(value, GroupMetadataValue)
    assert (value.protocol_type, value.generation_id, value.members) == ("consumer", 2, ())


def test_leave_of_an_unknown_group_is_told_entry_by_entry() -> None:
    """LEAVE-003: the request succeeds, the member is unknown."""
    response = make_group().leave(("ghost", None))
    assert response.error_code is ErrorCode.NONE
    assert response.members[0].error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_administrator_removes_by_instance_id() -> None:
    """LEAVE-012: an empty member id with an instance id removes that static member."""
    group = make_group()
    group.stable(2, static=True)
    response = group.leave(("", "i1"), ("", "i9"))
    codes = [member.error_code for member in response.members]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert group.state == "PreparingRebalance"


def test_sync_of_a_leaver_is_never_answered() -> None:
    """LEAVE-024: the leaver is forgotten before anyone is told of the new rebalance."""
    group = make_group()
    leader, follower = group.stable(2)
    group.join(leader)
    group.join(follower)
    parked = group.sync(follower, group.generation_id)
    group.leave((follower, None))
    group.join(leader)
    step = group.harness.advance(300_000)
    assert parked.token not in [reply.token for reply in step.replies]


def test_static_member_returns_without_a_rebalance() -> None:
    """STAT-006: the returning leader is given the members and told not to assign."""
    group = make_group()
    leader, _ = group.stable(2, static=True)
    generation = group.generation_id
    response = join_answer(group.join(instance_id="i0"))
    assert (response.generation_id, response.skip_assignment) == (generation, True)
    assert response.member_id != leader
    assert len(response.members) == 2
    assert group.state == "Stable"
    code = group.heartbeat(leader, generation, "i0").error_code
    assert code is ErrorCode.FENCED_INSTANCE_ID
    assert sync_answer(group.sync(response.member_id, generation)).assignment == leader.encode()


def test_static_leader_of_an_old_version_believes_it_follows() -> None:
    """STAT-007: below version 9 it is told the old leader's id."""
    group = make_group()
    leader, _ = group.stable(2, static=True)
    response = join_answer(group.join(instance_id="i0", version=5))
    assert (response.leader, response.members) == (leader, ())


def test_replacement_that_cannot_be_stored_is_taken_back() -> None:
    """STAT-013: the old id is a member again, and the new one is told the error."""
    group = make_group()
    leader, _ = group.stable(2, static=True)
    group.harness.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    response = join_answer(group.join(instance_id="i0"))
    assert response.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group.heartbeat(leader, group.generation_id, "i0").error_code is ErrorCode.NONE


def test_static_group_without_anybody_waits() -> None:
    """STAT-020: the join phase cannot end while only absent static members are left."""
    group = make_group()
    group.session_timeout_ms = 100_000
    group.rebalance_timeout_ms = 5_000
    leader, _ = group.stable(2, static=True)
    group.join(leader, instance_id="i0")
    group.leave(("", "i0"))
    group.harness.advance(20_000)
    assert group.state == "PreparingRebalance"


def test_unload_answers_what_is_parked() -> None:
    """LOAD-007: parked JoinGroups are told NOT_COORDINATOR with their own ids."""
    group = make_group()
    leader, _ = group.stable(2)
    parked = group.join(leader)
    step = group.harness.resign()
    assert [(reply.token, reply.response) for reply in step.replies] == [
        (
            parked.token,
            JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id=leader),
        )
    ]
    code = join_answer(group.join()).error_code
    assert code is ErrorCode.NOT_COORDINATOR


def test_stable_group_survives_a_failover() -> None:
    """LOAD-004: generation, leader, members and assignments come back from the log."""
    group = make_group()
    leader, follower = group.stable(2)
    generation = group.generation_id
    group.harness.resign()
    group.harness.elect(leader_epoch=2)
    assert (group.state, group.generation_id) == ("Stable", generation)
    assert group.heartbeat(follower, generation).error_code is ErrorCode.NONE
    assert sync_answer(group.sync(leader, generation)).assignment == leader.encode()


def test_older_epoch_does_not_unload() -> None:
    """A resignation of an epoch not above the known one is ignored."""
    group = make_group()
    group.stable(1)
    group.harness.resign(leader_epoch=1)
    assert group.state == "Stable"
