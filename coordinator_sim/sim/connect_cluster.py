"""State shared by the workers of one Connect cluster, and the cluster's operator.

The operator uses Connect's REST API. It asks the first worker that listens, which forwards to the
leader as in Connect, and retries a second after a temporary refusal.
"""

from functools import partial
from typing import Final, Protocol
from urllib.parse import quote

import msgspec

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.sim.internal_topics import (
    compact_regularly,
    connector_config,
    create_internal_topics,
    internal_topic_names,
)
from coordinator_sim.sim.rest_operator import OPERATOR
from coordinator_sim.sim.scenario.world import ConnectGroupSpec
from coordinator_sim.sim.world import World

RETRY_US: Final = 1_000_000
"""Wait of the operator after a temporary refusal: a conflict, an error, no worker listening."""
_OK: Final = range(200, 300)
_NOT_FOUND: Final = 404


class RunningWorker(Protocol):
    """A worker's process whose connectors and tasks can be made to fail."""

    def fail(self, resource: str | ConnectorTaskId, trace: str) -> None:
        """Make a connector or a task fail if it runs here."""
        ...


class ConnectCluster:
    """One Connect cluster.

    Args:
        world: Shared parts of the run.
        group: The cluster.
    """

    def __init__(self, world: World, group: ConnectGroupSpec) -> None:
        self._world = world
        self._group = group
        self.names = internal_topic_names(group)
        """Names of the cluster's internal topics."""
        self._running: dict[RunningWorker, None] = {}
        self._listening: dict[str, None] = {}
        self._held_until_us: dict[str, int] = {}
        create_internal_topics(world, group)
        compact_regularly(world, group)

    def enter(self, worker: RunningWorker) -> None:
        """Add a worker's process that begins."""
        self._running[worker] = None

    def leave(self, worker: RunningWorker) -> None:
        """Remove a worker's process that has ended."""
        self._running.pop(worker, None)

    def fail(self, connector: str, task: int | None, trace: str) -> None:
        """Make a connector, or one of its tasks, fail where it runs."""
        resource = connector if task is None else ConnectorTaskId(connector, task)
        for worker in self._running:
            worker.fail(resource, trace)

    def listens(self, url: str, *, listens: bool) -> None:
        """Set whether a worker accepts REST requests at this URL."""
        self._listening.pop(url, None)
        if listens:
            self._listening[url] = None

    # Delayed reading of the config topic.

    def hold_back(self, worker: str, for_us: int) -> None:
        """Stop a worker from reading new records of the config topic for the given time."""
        self._held_until_us[worker] = self._world.environment.now_us + for_us

    def held_until_us(self, worker: str) -> int:
        """Return until when a worker reads no new record of the config topic."""
        return self._held_until_us.get(worker, 0)

    # The operator.

    def set_connector(self, connector: str, tasks: int) -> None:
        """Create a connector, or reconfigure it for another number of tasks."""
        body = msgspec.json.encode(connector_config(self._group, connector, tasks))
        self._order("PUT", f"{_path(connector)}/config", body)

    def remove_connector(self, connector: str) -> None:
        """Delete a connector; an unknown name is ignored."""
        self._order("DELETE", _path(connector))

    def _order(self, method: str, target: str, body: bytes = b"") -> None:
        headers = {"content-type": "application/json"} if body else {}
        self._try(HttpRequest(method=method, target=target, headers=headers, body=body))

    def _try(self, request: HttpRequest) -> None:
        url = next(iter(self._listening), None)
        if url is None:
            self._answered(request, None, None)
        else:
            self._world.http.call(OPERATOR, url, request, partial(self._answered, request))

    def _answered(
        self,
        request: HttpRequest,
        response: HttpResponse | None,
        error: str | None,  # noqa: ARG002 - any error is retried
    ) -> None:
        if response is not None and (response.status in _OK or response.status == _NOT_FOUND):
            return
        environment = self._world.environment
        environment.call_at(environment.now_us + RETRY_US, partial(self._try, request))


def _path(connector: str) -> str:
    return f"/connectors/{quote(connector, safe='')}"
