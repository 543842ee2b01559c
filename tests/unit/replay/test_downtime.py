"""Pauses, standstill and time without an owner: a story by hand, and bounds without owners."""

from collections.abc import Sequence

from msgspec.structs import replace

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.replay.charges import Charge, charges_in, trace_of
from coordinator_sim.trace.events import Event, RebalanceReason, Source, TraceEvent

S = 1_000_000


def line(event: Event, at: float, member: str | None = None, **columns: object) -> TraceEvent:
    """A line of the group; `at` is in seconds."""
    return TraceEvent(
        event=event,
        ts_us=round(at * S),
        group_id="g",
        member_id=member,
        client_id=member,
        **columns,
    )  # type: ignore[arg-type]


def generation(
    number: int, start: float, done: float, sync: float, given: dict[str, Sequence[int]]
) -> list[TraceEvent]:
    """A rebalance that leads to a generation, and what that gives to each member."""
    leader = next(iter(given))
    told = {"generation": number, "protocol_name": "range", "protocol_type": "consumer"}
    lines = [
        line(
            Event.PREPARE_REBALANCE,
            start,
            generation=number - 1,
            reason=RebalanceReason.MEMBER_JOINED,
        ),
        line(Event.JOIN_COMPLETE, done, members=len(given), leader_id=leader, **told),
        line(Event.SYNC_LEADER, sync, leader_id=leader, members=len(given), **told),
    ]
    for member, partitions in given.items():
        owned = tuple(TopicPartition("t", each) for each in partitions)
        data = encode_assignment(ConsumerAssignment(partitions=owned))
        lines.append(line(Event.ASSIGNED, sync, member, assignment=data, **told))
    return lines


def story() -> list[TraceEvent]:
    """A has both partitions, B joins; then C joins and B gets nothing, which is no pause."""
    events = [
        *generation(1, 1, 4, 5, {"a": (0, 1)}),
        line(Event.SYNC_RESP, 5, "a", generation=1),
        *generation(2, 10, 12, 13, {"a": (0,), "b": (1,)}),
        line(Event.JOIN_REQ, 11, "a", generation=1),
        line(Event.SYNC_RESP, 13, "a", generation=2),
        line(Event.SYNC_RESP, 14, "b", generation=2),
        *generation(3, 20, 23, 24, {"a": (0,), "c": (1,), "b": ()}),
        line(Event.JOIN_REQ, 20.5, "a", generation=2),
        line(Event.JOIN_REQ, 22, "b", generation=2),
        line(Event.SYNC_RESP, 24, "a", generation=3),
        line(Event.SYNC_RESP, 25, "c", generation=3),
        line(Event.SYNC_RESP, 26, "b", generation=3),
        line(Event.HEARTBEAT, 100, "a", generation=3),
    ]
    return sorted(events, key=lambda each: each.ts_us)


def seconds(charge: Charge) -> tuple[float | None, ...]:
    """Rebalancing, pauses, standstill and time without owner of a rebalance, in seconds."""
    times = (charge.rebalancing_us, charge.paused_us, charge.stopped_us, charge.unowned_us)
    return tuple(None if each is None else each / S for each in times)


def test_each_word_has_its_own_figure() -> None:
    """Length, pauses, standstill and partitions without owner of three rebalances."""
    first, second, third = charges_in(trace_of(story(), Source.SIM))
    assert seconds(first) == (4, 0, 0, 0)
    # A pauses from 11 to 13; nobody has anything meanwhile; t-1 waits for B until 14.
    assert seconds(second) == (3, 2, 2, 2 + 3)
    # A pauses from 20.5 to 24, B from 22 until it is told at 26 that it gets nothing.
    assert seconds(third) == (4, 3.5 + 4, 2, 3.5 + 3)
    assert not any(each.cost.is_bound for each in (first, second, third))


def test_without_assignments_there_are_upper_bounds() -> None:
    """A broker's log tells lengths and counts; the group was empty before the first rebalance."""
    logged = {Event.PREPARE_REBALANCE, Event.JOIN_COMPLETE, Event.SYNC_LEADER}
    lines = [each for each in story() if each.event in logged]
    lines = [replace(each, protocol_name=None) for each in lines]
    charges = charges_in(trace_of(lines, Source.BROKER_LOG))
    assert [seconds(each) for each in charges] == [
        (4, 0, 4, None),
        (3, 3 * 2, 3, None),
        (4, 4 * 3, 4, None),
    ]
    assert all(each.cost.is_bound for each in charges)
