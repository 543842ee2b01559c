"""Requests are understood, and tasks are chosen, as Kafka's coordinator does."""

import pytest

from coordinator_sim.trogdor import messages
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import NoOpTaskSpec
from coordinator_sim.trogdor.states import NOT_YET, TaskPhase, WorkerPhase, WorkerState

FOO = ("foo", 5, NOT_YET, TaskPhase.RUNNING)
BAR = ("bar", NOT_YET, NOT_YET, TaskPhase.PENDING)
OLD = ("old", 1, 3, TaskPhase.DONE)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({}, ["foo", "bar", "old"]),
        ({"taskId": ["foo", "baz"]}, ["foo"]),
        ({"firstStartMs": ["1"]}, ["foo", "old"]),
        ({"firstStartMs": ["2"]}, ["foo"]),
        ({"firstStartMs": ["10"], "firstEndMs": ["10"]}, []),
        ({"lastStartMs": ["4"]}, ["old"]),
        ({"lastStartMs": ["5"]}, ["foo", "old"]),
        ({"firstEndMs": ["3"]}, ["old"]),
        ({"firstEndMs": ["4"]}, []),
        ({"lastEndMs": ["2"]}, []),
        ({"lastEndMs": ["3"]}, ["old"]),
        ({"firstStartMs": ["-5"], "lastStartMs": ["-5"]}, ["foo", "bar", "old"]),
        ({"state": ["PENDING"]}, ["bar"]),
        ({"state": [""], "unknown": ["1"]}, ["foo", "bar", "old"]),
        ({"firstStartMs": [" "]}, ["foo", "bar", "old"]),
    ],
)
def test_tasks_are_chosen_by_their_real_times(
    query: dict[str, list[str]], shown: list[str]
) -> None:
    """H04: a task that has not started or ended is before every first instant."""
    request = messages.TasksRequest.of_query(query)

    assert [
        task_id
        for task_id, started_ms, done_ms, state in (FOO, BAR, OLD)
        if request.matches(task_id, started_ms=started_ms, done_ms=done_ms, state=state)
    ] == shown


def test_an_unknown_state_is_refused_in_plain_text() -> None:
    """400, in the words that Kafka answers without JSON."""
    with pytest.raises(messages.PlainTextRefusal) as refused:
        messages.TasksRequest.of_query({"state": ["pending"]})

    words = "State pending is invalid. Must be one of [PENDING, RUNNING, STOPPING, DONE]"
    assert messages.ErrorResponse.of(refused.value) == messages.ErrorResponse(
        code=400, message=words
    )


@pytest.mark.parametrize("text", ["abc", "1.5", "9223372036854775808", "1_0"])
def test_a_query_number_that_does_not_parse_is_a_failure(text: str) -> None:
    """500, though the message says 404."""
    with pytest.raises(TrogdorRefusal, match="HTTP 404 Not Found") as refused:
        messages.DestroyWorkerRequest.of_query({"workerId": [text]})

    assert refused.value.code == 500


def test_a_query_without_an_id_names_the_empty_task_and_worker_zero() -> None:
    """The coordinator refuses the empty id; 0 is a worker like others."""
    assert messages.DestroyTaskRequest.of_query({}).id == ""
    assert messages.DestroyTaskRequest.of_query({"taskId": ["a", "b"]}).id == "a"
    assert messages.DestroyWorkerRequest.of_query({}).worker_id == 0
    assert messages.DestroyWorkerRequest.of_query({"workerId": ["-5"]}).worker_id == -5


def test_workers_ascend_by_id() -> None:
    """Ids are ordered as numbers, not as texts."""
    worker = WorkerState(state=WorkerPhase.STARTING, task_id="t", spec=NoOpTaskSpec())

    assert list(
        messages.AgentStatusResponse(workers={101: worker, 9: worker, -5: worker}).workers
    ) == [-5, 9, 101]
