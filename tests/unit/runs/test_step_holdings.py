"""Who holds what in a consumer group: of members' own words, or of their steps."""

from collections.abc import Sequence

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.runs.step_holdings import step_holdings
from coordinator_sim.trace.events import Event, TraceEvent

Held = tuple[str, str, int, int]


def event(kind: Event, at_us: int, member: str = "m1", **columns: object) -> TraceEvent:
    """An event of the group."""
    return TraceEvent(
        event=kind,
        ts_us=at_us,
        group_id="g",
        member_id=member,
        **columns,  # type: ignore[arg-type]
    )


def step(at_us: int, has: Sequence[int], revoking: str = "", member: str = "m1") -> TraceEvent:
    """A step after which a member has partitions of `t`, and has others to give up."""
    partitions = tuple(TopicPartition("t", index) for index in has)
    data = encode_assignment(ConsumerAssignment(partitions=partitions))
    attrs = {"revoking": revoking} if revoking else {}
    return event(Event.MEMBER_STEP, at_us, member, generation=1, assignment=data, attrs=attrs)


def held(*events: TraceEvent, ends_us: int = 100) -> list[Held]:
    """Holdings as resource, member, from and to, in order."""
    found = step_holdings(events, ends_us)
    return sorted((each.resource, each.member_key, each.from_us, each.to_us) for each in found)


def test_what_is_to_be_given_up_is_held_until_it_is() -> None:
    """A member that is told to let go still has it; the next has it after its own step."""
    assert held(
        step(10, [0, 1]), step(20, [0], "p:t-1"), step(30, [0]), step(40, [1], member="m2")
    ) == [("p:t-0", "m1", 10, 100), ("p:t-1", "m1", 10, 30), ("p:t-1", "m2", 40, 100)]


def test_a_silent_member_held_until_its_last_sign_of_life() -> None:
    """Its session was over at 60, and its last heartbeat was at 20."""
    failed = event(Event.MEMBER_FAILED, 60_000, session_timeout_ms=45)
    beat = event(Event.HEARTBEAT, 20_000)
    assert held(step(10_000, [0]), beat, failed) == [("p:t-0", "m1", 10_000, 20_000)]


def test_a_static_member_keeps_its_key_and_not_its_partitions_while_away() -> None:
    """It holds nothing between its leave and the first step of its next process."""
    static = {"group_instance_id": "i"}
    away = event(Event.MEMBER_LEFT, 30, "m1", attrs={"temporary": "temporarily"}, **static)
    data = encode_assignment(ConsumerAssignment(partitions=(TopicPartition("t", 0),)))
    first = event(Event.MEMBER_STEP, 10, "m1", assignment=data, generation=2, **static)
    second = event(Event.MEMBER_STEP, 50, "m2", assignment=data, generation=2, **static)
    assert held(first, away, second) == [("p:t-0", "i", 10, 30), ("p:t-0", "i", 50, 100)]


def test_a_members_own_words_count_before_its_steps() -> None:
    """Steps are answers of the coordinator; what the member got and gave up it says itself."""
    got = event(Event.ASSIGNED, 15, attrs={"resources": "p:t-0 p:t-1"})
    gave = event(Event.REVOKED, 25, attrs={"resources": "p:t-1"})
    died = event(Event.LIFECYCLE, 40, "", reason_text="crashed", client_id="c1")
    named = event(Event.HEARTBEAT, 16, client_id="c1")
    assert held(
        step(10, [0, 1]), got, named, step(20, [0], "p:t-1"), gave, step(30, [0]), died
    ) == [("p:t-0", "m1", 15, 40), ("p:t-1", "m1", 15, 25)]


def answer(at_us: int, has: Sequence[int], error: ErrorCode = ErrorCode.NONE) -> TraceEvent:
    """The SyncGroup answer of a classic member."""
    partitions = tuple(TopicPartition("t", index) for index in has)
    data = encode_assignment(ConsumerAssignment(partitions=partitions))
    return event(Event.SYNC_RESP, at_us, assignment=data, error_code=error, generation=3)


def rejoin(at_us: int, assignors: str) -> TraceEvent:
    """A JoinGroup of a classic member."""
    return event(Event.JOIN_REQ, at_us, attrs={"protocols": assignors})


def test_a_classic_member_holds_what_its_answers_say() -> None:
    """A step at its JoinGroup is a promise: it works from the answer of its SyncGroup on."""
    left = event(Event.MEMBER_LEFT, 60)
    assert held(answer(10, [0]), rejoin(20, "range"), step(21, [0, 1]), answer(30, [1]), left) == [
        ("p:t-0", "m1", 10, 20),
        ("p:t-1", "m1", 30, 60),
    ]


def test_a_cooperative_member_keeps_what_it_has_while_it_rejoins() -> None:
    """With one eager assignor among its own it gives everything up."""
    refused = answer(35, [], ErrorCode.REBALANCE_IN_PROGRESS)
    again = rejoin(20, "cooperative-sticky")
    assert held(answer(10, [0]), again, refused, answer(40, [0, 1])) == [
        ("p:t-0", "m1", 10, 100),
        ("p:t-1", "m1", 40, 100),
    ]
    eager = rejoin(20, "cooperative-sticky,range")
    assert held(answer(10, [0]), eager, answer(40, [0])) == [
        ("p:t-0", "m1", 10, 20),
        ("p:t-0", "m1", 40, 100),
    ]
