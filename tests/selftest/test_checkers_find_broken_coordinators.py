"""The checkers judged by coordinators that are broken on purpose and run whole scenarios."""

from collections.abc import Callable

import msgspec
import pytest
from msgspec.structs import replace

from coordinator_sim.coordinator.classic import membership, sync
from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.contract import CoordinatorResult
from coordinator_sim.coordinator.coordinator import GroupCoordinator
from coordinator_sim.coordinator.effects import InternalTopic
from coordinator_sim.coordinator.offsets.offset_store import OffsetStore
from coordinator_sim.coordinator.runtime import Parked, Runtime
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.group_records import GroupMetadataValue, OffsetCommitKey
from coordinator_sim.messages.heartbeat import HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from coordinator_sim.messages.records import LogBatch
from coordinator_sim.messages.requests import GroupRequest, Response
from coordinator_sim.messages.sync_group import SyncGroupResponse
from coordinator_sim.sim.scenario import with_settings
from coordinator_sim_conformance.checkers import Report, Verdict, check_all
from coordinator_sim_conformance.scenario_timing import circumstances_of, with_calm
from coordinator_sim_scenarios.catalog import scenario_named
from tests.simulated import events_of

Break = Callable[[pytest.MonkeyPatch], None]

SHORT = {
    "max.poll.interval.ms": "10000",
    "metadata.max.age.ms": "10000",
    "request.timeout.ms": "10000",
    "session.timeout.ms": "6000",
}
"""Settings under which a run soon reaches its bounds."""


def everyone_owns_what_the_first_owns(patch: pytest.MonkeyPatch) -> None:
    """The coordinator hands one member's assignment to all."""
    hand_out = sync.StoreAssignment._hand_out

    def broken(self: sync.StoreAssignment) -> None:
        first = next(iter(self.assignments.values()))
        self.assignments = dict.fromkeys(self.assignments, first)
        hand_out(self)

    patch.setattr(sync.StoreAssignment, "_hand_out", broken)


def generation_stands_still(patch: pytest.MonkeyPatch) -> None:
    """Every generation is the first."""
    begin = Group.begin_generation

    def broken(self: Group) -> None:
        self.generation_id = 0
        begin(self)

    patch.setattr(Group, "begin_generation", broken)


def one_sync_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Every third SyncGroup gets no answer."""
    answer = Runtime.answer
    count = 0

    def broken(
        self: Runtime, parked: Parked, response: Response, topics: tuple[InternalTopic, ...] = ()
    ) -> None:
        nonlocal count
        count += isinstance(response, SyncGroupResponse)
        if not (isinstance(response, SyncGroupResponse) and count % 3 == 0):
            answer(self, parked, response, topics)

    patch.setattr(Runtime, "answer", broken)


def changed_answers(
    patch: pytest.MonkeyPatch, change: Callable[[JoinGroupResponse], JoinGroupResponse]
) -> None:
    """Every admission by a JoinGroup answer is changed on its way out."""
    answer = Runtime.answer

    def broken(
        self: Runtime, parked: Parked, response: Response, topics: tuple[InternalTopic, ...] = ()
    ) -> None:
        if isinstance(response, JoinGroupResponse) and response.error_code is ErrorCode.NONE:
            response = change(response)
        answer(self, parked, response, topics)

    patch.setattr(Runtime, "answer", broken)


def everyone_receives_the_members(patch: pytest.MonkeyPatch) -> None:
    """Followers are told of a member too."""

    def change(response: JoinGroupResponse) -> JoinGroupResponse:
        member = JoinGroupResponseMember(response.member_id, None, b"")
        return msgspec.structs.replace(response, members=response.members or (member,))

    changed_answers(patch, change)


def answers_carry_strange_ids(patch: pytest.MonkeyPatch) -> None:
    """A JoinGroup is answered with an id that nobody issued."""
    changed_answers(
        patch,
        lambda response: msgspec.structs.replace(
            response, member_id=f"{response.member_id}-strange"
        ),
    )


def heartbeats_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat is answered, and the session runs on."""
    patch.setattr(membership, "start_session", lambda *_: None)


