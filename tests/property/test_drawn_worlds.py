"""Drawn Kafka Streams applications and workloads of Kubernetes: what holds all the while, and when.

A task is processed by one member of the group at a time, and by somebody in the end. A workload has
the pods that its controller may have at each instant, and those that it should have in the end.
"""

from collections import defaultdict
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.sim.kubernetes import Workload
from coordinator_sim.sim.runner import Simulation, run_scenario
from coordinator_sim.sim.scenario import Scenario, StreamsGroupSpec
from coordinator_sim.sim.scenario.kubernetes import fenceposts
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_conformance.checkers import check_all
from coordinator_sim_conformance.checkers.history import REMOVALS
from coordinator_sim_conformance.scenario_timing import circumstances_of
from coordinator_sim_scenarios.strategies import streams_scenarios, workload_scenarios
from tests.property.test_scenarios import SEEDS, how_to_replay

EXCUSES = (
    *("EvictPod", "DrainNode", "PodEvicted", "PodKilled", "CrashMember", "StopMember"),
    *("ScaleWorkload", "ScaleDecision"),
)
"""What makes pods fewer beside the rolling update."""
SETTLED_US = 120_000_000
"""Since the last change of the replicas, until all pods are as they should be."""


def tasks_of(scenario: Scenario) -> set[str]:
    """Every task of the application."""
    (group,) = scenario.groups
    assert isinstance(group, StreamsGroupSpec)
    partitions = {topic.name: topic.partitions for topic in scenario.topics}
    found: set[str] = set()
    for number, part in enumerate(group.subtopologies):
        read = part.source_topics or group.subtopologies[0].source_topics
        count = max(partitions[topic] for topic in read)
        found |= {f"s:{number}_{task}" for task in range(count)}
    return found


def processed(events: list[TraceEvent]) -> dict[str, list[str]]:
    """Who processes each task in the end; that two members of the group do so is an error."""
    owners: dict[str, dict[str, str]] = defaultdict(dict)
    members: dict[str, None] = {}
    running: dict[str, None] = {}
    for event in events:
        member_id, client = event.member_id or "", event.client_id or ""
        tasks = event.attrs.get("resources", "").split()
        if event.event is Event.TASKS_STARTED:
            members[member_id] = None
            for task in tasks:
                owners[task][member_id] = client
                both = [name for each, name in owners[task].items() if each in members]
                assert len(both) == 1, f"{task} is processed by {both} at {event.ts_us} us"
        elif event.event is Event.TASKS_STOPPED:
            for task in tasks:
                assert owners[task].pop(member_id) == client
        elif event.event in REMOVALS or event.event is Event.STATIC_REPLACED:
            members.pop(member_id, None)
        elif event.event is Event.LIFECYCLE and event.reason_text == "started":
            running[client] = None
        elif event.event is Event.LIFECYCLE and event.reason_text == "gone":
            running.pop(client, None)
    found = {task: list(names.values()) for task, names in owners.items() if names}
    assert running or not found
    return found if running else {"nobody": []}


def invariants_hold(scenario: Scenario, events: list[TraceEvent]) -> None:
    """Judge the trace by every invariant."""
    report = check_all(events, circumstances_of(scenario))
    assert not report.violations, [f"{each.invariant} {each.message}" for each in report.violations]


def check_streams(scenario: Scenario, seed: int) -> None:
    """Run the application and a quiet time."""
    recorder = MemoryRecorder()
    run_scenario(scenario, seed=seed, recorder=recorder, shuffle_ties=True)
    invariants_hold(scenario, recorder.events)
    found = processed(recorder.events)
    if "nobody" not in found:
        assert set(found) == tasks_of(scenario)
        assert {len(names) for names in found.values()} == {1}


