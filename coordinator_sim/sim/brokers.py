"""Drivers of the cluster: they carry requests, replies and deadlines, and make no decision.

One request of a connection is answered at a time, as a broker mutes a channel while it handles one;
a parked JoinGroup therefore delays everything behind it on its connection.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Final

from msgspec import Struct, structs

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Call, Instants
from coordinator_sim.broker.error_answers import with_error
from coordinator_sim.broker.faults.fault_door import pass_request
from coordinator_sim.broker.faults.faults import Action as FaultAction
from coordinator_sim.broker.faults.faults import (
    Close,
    Delay,
    Drop,
    Duplicate,
    Fail,
    Fault,
    Lose,
    Reorder,
    as_json,
    error_named,
)
from coordinator_sim.clients.effects import Send
from coordinator_sim.clock import Action, Alarmed
from coordinator_sim.clock.clock import WallClock
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.network import Connection, Network, ResponseMessage
from coordinator_sim.sim.scenario.choices import Choices
from coordinator_sim.sim.scenario.fault_rules import API_VERSIONS
from coordinator_sim.sim.world import US_PER_MS, create_topic
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.exchange import TOLD_APIS, Exchange
from coordinator_sim.trace.recorder import Recorder


def exchange_of(
    connection: Connection,
    number: int,
    message: Send,
    response: Struct,
    times: tuple[int, int, int],
) -> Exchange:
    """A request that was answered.

    Args:
        connection: On which it came.
        number: Of the connection in the cluster's life.
        message: The request.
        response: What the broker answers.
        times: When the broker began with it, in microseconds; its version; when it is answered.
    """
    asked_us, api_version, now_us = times
    return Exchange(
        asked_us=asked_us,
        done_us=now_us,
        sent_us=now_us,
        seq=0,
        request=message.request,
        response=response,
        api_version=api_version,
        correlation_id=message.correlation_id,
        client_id=connection.member,
        client_host=connection.client_host,
        broker_id=connection.broker_id,
        connection=str(number),
    )


REQUESTS: Final = "requests"
TIMERS: Final = "timers"
_CHANCES: Final = 1_000_000
"""Steps of a rule's probability."""
_RESUME_ORDERS: Final = (REQUESTS, TIMERS)
CONTROLLED_SHUTDOWN_US: Final = 2_050_000
"""From SIGTERM until a broker may end: its second heartbeat comes 50 ms after the first, usually
before the other brokers' next heartbeats, and its third `broker.heartbeat.interval.ms` later."""

_GRACE_US: Final = 30_000_000
"""From SIGTERM to SIGKILL: `terminationGracePeriodSeconds`, where Strimzi's users set no other."""


@lru_cache(maxsize=64)
def _empty_records(count: int) -> bytes:
    """Return a batch of so many records without key and value."""
    numbers = range(count)
    record = partial(Record, timestamp_ms=0, key=None, value=None)
    return encode_record_batch(batch_of(tuple(record(offset=number) for number in numbers)))


