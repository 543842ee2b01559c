"""A Connect cluster of three workers, operated by its REST API.

A follower is asked to create a second connector: it asks the leader, which writes the
configuration. The worker that is given the connector makes its tasks, and asks the leader to write
them, in a signed request. Then the connector is paused, resumed, restarted alone and with its
tasks, stopped and deleted.

Look at: the restart asked of worker-3 goes to the leader and from there to the owner. Before the
resources of the REST server are in, every path is 404. A pause needs no rebalance, a stop does,
for the tasks go. A request between workers that is not signed is refused with 400; one that has
been forwarded already is not forwarded again, 409. The last request goes to a worker that is
gone.
"""

import json
from typing import Final

from coordinator_sim.sim.scenario import (
    ConnectGroupSpec,
    CrashMember,
    RestRequest,
    Scenario,
    WorkerSpec,
)

_FILE: Final = {
    "connector.class": "FileStreamSource",
    "file": "orders.txt",
    "topic": "orders",
}
_CREATE: Final = json.dumps({"name": "orders", "config": _FILE})
_ONE: Final = "/connectors/orders"


def _ask(at_ms: int, member: str, method: str, target: str, body: str = "") -> RestRequest:
    return RestRequest(at_ms=at_ms, member=member, method=method, target=target, body=body)


SCENARIO: Final = Scenario(
    name="connect-rest",
    title="A Connect cluster is operated by its REST API",
    story="Three workers; a connector is created through a follower at 30 s, paused, resumed, "
    "restarted, stopped and deleted. Workers forward requests, and sign their own.",
    duration_ms=120_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=tuple(WorkerSpec(name=f"worker-{number}") for number in range(1, 4)),
            connectors={"archive": 1},
        ),
    ),
    happenings=(
        _ask(920, "worker-1", "GET", "/connectors"),
        _ask(1_200, "worker-1", "GET", "/connectors"),
        _ask(30_000, "worker-2", "POST", "/connectors", _CREATE),
        _ask(35_000, "worker-3", "POST", "/connectors", _CREATE),
        _ask(40_000, "worker-3", "GET", f"{_ONE}/status"),
        _ask(45_000, "worker-2", "PUT", f"{_ONE}/pause"),
        _ask(50_000, "worker-2", "PUT", f"{_ONE}/resume"),
        _ask(55_000, "worker-3", "POST", f"{_ONE}/restart"),
        _ask(57_000, "worker-2", "POST", f"{_ONE}/restart?includeTasks=true"),
        _ask(60_000, "worker-1", "POST", f"{_ONE}/tasks", "[]"),
        _ask(65_000, "worker-2", "DELETE", f"{_ONE}?forward=false"),
        _ask(70_000, "worker-3", "PUT", f"{_ONE}/stop"),
        _ask(80_000, "worker-2", "DELETE", f"{_ONE}/offsets"),
        _ask(90_000, "worker-2", "DELETE", _ONE),
        CrashMember(at_ms=95_000, member="worker-3"),
        _ask(96_000, "worker-3", "GET", "/connectors"),
    ),
)
