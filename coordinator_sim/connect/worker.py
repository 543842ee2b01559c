"""A Connect worker from process start to process end: the port that a driver runs.

Each verb sets the time, records what happened, lets the worker's threads run on as far as they can,
and returns the requested effects in order. Start-up goes through Kafka's steps: plugins,
configuration, cluster id, REST server, stores, herder, resources. An exception that escapes a step
ends the process.

Source: kafka trunk, connect/runtime/.../cli/AbstractConnectCli.java, ConnectDistributed.java;
runtime/Connect.java.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from msgspec import Struct

from coordinator_sim.clients.backoff import NO_JITTER, Jitter
from coordinator_sim.clients.effects import Closed
from coordinator_sim.clients.effects import Effects as MemberEffects
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.clients.worker_coordinator import ConfigSnapshot, WorkerCoordinator
from coordinator_sim.connect.effects import (
    DescribeCluster,
    Died,
    Fetched,
    HttpRequest,
    Listen,
    StopListening,
    WorkerEffect,
)
from coordinator_sim.connect.exceptions import ConnectException, JavaException
from coordinator_sim.connect.herding.herder import Herder
from coordinator_sim.connect.herding.herder_state import HerderParts, HerderState
from coordinator_sim.connect.herding.requests import Outcome, Request
from coordinator_sim.connect.loggers import Loggers
from coordinator_sim.connect.plugins.registry import Plugin, Plugins
from coordinator_sim.connect.plugins.standard_plugins import standard_plugins
from coordinator_sim.connect.rest.connectors import TopicTracking
from coordinator_sim.connect.rest.forwarding import Stage
from coordinator_sim.connect.rest.internal_requests import InternalRequests
from coordinator_sim.connect.rest.server import RestServer, RestSettings
from coordinator_sim.connect.settings.config_transformer import Provider
from coordinator_sim.connect.settings.validation import InstalledPlugins
from coordinator_sim.connect.settings.worker_config import DistributedConfig, discovery_in
from coordinator_sim.connect.start_up import StartUpTimes
from coordinator_sim.connect.stores.config_store import ConfigStore
from coordinator_sim.connect.stores.offset_store import OffsetStore
from coordinator_sim.connect.stores.status_records import TopicStatus
from coordinator_sim.connect.stores.status_store import StatusStore
from coordinator_sim.connect.stores.topic_log import TopicLog
from coordinator_sim.connect.thread import Blocking, Outbox, Pending, Threads, Wait
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.requests import Response

GRACEFUL_SHUTDOWN_TIMEOUT_MS: Final = 60_000
"""RestServer.GRACEFUL_SHUTDOWN_TIMEOUT_MS: how long open requests keep the server up."""

Effects = tuple[WorkerEffect, ...]


class WorkerParts(Struct, frozen=True, kw_only=True):
    """Inputs that a worker is started with.

    Args:
        properties: Worker settings by Kafka's names.
        plugins: Plugins on the worker's plugin path, besides the standard ones.
        bootstrap: Brokers to ask first.
        machine: Host to advertise when the settings name none.
        client_name: Names the group member in random choices.
        random_bytes: Makes session keys; randomness comes from outside.
        jitter: Jitter of backoffs.
        times: Durations of start-up steps.
        has_tasks_config: Whether the REST API has `tasks-config`, as before 4.0.
        credentials: Passwords by user of the REST API's basic authentication; None for a worker
            that has no file to read them from.
        providers: Providers of values that settings of connectors refer to, by name.
    """

    properties: dict[str, str]
    plugins: tuple[Plugin, ...]
    bootstrap: tuple[Node, ...]
    machine: str
    client_name: str
    random_bytes: Callable[[int], bytes]
    jitter: Jitter = NO_JITTER
    times: StartUpTimes = StartUpTimes()
    has_tasks_config: bool = False
    credentials: Mapping[str, str] | None = None
    providers: Mapping[str, Provider] = {}


class ConnectWorker:
    """One process of a Connect worker.

    Args:
        parts: Inputs that the worker is started with.

    Attributes:
        herder: The herder, once it is built.
        config: The configuration, once it is parsed.
        has_ended: Whether the process is over.
        is_listening: Whether the REST server takes in requests.
    """

    def __init__(self, parts: WorkerParts) -> None:
        self._parts = parts
        self._outbox = Outbox()
        self._threads = Threads()
        self._logs: dict[str, TopicLog] = {}
        self._rest: RestServer | None = None
        self._open_requests = 0
        self._quiet: Pending[object] = Pending()
        self.config: DistributedConfig | None = None
        self.herder: Herder | None = None
        self.is_listening = False
        self.is_stopping = False
        self.has_ended = False

    # Verbs.

    def start(self, now_ms: int) -> Effects:
        """Begin the process."""
        self._outbox.now_ms = now_ms
        self._threads.start(self._main())
        return self._settle(now_ms)

    def expire(self, now_ms: int) -> Effects:
        """Fire every deadline up to now."""
        if self.herder is not None:
            self._outbox.now_ms = now_ms
            member = self.herder.state.member
            member.carry_out(member.coordinator.expire(now_ms))
        return self._settle(now_ms)

    def on_connected(self, node_id: int, now_ms: int) -> Effects:
        """Handle the opening of a connection that the membership asked for."""
        return self._member(now_ms, lambda member: member.on_connected(node_id, now_ms))

    def on_disconnected(self, node_id: int, now_ms: int) -> Effects:
        """Handle the loss of a connection, or a failure to open it."""
        return self._member(now_ms, lambda member: member.on_disconnected(node_id, now_ms))

    def on_response(self, correlation_id: int, response: Response, now_ms: int) -> Effects:
        """Handle a response to the membership."""
        return self._member(
            now_ms, lambda member: member.on_response(correlation_id, response, now_ms)
        )

    def on_unexpected_response(self, node_id: int, now_ms: int) -> Effects:
        """Handle a response to the membership that its connection was not to carry next."""
        return self._member(now_ms, lambda member: member.on_unexpected_response(node_id, now_ms))

    def answered(
        self, token: int, value: object = None, error: str | None = None, *, now_ms: int
    ) -> Effects:
        """Handle the answer to an effect: a value, or the name of an exception."""
        self._outbox.now_ms = now_ms
        self._outbox.answered(token, value, error)
        return self._settle(now_ms)

    def fetched(self, fetched: Fetched, now_ms: int) -> Effects:
        """Handle records read of an internal topic."""
        self._outbox.now_ms = now_ms
        log = self._logs.get(fetched.topic)
        if log is not None:
            log.fetched(fetched)
        return self._settle(now_ms)

    def http(self, exchange: int, request: HttpRequest, now_ms: int) -> Effects:
        """Handle a request to the REST server; `AnswerHttp` names the exchange.

        The driver refuses the connection while `is_listening` is false.
        """
        self._outbox.now_ms = now_ms
        if self._rest is not None and self.is_listening:
            self._open_requests += 1
            self._threads.start(self._serve(self._rest, exchange, request))
        return self._settle(now_ms)

    def work_failed(self, resource: str | ConnectorTaskId, trace: str, now_ms: int) -> Effects:
        """Handle the failure of a connector (named by its name) or a task that failed by itself."""
        self._outbox.now_ms = now_ms
        if self.herder is not None:
            work = self.herder.state.work
            if isinstance(resource, ConnectorTaskId):
                work.task_failed(resource, trace)
            else:
                work.connector_failed(resource, trace)
        return self._settle(now_ms)

    def topic_used(self, task: ConnectorTaskId, topic: str, now_ms: int) -> Effects:
        """Handle a task's use of a topic. Source: WorkerTask.recordActiveTopic."""
        self._outbox.now_ms = now_ms
        if self.herder is not None and self.herder.state.config.topic_tracking_enable:
            store = self.herder.state.status_store
            if store.get_topic(task.connector, topic) is None:
                store.put_topic(
                    TopicStatus(
                        topic=topic,
                        connector=task.connector,
                        task=task.task,
                        discover_timestamp_ms=now_ms,
                    )
                )
        return self._settle(now_ms)

    def reconfiguration_asked(self, connector: str, now_ms: int) -> Effects:
        """Handle a running connector's request for other tasks."""
        self._outbox.now_ms = now_ms
        if self.herder is not None:
            self.herder.request_task_reconfiguration(connector)
        return self._settle(now_ms)

    def stop(self, now_ms: int) -> Effects:
        """Shut down as on SIGTERM; `Closed` follows later. A second call changes nothing."""
        self._outbox.now_ms = now_ms
        if not self.is_stopping:
            self.is_stopping = True
            self._threads.start(self._shut_down())
        return self._settle(now_ms)

    def next_deadline_ms(self) -> int | None:
        """The one alarm to arm; None when only an event from outside can move the worker."""
        if self.has_ended:
            return None
        deadline_ms = self._threads.deadline_ms
        if self.herder is not None:
            own_ms = self.herder.state.member.coordinator.next_deadline_ms()
            deadline_ms = min(deadline_ms, FOREVER if own_ms is None else own_ms)
        return deadline_ms if deadline_ms < FOREVER else None

    def _member(
        self,
        now_ms: int,
        tell: Callable[[WorkerCoordinator], MemberEffects],
    ) -> Effects:
        self._outbox.now_ms = now_ms
        if self.herder is not None:
            member = self.herder.state.member
            member.carry_out(tell(member.coordinator))
        return self._settle(now_ms)

    def _settle(self, now_ms: int) -> Effects:
        """Let the threads run; return the effects, up to the end of the process."""
        if self.has_ended:
            return ()
        self._outbox.now_ms = now_ms
        self._threads.run(now_ms)
        effects = self._outbox.take()
        for index, effect in enumerate(effects):
            if isinstance(effect, Died | Closed):
                self._end()
                return effects[: index + 1]
        return effects

    def _end(self) -> None:
        self.has_ended = True
        self.is_listening = False
        self._threads.kill()

    # The main thread.

    def _main(self) -> Blocking[None]:
        """Run start-up, as AbstractConnectCli.run up to `Connect.start`."""
        try:
            yield from self._start_connect()
        except JavaException as exception:
            self._outbox.tell(Died(str(exception)))
        except ConfigError as error:
            self._outbox.tell(Died(f"ConfigException: {error}"))

    def _start_connect(self) -> Blocking[None]:
        parts = self._parts
        yield from self._pass(parts.times.process_ms)
        yield from self._pass(parts.times.plugin_scan_ms(discovery_in(parts.properties)))
        found = Plugins((*standard_plugins(), *parts.plugins))
        config = DistributedConfig.from_properties(parts.properties, found.full_name)
        plugins = InstalledPlugins(found, config.override_policy, parts.providers)
        self.config = config
        if config.has_basic_auth and parts.credentials is None:
            raise ConfigError("rest.extension.classes: a simulated worker has no passwords")
        yield from self._pass(parts.times.admin_client_ms)
        cluster_id = yield from self._look_up_cluster_id()
        yield from self._pass(parts.times.server_ms)
        url = config.advertised_url(parts.machine)
        loggers = Loggers()
        rest = RestServer(self._rest_settings(config, url), self._outbox, loggers)
        self._rest = rest
        self.is_listening = True
        self._outbox.tell(Listen(url))
        yield from self._pass(parts.times.construction_ms)
        herder = self._make_herder(config, plugins, url)
        self.herder = herder
        herder.start()
        yield from self._pass(parts.times.resources_ms)
        rest.initialize_resources(RestView(herder), plugins, cluster_id=cluster_id)

    def _rest_settings(self, config: DistributedConfig, url: str) -> RestSettings:
        return RestSettings(
            url=url,
            tracking=TopicTracking(config.topic_tracking_enable, config.topic_tracking_allow_reset),
            has_admin=config.admin_listeners is None,
            cross_origin=config.cross_origin,
            response_headers=config.response_headers,
            credentials=self._parts.credentials if config.has_basic_auth else None,
            has_tasks_config=self._parts.has_tasks_config,
        )

    def _look_up_cluster_id(self) -> Blocking[str]:
        """Ask for the cluster id. Source: WorkerConfig.lookupKafkaClusterId."""
        described = self._outbox.ask(DescribeCluster)
        yield Wait(described)
        if described.error is not None:
            raise ConnectException(
                "Failed to connect to and describe Kafka cluster. "
                "Check worker's broker connection and security properties.",
                described.error,
            )
        return str(described.value)

    def _pass(self, duration_ms: int) -> Blocking[None]:
        """Stay busy for the given time."""
        if duration_ms > 0:
            yield Wait(until_ms=self._outbox.now_ms + duration_ms)

    def _make_herder(
        self, config: DistributedConfig, plugins: InstalledPlugins, url: str
    ) -> Herder:
        """Build the herder. Source: ConnectDistributed.createHerder."""
        outbox, spawn = self._outbox, self._threads.start
        offsets = OffsetStore(outbox, spawn, topic=config.offset_topic)
        statuses = StatusStore(outbox, spawn, topic=config.status_topic)
        transactional = config.exactly_once.uses_transactional_leader
        configs = ConfigStore(
            outbox,
            spawn,
            topic=config.config_topic,
            transactional_id=config.transactional_id if transactional else None,
        )
        self._logs = {each.topic.name: each for each in (offsets.log, statuses.log, configs.log)}
        parts = HerderParts(
            config=config,
            outbox=outbox,
            threads=self._threads,
            config_store=configs,
            status_store=statuses,
            offset_store=offsets,
            plugins=plugins,
            requests=InternalRequests(outbox, config.signature_algorithm),
            worker_id=config.worker_id(self._parts.machine),
            random_bytes=self._parts.random_bytes,
        )
        return Herder(parts, partial(self._make_coordinator, config, url))

    def _make_coordinator(
        self, config: DistributedConfig, url: str, snapshot: Callable[[], ConfigSnapshot]
    ) -> WorkerCoordinator:
        return WorkerCoordinator(
            config.member,
            client_id=self._parts.client_name,
            group_id=config.group_id,
            url=url,
            config_snapshot=snapshot,
            bootstrap=self._parts.bootstrap,
            jitter=self._parts.jitter,
        )

    # REST, and the end.

    def _serve(self, rest: RestServer, exchange: int, request: HttpRequest) -> Blocking[None]:
        yield from rest.serve(exchange, request)
        self._open_requests -= 1
        if self._open_requests == 0:
            self._quiet.complete()

    def _shut_down(self) -> Blocking[None]:
        """Shut down as Connect.stop: the REST server first, then the herder."""
        if self.herder is None:
            # Java registers the shutdown hook at the end of the start; there is none before.
            self._outbox.tell(Closed())
            return
        self.is_listening = False
        self._outbox.tell(StopListening())
        if self._open_requests:
            self._quiet = Pending()
            yield Wait(self._quiet, until_ms=self._outbox.now_ms + GRACEFUL_SHUTDOWN_TIMEOUT_MS)
        self.herder.stop()


class RestView:
    """A herder as the REST resources see it.

    Args:
        herder: The herder.
    """

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def submit(self, request: Request) -> Pending[Outcome]:
        """Submit a request to the herder."""
        return self._herder.submit(request)

    @property
    def _state(self) -> HerderState:
        return self._herder.state

    @property
    def is_ready(self) -> bool:
        """Whether a tick has ended since the start."""
        return self._state.is_ready

    @property
    def stage(self) -> Stage | None:
        """What the herder's thread is doing, or has done last."""
        return self._state.stage

    @property
    def logger_levels(self) -> Mapping[str, str]:
        """Log levels set for the whole cluster, by namespace."""
        return self._state.logger_levels
