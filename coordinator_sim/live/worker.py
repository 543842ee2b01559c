"""A Connect worker in a real group: the port with everything it needs around it.

Membership uses our own connections, topics librdkafka, REST a listener on the advertised address;
the work of connectors runs in this process.
"""

import secrets
import socket
from functools import partial
from itertools import count

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.connect import effects
from coordinator_sim.connect.plugins.registry import Plugin, Plugins
from coordinator_sim.connect.plugins.standard_plugins import standard_plugins
from coordinator_sim.connect.settings.worker_config import DistributedConfig, told_of_unknown
from coordinator_sim.connect.start_up import AT_ONCE
from coordinator_sim.connect.worker import ConnectWorker, WorkerParts
from coordinator_sim.errors import DataError, InvariantViolation
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.live import rest_security
from coordinator_sim.live.background import in_thread
from coordinator_sim.live.chance import SystemChance
from coordinator_sim.live.config_providers import providers_in, resolved
from coordinator_sim.live.data_plane import DataEffect, DataPlane
from coordinator_sim.live.driver import Audience, PortLoop, now_ms
from coordinator_sim.live.http_client import RestClient
from coordinator_sim.live.http_server import RestServer
from coordinator_sim.live.source_offsets import SourceOffsets
from coordinator_sim.live.work import WorkRunner, WorkSettings
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node

_WORK = (
    effects.StartConnector,
    effects.StartTask,
    effects.StopConnector,
    effects.StopTask,
    effects.CancelTask,
    effects.ChangeTargetState,
)


class WorkerOptions(Struct, frozen=True, kw_only=True):
    """Options of a worker.

    Args:
        properties: Settings by Kafka's names, with `bootstrap.servers` and `group.id`.
        plugins: Plugins on its plugin path.
        problems: What the scan left out there, a line each.
    """

    bootstrap: tuple[Node, ...]
    properties: dict[str, str]
    plugins: tuple[Plugin, ...]
    problems: tuple[str, ...] = ()


