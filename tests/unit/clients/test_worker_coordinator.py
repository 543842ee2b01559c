"""A Connect worker's coordinator against a script: offers, assignments, leadership, outages."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from coordinator_sim.clients.config import ConnectProtocolCompatibility, WorkerConfig
from coordinator_sim.clients.effects import COORDINATOR_NODE_OFFSET, CallbackKind
from coordinator_sim.clients.generation import MemberState
from coordinator_sim.clients.worker_coordinator import ConfigSnapshot, WorkerCoordinator
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.protocol.embedded import ConnectAssignment, ConnectError, WorkerMetadata
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.resources import ConnectorTaskId
from coordinator_sim.wire.connect_protocol import (
    decode_connect_assignment,
    decode_worker_metadata,
    encode_connect_assignment,
    encode_worker_metadata,
)

if TYPE_CHECKING:
    from tests.unit.clients.conftest import Desk

    DeskOf = Callable[..., Desk]

COORDINATOR = COORDINATOR_NODE_OFFSET - 1
REBALANCE = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
X0, X1 = ConnectorTaskId("x", 0), ConnectorTaskId("x", 1)
NAMES = ("default", "compatible", "sessioned")


class Topic:
    """The config topic as this worker has read it, one snapshot after the other."""

    def __init__(self, *snapshots: ConfigSnapshot) -> None:
        self.snapshots = list(snapshots)

    def snapshot(self) -> ConfigSnapshot:
        """The next snapshot; the last one for ever."""
        return self.snapshots.pop(0) if len(self.snapshots) > 1 else self.snapshots[0]


def _at(offset: int) -> ConfigSnapshot:
    return ConfigSnapshot(offset=offset, connectors={"x": 2})


def _worker(make: "DeskOf", *snapshots: ConfigSnapshot, **settings: int) -> "Desk":
    port = WorkerCoordinator(
        WorkerConfig(**settings),
        client_id="worker",
        group_id="group",
        url="http://worker/",
        config_snapshot=Topic(*(snapshots or (_at(1),))).snapshot,
        bootstrap=(Node(node_id=1, host="broker", port=9092),),
    )
    desk = make()
    desk.port = port
    return desk


def _follow(
    desk: "Desk", assignment: ConnectAssignment, version: int = 2, generation: int = 1
) -> None:
    desk.join(
        JoinGroupResponse(
            generation_id=generation, protocol_name=NAMES[version], leader="l", member_id="m"
        )
    )
    blob = encode_connect_assignment(assignment)
    desk.reply(SyncGroupRequest, SyncGroupResponse(assignment=blob))


def _lead(desk: "Desk", version: int, *offsets: int, skip_assignment: bool = False) -> None:
    members = tuple(
        JoinGroupResponseMember(
            "m" if index == 0 else f"m{index}",
            None,
            encode_worker_metadata(
                WorkerMetadata(version=version, url=f"http://{index}/", config_offset=offset)
            ),
        )
        for index, offset in enumerate(offsets)
    )
    desk.join(
        JoinGroupResponse(
            generation_id=1,
            protocol_name=NAMES[version],
            leader="m",
            member_id="m",
            members=members,
            skip_assignment=skip_assignment,
        )
    )


def _given(desk: "Desk") -> dict[str, ConnectAssignment]:
    sync = desk.of(SyncGroupRequest)[-1]
    return {a.member_id: decode_connect_assignment(a.assignment) for a in sync.assignments}


def _work(version: int = 2, **fields: object) -> ConnectAssignment:
    return ConnectAssignment(version=version, leader="l", config_offset=1, **fields)


@pytest.mark.parametrize(
    ("mode", "names"),
    [(0, ["default"]), (1, ["compatible", "default"]), (2, ["sessioned", "compatible", "default"])],
)
def test_offers(make_desk: "DeskOf", mode: int, names: list[str]) -> None:
    """C-WC-01, C-WC-03: the protocols of each mode in order, without allocation at first."""
    desk = _worker(make_desk, connect_protocol=ConnectProtocolCompatibility(mode))

    desk.poll()

    offers = desk.of(JoinGroupRequest)[0].protocols
    assert [offer.name for offer in offers] == names
    decoded = [decode_worker_metadata(offer.metadata) for offer in offers]
    assert [d.version for d in decoded] == list(range(mode, -1, -1))
    assert {d.config_offset for d in decoded} == {1}
    assert {d.allocation for d in decoded} == {None}


def test_allocation_is_told_where_the_protocol_has_it(make_desk: "DeskOf") -> None:
    """C-WC-02: versions 1 and 2 carry the held work, version 0 never."""
    desk = _worker(make_desk)
    desk.poll()
    _follow(desk, _work(connectors=("x",), tasks=(X0,)))
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)

    offers = [decode_worker_metadata(o.metadata) for o in desk.of(JoinGroupRequest)[1].protocols]

    assert [o.allocation.tasks if o.allocation else None for o in offers] == [(X0,), (X0,), None]


def test_reason_is_empty(make_desk: "DeskOf") -> None:
    """C-WC-10: a rebalance that others began leaves no reason in the JoinGroup."""
    desk = _worker(make_desk)
    desk.poll()
    _follow(desk, _work())
    desk.run(3_000)

    desk.reply(HeartbeatRequest, REBALANCE)

    assert [join.reason for join in desk.of(JoinGroupRequest)] == ["", ""]


def test_failed_rebalance_is_the_one_reason(make_desk: "DeskOf") -> None:
    """A failed join sets the reason until a sync succeeds; it waits 100 ms."""
    desk = _worker(make_desk)
    desk.poll()

    desk.join(
        JoinGroupResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, protocol_name=None)
    )
    desk.run(1_000)

    assert desk.times_of(JoinGroupRequest) == [0, 100]
    assert desk.of(JoinGroupRequest)[1].reason == (
        "rebalance failed due to CoordinatorLoadInProgressException"
    )


def test_incremental_merges_and_revokes(make_desk: "DeskOf") -> None:
    """C-WC-07: new work in front of what is kept, without what is revoked."""
    desk = _worker(make_desk)
    desk.poll()
    _follow(desk, _work(connectors=("x",), tasks=(X0,)))
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)
    assert desk.callbacks[-1].kind is CallbackKind.WORK_ASSIGNED

    _follow(desk, _work(tasks=(X1,), revoked_tasks=(X0,)), generation=2)

    assert [c.kind for c in desk.callbacks[1:]] == [
        CallbackKind.WORK_REVOKED,
        CallbackKind.WORK_ASSIGNED,
    ]
    assert desk.callbacks[1].tasks == (X0,)
    assert desk.port.assignment.connectors == ("x",)
    assert desk.port.assignment.tasks == (X1,)
    assert desk.port.last_completed_generation_id == 2


def test_gauges_count_what_is_held(make_desk: "DeskOf") -> None:
    """Nothing before the first assignment; then what is new and what is kept."""
    desk = _worker(make_desk)
    desk.poll()
    assert (desk.port.assigned_connector_count, desk.port.assigned_task_count) == (0, 0)

    _follow(desk, _work(connectors=("x",), tasks=(X0,)))
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)
    _follow(desk, _work(tasks=(X1,)), generation=2)

    assert (desk.port.assigned_connector_count, desk.port.assigned_task_count) == (1, 2)


def test_eager_revokes_before_the_join_and_replaces(make_desk: "DeskOf") -> None:
    """C-WC-07, C-WC-12: under `default` all is revoked first and the assignment replaces."""
    desk = _worker(make_desk)
    desk.poll()
    _follow(desk, _work(0, connectors=("x",), tasks=(X0,)), version=0)
    desk.run(3_000)
    desk.reply(HeartbeatRequest, REBALANCE)
    assert desk.callbacks[-1].kind is CallbackKind.WORK_REVOKED

    _follow(desk, _work(0, tasks=(X1,)), version=0, generation=2)

    assert desk.port.assignment.connectors == ()
    assert desk.port.assignment.tasks == (X1,)


def test_failed_assignment_rejoins_in_the_same_call(make_desk: "DeskOf") -> None:
    """C-WC-06: a CONFIG_MISMATCH is followed by the next JoinGroup at once."""
    desk = _worker(make_desk)
    desk.poll()

    _follow(desk, _work(error=ConnectError.CONFIG_MISMATCH))

    assert desk.times_of(JoinGroupRequest) == [0, 0]
    assert desk.returned == []


def test_leader_deals_out_the_work(make_desk: "DeskOf") -> None:
    """C-CASG-01: the eager leader gives connector and tasks in turn, and knows the owners."""
    desk = _worker(make_desk)
    desk.poll()

    _lead(desk, 0, 1, 1)

    given = _given(desk)
    assert given["m"].connectors == ("x",)
    assert given["m1"].tasks == (X0,)
    assert given["m"].tasks == (X1,)
    assert {a.config_offset for a in given.values()} == {1}
    blob = desk.of(SyncGroupRequest)[-1].assignments[0].assignment
    assert desk.port.owner_url("x") is None
    desk.reply(SyncGroupRequest, SyncGroupResponse(assignment=blob))
    assert desk.port.is_leader
    assert desk.port.owner_url("x") == "http://0/"
    assert desk.port.owner_url(X0) == "http://1/"
    assert desk.port.owner_url("unknown") is None


def test_leader_behind_assigns_nothing(make_desk: "DeskOf") -> None:
    """C-WC-04: if a fresh snapshot is still behind, everybody gets CONFIG_MISMATCH."""
    desk = _worker(make_desk, _at(1))
    desk.poll()

    _lead(desk, 2, 1, 2)

    for assignment in _given(desk).values():
        assert assignment.error is ConnectError.CONFIG_MISMATCH
        assert assignment.config_offset == 2
        assert assignment.connectors == assignment.tasks == ()


def test_leader_catches_up_by_a_fresh_snapshot(make_desk: "DeskOf") -> None:
    """C-WC-05: the assignment carries the fresh snapshot's offset, even beyond all reported."""
    desk = _worker(make_desk, _at(1), _at(4))
    desk.poll()

    _lead(desk, 2, 1, 2)

    assert {a.config_offset for a in _given(desk).values()} == {4}
    assert {a.error for a in _given(desk).values()} == {ConnectError.NO_ERROR}


