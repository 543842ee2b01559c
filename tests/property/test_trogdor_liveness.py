"""Whether every task of Trogdor ends, whatever its agent goes through."""

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from coordinator_sim.trogdor.contract import Quirks
from coordinator_sim_conformance.trogdor_cases.trogdor import Setup
from coordinator_sim_conformance.trogdor_cases.virtual import VirtualTrogdor

SAMPLE = "org.apache.kafka.trogdor.task.SampleTaskSpec"
NODE = "node02"
BOUND_MS = 30_000
"""How long after the last event and the task's end the task may take to be over."""


class Life(Struct, frozen=True):
    """What one task and its agent go through: instants in ms, None for never.

    Args:
        agent_down: When the agent dies, and for how long.
        stop_at: When a request stops the task.
        stop_takes: How long its work takes to stop.
        stop_fails: Whether the stop ends with an exception without a message.
    """

    duration: int
    agent_down: tuple[int, int | None] | None
    stop_at: int | None
    stop_takes: int
    stop_fails: bool


TIMES = st.integers(0, 8_000)
LIVES = st.builds(
    Life,
    duration=st.integers(1, 6_000),
    agent_down=st.none() | st.tuples(TIMES, st.none() | st.integers(0, 5_000)),
    stop_at=st.none() | TIMES,
    stop_takes=st.integers(0, 4_000),
    stop_fails=st.booleans(),
)


def ends(life: Life, quirks: Quirks, patience_ms: int = BOUND_MS) -> bool:
    """Whether the task is over a while after everything has happened."""
    world = VirtualTrogdor(Setup(), quirks)
    events: list[tuple[int, str]] = []
    if life.agent_down is not None:
        at, down = life.agent_down
        events.append((at, "kill"))
        if down is not None:
            events.append((at + down, "start"))
    if life.stop_at is not None:
        events.append((life.stop_at, "stop"))
    spec = {
        "class": SAMPLE,
        "startMs": 0,
        "durationMs": life.duration,
        "stopTakesMs": life.stop_takes,
        "stopThrows": {NODE: None} if life.stop_fails else {},
    }
    world.coordinator("POST", "/coordinator/task/create", {"id": "t", "spec": spec})
    for at, event in sorted(events, key=lambda each: each[0]):
        world.at(at)
        if event == "kill":
            world.kill_agent(NODE)
        elif event == "start":
            world.start_agent(NODE)
        else:
            world.coordinator("PUT", "/coordinator/task/stop", {"id": "t"})
    last = max([life.duration + life.stop_takes, *(at for at, _ in events)])
    world.at(last + patience_ms)
    state = world.coordinator("GET", "/coordinator/tasks/t").body["state"]
    return bool(state == "DONE")


@pytest.mark.property
@given(life=LIVES)
def test_every_task_ends_where_the_holes_are_closed(life: Life) -> None:
    """Killed, lost, stopped too early or too late: the task is over within half a minute."""
    assert ends(life, Quirks.FIXED)


@pytest.mark.property
def test_a_task_of_kafkas_may_hang_for_ever() -> None:
    """Nobody says where the holes are: a random life falls into one, and is made small."""
    found = find(
        LIVES,
        lambda life: not ends(life, Quirks.KAFKA),
        settings=settings(max_examples=500, database=None, derandomize=True),
    )
    assert not ends(found, Quirks.KAFKA, patience_ms=3_600_000)
    assert ends(found, Quirks.FIXED)
    needless = [found.agent_down, found.stop_at, found.stop_takes, found.stop_fails]
    assert sum(bool(each) for each in needless) == 1, f"{found} is not small"
