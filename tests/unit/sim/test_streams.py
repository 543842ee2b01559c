"""Instances of a Kafka Streams application in virtual time: who processes a task, since when."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import (
    CrashMember,
    DeleteTopic,
    Happening,
    PauseMember,
    RestartMember,
    Scenario,
    StateStoreSpec,
    StopMember,
    StreamsGroupSpec,
    SubtopologySpec,
    TopicSpec,
    scenario_from_json,
    scenario_to_json,
    with_assignor,
    with_settings,
)
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers import check_all
from coordinator_sim_conformance.scenario_timing import circumstances_of, with_calm
from coordinator_sim_scenarios.catalog.streams_deploy import GROUP, INSTANCES
from coordinator_sim_scenarios.catalog.streams_deploy import SCENARIO as DEPLOY
from coordinator_sim_scenarios.catalog.streams_lost_disk import SCENARIO as LOST_DISK

QUICK = {
    "group.streams.heartbeat.interval.ms": "1000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.initial.rebalance.delay.ms": "1000",
}
RESTORE_MS = 10_000
"""500 MB at 50 MB a second."""
TASKS = {f"s:{part}_{number}" for part in (0, 1) for number in range(6)}


class Seen:
    """The events of a run."""

    def __init__(self) -> None:
        self.events: list[TraceEvent] = []

    def record(self, event: TraceEvent) -> None:
        """Keep an event."""
        self.events.append(event)

    def gaps(self, from_ms: int = 0) -> dict[str, list[int]]:
        """The times in which each task was processed by nobody, in ms, in order."""
        found: dict[str, list[int]] = {}
        for event in self.events:
            attrs = event.attrs or {}
            if "without_ms" in attrs and event.ts_us >= from_ms * 1_000:
                found.setdefault(attrs["resources"], []).append(int(attrs["without_ms"]))
        return found

    def processed(self) -> dict[str, str]:
        """Who processes each task in the end; a second owner at any time is an error."""
        owners: dict[str, str] = {}
        for event in self.events:
            resources = (event.attrs or {}).get("resources", "").split()
            if event.event is Event.TASKS_STARTED:
                for task in resources:
                    assert task not in owners, f"{task} is processed twice"
                    owners[task] = event.client_id or ""
            elif event.event is Event.TASKS_STOPPED:
                for task in resources:
                    assert owners.pop(task) == event.client_id
        return owners


def run(scenario: Scenario) -> Seen:
    """Run a scenario."""
    seen = Seen()
    run_scenario(scenario, recorder=seen)
    return seen


def story(
    *happenings: Happening, group: StreamsGroupSpec = GROUP, more: Mapping[str, str] | None = None
) -> Scenario:
    """The application of the deploy with short intervals, for two minutes."""
    scenario = structs.replace(DEPLOY, groups=(group,), happenings=happenings, duration_ms=120_000)
    return with_settings(scenario, {**QUICK, **(more or {})})


def test_each_task_is_processed_once_its_store_is_restored() -> None:
    """Stateless tasks begin after the initial delay, the others have 500 MB to read first."""
    seen = run(story())
    begun = {e.attrs["resources"]: e.ts_us for e in seen.events if e.event is Event.TASKS_STARTED}
    stateless = {begun[task] for task in TASKS if task.startswith("s:0")}
    stateful = {begun[task] for task in TASKS if task.startswith("s:1")}
    assert set(seen.processed()) == TASKS
    assert max(stateless) < 3_000_000
    for at_us in stateful:
        assert abs(at_us - min(stateless) - RESTORE_MS * 1_000) <= 300_000
    assert seen.gaps() == {}


def test_a_crash_leaves_tasks_alone_until_the_session_ends() -> None:
    """Then others have to read what the crashed instance had."""
    seen = run(story(CrashMember(at_ms=40_000, member="streams-1")))
    gaps = seen.gaps()
    assert len(gaps) == 4
    for task, (gap_ms,) in gaps.items():
        waits_ms = 0 if task.startswith("s:0") else RESTORE_MS
        assert 5_000 + waits_ms <= gap_ms <= 8_500 + waits_ms, task
    assert "streams-1" not in seen.processed().values()


def test_a_standby_copy_takes_over_without_reading() -> None:
    """The stateful tasks of a stopped instance go where their copies are."""
    stop = StopMember(at_ms=60_000, member="streams-1")
    bare = run(story(stop)).gaps()
    copied = run(story(stop, more={"group.streams.num.standby.replicas": "1"})).gaps()
    worst = {name: max(max(each) for each in found.values()) for name, found in
             (("bare", bare), ("copied", copied))}  # fmt: skip
    assert worst["bare"] >= RESTORE_MS
    assert worst["copied"] <= 2_000


@pytest.mark.parametrize(("group", "reads"), [(GROUP, False), (LOST_DISK.groups[0], True)])
def test_a_restarted_instance_reads_again_what_is_not_on_its_disk(
    group: StreamsGroupSpec, reads: bool
) -> None:
    """A static instance comes back within its session, to the same tasks."""
    static = structs.replace(
        group,
        members=tuple(structs.replace(each, instance_id=each.name) for each in group.members),
    )
    restart = RestartMember(at_ms=40_000, member="streams-1", down_ms=2_000)
    gaps = run(story(restart, group=static)).gaps(from_ms=40_000)
    waits_ms = RESTORE_MS if reads else 0
    own = [gaps[task][0] for task in gaps if task.startswith("s:1")]
    assert len(own) == 2
    assert all(2_000 + waits_ms <= gap_ms <= 4_500 + waits_ms for gap_ms in own)


def test_a_frozen_instance_neither_processes_nor_restores() -> None:
    """Its tasks count as processed by nobody from the beginning of the pause."""
    seen = run(story(PauseMember(at_ms=40_000, member="streams-1", for_ms=20_000)))
    gaps = seen.gaps(from_ms=40_000)
    stateless = [each[0] for task, each in gaps.items() if task.startswith("s:0")]
    assert max(stateless) >= 5_000
    frozen = run(story(PauseMember(at_ms=5_000, member="streams-1", for_ms=3_000)))
    begun = [
        e.ts_us
        for e in frozen.events
        if e.event is Event.TASKS_STARTED and e.attrs["resources"].startswith("s:1")
    ]
    assert 2_500_000 <= max(begun) - min(begun) <= 3_500_000


def test_instances_whose_topic_is_gone_fail_one_after_the_other() -> None:
    """Their commits of its offsets last a minute, then each thread raises, and leaves the group."""
    seen = run(story(DeleteTopic(at_ms=40_000, topic="lines")))
    told = [e for e in seen.events if e.reason_text == "thread raised MissingSourceTopicException"]
    left = [e.client_id for e in seen.events if e.event is Event.MEMBER_LEFT]
    assert [e.client_id for e in told] == left
    assert sorted(left) == list(INSTANCES)
    assert all(e.ts_us >= 100_000_000 for e in told)
    assert seen.processed() == {}


def test_tasks_of_topics_of_different_sizes_are_given_up() -> None:
    """A task has no position in a topic without its partition, and commits none there."""
    part = SubtopologySpec(source_topics=("lines", "orders"))
    group = structs.replace(GROUP, subtopologies=(part,))
    topics = (*DEPLOY.topics, TopicSpec(name="orders", partitions=1, records_per_s=20))
    seen = run(structs.replace(story(), topics=topics, groups=(group,)))
    committed = {
        (each.topic, each.partition)
        for event in seen.events
        if event.event is Event.OFFSET_COMMIT
        for each in event.offsets
    }
    assert committed == {("orders", 0), *(("lines", number) for number in range(6))}
    assert Event.MEMBER_KICKED not in {event.event for event in seen.events}
    assert set(seen.processed()) == {f"s:0_{number}" for number in range(6)}


def test_an_application_that_stood_empty_is_judged_by_no_rule_of_generations() -> None:
    """I7 cannot see when a group with epochs rests."""
    restart = RestartMember(at_ms=30_000, member="streams-1", down_ms=5_000)
    quick = {"max.poll.interval.ms": "5000", "request.timeout.ms": "5000"}
    alone = structs.replace(GROUP, members=GROUP.members[:1], settings=quick)
    scenario = with_calm(story(restart, group=alone))
    report = check_all(run(scenario).events, circumstances_of(scenario))
    assert report.violations == ()
    assert report.of("I7").judged == 0


def test_an_application_is_read_from_a_file_as_it_was_written() -> None:
    """Groups of the type `streams` have their topology in the file."""
    written = scenario_to_json(DEPLOY)
    assert b"streams" in written
    assert scenario_from_json(written) == DEPLOY


READS = SubtopologySpec(source_topics=("lines",))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"subtopologies": ()}, "has no subtopology: give one"),
        ({"topics": ("lines",)}, "name them as source_topics of a subtopology"),
        ({"subtopologies": (SubtopologySpec(),)}, "reads nothing: give it a topic"),
        ({"subtopologies": (SubtopologySpec(source_topics=("no",)),)}, "unknown topic 'no'"),
        (
            {"subtopologies": (SubtopologySpec(repartition_topics=("r",)),)},
            "name it in `writes`",
        ),
        (
            {"subtopologies": (structs.replace(READS, stores={"s": StateStoreSpec(bytes=-1)}),)},
            "bytes of store 's'=-1: must be from 0",
        ),
        (
            {
                "subtopologies": tuple(
                    structs.replace(READS, stores={"s": StateStoreSpec(bytes=1)}) for _ in "ab"
                )
            },
            "'s' is defined twice",
        ),
        ({"commit_interval_ms": 0}, "commit_interval_ms of 'words'=0: must be from 1"),
        ({"settings": {"session.timeout.ms": "50000"}}, "Kafka Streams has no session.timeout.ms"),
        (
            {"members": (structs.replace(GROUP.members[0], client="librdkafka"),)},
            "'streams-1' is Java's",
        ),
    ],
)
def test_an_impossible_application_is_refused(change: Mapping[str, object], told: str) -> None:
    """The message names the value, and what to do."""
    group = structs.replace(GROUP, **change)
    with pytest.raises(ScenarioError, match=told):
        structs.replace(DEPLOY, groups=(group,), happenings=())


def test_brokers_before_the_streams_protocol_are_refused() -> None:
    """It came with 4.2."""
    with pytest.raises(ScenarioError, match=r"profile '4\.1' have no such groups; use 4\.2"):
        structs.replace(DEPLOY, profile="4.1")


def test_an_assignor_of_consumers_is_not_for_kafka_streams() -> None:
    """The broker assigns tasks."""
    with pytest.raises(ConfigError, match="no group of scenario 'streams-deploy' reads it"):
        with_assignor(DEPLOY, "range")


HAPPENINGS = st.lists(
    st.one_of(
        st.builds(
            RestartMember,
            at_ms=st.integers(5_000, 60_000),
            member=st.sampled_from(INSTANCES),
            down_ms=st.integers(0, 10_000),
            graceful=st.booleans(),
        ),
        st.builds(
            PauseMember,
            at_ms=st.integers(5_000, 60_000),
            member=st.sampled_from(INSTANCES),
            for_ms=st.integers(1, 12_000),
        ),
    ),
    max_size=4,
)


@pytest.mark.property
@settings(max_examples=20)
@given(happenings=HAPPENINGS, persistent_volume=st.booleans())
def test_whatever_happens_each_task_is_processed_by_one_instance_in_the_end(
    happenings: list[Happening], persistent_volume: bool
) -> None:
    """Never by two at a time, but for one that is frozen."""
    group = structs.replace(GROUP, persistent_volume=persistent_volume)
    seen = Seen()
    run_scenario(story(*happenings, group=group), recorder=seen)
    if not any(isinstance(each, PauseMember) for each in happenings):
        assert set(seen.processed()) == TASKS
    started = [e for e in seen.events if e.event is Event.TASKS_STARTED]
    assert {e.attrs["resources"] for e in started} == TASKS