def rebalances_for_ever(patch: pytest.MonkeyPatch) -> None:
    """Every heartbeat asks the member to rejoin."""
    heartbeat = membership.handle_heartbeat
    rejoin = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)

    def broken(*args: object) -> object:
        response = heartbeat(*args)  # type: ignore[arg-type] # passed on as they came
        return rejoin if response == HeartbeatResponse() else response

    patch.setattr("coordinator_sim.coordinator.coordinator.handle_heartbeat", broken)
    patch.setattr("coordinator_sim.coordinator.handlers.handle_heartbeat", broken)


def commits_do_not_replace(patch: pytest.MonkeyPatch) -> None:
    """The first offset of a partition stays."""
    appended = OffsetStore.appended

    def broken(
        self: OffsetStore, batch: LogBatch, high_watermark: int, *, offsets_alone: bool = False
    ) -> None:
        kept = [
            record
            for record in batch.records
            if not isinstance(record.key, OffsetCommitKey) or self.get(record.key) is None
        ]
        kept_alone = replace(batch, records=tuple(kept))
        appended(self, kept_alone, high_watermark, offsets_alone=offsets_alone)

    patch.setattr(OffsetStore, "appended", broken)


def load_forgets_generations(patch: pytest.MonkeyPatch) -> None:
    """Only the first record of a group is replayed."""
    replay = GroupCoordinator.replay

    def broken(self: GroupCoordinator, partition: int, batch: object) -> None:
        values = [record.value for record in batch.records]  # type: ignore[attr-defined] # a LogBatch
        if not any(isinstance(v, GroupMetadataValue) and v.generation > 0 for v in values):
            replay(self, partition, batch)  # type: ignore[arg-type] # passed on as it came

    patch.setattr(GroupCoordinator, "replay", broken)


def static_members_double(patch: pytest.MonkeyPatch) -> None:
    """A returning static member is added, and its old self stays."""
    handle = GroupCoordinator.handle

    def broken(
        self: GroupCoordinator, request: GroupRequest, context: RequestContext, now_ms: int
    ) -> CoordinatorResult:
        group = self.group(request.group_id) if isinstance(request, JoinGroupRequest) else None
        if group is not None and isinstance(request, JoinGroupRequest) and not request.member_id:
            group.static_members.pop(request.group_instance_id or "", None)
        return handle(self, request, context, now_ms)

    patch.setattr(GroupCoordinator, "handle", broken)


BROKEN: dict[str, tuple[Break, str]] = {
    "I1": (everyone_owns_what_the_first_owns, "scale-out"),
    "I2": (generation_stands_still, "scale-out"),
    "I3": (one_sync_is_forgotten, "scale-out"),
    "I4": (everyone_receives_the_members, "scale-out"),
    "I5": (answers_carry_strange_ids, "scale-out"),
    "I6": (heartbeats_do_not_count, "member-crash"),
    "I7": (rebalances_for_ever, "scale-out"),
    "I8": (commits_do_not_replace, "scale-out"),
    "I9": (load_forgets_generations, "coordinator-failover"),
    "I10": (static_members_double, "static-rolling-bounce"),
}


def judged(name: str, *, with_liveness: bool) -> Report:
    """Run a scenario of the catalogue with short timeouts, and judge it.

    Args:
        name: Of the scenario.
        with_liveness: Whether to go on in calm until the bound of I7 is over.
    """
    scenario = with_settings(scenario_named(name), SHORT)
    if with_liveness:
        scenario = with_calm(scenario)
    return check_all(events_of(scenario, seed=1), circumstances_of(scenario))


@pytest.mark.parametrize("invariant", BROKEN)
def test_broken_coordinator_is_found(invariant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that breaks an invariant makes that invariant's checker fail."""
    break_it, name = BROKEN[invariant]
    break_it(monkeypatch)

    report = judged(name, with_liveness=invariant == "I7")

    assert report.of(invariant).verdict is Verdict.FAIL


@pytest.mark.parametrize("name", sorted({name for _, name in BROKEN.values()}))
def test_the_same_run_of_the_real_coordinator_passes(name: str) -> None:
    """The finding was about the break, not about the scenario."""
    assert judged(name, with_liveness=False).violations == ()


def test_the_real_coordinator_comes_to_rest() -> None:
    """Liveness is judged, and holds."""
    report = judged("scale-out", with_liveness=True)

    assert report.violations == ()
    assert report.of("I7").verdict is Verdict.PASS
