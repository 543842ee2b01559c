"""What the trace is told: each event with the columns that its readers count on."""

from collections.abc import Iterable

import pytest

from coordinator_sim.harness.group_driver import GroupDriver, answer
from coordinator_sim.harness.harness import Harness, Step
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages import delete_groups, group_records, join_group, leave_group
from coordinator_sim.messages import records as record_bytes
from coordinator_sim.messages.records import LogRecord as Record
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.differ.programs import Program
from coordinator_sim_conformance.differ.references import REFERENCES
from coordinator_sim_conformance.differ.sides import Simulator
from tests.unit.coordinator.worlds import world_of

BOTH = pytest.mark.parametrize("profile", ["3.9", "4.4"])


def prompt(profile: str = "4.4", **settings: int) -> Harness:
    """A broker whose writes do not linger."""
    return world_of(profile, **{"group_coordinator_append_linger_ms": 0, **settings})


def told(step: Step | Iterable[TraceEvent], event: Event) -> list[TraceEvent]:
    """The events of that kind."""
    events = step.events if isinstance(step, Step) else step
    return [each for each in events if each.event is event]


@pytest.mark.parametrize("name", ["kafka-4.4.0", "kafka-3.9.2", "kafka-2.8.2", "kafka-0.10.2.2"])
def test_without_a_trace_nothing_is_told(name: str) -> None:
    """A random program of everything that a coordinator does leaves no event behind."""
    reference = REFERENCES[name]
    side = Simulator(reference.profile, has_edge=reference.has_edge)
    program = Program(reference, 5)
    opening = program.opening()
    heard: list[TraceEvent] = []
    for number in range(400):
        command = opening[number] if number < len(opening) else program.next(number)
        program.learn(side.answer(command))
        side.world.told = heard.extend
    assert heard == []


@BOTH
def test_without_a_trace_a_member_that_did_not_rejoin_goes_untold(profile: str) -> None:
    """As the programs above, whose members come back."""
    group = GroupDriver(prompt(profile, trace=False), rebalance_timeout_ms=5_000)
    leader, _ = group.stable(2)
    group.join(leader)
    assert group.harness.advance(5_000).events == ()
    assert group.state == "AwaitingSync"


@BOTH
def test_without_a_trace_what_happens_to_ids_goes_untold(profile: str) -> None:
    """Of instances that come again or are fenced, and of a handed-out id that leaves."""
    group = GroupDriver(prompt(profile, trace=False))
    heard: list[TraceEvent] = []
    group.harness.told = heard.extend
    (former,) = group.stable(1, static=True)
    group.join(instance_id="i0")
    group.leave((former, "i0"))
    pending = answer(group.join(), join_group.JoinGroupResponse)
    assert pending.error_code is ErrorCode.MEMBER_ID_REQUIRED
    group.leave((pending.member_id, None))
    group.harness.advance(20_000)
    assert heard == []


@BOTH
def test_a_leaver_whose_instance_has_another_id_is_told_and_a_stranger_is_not(profile: str) -> None:
    """The trace says who has it now."""
    group = GroupDriver(prompt(profile))
    (former,) = group.stable(1, static=True)
    current = answer(group.join(instance_id="i0"), join_group.JoinGroupResponse).member_id
    heard: list[TraceEvent] = []
    group.harness.told = heard.extend
    group.leave((former, "i0"), ("stranger", None))
    (fenced,) = told(heard, Event.MEMBER_FENCED)
    assert (fenced.member_id, fenced.group_instance_id) == (former, "i0")
    assert fenced.attrs == {"current_member_id": current, "operation": "leave-group"}


def offset_record(partition: int) -> Record:
    """An offset of group g."""
    value = group_records.OffsetCommitValue(offset=5, commit_timestamp=0)
    return Record(group_records.OffsetCommitKey("g", "t", partition), value, 3)


def stored(records: tuple[Record, ...]) -> record_bytes.LogBatch:
    """A batch at the beginning of partition 0."""
    return record_bytes.LogBatch(partition=0, base_offset=0, timestamp_ms=0, records=records)


