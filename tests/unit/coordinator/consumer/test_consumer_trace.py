"""What a trace tells of consumer groups: stories, and a fold of events against a description."""

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.harness.group_driver import answer
from coordinator_sim.harness.harness import Harness
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from coordinator_sim.messages.embedded.consumer_protocol import decode_assignment
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from tests.unit.coordinator.epoch_traces import alike, lines_of, own_lines, read_back

TOPICS = {"foo": (bytes(15) + b"\1", 6), "bar": (bytes(15) + b"\2", 3)}
NAMES = {topic_id: name for name, (topic_id, _) in TOPICS.items()}


class Told:
    """A broker with topics, members of the group `g` by name, and what its trace tells."""

    def __init__(self, profile: str = "4.4", **settings: int) -> None:
        config = CoordinatorConfig(
            offsets_topic_num_partitions=1,
            group_consumer_assignment_interval_ms=0,
            group_coordinator_append_linger_ms=0,
            **settings,
        )
        self.broker = Harness(config, profile_named(profile))
        for name, (topic_id, count) in TOPICS.items():
            self.broker.set_topic(name, count, topic_id)
        self.events: list[TraceEvent] = []
        self.broker.told = self.events.extend
        self.epochs: dict[str, int] = {}
        self.held: dict[str, dict[bytes, tuple[int, ...]]] = {}

    def join(self, member: str, topics: tuple[str, ...] = ("foo",), **fields: str) -> ErrorCode:
        """A heartbeat that joins."""
        return self._beat(
            member,
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=member,
                member_epoch=0,
                rebalance_timeout_ms=5_000,
                subscribed_topic_names=topics,
                topic_partitions=(),
                **fields,  # type: ignore[arg-type]
            ),
        )

    def beat(self, member: str, epoch: int | None = None, **fields: object) -> ErrorCode:
        """A heartbeat of a member that has given up what it was told to."""
        owned = self.held.get(member, {})
        return self._beat(
            member,
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=member,
                member_epoch=self.epochs.get(member, 1) if epoch is None else epoch,
                topic_partitions=tuple(TopicPartitions(*each) for each in owned.items()),
                **fields,  # type: ignore[arg-type]
            ),
        )

    def _beat(self, member: str, request: ConsumerGroupHeartbeatRequest) -> ErrorCode:
        response = answer(self.broker.call(request, api_version=1), ConsumerGroupHeartbeatResponse)
        if response.error_code is ErrorCode.NONE:
            self.epochs[member] = response.member_epoch
        if response.assignment is not None:
            topics = response.assignment.topic_partitions
            self.held[member] = {each.topic_id: each.partitions for each in topics}
        return response.error_code

    def describe(self) -> DescribedGroup:
        """The group as ConsumerGroupDescribe shows it."""
        step = self.broker.call(ConsumerGroupDescribeRequest(group_ids=("g",)), api_version=1)
        (group,) = answer(step, ConsumerGroupDescribeResponse).groups
        return group

    def take(self, *kinds: Event) -> list[TraceEvent]:
        """What was told since the last time, of these kinds."""
        found = [event for event in self.events if event.event in kinds]
        self.events.clear()
        return found

    def lines(self) -> list[str]:
        """What was told since the last time, as a reader sees it, requests left out."""
        shown = lines_of(self.events)
        self.events.clear()
        return shown


def test_a_hand_over_reads_as_a_story() -> None:
    """Who shall have what, who gives up what, who waits, and when all of it is done."""
    told = Told()
    told.join("m1")
    assert told.lines() == [
        "MEMBER_ADDED m1",
        "EPOCH_BUMPED epoch 2 1 member MEMBER_JOINED m1",
        "TARGET_COMPUTED epoch 2 server:uniform 1 member 1 with another part",
        "TARGET_ASSIGNED m1 epoch 2 shall have foo-0..5",
        "MEMBER_STEP m1 epoch 2 Stable has foo-0..5",
        "TARGET_REACHED epoch 2 1 member",
    ]
    told.join("m2")
    told.beat("m1")
    told.beat("m1")
    told.beat("m2")
    assert told.lines() == [
        "MEMBER_ADDED m2",
        "EPOCH_BUMPED epoch 3 2 members MEMBER_JOINED m2",
        "TARGET_COMPUTED epoch 3 server:uniform 2 members 2 with another part",
        "TARGET_ASSIGNED m1 epoch 3 shall have foo-0..2",
        "TARGET_ASSIGNED m2 epoch 3 shall have foo-3..5",
        "MEMBER_STEP m2 epoch 3 UnreleasedPartitions has nothing waits for 3",
        "MEMBER_STEP m1 epoch 2 UnrevokedPartitions has foo-0..2 gives up foo-3..5",
        "MEMBER_STEP m1 epoch 3 Stable has foo-0..2",
        "MEMBER_STEP m2 epoch 3 Stable has foo-3..5",
        "TARGET_REACHED epoch 3 2 members",
    ]


