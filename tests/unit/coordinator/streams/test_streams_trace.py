"""What a trace tells of streams groups: stories, and the log of a group against its trace."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from msgspec.structs import replace

from coordinator_sim.harness.group_driver import answer
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.logtext.writing.writer import BrokerLogWriter
from coordinator_sim.messages import streams_group_heartbeat
from coordinator_sim.messages.delete_groups import DeleteGroupsRequest
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from coordinator_sim.replay.causes import explain_group
from coordinator_sim.runs.holdings import holdings
from coordinator_sim.runs.ownership import dense_rows
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from coordinator_sim.trace.history import group_lines
from coordinator_sim_conformance.checkers.history import History
from coordinator_sim_conformance.checkers.ownership import ONE_OWNER
from tests.unit.coordinator.epoch_traces import alike, lines_of, own_lines, read_back
from tests.unit.coordinator.streams import test_streams_groups

ROOT = Path(__file__).parents[4]
IN = bytes(15) + b"\1"
CHANGELOG = bytes(15) + b"\2"


class Told(test_streams_groups.Application):
    """An application whose members report what they were told to have, and what its trace tells."""

    def __init__(
        self,
        topology: test_streams_groups.Topology = test_streams_groups.PLAIN,
        profile: str = "4.4",
        **fields: int,
    ) -> None:
        super().__init__(topology, profile, **fields)
        self.events: list[TraceEvent] = []
        self.broker.told = self.events.extend
        self.epochs: dict[str, int] = {}
        self.held: dict[str, str] = {}

    def go(self, member_id: str, epoch: int | None = None) -> ErrorCode:
        """A heartbeat of a member of a process of its own; one without an epoch goes on."""
        at = self.epochs.get(member_id, 0) if epoch is None else epoch
        owned = self.held.get(member_id, "") if at > 0 else None
        told = self.beat(member_id, at, owned=owned, process=member_id)
        if told.error_code is ErrorCode.NONE:
            self.epochs[member_id] = max(told.member_epoch, 0)
            if told.active_tasks is not None:
                self.held[member_id] = "".join(
                    str(number) for each in told.active_tasks for number in each.partitions
                )
        elif told.error_code is not ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self.epochs.pop(member_id, None)
            self.held.pop(member_id, None)
        return told.error_code

    def static(self, member_id: str, epoch: int) -> ErrorCode:
        """A heartbeat of a static member, which runs nothing and reports as much."""
        joins = epoch == 0
        request = streams_group_heartbeat.StreamsGroupHeartbeatRequest(
            group_id="app",
            member_id=member_id,
            member_epoch=epoch,
            instance_id="i",
            rebalance_timeout_ms=5_000 if joins else -1,
            topology=self.topology if joins else None,
            active_tasks=() if joins else None,
            standby_tasks=() if joins else None,
            warmup_tasks=() if joins else None,
            process_id="static" if joins else None,
        )
        step = self.broker.call(request, api_version=0)
        return answer(step, streams_group_heartbeat.StreamsGroupHeartbeatResponse).error_code

    def delete(self) -> None:
        """Ask for the deletion of the group, which must be empty."""
        self.broker.call(DeleteGroupsRequest(("app",)), api_version=2)

    def lines(self) -> list[str]:
        """What was told since the last time, as a reader sees it, requests left out."""
        shown = lines_of(self.events)
        self.events.clear()
        return shown


def test_a_hand_over_of_tasks_reads_as_a_story() -> None:
    """Tasks are written as Kafka Streams writes them; who gives up and who waits is told."""
    told = Told()
    told.go("m1")
    assert told.lines() == [
        "MEMBER_ADDED m1",
        "EPOCH_BUMPED epoch 2 1 member MEMBER_JOINED m1",
        "TARGET_COMPUTED epoch 2 server:sticky 1 member 1 with another part",
        "TARGET_ASSIGNED m1 epoch 2 shall have 0_0..3",
        "MEMBER_STEP m1 epoch 2 Stable has 0_0..3",
        "TARGET_REACHED epoch 2 1 member",
    ]
    told.go("m2")
    for member in ("m1", "m1", "m2"):
        told.go(member)
    assert told.lines() == [
        "MEMBER_ADDED m2",
        "EPOCH_BUMPED epoch 3 2 members MEMBER_JOINED m2",
        "TARGET_COMPUTED epoch 3 server:sticky 2 members 2 with another part",
        "TARGET_ASSIGNED m1 epoch 3 shall have 0_0..1",
        "TARGET_ASSIGNED m2 epoch 3 shall have 0_2..3",
        "MEMBER_STEP m2 epoch 3 UnreleasedTasks has nothing waits for 2",
        "MEMBER_STEP m1 epoch 2 UnrevokedTasks has 0_0..1 gives up 0_2..3",
        "MEMBER_STEP m1 epoch 3 Stable has 0_0..1",
        "MEMBER_STEP m2 epoch 3 Stable has 0_2..3",
        "TARGET_REACHED epoch 3 2 members",
    ]


def test_the_delay_of_the_first_target_is_told() -> None:
    """The target says how long it waited, `explain` repeats it, and answers say that it waits."""
    told = Told(delay_ms=500)
    told.go("m1")
    told.go("m1")
    (joined,) = [event for event in told.events if event.event is Event.JOIN_RESP]
    assert joined.attrs["status"] == "ASSIGNMENT_DELAYED"
    told.broker.advance(500)
    told.go("m1")
    story = explain_group("app", group_lines(told.events)["app"], ())
    (rebalance,) = story.rebalances
    assert (rebalance.join_ms, rebalance.initial_ms) == (500, 500)
    assert (rebalance.reason, rebalance.outcome.value) == (RebalanceReason.MEMBER_JOINED, "STABLE")
    delayed = "TARGET_COMPUTED epoch 2 server:sticky 1 member 1 with another part delayed=0.5s"
    assert delayed in told.lines()


def test_copies_are_told_and_own_nothing() -> None:
    """A standby task is an attribute of steps: each task has one owner, who runs it."""
    told = Told(test_streams_groups.STATEFUL, standbys=1)
    told.broker.set_topic("app-store-changelog", 4, CHANGELOG)
    told.go("m1")
    told.broker.advance(1_000)
    told.go("m2")
    for member in ("m1", "m1", "m2", "m1"):
        told.broker.advance(1_000)
        told.go(member)
    steps = [event for event in told.events if event.event is Event.MEMBER_STEP]
    assert steps[-1].attrs["standby"] == "s:0_0 s:0_1"
    (found,) = holdings(told.events).values()
    ends_us = max(event.ts_us for event in told.events)
    assert {(each.resource, each.member_key) for each in found if each.to_us == ends_us} == {
        *(("s:0_0", "m1"), ("s:0_1", "m1")),
        *(("s:0_2", "m2"), ("s:0_3", "m2")),
    }
    rows, lists = dense_rows(told.events, "t", "c")
    assert (rows[-1].protocol_type, rows[-1].owners, rows[-1].subscriptions_equal) == (
        *("streams", (0, 0, 1, 1)),
        True,
    )
    assert lists[-1].resources == ("s:0_0", "s:0_1", "s:0_2", "s:0_3")


def test_each_departure_says_what_it_was() -> None:
    """A member left, fell silent, or did not give up in time; the epoch has the same reason."""
    told = Told()
    told.go("m1")
    told.go("m2")
    told.go("m1")
    told.broker.advance(5_000)
    told.go("m2", -1)
    told.go("m3")
    told.broker.advance(45_000)
    gone = [e for e in told.events if e.event.name in {"MEMBER_LEFT", "MEMBER_FAILED"}]
    (kicked,) = [e for e in told.events if e.event is Event.MEMBER_KICKED]
    assert [event.event.name for event in gone] == ["MEMBER_LEFT", "MEMBER_FAILED"]
    assert (kicked.member_id, kicked.rebalance_timeout_ms) == ("m1", 5_000)
    assert gone[-1].session_timeout_ms == 45_000
    reasons = [e.reason for e in told.events if e.event is Event.EPOCH_BUMPED]
    assert reasons == [
        *(RebalanceReason.MEMBER_JOINED, RebalanceReason.MEMBER_JOINED),
        *(RebalanceReason.REBALANCE_TIMEOUT, RebalanceReason.MEMBER_LEFT),
        *(RebalanceReason.MEMBER_JOINED, RebalanceReason.MEMBER_FAILED),
    ]


def test_why_an_epoch_began_that_no_member_causes_is_told() -> None:
    """A topic has grown; a setting of the assignment is another; a member has another process."""
    told = Told()
    told.go("m1")
    told.events.clear()
    told.broker.set_topic("in", 6, IN)
    told.go("m1")
    own = replace(told.broker.config, group_streams_num_standby_replicas=1)
    told.broker.coordinator.reconfigure(told.broker.config, {"app": own})
    told.go("m1")
    told.beat("m1", 0, process="other")
    reasons = [e.reason for e in told.events if e.event is Event.EPOCH_BUMPED]
    assert reasons == [
        RebalanceReason.TOPICS_CHANGED,
        RebalanceReason.SETTINGS_CHANGED,
        RebalanceReason.METADATA_CHANGED,
    ]


def test_a_static_member_is_away_and_comes_back_under_another_id() -> None:
    """It leaves for a while; who takes its place has all that it had, in the same epoch."""
    told = Told()
    told.static("m1", 0)
    told.lines()
    told.static("m1", -2)
    assert told.lines() == ["MEMBER_LEFT m1 [i] for a while"]
    told.static("m2", 0)
    assert told.lines() == [
        "STATIC_REPLACED m2 [i] in the place of m1",
        "MEMBER_STEP m2 [i] epoch 2 Stable has 0_0..3",
        "TARGET_REACHED epoch 2 1 member",
    ]


def test_an_empty_group_that_becomes_a_classic_one_and_back_is_told() -> None:
    """Each way says which type the group had; the epochs of the second streams group begin anew."""
    told = Told()
    told.go("m1")
    told.go("m1", -1)
    told.lines()
    told.broker.call(
        JoinGroupRequest(
            group_id="app",
            session_timeout_ms=6_000,
            rebalance_timeout_ms=6_000,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol("range", b""),),
        ),
        api_version=4,
    )
    converted = "LIFECYCLE group converted from_type=streams to_type=classic empty=1"
    assert converted in told.lines()
    told.broker.advance(60_000)
    told.lines()
    told.go("m2")
    assert told.lines()[:3] == [
        "LIFECYCLE group converted from_type=classic to_type=streams empty=1",
        "MEMBER_ADDED m2",
        "EPOCH_BUMPED epoch 2 1 member MEMBER_JOINED m2",
    ]


def test_a_failover_is_told_and_the_story_goes_on() -> None:
    """The new coordinator knows who was there, so that it tells only what changes."""
    told = Told()
    told.go("m1")
    told.lines()
    told.broker.resign(0)
    told.broker.elect(0, 2)
    assert told.lines() == ["GROUP_UNLOADED epoch 2", "GROUP_LOADED epoch 2 as Stable 1 member"]
    told.go("m2")
    assert told.lines()[:2] == [
        "MEMBER_ADDED m2",
        "EPOCH_BUMPED epoch 3 2 members MEMBER_JOINED m2",
    ]


def test_a_refused_append_is_told_and_taken_back() -> None:
    """The member that joined in vain is no part of the story when it joins again."""
    told = Told()
    told.go("m1")
    told.broker.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS, 1)
    told.go("m2")
    assert told.lines()[-1] == "STORE_FAILED epoch 2 group_type=streams"
    told.go("m2")
    assert told.lines()[1] == "EPOCH_BUMPED epoch 3 2 members MEMBER_JOINED m2"


def test_a_brokers_log_has_no_lines_of_it() -> None:
    """Lines are written of consumer groups, whose words a streams group has not."""
    told = Told()
    told.go("m1")
    told.go("m1", -1)
    writer = BrokerLogWriter(profile_named("4.4"))
    written = [line for event in told.events for line in writer.write(event)]
    assert not [line for line in written if "epoch" in line or "joins" in line]


_TWICE = """
from coordinator_sim.trace.digest import digest_of
from tests.unit.coordinator.streams.test_streams_groups import STATEFUL
from tests.unit.coordinator.streams.test_streams_trace import CHANGELOG, Told
told = Told(STATEFUL, standbys=1)
told.broker.set_topic("app-store-changelog", 4, CHANGELOG)
for member in ("a", "b", "c") * 4:
    told.go(member)
