"""Drivers of the cluster: they carry requests, replies, deadlines and loads, and make no decision.

One request of a connection is answered at a time, as a broker mutes a channel while it handles one;
a parked JoinGroup therefore delays everything behind it on its connection.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final

from msgspec import structs

from coordinator_sim.broker import Broker, Cluster, Handler, Load, Outcome
from coordinator_sim.clients.effects import Send
from coordinator_sim.clock import Alarmed
from coordinator_sim.coordinator.contract import CoordinatorResult, Reply
from coordinator_sim.messages.requests import Request
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.context import RequestContext
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.network import Connection, Network
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import Recorder

_US_PER_MS: Final = 1_000

API_VERSIONS: Final = {
    ApiKey.METADATA: 12,
    ApiKey.OFFSET_COMMIT: 9,
    ApiKey.OFFSET_FETCH: 9,
    ApiKey.FIND_COORDINATOR: 6,
    ApiKey.JOIN_GROUP: 9,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 5,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.OFFSET_DELETE: 0,
}
"""Versions that a current client and a current broker agree on.

Source: kafka trunk, clients/src/main/resources/common/message/*.json.
"""


class BrokerDriver(Alarmed):
    """One living broker process at the network.

    A connection has at most one unanswered request, so its number serves as the request's token.

    Args:
        broker: The broker's logic.
        cluster: Stores the batches that the broker appends.
        environment: The clock.
        network: The network, for responses to be lost.
        recorder: Takes the core's events, at the simulation's instant.
    """

    __slots__ = (
        "_broker",
        "_cluster",
        "_connections",
        "_environment",
        "_network",
        "_recorder",
        "_wake_up_ms",
    )

    def __init__(
        self,
        broker: Broker,
        cluster: Cluster,
        *,
        environment: Environment,
        network: Network,
        recorder: Recorder,
    ) -> None:
        self._broker = broker
        self._cluster = cluster
        self._environment = environment
        self._network = network
        self._recorder = recorder
        self._connections: list[Connection] = []
        super().__init__(environment)
        self._wake_up_ms = broker.coordinator.wake_up_ms

    def opened(self, connection: Connection) -> None:
        """Number the connection."""
        connection.token = len(self._connections)
        self._connections.append(connection)

    def received(self, connection: Connection, message: Send) -> None:
        """Handle the request now, or after the one that its connection waits for."""
        if connection.answering is not None:
            connection.waiting.append(message)
            return
        connection.answering = message
        request = message.request
        route = connection.routes.get(type(request))
        if route is None:
            route = connection.routes[type(request)] = self._route(connection, request)
        handle, context = route
        result = handle(request, context, self._environment.now_us // _US_PER_MS)
        replies = result.replies
        if result.events or result.batches or len(replies) != 1 or connection.waiting:
            self.apply(result)
            return
        # The short path of a request that is answered at once and changes nothing else.
        self._answer(replies[0])
        self._arm()

    def _route(self, connection: Connection, request: Request) -> tuple[Handler, RequestContext]:
        """Return the handler of requests of this kind, and their sender."""
        context = RequestContext(
            token=connection.token,
            api_version=self._api_version(connection, request.api_key),
            client_id=connection.member,
            client_host=connection.client_host,
        )
        return self._broker.handler_of(type(request)), context

    @staticmethod
    def _api_version(connection: Connection, api: ApiKey) -> int:
        """Return the client's version of an API, as far as the simulated broker knows it."""
        newest = API_VERSIONS[api]
        return min(connection.api_versions.get(api, newest), newest)

    def closed(self, connection: Connection) -> None:
        """Drop the unread requests of a closed connection; requests in progress go on."""
        connection.waiting.clear()

    def stop(self) -> None:
        """Stop all timers: the process is dead."""
        self.switch_alarm_off()

    def apply(self, result: CoordinatorResult) -> None:
        """Carry out the result of a verb, then continue with requests that were held up."""
        result = self._broker.pass_on(result)
        if result.events:
            self._record(result)
        if result.batches:
            self._cluster.store(result.batches, self._broker.broker_id)
        answered = [self._answer(reply) for reply in result.replies]
        self._arm()
        for connection in answered:
            if connection.waiting and connection.answering is None:
                self.received(connection, connection.waiting.pop(0))

    def _answer(self, reply: Reply) -> Connection:
        """Send the response to the one open request of a connection, and return the connection."""
        connection = self._connections[reply.token]
        message = connection.answering
        connection.answering = None
        if message is None or not connection.is_server_open:
            return connection
        if not self._network.meddles or self._is_kept(connection, message):
            connection.respond((message.correlation_id, reply.response))
        return connection

    def _arm(self) -> None:
        wake_up_ms = self._wake_up_ms()
        if wake_up_ms is None:
            self.switch_alarm_off()
        else:
            self.set_alarm(wake_up_ms * _US_PER_MS)

    def _is_kept(self, connection: Connection, message: Send) -> bool:
        """Whether the response is not to be lost; delays one that is to be late."""
        member, api = connection.member, message.request.api_key
        if self._network.is_dropped(member, api):
            return False
        connection.hold_back(self._network.delay_of(member, api))
        return True

    def _record(self, result: CoordinatorResult) -> None:
        now_us = self._environment.now_us
        record = self._recorder.record
        for event in result.events:
            record(event if event.ts_us == now_us else structs.replace(event, ts_us=now_us))

    def _on_alarm(self) -> None:
        now_ms = self._environment.now_us // _US_PER_MS
        self.apply(self._broker.coordinator.expire(now_ms))


class ClusterDriver:
    """All brokers on the network, and the happenings that concern them.

    Args:
        cluster: The logic of all brokers.
        environment: The clock.
        network: Network on which the living brokers accept connections.
        recorder: Takes the core's events.
        load_ms: Duration of the load of an offsets partition.
        failover_ms: Time from a broker's death to the election of new leaders.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        environment: Environment,
        network: Network,
        recorder: Recorder,
        load_ms: int,
        failover_ms: int,
    ) -> None:
        self.cluster = cluster
        self._environment = environment
        self._network = network
        self._recorder = recorder
        self._load_us = load_ms * _US_PER_MS
        self._failover_us = failover_ms * _US_PER_MS
        self._drivers: dict[int, BrokerDriver] = {}
        for broker_id in cluster.brokers:
            self._attach(broker_id)

    def move(self, partition: int, to_broker: int | None) -> None:
        """Elect another leader for an offsets partition; None takes the next living broker."""
        self._deliver(self.cluster.move(partition, to_broker, self._now_ms()))

    def hold(self, partition: int, for_ms: int) -> None:
        """Leave appends to an offsets partition uncommitted for the given time."""
        self.cluster.hold(partition)
        now_us = self._environment.now_us
        self._environment.call_at(now_us + for_ms * _US_PER_MS, partial(self._release, partition))

    def crash(self, broker_id: int, down_ms: int) -> None:
        """Kill a broker, and start it again after `down_ms`. A dead one stays as it is."""
        if broker_id not in self.cluster.brokers:
            return
        self.cluster.crash(broker_id)
        self._network.detach(broker_id)
        self._drivers.pop(broker_id).stop()
        now_us = self._environment.now_us
        down_us = down_ms * _US_PER_MS
        if self._failover_us < down_us:
            self._environment.call_at(now_us + self._failover_us, partial(self._fence, broker_id))
        self._environment.call_at(now_us + down_us, partial(self._restart, broker_id))

    def _now_ms(self) -> int:
        return self._environment.now_us // _US_PER_MS

    def _attach(self, broker_id: int) -> None:
        driver = BrokerDriver(
            self.cluster.brokers[broker_id],
            self.cluster,
            environment=self._environment,
            network=self._network,
            recorder=self._recorder,
        )
        self._drivers[broker_id] = driver
        self._network.attach(broker_id, driver)

    def _fence(self, broker_id: int) -> None:
        self._record("BrokerFenced", broker_id)
        self._deliver(self.cluster.fence(broker_id, self._now_ms()))

    def _release(self, partition: int) -> None:
        self._deliver(self.cluster.release(partition, self._now_ms()))

    def _restart(self, broker_id: int) -> None:
        self._record("BrokerRestarted", broker_id)
        outcomes = self.cluster.restart(broker_id, self._now_ms())
        self._attach(broker_id)
        self._deliver(outcomes)

    def _record(self, what: str, broker_id: int) -> None:
        self._recorder.record(
            TraceEvent(
                event=Event.FAULT,
                ts_us=self._environment.now_us,
                broker_id=broker_id,
                reason_text=what,
            )
        )

    def _finish_load(self, load: Load) -> None:
        self._deliver(self.cluster.finish_load(load, self._now_ms()))

    def _deliver(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            self._drivers[outcome.broker_id].apply(outcome.result)
            if outcome.load is not None:
                done = partial(self._finish_load, outcome.load)
                self._environment.call_at(self._environment.now_us + self._load_us, done)
