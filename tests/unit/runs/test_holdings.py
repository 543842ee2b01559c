"""What rebalances cost, without Spark: known stories, and Connect work that stands still."""

from collections.abc import Iterable

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.replay.charges import charges_in, trace_of
from coordinator_sim.replay.cost_sums import GROUP, Sums, summed
from coordinator_sim.runs.holdings import holdings
from coordinator_sim.runs.step_holdings import step_holdings
from coordinator_sim.sim.scenario import Variety, with_assignor
from coordinator_sim.sim.scenario.variants import with_variety
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim_scenarios.catalog import scenario_named
from tests.simulated import events_of

S = 1_000_000


def costs(events: list[TraceEvent]) -> Sums:
    """What the rebalances of the only group cost."""
    (row,) = summed(charges_in(trace_of(events, Source.SIM)), GROUP)
    return row.sums


def of_worker(event: Event, at: float, client: str, **columns: object) -> TraceEvent:
    """An event of a worker whose member id is its client id in capitals."""
    known = {"member_id": client.upper(), "client_id": client, "generation": 1}
    return TraceEvent(event=event, ts_us=int(at * S), group_id="g", **{**known, **columns})  # type: ignore[arg-type]


def resources(names: str) -> dict[str, dict[str, str]]:
    """The attributes of an event that tells of starts or stops."""
    return {"attrs": {"resources": names}}


def test_a_task_is_owned_while_it_runs() -> None:
    """From the end of its start to its stop, or to the last sign of life of a failed worker."""
    told = [
        of_worker(Event.ASSIGNED, 1, "a"),
        of_worker(Event.SYNC_RESP, 1, "a", error_code=ErrorCode.NONE),
        of_worker(Event.TASKS_STARTED, 3, "a", **resources("t:x-0 t:x-1")),
        of_worker(Event.TASKS_STOPPED, 10, "a", **resources("t:x-0")),
        of_worker(Event.ASSIGNED, 11, "b"),
        of_worker(Event.SYNC_RESP, 11, "b", error_code=ErrorCode.NONE),
        of_worker(Event.TASKS_STARTED, 14, "b", **resources("t:x-0")),
        of_worker(Event.HEARTBEAT, 16, "a"),
        of_worker(Event.MEMBER_FAILED, 26, "a", session_timeout_ms=10_000),
        of_worker(Event.LIFECYCLE, 30, "b", reason_text="crashed", member_id=None),
        TraceEvent(event=Event.FAULT, ts_us=40 * S),
    ]
    found = {(h.resource, h.member_key, h.from_us / S, h.to_us / S) for h in holdings(told)["g"]}
    assert found == {("t:x-0", "A", 3, 10), ("t:x-1", "A", 3, 16), ("t:x-0", "B", 14, 30)}


def test_lockstep_hides_what_drawn_worlds_show() -> None:
    """An exact eager deploy stops for a moment and loses less; drawn worlds turn the sign round."""
    deploy = scenario_named("consumer-rolling-deploy")
    exact = {a: costs(events_of(with_assignor(deploy, a))) for a in ("range", "cooperative-sticky")}
    assert exact["range"].stopped_s < 0.02
    assert exact["range"].unowned_s < exact["cooperative-sticky"].unowned_s

    varied = with_variety(deploy, Variety())
    drawn = {a: costs(events_of(with_assignor(varied, a))) for a in exact}
    assert drawn["range"].stopped_s > 1
    assert drawn["range"].paused_s > 10 * drawn["range"].stopped_s
    assert drawn["cooperative-sticky"].stopped_s == 0
    assert drawn["range"].unowned_s > 1.5 * drawn["cooperative-sticky"].unowned_s


def test_stopping_and_starting_connect_work_costs_time() -> None:
    """Every eager rebalance stops all work; what is stopped is unowned until it runs again."""
    eager = with_variety(
        with_assignor(scenario_named("connect-rolling-deploy"), "eager"), Variety()
    )
    found = costs(events_of(eager))
    assert found.unowned_s > 500
    assert found.paused_s > found.stopped_s > 0


def test_steps_and_assignments_agree_on_a_group_without_steps() -> None:
    """The holdings of a group that converts are those of a classic group while it is one.

    What members tell of revocations is left out: only steps read it, for half a millisecond. No
    SyncGroup is refused in this world: assignments alone do not tell that somebody never got one.
    """
    deploy = with_variety(scenario_named("consumer-rolling-deploy"), Variety())
    events = events_of(with_assignor(deploy, "range"), seed=2)
    told = [each for each in events if each.event is not Event.REVOKED]
    assert all(each.error_code == 0 for each in told if each.event is Event.SYNC_RESP)
    ends_us = max(event.ts_us for event in told)
    stepped = [(h.resource, h.member_key, h.from_us, h.to_us) for h in step_holdings(told, ends_us)]
    assigned = [
        (h.resource, h.member_key, h.from_us, h.to_us) for h in holdings(told)["orders-app"]
    ]
    assert unions(stepped) == unions(assigned)
    assert len(assigned) > 200


def unions(held: Iterable[tuple[str, str, int, int]]) -> dict[tuple[str, str], list[list[int]]]:
    """By resource and member the times in which it is held, touching ones as one."""
    found: dict[tuple[str, str], list[list[int]]] = {}
    for resource, key, from_us, to_us in sorted(held):
        own = found.setdefault((resource, key), [])
        if own and own[-1][1] >= from_us:
            own[-1][1] = max(own[-1][1], to_us)
        else:
            own.append([from_us, to_us])
    return found
