"""Whole Connect clusters in virtual time: workers, their topics, their REST API."""

import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import (
    AddConnector,
    ChangeTaskCount,
    ConnectGroupSpec,
    ConnectorWork,
    CrashMember,
    FailWork,
    Happening,
    LagConfigTopic,
    PartitionNetwork,
    PauseMember,
    RestRequest,
    Scenario,
    SinkWork,
    SourceWork,
    StartMember,
    StopMember,
    TopicSpec,
    WorkerSpec,
)
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim.trace.work import WorkCount, count_work
from tests.simulated import events_of, scenario_of

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


# -- Tasks of connectors: what a rebalance of the workers makes of the records -----------------


TASKS = 3
PARTITIONS = 6
COORDINATOR = 2
"""The broker that coordinates the workers' group."""
WORK: dict[str, ConnectorWork] = {
    "jdbc": SourceWork(topic="orders", partitions=PARTITIONS),
    "s3": SinkWork(topics=("events",)),
}


def scenario(
    *happenings: Happening,
    work: dict[str, ConnectorWork] | None = None,
    settings: dict[str, str] | None = None,
) -> Scenario:
    """Three workers with a source and a sink of three tasks each, for three virtual minutes."""
    return scenario_of(
        name="work",
        duration_ms=180_000,
        topics=tuple(TopicSpec(name=name, partitions=PARTITIONS) for name in ("orders", "events")),
        groups=(
            ConnectGroupSpec(
                group_id="cluster",
                workers=tuple(WorkerSpec(name=f"w{number}") for number in (1, 2, 3)),
                connectors={"jdbc": TASKS, "s3": TASKS},
                settings={"scheduled.rebalance.max.delay.ms": "20000", **(settings or {})},
                work=WORK if work is None else work,
            ),
        ),
        happenings=happenings,
    )


def work_of(events: list[TraceEvent], connector: str) -> WorkCount:
    """What became of the connector's records."""
    (counted,) = [row for row in count_work(events) if row.connector == connector]
    assert counted.processed - counted.duplicates + counted.gaps == counted.span
    return counted


def stretches(events: list[TraceEvent], task: str) -> list[TraceEvent]:
    """What a task processed, in order."""
    return [
        e
        for e in events
        if e.event is Event.RECORDS_PROCESSED and e.attrs.get("task") == f"t:{task}"
    ]


@pytest.mark.parametrize("connector", ["jdbc", "s3"])
def test_a_quiet_cluster_processes_every_record_once(connector: str) -> None:
    """Three minutes of six partitions of a hundred records a second."""
    counted = work_of(events_of(scenario()), connector)

    assert (counted.duplicates, counted.gaps, counted.double_run_us) == (0, 0, 0)
    assert counted.partitions == PARTITIONS
    assert counted.span + counted.final_lag == 180 * 100 * PARTITIONS


@pytest.mark.parametrize("connector", ["jdbc", "s3"])
def test_a_worker_that_stops_repeats_nothing(connector: str) -> None:
    """The tasks of a worker that stops commit before they end: no record is processed twice."""
    counted = work_of(events_of(scenario(StopMember(at_ms=75_000, member="w1"))), connector)

    assert (counted.duplicates, counted.gaps) == (0, 0)


@pytest.mark.parametrize("connector", ["jdbc", "s3"])
def test_a_killed_worker_repeats_what_was_done_since_the_last_flush(connector: str) -> None:
    """Offsets were written a minute after the start of the tasks, some seconds before the end."""
    counted = work_of(events_of(scenario(CrashMember(at_ms=75_000, member="w1"))), connector)

    seconds_since_flush = counted.duplicates / (PARTITIONS / TASKS * 100)
    assert 5 < seconds_since_flush < 10
    assert counted.gaps == 0


def test_a_shorter_flush_interval_repeats_less() -> None:
    """The interval bounds what a crash costs."""
    crash = CrashMember(at_ms=75_000, member="w1")
    often = events_of(scenario(crash, settings={"offset.flush.interval.ms": "1000"}))

    assert work_of(often, "jdbc").duplicates <= 1.5 * 2 * 100
    assert work_of(often, "s3").duplicates <= 1.5 * 2 * 100


