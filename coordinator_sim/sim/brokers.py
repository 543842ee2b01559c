"""Drivers of the cluster: they carry requests, replies and deadlines, and make no decision.

One request of a connection is answered at a time, as a broker mutes a channel while it handles one;
a parked JoinGroup therefore delays everything behind it on its connection.
"""

from functools import partial
from typing import Final

from msgspec import Struct, structs

from coordinator_sim.broker.cluster import Cluster, TraceSink
from coordinator_sim.broker.contract import Call, Instants
from coordinator_sim.clients.effects import Send
from coordinator_sim.clock import Alarmed
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.network import Connection, Network
from coordinator_sim.sim.world import create_topic
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


def core_trace(environment: Environment, recorder: Recorder) -> TraceSink:
    """Return a sink that records the core's events at the simulation's instant."""
    record = recorder.record

    def take(_broker_id: int, events: tuple[TraceEvent, ...]) -> None:
        now_us = environment.now_us
        for event in events:
            record(event if event.ts_us == now_us else structs.replace(event, ts_us=now_us))

    return take


class Channel:
    """The broker's side of one connection: takes the answer to its one open request.

    Args:
        driver: The cluster.
        connection: The connection.
        number: Number of the connection in the cluster's life.
    """

    __slots__ = ("_cluster", "_connection", "_contexts", "_driver", "_token", "number")

    def __init__(self, driver: "ClusterDriver", connection: Connection, number: int) -> None:
        self._driver = driver
        self._cluster = driver.cluster
        self._connection = connection
        self._contexts: dict[ApiKey, RequestContext] = {}
        self.number = number
        # One request is open at a time, so that one token names each in its turn.
        self._token = driver.cluster.new_token()

    def call(self, message: Send, now: Instants) -> Call[Struct]:
        """Open a request: the call that the cluster handles."""
        connection = self._connection
        connection.answering = message
        request = message.request
        api = request.api_key
        context = self._contexts.get(api)
        if context is None:
            context = self._contexts[api] = self._context(api)
        return Call(
            broker_id=connection.broker_id,
            api=api,
            request=request,
            context=context,
            now=now,
            connection=self.number,
        )

    def _context(self, api: ApiKey) -> RequestContext:
        """Return the sender of requests, with the newest version that both ends know."""
        connection = self._connection
        newest = API_VERSIONS[api]
        return RequestContext(
            token=self._token,
            api_version=min(connection.api_versions.get(api, newest), newest),
            client_id=connection.member,
            client_host=connection.client_host,
        )

    def answered(self, response: Struct | None) -> None:
        """Send the answer to the open request; what waits behind it is next."""
        connection = self._connection
        message, connection.answering = connection.answering, None
        if connection.waiting:
            self._cluster.has_more(self)
        if message is None or response is None or not connection.is_server_open:
            return
        network = self._driver.network
        if not network.meddles or self._is_kept(message):
            # A request that a port made is answered by a response that a port knows.
            connection.respond((message.correlation_id, response))  # type: ignore[arg-type]

    def closed(self) -> None:
        """Close the connection in place of an answer."""
        self._connection.close_by_server()

    def work_on_next(self, now: Instants) -> None:
        """Handle the first request that waits."""
        connection = self._connection
        if connection.waiting and connection.answering is None:
            self._cluster.handle(self.call(connection.waiting.pop(0), now), self)

    def end(self) -> None:
        """Forget the connection: what it asked is not answered any more."""
        self._connection.waiting.clear()
        self._cluster.forget(self._token)
        self._cluster.disconnected(self.number)

    def _is_kept(self, message: Send) -> bool:
        """Whether the response is not to be lost; delays one that is to be late."""
        connection, network = self._connection, self._driver.network
        member, api = connection.member, message.request.api_key
        if network.is_dropped(member, api):
            return False
        connection.hold_back(network.delay_of(member, api))
        return True


