"""Who is admitted by a JoinGroup, and when the join phase ends."""

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import GroupDriver, join_answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import JoinGroupResponse
from coordinator_sim.protocol.records import GroupMetadataValue


def make_group(*, delay_ms: int = 0, max_size: int = 2**31 - 1) -> GroupDriver:
    """A group on a broker with these settings."""
    config = CoordinatorConfig(group_initial_rebalance_delay_ms=delay_ms, group_max_size=max_size)
    return GroupDriver(Harness(config))


def test_first_join_without_id_is_only_handed_one() -> None:
    """MID-001, MID-005: MEMBER_ID_REQUIRED names an id, starts no rebalance, stores the group."""
    group = make_group()
    step = group.join()
    response = join_answer(step)
    assert response.error_code is ErrorCode.MEMBER_ID_REQUIRED
    assert response.member_id.startswith("client-")
    assert group.state == "Empty"
    value = step.batches[0].records[0].value
    assert isinstance(value, GroupMetadataValue)
    assert (value.generation_id, value.members) == (0, ())


def test_old_version_is_admitted_at_once() -> None:
    """JOIN-001: below version 4 the first member leads generation 1 after a delay of 0 ms."""
    response = join_answer(make_group().join(version=3))
    assert response.generation_id == 1
    assert response.leader == response.member_id
    assert [member.member_id for member in response.members] == [response.member_id]


def test_id_from_nowhere_is_unknown() -> None:
    """JOIN-003, JOIN-004: an id that was never handed out is refused, group or no group."""
    group = make_group()
    assert join_answer(group.join("ghost")).error_code is ErrorCode.UNKNOWN_MEMBER_ID
    group.stable(1)
    assert join_answer(group.join("ghost")).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_other_protocol_type_is_inconsistent() -> None:
    """JOIN-010: a member of another protocol type is refused."""
    group = make_group()
    group.stable(1)
    response = join_answer(group.join(protocol_type="connect", version=3))
    assert response.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_follower_rejoin_without_change_is_repeated() -> None:
    """JOIN-019, JOIN-034: in Stable a follower is told its generation again, without members."""
    group = make_group()
    _, follower = group.stable(2)
    response = join_answer(group.join(follower))
    assert (response.error_code, response.members) == (ErrorCode.NONE, ())
    assert response.generation_id == group.generation_id
    assert group.state == "Stable"


def test_leader_rejoin_rebalances() -> None:
    """JOIN-020: a leader's JoinGroup rebalances, even if nothing changed."""
    group = make_group()
    leader, _ = group.stable(2)
    assert group.join(leader).response is None
    assert group.state == "PreparingRebalance"


def test_protocol_order_counts_as_a_change() -> None:
    """JOIN-022: the same protocols in another order rebalance the group."""
    group = make_group()
    _, follower = group.stable(2)
    assert group.join(follower, protocols=("range", "sticky")).response is None
    assert group.state == "PreparingRebalance"


def test_superseded_request_is_never_answered() -> None:
    """JOIN-036: a second JoinGroup of a member takes the place of the parked one."""
    group = make_group()
    leader, follower = group.stable(2)
    first = group.join(leader)
    second = group.join(leader)
    step = group.join(follower)
    answered = {reply.token for reply in step.replies}
    assert second.token in answered
    assert first.token not in answered


def test_initial_delay_is_extended_by_a_joiner() -> None:
    """INIT-002: a member that joins within the delay extends it once more."""
    group = make_group(delay_ms=3_000)
    group.join(version=3)
    group.harness.advance(1_000)
    group.join(version=3)
    assert group.harness.advance(2_000).replies == ()
    replies = group.harness.advance(3_000).replies
    assert [reply.at_ms for reply in replies] == [1_006_000, 1_006_000]


