"""How a trace is cut into tenancies, and requests are put beside their answers."""

from typing import Any

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers.history import Circumstances, History, Instances


def event(at_ms: int, kind: Event, broker_id: int | None = 1, **columns: Any) -> TraceEvent:  # noqa: ANN401 - any column
    """An event of the group `g` in offsets partition 7."""
    shared: dict[str, Any] = {"group_id": "g", "offsets_partition": 7}
    return TraceEvent(event=kind, ts_us=at_ms * 1_000, broker_id=broker_id, **{**shared, **columns})


def kinds(history: History) -> list[list[Event]]:
    """The events of each tenancy."""
    return [[one.event for one in tenancy.events] for tenancy in history.tenancies]


def test_failover_starts_a_tenancy() -> None:
    """What the new coordinator says is a life of its own, and a loaded one."""
    history = History(
        [
            event(0, Event.JOIN_COMPLETE),
            event(10, Event.GROUP_UNLOADED),
            event(20, Event.GROUP_LOADED, broker_id=2),
            event(30, Event.HEARTBEAT, broker_id=2),
        ]
    )

    first, second = history.tenancies
    assert (first.ended_at_us, first.is_loaded) == (10_000, False)
    assert (second.ended_at_us, second.is_loaded) == (None, True)
    assert [one.event for one in second.events] == [Event.GROUP_LOADED, Event.HEARTBEAT]


def test_last_words_belong_to_the_tenancy_that_ends() -> None:
    """An unload answers what is parked, at the same instant."""
    history = History(
        [
            event(0, Event.JOIN_REQ, correlation_id=1),
            event(10, Event.GROUP_UNLOADED),
            event(10, Event.GROUP_DEAD),
            event(10, Event.JOIN_RESP, correlation_id=1),
            event(15, Event.HEARTBEAT),
        ]
    )

    assert [len(events) for events in kinds(history)] == [4, 1]
    assert history.exchanges[0].response is not None


def test_load_elsewhere_ends_the_tenancy_of_a_crashed_broker() -> None:
    """A dead broker does not say that it unloaded."""
    history = History(
        [
            event(0, Event.JOIN_REQ, correlation_id=1),
            event(20, Event.LOAD_START, broker_id=2, group_id=None),
        ]
    )

    (tenancy,) = history.tenancies
    assert tenancy.ended_at_us == 20_000


def test_deposed_broker_goes_on_with_its_old_tenancy() -> None:
    """A broker that was paused hears late of its successor, whose tenancy is the newer one."""
    history = History(
        [
            event(0, Event.JOIN_REQ, correlation_id=1),
            event(20, Event.LOAD_START, broker_id=2, group_id=None),
            event(21, Event.GROUP_LOADED, broker_id=2),
            event(40, Event.JOIN_COMPLETE),
            event(40, Event.JOIN_RESP, correlation_id=1),
            event(40, Event.GROUP_DEAD),
            event(50, Event.LOAD_START, group_id=None),
            event(50, Event.GROUP_LOADED),
        ]
    )

    assert [(one.broker_id, len(one.events)) for one in history.tenancies] == [
        (1, 4),
        (2, 1),
        (1, 1),
    ]
    assert history.tenancies[0].ended_at_us == 20_000


def test_tenancy_of_a_broker_that_is_deposed_already_is_known_as_such() -> None:
    """It reads its first request for the group when another broker has long loaded it."""
    history = History(
        [
            event(20, Event.LOAD_START, broker_id=2, group_id=None),
            event(25, Event.MEMBER_ADDED, broker_id=2),
            event(40, Event.JOIN_REQ, correlation_id=1),
        ]
    )

    assert [(one.broker_id, one.is_deposed) for one in history.tenancies] == [(2, False), (1, True)]


def test_load_of_another_partition_ends_nothing() -> None:
    """Only the groups of the loaded partition have moved."""
    history = History(
        [event(0, Event.HEARTBEAT), event(20, Event.LOAD_START, group_id=None, offsets_partition=8)]
    )

    (tenancy,) = history.tenancies
    assert tenancy.ended_at_us is None


def test_new_incarnation_starts_a_tenancy() -> None:
    """A group deleted and made again counts from 1 again."""
    history = History(
        [event(0, Event.JOIN_COMPLETE), event(10, Event.JOIN_COMPLETE, incarnation=1)]
    )

    assert len(history.tenancies) == 2


def test_events_of_clients_are_in_no_tenancy() -> None:
    """Events of clients say what clients believe."""
    history = History([event(0, Event.REVOKED, broker_id=None), event(1, Event.FAULT)])

    assert history.tenancies == []


def test_requests_of_one_token_on_two_brokers_are_apart() -> None:
    """Tokens are unique per coordinator only."""
    history = History(
        [
            event(0, Event.JOIN_REQ, broker_id=1, correlation_id=5),
            event(1, Event.JOIN_REQ, broker_id=2, correlation_id=5),
            event(2, Event.JOIN_RESP, broker_id=2, correlation_id=5),
        ]
    )

    assert [exchange.response is None for exchange in history.exchanges] == [True, False]


def test_calm_begins_after_the_last_disturbance() -> None:
    """Unless it is known better."""
    events = [event(5, Event.FAULT), event(9, Event.LIFECYCLE), event(11, Event.HEARTBEAT)]

    assert History(events).calm_from_us == 9_000
    assert History(events, Circumstances(calm_from_us=7_000)).calm_from_us == 7_000
    assert History([]).calm_from_us is None


def test_trace_ends_with_its_last_event_unless_known_better() -> None:
    """A run in which nothing happens any more goes on."""
    events = [event(11, Event.HEARTBEAT)]

    assert History(events).ends_at_us == 11_000
    assert History(events, Circumstances(ends_at_us=60_000_000)).ends_at_us == 60_000_000


def test_replacement_names_the_replaced_member() -> None:
    """The instance id is what both have in common."""
    instances = Instances()
    added = event(0, Event.MEMBER_ADDED, member_id="m1", group_instance_id="i")
    fenced = event(
        1,
        Event.HEARTBEAT,
        member_id="m0",
        group_instance_id="i",
        error_code=ErrorCode.FENCED_INSTANCE_ID,
    )
    replaced = event(2, Event.STATIC_REPLACED, member_id="m2", group_instance_id="i")

    assert [instances.take(one) for one in (added, fenced, replaced)] == [None, None, "m1"]