class ClusterDriver(Alarmed):
    """All brokers on the network, and the happenings that concern them.

    Args:
        cluster: The logic of all brokers.
        environment: The clock.
        network: Network on which the living brokers accept connections.
        recorder: Takes the core's events.
        failover_ms: Time from a broker's death to the election of new leaders.
    """

    __slots__ = ("_channels", "_environment", "_next_number", "_recorder", "cluster", "network")

    def __init__(
        self,
        cluster: Cluster,
        *,
        environment: Environment,
        network: Network,
        recorder: Recorder,
        failover_ms: int,
    ) -> None:
        super().__init__(environment)
        self.cluster = cluster
        self.network = network
        self._environment = environment
        self._recorder = recorder
        self._channels: dict[Connection, Channel] = {}
        self._next_number = 1
        cluster.operations.election_delay_ms = failover_ms
        cluster.cluster_events.broker_fenced.append(partial(self._record, "BrokerFenced"))
        for broker_id in cluster.settings.broker_ids:
            network.attach(broker_id, self)

    # -- connections -----------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        """Number the connection."""
        self._channels[connection] = Channel(self, connection, self._next_number)
        self._next_number += 1

    def received(self, connection: Connection, message: Send) -> None:
        """Handle the request now, or after the one that its connection waits for."""
        if connection.answering is not None:
            connection.waiting.append(message)
            return
        now = self._now()
        channel = self._channels[connection]
        self.cluster.handle(channel.call(message, now), channel)
        self._go_on(now)

    def closed(self, connection: Connection) -> None:
        """Drop what a closed connection still asks; what it changed stays."""
        self._channels.pop(connection).end()

    # -- happenings ------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic, or grow it to a number of partitions; see `world.create_topic`."""
        now = self._now()
        create_topic(self.cluster, name, partitions, now)
        self._go_on(now)

    def move(self, partition: int, to_broker: int | None) -> None:
        """Elect another leader for an offsets partition; None takes the next living broker.

        Nothing happens when that broker is dead, or leads the partition already.
        """
        now = self._now()
        state = self.cluster.image.topics[OFFSETS_TOPIC].partitions[partition]
        living = self.cluster.groups.living
        if to_broker is None:
            later = [each for each in living if each > state.leader_id]
            to_broker = min(later or living, default=state.leader_id)
        if to_broker in living and to_broker != state.leader_id:
            self.cluster.operations.elect(OFFSETS_TOPIC, partition, to_broker, now)
        self._go_on(now)

    def hold(self, partition: int, for_ms: int) -> None:
        """Leave appends to an offsets partition uncommitted for the given time."""
        self._hold(partition, hold=True)
        end_us = self._environment.now_us + for_ms * _US_PER_MS
        self._environment.call_at(end_us, partial(self._hold, partition, hold=False))

    def crash(self, broker_id: int, down_ms: int) -> None:
        """Kill a broker, and start it again after `down_ms`. A dead one stays as it is."""
        if broker_id not in self.cluster.groups.living:
            return
        now = self._now()
        self.network.detach(broker_id)
        for connection in [each for each in self._channels if each.broker_id == broker_id]:
            # What a client sent before it closed is still on its way, to nobody.
            connection.is_server_open = False
            self.closed(connection)
        self.cluster.operations.stop(broker_id, now)
        restart_us = self._environment.now_us + down_ms * _US_PER_MS
        self._environment.call_at(restart_us, partial(self._restart, broker_id))
        self._go_on(now)

    def _restart(self, broker_id: int) -> None:
        self._record("BrokerRestarted", broker_id)
        now = self._now()
        self.network.attach(broker_id, self)
        self.cluster.operations.resume(broker_id, now)
        self._go_on(now)

    def _hold(self, partition: int, *, hold: bool) -> None:
        now = self._now()
        operations = self.cluster.operations
        operations.hold_high_watermark(OFFSETS_TOPIC, partition, hold=hold, now=now)
        self._go_on(now)

    # -- time ------------------------------------------------------------------------------

    def _now(self) -> Instants:
        now_ms = self._environment.now_us // _US_PER_MS
        return Instants(now_ms, now_ms)

    def _go_on(self, now: Instants) -> None:
        """Work on what waited for answers, then arm the alarm if a deadline may be earlier."""
        cluster = self.cluster
        cluster.go_on(now)
        scheduler = cluster.scheduler
        if scheduler.has_moved:
            due_ms = scheduler.next_deadline_ms()
            if due_ms is None:
                self.switch_alarm_off()
            else:
                self.set_alarm(due_ms * _US_PER_MS)

    def _on_alarm(self) -> None:
        now = self._now()
        self.cluster.expire(now)
        self._go_on(now)

    def _record(self, what: str, broker_id: int) -> None:
        self._recorder.record(
            TraceEvent(
                event=Event.FAULT,
                ts_us=self._environment.now_us,
                broker_id=broker_id,
                reason_text=what,
            )
        )
