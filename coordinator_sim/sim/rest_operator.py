"""The operator of Connect clusters: sends REST requests to workers, and records the answers."""

from functools import partial
from typing import Final

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.sim.scenario.happenings import RestRequest
from coordinator_sim.sim.world import World
from coordinator_sim.trace.events import Event, TraceEvent

OPERATOR: Final = "operator"
"""Name of the operator's end, for latencies."""
_SHOWN: Final = 1_000
"""Number of characters of an answer's body that the trace keeps."""


def worker_url(worker: str) -> str:
    """Return the REST URL of a simulated worker, ending with a slash."""
    return f"http://{worker}:8083/"


def send_rest_request(world: World, wanted: RestRequest, group_id: str) -> None:
    """Send a request; its outcome is recorded as a LIFECYCLE event of the worker."""
    headers = {"content-type": "application/json"} if wanted.body else {}
    request = HttpRequest(
        method=wanted.method, target=wanted.target, headers=headers, body=wanted.body.encode()
    )
    answered = partial(_record, world, wanted, group_id)
    world.http.call(OPERATOR, worker_url(wanted.member).rstrip("/"), request, answered)


def _first_words(body: str) -> str:
    """Return the part of a body that the trace keeps, in one line."""
    line = " ".join(body.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}..."


def _record(
    world: World,
    wanted: RestRequest,
    group_id: str,
    response: HttpResponse | None,
    error: str | None,
) -> None:
    attrs = {"method": wanted.method, "target": wanted.target}
    if response is None:
        said = f"did not answer: {error}"
    else:
        said = f"answered {response.status}"
        if response.body.startswith((b"{", b"[")):
            attrs["body"] = _first_words(response.body.decode(errors="replace"))
    world.record(
        TraceEvent(
            event=Event.LIFECYCLE,
            ts_us=world.environment.now_us,
            group_id=group_id,
            client_id=wanted.member,
            reason_text=said,
            attrs=attrs,
        )
    )
