"""Tasks of connectors: what a rebalance of the workers makes of the records."""

import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.scenario import (
    ConnectGroupSpec,
    ConnectorWork,
    CrashMember,
    FailWork,
    Happening,
    PartitionNetwork,
    PauseMember,
    RestRequest,
    Scenario,
    SinkWork,
    SourceWork,
    StopMember,
    TopicSpec,
    WorkerSpec,
)
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.work import WorkCount, count_work
from tests.simulated import events_of, scenario_of

TASKS = 3
PARTITIONS = 6
COORDINATOR = 2
"""The broker that coordinates the workers' group."""
EXACTLY_ONCE = {"exactly.once.source.support": "enabled"}
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
