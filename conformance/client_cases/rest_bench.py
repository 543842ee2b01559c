"""Bench of REST cases: a herder with its REST server, and other workers.

A request to another worker of the case is carried out there at once. No case is here.
"""

import json
from typing import Final

from coordinator_sim.connect.effects import (
    AnswerHttp,
    CallHttp,
    HttpRequest,
    HttpResponse,
    WorkerEffect,
)
from coordinator_sim.connect.loggers import Loggers
from coordinator_sim.connect.plugins.registry import Plugins
from coordinator_sim.connect.rest.server import RestServer, RestSettings
from coordinator_sim.connect.settings.validation import InstalledPlugins
from coordinator_sim.connect.worker import RestView
from coordinator_sim_conformance.client_cases.worker_bench import URL, HerderBench
from coordinator_sim_conformance.script.stage import CaseFailed

_JSON: Final = {"content-type": "application/json"}


class RestBench(HerderBench):
    """A worker with its REST API.

    Args:
        settings: Worker settings by Kafka's names.

    Attributes:
        peers: URL -> the other workers, as far as they run.
        hops: Targets of requests to other workers, in order.
    """

    def __init__(self, **settings: str) -> None:
        super().__init__(**settings)
        self.peers: dict[str, RestBench] = {}
        self.hops: list[str] = []
        self._answers: dict[int, HttpResponse] = {}
        self._server = RestServer(RestSettings(url=URL), self.outbox, Loggers())
        self._server.initialize_resources(
            RestView(self.herder), InstalledPlugins(Plugins(())), cluster_id="cluster"
        )

    def request(
        self,
        method: str,
        target: str,
        *,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
    ) -> HttpResponse:
        """Return the answer to a request that is answered at once.

        Raises:
            CaseFailed: no answer came at once.
        """
        given = {**(_JSON if body else {}), **(headers or {})}
        return self.send(HttpRequest(method=method, target=target, headers=given, body=body))

    def send(self, request: HttpRequest) -> HttpResponse:
        """Return the answer to a request that is answered at once.

        Raises:
            CaseFailed: no answer came at once.
        """
        exchange = len(self._answers) + 1
        self.spawn(self._server.serve(exchange, request))
        self.settle()
        if exchange not in self._answers:
            raise CaseFailed(f"{request.method} {request.target} is not answered at once", ())
        return self._answers[exchange]

    def carry_out_other(self, effect: WorkerEffect) -> None:
        """Carry out this worker's answers, and its requests to its peers."""
        match effect:
            case AnswerHttp(exchange=exchange, response=response):
                self._answers[exchange] = response
            case CallHttp(token=token, url=url, request=request) if self.peers:
                self.hops.append(request.target)
                self.outbox.answered(token, self.peers[url].send(request))
            case _:
                super().carry_out_other(effect)


def message_of(response: HttpResponse) -> str:
    """Return the message of an error."""
    return str(json.loads(response.body)["message"])
