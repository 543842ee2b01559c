"""A Connect worker in its group: protocols, kept and revoked work, assignments as leader.

Bench of a Connect worker's membership in its group: the port under test, its herder played.

The herder stops and starts work at once. No case is here.
"""

from typing import Final

import msgspec

from coordinator_sim.clients.config import ConnectProtocolCompatibility, WorkerConfig
from coordinator_sim.clients.effects import CallbackKind
from coordinator_sim.clients.worker_coordinator import ConfigSnapshot, WorkerCoordinator
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.embedded.connect_protocol import (
    decode_connect_assignment,
    decode_worker_metadata,
    encode_connect_assignment,
    encode_worker_metadata,
)
from coordinator_sim.messages.embedded.contents import (
    ConnectAssignment,
    ConnectError,
    WorkerMetadata,
)
from coordinator_sim.messages.find_coordinator import FindCoordinatorRequest
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponseMember
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim_conformance.client_cases.bench import (
    BROKER,
    GROUP,
    LEADER,
    MEMBER,
    Bench,
    PortBench,
)
from coordinator_sim_conformance.client_cases.case import client_case

PROTOCOLS: Final = ("default", "compatible", "sessioned")
"""Names of the protocols, by their version."""


class WorkerPortBench(PortBench[WorkerCoordinator]):
    """A worker's group membership; its herder stops and starts work at once."""

    def follow(self, version: int = 2, **fields: object) -> None:
        """Join as a follower with this assignment."""
        generation_id = len(self.sent(JoinGroupRequest))
        self.join(protocol_name=PROTOCOLS[version], generation_id=generation_id)
        said = {"version": version, "leader": LEADER, "config_offset": 1, **fields}
        self.sync(encode_connect_assignment(msgspec.convert(said, ConnectAssignment)))

    def lead(self, *offsets: int, version: int = 2, **fields: object) -> None:
        """Answer the JoinGroup: the worker leads members with these offsets, itself first."""
        members = tuple(
            JoinGroupResponseMember(
                f"{MEMBER}{number or ''}",
                None,
                encode_worker_metadata(
                    WorkerMetadata(version=version, url=f"http://{number}/", config_offset=offset)
                ),
            )
            for number, offset in enumerate(offsets)
        )
        self.join(protocol_name=PROTOCOLS[version], leader=MEMBER, members=members, **fields)

    def given(self) -> dict[str, ConnectAssignment]:
        """Return the worker's assignments as the leader, by member."""
        sync = self.sent(SyncGroupRequest)[-1]
        return {
            each.member_id: decode_connect_assignment(each.assignment) for each in sync.assignments
        }

    def offered(self) -> dict[str, WorkerMetadata]:
        """Return the metadata in the last JoinGroup, by protocol, in the order offered."""
        request = self.sent(JoinGroupRequest)[-1]
        return {each.name: decode_worker_metadata(each.metadata) for each in request.protocols}

    def be_told_to_rejoin(self) -> None:
        """Answer the next heartbeat with REBALANCE_IN_PROGRESS."""
        self.advance(3_000)
        self.beat(ErrorCode.REBALANCE_IN_PROGRESS)


def make_worker(bench: Bench, *offsets: int, **settings: int) -> WorkerPortBench:
    """Return a worker before its first poll; connector `x` has two tasks.

    Args:
        bench: Bench of the case.
        offsets: Offsets of the config topic that it has read, one a look; the last one stays.
        settings: Fields of `WorkerConfig`.
    """
    views = list(offsets or (1,))

    def snapshot() -> ConfigSnapshot:
        offset = views.pop(0) if len(views) > 1 else views[0]
        return ConfigSnapshot(offset=offset, connectors={"x": 2})

    port = WorkerCoordinator(
        msgspec.convert(settings, WorkerConfig),
        client_id="worker",
        group_id=GROUP,
        url="http://0/",
        config_snapshot=snapshot,
        bootstrap=(BROKER,),
    )
    return WorkerPortBench(bench, port)


_A, _B = ConnectorTaskId("x", 0), ConnectorTaskId("x", 1)


def _worker(bench: Bench, *offsets: int, **settings: int) -> WorkerPortBench:
    worker = make_worker(bench, *offsets, **settings)
    worker.poll()
    return worker


def _held(worker: WorkerPortBench) -> tuple[tuple[str, ...], tuple[ConnectorTaskId, ...]] | None:
    held = worker.port.assignment
    return (held.connectors, held.tasks) if held else None


def _revocations(worker: WorkerPortBench) -> list[tuple[object, ...]]:
    return [(*each.connectors, *each.tasks) for each in worker.told(CallbackKind.WORK_REVOKED)]


