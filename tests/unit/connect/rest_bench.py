"""A REST server whose herder says what the test wants, driven without any clock."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from coordinator_sim.connect.effects import (
    AnswerHttp,
    CallHttp,
    HttpRequest,
    HttpResponse,
    WorkerEffect,
)
from coordinator_sim.connect.herding.requests import Outcome, Request
from coordinator_sim.connect.loggers import Loggers
from coordinator_sim.connect.plugins.registry import Plugins
from coordinator_sim.connect.plugins.standard_plugins import standard_plugins
from coordinator_sim.connect.rest.connectors import TopicTracking
from coordinator_sim.connect.rest.forwarding import Stage
from coordinator_sim.connect.rest.server import RestServer, RestSettings
from coordinator_sim.connect.settings.validation import InstalledPlugins
from coordinator_sim.connect.thread import Outbox, Pending, Threads
from tests.unit.connect.worker_bench import CLUSTER_ID, FILE_STREAM

RECORDED = Path(__file__).parent / "recorded"
URL = "http://127.0.0.1:8083/"


def exchanges(recording: str = "rest-4.3.1") -> dict[str, dict[str, Any]]:
    """The exchanges recorded of a real worker, by name."""
    file = RECORDED / f"{recording}.json"
    return {each["name"]: each for each in json.loads(file.read_text(encoding="utf-8"))}


def request_of(exchange: dict[str, Any]) -> HttpRequest:
    """The request of a recorded exchange."""
    given = exchange["request"]
    headers = {name.lower(): value for name, value in given.get("headers", {}).items()}
    headers["host"] = "127.0.0.1:8083"
    return HttpRequest(
        method=given["method"],
        target=given["target"],
        headers=headers,
        body=given.get("body", "").encode(),
    )


class TickStage(NamedTuple):
    """What a herder's thread is doing."""

    description: str
    started_ms: int
    completed_ms: int | None = None


class SaidHerder:
    """A herder that answers as it is told, or never."""

    def __init__(self) -> None:
        self.answer: Callable[[Request], Outcome | None] = lambda _: None
        self.asked: list[Request] = []
        self.is_ready = True
        self.stage: Stage | None = None
        self.logger_levels: Mapping[str, str] = {}

    def submit(self, request: Request) -> Pending[Outcome]:
        """Answer at once, or not at all."""
        self.asked.append(request)
        pending: Pending[Outcome] = Pending()
        outcome = self.answer(request)
        if outcome is not None:
            pending.complete(outcome)
        return pending


class RestBench:
    """One server, its threads and what they asked for."""

    def __init__(
        self,
        *,
        initialized: bool = True,
        has_tasks_config: bool = False,
        tracking: TopicTracking | None = None,
    ) -> None:
        self.outbox = Outbox()
        self.threads = Threads()
        self.herder = SaidHerder()
        self.plugins = InstalledPlugins(Plugins((*standard_plugins(), *FILE_STREAM)))
        settings = RestSettings(
            url=URL,
            has_tasks_config=has_tasks_config,
            tracking=TopicTracking() if tracking is None else tracking,
        )
        self.server = RestServer(settings, self.outbox, Loggers("ERROR"))
        if initialized:
            self.initialize()

    def initialize(self) -> None:
        """Put the resources in."""
        self.server.initialize_resources(self.herder, self.plugins, cluster_id=CLUSTER_ID)

    def start(self, request: HttpRequest, now_ms: int = 0) -> tuple[WorkerEffect, ...]:
        """Let a request run until it waits or is answered; what it asked for."""
        self.outbox.now_ms = now_ms
        self.threads.start(self.server.serve(1, request))
        return self.run(now_ms)

    def run(self, now_ms: int) -> tuple[WorkerEffect, ...]:
        """Let all requests run on."""
        self.outbox.now_ms = now_ms
        self.threads.run(now_ms)
        return self.outbox.take()

    def ask(self, request: HttpRequest, outcome: Outcome | None = None) -> HttpResponse:
        """The answer to a request that the herder answers at once with this outcome."""
        self.herder.answer = lambda _: outcome
        return answer_in(self.start(request))

    def get(self, target: str, outcome: Outcome | None = None) -> HttpResponse:
        """The answer to a GET."""
        return self.ask(HttpRequest(method="GET", target=target), outcome)

    def forwarded(self, effects: tuple[WorkerEffect, ...], answer: HttpResponse) -> HttpResponse:
        """The answer to the user, once another worker has answered this one."""
        call = call_in(effects)
        self.outbox.answered(call.token, answer)
        return answer_in(self.run(0))


def answer_in(effects: tuple[WorkerEffect, ...]) -> HttpResponse:
    """The one answer among the effects."""
    (answer,) = (each for each in effects if isinstance(each, AnswerHttp))
    return answer.response


def call_in(effects: tuple[WorkerEffect, ...]) -> CallHttp:
    """The one call of another worker among the effects."""
    (call,) = (each for each in effects if isinstance(each, CallHttp))
    return call


def shown(response: HttpResponse) -> dict[str, Any]:
    """A response in the form of the recording."""
    body: Any = response.body.decode()
    if body.startswith(("{", "[")):
        body = json.loads(body)
    return {"status": response.status, "headers": dict(response.headers), "body": body}


def error(status: int, message: str) -> dict[str, Any]:
    """An error response in the form of the recording."""
    return {
        "status": status,
        "headers": {"content-type": "application/json"},
        "body": {"error_code": status, "message": message},
    }
