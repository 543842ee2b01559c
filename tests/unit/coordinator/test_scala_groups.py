"""What the Scala coordinator does otherwise with a group: one switch of the profile a story."""

import pytest

from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.leave_group import LeaveGroupRequest, MemberIdentity


def comes_to(*, scala: object, java: object) -> pytest.MarkDecorator:
    """What a story comes to at a Scala and at a Java coordinator."""
    return pytest.mark.parametrize(
        ("profile", "expected"), [("3.9", scala), ("4.4", java)], ids=["scala", "java"]
    )


def drive(profile: str, **settings: int) -> GroupDriver:
    """One group on a broker of that profile, without initial delay unless told otherwise."""
    config = CoordinatorConfig(
        offsets_topic_num_partitions=1,
        group_initial_rebalance_delay_ms=settings.pop("delay_ms", 0),
        group_max_size=settings.pop("max_size", 2_147_483_647),
    )
    return GroupDriver(Harness(config, profile_named(profile), start_ms=0), **settings)


@comes_to(scala=("Stable", True), java=("PreparingRebalance", False))
def test_leave_of_a_pending_id(profile: str, expected: tuple[str, bool]) -> None:
    """Java counts the id among the members that left; Scala drops it, and its timer runs on."""
    group = drive(profile)
    group.stable(1)
    pending = answer(group.join(), JoinGroupResponse).member_id
    group.leave((pending, None))
    timers = [t.key.member_id for t in group.harness.timers() if t.key.kind is TimerKind.SESSION]
    assert (group.state, pending in timers) == expected


@comes_to(scala=(True, 0), java=(False, 1))
def test_leave_is_answered_before_its_records_are_stored(
    profile: str, expected: tuple[bool, int]
) -> None:
    """The last member's leave appends an empty generation, for which only Java's answer waits."""
    group = drive(profile)
    (leader,) = group.stable(1)
    group.harness.hold(high_watermark=True)
    members = (MemberIdentity(member_id=leader),)
    step = group.harness.call(LeaveGroupRequest(group_id="g", members=members), api_version=5)
    assert len(step.batches) == 1
    assert (step.response is not None, len(group.harness.commit().replies)) == expected