def test_each_departure_says_what_it_was() -> None:
    """A member left, fell silent, or did not give up in time; the epoch has the same reason."""
    told = Told()
    for leave in (lambda: told.beat("m2", -1), lambda: told.broker.advance(45_000)):
        told.join("m2")
        told.take()
        leave()
        gone, bumped = told.take(Event.MEMBER_LEFT, Event.MEMBER_FAILED, Event.EPOCH_BUMPED)
        assert (gone.member_id, bumped.member_id) == ("m2", "m2")
        assert bumped.reason is RebalanceReason[gone.event.name]
    told.join("m1")
    told.join("m2")
    told.beat("m1")
    told.take()
    told.broker.advance(5_000)
    kicked, bumped = told.take(Event.MEMBER_KICKED, Event.EPOCH_BUMPED)
    assert (kicked.member_id, kicked.rebalance_timeout_ms) == ("m1", 5_000)
    assert bumped.reason is RebalanceReason.REBALANCE_TIMEOUT


def test_who_asks_to_join_and_to_leave_is_told() -> None:
    """With what it asked for; heartbeats between say nothing of it."""
    told = Told()
    told.join("m1", server_assignor="range")
    told.beat("m1")
    told.beat("m1", -1)
    joined, left = told.take(Event.JOIN_REQ, Event.LEAVE_REQ)
    assert (joined.member_id, left.member_id) == ("m1", "m1")
    assert joined.rebalance_timeout_ms == 5_000
    assert joined.attrs == {"member_epoch": "0", "topics": "foo", "assignor": "range"}


def test_a_static_member_is_away_and_comes_back_under_another_id() -> None:
    """It leaves for a while; who takes its place has all that it had, in the same epoch."""
    told = Told()
    told.join("m1", instance_id="i")
    told.take()
    told.beat("m1", -2, instance_id="i")
    assert told.lines() == ["MEMBER_LEFT m1 [i] for a while"]
    told.join("m2", instance_id="i")
    assert told.lines() == [
        "STATIC_REPLACED m2 [i] in the place of m1",
        "MEMBER_STEP m2 [i] epoch 2 Stable has foo-0..5",
        "TARGET_REACHED epoch 2 1 member",
    ]


def test_why_an_epoch_began_is_told() -> None:
    """A member asks for other topics or another assignor; a topic has grown."""
    told = Told()
    told.join("m1")
    told.take()
    reasons = []
    for change in (
        lambda: told.beat("m1", subscribed_topic_names=("foo", "bar")),
        lambda: told.beat("m1", server_assignor="range"),
    ):
        change()
        (bumped,) = told.take(Event.EPOCH_BUMPED)
        reasons.append(bumped.reason)
    told.broker.set_topic("foo", 8, TOPICS["foo"][0])
    told.beat("m1")
    bumped, target = told.take(Event.EPOCH_BUMPED, Event.TARGET_COMPUTED)
    assert [*reasons, bumped.reason] == [
        RebalanceReason.METADATA_CHANGED,
        RebalanceReason.ASSIGNOR_CHANGED,
        RebalanceReason.TOPICS_CHANGED,
    ]
    assert target.protocol_name == "server:range"


def test_a_failover_is_told_and_the_story_goes_on() -> None:
    """The new coordinator knows who was there, so that it tells only what changes."""
    told = Told()
    told.join("m1")
    told.take()
    told.broker.resign(0)
    told.broker.elect(0, 2)
    assert told.lines() == ["GROUP_UNLOADED epoch 2", "GROUP_LOADED epoch 2 as Stable 1 member"]
    told.join("m2")
    assert told.lines()[:2] == [
        "MEMBER_ADDED m2",
        "EPOCH_BUMPED epoch 3 2 members MEMBER_JOINED m2",
    ]


def test_a_refused_append_is_told_and_taken_back() -> None:
    """The member that joined in vain is no part of the story when it joins again."""
    told = Told()
    told.join("m1")
    told.take()
    told.broker.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS, 1)
    told.join("m2")
    assert told.lines()[-1] == "STORE_FAILED epoch 2 group_type=consumer"
    told.join("m2")
    assert told.lines()[1] == "EPOCH_BUMPED epoch 3 2 members MEMBER_JOINED m2"


def test_nothing_is_told_while_the_trace_is_off() -> None:
    """No event, and no story is kept."""
    told = Told(trace=False)
    told.join("m1")
    told.broker.resign(0)
    told.broker.elect(0, 2)
    told.beat("m1", -1)
    assert told.events == []