@client_case("C-WC-01", "WorkerCoordinatorIncrementalTest.testMetadata")
def protocols_are_offered_newest_first(bench: Bench) -> None:
    """A worker offers its protocol and all older ones, its own first."""
    for mode in ConnectProtocolCompatibility:
        worker = _worker(bench, connect_protocol=mode)
        wanted = [PROTOCOLS[version] for version in range(mode, -1, -1)]
        offered = worker.offered()
        bench.expect(f"offered by {mode.name}", [*offered], wanted)
        versions = [each.version for each in offered.values()]
        bench.expect("versions", versions, [*range(mode, -1, -1)])
        offsets = {each.config_offset for each in offered.values()}
        bench.expect("offsets of the config topic", offsets, {1})


@client_case("C-WC-02", "WorkerCoordinatorIncrementalTest.testMetadataWithExistingAssignment")
def held_work_is_told_where_it_can_be(bench: Bench) -> None:
    """The work a worker holds is in the metadata of versions 1 and 2, never in version 0."""
    worker = _worker(bench)
    worker.follow(connectors=("x",), tasks=(_A,))
    worker.be_told_to_rejoin()
    told = {
        name: None
        if each.allocation is None
        else (each.allocation.connectors, each.allocation.tasks)
        for name, each in worker.offered().items()
    }
    held = (("x",), (_A,))
    bench.expect("told", told, {"sessioned": held, "compatible": held, "default": None})


@client_case("C-WC-03", "WorkerCoordinator.metadata")
def no_assignment_is_null(bench: Bench) -> None:
    """Before any assignment the allocation is null."""
    worker = _worker(bench)
    bench.expect("told", {each.allocation for each in worker.offered().values()}, {None})


@client_case("C-WC-04", "WorkerCoordinatorTest.testJoinLeaderCannotAssign")
def a_leader_behind_assigns_nothing(bench: Bench) -> None:
    """A leader whose fresh snapshot is behind a member's gives everybody CONFIG_MISMATCH."""
    worker = _worker(bench, 1)
    worker.lead(1, 2)
    for member, assignment in worker.given().items():
        bench.expect(f"error of {member}", assignment.error, ConnectError.CONFIG_MISMATCH)
        bench.expect(f"offset of {member}", assignment.config_offset, 2)
        bench.expect(f"work of {member}", (assignment.connectors, assignment.tasks), ((), ()))


@client_case("C-WC-05", "IncrementalCooperativeAssignor.ensureLeaderConfig")
def a_leader_catches_up_by_a_fresh_snapshot(bench: Bench) -> None:
    """A fresh snapshot that is far enough is assigned from, and its offset is told."""
    worker = _worker(bench, 1, 4)
    worker.lead(1, 2)
    told = [(each.error, each.config_offset) for each in worker.given().values()]
    bench.expect("told", told, [(ConnectError.NO_ERROR, 4)] * 2)


@client_case("C-WC-06", "WorkerCoordinatorTest.testJoinLeaderCannotAssign")
def a_failed_assignment_rejoins_at_once(bench: Bench) -> None:
    """After CONFIG_MISMATCH the same call joins again."""
    worker = _worker(bench)
    worker.follow(error=ConnectError.CONFIG_MISMATCH)
    bench.expect("joined at", worker.sent_at(JoinGroupRequest), [0, 0])
    bench.expect("polls that ended", worker.returned, [])


@client_case("C-WC-07", "WorkerCoordinator.onJoinComplete")
def eager_replaces_and_cooperative_merges(bench: Bench) -> None:
    """An eager assignment replaces what is held, a cooperative one goes before what is kept."""
    worker = _worker(bench)
    worker.follow(0, connectors=("x",), tasks=(_A,))
    worker.be_told_to_rejoin()
    worker.follow(0, tasks=(_B,))
    bench.expect("eager", _held(worker), ((), (_B,)))
    worker = _worker(bench)
    worker.follow(connectors=("x",), tasks=(_A,))
    worker.be_told_to_rejoin()
    worker.follow(tasks=(_B,))
    bench.expect("cooperative", _held(worker), (("x",), (_B, _A)))
    worker.be_told_to_rejoin()
    worker.follow(revoked_tasks=(_A,))
    bench.expect("revoked", _revocations(worker), [(_A,)])
    told = [each.kind for each in worker.callbacks[-2:]]
    bench.expect("told", told, [CallbackKind.WORK_REVOKED, CallbackKind.WORK_ASSIGNED])
    bench.expect("generation", worker.port.last_completed_generation_id, 3)
    bench.expect("kept", _held(worker), (("x",), (_B,)))


def _lose_coordinator(worker: WorkerPortBench) -> None:
    """Lose the coordinator at 1,000 ms, without an answer to lookups."""
    worker.follow(connectors=("x",), tasks=(_A,))
    worker.automatic.discard(FindCoordinatorRequest)
    worker.advance(1_000)
    worker.disconnect()