@BOTH
def test_a_load_tells_its_length_and_its_records(profile: str) -> None:
    """Counted anew for each load; what follows the load counts no more."""
    world = prompt(profile)
    coordinator = world.coordinator
    coordinator.unload(0, None, 0)
    for epoch, records in ((2, (offset_record(0), offset_record(1))), (3, ())):
        coordinator.begin_load(0, epoch, 1_000)
        if records:
            coordinator.replay(0, stored(records))
        result = coordinator.finish_load(0, ErrorCode.NONE, 1_250)
        (done,) = told(result.events, Event.LOAD_DONE)
        assert (done.latency_us, done.offsets_partition) == (250_000, 0)
        assert done.attrs == {"epoch": str(epoch), "records": str(len(records))}
        coordinator.unload(0, None, 1_500)


@BOTH
def test_a_load_that_fails_says_why(profile: str) -> None:
    """The error is the driver's, the epoch that of the load."""
    world = prompt(profile)
    world.resign(0)
    world.coordinator.begin_load(0, 2, 10)
    result = world.coordinator.finish_load(0, ErrorCode.UNKNOWN_SERVER_ERROR, 20)
    (failed,) = told(result.events, Event.LOAD_FAILED)
    assert (failed.error_code, failed.offsets_partition) == (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
    assert failed.attrs == {"epoch": "2"}


@pytest.mark.parametrize(("epoch", "attrs"), [(None, {}), (7, {"epoch": "7"})])
def test_a_resignation_names_the_new_leaders_epoch(
    epoch: int | None, attrs: dict[str, str]
) -> None:
    """If there is one; both events of an unload have it."""
    world = prompt()
    GroupDriver(world).commit(5)
    step = world.resign(0, epoch)
    assert [each.attrs for each in told(step, Event.COORD_RESIGNED)] == [attrs]
    (done,) = told(step, Event.UNLOAD_DONE)
    assert done.attrs == attrs | {"groups": "1", "offsets": "1"}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.NETWORK_EXCEPTION),
    ],
)
def test_a_new_group_that_cannot_be_stored(error: ErrorCode, code: ErrorCode) -> None:
    """The trace has the append's error in words, and as its code what the member is told.

    Source: GroupMetadataManager.appendGroupMetadataErrorToResponseError, which is asked before
    GroupCoordinatorService's table of errors.
    """
    world = prompt(group_initial_rebalance_delay_ms=3_000)
    world.fail_appends(error)
    step = GroupDriver(world).join(version=3)
    assert answer(step, join_group.JoinGroupResponse).error_code is code
    (failed,) = told(step, Event.STORE_FAILED)
    assert (failed.reason_text, failed.error_code) == (error.name, code)
    assert failed.attrs == {"what": "new group", "timeout_ms": "5000"}


@BOTH
def test_an_empty_generation_that_cannot_be_stored_is_told(profile: str) -> None:
    """No member is left to hear of it."""
    world = prompt(profile)
    group = GroupDriver(world)
    (leader,) = group.stable(1)
    world.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS)
    heard: list[TraceEvent] = []
    group.harness.told = heard.extend
    group.leave((leader, None))
    (failed,) = told(heard, Event.STORE_FAILED)
    assert (failed.reason_text, failed.attrs["what"]) == ("NOT_ENOUGH_REPLICAS", "empty generation")


def joined_by_static(world: Harness, reason: str | None) -> Step:
    """A member of instance i joins and gives its reason."""
    request = join_group.JoinGroupRequest(
        group_id="g",
        session_timeout_ms=9_000,
        rebalance_timeout_ms=70_000,
        member_id="",
        group_instance_id="i",
        protocol_type="consumer",
        protocols=(join_group.JoinGroupRequestProtocol("range", b"x"),),
        reason=reason,
    )
    return world.call(request, api_version=9, client_id="shop", client_host="/10.0.0.7")


