"""Batches that linger: who waits for them, what fails with them, and what readers see meanwhile."""

import pytest

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.harness import Harness, Step
from coordinator_sim.kafka.completion import CompleteTransaction
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from coordinator_sim.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

LINGERING = pytest.mark.parametrize("profile", ["4.0", "4.1"])


def make(profile: str = "4.1", linger_ms: int | None = None) -> Harness:
    """A broker whose offsets topic has one partition."""
    config = CoordinatorConfig(
        offsets_topic_num_partitions=1, group_coordinator_append_linger_ms=linger_ms
    )
    return Harness(config, profile_named(profile))


def commit(world: Harness, offset: int, group_id: str = "g") -> Step:
    """A simple commit of t-0."""
    topic = OffsetCommitRequestTopic("t", partitions=(OffsetCommitRequestPartition(0, offset),))
    return world.call(OffsetCommitRequest(group_id=group_id, topics=(topic,)), api_version=8)


def errors(step: Step) -> list[tuple[int, ErrorCode]]:
    """When each commit was answered, and how."""
    return [
        (reply.at_ms, reply.response.topics[0].partitions[0].error_code)
        for reply in step.replies
        if isinstance(reply.response, OffsetCommitResponse)
    ]


def fetched(step: Step) -> tuple[ErrorCode, tuple[int, ...]]:
    """The group's error, and its offsets."""
    response = step.replies[-1].response
    assert isinstance(response, OffsetFetchResponse)
    group = response.groups[0]
    return group.error_code, tuple(p.committed_offset for t in group.topics for p in t.partitions)


def fetch(world: Harness, *, stable: bool = False) -> Step:
    """The offset of t-0 in group g."""
    wanted = OffsetFetchRequestGroup(
        group_id="g", topics=(OffsetFetchRequestTopics("t", partition_indexes=(0,)),)
    )
    request = OffsetFetchRequest(groups=(wanted,), require_stable=stable)
    return world.call(request, api_version=8)


def state(world: Harness) -> str:
    """What DescribeGroups says of group g."""
    response = world.call(DescribeGroupsRequest(groups=("g",)), api_version=5).response
    assert isinstance(response, DescribeGroupsResponse)
    return response.groups[0].group_state


@LINGERING
def test_commits_within_the_linger_share_a_batch(profile: str) -> None:
    """The first write opens a batch, 5 ms later it is appended and all are answered."""
    world = make(profile)
    start_ms = world.now_ms
    assert errors(commit(world, 1)) == []
    assert errors(world.advance(3)) == []
    assert errors(commit(world, 2)) == []
    step = world.advance(2)
    assert errors(step) == [(start_ms + 5, ErrorCode.NONE)] * 2
    (batch,) = world.log(0)
    assert [batch.time_of(index) for index in range(2)] == [start_ms, start_ms + 3]


def test_later_profiles_append_at_once() -> None:
    """From 4.2 on a batch is appended when nothing else is to be done."""
    for profile in ("4.2", "4.3", "4.4"):
        assert errors(commit(make(profile), 1)) == [(1_000_000, ErrorCode.NONE)]


def test_setting_wins_over_the_profile() -> None:
    """`group.coordinator.append.linger.ms` makes 4.4 linger, and 4.1 not."""
    assert errors(commit(make("4.1", linger_ms=0), 1)) == [(1_000_000, ErrorCode.NONE)]
    world = make("4.4", linger_ms=20)
    assert errors(commit(world, 1)) == []
    assert errors(world.advance(20)) == [(1_000_020, ErrorCode.NONE)]


def test_readers_see_nothing_of_an_open_batch() -> None:
    """A group is Dead and has no offsets for readers until its batch is appended."""
    world = make()
    commit(world, 7)
    assert state(world) == "Dead"
    assert fetched(fetch(world)) == (ErrorCode.NONE, (-1,))
    world.advance(5)
    assert state(world) == "Empty"
    assert fetched(fetch(world)) == (ErrorCode.NONE, (7,))


