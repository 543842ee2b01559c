"""A Connect worker's coordinator: what the cases of `conformance/client_cases` leave out."""

import pytest

from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages import find_coordinator, join_group, leave_group, sync_group
from coordinator_sim_conformance.client_cases.bench import COORDINATOR, MEMBER, Bench
from coordinator_sim_conformance.client_cases.worker import WorkerPortBench, make_worker

X0, X1 = ConnectorTaskId("x", 0), ConnectorTaskId("x", 1)


def _polled(timeout_ms: int | None = None, **settings: int) -> WorkerPortBench:
    """A worker in its first poll."""
    worker = make_worker(Bench(), **settings)
    if timeout_ms is None:
        worker.poll()
    else:
        worker.poll(timeout_ms)
    return worker


def test_gauges_count_what_is_held() -> None:
    """The gauges are 0 before the first assignment, and then count connectors and tasks held."""
    worker = _polled()
    assert (worker.port.assigned_connector_count, worker.port.assigned_task_count) == (0, 0)

    worker.follow(connectors=("x",), tasks=(X0,))
    worker.be_told_to_rejoin()
    worker.follow(tasks=(X1,))

    assert (worker.port.assigned_connector_count, worker.port.assigned_task_count) == (1, 2)


def test_leader_knows_the_owners_of_the_work() -> None:
    """The owners' addresses are known from the leader's own SyncGroup answer on."""
    worker = _polled()
    worker.lead(1, 1, version=0)

    given = worker.given()
    assert (given["m"].connectors, given["m"].tasks) == (("x",), (X1,))
    assert given["m1"].tasks == (X0,)
    assert {each.config_offset for each in given.values()} == {1}
    assert worker.port.owner_url("x") is None
    worker.sync(worker.sent(sync_group.SyncGroupRequest)[-1].assignments[0].assignment)
    assert worker.port.is_leader
    assert worker.port.owner_url("x") == "http://0/"
    assert worker.port.owner_url(X0) == "http://1/"
    assert worker.port.owner_url("unknown") is None


def test_busy_herder_leaves() -> None:
    """A herder that does not poll for its rebalance timeout is told, and leaves."""
    worker = _polled(0, rebalance_timeout_ms=8_000)
    worker.follow()
    assert worker.returned == [None]

    worker.run(20_000)

    assert worker.callbacks[-1].kind is CallbackKind.POLL_TIMEOUT
    assert worker.sent(leave_group.LeaveGroupRequest)[0].members[0].reason == (
        "worker poll timeout has expired."
    )
    assert worker.port.state is MemberState.UNJOINED
    assert worker.port.callback_completed(worker.callbacks[-1].token, None, 20_000) == ()


def test_blob_that_does_not_parse_ends_the_poll() -> None:
    """An unreadable assignment, or unreadable metadata of a member, is a KafkaException."""
    worker = _polled()
    worker.join(protocol_name="sessioned")
    worker.sync(b"\0")
    assert worker.returned == ["KafkaException"]

    leader = _polled()
    unreadable = join_group.JoinGroupResponseMember(MEMBER, None, b"\0")
    leader.join(protocol_name="sessioned", leader=MEMBER, members=(unreadable,))
    assert leader.returned == ["KafkaException"]


def test_forgotten_revocations_are_not_reported_again() -> None:
    """After the herder stopped what was revoked, the allocation has no revocations left."""
    worker = _polled(0)
    worker.follow(tasks=(X1,), revoked_tasks=(X0,))

    worker.port.forget_revoked()

    assert worker.port.assignment.revoked_tasks == ()
    assert worker.port.assignment.tasks == (X1,)


def test_what_the_herder_has_given_up_is_neither_counted_nor_reported() -> None:
    """`assigned-connectors` and `assigned-tasks` are those of the allocation."""
    worker = make_worker(Bench())
    assert (worker.port.assigned_connector_count, worker.port.assigned_task_count) == (0, 0)
    worker.port.retain((), ())
    worker.poll(0)
    worker.follow(connectors=("x",), tasks=(X0, X1))
    assert (worker.port.assigned_connector_count, worker.port.assigned_task_count) == (1, 2)

    worker.port.retain((), (X1,))

    assert (worker.port.assigned_connector_count, worker.port.assigned_task_count) == (0, 1)
    assert worker.port.assignment.tasks == (X1,)


def test_nothing_revoked_is_nothing_to_forget() -> None:
    """Before its first assignment a worker reports no revocations."""
    worker = make_worker(Bench())
    worker.port.forget_revoked()
    worker.poll()

    assert worker.offered()["sessioned"].allocation is None


def test_worker_that_leaves_joins_again_at_its_next_poll() -> None:
    """The herder leaves while it reads the config topic, so that others need not wait."""
    worker = _polled(0)
    worker.follow()
    worker.do(worker.port.leave_group("taking too long to read the log", 0))
    assert len(worker.sent(leave_group.LeaveGroupRequest)) == 1
    worker.poll()

    assert [join.member_id for join in worker.sent(join_group.JoinGroupRequest)] == ["", ""]


def test_fatal_heartbeat_error_is_thrown_after_the_next_join() -> None:
    """A worker's poll joins before it looks at what its heartbeat thread met."""
    worker = _polled(0)
    worker.follow()
    worker.run(3_000)
    worker.beat(ErrorCode.FENCED_INSTANCE_ID)
    worker.returned.clear()
    worker.poll()
    assert worker.returned == []
    worker.follow()

    assert worker.returned == ["FencedInstanceIdException"]


@pytest.mark.parametrize("version", [0, 2])
def test_herder_that_fails_to_stop_work_ends_its_poll(version: int) -> None:
    """What its callback raises, before the join (eager) or in it, comes out of poll."""
    worker = _polled(connect_protocol=version)
    worker.follow(version, connectors=("x",))
    worker.outcomes[CallbackKind.WORK_REVOKED] = "ConnectException"
    worker.be_told_to_rejoin()
    if version:
        worker.follow(version, revoked_connectors=("x",))

    assert worker.returned == ["ConnectException"]


def test_herder_that_fails_to_start_work_ends_its_poll() -> None:
    """What its callback raises after the join comes out of poll."""
    worker = _polled()
    worker.outcomes[CallbackKind.WORK_ASSIGNED] = "ConnectException"
    worker.follow(connectors=("x",))

    assert worker.returned == ["ConnectException"]


def test_herder_that_fails_to_stop_unreachable_work_ends_its_poll() -> None:
    """What its callback raises without a coordinator comes out of poll."""
    worker = _polled()
    worker.follow(connectors=("x",))
    worker.outcomes[CallbackKind.WORK_REVOKED] = "ConnectException"
    worker.automatic.discard(find_coordinator.FindCoordinatorRequest)
    worker.do(worker.port.on_disconnected(COORDINATOR, 0))
    worker.run(10_000)

    assert worker.returned == ["ConnectException"]
