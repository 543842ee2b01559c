"""Bodies that a real Trogdor 4.3.1 was sent and answered are read, and written again equal."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from coordinator_sim.trogdor import jackson, messages
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.states import TaskState

REPO = Path(__file__).resolve().parents[3]
SAMPLES = [top / "shared" / "samples" / "trogdor-http" for top in REPO.parents[:2]]
FILES = sorted(path for folder in SAMPLES for path in folder.glob("*.jsonl"))
REQUESTS: dict[str, type[Struct]] = {
    "POST /coordinator/task/create": messages.CreateTaskRequest,
    "PUT /coordinator/task/stop": messages.StopTaskRequest,
    "PUT /coordinator/shutdown": messages.CoordinatorShutdownRequest,
    "POST /agent/worker/create": messages.CreateWorkerRequest,
    "PUT /agent/worker/stop": messages.StopWorkerRequest,
}
ANSWERS: dict[str, type[Struct]] = {
    "GET /coordinator/status": messages.CoordinatorStatusResponse,
    "GET /coordinator/uptime": messages.UptimeResponse,
    "GET /coordinator/tasks": messages.TasksResponse,
    "GET /coordinator/tasks/": messages.TasksResponse,
    "GET /agent/status": messages.AgentStatusResponse,
    "GET /agent/uptime": messages.UptimeResponse,
}
AFTER_READING = ("this.id", "cannot be cast", "newTaskWorker", "HTTP 4", "Invalid empty ID")
"""Words of refusals that come after the body was read, or without reading it."""

pytestmark = pytest.mark.skipif(
    not FILES, reason="needs the shared samples (trogdor-http) beside the repository"
)


def exchanges() -> list[dict[str, Any]]:
    """Every request of every file that was answered."""
    lines = [line for path in FILES for line in path.read_text("utf-8").strip().split("\n")]
    return [one for one in map(json.loads, lines) if "status" in one]


def answer_kind(exchange: dict[str, Any]) -> type[Struct]:
    """What the answer of an exchange is."""
    if exchange["status"] != 200:
        return messages.ErrorResponse
    path = f"{exchange['method']} {exchange['path'].partition('?')[0]}"
    if path.startswith("GET /coordinator/tasks/") and path != "GET /coordinator/tasks/":
        return TaskState
    return ANSWERS.get(path, messages.Empty)


def is_json(exchange: dict[str, Any]) -> bool:
    """Whether the answer is JSON, rather than a page of the HTTP server."""
    return bool(str(exchange["response_body"] or "").startswith("{"))


def test_every_answer_is_written_again_equal() -> None:
    """All answers in JSON, states of tasks and workers among them."""
    answered = [one for one in exchanges() if is_json(one)]

    assert len(answered) > 300
    for one in answered:
        again = jackson.text(jackson.read(one["response_body"], answer_kind(one)))
        assert without_null(again) == without_null(one["response_body"])


def without_null(text: str) -> str:
    """A text without statuses that are null: a status of {} is not written, and read as null."""
    return text.replace(',"status":null', "")


def request_kind(exchange: dict[str, Any]) -> type[Struct] | None:
    """What the request of an exchange is; None without a body."""
    return REQUESTS.get(f"{exchange['method']} {exchange['path']}")


def test_every_request_that_was_taken_is_read_and_written_again() -> None:
    """What Kafka's own coordinator wrote is equal again as text, what was typed as a value."""
    texts = 0
    for one in exchanges():
        kind, body = request_kind(one), one["request_body"]
        if kind is None or body is None or one["status"] != 200:
            continue
        value = jackson.read(body, kind)
        assert jackson.read(jackson.write(value), kind) == value
        texts += jackson.text(value) == body
    assert texts > 50


def test_every_request_is_refused_with_kafkas_code() -> None:
    """Bodies that Kafka refused to read: its codes are ours."""
    refused = 0
    for one in exchanges():
        kind, words = request_kind(one), one["response_body"] or ""
        if kind is None or one["status"] in {200, 409} or any(w in words for w in AFTER_READING):
            continue
        with pytest.raises(TrogdorRefusal) as refusal:
            jackson.read(one["request_body"] or "", kind)
        assert refusal.value.code == one["status"], one["request_body"]
        refused += 1
    assert refused > 20


def test_what_java_fails_on_later_is_read() -> None:
    """A request without id or spec is read: who handles it refuses it."""
    later = 0
    for one in exchanges():
        kind, words = request_kind(one), one["response_body"] or ""
        if kind and one["status"] == 500 and any(w in words for w in AFTER_READING[:3]):
            jackson.read(one["request_body"], kind)
            later += 1
    assert later > 4
