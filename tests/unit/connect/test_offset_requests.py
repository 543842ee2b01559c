"""Offsets of source connectors by request: read, altered, forgotten."""

import pytest

from coordinator_sim.connect.effects import FenceProducers, Produce, TargetState
from coordinator_sim.connect.herding import requests
from coordinator_sim_conformance.client_cases.worker_bench import OFFSETS, HerderBench

FILE = {"filename": "a.txt"}
ALTER = requests.AlterOffsets(
    connector="x", offsets=(requests.ConnectorOffset(FILE, {"position": 7}),)
)


def _leader(class_name: str = "Source", *, stopped: bool = True, **settings: str) -> HerderBench:
    """A leader with a connector that is stopped and has no tasks."""
    bench = HerderBench(**settings)
    bench.leads = True
    bench.write_connector("x", **{"connector.class": class_name})
    bench.write_target_state("x", TargetState.STOPPED if stopped else TargetState.STARTED)
    bench.write_tasks("x")
    bench.write(OFFSETS, '["x",{"filename":"b.txt"}]', b'{"position":3}')
    bench.start()
    return bench


def _kind(outcome: requests.Outcome) -> requests.ErrorKind | None:
    return outcome.kind if isinstance(outcome, requests.RequestFailed) else None


def test_offsets_are_read_to_the_end_of_the_topic() -> None:
    """Whatever was written before the request is in the answer."""
    bench = _leader()
    bench.write(OFFSETS, '["x",{"filename":"c.txt"}]', b'{"position":4}')
    answer = bench.answer(requests.GetOffsets("x"))
    assert answer == requests.ConnectorOffsets(
        (
            requests.ConnectorOffset({"filename": "b.txt"}, {"position": 3}),
            requests.ConnectorOffset({"filename": "c.txt"}, {"position": 4}),
        )
    )


def test_altered_offsets_are_written() -> None:
    """Key and value as a task would write them."""
    bench = _leader()
    answer = bench.answer(ALTER)
    assert isinstance(answer, requests.Message)
    assert "altered successfully" in answer.message
    assert bench.records(OFFSETS)[-1] == ('["x",{"filename":"a.txt"}]', b'{"position":7}')


def test_reset_writes_tombstones() -> None:
    """For every partition that has an offset; the second time there is none."""
    bench = _leader()
    bench.answer(requests.ResetOffsets("x"))
    assert bench.records(OFFSETS)[-1] == ('["x",{"filename":"b.txt"}]', None)
    count = len(bench.records(OFFSETS))
    assert isinstance(bench.answer(requests.ResetOffsets("x")), requests.Message)
    assert len(bench.records(OFFSETS)) == count


def test_with_exactly_once_support_tasks_are_fenced_first() -> None:
    """Then everything is checked once more, and written."""
    bench = _leader(exactly_once_source_support="enabled")
    bench.write("configs", "tasks-fencing-x", b'{"task-count":2}')
    bench.write_tasks("x")
    bench.run(1_000)
    assert isinstance(bench.answer(ALTER), requests.Message)
    assert len(bench.all_asked(FenceProducers)) == 1


def test_a_fencing_that_fails_leaves_the_offsets_alone() -> None:
    """The answer says so."""
    bench = _leader(exactly_once_source_support="enabled")
    bench.write("configs", "tasks-fencing-x", b'{"task-count":2}')
    bench.write_tasks("x")
    bench.run(1_000)
    bench.failures[FenceProducers] = ["ClusterAuthorizationException"]
    answer = bench.answer(ALTER)
    assert isinstance(answer, requests.RequestFailed)
    assert "prior to modifying offsets" in answer.message
    assert len(bench.records(OFFSETS)) == 1


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (requests.GetOffsets("unknown"), requests.ErrorKind.NOT_FOUND),
        (requests.ResetOffsets("unknown"), requests.ErrorKind.NOT_FOUND),
        (requests.AlterOffsets(connector="x", offsets=()), requests.ErrorKind.CONNECT),
    ],
)
def test_what_cannot_be_done_is_refused(
    request_: requests.Request, kind: requests.ErrorKind
) -> None:
    """Unknown connectors, and no offsets at all."""
    assert _kind(_leader().answer(request_)) is kind


def test_a_connector_that_is_not_stopped_keeps_its_offsets() -> None:
    """The connector's tasks could write their offsets at any time."""
    assert _kind(_leader(stopped=False).answer(ALTER)) is requests.ErrorKind.BAD_REQUEST


def test_only_the_leader_changes_offsets() -> None:
    """A follower names it."""
    bench = HerderBench()
    bench.assign()
    bench.start()
    assert _kind(bench.answer(ALTER)) is requests.ErrorKind.NOT_LEADER


def test_a_write_that_fails_is_answered() -> None:
    """With the cause."""
    bench = _leader()
    bench.failures[Produce] = ["RecordTooLargeException"]
    assert isinstance(bench.answer(ALTER), requests.RequestFailed)


def test_a_topic_that_cannot_be_read_is_answered() -> None:
    """Before anything is changed."""
    bench = _leader()
    bench.hold("configs")
    bench.write_connector("y")
    answer = bench.ask(ALTER)
    bench.run(3_000)
    outcome = answer.result()
    assert isinstance(outcome, requests.RequestFailed)
    assert "Failed to read to end" in outcome.message
