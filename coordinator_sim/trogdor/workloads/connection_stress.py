"""ConnectionStress: connections that are opened and closed at a rate.

Source: kafka trunk, trogdor/.../trogdor/workload/ConnectionStressWorker.java.
"""

from math import inf, nan
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.thread import Blocking
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.java_numbers import as_single
from coordinator_sim.trogdor.rates import THROTTLE_PERIOD_MS, Throttle, per_period
from coordinator_sim.trogdor.workload_specs import ConnectionStressAction, ConnectionStressSpec
from coordinator_sim.trogdor.workloads.clients import ClientFailed, Clients, Report
from coordinator_sim.trogdor.workloads.pace import every, throttled

_STATUS_PERIOD_MS: Final = 5_000
_PATIENCE_MS: Final = 500
_MS_PER_S: Final = 1000.0


class ConnectionStatus(Struct, frozen=True, rename="camel"):
    """How many connections were opened.

    Args:
        total_connections: With those that failed.
        connects_per_sec: Since the start; NaN in the millisecond of the start.
    """

    total_connections: int
    total_failed_connections: int
    connects_per_sec: float


class ConnectionStress:
    """The workload; it goes on until it is stopped.

    DEVIATION: where the settings are refused, the task ends with an error. Threads of Kafka's end
    without a word for some settings, and the task then does nothing until its end.

    Args:
        _task_id: Id of the task; nothing is named after it.
        spec: What to connect to, and how often.
        clients: Where it runs.
        report: Takes statuses and the end.
    """

    def __init__(
        self, _task_id: str, spec: ConnectionStressSpec, clients: Clients, report: Report
    ) -> None:
        self._spec = spec
        self._clients = clients
        self._report = report
        self._settings = {"bootstrap.servers": spec.bootstrap_servers, **spec.common_client_conf}
        self._began_ms = clients.now_ms
        self._total = 0
        self._failed = 0
        self._is_over = False

    def begin(self) -> None:
        """Start to connect."""
        self._began_ms = self._clients.now_ms
        self._clients.start(every(self._clients, _STATUS_PERIOD_MS, self._publish, first_ms=0))
        for _ in range(self._spec.num_threads):
            self._clients.start(self._connect_all())

    def end(self) -> Blocking[None]:
        """Tell the last status, and stop."""
        self._publish()
        self._halt()
        self._clients.interrupt()
        yield from ()

    def _connect_all(self) -> Blocking[None]:
        """Connect again and again. Source: ConnectLoop.run."""
        spec = self._spec
        rate = as_single(as_single(spec.target_connections_per_sec) / spec.num_threads)
        throttle = Throttle(per_period(rate, THROTTLE_PERIOD_MS), THROTTLE_PERIOD_MS)
        try:
            while not self._is_over:
                yield from throttled(throttle, self._clients)
                is_connected = yield from self._connect()
                self._total += 1
                self._failed += not is_connected
        except ClientFailed as error:
            self._halt(str(error))

    def _connect(self) -> Blocking[bool]:
        """Open a connection and use it; return whether that succeeded."""
        if self._spec.action is ConnectionStressAction.CONNECT:
            return (yield from self._clients.connect(self._settings, _PATIENCE_MS))
        admin = self._clients.admin(self._settings)
        try:
            yield from admin.describe_cluster()
        except ClientFailed:
            is_described = False
        else:
            is_described = True
        yield from admin.close()
        return is_described

    def _halt(self, error: str = "") -> None:
        self._is_over = True
        self._report.halt(error)

    def _publish(self) -> None:
        elapsed_ms = self._clients.now_ms - self._began_ms
        # Java divides by zero.
        at_once = inf if self._total else nan
        rate = self._total * _MS_PER_S / elapsed_ms if elapsed_ms else at_once
        status = ConnectionStatus(self._total, self._failed, rate)
        self._report.status(jackson.tree(status))
