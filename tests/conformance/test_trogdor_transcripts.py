"""What a real Trogdor 4.3.1 was asked, asked of ours in virtual time: the answers are the same.

Instants count from the beginning of a recording, ids of the coordinator's workers from the first
one; workers that an agent had before are left out. Java's own words in a refusal (of Jackson, Jetty
or a null pointer) and stacks are not compared. Instants are, but for the part of a heartbeat when a
recording began.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_sim_conformance.trogdor_cases.trogdor import Reply, Setup
from coordinator_sim_conformance.trogdor_cases.virtual import VirtualTrogdor

RECORDINGS: Final = Path(__file__).resolve().parents[2].parent / "shared/samples/trogdor-http"
LEAD_MS: Final = 10_000
"""How long ours runs before a recording begins."""
SLACK_MS: Final = 1_300
"""A heartbeat, and how much longer processes take than virtual time."""
VOLATILE: Final = ("serverStartMs", "nowMs")
INSTANTS: Final = ("startMs", "startedMs", "doneMs")
EPOCH: Final = re.compile(r"\b1795\d{9}\b")
JAVA: Final = re.compile(r"at \[Source|Cannot invoke|cannot be cast")
THROWN: Final = re.compile(r"(worker.start\(\) exception: )(?:[\w.]+Exception: )?([^\n]*)(?s:.*)")
EXPLAINED: Final = {
    ("coordinator-lifecycle", 40): "a worker takes longer to stop on a process",
    ("coordinator-errors", 26): "a duration of 1 ms is over before a process is asked",
}
"""Where answers have to differ; one that does not is an error."""


class Recording:
    """The requests of a file with their answers, in the terms of virtual time."""

    def __init__(self, name: str) -> None:
        path = RECORDINGS / f"{name}.jsonl"
        if not path.is_file():
            pytest.skip("recordings of a real Trogdor are not beside this checkout")
        self.name = name
        self._lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        answers = [(line["t_ms"], line.get("response_body") or "") for line in self._lines]
        self._began_ms = max(
            int(found) - at_ms
            for at_ms, body in answers
            for found in re.findall(r'"(?:startedMs|doneMs|nowMs)":(\d+)', body)
        )
        asked = [_json(line["request_body"]) for line in self._lines]
        bodies = [each for each in asked if isinstance(each, dict)]
        self._tasks = {each["id"] for each in bodies if "id" in each}
        self._own_ids = {str(each.get("workerId", 0)) for each in bodies if "id" not in each}
        workers = [self._workers(_json(body)) for _, body in answers]
        drawn = [int(key) for each in workers for key in each if key not in self._own_ids]
        self._first_id = min(drawn, default=0)

    def exchanges(self) -> Iterator[tuple[dict[str, Any], Reply]]:
        """Each request that was answered, with its answer."""
        for line in self._lines:
            if "status" in line:
                body = _json(self._text(line["response_body"]))
                if isinstance(body, dict) and "workers" in body:
                    workers = {self._rank(key): each for key, each in self._workers(body).items()}
                    body = {key: each for key, each in body.items() if key != "workers"}
                    body |= {"workers": workers} if workers else {}
                request = {
                    **line,
                    "path": self._text(line["path"]),
                    "request_body": self._text(line["request_body"] or ""),
                }
                yield request, Reply(line["status"], body)

    def _workers(self, body: object) -> dict[str, Any]:
        """The workers in an answer that came with this recording."""
        workers = body.get("workers", {}) if isinstance(body, dict) else {}
        return {
            key: each
            for key, each in workers.items()
            if key in self._own_ids or each.get("taskId") in self._tasks
        }

    def _text(self, text: str) -> str:
        return EPOCH.sub(lambda found: str(int(found[0]) - self._began_ms + LEAD_MS), text)

    def _rank(self, worker_id: str) -> str:
        """The id that a worker has where the first one has 0."""
        return worker_id if worker_id in self._own_ids else str(int(worker_id) - self._first_id)


def _json(text: str | None) -> object:
    """The JSON in a body; the text itself where there is none."""
    try:
        return json.loads(text or "")
    except json.JSONDecodeError:
        return text


def differences(path: str, wanted: object, seen: object) -> Iterator[str]:
    """Where an answer is not as wanted."""
    key = path.rpartition(".")[2]
    match wanted, seen:
        case dict(), dict():
            if set(wanted) != set(seen):
                yield f"{path}: wanted {sorted(wanted)}, saw {sorted(seen)}"
            for each in sorted(set(wanted) & set(seen)):
                yield from differences(f"{path}.{each}", wanted[each], seen[each])
            return
        case int(), int() if key in VOLATILE:
            return
        case int(), int() if key in INSTANTS and wanted != -1:
            fits = abs(wanted - seen) <= SLACK_MS
        case str(), str() if key == "error":
            fits = THROWN.sub(r"\1\2", wanted) == THROWN.sub(r"\1\2", seen)
        case str(), str() if "<html>" in wanted:
            fits = "<html>" in seen
        case _:
            fits = wanted == seen
    if not fits:
        yield f"{path}: wanted {wanted!r}, saw {seen!r}"


def of_an_answer(wanted: Reply, seen: Reply) -> list[str]:
    """Where an answer is not as recorded."""
    if wanted.status != seen.status:
        return [f"wanted {wanted.status}, saw {seen.status} {seen.body}"]
    if isinstance(wanted.body, dict) and {"code", "message"} == set(wanted.body):
        of_java = JAVA.search(wanted.body["message"])
        if of_java and isinstance(seen.body, dict):
            return list(differences("code", wanted.body["code"], seen.body.get("code")))
    return list(differences("body", wanted.body, seen.body))


@pytest.mark.parametrize(
    "name", ["coordinator-lifecycle", "coordinator-errors", "agent-lifecycle", "shutdown"]
)
def test_recorded_requests_are_answered_as_by_a_real_trogdor(name: str) -> None:
    """Statuses and JSON are those of the recording."""
    trogdor = VirtualTrogdor(Setup(coordinator="node0", agents=("node1", "node2")))
    found: list[str] = []
    explained = set()

    for request, wanted in Recording(name).exchanges():
        trogdor.at(request["t_ms"] + LEAD_MS)
        seen = trogdor.raw(
            request["to"].partition(":")[2],
            request["method"],
            request["path"],
            request["request_body"].encode(),
            request["request_content_type"],
        )
        wrong = of_an_answer(wanted, seen)
        if wrong and (name, request["seq"]) in EXPLAINED:
            explained.add((name, request["seq"]))
        else:
            asked = f"{request['seq']} {request['method']} {request['path']}"
            found += [f"{asked}: {each}" for each in wrong]

    assert not found, "\n".join(found)
    assert explained == {each for each in EXPLAINED if each[0] == name}


def test_a_wrong_answer_is_noticed() -> None:
    """Another status, state or instant is a difference."""
    state = {"state": "RUNNING", "startedMs": 5_000}

    assert not of_an_answer(Reply(200, state), Reply(200, {**state, "startedMs": 5_900}))
    assert of_an_answer(Reply(200, state), Reply(404, state))
    assert of_an_answer(Reply(200, state), Reply(200, {**state, "state": "DONE"}))
    assert of_an_answer(Reply(200, state), Reply(200, {**state, "startedMs": 7_000}))
    assert of_an_answer(Reply(200, state), Reply(200, {**state, "error": "x"}))
