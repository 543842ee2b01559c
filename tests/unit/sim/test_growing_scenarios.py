"""The work of checking a scenario grows with the scenario: members and happenings, together."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec
import pytest

from coordinator_sim.sim.scenario import scenario_from_json

WORKLOAD = "org.apache.kafka.trogdor.workload.ConsumeBenchSpec"
PROCESS_STOP = "org.apache.kafka.trogdor.fault.ProcessStopFaultSpec"
WORLD: dict[str, Any] = {
    "name": "growing",
    "title": "A growing world",
    "story": "As many happenings as members.",
    "duration_ms": 60_000,
    "topics": [{"name": "t", "partitions": 2}],
}


def restarts(count: int) -> dict[str, Any]:
    """Every member restarts with settings of its own."""
    members = [{"name": f"c{number}"} for number in range(count)]
    group = {"type": "consumer", "group_id": "g", "topics": ["t"], "members": members}
    happenings = [
        {
            "kind": "RestartMember",
            "at_ms": number,
            "member": f"c{number}",
            "down_ms": 5,
            "settings": {"session.timeout.ms": str(10_000 + number)},
        }
        for number in range(count)
    ]
    return {**WORLD, "groups": [group], "happenings": happenings}


def stopped_workloads(count: int) -> dict[str, Any]:
    """A workload on every node, and a task that stops it."""
    tasks: list[dict[str, Any]] = []
    for number in range(count):
        times = {"startMs": number, "durationMs": 1_000}
        workload = {"consumerNode": f"n{number}", "consumerGroup": "g", "activeTopics": ["t"]}
        stop = {"nodeNames": [f"n{number}"], "javaProcessName": "ConsumeBenchSpec"}
        tasks += [
            {"id": f"w{number}", "spec": {"class": WORKLOAD, **times, **workload}},
            {"id": f"s{number}", "spec": {"class": PROCESS_STOP, **times, **stop}},
        ]
    return {**WORLD, "tasks": tasks}


def lines_run(text: bytes) -> int:
    """The lines of code that reading a scenario runs, each turn of a loop counted."""
    count = 0

    def trace(_frame: FrameType, event: str, _value: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        scenario_from_json(text)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("world", [restarts, stopped_workloads])
def test_twice_the_members_and_happenings_are_twice_the_work(
    world: Callable[[int], dict[str, Any]],
) -> None:
    """No happening looks at all members."""
    texts = [msgspec.json.encode(world(count)) for count in (50, 100, 200)]
    lines_run(texts[0])  # What is compiled at first use is not counted.
    small, middle, large = map(lines_run, texts)
    assert large - middle < 2.2 * (middle - small)
