"""A coordinator in virtual time whose agents answer what a test says."""

import json
from collections.abc import Callable
from typing import Any, Final

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.sim.environment import Environment
from coordinator_sim.trogdor.agent_calls import AgentAnswers, request_of
from coordinator_sim.trogdor.contract import AgentCall, Answer, Quirks
from coordinator_sim.trogdor.coordinator_driver import CoordinatorDriver, Respond
from coordinator_sim.trogdor.rest import CoordinatorRest
from coordinator_sim.trogdor.specs import NoOpTaskSpec
from coordinator_sim.trogdor.topology import topology_of

NO_OP: Final = "org.apache.kafka.trogdor.task.NoOpTaskSpec"

Says = Callable[[HttpRequest], HttpResponse | None]
"""What an agent answers to a request; None for nothing, ever."""


def ok(body: object = None) -> HttpResponse:
    """An answer of 200 with a JSON body; bytes are sent as they are."""
    told = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
    return HttpResponse(status=200, body=told)


def status(workers: object) -> HttpResponse:
    """An agent's status with these workers."""
    return ok({"serverStartMs": 0, "workers": workers})


def worker(state: str, task_id: str, **fields: object) -> dict[str, object]:
    """A worker as an agent tells it, of a task that does nothing for a minute."""
    spec = {"class": NO_OP, "startMs": 0, "durationMs": 60_000}
    times = {} if state == "STARTING" else {"startedMs": 0}
    return {"state": state, "taskId": task_id, "spec": spec, **times, **fields}


class LyingAgents:
    """A coordinator, and agents that are nothing but answers.

    Args:
        agents: What the agent of each node answers.
        quirks: See `Quirks`.
        late_ms: How long every answer takes.

    Attributes:
        asked: Every request to an agent: instant, node, method and target.
    """

    def __init__(
        self, agents: dict[str, Says], quirks: Quirks = Quirks.KAFKA, *, late_ms: int = 0
    ) -> None:
        self._environment = Environment()
        self._agents = agents
        self._late_us = late_ms * 1_000
        self._answers = {node: AgentAnswers() for node in agents}
        self.asked: list[tuple[int, str, str]] = []
        nodes = {node: {"trogdor.agent.port": "8888"} for node in agents}
        self._driver = CoordinatorDriver(
            self._environment, topology_of(nodes), self._call, quirks=quirks
        )
        self._rest = CoordinatorRest(self._driver, lambda: None)

    def at(self, at_ms: int) -> None:
        """Let time pass until an instant."""
        self._environment.run_until(at_ms * 1_000)

    def create(self, task_id: str, *, start_ms: int = 0, duration_ms: int = 60_000) -> None:
        """Create a task that does nothing on every node."""
        self._driver.create_task(task_id, NoOpTaskSpec(start_ms=start_ms, duration_ms=duration_ms))

    def stop(self, task_id: str) -> None:
        """Stop a task."""
        self._driver.stop_task(task_id)

    def destroy(self, task_id: str) -> None:
        """Forget a task."""
        self._driver.destroy_task(task_id)

    def task(self, task_id: str) -> dict[str, Any]:
        """A task as REST shows it."""
        answers: list[HttpResponse] = []
        request = HttpRequest(method="GET", target=f"/coordinator/tasks/{task_id}")
        self._rest.handle(request, answers.append)
        shown: dict[str, Any] = json.loads(answers[0].body)
        return shown

    def asked_of(self, node: str, what: str) -> list[int]:
        """When a node's agent was asked for something, such as `GET /agent/status`."""
        return [at for at, asked, request in self.asked if (asked, request) == (node, what)]

    def _call(self, node: str, call: AgentCall, respond: Respond) -> None:
        request = request_of(call)
        now_us = self._environment.now_us
        self.asked.append((now_us // 1_000, node, f"{request.method} {request.target}"))
        said = self._agents[node](request)
        if said is None:
            return
        answer: Answer = self._answers[node].answer_of(call, said)
        if self._late_us:
            self._environment.call_at(now_us + self._late_us, lambda: respond(answer))
        else:
            respond(answer)


class HonestAgent:
    """Tells the workers that it was asked to create; they run until they are stopped.

    Attributes:
        workers: By id, as told.
    """

    def __init__(self) -> None:
        self.workers: dict[str, dict[str, Any]] = {}

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer a request."""
        if request.target == "/agent/status":
            return status(self.workers)
        asked = json.loads(request.body)
        worker_id = str(asked["workerId"])
        if request.target == "/agent/worker/create":
            told = {"taskId": asked["taskId"], "spec": asked["spec"], "startedMs": 0}
            self.workers[worker_id] = {"state": "RUNNING", **told}
        elif worker_id in self.workers:
            self.workers[worker_id] |= {"state": "DONE", "doneMs": 1}
        return ok()