def test_a_refused_instance_names_its_holder() -> None:
    """As in a classic group, the answer's event says who has the instance id."""
    told = Told()
    told.join("m1", instance_id="i")
    told.take()
    assert told.beat("m2", 2, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    (refused,) = told.take(Event.HEARTBEAT)
    assert refused.attrs == {"current_member_id": "m1"}


# -- a fold of events against a description --------------------------------------------------------

_MEMBERS = ("a", "b", "c", "d")
_STEPS = st.one_of(
    st.tuples(st.just("join"), st.sampled_from(_MEMBERS), st.sampled_from(["foo", "bar", "both"])),
    st.tuples(st.just("beat"), st.sampled_from(_MEMBERS), st.just("")),
    st.tuples(st.just("keep"), st.sampled_from(_MEMBERS), st.just("")),
    st.tuples(st.just("leave"), st.sampled_from(_MEMBERS), st.just("")),
    st.tuples(st.just("away"), st.just("d"), st.just("")),
    st.tuples(st.just("wait"), st.sampled_from(["1", "5000", "45000"]), st.just("")),
    st.tuples(st.just("fail"), st.just("one"), st.just("")),
    st.tuples(st.just("move"), st.just("it"), st.just("")),
)


def _take_step(told: Told, step: tuple[str, str, str], epoch: int) -> int:
    verb, name, what = step
    static = {"instance_id": "i"} if name == "d" else {}
    match verb:
        case "join":
            topics = ("foo", "bar") if what == "both" else (what,)
            told.join(f"d{epoch}" if static else name, topics, **static)
        case "beat" | "keep":
            held = dict(told.held)
            told.beat(name, **static)
            if verb == "keep":
                told.held = held
        case "leave":
            told.beat(name, -1, **static)
        case "away":
            members = told.describe().members
            for each in [each.member_id for each in members if each.instance_id == "i"]:
                told.beat(each, -2, **static)
        case "wait":
            told.broker.advance(int(name))
        case "fail":
            told.broker.fail_appends(ErrorCode.NOT_ENOUGH_REPLICAS, 1)
        case "move":
            told.broker.resign(0)
            told.broker.elect(0, epoch)
    return epoch + 1


class _Folded:
    """A group as its events tell of it."""

    def __init__(self, *, with_revoking: bool) -> None:
        self.epoch = 0
        self.with_revoking = with_revoking
        self.members: dict[str, tuple[int, frozenset[str]]] = {}
        self.is_stable = False

    def add(self, event: TraceEvent) -> None:
        name = event.member_id or ""
        match event.event:
            case Event.MEMBER_ADDED:
                self.members[name] = (0, frozenset())
            case Event.STATIC_REPLACED:
                self.members[name] = self.members.pop(event.attrs["old_member_id"])
            case Event.MEMBER_LEFT if "temporary" in event.attrs:
                self.members[name] = (-2, self.members[name][1])
                self.is_stable = False
            case Event.MEMBER_LEFT | Event.MEMBER_FAILED | Event.MEMBER_KICKED:
                del self.members[name]
            case Event.MEMBER_STEP:
                found = {
                    p.resource() for p in decode_assignment(event.assignment or b"").partitions
                }
                if self.with_revoking:
                    found.update(event.attrs.get("revoking", "").split())
                self.members[name] = (event.generation or 0, frozenset(found))
                self.is_stable = False
            case Event.EPOCH_BUMPED:
                self.epoch = event.generation or 0
                self.is_stable = False
            case Event.TARGET_REACHED:
                self.is_stable = True
            case _:
                pass


@pytest.mark.property
@drawn(steps=st.lists(_STEPS, max_size=30), profile=st.sampled_from(["4.1", "4.3", "4.4"]))
@settings(deadline=None)
def test_the_events_say_what_the_group_is(steps: list[tuple[str, str, str]], profile: str) -> None:
    """Members, their epochs, what they have, and the group's epoch, folded from events alone.

    After a refused append the fold begins anew, as STORE_FAILED tells a reader to.
    """
    shows_revoking = profile_named(profile).consumer_describes_revocations
    told, folded, epoch = Told(profile), _Folded(with_revoking=shows_revoking), 2
    for step in steps:
        epoch = _take_step(told, step, epoch)
    described = told.describe()
    if any(event.event is Event.STORE_FAILED for event in told.events):
        return
    for event in told.events:
        folded.add(event)
    if described.error_code is not ErrorCode.NONE:
        assert not folded.members
        return
    assert folded.members == {
        each.member_id: (
            each.member_epoch,
            frozenset(
                f"p:{topic.topic_name}-{index}"
                for topic in each.assignment.topic_partitions
                for index in topic.partitions
            ),
        )
        for each in described.members
    }
    assert not folded.members or folded.epoch == described.group_epoch
    assert folded.is_stable == (described.group_state == "Stable") or not folded.members


@pytest.mark.property
@drawn(steps=st.lists(_STEPS, max_size=30), profile=st.sampled_from(["4.0", "4.3", "4.4"]))
@settings(deadline=None)
def test_the_log_of_a_group_tells_what_its_trace_told(
    steps: list[tuple[str, str, str]], profile: str
) -> None:
    """The batches in the offsets topic, read as a trace, against the coordinator's own events."""
    told, epoch = Told(profile), 2
    for step in steps:
        if step[0] != "fail":
            epoch = _take_step(told, step, epoch)
    read = read_back(told.broker.log(0), NAMES)
    assert [alike(event) for event in read] == [alike(event) for event in own_lines(told.events)]