def test_static_leadership_is_refused(make_desk: "DeskOf") -> None:
    """C-WC-11: skip_assignment is an illegal state for Connect."""
    desk = _worker(make_desk)
    desk.poll()

    _lead(desk, 2, 1, skip_assignment=True)

    assert desk.returned == ["IllegalStateException"]


def test_member_id_is_shown_only_while_stable(make_desk: "DeskOf") -> None:
    """C-WC-13: nobody leads during a rebalance."""
    desk = _worker(make_desk)
    desk.poll()
    _lead(desk, 2, 1)
    blob = desk.of(SyncGroupRequest)[-1].assignments[0].assignment
    assert desk.port.member_id == ""
    desk.reply(SyncGroupRequest, SyncGroupResponse(assignment=blob))
    assert desk.port.member_id == "m"
    desk.run(3_000)

    desk.reply(HeartbeatRequest, REBALANCE)

    assert desk.port.member_id == ""
    assert not desk.port.is_leader


def test_long_outage_revokes_everything(make_desk: "DeskOf") -> None:
    """C-WC-08: without a coordinator for heartbeat.interval.ms the work is given up."""
    desk = _worker(make_desk)
    desk.poll(timeout_ms=1 << 40)
    _follow(desk, _work(connectors=("x",), tasks=(X0,)))
    desk.automatic.discard(FindCoordinatorRequest)
    desk.now_ms = 1_000
    desk.do(desk.port.on_disconnected(COORDINATOR, 1_000))

    desk.run(3_999)
    assert desk.port.assignment is not None
    desk.run(4_000)

    assert desk.callbacks[-1].kind is CallbackKind.WORK_REVOKED
    assert (desk.callbacks[-1].connectors, desk.callbacks[-1].tasks) == (("x",), (X0,))
    assert desk.port.assignment is None


