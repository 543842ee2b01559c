"""The coordinator's calls of an agent as HTTP requests, and what their answers say.

Source: kafka trunk, trogdor/.../trogdor/agent/AgentClient.java.
"""

from typing import Final

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.trogdor import contract, jackson
from coordinator_sim.trogdor.agent_status import StatusReader
from coordinator_sim.trogdor.messages import CreateWorkerRequest, StopWorkerRequest
from coordinator_sim.trogdor.refusals import TrogdorRefusal

_OK: Final = 200
_SHOWN_BYTES: Final = 200
_JSON: Final = {"content-type": "application/json"}


def request_of(call: contract.AgentCall) -> HttpRequest:
    """The request of a call."""
    match call:
        case contract.GetStatus():
            return HttpRequest(method="GET", target="/agent/status")
        case contract.PostWorker(worker_id=worker_id, task_id=task_id, spec=spec):
            body = jackson.write(
                CreateWorkerRequest(worker_id=worker_id, task_id=task_id, spec=spec)
            )
            return HttpRequest(
                method="POST", target="/agent/worker/create", headers=_JSON, body=body
            )
        case contract.PutStop(worker_id=worker_id):
            body = jackson.write(StopWorkerRequest(worker_id=worker_id))
            return HttpRequest(method="PUT", target="/agent/worker/stop", headers=_JSON, body=body)
        case _:
            return HttpRequest(method="PUT", target="/agent/shutdown")


class AgentAnswers:
    """Says what the answers of one agent mean."""

    def __init__(self) -> None:
        self._status = StatusReader()

    def answer_of(self, call: contract.AgentCall, response: HttpResponse) -> contract.Answer:
        """The answer in an HTTP response; `Failed` if its status or body is not as expected."""
        if response.status != _OK:
            return contract.Failed(f"HTTP {response.status}: {_line(response.body[:_SHOWN_BYTES])}")
        if not isinstance(call, contract.GetStatus):
            return contract.Called()
        try:
            return contract.AgentStatus(self._status.read(response.body))
        except TrogdorRefusal as refusal:
            return contract.Failed(refusal.message)


def _line(said: bytes) -> str:
    """The bytes of a response as one printable line for a terminal."""
    text = said.decode(errors="replace")
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())
