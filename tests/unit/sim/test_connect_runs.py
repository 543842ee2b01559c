"""Whole Connect clusters in virtual time: workers, their topics, their REST API."""

from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import (
    AddConnector,
    ChangeTaskCount,
    ConnectGroupSpec,
    CrashMember,
    FailWork,
    Happening,
    LagConfigTopic,
    PauseMember,
    RestRequest,
    StartMember,
    StopMember,
    WorkerSpec,
)
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from tests.simulated import scenario_of

GROUP = "connect"
SETTINGS = {"scheduled.rebalance.max.delay.ms": "60000"}


def run(
    *happenings: Happening,
    workers: tuple[WorkerSpec, ...] = (WorkerSpec(name="w1"), WorkerSpec(name="w2")),
    protocol: str = "sessioned",
    duration_ms: int = 120_000,
) -> list[TraceEvent]:
    """A cluster of one connector with four tasks."""
    recorder = MemoryRecorder()
    run_scenario(
        scenario_of(
            name="workers",
            duration_ms=duration_ms,
            groups=(
                ConnectGroupSpec(
                    group_id=GROUP,
                    workers=workers,
                    connect_protocol=protocol,
                    connectors={"x": 4},
                    settings=SETTINGS,
                ),
            ),
            happenings=happenings,
        ),
        recorder=recorder,
    )
    return recorder.events


def running_at_end(events: list[TraceEvent]) -> dict[str, list[str]]:
    """Worker -> what it has started and not stopped."""
    running: dict[str, dict[str, None]] = {}
    for event in events:
        own = running.setdefault(event.client_id or "", {})
        resources = (event.attrs or {}).get("resources", "").split()
        if event.event is Event.TASKS_STARTED:
            own.update(dict.fromkeys(resources))
        elif event.event is Event.TASKS_STOPPED:
            for resource in resources:
                own.pop(resource, None)
        elif event.event is Event.LIFECYCLE and event.reason_text == "gone":
            own.clear()
    return {worker: sorted(own) for worker, own in running.items() if own}


def all_running(events: list[TraceEvent]) -> list[str]:
    """What runs at the end, wherever."""
    return sorted(each for own in running_at_end(events).values() for each in own)


