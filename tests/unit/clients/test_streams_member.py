"""The port of a stream thread's consumer: tasks, offsets, statuses and the end of memberships."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.clients.async_consumer.states import MemberState
from coordinator_sim.clients.effects import CallbackKind, RunCallback
from coordinator_sim.clients.streams_member import (
    GroupMembershipOperation,
    StreamsMember,
    StreamsRebalanceData,
    Subtopology,
    TopicInfo,
    streams_config,
)
from coordinator_sim.clients.streams_member.rebalance_data import UNKNOWN_OFFSET
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import StreamsTaskId, TopicPartition
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim.messages.streams_group_heartbeat import (
    CopartitionGroup,
    Status,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsGroupHeartbeatResponseTaskIds,
    TaskIds,
    TaskOffset,
)
from coordinator_sim_conformance.client_cases.bench import BROKER, GROUP, Bench, PortBench

INTERVAL_MS = 1_000
OFFSETS_MS = 60_000
Roles = Mapping[str, tuple[int, ...]]
NONE: Roles = {}
MISSING_SOURCE_TOPICS, ASSIGNMENT_DELAYED = Status(1, "missing"), Status(5, "delayed")
PARTS = {
    "0": Subtopology(source_topics=("t",), repartition_sink_topics=("r",)),
    "1": Subtopology(
        repartition_source_topics=(TopicInfo(name="r"),),
        state_changelog_topics=(TopicInfo(name="c"),),
    ),
}


class StreamsBench(PortBench[StreamsMember]):
    """A stream thread of two subtopologies, and its coordinator, both played by hand."""

    sums: dict[StreamsTaskId, int]
    ends: dict[StreamsTaskId, int]

    @property
    def data(self) -> StreamsRebalanceData:
        """Return what thread and consumer share."""
        return self.port.rebalance_data

    @property
    def beats(self) -> list[StreamsGroupHeartbeatRequest]:
        """All heartbeats so far."""
        return self.sent(StreamsGroupHeartbeatRequest)

    def poll_on(self, count: int = 3) -> None:
        """Poll a few times for 10 ms each."""
        for _ in range(count):
            self.poll(10)
            self.advance(10)

    def beat(
        self,
        epoch: int,
        active: Roles | None = None,
        standby: Roles = NONE,
        warmup: Roles = NONE,
        *,
        status: tuple[Status, ...] | None = (),
    ) -> None:
        """Answer a heartbeat, with an assignment where active tasks are given."""
        tells = active is not None
        self.answer(
            StreamsGroupHeartbeatRequest,
            StreamsGroupHeartbeatResponse(
                member_epoch=epoch,
                heartbeat_interval_ms=INTERVAL_MS,
                task_offset_interval_ms=OFFSETS_MS,
                acceptable_recovery_lag=10,
                status=status,
                active_tasks=listed(active or NONE) if tells else None,
                standby_tasks=listed(standby) if tells else None,
                warmup_tasks=listed(warmup) if tells else None,
                endpoint_information_epoch=7,
            ),
        )

    def refuse(self, error: ErrorCode) -> None:
        """Answer a heartbeat with an error."""
        response = StreamsGroupHeartbeatResponse(error_code=error)
        self.answer(StreamsGroupHeartbeatRequest, response)


def listed(tasks: Roles) -> tuple[StreamsGroupHeartbeatResponseTaskIds, ...]:
    """Tasks as an answer lists them."""
    return tuple(StreamsGroupHeartbeatResponseTaskIds(*each) for each in tasks.items())


def make(parts: Mapping[str, Subtopology] = PARTS, **settings: str) -> StreamsBench:
    """A member whose first heartbeat waits."""
    data = StreamsRebalanceData(
        process_id="p",
        subtopologies=parts,
        task_offset_sums=lambda: bench.sums,
        task_end_offset_sums=lambda: bench.ends,
    )
    port = StreamsMember(
        streams_config({name.replace("_", "."): value for name, value in settings.items()}),
        rebalance_data=data,
        client_id="c",
        group_id=GROUP,
        topics=data.source_topics,
        assignors=(),
        bootstrap=(BROKER,),
        member_id="m",
    )
    bench = StreamsBench(Bench(), port, topics={"t": 4, "r": 4})
    bench.sums, bench.ends = {}, {}
    bench.poll_on(1)
    return bench


def settled(active: Roles, standby: Roles = NONE, warmup: Roles = NONE) -> StreamsBench:
    """A member at epoch 1 with these tasks."""
    bench = make()
    bench.beat(1, active, standby, warmup)
    bench.poll_on()
    bench.beat(1)
    if bench.waiting(OffsetFetchRequest):
        bench.offsets()
    assert bench.port.state is MemberState.STABLE
    return bench


def test_a_member_joins_with_its_topology_and_then_tells_only_what_changes() -> None:
    """Topology, process and empty tasks at epoch 0; the tasks once, then nothing."""
    bench = settled({"0": (0, 1), "1": (2,)}, {"1": (3,)})
    bench.advance(INTERVAL_MS)
    join, acknowledgement, quiet = bench.beats

    assert (join.member_epoch, join.endpoint_information_epoch) == (0, -1)
    assert join.topology is not None
    assert [each.subtopology_id for each in join.topology.subtopologies] == ["0", "1"]
    assert (join.active_tasks, join.task_offsets, join.task_end_offsets) == ((), (), ())
    assert acknowledgement.topology is None
    assert acknowledgement.active_tasks == (TaskIds("0", (0, 1)), TaskIds("1", (2,)))
    assert acknowledgement.standby_tasks == (TaskIds("1", (3,)),)
    assert acknowledgement.endpoint_information_epoch == 7
    assert (quiet.active_tasks, quiet.task_offsets, quiet.process_id) == (None, None, None)
    assert bench.changes == [
        (
            CallbackKind.PARTITIONS_ASSIGNED,
            (TopicPartition("r", 2), TopicPartition("t", 0), TopicPartition("t", 1)),
        )
    ]


def test_active_tasks_are_given_up_before_others_are_taken_over() -> None:
    """A copy that goes needs no callback of its own; the partitions follow the tasks."""
    bench = settled({"0": (0, 1)}, {"1": (3,)})
    bench.advance(INTERVAL_MS)
    bench.beat(2, {"0": (1, 2)})
    bench.poll_on()
    revoked, assigned = bench.callbacks[-2:]

    assert revoked.streams is not None
    assert assigned.streams is not None
    assert revoked.kind is CallbackKind.PARTITIONS_REVOKED
    assert revoked.streams.active == (StreamsTaskId("0", 0),)
    assert assigned.partitions == (TopicPartition("t", 2),)
    assert assigned.streams.standby == ()
    assert bench.port.owned_partitions == (TopicPartition("t", 1), TopicPartition("t", 2))


def test_a_failed_callback_is_not_acknowledged_and_run_again() -> None:
    """The thread is told of the error; the tasks it had are those it still tells."""
    bench = make()
    bench.outcomes[CallbackKind.PARTITIONS_ASSIGNED] = "StreamsException"
    bench.beat(1, {"0": (0,)})
    bench.poll_on()
    assert bench.port.state is MemberState.RECONCILING
    assert "StreamsException" in bench.returned
    assert bench.data.reconciled.active == ()
    bench.outcomes.clear()
    bench.poll_on()
    assert bench.beats[-1].active_tasks == (TaskIds("0", (0,)),)


def test_a_task_that_cannot_be_closed_is_not_given_up() -> None:
    """The callback is run again, and nothing else is taken over before."""
    bench = settled({"0": (0, 1)})
    bench.outcomes[CallbackKind.PARTITIONS_REVOKED] = "StreamsException"
    bench.advance(INTERVAL_MS)
    bench.beat(2, {"0": (1, 2)})
    bench.poll_on()
    assert bench.data.reconciled.active == (StreamsTaskId("0", 0), StreamsTaskId("0", 1))
    bench.outcomes.clear()
    bench.poll_on()
    assert bench.data.reconciled.active == (StreamsTaskId("0", 1), StreamsTaskId("0", 2))


@pytest.mark.parametrize(
    "held", [CallbackKind.PARTITIONS_REVOKED, CallbackKind.PARTITIONS_ASSIGNED]
)
def test_a_member_that_is_fenced_in_a_callback_goes_no_further(held: CallbackKind) -> None:
    """What the callback was about is not acknowledged; all tasks are lost, and it joins again."""
    bench = settled({"0": (0, 1)} if held is CallbackKind.PARTITIONS_REVOKED else {})
    bench.advance(INTERVAL_MS)
    bench.beat(2, {"0": (1, 2)})
    bench.automatic.discard(RunCallback)
    bench.poll_on(1)
    assert bench.callbacks[-1].kind is held
    bench.advance(INTERVAL_MS)
    bench.refuse(ErrorCode.FENCED_MEMBER_EPOCH)
    bench.release()
    bench.poll_on()
    assert bench.callbacks[-1].kind is CallbackKind.PARTITIONS_LOST
    assert (bench.beats[-1].member_epoch, bench.data.reconciled.active) == (0, ())


def test_a_thread_that_fails_to_close_lost_tasks_joins_again_all_the_same() -> None:
    """Java logs the error of the callback; the thread is told by its poll."""
    bench = settled({"0": (0,)})
    bench.outcomes[CallbackKind.PARTITIONS_LOST] = "StreamsException"
    bench.advance(INTERVAL_MS)
    bench.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
    bench.poll_on()
    assert bench.port.state is MemberState.JOINING
    assert "StreamsException" in bench.returned


def test_whoever_closes_before_the_first_answer_has_lost_its_tasks() -> None:
    """Without an epoch there is nothing to revoke."""
    bench = make()
    bench.close()
    assert bench.callbacks[-1].kind is CallbackKind.PARTITIONS_LOST


def test_partitions_of_a_task_that_restores_are_not_fetched() -> None:
    """The thread pauses them."""
    bench = settled({"0": (0, 1)})
    bench.poll_on()
    both = {TopicPartition("t", 0): 10, TopicPartition("t", 1): 10}
    assert bench.port.fetchable == both
    bench.port.paused = {TopicPartition("t", 0): None}
    assert bench.port.fetchable == {TopicPartition("t", 1): 10}


def test_a_group_that_becomes_ready_calls_the_thread_again() -> None:
    """Delayed is not ready; without tasks in the answer the old ones are taken over anew."""
    bench = make()
    bench.beat(1, NONE, status=(ASSIGNMENT_DELAYED,))
    bench.poll_on()
    bench.beat(1, status=(ASSIGNMENT_DELAYED,))
    assert bench.port.state is MemberState.STABLE
    bench.advance(INTERVAL_MS)
    bench.beat(1)
    assert bench.port.state is MemberState.RECONCILING
    bench.poll_on()
    told = [each.streams.is_group_ready for each in bench.callbacks if each.streams]
    assert told == [False, True]
    bench.advance(INTERVAL_MS)
    bench.beat(1, status=(MISSING_SOURCE_TOPICS,))
    assert bench.data.statuses == (MISSING_SOURCE_TOPICS,)
    bench.poll_on()
    bench.beat(1, status=None)
    assert bench.data.statuses == (MISSING_SOURCE_TOPICS,)


def test_a_warm_up_task_near_its_end_tells_its_offsets_with_every_heartbeat() -> None:
    """Others wait for the interval; an end that is not known yet is never near."""
    bench = settled({"0": (0,)}, warmup={"1": (0,)})
    task = StreamsTaskId("1", 0)

    def next_offsets(offset: int, end: int) -> tuple[TaskOffset, ...] | None:
        bench.sums = {task: offset}
        bench.ends = {task: end}
        bench.advance(INTERVAL_MS)
        told = bench.beats[-1].task_offsets
        bench.beat(1)
        return told

    assert next_offsets(100, 1_000) is None
    assert next_offsets(200, UNKNOWN_OFFSET) is None
    assert next_offsets(990, 1_000) == (TaskOffset("1", 0, 990),)
    assert next_offsets(995, 1_000) == (TaskOffset("1", 0, 995),)
    assert next_offsets(995, 1_000) is None
    last_ms = bench.now_ms
    bench.sums = {task: 500}
    while bench.beats[-1].task_offsets is None:
        bench.poll_on(1)
        bench.advance(INTERVAL_MS)
        bench.beat(1)
    assert OFFSETS_MS - 2 * INTERVAL_MS <= bench.now_ms - last_ms <= OFFSETS_MS


def test_a_task_of_an_unknown_subtopology_ends_the_membership() -> None:
    """Its partitions cannot be told."""
    bench = make()
    bench.beat(1, {"9": (0,)})
    bench.poll_on()
    assert bench.port.state is MemberState.FATAL
    assert "KafkaException" in bench.returned


@pytest.mark.parametrize(
    ("error", "state", "raised"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, MemberState.STABLE, None),
        (ErrorCode.NOT_COORDINATOR, MemberState.STABLE, None),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, MemberState.STABLE, None),
        (ErrorCode.UNKNOWN_MEMBER_ID, MemberState.JOINING, None),
        (ErrorCode.FENCED_MEMBER_EPOCH, MemberState.JOINING, None),
        (ErrorCode.STREAMS_INVALID_TOPOLOGY, MemberState.FATAL, "StreamsInvalidTopologyException"),
        (
            ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH,
            MemberState.FATAL,
            "StreamsInvalidTopologyEpochException",
        ),
        (ErrorCode.STREAMS_TOPOLOGY_FENCED, MemberState.FATAL, "StreamsTopologyFencedException"),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, MemberState.FATAL, "GroupMaxSizeReachedException"),
        (ErrorCode.UNRELEASED_INSTANCE_ID, MemberState.FATAL, "UnreleasedInstanceIdException"),
        (ErrorCode.GROUP_ID_NOT_FOUND, MemberState.FATAL, "GroupIdNotFoundException"),
        (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            MemberState.STABLE,
            "TopicAuthorizationException",
        ),
    ],
)
def test_an_error_is_waited_out_or_costs_the_tasks_or_ends_the_membership(
    error: ErrorCode, state: MemberState, raised: str | None
) -> None:
    """Whoever loses the membership closes all tasks first; then nothing is told as owned."""
    bench = settled({"0": (0,)})
    bench.advance(INTERVAL_MS)
    bench.refuse(error)
    bench.poll_on()
    assert bench.port.state is state
    assert {None, raised} == {None, *bench.returned}
    is_lost = bench.callbacks[-1].kind is CallbackKind.PARTITIONS_LOST
    assert is_lost is (state is not MemberState.STABLE)
    assert bool(bench.data.reconciled.active) is not is_lost
    if state is MemberState.JOINING:
        assert bench.beats[-1].member_epoch == 0
        assert bench.beats[-1].topology is not None


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("one", -2)])
def test_closing_gives_up_the_active_tasks_and_says_how_the_member_leaves(
    instance: str | None, epoch: int
) -> None:
    """The callback comes even without a task; a static member will come back."""
    bench = make(**({} if instance is None else {"group_instance_id": instance}))
    bench.beat(1, {"0": (0,)})
    bench.poll_on()
    bench.beat(1)
    bench.close()
    assert bench.callbacks[-1].kind is CallbackKind.PARTITIONS_REVOKED
    assert bench.callbacks[-1].partitions == (TopicPartition("t", 0),)
    assert (bench.beats[-1].member_epoch, bench.beats[-1].instance_id) == (epoch, instance)
    bench.beat(epoch)
    assert bench.is_closed


@pytest.mark.parametrize(
    ("instance", "operation", "epochs"),
    [
        (None, GroupMembershipOperation.REMAIN_IN_GROUP, []),
        ("one", GroupMembershipOperation.REMAIN_IN_GROUP, [-2]),
        ("one", GroupMembershipOperation.LEAVE_GROUP, [-1]),
    ],
)
def test_whoever_closes_a_thread_chooses_whether_its_member_leaves(
    instance: str | None, operation: GroupMembershipOperation, epochs: list[int]
) -> None:
    """A dynamic member that remains says nothing; a static one can leave for good."""
    bench = make(**({} if instance is None else {"group_instance_id": instance}))
    bench.beat(1, {"0": (0,)})
    bench.poll_on()
    bench.beat(1)
    bench.port.leaves_by = operation
    count = len(bench.beats)
    bench.close()
    assert [beat.member_epoch for beat in bench.beats[count:]] == epochs
    if epochs:
        bench.beat(epochs[0])
    assert bench.is_closed


def test_a_refused_leave_keeps_closing_until_its_timeout() -> None:
    """No answer but a success ends it."""
    bench = settled({"0": (0,)})
    bench.close()
    bench.refuse(ErrorCode.GROUP_ID_NOT_FOUND)
    assert not bench.is_closed
    bench.advance(30_000)
    assert bench.is_closed


def test_a_thread_that_polls_too_late_loses_its_tasks_and_joins_again() -> None:
    """The member leaves by itself after max.poll.interval.ms."""
    bench = make(max_poll_interval_ms="5000")
    bench.beat(1, {"0": (0,)})
    bench.poll_on()
    for _ in range(5):
        bench.beat(1)
        bench.advance(INTERVAL_MS)
    bench.advance(INTERVAL_MS)
    assert bench.port.state is MemberState.STALE
    assert bench.beats[-1].member_epoch == -1
    while bench.waiting(StreamsGroupHeartbeatRequest):
        bench.beat(-1)
    bench.poll_on()
    assert bench.callbacks[-1].kind is CallbackKind.PARTITIONS_LOST
    assert (bench.beats[-1].member_epoch, bench.beats[-1].active_tasks) == (0, ())


def test_a_request_to_shut_down_is_told_with_every_heartbeat() -> None:
    """So that a lost one does not matter."""
    bench = settled({"0": (0,)})
    bench.data.shutdown_requested = True
    for _ in range(2):
        bench.advance(INTERVAL_MS)
        bench.beat(1)
    assert [beat.shutdown_application for beat in bench.beats[-2:]] == [True, True]


def test_topics_are_told_in_order_and_copartition_groups_by_their_places() -> None:
    """A group that names a topic which is not read is refused."""
    join = Subtopology(
        source_topics=("z", "a"),
        repartition_source_topics=(TopicInfo(name="s", partitions=3), TopicInfo(name="b")),
        copartition_groups=(("z", "s"),),
    )
    told = join.as_message("0")
    assert told.source_topics == ("a", "z")
    assert [each.name for each in told.repartition_source_topics] == ["b", "s"]
    group = CopartitionGroup(source_topics=(1,), repartition_source_topics=(1,))
    assert told.copartition_groups == (group,)
    with pytest.raises(ConfigError, match="does not read 'x': add it"):
        Subtopology(source_topics=("a",), copartition_groups=(("a", "x"),)).as_message("0")


ROLES = st.lists(st.sampled_from(("active", "standby", "warmup", "-")), min_size=8, max_size=8)


def of_role(roles: list[str], role: str) -> Roles:
    """The tasks that have a role, by subtopology."""
    found: dict[str, tuple[int, ...]] = {}
    for place, each in enumerate(roles):
        if each == role:
            subtopology = str(place % 2)
            found[subtopology] = (*found.get(subtopology, ()), place // 2)
    return found


@given(targets=st.lists(ROLES, min_size=1, max_size=5))
def test_whatever_the_targets_the_thread_ends_with_the_last_and_says_so(
    targets: list[list[str]],
) -> None:
    """Each task is given up before it is missed, and what is acknowledged is what is held."""
    bench = make()
    held: set[StreamsTaskId] = set()
    seen = 0
    for epoch, roles in enumerate(targets, start=1):
        wanted = [of_role(roles, role) for role in ("active", "standby", "warmup")]
        bench.beat(epoch, *wanted)
        bench.poll_on()
        for callback in bench.callbacks[seen:]:
            held = after(callback, held)
        seen = len(bench.callbacks)
        assert bench.port.state is MemberState.STABLE
        assert held == set(bench.data.reconciled.active)
        told = next(beat for beat in reversed(bench.beats) if beat.active_tasks is not None)
        assert told.active_tasks == tuple(TaskIds(*each) for each in sorted(wanted[0].items()))
        if bench.waiting(StreamsGroupHeartbeatRequest):
            bench.beat(epoch)
        bench.advance(INTERVAL_MS)


def after(callback: RunCallback, held: set[StreamsTaskId]) -> set[StreamsTaskId]:
    """The active tasks of a thread after a callback."""
    assert callback.streams is not None
    given = set(callback.streams.active)
    if callback.kind is CallbackKind.PARTITIONS_ASSIGNED:
        assert held <= given, "a task went without a callback"
        return given
    assert given <= held
    return held - given