@pytest.mark.parametrize(("reason", "shown"), [(None, "not provided"), ("rolling", "rolling")])
def test_a_member_is_told_with_all_that_is_known_of_it(reason: str | None, shown: str) -> None:
    """Where it is, how long it may be silent, and why it came."""
    step = joined_by_static(prompt(), reason)
    (added,) = told(step, Event.MEMBER_ADDED)
    assert (added.client_id, added.client_host, added.group_instance_id) == (
        "shop",
        "/10.0.0.7",
        "i",
    )
    assert (added.session_timeout_ms, added.rebalance_timeout_ms) == (9_000, 70_000)
    (begun,) = told(step, Event.PREPARE_REBALANCE)
    assert begun.reason_text == (
        f"Adding new member {added.member_id} with group instance id i; client reason: {shown}"
    )


def test_a_dynamic_member_has_no_instance_id() -> None:
    """Kafka's log has null for it."""
    (begun,) = told(GroupDriver(prompt()).join(version=3), Event.PREPARE_REBALANCE)
    assert begun.reason_text is not None
    assert "with group instance id null; client reason: not provided" in begun.reason_text


@BOTH
def test_a_leader_that_did_not_rejoin_is_told_with_its_successor(profile: str) -> None:
    """Both with their instance ids, and what the new leader offers."""
    world = prompt(profile)
    group = GroupDriver(world, rebalance_timeout_ms=5_000)
    leader, follower = group.stable(2, static=True)
    group.join(follower, instance_id="i1", protocols=("range", "sticky"))
    step = world.advance(5_000)
    (replaced,) = told(step, Event.LEADER_REPLACED)
    assert (replaced.member_id, replaced.leader_id) == (follower, follower)
    assert (replaced.group_instance_id, replaced.reason_text) == ("i1", f"was {leader}")
    assert replaced.attrs == {
        "old_leader_id": leader,
        "old_instance_id": "i0",
        "protocols": "range,sticky",
    }


@BOTH
def test_expired_offsets_are_told_once_with_their_number(profile: str) -> None:
    """A run that finds nothing tells of nothing."""
    world = prompt(profile, offsets_retention_ms=60_000, offsets_retention_check_interval_ms=10_000)
    group = GroupDriver(world)
    group.commit(1)
    assert told(world.advance(59_999), Event.OFFSET_EXPIRED) == []
    (expired,) = told(world.advance(30_000), Event.OFFSET_EXPIRED)
    assert expired.attrs == {"count": "1"}


@pytest.mark.parametrize(("reason", "shown"), [(None, "not provided"), ("bye", "bye")])
def test_scala_gives_each_leavers_reason(reason: str | None, shown: str) -> None:
    """Removals are followed by a rebalance each, for the reason that the member gave."""
    group = GroupDriver(prompt("3.9"))
    _, follower = group.stable(2)
    request = leave_group.LeaveGroupRequest(
        group_id="g", members=(leave_group.MemberIdentity(member_id=follower, reason=reason),)
    )
    step = group.harness.call(request, api_version=5)
    (begun,) = told(step, Event.PREPARE_REBALANCE)
    assert begun.reason_text == (
        f"Removing member {follower} on LeaveGroup; client reason: {shown}"
    )


def test_scala_tells_of_the_session_of_a_dead_group() -> None:
    """It runs out though the partition is led elsewhere. Source: onExpireHeartbeat."""
    group = GroupDriver(prompt("3.9"))
    (leader,) = group.stable(1)
    group.harness.resign()
    (ended,) = told(group.harness.advance(20_000), Event.LIFECYCLE)
    assert (ended.member_id, ended.reason_text) == (leader, "session of a dead group")


@BOTH
def test_a_group_that_is_deleted_dies_once(profile: str) -> None:
    """Whoever told the cause does not tell the step of states again; its offsets are counted."""
    world = prompt(profile)
    GroupDriver(world).commit(1)
    step = world.call(delete_groups.DeleteGroupsRequest(groups_names=("g",)), api_version=2)
    assert len(told(step, Event.GROUP_DEAD)) == 1
    (deleted,) = told(step, Event.LIFECYCLE)
    assert deleted.attrs == {"groups": "g", "offsets": "1"}