class Watch:
    """A workload looked at after each instant at which something happens."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.spec = workload.spec
        self._is_excused = True
        """Whether pods may be fewer than the rolling update leaves: not all have been Ready yet."""
        spec = workload.spec
        self._is_ordered = (spec.kind, spec.pod_management) == ("StatefulSet", "OrderedReady")
        self._is_recreated = (spec.kind, spec.strategy) == ("Deployment", "Recreate")
        """Whether a roll-out ends all old pods before it makes new ones."""
        self._replicas = workload.replicas
        self._changed_us = 0
        self._stopped: dict[str, None] = {}
        """Members that StopMember has stopped, Ready until their processes end."""
        self._count = 0

    def look(self, now_us: int, events: list[TraceEvent]) -> None:
        """Check the pods that are there."""
        workload, replicas = self.workload, self.workload.replicas
        active = workload.active
        if replicas != self._replicas:
            self._replicas, self._changed_us = replicas, now_us
        faults = [each.reason_text for each in events if each.event is Event.FAULT]
        if any(each in EXCUSES for each in faults):
            self._is_excused, self._changed_us = True, now_us
        elif "RollOut" in faults:
            self._changed_us = now_us
            self._is_excused |= self._is_recreated
        self._look_at_stopped(events)
        surge, unavailable = fenceposts(self.spec, replicas)
        if self._is_recreated:
            surge = 0
            revisions = {pod.revision for pod in workload.pods.values()}
            assert len(revisions) <= 1, f"pods of revisions {revisions} at {now_us} us"
        if self.spec.kind != "Deployment":
            surge, unavailable = 0, 1
            if self._is_ordered:
                # Pods that are too many end one after the other.
                surge = max(self._count - replicas, 0)
                self._look_at_order(now_us)
        assert len(active) <= replicas + surge, f"{len(active)} pods at {now_us} us"
        self._count = len(active)
        lowest = replicas - unavailable
        # A rolling update leaves so many available: Ready for minReadySeconds.
        available = sum(pod.is_available for pod in active.values())
        if available >= replicas:
            self._is_excused = False
        assert self._is_excused or available >= lowest, (
            f"{available} of {replicas} are available at {now_us} us"
        )

    def _look_at_stopped(self, events: list[TraceEvent]) -> None:
        """Excuse the end of a stopped member's process: it closes for as long as it needs."""
        for event in events:
            name = event.attrs.get("member", "")
            if event.reason_text == "StopMember" and name in self.workload.pods:
                self._stopped[name] = None
            elif event.reason_text == "gone" and (event.client_id or "") in self._stopped:
                del self._stopped[event.client_id or ""]
                self._is_excused = True

    def _look_at_order(self, now_us: int) -> None:
        """Each pod is created when all before it are available."""
        pods = self.workload.pods
        for name, pod in pods.items():
            number = int(name.removeprefix("app-"))
            if pod.created_us == now_us:
                before = [pods.get(f"app-{each}") for each in range(number)]
                assert all(each and each.is_available for each in before), name

    def look_at_the_end(self, now_us: int) -> None:
        """All pods are Ready and of the last revision, unless the replicas changed just now."""
        if now_us - self._changed_us < SETTLED_US and self.spec.autoscaler is not None:
            return
        pods = self.workload.pods.values()
        assert len(pods) == self.workload.ready_count == self.workload.replicas
        assert len({pod.revision for pod in pods}) <= 1


def check_workload(scenario: Scenario, seed: int) -> None:
    """Run the workload and a quiet time."""
    recorder = MemoryRecorder()
    simulation = Simulation(scenario, seed=seed, recorder=recorder, shuffle_ties=True)
    watch, seen = Watch(simulation.kubernetes["app"]), 0
    environment, end_us = simulation.world.environment, scenario.duration_ms * 1_000
    while environment.peek() <= end_us:
        now_us = environment.peek()
        while environment.peek() == now_us:
            environment.step()
        watch.look(simulation.now_us, recorder.events[seen:])
        seen = len(recorder.events)
    watch.look_at_the_end(end_us)
    invariants_hold(scenario, recorder.events)


WORLDS: Final = {
    "streams": (streams_scenarios(), check_streams),
    "workloads": (workload_scenarios(), check_workload),
}
EVERY_KIND = pytest.mark.parametrize("kind", WORLDS)


def check(kind: str, data: st.DataObject, seed: int) -> None:
    """Draw a world and check it; a failure has the world's file and seed."""
    worlds, check_world = WORLDS[kind]
    scenario = data.draw(worlds)
    try:
        check_world(scenario, seed)
    except Exception as error:
        error.add_note(how_to_replay(scenario, seed))
        raise


@EVERY_KIND
@settings(max_examples=2, derandomize=True)
@given(data=st.data(), seed=SEEDS)
def test_a_few_drawn_worlds_keep_their_rules(kind: str, data: st.DataObject, seed: int) -> None:
    """A small draw of the property below, for every run of the suite."""
    check(kind, data, seed)


@pytest.mark.property
@EVERY_KIND
@settings(max_examples=8)
@given(data=st.data(), seed=SEEDS)
def test_drawn_worlds_keep_their_rules(kind: str, data: st.DataObject, seed: int) -> None:
    """Whatever happens to instances, pods, brokers and links."""
    check(kind, data, seed)