@pytest.mark.parametrize(
    "happening",
    [
        CrashMember(at_ms=75_000, member="w1"),
        PauseMember(at_ms=75_000, member="w1", for_ms=60_000),
        PartitionNetwork(at_ms=75_000, member="w1", broker=COORDINATOR, for_ms=60_000),
    ],
)
def test_exactly_once_sources_repeat_nothing_whatever_happens(happening: Happening) -> None:
    """Records and offsets are one transaction, and a newer run fences a zombie's."""
    counted = work_of(events_of(scenario(happening, settings=EXACTLY_ONCE)), "jdbc")

    assert (counted.duplicates, counted.gaps) == (0, 0)


def test_a_fenced_task_fails() -> None:
    """A frozen worker's task learns at its next transaction that another run took over."""
    pause = PauseMember(at_ms=75_000, member="w1", for_ms=60_000)
    events = events_of(scenario(pause, settings=EXACTLY_ONCE))

    texts = [e.reason_text or "" for e in events if e.event is Event.LIFECYCLE]
    assert any("ProducerFencedException" in text for text in texts)


def test_a_worker_cut_off_from_its_coordinator_writes_as_a_zombie() -> None:
    """Tasks of a worker that is cut off run beside their successors and write the same records."""
    cut = PartitionNetwork(at_ms=75_000, member="w1", broker=COORDINATOR, for_ms=60_000)
    counted = work_of(events_of(scenario(cut)), "jdbc")

    assert counted.double_run_us > 20_000_000
    assert counted.duplicates > 20 * 100


def test_a_worker_cut_off_from_everything_writes_nothing() -> None:
    """The producer tries in vain, so only what was not committed is repeated."""
    cut = PartitionNetwork(at_ms=75_000, member="w1", for_ms=60_000)
    counted = work_of(events_of(scenario(cut)), "jdbc")

    assert counted.duplicates < 10 * 2 * 100


def test_a_frozen_worker_writes_its_backlog_when_it_wakes_up() -> None:
    """Until the herder has learnt that the tasks are not its own any more."""
    pause = PauseMember(at_ms=75_000, member="w1", for_ms=60_000)
    counted = work_of(events_of(scenario(pause)), "jdbc")
    crashed = work_of(events_of(scenario(CrashMember(at_ms=75_000, member="w1"))), "jdbc")

    assert counted.duplicates > crashed.duplicates
    assert counted.double_run_us > 0


def test_a_consumer_of_the_target_topic_sees_what_tasks_wrote() -> None:
    """The sink reads what the source writes, duplicates and all."""
    work: dict[str, ConnectorWork] = {
        "jdbc": SourceWork(topic="orders", partitions=PARTITIONS),
        "s3": SinkWork(topics=("orders",)),
    }
    events = events_of(scenario(CrashMember(at_ms=75_000, member="w1"), work=work))
    source, sink = work_of(events, "jdbc"), work_of(events, "s3")

    assert sink.span + sink.final_lag <= source.processed
    assert sink.span > source.span - 2_000


def test_a_failing_source_task_remembers_what_it_wrote() -> None:
    """A failed source task is not restarted, keeps its offsets, and its partitions stand still."""
    work = {**WORK, "jdbc": SourceWork(topic="orders", partitions=PARTITIONS, fails_after=1_000)}
    events = events_of(scenario(work=work))

    counted = work_of(events, "jdbc")
    assert (counted.processed, counted.duplicates) == (TASKS * 1_000, 0)
    failures = [e for e in events if "failed after 1000 records" in (e.reason_text or "")]
    assert len(failures) == TASKS


def test_a_failing_sink_task_does_not_commit_its_last_batch() -> None:
    """Half of what it has processed is in the batch that failed, and would be repeated."""
    work = {**WORK, "s3": SinkWork(topics=("events",), fails_after=1_000)}
    events = events_of(scenario(work=work))

    assert work_of(events, "s3").processed == TASKS * 1_000
    commits = [e for e in events if e.event is Event.OFFSET_COMMIT]
    assert sum(entry.offset for e in commits for entry in e.offsets) == TASKS * 500


def test_a_task_that_is_made_to_fail_stands_still() -> None:
    """The source task commits what it wrote; the sink task's partitions go to the other tasks."""
    failures = [FailWork(at_ms=75_000, group_id="cluster", connector=c, task=0) for c in WORK]
    events = events_of(scenario(*failures))

    source, sink = work_of(events, "jdbc"), work_of(events, "s3")
    assert (source.duplicates, sink.gaps) == (0, 0)
    assert source.span < sink.span - 2 * 100 * 100
    assert stretches(events, "jdbc-0")[-1].ts_us < 76_000_000