class ConnectMember(PortLoop):
    """One worker, from its start to its end.

    Args:
        options: Options of the worker.
        audience: Receives the member's events.

    Raises:
        ConfigError: a property is missing, of the wrong type or out of bounds, or the listener's
            address is in use.
    """

    def __init__(self, options: WorkerOptions, audience: Audience) -> None:
        installed = Plugins((*standard_plugins(), *options.plugins))
        providers = providers_in(options.properties)
        properties = resolved(options.properties, providers)
        config = DistributedConfig.from_properties(properties, installed.full_name)
        self._worker = ConnectWorker(
            WorkerParts(
                properties=properties,
                plugins=options.plugins,
                bootstrap=options.bootstrap,
                machine=socket.gethostname(),
                client_name=config.group_id,
                random_bytes=secrets.token_bytes,
                jitter=SystemChance(),
                times=AT_ONCE,
                credentials=rest_security.credentials() if config.has_basic_auth else None,
                providers=providers,
            )
        )
        client_id = f"connect-{config.worker_id(socket.gethostname())}"
        super().__init__(self._worker, options.bootstrap, client_id=client_id, audience=audience)
        self._servers = self._listeners(config)
        tls = (
            rest_security.client_context(properties)
            if config.advertised_scheme == "https"
            else None
        )
        self._client = RestClient(self.answered, tls)
        bootstrap = ",".join(config.bootstrap_servers)
        self._plane = DataPlane(
            bootstrap, client_id=config.client_id_base, listener=self, loop=self._loop
        )
        self._offsets = SourceOffsets(self._plane, config.offset_topic.name)
        self._work = WorkRunner(
            installed,
            self._plane,
            self._offsets,
            WorkSettings(
                bootstrap=bootstrap,
                group_id=config.group_id,
                flush_interval_ms=config.offset_flush_interval_ms,
                properties=properties,
            ),
            self,
        )
        self._problems = options.problems
        self._unknown = config.unknown
        self._cause_of_death: str | None = None

    def _listeners(self, config: DistributedConfig) -> list[RestServer]:
        """Bind every listener; requests of all are numbered together.

        Raises:
            ConfigError: an address is in use, or https lacks a certificate.
        """
        exchanges = count(1)
        servers: list[RestServer] = []
        admin = [(each, True) for each in config.admin_listeners or ()]
        for listener, is_admin in [*((each, False) for each in config.listeners), *admin]:
            prefix = rest_security.ADMIN if is_admin else rest_security.PUBLIC
            is_https = listener.scheme == "https"
            tls = rest_security.server_context(config.properties, prefix) if is_https else None
            server = RestServer(
                listener.host,
                listener.port,
                partial(self._requested, is_admin=is_admin),
                exchanges=exchanges,
                tls=tls,
            )
            servers.append(server)
        return servers

    @property
    def fatal_error(self) -> str | None:
        """Cause that ended the worker; None where it was asked to end."""
        return self._cause_of_death

    def stop(self) -> None:
        """Shut down as on SIGTERM."""
        self._turn(lambda: self._worker.stop(now_ms()))

    def _start(self) -> None:
        ignored = told_of_unknown(self._unknown)
        if ignored is not None:
            self._tell("IGNORED", ignored, names=list(self._unknown))
        for problem in self._problems:
            self._tell("LEFT_OUT", f"left out of the plugins: {problem}", problem=problem)
        self._turn(lambda: self._worker.start(now_ms()))

    async def _clean_up(self) -> None:
        self._end()
        for server in self._servers:
            await server.stop()
        await self._work.close()
        await self._client.close()
        await in_thread(self._plane.close)

    # Callbacks: topics, work, HTTP.

    def answered(self, token: int, value: object, error: str | None) -> None:
        """Pass an answer on to the worker; any success shows that there are brokers."""
        self._was_connected = self._was_connected or error is None
        self._turn(lambda: self._worker.answered(token, value, error, now_ms=now_ms()))

    def fetched(self, fetched: effects.Fetched) -> None:
        """Pass on records read of an internal topic."""
        self._offsets.fetched(fetched)
        self._turn(lambda: self._worker.fetched(fetched, now_ms()))

    def failed(self, error: DataError) -> None:
        """End the worker: a topic can no longer be read."""
        self._fail(error)

    def work_failed(self, resource: str | ConnectorTaskId, trace: str) -> None:
        """Pass on that a connector or a task has failed by itself."""
        name = resource if isinstance(resource, str) else _name(resource)
        self._tell("WORK_FAILED", f"{name} failed: {trace}", resource=name, trace=trace)
        self._turn(lambda: self._worker.work_failed(resource, trace, now_ms()))

    def topic_used(self, task: ConnectorTaskId, topic: str) -> None:
        """Pass on that a task uses a topic."""
        self._turn(lambda: self._worker.topic_used(task, topic, now_ms()))

    def _requested(self, exchange: int, request: effects.HttpRequest, *, is_admin: bool) -> None:
        request = replace(request, is_admin=is_admin)
        self._turn(lambda: self._worker.http(exchange, request, now_ms()))

    # Effects.

    def _carry_out(self, effect: effects.WorkerEffect) -> None:
        match effect:
            case effects.AnswerHttp():
                self._answer(effect)
            case effects.CallHttp():
                self._client.call(effect)
            case effects.Listen(url=url):
                self._listen(url)
            case effects.StopListening():
                self._tell("STOPPING", "stopping")
            case effects.Ready():
                self._tell("READY", "the herder is ready")
            case effects.Died(reason=reason):
                self._cause_of_death = reason
                self._tell("DIED", f"died: {reason}", reason=reason)
                self._end()
            case effects.DescribeTopicConfig(token=token, topic=topic, name=name):
                self._plane.topic_setting(token, topic, name)
            case effects.CloseProducer(transactional_id=transactional_id):
                self._plane.close_producer(transactional_id)
            case _:
                self._carry_out_work(effect)

    def _answer(self, effect: effects.AnswerHttp) -> None:
        for server in self._servers:
            server.answer(effect)

    def _listen(self, url: str) -> None:
        for server in self._servers:
            server.start()
        self._tell("LISTENING", f"listening at {url}", url=url)

    def _carry_out_work(self, effect: effects.WorkerEffect) -> None:
        if isinstance(effect, _WORK):
            self._tell_of_work(effect)
            self._work.carry_out(effect)
        elif isinstance(effect, DataEffect):
            self._plane.carry_out(effect)
        elif not isinstance(effect, effects.ReadToEnd):  # which is for the record alone
            raise InvariantViolation(f"{type(effect).__name__} is not asked of a driver")

    def _tell_of_work(self, effect: effects.WorkerEffect) -> None:
        match effect:
            case effects.StartConnector(connector=connector):
                self._tell("STARTED", f"started connector {connector}", resource=connector)
            case effects.StartTask(task=task):
                self._tell("STARTED", f"started task {_name(task)}", resource=_name(task))
            case effects.StopConnector(connector=connector):
                self._tell("STOPPED", f"stopped connector {connector}", resource=connector)
            case effects.StopTask(task=task):
                self._tell("STOPPED", f"stopped task {_name(task)}", resource=_name(task))
            case _:
                pass


def _name(task: ConnectorTaskId) -> str:
    return f"{task.connector}-{task.task}"