def test_initial_delay_is_bounded_by_the_rebalance_timeout() -> None:
    """INIT-003: joiners cannot extend the delay past the first member's rebalance timeout."""
    group = make_group(delay_ms=3_000)
    group.rebalance_timeout_ms = 7_000
    group.join(version=3)
    answered_at: list[int] = []
    for _ in range(5):
        group.join(version=3)
        answered_at += [reply.at_ms for reply in group.harness.advance(2_000).replies]
    assert answered_at[0] == 1_007_000


def test_new_member_gives_up_after_five_minutes() -> None:
    """REB-009: a new member's parked JoinGroup is refused after 300 s."""
    group = make_group()
    group.rebalance_timeout_ms = 600_000
    group.session_timeout_ms = 1_800_000
    group.stable(1)
    parked = group.join(version=3)
    step = group.harness.advance(300_000)
    assert [(reply.token, reply.response) for reply in step.replies] == [
        (parked.token, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    ]


def test_member_missing_at_the_rebalance_timeout_is_removed() -> None:
    """REB-003: who did not rejoin in time is dropped, and the rest goes on."""
    group = make_group()
    group.session_timeout_ms = 100_000
    leader, follower = group.stable(2)
    group.join(leader)
    step = group.harness.advance(60_000)
    response = step.replies[0].response
    assert isinstance(response, JoinGroupResponse)
    assert [member.member_id for member in response.members] == [leader]
    code = group.heartbeat(follower, group.generation_id).error_code
    assert code is ErrorCode.UNKNOWN_MEMBER_ID


def test_pending_id_blocks_early_completion() -> None:
    """MID-007, MID-009: a handed-out id delays the join phase until it is used or expires."""
    group = make_group()
    group.session_timeout_ms = 20_000
    (leader,) = group.stable(1)
    group.session_timeout_ms = 10_000
    group.join()
    assert group.join(leader).response is None
    assert [reply.at_ms for reply in group.harness.advance(10_000).replies] == [1_010_000]


def test_pending_id_with_instance_id_is_a_server_error() -> None:
    """MID-013: Kafka throws on it, and so the client sees UNKNOWN_SERVER_ERROR."""
    group = make_group()
    member_id = join_answer(group.join()).member_id
    response = join_answer(group.join(member_id, instance_id="i"))
    assert response.error_code is ErrorCode.UNKNOWN_SERVER_ERROR


def test_full_group_refuses() -> None:
    """MAX-001: a member above group.max.size is refused."""
    group = make_group(max_size=2)
    group.stable(2)
    response = join_answer(group.join(version=3))
    assert response.error_code is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_majority_chooses_the_protocol() -> None:
    """PROTO-001: each member votes for its first common protocol; most votes win."""
    group = make_group(delay_ms=1_000)
    for protocols in (("range", "sticky"), ("sticky", "range"), ("sticky", "range")):
        group.join(protocols=protocols, version=3)
    replies = [reply.response for reply in group.harness.advance(3_000).replies]
    names = {reply.protocol_name for reply in replies if isinstance(reply, JoinGroupResponse)}
    assert names == {"sticky"}


def test_tie_goes_to_the_first_in_java_order() -> None:
    """PROTO-003: range lies before roundrobin in a HashMap of 16 buckets."""
    group = make_group(delay_ms=1_000)
    group.join(protocols=("roundrobin", "range"), version=3)
    group.join(protocols=("range", "roundrobin"), version=3)
    response = group.harness.advance(3_000).replies[0].response
    assert isinstance(response, JoinGroupResponse)
    assert response.protocol_name == "range"


def test_failed_append_undoes_a_new_group() -> None:
    """A group whose first record cannot be appended is gone again."""
    group = make_group(delay_ms=3_000)
    group.harness.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    response = join_answer(group.join(version=3))
    assert response.error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert group.state == "none"


def test_trace_names_every_protocol_offered() -> None:
    """A JOIN_REQ event carries the names of all protocols, in the member's order."""
    step = make_group().join(protocols=("range", "cooperative-sticky"))
    assert step.events[0].attrs == {"protocols": "range,cooperative-sticky"}
