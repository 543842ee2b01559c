"""A Connect worker's REST API: who is asked next, and what must be signed.

Bench of REST cases: a herder with its REST server, and other workers.

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
from coordinator_sim.connect.rest.signatures import (
    ALGORITHM_HEADER,
    SIGNATURE_HEADER,
    signature_headers,
)
from coordinator_sim.connect.settings.validation import InstalledPlugins
from coordinator_sim.connect.worker import RestView
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.embedded.contents import ConnectAssignment, WorkerMetadata
from coordinator_sim_conformance.client_cases.bench import Bench
from coordinator_sim_conformance.client_cases.case import client_case
from coordinator_sim_conformance.client_cases.worker_bench import LEADER_URL, URL, HerderBench
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


_OTHER_URL: Final = "http://other:8083/"
_RESTART: Final = "/connectors/x/restart"
_TASKS: Final = "/connectors/x/tasks"
_NO_TASKS: Final = b"[]"


def _follower(**settings: str) -> RestBench:
    """Return a follower that knows connector x and runs nothing."""
    worker = RestBench(**settings)
    worker.write_connector("x")
    worker.assign()
    worker.start()
    return worker


def _leader(owner_url: str) -> RestBench:
    """Return a leader that has assigned connector x to the worker at this URL."""
    worker = RestBench()
    worker.leads = True
    worker.write_connector("x")
    held = ConnectAssignment(version=2, connectors=("x",))
    worker.others["other"] = WorkerMetadata(
        version=2, url=owner_url, config_offset=1, allocation=held
    )
    worker.start()
    return worker


def _owner() -> RestBench:
    """Return a follower that runs connector x and its one task."""
    worker = RestBench()
    worker.write_connector("x")
    worker.write_tasks("x", "")
    worker.assign("x", ConnectorTaskId("x", 0))
    worker.start()
    worker.done()
    return worker


@client_case("C-HERD-12.2", "HerderRequestHandler.completeOrForwardRequest")
def a_request_reaches_the_owner_in_two_hops(bench: Bench) -> None:
    """A restart asked of a follower goes to the leader, and from there to the owner."""
    follower, leader, owner = _follower(), _leader(_OTHER_URL), _owner()
    follower.peers[LEADER_URL.rstrip("/")] = leader
    leader.peers[_OTHER_URL.rstrip("/")] = owner
    bench.expect("status", follower.request("POST", _RESTART).status, 204)
    bench.expect("first hop", follower.hops, [f"{_RESTART}?forward=true"])
    bench.expect("second hop", leader.hops, [f"{_RESTART}?forward=false"])
    bench.expect("done there", owner.done(), ["stop c:x", "start c:x"])


@client_case("C-HERD-12.3", "HerderRequestHandler.completeOrForwardRequest")
def after_two_hops_a_request_is_a_conflict(bench: Bench) -> None:
    """A worker that is asked last and would forward answers 409, and so does the first."""
    follower, leader, lost = _follower(), _leader(_OTHER_URL), _follower()
    follower.peers[LEADER_URL.rstrip("/")] = leader
    leader.peers[_OTHER_URL.rstrip("/")] = lost
    answer = follower.request("POST", _RESTART)
    bench.expect("status", answer.status, 409)
    bench.expect(
        "message",
        message_of(answer),
        "Cannot complete request because of a conflicting operation (e.g. worker rebalance)",
    )
    bench.expect("hops of the last", lost.hops, [])


@client_case("C-HERD-14.2", "InternalClusterResource.putTaskConfigs")
def signatures_are_judged_over_http(bench: Bench) -> None:
    """Over HTTP: without headers or with an unknown algorithm 400, badly signed 403, no key 503."""
    leader = _leader(_OTHER_URL)
    key = leader.state.session_key
    good = signature_headers(key.key if key else b"", _NO_TASKS, "HmacSHA256")

    def put(worker: RestBench, headers: dict[str, str]) -> int:
        return worker.request("POST", _TASKS, body=_NO_TASKS, headers=headers).status

    bench.expect("unsigned", put(leader, {}), 400)
    bench.expect("one header", put(leader, {SIGNATURE_HEADER: good[SIGNATURE_HEADER]}), 400)
    bench.expect("unknown algorithm", put(leader, {**good, ALGORITHM_HEADER: "Rot13"}), 400)
    bench.expect("no base64", put(leader, {**good, SIGNATURE_HEADER: "?"}), 400)
    bench.expect("not permitted", put(leader, {**good, ALGORITHM_HEADER: "HmacSHA512"}), 400)
    bench.expect("badly signed", put(leader, {**good, SIGNATURE_HEADER: "AAAA"}), 403)
    bench.expect("well signed", put(leader, good), 204)
    bench.expect("no key yet", put(_follower(), good), 503)
    other_body = leader.request("POST", _TASKS, body=b"[{}]", headers=good)
    bench.expect("another body", other_body.status, 403)


@client_case("C-HERD-14.3", "InternalClusterResource.putTaskConfigs")
def a_forwarded_internal_request_is_unsigned(bench: Bench) -> None:
    """A worker that is no leader any more forwards without the signature, and 400 comes back."""
    leader = _leader(_OTHER_URL)
    key = leader.state.session_key
    stale = _follower(connect_protocol="compatible")
    stale.peers[LEADER_URL.rstrip("/")] = leader
    headers = signature_headers(key.key if key else b"", _NO_TASKS, "HmacSHA256")
    answer = stale.request("POST", _TASKS, body=_NO_TASKS, headers=headers)
    bench.expect("hops", stale.hops, [f"{_TASKS}?forward=true"])
    bench.expect("status", answer.status, 400)
    bench.expect("message", message_of(answer), "Internal request missing required signature")
