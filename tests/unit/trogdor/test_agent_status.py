"""The status of an agent, written and read in parts, is what it is as a whole."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.agent_status import StatusReader, StatusWriter
from coordinator_sim.trogdor.messages import AgentStatusResponse
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import NoOpTaskSpec
from coordinator_sim.trogdor.states import WorkerPhase, WorkerState
from tests.unit.trogdor.lying_agents import worker

STATES = st.builds(
    WorkerState,
    state=st.just(WorkerPhase.DONE),
    task_id=st.text(max_size=3),
    spec=st.builds(NoOpTaskSpec, duration_ms=st.integers(0, 3)),
    started_ms=st.integers(0, 3),
    done_ms=st.integers(0, 3),
    status=st.none()
    | st.booleans()
    | st.integers(0, 3)
    | st.sampled_from([0.0, 1.0])
    | st.dictionaries(st.text(max_size=2), st.text()),
    error=st.text(max_size=3),
)
WORKERS = st.dictionaries(st.integers(-3, 12), STATES, max_size=6).map(
    lambda found: dict(sorted(found.items()))
)


@given(st.lists(WORKERS, min_size=1, max_size=4), st.integers(0, 5))
def test_what_is_written_in_parts_is_the_whole(told: list[dict[int, WorkerState]], at: int) -> None:
    """Whatever was told before, every status is written as Jackson does, and read again equal."""
    writer, reader = StatusWriter(), StatusReader()
    for workers in told:
        body = writer.write(at, workers)
        whole = AgentStatusResponse(server_start_ms=at, workers=workers)
        assert body == jackson.write(whole)
        assert list(reader.read(body).items()) == list(
            jackson.read(body, AgentStatusResponse).workers.items()
        )


def test_a_worker_that_has_not_changed_is_not_read_again() -> None:
    """The same bytes are the same value; others are another one."""
    reader = StatusReader()
    first = {"1": worker("DONE", "t"), "2": worker("RUNNING", "t", status=1)}
    before = reader.read(json.dumps({"workers": first}).encode())
    second = {**first, "2": worker("RUNNING", "t", status=2)}
    after = reader.read(json.dumps({"workers": second}).encode())

    assert after[1] is before[1]
    assert after[2].status == 2


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        '{"workers":{}}',
        '{"serverStartMs":"5"}',
        '{"serverStartMs":9223372036854775808}',
        '/* hi */ {"workers":{}} and more',
        '{"workers":{"10":@,"9":@}}',
        '{"workers":{"+1":@,"1":@}}',
        '{"workers":{"1":/* one */@}}',
        '{"workers":null}',
        '{"workers":{"1":null}}',
        '{"workers":{"1":[]}}',
        '{"workers":{"":@}}',
        '{"colour":1}',
        "[]",
        "",
    ],
)
def test_odd_answers_are_taken_or_refused_as_a_whole_one_is(body: str) -> None:
    """Comments, numbers as text, ids out of order: Jackson's rules hold for the parts too."""
    said = body.replace("@", json.dumps(worker("DONE", "t"))).encode()
    try:
        whole = dict(jackson.read(said, AgentStatusResponse).workers)
    except TrogdorRefusal:
        with pytest.raises(TrogdorRefusal):
            StatusReader().read(said)
    else:
        assert list(StatusReader().read(said).items()) == list(whole.items())