@client_case("C-WC-08", "WorkerCoordinator.poll")
def a_long_outage_revokes_everything(bench: Bench) -> None:
    """Without a coordinator for heartbeat.interval.ms all work is revoked and not told again."""
    worker = _worker(bench)
    _lose_coordinator(worker)
    worker.advance(2_999)
    bench.expect("revoked before 3000 ms", _revocations(worker), [])
    worker.advance(1)
    bench.expect("revoked at 3000 ms", _revocations(worker), [("x", _A)])
    bench.expect("held", worker.port.assignment, None)
    while worker.waiting(FindCoordinatorRequest):
        worker.find()
    offered = worker.offered()["sessioned"]
    bench.expect("told by the rejoin", offered.allocation, None)
    bench.expect("joins", len(worker.sent(JoinGroupRequest)), 2)
    bench.expect("member id", worker.sent(JoinGroupRequest)[1].member_id, MEMBER)


@client_case("C-WC-09", "WorkerCoordinator.poll")
def a_short_outage_keeps_the_work(bench: Bench) -> None:
    """A coordinator that is back in time costs no work and no rebalance."""
    worker = _worker(bench)
    _lose_coordinator(worker)
    worker.advance(2_900)
    worker.find()
    worker.advance(1_000)
    bench.expect("revoked", _revocations(worker), [])
    bench.expect("joins", len(worker.sent(JoinGroupRequest)), 1)


@client_case("C-WC-10", "WorkerCoordinator.requestRejoin")
def the_reason_of_a_rejoin_is_lost(bench: Bench) -> None:
    """What made a worker rejoin is not in its JoinGroup."""
    worker = _worker(bench)
    worker.follow()
    worker.be_told_to_rejoin()
    bench.expect("reasons", [each.reason for each in worker.sent(JoinGroupRequest)], ["", ""])


@client_case("C-WC-10.2", "AbstractCoordinator.joinGroupIfNeeded")
def a_failed_join_is_the_one_reason(bench: Bench) -> None:
    """Only a join that failed is told as a reason, until a SyncGroup succeeds."""
    worker = _worker(bench)
    worker.refuse_join(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    worker.advance(100)
    bench.expect("joined at", worker.sent_at(JoinGroupRequest), [0, 100])
    worker.follow()
    worker.be_told_to_rejoin()
    reasons = [each.reason for each in worker.sent(JoinGroupRequest)]
    failed = "rebalance failed due to CoordinatorLoadInProgressException"
    bench.expect("reasons", reasons, ["", failed, ""])


@client_case("C-WC-11", "WorkerCoordinatorTest.testSkippingAssignmentFails")
def static_leadership_is_an_illegal_state(bench: Bench) -> None:
    """A leader that is told to skip the assignment fails: workers have no static membership."""
    worker = _worker(bench)
    worker.lead(1, skip_assignment=True)
    bench.expect("poll", worker.returned, ["IllegalStateException"])
    bench.expect("syncs", worker.sent(SyncGroupRequest), [])


@client_case(
    "C-WC-12",
    "WorkerCoordinatorIncrementalTest.testMetadataWithExistingAssignmentButOlderProtocolSelection",
)
def an_eager_worker_turns_the_group_eager(bench: Bench) -> None:
    """Once the group has chosen `default`, every later rebalance revokes everything first."""
    worker = _worker(bench)
    worker.follow(connectors=("x",), tasks=(_A,))
    worker.be_told_to_rejoin()
    bench.expect("revoked before the change", _revocations(worker), [])
    worker.follow(0, tasks=(_B,))
    bench.expect("protocol", worker.port.connect_protocol, ConnectProtocolCompatibility.EAGER)
    worker.be_told_to_rejoin()
    bench.expect("revoked after it", _revocations(worker), [(_B,)])


@client_case("C-WC-13", "WorkerCoordinator.memberId")
def nobody_leads_during_a_rebalance(bench: Bench) -> None:
    """A worker shows its member id, and so leads, only while it is stable."""
    worker = _worker(bench)
    worker.lead(1)
    bench.expect("before the sync", (worker.port.member_id, worker.port.is_leader), ("", False))
    worker.sync(worker.sent(SyncGroupRequest)[0].assignments[0].assignment)
    bench.expect("stable", (worker.port.member_id, worker.port.is_leader), (MEMBER, True))
    bench.expect("owner", worker.port.owner_url("x"), "http://0/")
    worker.be_told_to_rejoin()
    bench.expect("rejoining", (worker.port.member_id, worker.port.is_leader), ("", False))
    bench.expect("owner then", worker.port.owner_url("x"), None)
