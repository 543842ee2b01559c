"""One broker in virtual time."""

import pytest

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.seeded_ids import SeededIds
from coordinator_sim.messages.offset_commit import OffsetCommitResponse


def test_ids_are_those_of_the_java_oracle() -> None:
    """The same seed draws the UUIDs that SplittableRandom and randomUUID make of it in Java."""
    ids = SeededIds(2)
    assert ids.new_uuid() == "40bdc511-e517-4dfc-ba76-82815f611519"


def test_scripted_ids_come_first() -> None:
    """Given UUIDs are handed out before any is drawn."""
    ids = SeededIds(2)
    ids.script("00000000-0000-4000-8000-000000000000")
    assert ids.new_uuid() == "00000000-0000-4000-8000-000000000000"


def test_advance_fires_each_timer_at_its_own_time() -> None:
    """Answers carry the instant they left, not the end of the wait."""
    group = GroupDriver(Harness(CoordinatorConfig(group_initial_rebalance_delay_ms=3_000)))
    group.join(version=3)
    step = group.harness.advance(10_000)
    assert (step.now_ms, step.replies[0].at_ms) == (1_010_000, 1_003_000)


def test_unknown_topics_are_refused_before_the_coordinator() -> None:
    """A commit to a partition that does not exist never reaches the group."""
    harness = Harness()
    harness.set_topic("t", 0)
    response = answer(GroupDriver(harness).commit(1), OffsetCommitResponse)
    error = response.topics[0].partitions[0].error_code
    assert error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert harness.coordinator.group("g") is None


def test_answers_of_the_time_passed_are_not_taken_for_the_own_one() -> None:
    """A step knows which answer is its own, if there is one."""
    group = GroupDriver(Harness())
    parked = group.join(version=3)
    assert (parked.token, parked.response) == (1, None)
    assert group.harness.advance(3_000).response is None


def test_ids_and_leadership_are_the_callers() -> None:
    """A broker made without an election leads nothing until told."""
    group = GroupDriver(Harness(elect=False))
    error = answer(group.commit(1), OffsetCommitResponse).topics[0].partitions[0].error_code
    assert error is ErrorCode.NOT_COORDINATOR
    group.harness.elect()
    error = answer(group.commit(1), OffsetCommitResponse).topics[0].partitions[0].error_code
    assert error is ErrorCode.NONE


def test_answer_of_another_kind_is_refused() -> None:
    """A parked request has no answer to look at."""
    with pytest.raises(InvariantViolation, match="expected a OffsetCommitResponse, got None"):
        answer(GroupDriver(Harness()).join(version=3), OffsetCommitResponse)


def test_stable_group_of_static_members() -> None:
    """The driver brings members into a generation; an administrator removes one."""
    group = GroupDriver(Harness(CoordinatorConfig(group_initial_rebalance_delay_ms=0)))
    leader, follower = group.stable(2, static=True)
    assert (group.state, group.generation_id) == ("Stable", 2)
    assert group.heartbeat(follower, 2, "i1").error_code is ErrorCode.NONE
    assert group.heartbeat(leader, 2, "i1").error_code is ErrorCode.FENCED_INSTANCE_ID
    assert group.leave(("", "i1")).members[0].error_code is ErrorCode.NONE
    assert group.state == "PreparingRebalance"