def test_short_outage_keeps_the_work(make_desk: "DeskOf") -> None:
    """C-WC-09: a coordinator that is back in time costs nothing, not even a rebalance."""
    desk = _worker(make_desk)
    desk.poll(timeout_ms=1 << 40)
    _follow(desk, _work(connectors=("x",), tasks=(X0,)))
    desk.now_ms = 1_000

    desk.do(desk.port.on_disconnected(COORDINATOR, 1_000))
    desk.run(3_900)

    assert [c.kind for c in desk.callbacks] == [CallbackKind.WORK_ASSIGNED]
    assert len(desk.of(JoinGroupRequest)) == 1


def test_busy_herder_leaves(make_desk: "DeskOf") -> None:
    """A herder that does not poll for its rebalance timeout is told, and leaves."""
    desk = _worker(make_desk, rebalance_timeout_ms=8_000)
    desk.poll(timeout_ms=0)
    _follow(desk, _work())
    assert desk.returned == [None]

    desk.run(20_000)

    assert desk.callbacks[-1].kind is CallbackKind.POLL_TIMEOUT
    assert desk.of(LeaveGroupRequest)[0].members[0].reason == "worker poll timeout has expired."
    assert desk.port.state is MemberState.UNJOINED
    assert desk.port.callback_completed(desk.callbacks[-1].token, None, 20_000) == ()


def test_blob_that_does_not_parse_ends_the_poll(make_desk: "DeskOf") -> None:
    """An unreadable assignment, or unreadable metadata of a member, is a KafkaException."""
    desk = _worker(make_desk)
    desk.poll()
    desk.join(
        JoinGroupResponse(generation_id=1, protocol_name="sessioned", leader="l", member_id="m")
    )
    desk.reply(SyncGroupRequest, SyncGroupResponse(assignment=b"\0"))
    assert desk.returned == ["KafkaException"]

    leader = _worker(make_desk)
    leader.poll()
    leader.join(
        JoinGroupResponse(
            generation_id=1,
            protocol_name="sessioned",
            leader="m",
            member_id="m",
            members=(JoinGroupResponseMember("m", None, b"\0"),),
        )
    )
    assert leader.returned == ["KafkaException"]


