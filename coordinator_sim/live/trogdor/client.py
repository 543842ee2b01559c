"""A client of a Trogdor coordinator or agent.

Source: kafka trunk, trogdor/.../trogdor: coordinator/CoordinatorClient.java,
agent/AgentClient.java, rest/JsonRestServer.java (httpRequest: tries and pauses).
"""

import time
from typing import Final, TypeVar
from urllib.parse import quote, urlencode

import httpx
from msgspec import Struct

from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.listening import bearer
from coordinator_sim.trogdor import jackson, messages
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.states import TaskPhase, TaskState

T = TypeVar("T", bound=Struct)

PAUSES_S: Final = (0.002, 0.01)
"""Pauses between the tries of a request that finds nobody."""
_PATIENCE_S: Final = 60.0
_OK: Final = 200


class TrogdorClient:
    """A client; each request is one round trip.

    Args:
        target: `host:port`.
        token: Token that it wants; empty for none.

    Raises:
        ConfigError: the target is none, or HTTP cannot carry the token.
    """

    def __init__(self, target: str, token: str = "") -> None:
        host, separator, port = target.rpartition(":")
        if not (separator and host and port.isdecimal()):
            raise ConfigError(f"target {target!r} is no HOST:PORT, such as localhost:8889")
        self._base = f"http://{target}"
        self._client = httpx.Client(headers=bearer(token), timeout=_PATIENCE_S, trust_env=False)

    # -- a coordinator -------------------------------------------------------------------------

    def coordinator_status(self) -> messages.CoordinatorStatusResponse:
        """Return when the coordinator began."""
        return self._ask("GET", "/coordinator/status", messages.CoordinatorStatusResponse)

    def coordinator_uptime(self) -> messages.UptimeResponse:
        """Return when the coordinator began, and its present."""
        return self._ask("GET", "/coordinator/uptime", messages.UptimeResponse)

    def create_task(self, task_id: str, spec: TaskSpec) -> None:
        """Create a task.

        Raises:
            TrogdorRefusal: the id is empty, or has another spec.
        """
        self._send(
            "POST", "/coordinator/task/create", messages.CreateTaskRequest(id=task_id, spec=spec)
        )

    def stop_task(self, task_id: str) -> None:
        """Stop a task."""
        self._send("PUT", "/coordinator/task/stop", messages.StopTaskRequest(id=task_id))

    def destroy_task(self, task_id: str) -> None:
        """Forget a task."""
        self._send("DELETE", f"/coordinator/tasks?{urlencode({'taskId': task_id})}")

    def task(self, task_id: str) -> TaskState:
        """Return a task.

        Raises:
            TrogdorRefusal: there is none.
        """
        return self._ask("GET", f"/coordinator/tasks/{quote(task_id, safe='')}", TaskState)

    def tasks(
        self, task_ids: tuple[str, ...] = (), state: TaskPhase | None = None
    ) -> messages.TasksResponse:
        """Return the tasks of these ids and in that state; all of them where none is named."""
        wanted = [("taskId", each) for each in task_ids]
        if state is not None:
            wanted.append(("state", state.value))
        return self._ask("GET", f"/coordinator/tasks?{urlencode(wanted)}", messages.TasksResponse)

    def shut_down_coordinator(self, *, stop_agents: bool) -> None:
        """End the coordinator, and its agents if wanted."""
        asked = messages.CoordinatorShutdownRequest(stop_agents=stop_agents)
        self._send("PUT", "/coordinator/shutdown", asked)

    # -- an agent ------------------------------------------------------------------------------

    def agent_status(self) -> messages.AgentStatusResponse:
        """Return the workers of the agent."""
        return self._ask("GET", "/agent/status", messages.AgentStatusResponse)

    def agent_uptime(self) -> messages.UptimeResponse:
        """Return when the agent began, and its present."""
        return self._ask("GET", "/agent/uptime", messages.UptimeResponse)

    def create_worker(self, worker_id: int, task_id: str, spec: TaskSpec) -> None:
        """Create a worker.

        Raises:
            TrogdorRefusal: the id has another task or spec.
        """
        self._send(
            "POST",
            "/agent/worker/create",
            messages.CreateWorkerRequest(worker_id=worker_id, task_id=task_id, spec=spec),
        )

    def stop_worker(self, worker_id: int) -> None:
        """Stop a worker."""
        self._send("PUT", "/agent/worker/stop", messages.StopWorkerRequest(worker_id=worker_id))

    def destroy_worker(self, worker_id: int) -> None:
        """Stop and forget a worker."""
        self._send("DELETE", f"/agent/worker?workerId={worker_id}")

    def shut_down_agent(self) -> None:
        """End the agent; its work is stopped first."""
        self._send("PUT", "/agent/shutdown")

    # -- inside --------------------------------------------------------------------------------

    def _ask(self, method: str, path: str, kind: type[T]) -> T:
        return jackson.read(self._send(method, path), kind)

    def _send(self, method: str, path: str, asked: object = None) -> bytes:
        """Send a request and return the body of the answer.

        Raises:
            DataError: nobody answers.
            TrogdorRefusal: it was refused.
        """
        body = None if asked is None else jackson.write(asked)
        headers = {} if body is None else {"content-type": "application/json"}
        for pause_s in (*PAUSES_S, None):
            try:
                answer = self._client.request(
                    method, self._base + path, content=body, headers=headers
                )
            except httpx.TransportError as error:
                if pause_s is None:
                    reason = str(error) or type(error).__name__
                    raise DataError(f"{self._base}: {reason}; is it running?") from None
                time.sleep(pause_s)
            else:
                break
        if answer.status_code != _OK:
            raise _refusal(answer)
        return answer.content


def _refusal(answer: httpx.Response) -> TrogdorRefusal:
    """The refusal in an answer; of one without JSON its text."""
    try:
        said = jackson.read(answer.content, messages.ErrorResponse)
    except TrogdorRefusal:
        return TrogdorRefusal(answer.status_code, answer.text[:300])
    return TrogdorRefusal(said.code, said.message)