@pytest.mark.parametrize("connector", ["jdbc", "s3"])
def test_a_paused_connector_processes_nothing_and_repeats_nothing(connector: str) -> None:
    """Tasks of a paused connector keep their partitions, fall behind, and go on where they were."""
    pause = RestRequest(
        at_ms=60_000, member="w1", method="PUT", target=f"/connectors/{connector}/pause"
    )
    resume = RestRequest(
        at_ms=120_000, member="w1", method="PUT", target=f"/connectors/{connector}/resume"
    )
    paused, both = events_of(scenario(pause)), events_of(scenario(pause, resume))

    assert work_of(paused, connector).span < 0.4 * 180 * 100 * PARTITIONS
    counted = work_of(both, connector)
    assert (counted.duplicates, counted.gaps, counted.double_run_us) == (0, 0, 0)
    assert counted.max_lag > 50 * 100
    assert counted.final_lag < 10 * 100 * PARTITIONS


def test_a_task_that_has_failed_is_stopped_at_once() -> None:
    """A worker does not wait for a failed task when it leaves."""
    work = {**WORK, "jdbc": SourceWork(topic="orders", partitions=PARTITIONS, fails_after=1_000)}
    events = events_of(scenario(StopMember(at_ms=75_000, member="w1"), work=work))

    assert work_of(events, "jdbc").processed >= TASKS * 1_000
    assert any(e.reason_text == "gone" and e.client_id == "w1" for e in events)


def slow_to_stop(stop_ms: int) -> dict[str, ConnectorWork]:
    """The work of tasks that keep still for so long when they are to stop."""
    return {
        "jdbc": SourceWork(topic="orders", partitions=PARTITIONS, stop_ms=stop_ms),
        "s3": SinkWork(topics=("events",), stop_ms=stop_ms),
    }


@pytest.mark.parametrize("connector", ["jdbc", "s3"])
def test_a_task_that_stops_too_slowly_is_cancelled_and_commits_nothing(connector: str) -> None:
    """Beyond `task.shutdown.graceful.timeout.ms` nobody waits, and its last offsets are lost."""
    stop = StopMember(at_ms=75_000, member="w1")
    patient = work_of(events_of(scenario(stop, work=slow_to_stop(3_000))), connector)
    cancelled = work_of(events_of(scenario(stop, work=slow_to_stop(8_000))), connector)

    assert patient.duplicates == 0
    assert cancelled.duplicates > 4 * 200


def test_stretches_name_the_task_and_its_run() -> None:
    """A task that moved has two runs, on two workers."""
    events = events_of(scenario(CrashMember(at_ms=75_000, member="w1")))

    moved = [stretches(events, f"jdbc-{number}") for number in range(TASKS)]
    runs = [{(e.attrs["run"], e.client_id) for e in told} for told in moved]
    assert sorted(len(each) for each in runs) == [1, 1, 2]


@pytest.mark.parametrize(
    ("work", "message"),
    [
        ({"nobody": SinkWork(topics=("events",))}, "unknown connector 'nobody'"),
        ({"s3": SinkWork(topics=("nothing",))}, "unknown topic 'nothing'"),
        ({"s3": SinkWork(topics=())}, "at least one topic"),
        ({"s3": SourceWork(topic="orders", partitions=0)}, "partitions=0 must be from 1"),
        ({"s3": SourceWork(topic="orders", fails_after=0)}, "fails_after=0 must be from 1"),
    ],
)
def test_impossible_work_is_refused(work: dict[str, ConnectorWork], message: str) -> None:
    """The message names what is wrong."""
    with pytest.raises(ScenarioError, match=message):
        scenario(work=work)


def test_topics_of_running_tasks_are_active() -> None:
    """REST shows them, for sources and sinks alike, on every worker."""
    asked = [
        RestRequest(at_ms=60_000, member=member, method="GET", target=f"/connectors/{name}/topics")
        for member, name in (("w1", "jdbc"), ("w3", "s3"))
    ]
    told = [each.attrs["body"] for each in events_of(scenario(*asked)) if "body" in each.attrs]
    bodies = [body for body in told if "topics" in body]

    assert bodies == ['{"jdbc":{"topics":["orders"]}}', '{"s3":{"topics":["events"]}}']