@comes_to(scala="Empty", java="none")
def test_failed_append_takes_back_a_new_group_in_java_alone(profile: str, expected: str) -> None:
    """Scala writes nothing for a new group, and undoes nothing."""
    group = drive(profile)
    group.harness.fail_appends(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    group.join()
    assert group.state == expected


@comes_to(
    scala=ErrorCode.COORDINATOR_NOT_AVAILABLE, java=ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
)
def test_too_few_replicas_after_the_append(profile: str, expected: ErrorCode) -> None:
    """Scala tells the leader to look for its coordinator, Java hands the error on."""
    group = drive(profile)
    admitted = answer(group.join(version=3), JoinGroupResponse)
    group.harness.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    step = group.sync(admitted.member_id, 1, {admitted.member_id: b"x"})
    (reply,) = step.replies
    assert reply.response.error_code is expected  # type: ignore[union-attr]


@comes_to(scala=(ErrorCode.NOT_COORDINATOR, "m"), java=(ErrorCode.INVALID_SESSION_TIMEOUT, "m"))
def test_join_at_a_broker_that_does_not_lead(profile: str, expected: tuple[ErrorCode, str]) -> None:
    """Scala looks at the leadership before the session timeout, and names the member."""
    group = drive(profile, session_timeout_ms=1)
    group.harness.resign()
    refused = answer(group.join("m"), JoinGroupResponse)
    assert (refused.error_code, refused.member_id) == expected


@comes_to(scala=[ErrorCode.UNKNOWN_MEMBER_ID], java=[])
def test_replaced_while_new_stays_new_in_scala(profile: str, expected: list[ErrorCode]) -> None:
    """A static member replaced in its first rebalance loses its place if its session ends."""
    group = drive(profile, rebalance_timeout_ms=600_000)
    (leader,) = group.stable(1)
    group.join(instance_id="i")
    group.join(instance_id="i")
    group.harness.advance(5_000)
    group.heartbeat(leader, 1)
    replies = group.harness.advance(5_000).replies
    errors = [reply.response.error_code for reply in replies]  # type: ignore[union-attr]
    assert errors == expected


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


@comes_to(scala=ErrorCode.NOT_COORDINATOR, java=ErrorCode.UNKNOWN_MEMBER_ID)
def test_older_epoch_after_a_resignation(profile: str, expected: ErrorCode) -> None:
    """Scala remembers the epoch of a partition it gave up, Java forgets it."""
    group = drive(profile)
    group.harness.elect(0, 5)
    group.harness.resign(0)
    group.harness.elect(0, 4)
    refused = answer(group.join("m"), JoinGroupResponse).error_code
    assert refused is expected


@comes_to(scala=ErrorCode.NOT_COORDINATOR, java=ErrorCode.NONE)
def test_equal_epoch_resigns_in_scala(profile: str, expected: ErrorCode) -> None:
    """An epoch equal to the known one counts in Scala."""
    group = drive(profile)
    (leader,) = group.stable(1)
    group.harness.resign(0, 1)
    code = group.heartbeat(leader, 1).error_code
    assert code is expected


def test_append_outlives_the_leadership_in_scala() -> None:
    """A write in flight is finished by the watermark after a resignation, and finds nobody."""
    group = drive("3.9")
    admitted = answer(group.join(version=3), JoinGroupResponse)
    group.harness.hold(high_watermark=True)
    group.sync(admitted.member_id, 1, {admitted.member_id: b"x"})
    (refused,) = group.harness.resign().replies
    assert refused.response.error_code is ErrorCode.NOT_COORDINATOR  # type: ignore[union-attr]
    assert group.harness.commit().replies == ()


@comes_to(scala=TimerKind.JOIN, java=TimerKind.SESSION)
def test_shrinking_loaded_group_and_its_sessions(profile: str, expected: TimerKind) -> None:
    """The join timer of an over-sized group is armed before the sessions in Scala."""
    group = drive(profile, max_size=2, rebalance_timeout_ms=10_000)
    group.stable(2)
    small = Harness(
        CoordinatorConfig(
            offsets_topic_num_partitions=1, group_max_size=1, group_initial_rebalance_delay_ms=0
        ),
        profile_named(profile),
        start_ms=0,
        elect=False,
    )
    for batch in group.harness.log(0):
        small.append(0, batch.records)
    small.elect()
    kinds = [t.key.kind for t in small.timers() if t.key.group_id == "g"]
    assert kinds[0] is expected


def old(**settings: int) -> GroupDriver:
    """One group on a broker of 0.10.2, whose JoinGroup has no version that knows static members."""
    config = CoordinatorConfig(offsets_topic_num_partitions=1)
    return GroupDriver(Harness(config, profile_named("0.10.2"), start_ms=0), **settings)


def test_0_10_2_refuses_joins_with_generation_0() -> None:
    """Before 2.2 a refused JoinGroup carries generation 0."""
    refused = answer(old().join("ghost", version=1), JoinGroupResponse)
    assert (refused.error_code, refused.generation_id) == (ErrorCode.UNKNOWN_MEMBER_ID, 0)


def test_0_10_2_takes_a_first_member_without_protocols() -> None:
    """An Empty group asks neither for a protocol type nor for protocols."""
    group = old()
    group.join(protocol_type="", protocols=("range",), version=1)
    assert group.state == "AwaitingSync"


def test_0_10_2_heartbeats_while_syncing_say_nothing_about_the_member() -> None:
    """While the assignment is awaited any generation is told REBALANCE_IN_PROGRESS."""
    group = old()
    member = answer(group.join(version=1), JoinGroupResponse).member_id
    assert group.heartbeat(member, 77).error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert group.heartbeat("ghost", 1).error_code is ErrorCode.UNKNOWN_MEMBER_ID


def test_0_10_2_forgets_the_join_of_a_leaver() -> None:
    """A member that leaves while its JoinGroup is parked never hears of it."""
    group = old()
    first = answer(group.join(version=1), JoinGroupResponse).member_id
    group.sync(first, 1, {first: b"x"})
    step = group.join(version=1)
    assert step.response is None
    known = group.harness.coordinator.group("g")
    assert known is not None
    second = next(name for name in known.members if name != first)
    group.leave((second, None))
    assert all(reply.token != step.token for reply in group.harness.advance(60_000).replies)


def test_0_10_2_rebalances_once_more_for_a_member_long_gone() -> None:
    """The session of a member that did not rejoin in time runs on and disturbs the next one."""
    group = old(session_timeout_ms=30_000, rebalance_timeout_ms=5_000)
    first = answer(group.join(version=1), JoinGroupResponse).member_id
    group.sync(first, 1, {first: b"x"})
    group.join(version=1)
    (admitted,) = group.harness.advance(5_000).replies
    second = admitted.response.member_id  # type: ignore[union-attr]
    group.sync(second, 2, {second: b"x"})
    group.harness.advance(20_000)
    assert group.state == "Stable"
    group.heartbeat(second, 2)
    group.harness.advance(5_000)
    assert group.state == "PreparingRebalance"


def test_0_10_2_does_not_own_what_it_loads() -> None:
    """While a partition is loading its groups are told to look elsewhere."""
    group = old()
    coordinator = group.harness.coordinator
    group.harness.resign()
    coordinator.begin_load(0, 2, 0)
    refused = answer(group.join("m", version=1), JoinGroupResponse)
    assert refused.error_code is ErrorCode.NOT_COORDINATOR
