"""Who operates Connect clusters: sends REST requests to workers, and records the answers."""

from functools import partial
from typing import Final

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.scenario.happenings import RestRequest
from coordinator_sim.sim.world import World
from coordinator_sim.trace.events import Event, TraceEvent

OPERATOR: Final = "operator"
"""Name of the calling end, for latencies."""
_SHOWN: Final = 1_000
"""Characters of an answer's body that the trace keeps."""


def worker_url(worker: str) -> str:
    """The REST URL of a simulated worker, ending with a slash."""
    return f"http://{worker}:8083/"


def send_rest_request(world: World, wanted: RestRequest, group_id: str) -> None:
    """Send a request; what comes of it is recorded as a LIFECYCLE event of the worker."""
    headers = {"content-type": "application/json"} if wanted.body else {}
    request = HttpRequest(
        method=wanted.method, target=wanted.target, headers=headers, body=wanted.body.encode()
    )
    answered = partial(_record, world, wanted, group_id)
    world.http.call(OPERATOR, worker_url(wanted.member).rstrip("/"), request, answered)


def _record(
    world: World,
    wanted: RestRequest,
    group_id: str,
    response: HttpResponse | None,
    error: str | None,
) -> None:
    asked = f"{wanted.method} {wanted.target}"
    attrs = {"method": wanted.method, "target": wanted.target}
    if response is None:
        said = f"{asked}: {error}"
    else:
        said = f"{asked}: {response.status}"
        attrs["status"] = str(response.status)
        attrs["body"] = response.body.decode(errors="replace")[:_SHOWN]
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