def times(events: list[TraceEvent], event: Event, worker: str) -> list[tuple[int, str]]:
    """When, in milliseconds, a worker started or stopped what."""
    return [
        (each.ts_us // 1_000, (each.attrs or {}).get("resources", ""))
        for each in events
        if each.event is event and each.client_id == worker
    ]


def rest(member: str, at_ms: int, method: str, target: str, body: str = "") -> RestRequest:
    """A request of the operator."""
    return RestRequest(at_ms=at_ms, member=member, method=method, target=target, body=body)


def answers(events: list[TraceEvent]) -> list[str]:
    """What the operator asked and was answered."""
    return [
        f"{each.attrs['method']} {each.attrs['target']}: {(each.reason_text or '').split()[-1]}"
        for each in events
        if each.event is Event.LIFECYCLE and each.attrs and "method" in each.attrs
    ]


def bodies(events: list[TraceEvent]) -> list[str]:
    """The bodies of those answers."""
    return [each.attrs["body"] for each in events if each.attrs and "body" in each.attrs]


ALL = ["c:x", "t:x-0", "t:x-1", "t:x-2", "t:x-3"]


def test_two_workers_share_the_work() -> None:
    """Everything runs once, divided as evenly as it can be."""
    running = running_at_end(run())
    assert sorted(running["w1"] + running["w2"]) == ALL
    assert sorted(len(own) for own in running.values()) == [2, 3]


def test_a_worker_that_joins_takes_its_share_in_two_rounds() -> None:
    """What it needs is first stopped where it runs, then given to it; the rest runs on."""
    late = WorkerSpec(name="w2", start_ms=None)
    events = run(StartMember(at_ms=30_000, member="w2"), workers=(WorkerSpec(name="w1"), late))
    running = running_at_end(events)
    assert sorted(running["w1"] + running["w2"]) == ALL
    stopped = [text for _, text in times(events, Event.TASKS_STOPPED, "w1")]
    started = [text for _, text in times(events, Event.TASKS_STARTED, "w2")]
    assert sorted(" ".join(stopped).split()) == sorted(" ".join(started).split())
    joins = [each.ts_us for each in events if each.event is Event.JOIN_COMPLETE]
    assert len([at_us for at_us in joins if at_us > 30_000_000]) == 2


def test_work_of_a_dead_follower_waits_for_the_delay() -> None:
    """Sixty seconds after the rebalance that missed it, the leader takes it over."""
    events = run(CrashMember(at_ms=30_000, member="w2"), duration_ms=150_000)
    assert running_at_end(events) == {"w1": ALL}
    taken_ms = times(events, Event.TASKS_STARTED, "w1")[-1][0]
    assert 95_000 < taken_ms < 105_000


def test_an_eager_worker_turns_the_cluster_eager() -> None:
    """Once it has joined, every rebalance stops all work before it."""
    eager = WorkerSpec(name="w2", start_ms=None)
    events = run(
        StartMember(at_ms=30_000, member="w2", settings={"connect.protocol": "eager"}),
        AddConnector(at_ms=60_000, group_id=GROUP, connector="y", tasks=1),
        workers=(WorkerSpec(name="w1"), eager),
    )
    stops = [at_ms for at_ms, _ in times(events, Event.TASKS_STOPPED, "w1")]
    assert [at_ms for at_ms in stops if at_ms < 60_000] == []
    assert len([at_ms for at_ms in stops if at_ms > 60_000]) >= 2


def test_a_stopped_worker_stops_its_work_and_leaves() -> None:
    """The work first; the process is gone when its LeaveGroup arrives."""
    events = run(StopMember(at_ms=30_000, member="w2"))
    order = [
        each.event if each.event is not Event.LIFECYCLE else each.reason_text
        for each in events
        if each.client_id == "w2" and each.ts_us >= 30_000_000 and each.event is not Event.HEARTBEAT
    ]
    assert order == ["stopping", Event.TASKS_STOPPED, "gone", Event.LEAVE_REQ, Event.MEMBER_LEFT]


def test_pause_and_resume_by_rest_reach_all_workers() -> None:
    """Any worker takes the request; each writes the states of its own part."""
    events = run(
        rest("w2", 30_000, "PUT", "/connectors/x/pause"),
        rest("w2", 31_000, "GET", "/connectors/x/status"),
        rest("w1", 32_000, "PUT", "/connectors/x/resume"),
        rest("w1", 33_000, "GET", "/connectors/x/status"),
    )
    assert [text.rpartition(" ")[2] for text in answers(events)] == ["202", "200", "202", "200"]
    paused, resumed = (body for body in bodies(events) if body)
    assert (paused.count("PAUSED"), resumed.count("RUNNING")) == (5, 5)


def test_stop_by_rest_takes_the_tasks_away() -> None:
    """A follower forwards the request to the leader; the connector stays, stopped."""
    events = run(
        rest("w1", 30_000, "PUT", "/connectors/x/stop"),
        rest("w2", 40_000, "GET", "/connectors/x/status"),
    )
    assert answers(events)[0] == "PUT /connectors/x/stop: 204"
    assert '"state":"STOPPED"' in bodies(events)[-1]
    assert all_running(events) == ["c:x"]


def test_a_failed_task_stays_failed_until_it_is_restarted() -> None:
    """A task's worker writes FAILED with the trace; a restart request goes to the task's owner."""
    events = run(
        FailWork(at_ms=30_000, group_id=GROUP, connector="x", task=1, trace="boom"),
        rest("w1", 35_000, "GET", "/connectors/x/tasks/1/status"),
        rest("w1", 40_000, "POST", "/connectors/x/tasks/1/restart"),
        rest("w1", 45_000, "GET", "/connectors/x/tasks/1/status"),
    )
    failed, restarted = (body for body in bodies(events) if body)
    assert '"state":"FAILED"' in failed
    assert "boom" in failed
    assert '"state":"RUNNING"' in restarted
    assert answers(events)[1] == "POST /connectors/x/tasks/1/restart: 204"


def test_a_worker_that_lags_behind_the_topic_makes_the_group_spin() -> None:
    """A leader that has not read what others have gives nobody work until it has caught up."""
    events = run(
        LagConfigTopic(at_ms=30_000, member="w1", for_ms=10_000),
        rest("w2", 31_000, "PUT", "/connectors/x/pause"),
        StartMember(at_ms=32_000, member="w3"),
        workers=(*(WorkerSpec(name=f"w{n}") for n in (1, 2)), WorkerSpec(name="w3", start_ms=None)),
    )
    joins = [e.ts_us for e in events if e.event is Event.JOIN_COMPLETE and e.ts_us > 30_000_000]
    assert len(joins) > 100
    assert 40_000_000 < joins[-1] < 45_000_000


def test_a_frozen_worker_loses_its_work_and_comes_back() -> None:
    """Longer than the session: it is removed, and stops what it had when it wakes up."""
    events = run(PauseMember(at_ms=30_000, member="w2", for_ms=20_000), duration_ms=200_000)
    running = running_at_end(events)
    assert sorted(running["w1"] + running["w2"]) == ALL


EXACTLY_ONCE = {"exactly.once.source.support": "enabled"}


def test_exactly_once_tasks_start_after_a_round_of_fencing() -> None:
    """Followers ask the leader for it; with more tasks the old ones are fenced before."""
    events = run(
        StartMember(at_ms=20_000, member="w2"),
        ChangeTaskCount(at_ms=60_000, group_id=GROUP, connector="x", tasks=6),
        workers=(
            WorkerSpec(name="w1", settings=EXACTLY_ONCE),
            WorkerSpec(name="w2", start_ms=None, settings=EXACTLY_ONCE),
        ),
    )
    assert all_running([each for each in events if each.ts_us < 60_000_000]) == ALL
    assert all_running(events) == [*ALL, "t:x-4", "t:x-5"]


def test_a_leader_without_a_first_tick_fails_the_tasks_of_others() -> None:
    """A leader without a session key answers 503 to fencing, and the tasks of others are FAILED."""
    events = run(
        rest("w1", 60_000, "GET", "/connectors/x/status"),
        workers=tuple(WorkerSpec(name=name, settings=EXACTLY_ONCE) for name in ("w1", "w2")),
    )
    (status,) = (body for body in bodies(events) if body)
    assert '"state":"FAILED","worker_id":"w2:8083"' in status
    assert "still starting up" in status