def test_forgotten_revocations_are_not_reported_again(make_desk: "DeskOf") -> None:
    """After the herder stopped what was revoked, the allocation has no revocations left."""
    desk = _worker(make_desk)
    desk.poll(timeout_ms=0)
    _follow(desk, _work(tasks=(X1,), revoked_tasks=(X0,)))

    desk.port.forget_revoked()

    assert desk.port.assignment.revoked_tasks == ()
    assert desk.port.assignment.tasks == (X1,)


def test_what_the_herder_has_given_up_is_neither_counted_nor_reported(
    make_desk: "DeskOf",
) -> None:
    """`assigned-connectors` and `assigned-tasks` are those of the allocation."""
    desk = _worker(make_desk)
    assert (desk.port.assigned_connector_count, desk.port.assigned_task_count) == (0, 0)
    desk.port.retain((), ())
    desk.poll(timeout_ms=0)
    _follow(desk, _work(connectors=("x",), tasks=(X0, X1)))
    assert (desk.port.assigned_connector_count, desk.port.assigned_task_count) == (1, 2)

    desk.port.retain((), (X1,))

    assert (desk.port.assigned_connector_count, desk.port.assigned_task_count) == (0, 1)
    assert desk.port.assignment.tasks == (X1,)


def test_nothing_revoked_is_nothing_to_forget(make_desk: "DeskOf") -> None:
    """Before its first assignment a worker reports no revocations."""
    desk = _worker(make_desk)
    desk.port.forget_revoked()
    desk.poll()

    offered = decode_worker_metadata(desk.of(JoinGroupRequest)[0].protocols[0].metadata)
    assert offered.allocation is None


def test_worker_that_leaves_joins_again_at_its_next_poll(make_desk: "DeskOf") -> None:
    """The herder leaves while it reads the config topic, so that others need not wait."""
    desk = _worker(make_desk)
    desk.poll(0)
    _follow(desk, _work())
    desk.do(desk.port.leave_group("taking too long to read the log", 0))
    assert len(desk.of(LeaveGroupRequest)) == 1
    desk.poll()

    assert [join.member_id for join in desk.of(JoinGroupRequest)] == ["", ""]


def test_fatal_heartbeat_error_is_thrown_after_the_next_join(make_desk: "DeskOf") -> None:
    """C-HB-06: a worker's poll joins before it looks at what its heartbeat thread met."""
    desk = _worker(make_desk)
    desk.poll(0)
    _follow(desk, _work())
    desk.run(3_000)
    fenced = HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID)
    desk.reply(HeartbeatRequest, fenced)
    desk.returned.clear()
    desk.poll()
    assert desk.returned == []
    _follow(desk, _work(), generation=2)

    assert desk.returned == ["FencedInstanceIdException"]


@pytest.mark.parametrize("version", [0, 2])
def test_herder_that_fails_to_stop_work_ends_its_poll(make_desk: "DeskOf", version: int) -> None:
    """What its callback raises, before the join (eager) or in it, comes out of poll."""
    desk = _worker(make_desk, connect_protocol=version)
    desk.poll()
    _follow(desk, _work(version, connectors=("x",)), version)
    desk.run(3_000)
    desk.outcomes = {CallbackKind.WORK_REVOKED: "ConnectException"}
    desk.reply(HeartbeatRequest, REBALANCE)
    if version:
        _follow(desk, _work(version, revoked_connectors=("x",)), version, generation=2)

    assert desk.returned == ["ConnectException"]


def test_herder_that_fails_to_start_work_ends_its_poll(make_desk: "DeskOf") -> None:
    """What its callback raises after the join comes out of poll."""
    desk = _worker(make_desk)
    desk.outcomes = {CallbackKind.WORK_ASSIGNED: "ConnectException"}
    desk.poll()
    _follow(desk, _work(connectors=("x",)))

    assert desk.returned == ["ConnectException"]


def test_herder_that_fails_to_stop_unreachable_work_ends_its_poll(make_desk: "DeskOf") -> None:
    """What its callback raises without a coordinator comes out of poll."""
    desk = _worker(make_desk)
    desk.poll()
    _follow(desk, _work(connectors=("x",)))
    desk.outcomes = {CallbackKind.WORK_REVOKED: "ConnectException"}
    desk.automatic.discard(FindCoordinatorRequest)
    desk.do(desk.port.on_disconnected(COORDINATOR, 0))
    desk.run(10_000)

    assert desk.returned == ["ConnectException"]
