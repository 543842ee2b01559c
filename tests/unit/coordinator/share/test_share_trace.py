"""What a trace tells of share groups: epochs and members, and no owners."""

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.replay.causes import explain_group
from coordinator_sim.runs.holdings import holdings
from coordinator_sim.runs.ownership import dense_rows
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from coordinator_sim.trace.history import group_lines
from coordinator_sim.trace.rebalances import epoch_groups_in
from tests.unit.coordinator.epoch_traces import alike, lines_of, own_lines, read_back
from tests.unit.coordinator.share.test_share_groups import FOO, Members


class Told(Members):
    """Members of a share group, and what its trace tells."""

    def __init__(self, profile: str = "4.4", *, count: int = 4) -> None:
        super().__init__(profile, count=count)
        self.events: list[TraceEvent] = []
        self.broker.told = self.events.extend
        self.epochs: dict[str, int] = {}

    def go(self, member_id: str, epoch: int | None = None) -> ErrorCode:
        """A heartbeat; one without an epoch goes on where the member was."""
        told = self.beat(member_id, self.epochs.get(member_id, 0) if epoch is None else epoch)
        if told.error_code is ErrorCode.NONE and told.member_epoch > 0:
            self.epochs[member_id] = told.member_epoch
        else:
            self.epochs.pop(member_id, None)
        return told.error_code

    def lines(self) -> list[str]:
        """What was told since the last time, as a reader sees it, requests left out."""
        shown = lines_of(self.events)
        self.events.clear()
        return shown


def test_a_share_group_reads_as_a_story() -> None:
    """The second epoch is there because partitions may be assigned; then two share one."""
    told = Told(count=1)
    for member in ("a", "a", "b", "a"):
        told.go(member)
    assert told.lines() == [
        "MEMBER_ADDED a",
        "EPOCH_BUMPED epoch 2 1 member MEMBER_JOINED a",
        "TARGET_COMPUTED epoch 2 server:simple 1 member 1 with another part",
        "TARGET_ASSIGNED a epoch 2 shall have nothing",
        "MEMBER_STEP a epoch 2 Stable has nothing",
        "TARGET_REACHED epoch 2 1 member",
        "EPOCH_BUMPED epoch 3 1 member PARTITIONS_INITIALIZED",
        "TARGET_COMPUTED epoch 3 server:simple 1 member 1 with another part",
        "TARGET_ASSIGNED a epoch 3 shall have foo-0",
        "MEMBER_STEP a epoch 3 Stable has foo-0",
        "TARGET_REACHED epoch 3 1 member",
        "MEMBER_ADDED b",
        "EPOCH_BUMPED epoch 4 2 members MEMBER_JOINED b",
        "TARGET_COMPUTED epoch 4 server:simple 2 members 1 with another part",
        "TARGET_ASSIGNED b epoch 4 shall have foo-0",
        "MEMBER_STEP b epoch 4 Stable has foo-0",
        "MEMBER_STEP a epoch 4 Stable has foo-0",
        "TARGET_REACHED epoch 4 2 members",
    ]


def test_members_come_go_and_expire() -> None:
    """Each has its event, and the epoch its reason; `explain` has them all."""
    told = Told()
    told.go("a")
    told.go("b")
    told.go("b", -1)
    told.broker.advance(45_000)
    (failed,) = [event for event in told.events if event.event is Event.MEMBER_FAILED]
    assert (failed.member_id, failed.session_timeout_ms) == ("a", 45_000)
    story = explain_group("g", group_lines(told.events)["g"], ())
    assert [each.reason for each in story.rebalances] == [
        *(RebalanceReason.MEMBER_JOINED, RebalanceReason.MEMBER_JOINED),
        *(RebalanceReason.MEMBER_LEFT, RebalanceReason.MEMBER_FAILED),
    ]
    assert all(each.is_epoch for each in story.rebalances)


def test_a_share_group_has_no_owners() -> None:
    """Tables that know one owner of a partition leave it out; replays do, too."""
    told = Told(count=1)
    for member in ("a", "a", "b", "a", "b"):
        told.broker.advance(1_000)
        told.go(member)
    assert holdings(told.events) == {}
    assert dense_rows(told.events, "t", "c") == ([], [])
    assert epoch_groups_in(told.events) == {"g": "share"}


def test_a_failover_and_a_refused_append_are_told() -> None:
    """The new coordinator knows who was there; what was told of a refused batch is taken back."""
    told = Told()
    told.go("a")
    told.go("a")
    told.lines()
    told.broker.resign(0)
    told.broker.elect(0, 2)
    assert told.lines() == ["GROUP_UNLOADED epoch 3", "GROUP_LOADED epoch 3 as Stable 1 member"]
    told.broker.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS, 1)
    told.go("b")
    assert told.lines()[-1] == "STORE_FAILED epoch 3 group_type=share"


_STEPS = st.one_of(
    st.tuples(st.just("go"), st.sampled_from(["a", "b", "c"])),
    st.tuples(st.just("leave"), st.sampled_from(["a", "b", "c"])),
    st.tuples(st.just("wait"), st.sampled_from(["1000", "45000"])),
    st.tuples(st.just("grow"), st.sampled_from(["5", "6"])),
    st.tuples(st.just("move"), st.just("it")),
    st.tuples(st.just("delete"), st.just("it")),
)


@pytest.mark.property
@drawn(steps=st.lists(_STEPS, max_size=30), profile=st.sampled_from(["4.1", "4.2", "4.3", "4.4"]))
@settings(deadline=None)
def test_the_log_of_a_group_tells_what_its_trace_told(
    steps: list[tuple[str, str]], profile: str
) -> None:
    """The batches in the offsets topic, read as a trace, against the coordinator's own events."""
    told = Told(profile)
    for number, (verb, what) in enumerate(steps):
        match verb:
            case "go":
                told.go(what)
            case "leave":
                told.go(what, -1)
            case "wait":
                told.broker.advance(int(what))
            case "grow":
                told.broker.set_topic("foo", int(what), FOO)
            case "delete":
                told.delete()
            case _:
                told.broker.resign(0)
                told.broker.elect(0, number + 2)
    read = read_back(told.broker.log(0), {FOO: "foo"})
    own = own_lines(told.events)
    assert [alike(event) for event in read] == [alike(event) for event in own]