def test_refused_flush_fails_and_undoes_every_commit_of_the_batch() -> None:
    """One append error answers all, in order, and takes their offsets and groups back."""
    world = make()
    commit(world, 1)
    world.advance(5)
    commit(world, 2)
    commit(world, 3, "other")
    world.fail_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert errors(world.advance(5)) == [(1_000_010, ErrorCode.NOT_COORDINATOR)] * 2
    assert fetched(fetch(world)) == (ErrorCode.NONE, (1,))
    assert world.coordinator.group("other") is None
    assert world.coordinator.group("g") is not None


def test_stable_fetch_shares_the_fate_of_the_open_batch() -> None:
    """A require-stable fetch sees what is open, waits for it, and fails with it as a group."""
    world = make()
    commit(world, 1)
    assert fetch(world, stable=True).replies == ()
    assert fetched(world.advance(5)) == (ErrorCode.NONE, (1,))
    commit(world, 2)
    fetch(world, stable=True)
    world.fail_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert fetched(world.advance(5)) == (ErrorCode.NOT_COORDINATOR, ())


def test_marker_appends_the_open_batch_first() -> None:
    """The end of a transaction flushes what is open, and both are answered at once."""
    world = make()
    commit(world, 1)
    step = world.complete_transaction(
        CompleteTransaction(partition=0, producer_id=7, producer_epoch=0, committed=True)
    )
    assert errors(step) == [(1_000_000, ErrorCode.NONE)]
    assert [batch.marker is not None for batch in world.log(0)] == [False, True]


def test_deleted_group_comes_back_with_a_refused_batch() -> None:
    """DeleteGroups in a batch that is refused has deleted nothing."""
    world = make()
    commit(world, 1)
    world.advance(5)
    world.call(DeleteGroupsRequest(groups_names=("g",)), api_version=2)
    assert world.coordinator.group("g") is None
    assert state(world) == "Empty"
    world.fail_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.advance(5)
    assert state(world) == "Empty"
    assert world.coordinator.group("g") is not None
    assert fetched(fetch(world)) == (ErrorCode.NONE, (1,))


def test_resignation_drops_the_open_batch() -> None:
    """Who waits for an open batch is told NOT_COORDINATOR; nothing of it reaches the log."""
    world = make()
    commit(world, 1)
    assert errors(world.resign(0)) == [(1_000_000, ErrorCode.NOT_COORDINATOR)]
    assert world.log(0) == ()
    assert errors(world.advance(10)) == []


@pytest.mark.parametrize("profile", ["4.3", "4.4"])
def test_events_that_wait_together_share_a_batch_and_its_failure(profile: str) -> None:
    """Two deletions go on when one commit has let them: the one append that fails is both's."""
    world = make(profile)
    for group_id in ("a", "b"):
        commit(world, 1, group_id)
    world.hold(high_watermark=True)
    commit(world, 1, "other")
    for group_id in ("a", "b"):
        assert not world.call(DeleteGroupsRequest(groups_names=(group_id,)), api_version=2).replies
    world.hold(high_watermark=False)
    world.fail_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    step = world.commit()
    refused = [
        result.error_code
        for reply in step.replies
        if isinstance(reply.response, DeleteGroupsResponse)
        for result in reply.response.results
    ]
    assert refused == [ErrorCode.NOT_COORDINATOR] * 2
    assert not step.batches
    step = world.call(DeleteGroupsRequest(groups_names=("a", "b")), api_version=2)
    assert len(step.batches) == 1


def test_a_linger_of_one_millisecond_is_one() -> None:
    """The answer comes with the batch, and the batch a millisecond later."""
    world = make(linger_ms=1)
    assert errors(commit(world, 1)) == []
    assert errors(world.advance(1)) == [(world.now_ms, ErrorCode.NONE)]
