"""The metrics of a coordinator: gauges of what is, totals of what was."""

import pytest

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.metrics import KAFKA_NAMES, CoordinatorMetrics
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages import offset_commit
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment


def harness(profile: str) -> Harness:
    """A broker with two offsets partitions that keeps offsets for ten minutes."""
    config = CoordinatorConfig(
        offsets_topic_num_partitions=2,
        offsets_retention_ms=600_000,
        offsets_retention_check_interval_ms=60_000,
    )
    return Harness(config, profile_named(profile))


def commit(world: Harness, *partitions: int, group_id: str = "simple") -> None:
    """Commit offsets of topic t without being a member."""
    entries = tuple(offset_commit.OffsetCommitRequestPartition(index, 1) for index in partitions)
    request = offset_commit.OffsetCommitRequest(
        group_id=group_id, topics=(offset_commit.OffsetCommitRequestTopic("t", partitions=entries),)
    )
    world.call(request, api_version=8)


def join(world: Harness) -> str:
    """A member of group g that needs no id before."""
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol("range", b""),),
    )
    world.call(request, api_version=3)
    world.advance(3_000)
    group = world.coordinator.group("g")
    assert group is not None
    return next(iter(group.members))


@pytest.mark.parametrize(("profile", "count"), [("4.4", 3), ("3.9", 1)])
def test_java_counts_offsets_and_scala_counts_commits(profile: str, count: int) -> None:
    """One request with three offsets is three commits to Java and one to Scala."""
    world = harness(profile)

    commit(world, 0, 1, 2)

    metrics = world.coordinator.metrics()
    assert (3, count) == (metrics.num_offsets, metrics.offset_commit_count)


def test_gauges_follow_the_states_of_groups() -> None:
    """A group is counted by the state it is in, and once it is Stable a rebalance is complete."""
    world = harness("4.4")
    commit(world, 0)
    member_id = join(world)
    before = world.coordinator.metrics()
    request = SyncGroupRequest(
        group_id="g",
        generation_id=1,
        member_id=member_id,
        assignments=(SyncGroupRequestAssignment(member_id, b"work"),),
    )
    world.call(request, api_version=3)
    after = world.coordinator.metrics()

    assert (before.num_groups, before.num_groups_empty, before.num_groups_completing_rebalance) == (
        2,
        1,
        1,
    )
    assert (after.num_groups_stable, after.num_groups_completing_rebalance) == (1, 0)
    assert (before.group_completed_rebalance_count, after.group_completed_rebalance_count) == (0, 1)


@pytest.mark.parametrize(("profile", "counts"), [("4.4", [0, 1]), ("3.9", [1, 1])])
def test_scala_counts_a_rebalance_as_soon_as_its_leader_has_assigned(
    profile: str, counts: list[int]
) -> None:
    """Java counts it when the assignment is committed."""
    world = harness(profile)
    member_id = join(world)
    world.hold(high_watermark=True)
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id)
    found = []
    for step in (lambda: world.call(request, api_version=3), world.commit):
        step()
        found.append(world.coordinator.metrics().group_completed_rebalance_count)
    assert found == counts


def test_expired_offsets_are_counted_and_gone() -> None:
    """After the retention an offset counts as expired and no longer as kept."""
    world = harness("4.4")
    commit(world, 0, 1)

    world.advance(661_000)

    metrics = world.coordinator.metrics()
    assert (metrics.num_offsets, metrics.offset_expiration_count) == (0, 2)


@pytest.mark.parametrize(("profile", "count"), [("3.9", 2), ("4.0", 2), ("4.1", 4), ("4.4", 4)])
def test_expiry_counts_its_tombstones_again_and_again_since_4_1(profile: str, count: int) -> None:
    """An offset, a group and an offset: the second group adds all three tombstones."""
    world = harness(profile)
    first, second = [name for name in ("a", "b", "c", "d") if world.partition_of(name) == 1][:2]
    commit(world, 0, group_id=first)
    commit(world, 0, group_id=second)

    world.advance(661_000)

    assert world.coordinator.metrics().offset_expiration_count == count


def test_partitions_are_counted_by_their_state() -> None:
    """A partition that was given up counts nowhere."""
    world = harness("4.4")
    world.resign(1)

    metrics = world.coordinator.metrics()

    assert (
        metrics.num_partitions_active,
        metrics.num_partitions_loading,
        metrics.num_partitions_failed,
    ) == (1, 0, 0)


def test_every_metric_has_kafkas_name() -> None:
    """No field is without the name that Kafka shows it by."""
    assert CoordinatorMetrics.__struct_fields__ == tuple(KAFKA_NAMES)
