"""One incarnation of a process that runs a client port: its connections, alarm and pauses.

The application's work between two polls is in `consumers` and `workers`. This module knows no
groups.
"""

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial

from coordinator_sim.clients.contract import DrivenPort
from coordinator_sim.clients.effects import (
    COORDINATOR_NODE_OFFSET,
    Closed,
    CommitCompleted,
    Connect,
    Disconnect,
    PollReturned,
    ResetPositions,
    RunCallback,
    Send,
)
from coordinator_sim.connect.effects import WorkerEffect
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.sim.network import Connection, ResponseMessage
from coordinator_sim.sim.pausable import PausableProcess
from coordinator_sim.sim.scenario.world import Client
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import Event, TraceEvent


class ClientProcess(PausableProcess):
    """One incarnation of a client process.

    Args:
        world: Shared parts of the run.
        name: Client id and name in the network; the same for every incarnation.
        group_id: Group id for the trace.
        port: The client's logic; new for every incarnation.
        host: Member on whose machine the client runs, and with which it is cut off; None where the
            client is the member.
        client: Kind of client. Java's reads the wall clock, the others the monotonic one;
            librdkafka finds the request of an answer by its id, the others by its order.
    """

    __slots__ = (
        "_api_versions",
        "_connections",
        "_finds_by_id",
        "_group_id",
        "_host",
        "_machine",
        "_name",
        "_network",
        "_port",
        "_reading",
    )

    def __init__(
        self,
        world: World,
        name: str,
        *,
        group_id: str,
        port: DrivenPort[WorkerEffect],
        host: str | None = None,
        client: Client = "java",
    ) -> None:
        super().__init__(world)
        self._network = world.network
        self._name = name
        self._host = name if host is None else host
        self._group_id = group_id
        self._port = port
        self._finds_by_id = client == "librdkafka"
        self._api_versions: Mapping[ApiKey, int] = {}
        """API versions of the client where they are not a broker's newest."""
        self._connections: dict[int, Connection] = {}
        self._machine = world.clock_of(self._host)
        self._reading = self._machine.read_by(self._clock_set, is_monotonic=client != "java")

    def kill(self) -> None:
        """End the process at once: the kernel closes its connections, and no LeaveGroup is sent."""
        self._end()
        self._machine.forget(self._reading)
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()
        self._on_gone()

    # The member's side of its connections.

    def connected(self, connection: Connection) -> None:
        """Tell the port that the connection is open."""
        if self._is_paused:
            self._late.append(partial(self.connected, connection))
        elif self._connections.get(connection.node_id) is connection:
            self._run(self._port.on_connected(connection.node_id, self._now_ms()))

    def disconnected(self, connection: Connection) -> None:
        """Tell the port that the connection is gone."""
        if self._is_paused:
            self._late.append(partial(self.disconnected, connection))
        elif self._connections.get(connection.node_id) is connection:
            del self._connections[connection.node_id]
            self._run(self._port.on_disconnected(connection.node_id, self._now_ms()))

    def received(self, connection: Connection, message: ResponseMessage) -> None:
        """Pass the response to the port."""
        if self._is_paused:
            self._late.append(partial(self.received, connection, message))
            return
        if self._connections.get(connection.node_id) is not connection:
            return  # the process closed it meanwhile
        correlation_id, response = message
        reading = self._reading
        now_ms = self._environment.now_us // US_PER_MS if reading.is_true else reading.now_ms
        expected = connection.open_requests
        if expected and expected[0] == correlation_id:
            del expected[0]
        elif not self._takes_out_of_turn(expected, correlation_id):
            self._run(self._port.on_unexpected_response(connection.node_id, now_ms))
            return
        self._run(self._port.on_response(correlation_id, response, now_ms))

    def _takes_out_of_turn(self, expected: list[int], correlation_id: int) -> bool:
        """Whether the client finds the request of an answer that is not the next one."""
        if not self._finds_by_id:
            del expected[:1]
        elif correlation_id in expected:
            expected.remove(correlation_id)
        return self._finds_by_id

    # What the application does.

    @abstractmethod
    def _on_poll_returned(self, error: str | None) -> None:
        """Handle the end of the application's poll."""

    @abstractmethod
    def _on_callback(self, callback: RunCallback) -> None:
        """Run an application callback, ending in `_complete_callback`."""

    def _on_reset(self, wanted: ResetPositions) -> None:
        """Find the reset position of partitions without a committed offset; workers never ask."""

    def _on_commit_completed(self, completed: CommitCompleted) -> None:
        """Handle the end of a commit; an application that committed asynchronously ignores it."""

    @abstractmethod
    def _on_gone(self) -> None:
        """Handle the end of the process, closed or killed."""

    # Effects of the port.

    def _now_ms(self) -> int:
        """Return the present as the client's clock shows it."""
        reading = self._reading
        return self._environment.now_us // US_PER_MS if reading.is_true else reading.now_ms

    def _clock_set(self) -> None:
        """Arm the alarm anew: the clock shows its deadline at another instant."""
        self._run(())

    def _on_alarm(self) -> None:
        if not self._is_paused:
            self._run(self._port.expire(self._now_ms()))

    def _run(self, effects: tuple[WorkerEffect, ...]) -> None:
        """Carry out effects in order, then arm the alarm."""
        for effect in effects:
            if type(effect) is Send:
                connection = self._connections.get(effect.node_id)
                if connection is not None:
                    connection.open_requests.append(effect.correlation_id)
                    connection.request(effect)
            elif self._is_alive:
                self._run_rare(effect)
        if self._is_alive:
            deadline_ms = self._port.next_deadline_ms()
            if deadline_ms is None:
                self.switch_alarm_off()
            else:
                reading = self._reading
                at_us = deadline_ms * US_PER_MS if reading.is_true else reading.true_us(deadline_ms)
                self.set_alarm(at_us)

    def _run_rare(self, effect: WorkerEffect) -> None:
        match effect:
            case Connect(node_id=node_id):
                self._connect(node_id)
            case Disconnect(node_id=node_id):
                connection = self._connections.pop(node_id, None)
                if connection is not None:
                    connection.close()
            case RunCallback():
                self._on_callback(effect)
            case PollReturned(error=error):
                self._on_poll_returned(error)
            case ResetPositions():
                self._on_reset(effect)
            case CommitCompleted():
                self._on_commit_completed(effect)
            case Closed():
                self.kill()
            case Send():
                pass  # carried out by the caller
            case _:
                self._carry_out(effect)

    def _carry_out(self, effect: WorkerEffect) -> None:
        """Carry out an effect that only a Connect worker requests.

        Raises:
            InvariantViolation: this process is not a Connect worker.
        """
        raise InvariantViolation(f"{self._name} asks for {type(effect).__name__}")

    def _connect(self, node_id: int) -> None:
        broker_id = node_id
        if node_id not in self._world.cluster.settings.broker_ids:
            broker_id = COORDINATOR_NODE_OFFSET - node_id
        connection = self._network.connect(self._name, broker_id, self, host=self._host)
        connection.node_id = node_id
        connection.api_versions = self._api_versions
        self._connections[node_id] = connection

    def _record(self, event: Event, **columns: object) -> None:
        """Record an action of this process; `columns` are columns of `TraceEvent`."""
        self._world.record(
            TraceEvent(
                event=event,
                ts_us=self._world.environment.now_us,
                group_id=self._group_id,
                client_id=self._name,
                **columns,  # type: ignore[arg-type] # the callers name columns of TraceEvent
            )
        )
