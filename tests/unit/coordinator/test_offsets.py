"""OffsetCommit and OffsetFetch, and the log they wait for."""

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness, Step
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    OffsetCommitResponse,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchResponse,
)


def make_group() -> GroupDriver:
    """A group on a broker without initial delay."""
    return GroupDriver(Harness(CoordinatorConfig(group_initial_rebalance_delay_ms=0)))


def commit_error(step: Step) -> ErrorCode:
    """The outcome of the commit's one partition."""
    return answer(step, OffsetCommitResponse).topics[0].partitions[0].error_code


def fetched(group: GroupDriver, *, require_stable: bool = False) -> list[int]:
    """Every offset the group has, as a reader sees it."""
    request = OffsetFetchRequest(
        groups=(OffsetFetchGroup(group_id=group.group_id),), require_stable=require_stable
    )
    response = answer(group.harness.call(request, api_version=9), OffsetFetchResponse)
    return [p.offset for topic in response.groups[0].topics for p in topic.partitions]


def test_simple_commit_creates_a_group() -> None:
    """COMMIT-001: a commit without generation makes an Empty group without protocol type."""
    group = make_group()
    assert commit_error(group.commit(5)) is ErrorCode.NONE
    assert (group.state, fetched(group)) == ("Empty", [5])


def test_unknown_group_with_a_generation() -> None:
    """COMMIT-002, COMMIT-003: the error depends on the request's version."""
    group = make_group()
    old = group.commit(5, generation_id=1, member_id="m", version=8)
    new = group.commit(5, generation_id=1, member_id="m", version=9)
    assert commit_error(old) is ErrorCode.ILLEGAL_GENERATION
    assert commit_error(new) is ErrorCode.GROUP_ID_NOT_FOUND


def test_old_generation_commits_while_preparing() -> None:
    """COMMIT-008: a member may store its position before it rejoins."""
    group = make_group()
    leader, follower = group.stable(2)
    group.join(leader)
    step = group.commit(5, member_id=follower, generation_id=group.generation_id)
    assert commit_error(step) is ErrorCode.NONE


def test_commit_in_the_sync_phase_is_refused() -> None:
    """COMMIT-009: REBALANCE_IN_PROGRESS, after the membership errors."""
    group = make_group()
    leader, follower = group.stable(2)
    group.join(leader)
    group.join(follower)
    good = group.commit(5, member_id=leader, generation_id=group.generation_id)
    bad = group.commit(5, member_id="ghost", generation_id=group.generation_id)
    assert commit_error(good) is ErrorCode.REBALANCE_IN_PROGRESS
    assert commit_error(bad) is ErrorCode.UNKNOWN_MEMBER_ID


def test_metadata_limit_counts_utf16_units() -> None:
    """COMMIT-020: the limit is inclusive, and a character beyond the BMP counts twice."""
    group = make_group()
    assert commit_error(group.commit(1, metadata="x" * 4_096)) is ErrorCode.NONE
    too_long = group.commit(2, metadata="\U0001f600" * 2_049)
    assert commit_error(too_long) is ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert too_long.batches == ()


def test_reader_sees_committed_offsets_only() -> None:
    """A commit is neither acknowledged nor read before the watermark passes it."""
    group = make_group()
    group.commit(1)
    group.harness.hold(high_watermark=True)
    parked = group.commit(2)
    assert parked.response is None
    assert fetched(group) == [1]
    assert [reply.token for reply in group.harness.commit().replies] == [parked.token]
    assert fetched(group) == [2]


def test_write_is_given_up_after_its_timeout() -> None:
    """A write not committed within 5 s is COORDINATOR_NOT_AVAILABLE, and stays in the log."""
    group = make_group()
    group.commit(1)
    group.harness.hold(high_watermark=True)
    group.commit(2)
    replies = group.harness.advance(5_000).replies
    response = replies[0].response
    assert isinstance(response, OffsetCommitResponse)
    code = response.topics[0].partitions[0].error_code
    assert (replies[0].at_ms, code) == (1_005_000, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    group.harness.commit()
    assert fetched(group) == [2]


def test_failed_append_stores_nothing() -> None:
    """COMMIT-036: the error is mapped, and the offset is the one before."""
    group = make_group()
    group.commit(1)
    group.harness.fail_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert commit_error(group.commit(2)) is ErrorCode.NOT_COORDINATOR
    assert fetched(group) == [1]


def test_offsets_survive_a_failover() -> None:
    """Replaying the log gives the offsets back, and a group for them."""
    group = make_group()
    group.commit(1)
    group.commit(2)
    group.harness.resign()
    group.harness.elect(leader_epoch=2)
    assert (group.state, fetched(group)) == ("Empty", [2])


def test_stable_read_waits_for_the_log() -> None:
    """A require-stable fetch reads what is applied, and is answered once that is committed."""
    group = make_group()
    group.harness.hold(high_watermark=True)
    group.commit(2)
    request = OffsetFetchRequest(groups=(OffsetFetchGroup(group_id="g"),), require_stable=True)
    parked = group.harness.call(request, api_version=9)
    assert parked.response is None
    replies = group.harness.commit().replies
    assert parked.token in [reply.token for reply in replies]
