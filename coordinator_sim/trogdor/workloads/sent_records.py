"""What the workloads that only produce share: their life, and what they count."""

from abc import ABC, abstractmethod
from functools import partial
from typing import Final, Protocol

from msgspec import Struct

from coordinator_sim.connect.thread import Blocking
from coordinator_sim.trogdor.string_expander import InvalidName
from coordinator_sim.trogdor.workloads.clients import ClientFailed, Clients, Report, Told
from coordinator_sim.trogdor.workloads.histogram import Histogram
from coordinator_sim.trogdor.workloads.pace import every

_LONGEST_LATENCY_MS: Final = 10_000

STATUS_PERIOD_MS: Final = 30_000
"""Time between two statuses of a workload that produces."""


class SentStatus(Struct, frozen=True, rename="camel"):
    """What was sent so far.

    Source: kafka trunk, trogdor/.../trogdor/workload/ConfigurableProducerWorker.java, StatusData.

    Args:
        total_sent: Records with an outcome.
        average_latency_ms: Time from a record's send to its outcome, as a Java float.
    """

    total_sent: int
    average_latency_ms: float
    p50_latency_ms: int
    p95_latency_ms: int
    p99_latency_ms: int


class SentRecords:
    """Records with an outcome, and how long each took.

    QUIRK: a record that failed counts as one that was sent. Source: SendRecordsCallback.

    Args:
        clients: Whose clock counts.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._latencies = Histogram(_LONGEST_LATENCY_MS)

    def sending(self) -> Told:
        """What takes the outcome of a record that is sent now."""
        return partial(self._told, self._clients.now_ms)

    def _told(self, began_ms: int, _failure: str | None) -> None:
        self._latencies.add(self._clients.now_ms - began_ms)

    def status(self) -> SentStatus:
        """What was sent so far."""
        summary = self._latencies.summary()
        return SentStatus(summary.count, summary.average, *summary.percentiles)


class Sending(Protocol):
    """A producer that writes, and what it has written.

    Attributes:
        is_over: Whether it has written for the last time.
    """

    is_over: bool

    def publish(self) -> None:
        """Tell the status."""
        ...

    def run(self) -> Blocking[None]:
        """Write, and end the workload."""
        ...

    def end(self) -> Blocking[None]:
        """Do what `run` does when it is interrupted."""
        ...


class ProducingWorkload(ABC):
    """A workload that makes topics and then writes to them.

    Args:
        clients: Where it runs.
        report: Takes statuses and the end.
    """

    def __init__(self, clients: Clients, report: Report) -> None:
        self._clients = clients
        self._report = report
        self._sending: Sending | None = None

    @abstractmethod
    def _made(self) -> Blocking[Sending]:
        """Make the topics and the producer. Source: Prepare.run of each worker.

        Raises:
            ClientFailed: there is no topic to write to, or it or the producer cannot be made.
            InvalidName: a topic's name has a range that cannot be.
        """

    def begin(self) -> None:
        """Make the topics, then write."""
        self._clients.start(self._prepare())

    def end(self) -> Blocking[None]:
        """Stop; what was handed over is waited for, and the last status is told."""
        self._report.halt()
        self._clients.interrupt()
        if self._sending is not None:
            yield from self._sending.end()

    def _prepare(self) -> Blocking[None]:
        try:
            sending = self._sending = yield from self._made()
        except (ClientFailed, InvalidName) as error:
            self._report.halt(str(error))
            return
        clients = self._clients
        clients.start(
            every(clients, STATUS_PERIOD_MS, sending.publish, until=lambda: sending.is_over)
        )
        clients.start(sending.run())