class Channel:
    """The broker's side of one connection: takes the answer to its one open request.

    Args:
        driver: The cluster.
        connection: The connection.
        number: Number of the connection in the cluster's life.
    """

    __slots__ = (
        "_asked",
        "_cluster",
        "_connection",
        "_contexts",
        "_driver",
        "_overtaken",
        "_token",
        "is_throttled",
        "number",
    )

    def __init__(self, driver: "ClusterDriver", connection: Connection, number: int) -> None:
        self._driver = driver
        self._cluster = driver.cluster
        self._connection = connection
        self._contexts: dict[ApiKey, RequestContext] = {}
        self.number = number
        self.is_throttled = False  # By a quota, which keeps the next request waiting.
        self._overtaken: list[ResponseMessage] = []
        """Answers that leave behind the next one; bounded by the client's open requests."""
        self._token = driver.cluster.new_token()  # One request is open, so one token will do.
        self._asked = (0, 0)  # When the open request came, and its version.

    def handle(self, message: Send, now: Instants) -> None:
        """Open a request, and hand it to the cluster, unless a fault rule acts on it."""
        self._connection.answering = message
        call = self._call(message, now)
        if self._driver.on_exchange is not None and call.api in TOLD_APIS:
            self._asked = (self._driver.now_us, call.context.api_version)
        if self._cluster.faults.rules:
            self._pass_faults(call)
        else:
            self._cluster.handle(call, self)

    def _call(self, message: Send, now: Instants) -> Call[Struct]:
        request = message.request
        api = request.api_key
        context = self._contexts.get(api)
        if context is None:
            context = self._contexts[api] = self._context(api)
        return Call(
            broker_id=self._connection.broker_id,
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
        held = self._driver.held
        if held and connection.broker_id in held:
            held[connection.broker_id].append(partial(self.answered, response))
            return
        message, connection.answering = connection.answering, None
        if connection.waiting:
            self._cluster.has_more(self)
        if message is None or response is None or not connection.is_server_open:
            return
        if self._driver.on_exchange is not None and message.request.api_key in TOLD_APIS:
            times = (*self._asked, self._driver.now_us)
            self._driver.on_exchange(exchange_of(connection, self.number, message, response, times))
        # A request that a port made is answered by a response that a port knows.
        answer: ResponseMessage = (message.correlation_id, response)  # type: ignore[assignment]
        if self._cluster.faults.rules:
            self._respond_by_rules(message, answer)
        else:
            connection.respond(answer)

    def takes_back(self) -> bool:
        """Whether the client gave up the open request, a Fetch that waits, for another one."""
        answering = self._connection.answering
        if answering is None or answering.request.api_key is not ApiKey.FETCH:
            return False
        self._cluster.data.disconnected(self.number)
        return True

    def throttled(self, throttle_time_ms: int) -> None:
        """Take no further request for so long from now on; see `AnswerPlace.throttled`."""
        self.is_throttled = True
        at_ms = self._cluster.latest.wall_ms + throttle_time_ms
        self._cluster.scheduler.at_wall_ms(at_ms, self._throttling_done)

    def _throttling_done(self, now: Instants) -> None:
        held = self._driver.held
        if held and self._connection.broker_id in held:
            held[self._connection.broker_id].append(partial(self._throttling_done, now))
            return
        self.is_throttled = False
        self._cluster.has_more(self)

    def closed(self) -> None:
        """Close the connection in place of an answer."""
        self._connection.close_by_server()

    def work_on_next(self, now: Instants) -> None:
        """Handle the first request that waits."""
        connection = self._connection
        if connection.waiting and connection.answering is None and not self.is_throttled:
            self.handle(connection.waiting.pop(0), now)

    def end(self) -> None:
        """Forget the connection: what it asked is not answered any more."""
        self._connection.waiting.clear()
        self._overtaken.clear()
        self._cluster.forget(self._token)
        self._cluster.disconnected(self.number)

    def _pass_faults(self, call: Call[Struct]) -> None:
        """Let the fault rules act on a request before the cluster takes it."""
        connection, message = self._connection, self._connection.answering

        def take(now: Instants) -> None:
            if connection.answering is message and connection.is_server_open:
                self._cluster.handle(structs.replace(call, now=now), self)

        def refuse(refusal: Struct) -> None:
            connection.answering = None
            if connection.waiting:
                self._cluster.has_more(self)
            if message is not None:
                self._respond((message.correlation_id, refusal))  # type: ignore[arg-type] # as in answered

        pass_request(self._cluster, call, take, refuse=refuse, close=self.closed)

    def _respond_by_rules(self, message: Send, answer: ResponseMessage) -> None:
        """Send the answer as the first rule that matches wants it; see `FaultDoor.answered`."""
        connection, cluster = self._connection, self._cluster
        call = self._call(message, cluster.latest)
        match cluster.faults.after(call):
            case Drop():
                connection.answering = message
            case Lose():
                if message.correlation_id in connection.open_requests:
                    connection.open_requests.remove(message.correlation_id)
            case Close():
                self.closed()
            case Reorder(ms):
                self._overtaken.append(answer)
                self._driver.call_later(ms * US_PER_MS, partial(self._send_alone, answer))
            case Delay(ms):
                connection.hold_back(ms * US_PER_MS)
                self._respond(answer)
            case Duplicate():
                connection.respond(answer)
                self._respond(answer)
            case Fail(error):
                code, version = error_named(error), call.context.api_version
                failed = with_error(call.api, version, answer[1], code)
                self._respond((answer[0], failed))  # type: ignore[arg-type] # as in answered
            case _:
                self._respond(answer)

    def _respond(self, answer: ResponseMessage) -> None:
        """Send an answer, and behind it those that it was to overtake."""
        self._connection.respond(answer)
        self._send_overtaken()

    def _send_alone(self, answer: ResponseMessage) -> None:
        """Send answers up to one that no other has overtaken in time."""
        if any(each is answer for each in self._overtaken):
            self._send_overtaken()

    def _send_overtaken(self) -> None:
        answers, self._overtaken = self._overtaken, []
        for each in answers:
            self._connection.respond(each)


class ClusterDriver(Alarmed):
    """All brokers on the network, and the happenings that concern them.

    Args:
        cluster: The logic of all brokers.
        environment: The clock.
        network: Network on which the living brokers accept connections.
        recorder: Takes the core's events.
        failover_ms: Time from a broker's death to the election of new leaders.
        choices: Source of the order in which a paused broker goes on.

    Attributes:
        held: What frozen brokers do first when they go on. Bounded by what clients send.
        on_exchange: Told each request of groups when it is answered; None tells nobody.
    """

    __slots__ = (
        "_channels",
        "_choices",
        "_environment",
        "_halting",
        "_has_long_work",
        "_next_number",
        "_recorder",
        "_traced_rules",
        "_up_since",
        "cluster",
        "held",
        "network",
        "on_exchange",
    )

    def __init__(
        self,
        cluster: Cluster,
        *,
        environment: Environment,
        network: Network,
        recorder: Recorder,
        failover_ms: int,
        choices: Choices,
    ) -> None:
        super().__init__(environment)
        self.cluster = cluster
        self.on_exchange: Callable[[Exchange], None] | None = None
        self.network = network
        self._environment = environment
        self._recorder = recorder
        self._choices = choices
        self._halting: dict[int, None] = {}
        self._up_since: dict[int, int] = {}
        self.held: dict[int, list[Action]] = {}
        self._channels: dict[Connection, Channel] = {}
        self._next_number = 1
        self._has_long_work = False
        self._traced_rules: dict[int, None] = {}
        cluster.faults.heard = self._fault_acted
        cluster.faults.chance = self._fault_chance
        cluster.jobs.begun = self._long_work_begins
        cluster.operations.election_delay_ms = failover_ms
        cluster.cluster_events.broker_fenced.append(partial(self.record, "BrokerFenced"))
        for broker_id in cluster.settings.broker_ids:
            network.attach(broker_id, self)

    @property
    def now_us(self) -> int:
        """The present, in microseconds of virtual time."""
        return self._environment.now_us

    def call_later(self, delay_us: int, action: Action) -> None:
        """Call the action after a delay."""
        self._environment.call_at(self._environment.now_us + delay_us, action)

    # -- connections -----------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        """Number the connection."""
        self._channels[connection] = Channel(self, connection, self._next_number)
        self._next_number += 1

    def received(self, connection: Connection, message: Send) -> None:
        """Handle the request now, or after the one that its connection waits for."""
        held = self.held
        if held and connection.broker_id in held:
            held[connection.broker_id].append(partial(self.received, connection, message))
            return
        channel = self._channels[connection]
        if channel.is_throttled or (connection.answering is not None and not channel.takes_back()):
            connection.waiting.append(message)
            return
        now = self._now()
        channel.handle(message, now)
        self._go_on(now)

    def closed(self, connection: Connection) -> None:
        """Drop what a closed connection still asks; what it changed stays."""
        if connection.broker_id in self.held:
            self.held[connection.broker_id].append(partial(self.closed, connection))
            return
        self._channels.pop(connection).end()

    # -- happenings ------------------------------------------------------------------------

    def add_fault(self, rule: Fault, *, is_traced: bool) -> None:
        """Let a fault rule act from now on; `is_traced` records each time that it does."""
        now = self._now()
        added = self.cluster.add_fault(rule, now)
        if is_traced:
            self._traced_rules[added.fault_id] = None
        self._go_on(now)

    def administer(self, request: Action) -> None:
        """Let an operator's request be handled at this instant."""
        now = self.cluster.latest = self._now()
        request()
        self._go_on(now)

    def _fault_chance(self) -> float:
        """Draw a number for a rule with a probability; choice 0 lets no likely rule act."""
        drawn = self._choices.choose("fault-rule", "chance", _CHANCES)
        return (_CHANCES - 1 - drawn) / _CHANCES

    def _fault_acted(self, fault_id: int, call: Call[Struct], action: FaultAction) -> None:
        if fault_id in self._traced_rules:
            client_id, done = call.context.client_id, as_json(action)
            attrs = {"api": call.api.name, "client": client_id, "action": done}
            self.record("FaultActed", call.broker_id, attrs)

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic, or grow it to a number of partitions; see `world.create_topic`."""
        now = self._now()
        create_topic(self.cluster, name, partitions, now)
        self._go_on(now)

    def write_empty(self, ends: Mapping[TopicPartition, int]) -> None:
        """Append empty records to logs, a batch to each, up to these end offsets."""
        now = self._now()
        for partition, end_offset in ends.items():
            log = self.cluster.logs.log_of(*partition)
            if log is not None and log.end_offset < end_offset:
                batch = _empty_records(end_offset - log.end_offset)
                log.append(batch, now_ms=now.group_ms, leader_epoch=log.leader_epoch)
                self.cluster.cluster_events.touched(partition)
        self._go_on(now)

    def move(self, partition: int, to_broker: int | None) -> None:
        """Elect another leader for an offsets partition; None takes the next living broker.

        Nothing happens when that broker is dead or paused, or leads the partition already.
        """
        now = self._now()
        state = self.cluster.image.topics[OFFSETS_TOPIC].partitions[partition]
        brokers = self.cluster.brokers
        living = [each for each in brokers.living if brokers.is_running(each)]
        if to_broker is None:
            later = [each for each in living if each > state.leader_id]
            to_broker = min(later or living, default=state.leader_id)
        if to_broker in living and to_broker != state.leader_id:
            self.cluster.operations.elect(OFFSETS_TOPIC, partition, to_broker, now)
        self._go_on(now)

    def hold(self, partition: int, for_ms: int) -> None:
        """Leave appends to an offsets partition uncommitted for the given time."""
        self._hold(partition, hold=True)
        self.call_later(for_ms * US_PER_MS, partial(self._hold, partition, hold=False))

    def shut_down(self, broker_id: int, down_ms: int) -> None:
        """Send SIGTERM to a broker, and start it `down_ms` after its process has ended.

        Other replicas in sync lead its partitions at once; a partition without one has no leader.
        The controller lets it go, and fences it, when heartbeats have shown that all others know.

        Source: kafka 4.4, BrokerLifecycleManager, BrokerHeartbeatManager.calculateNextBrokerState,
        ReplicationControlManager.handleBrokerInControlledShutdown.
        """
        now = self._now()
        self.record("BrokerStopping", broker_id)
        self.cluster.leadership.shut_down(broker_id, now)
        self.cluster.leadership.broker_lost(broker_id, now)
        epoch = self.cluster.image.broker_epochs.get(broker_id)
        self.call_later(CONTROLLED_SHUTDOWN_US, partial(self._end, broker_id, epoch, down_ms))
        self._go_on(now)

    def _end(
        self, broker_id: int, epoch: int | None, down_ms: int, *, is_killed: bool = False
    ) -> None:
        """End the process of that epoch, unless it has died meanwhile.

        A frozen one ends when it goes on, or by SIGKILL.
        """
        is_same = self.cluster.image.broker_epochs.get(broker_id) == epoch
        if not is_same or broker_id not in self.cluster.groups.living:
            return
        if broker_id in self.held and not is_killed:
            end = partial(self._end, broker_id, epoch, down_ms)
            self.held[broker_id].append(partial(self.call_later, 0, end))
            self.call_later(_GRACE_US - CONTROLLED_SHUTDOWN_US, partial(end, is_killed=True))
            return
        self.crash(broker_id, down_ms)
        now = self._now()
        self.cluster.operations.fence(broker_id, now)
        self._go_on(now)

    def crash(self, broker_id: int, down_ms: int) -> None:
        """Kill a broker, and start it again after `down_ms`. A dead one stays as it is."""
        if broker_id not in self.cluster.groups.living:
            return
        now = self._now()
        self.held.pop(broker_id, None)
        self.network.detach(broker_id)
        for connection in [each for each in self._channels if each.broker_id == broker_id]:
            # What a client sent before it closed is still on its way, to nobody.
            connection.is_server_open = False
            self.closed(connection)
        self.cluster.operations.stop(broker_id, now)
        self.call_later(down_ms * US_PER_MS, partial(self._restart, broker_id))
        self._go_on(now)

    def _restart(self, broker_id: int) -> None:
        self.record("BrokerRestarted", broker_id)
        self._up_since[broker_id] = self._environment.now_us
        now = self._now()
        self.network.attach(broker_id, self)
        self.cluster.operations.resume(broker_id, now)
        self._go_on(now)

    def is_ready(self, broker_id: int, readiness_ms: int) -> bool:
        """Return whether a broker runs, and registered `readiness_ms` ago or earlier."""
        up_us = self._up_since.get(broker_id, -readiness_ms * US_PER_MS)
        up_ms = (self._environment.now_us - up_us) // US_PER_MS
        return self.cluster.brokers.is_running(broker_id) and up_ms >= readiness_ms

    def set_clock(self, broker_id: int, *, skew_ms: int, drift_ppm: int) -> None:
        """Step the wall clock of a broker's machine to the true time and a skew; let it drift.

        DEVIATION: the monotonic clock of the machine keeps the true time, where one oscillator
        drives both.
        """
        now_ms = self._now().group_ms
        clock = WallClock(skew_ms=skew_ms, drift_ppm=drift_ppm, set_at_ms=now_ms)
        self.cluster.groups.set_wall_clock(broker_id, clock)

    def fail_reads(self, broker_id: int, prefix: str, for_ms: int) -> None:
        """Let a broker's reads of files of the offsets topic fail for the given time.

        Its log directory is offline after the first one, and as it is the only one the broker
        halts. Whoever starts it anew does so in vain until the files can be read.

        Source: kafka trunk, LocalLog.maybeHandleIOException, ReplicaManager.handleLogDirFailure,
        LogManager.handleLogDirFailure.
        """
        end_us = self._environment.now_us + for_ms * US_PER_MS
        read_failed = partial(self._read_failed, broker_id, end_us)
        offsets_topic = self.cluster.groups.offsets_topic
        offsets_topic.fail_reads(broker_id, prefix, read_failed)
        self._environment.call_at(end_us, partial(offsets_topic.mend_reads, broker_id))

    def _read_failed(self, broker_id: int, end_us: int, partition: int) -> None:
        now = self._now()
        if broker_id not in self._halting:
            self._halting[broker_id] = None
            self.record("LogDirectoryFailed", broker_id, {"partition": str(partition)})
            down_ms = (end_us - self._environment.now_us) // US_PER_MS + 1
            self.call_later(0, partial(self._halt, broker_id, down_ms))
        # What waits for followers is answered by nobody.
        self.cluster.groups.hold_high_watermark(partition, hold=True, now=now)

    def _halt(self, broker_id: int, down_ms: int) -> None:
        del self._halting[broker_id]
        self.crash(broker_id, down_ms)

    def pause(self, broker_id: int, for_ms: int) -> None:
        """Freeze a broker's process for the given time; a dead or frozen one stays as it is.

        Its kernel goes on: it accepts connections, and keeps what clients send.
        """
        if broker_id not in self.cluster.groups.living or broker_id in self.held:
            return
        now = self._now()
        held = self.held[broker_id] = []
        self.network.stall(broker_id)
        self.cluster.operations.pause(broker_id, now)
        self.call_later(for_ms * US_PER_MS, partial(self._resume, broker_id, held))
        self._go_on(now)

    def _resume(self, broker_id: int, held: list[Action]) -> None:
        """Let a frozen broker go on with what waits; what the cluster decided it hears last.

        Threads that read requests and the one that fires timers all go on at once: a choice says
        whose work is done first.
        """
        if self.held.get(broker_id) is not held:
            return  # it died
        first = _RESUME_ORDERS[self._choices.choose("resume", f"broker-{broker_id}", 2)]
        self.record("BrokerResumed", broker_id, {"first": first})
        now = self._now()
        del self.held[broker_id]
        self.network.go_on(broker_id)
        groups = self.cluster.groups
        if first == TIMERS:
            groups.fire_overdue(broker_id, now)
        for action in held:
            action()
        if first == REQUESTS:
            groups.fire_overdue(broker_id, now)
        self.cluster.operations.resume(broker_id, now)
        self._go_on(now)

    def _hold(self, partition: int, *, hold: bool) -> None:
        now = self._now()
        operations = self.cluster.operations
        operations.hold_high_watermark(OFFSETS_TOPIC, partition, hold=hold, now=now)
        self._go_on(now)

    # -- time ------------------------------------------------------------------------------

    def _now(self) -> Instants:
        now_ms = self._environment.now_us // US_PER_MS
        return Instants(now_ms, now_ms)

    def _go_on(self, now: Instants) -> None:
        """Work on what waited for answers, then arm the alarm if a deadline may be earlier."""
        cluster = self.cluster
        if cluster.jobs.unmuted:
            cluster.go_on(now)
        if self._has_long_work:
            self._work_to_the_end(now)
        if cluster.scheduler.has_moved:
            due_ms = cluster.scheduler.next_deadline_ms()
            if due_ms is None:
                self.switch_alarm_off()
            else:
                self.set_alarm(due_ms * US_PER_MS)

    def _long_work_begins(self) -> None:
        self._has_long_work = True

    def _work_to_the_end(self, now: Instants) -> None:
        """Finish requests that take a served cluster long; here they take no time."""
        self._has_long_work = False
        while self.cluster.has_work:
            self.cluster.work(now)

    def _on_alarm(self) -> None:
        now = self._now()
        self.cluster.expire(now)
        self._go_on(now)

    def record(self, what: str, broker_id: int, attrs: dict[str, str] | None = None) -> None:
        """Record what happens to a broker."""
        self._recorder.record(
            TraceEvent(
                event=Event.FAULT,
                ts_us=self._environment.now_us,
                broker_id=broker_id,
                reason_text=what,
                attrs=attrs or {},
            )
        )