told.go("b", -1)
told.broker.advance(45_000)
print(digest_of(told.events))
"""


def test_the_same_story_has_the_same_digest_whatever_the_hash_seed() -> None:
    """Members and tasks are told in an order of their own, never in that of a set."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", _TWICE],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(digests) == 1
    assert len(digests.pop().strip()) == 64


# -- the log of a group against its trace ----------------------------------------------------------

_STEPS = st.one_of(
    st.tuples(st.just("go"), st.sampled_from(["a", "b", "c"])),
    st.tuples(st.just("keep"), st.sampled_from(["a", "b", "c"])),
    st.tuples(st.just("leave"), st.sampled_from(["a", "b", "c"])),
    st.tuples(st.just("wait"), st.sampled_from(["500", "5000", "45000"])),
    st.tuples(st.just("grow"), st.sampled_from(["5", "6"])),
    st.tuples(st.just("move"), st.just("it")),
    st.tuples(st.just("delete"), st.just("it")),
    st.tuples(st.just("static"), st.sampled_from(["joins", "away", "leaves"])),
)


def _take_step(told: Told, step: tuple[str, str], epoch: int) -> None:
    match step:
        case ("go", name):
            told.go(name)
        case ("keep", name):
            held = dict(told.held)
            told.go(name)
            told.held = held
        case ("leave", name):
            told.go(name, -1)
            told.epochs.pop(name, None)
            told.held.pop(name, None)
        case ("wait", ms):
            told.broker.advance(int(ms))
        case ("delete", _):
            told.delete()
        case ("static", how):
            members = told.describe().members
            known = next((each.member_id for each in members if each.instance_id == "i"), "")
            at = {"joins": 0, "away": -2, "leaves": -1}[how]
            told.static(f"d{epoch}" if how == "joins" else known, at)
        case ("grow", count):
            told.broker.set_topic("in", int(count), IN)
        case _:
            told.broker.resign(0)
            told.broker.elect(0, epoch)


@pytest.mark.property
@drawn(
    steps=st.lists(_STEPS, max_size=30),
    profile=st.sampled_from(["4.2", "4.3", "4.4"]),
    standbys=st.sampled_from([0, 1]),
    delay_ms=st.sampled_from([0, 500]),
)
@settings(deadline=None)
def test_the_log_of_a_group_tells_what_its_trace_told(
    steps: list[tuple[str, str]], profile: str, standbys: int, delay_ms: int
) -> None:
    """The batches in the offsets topic, read as a trace, against the coordinator's own events.

    By both, no task has two owners at a time, however its copies move.
    """
    told = Told(test_streams_groups.STATEFUL, profile, standbys=standbys, delay_ms=delay_ms)
    told.broker.set_topic("app-store-changelog", 4, CHANGELOG)
    for number, step in enumerate(steps):
        _take_step(told, step, number + 2)
    read = read_back(told.broker.log(0), {})
    assert [alike(event) for event in read] == [alike(event) for event in own_lines(told.events)]
    assert ONE_OWNER.judge(History(told.events)).violations == ()
