"""Who the members of a recorded group are, over all their processes, and when they were away."""

from coordinator_sim.trace import group_shape
from coordinator_sim.trace.events import Event, TraceEvent

_UUID = "fb8e1bf6-8d27-479c-a0c6-f79a0846b288"


def happened(at_s: int, kind: Event, client: str, process: int = 1, **more: object) -> TraceEvent:
    """An event about a process of a client."""
    return TraceEvent(
        event=kind,
        ts_us=at_s * 1_000_000,
        group_id="app",
        member_id=f"{client}-{process:08x}{_UUID[8:]}",
        session_timeout_ms=10_000,
        **more,  # type: ignore[arg-type]
    )


def joins(at_s: int, client: str, process: int = 1) -> TraceEvent:
    """The line with which a broker's log tells that somebody new is there."""
    return happened(at_s, Event.MEMBER_ID_ASSIGNED, client, process)


def completed(at_s: int, members: int) -> TraceEvent:
    """The end of a join phase."""
    return TraceEvent(
        event=Event.JOIN_COMPLETE, ts_us=at_s * 1_000_000, group_id="app", members=members
    )


def restart(
    member: str, at_s: int, down_s: int, *, graceful: bool = True
) -> group_shape.SeenRestart:
    """A restart in seconds."""
    return group_shape.SeenRestart(
        member=member, at_us=at_s * 1_000_000, down_us=down_s * 1_000_000, graceful=graceful
    )


def test_whoever_leaves_and_comes_back_is_one_member() -> None:
    """By its client id, and if nobody of that name is away, by its place."""
    seen = group_shape.seen_group(
        [
            joins(0, "a"),
            joins(1, "b"),
            completed(3, 2),
            happened(100, Event.MEMBER_LEFT, "a"),
            happened(101, Event.MEMBER_LEFT, "b"),
            joins(105, "b", 2),
            joins(110, "pod-x7f"),
            completed(111, 2),
        ],
        "app",
    )
    assert seen is not None
    assert list(seen.members) == ["a", "b"]
    assert seen.restarts == (restart("a", 100, 10), restart("b", 101, 4))


def test_a_crash_is_noticed_after_its_successor_came() -> None:
    """The group has three members for a while, and yet two places."""
    seen = group_shape.seen_group(
        [
            joins(0, "a"),
            joins(0, "b"),
            completed(3, 2),
            joins(60, "a", 2),
            completed(62, 3),
            happened(65, Event.MEMBER_FAILED, "a"),
            completed(66, 2),
        ],
        "app",
    )
    assert seen is not None
    assert list(seen.members) == ["a", "b"]
    assert seen.restarts == (restart("a", 55, 5, graceful=False),)


def test_members_from_before_the_trace_are_counted() -> None:
    """A log that begins in the middle names those who leave, and counts the others."""
    seen = group_shape.seen_group(
        [completed(0, 3), happened(50, Event.MEMBER_LEFT, "a"), joins(58, "a", 2)], "app"
    )
    assert seen is not None
    assert len(seen.members) == 3
    assert seen.restarts == (restart("a", 50, 8),)


def test_a_static_member_keeps_its_name_and_hides_its_down_time() -> None:
    """Its broker tells only that another process took its place."""
    stays = {"group_instance_id": "i1"}
    seen = group_shape.seen_group(
        [
            happened(0, Event.MEMBER_ADDED, "a", **stays),
            happened(70, Event.STATIC_REPLACED, "a", 2, **stays),
        ],
        "app",
    )
    assert seen is not None
    assert seen.members == {"i1": "i1"}
    (found,) = seen.restarts
    assert (found.member, found.at_us, found.down_us) == ("i1", 70_000_000, None)


def test_other_groups_tell_nothing() -> None:
    """And of resources, partitions count."""
    assert group_shape.seen_group([joins(0, "a")], "other") is None
    assert group_shape.topics_of(["p:a-b-11", "p:a-b-2", "p:c-0"]) == {"a-b": 12, "c": 1}


def seen_with(*events: TraceEvent) -> group_shape.SeenGroup:
    """The group of these events."""
    seen = group_shape.seen_group(events, "app")
    assert seen is not None
    return seen


def deploy(start_s: int, *clients: str, process: int) -> list[TraceEvent]:
    """Each goes for 4 s, 10 s after the one before."""
    events = []
    for index, client in enumerate(clients):
        at_s = start_s + 10 * index
        events.append(happened(at_s, Event.MEMBER_LEFT, client, process))
        events.append(joins(at_s + 4, client, process + 1))
    return events


def test_deploys_are_restarts_of_half_the_group_soon_after_another() -> None:
    """Two of four members; one alone is none, and a crash is none. Two in a row are two."""
    begin = [joins(n, client) for n, client in enumerate("abcd")]
    one = [*begin, *deploy(100, "a", process=1)]
    assert group_shape.deploys_of(seen_with(*one)) == group_shape.SeenDeploys(
        count=0, pace_us=None, down_us=4_000_000
    )
    two = [*begin, *deploy(100, "a", "b", process=1)]
    found = group_shape.SeenDeploys(count=1, pace_us=10_000_000, down_us=4_000_000)
    assert group_shape.deploys_of(seen_with(*two)) == found
    far = [*two, *deploy(5_000, "a", "b", process=2), *deploy(5_020, "c", "d", process=1)]
    assert group_shape.deploys_of(seen_with(*far)).count == 2
    soon = [*two, *deploy(200, "a", "b", process=2)]
    assert group_shape.deploys_of(seen_with(*soon)).count == 2


def test_what_all_members_have_in_common() -> None:
    """The usual timeouts, the clients' software; all are static where the counts are equal."""
    timeouts = {"rebalance_timeout_ms": 60_000, "attrs": {"client_sw": "librdkafka 2.3.0"}}
    seen = seen_with(
        happened(0, Event.JOIN_REQ, "a", **timeouts),
        joins(0, "a"),
        completed(1, 1),
        TraceEvent(
            event=Event.JOIN_COMPLETE,
            ts_us=2_000_000,
            group_id="app",
            members=1,
            static_members=1,
            protocol_type="consumer",
        ),
    )
    assert (seen.session_timeout_ms, seen.rebalance_timeout_ms) == (10_000, 60_000)
    assert (seen.software, seen.protocol_type) == (("librdkafka 2.3.0",), "consumer")
    assert seen.members == {"a": "a"}
