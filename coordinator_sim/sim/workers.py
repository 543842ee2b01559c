"""A Connect worker process: the whole worker, its Kafka clients, and the work it runs.

The worker decides everything; this driver gives its effects their durations.
"""

from functools import partial
from hashlib import sha256
from typing import Final

from coordinator_sim.clients.effects import RunCallback
from coordinator_sim.clock import Action
from coordinator_sim.connect.effects import (
    AnswerHttp,
    CallHttp,
    CancelTask,
    ChangeTargetState,
    Died,
    Fetched,
    HttpRequest,
    HttpResponse,
    Listen,
    Ready,
    StartConnector,
    StartTask,
    StopConnector,
    StopListening,
    StopTask,
    TargetState,
    WorkerEffect,
)
from coordinator_sim.connect.herding.herder_state import HerderState
from coordinator_sim.connect.herding.requests import Done, Outcome
from coordinator_sim.connect.plugins.manifests import (
    ConnectorManifest,
    SettingSpec,
    TaskRule,
    TasksSpec,
)
from coordinator_sim.connect.plugins.registry import Plugin, PluginType
from coordinator_sim.connect.plugins.standard_plugins import file_stream_plugins
from coordinator_sim.connect.start_up import StartUpTimes
from coordinator_sim.connect.thread import Blocking, Wait
from coordinator_sim.connect.worker import ConnectWorker, WorkerParts
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.resources import ConnectorTaskId, connector_resource
from coordinator_sim.sim.client_process import ClientProcess
from coordinator_sim.sim.connect_cluster import ConnectCluster
from coordinator_sim.sim.data_plane import DataPlane
from coordinator_sim.sim.internal_topics import SHARDS, SINK_CLASS, SOURCE_CLASS
from coordinator_sim.sim.rest_operator import worker_url
from coordinator_sim.sim.scenario.quantiles import drawn
from coordinator_sim.sim.scenario.world import ConnectGroupSpec, WorkerSpec
from coordinator_sim.sim.task_runs import ClusterWork
from coordinator_sim.sim.tasks import WorkerTasks
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import Event

START_UP: Final = StartUpTimes(
    process_ms=300,
    scan_ms=300,
    listing_ms=300,
    admin_client_ms=150,
    server_ms=150,
    construction_ms=100,
    resources_ms=0,
)
"""Start-up times of a simulated worker: a second to its first access to the internal topics.

A real worker takes longer before it (`connect.start_up`), which would only shift all later
events.
"""
START_WORK_US: Final = 100_000
"""Time that the start of a connector or task takes in an exact world."""
STOP_WORK_US: Final = 200_000
"""Time that its stop takes in an exact world: within every graceful timeout that is not tiny."""
_KEY_CHOICES: Final = 1 << 61


class WorkerProcess(ClientProcess):
    """One incarnation of a Connect worker.

    Args:
        world: Shared parts of the run.
        spec: The worker.
        group: The worker's cluster.
        cluster: State shared by the cluster's workers.
        work: State shared by the cluster's tasks.
        on_exit: Called once when the process has ended.
    """

    __slots__ = (
        "_cluster",
        "_data",
        "_late_records",
        "_on_exit",
        "_tasks",
        "_told",
        "_url",
        "_worker",
    )

    def __init__(
        self,
        world: World,
        spec: WorkerSpec,
        group: ConnectGroupSpec,
        *,
        cluster: ConnectCluster,
        work: ClusterWork,
        on_exit: Action,
    ) -> None:
        self._worker = ConnectWorker(
            WorkerParts(
                properties=worker_properties(spec, group, cluster, brokers=len(world.bootstrap())),
                plugins=_PLUGINS,
                bootstrap=world.bootstrap(),
                machine=spec.name,
                client_name=spec.name,
                random_bytes=self._random_bytes,
                jitter=world.choices,
                times=START_UP,
            )
        )
        super().__init__(world, spec.name, group_id=group.group_id, port=self._worker)
        self._cluster = cluster
        self._data = DataPlane(
            world,
            spec.name,
            costs=group.internal_topics.costs,
            once_sent=(cluster.names.statuses,),
            answer=self._answered,
            fetched=self._fetched,
            group_id=group.group_id,
        )
        self._tasks = WorkerTasks(
            world,
            work,
            spec.name,
            settings=worker_settings(spec, group),
            on_failed=self._task_failed,
        )
        self._url = worker_url(spec.name)
        self._late_records: list[Fetched] = []
        self._told: dict[Event, list[str]] = {}
        self._on_exit = on_exit

    # Happenings of the scenario.

    def start(self) -> None:
        """Begin the process."""
        self._cluster.enter(self)
        self._later(0, lambda: self._run(self._worker.start(self._now_ms())))

    def stop(self) -> None:
        """Stop all work, leave the group, and end."""
        self._later(0, lambda: self._run(self._worker.stop(self._now_ms())))

    def be_slow(self, for_us: int) -> None:
        """Keep the herder's thread busy for the given time, as a slow request does."""
        self._later(0, partial(self._occupy, for_us))

    def pause(self, for_us: int) -> None:
        """Freeze the process with its clients and tasks."""
        self._tasks.pause(for_us)
        if not self._is_paused:
            self._data.pause()
        super().pause(for_us)

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Refuse; scenarios are checked so that a worker never gets this.

        Raises:
            InvariantViolation: always.
        """
        raise InvariantViolation(f"worker {self._name} cannot subscribe to {topics}")

    def fail(self, resource: str | ConnectorTaskId, trace: str) -> None:
        """Make a connector (by name) or a task fail that runs here."""
        if isinstance(resource, ConnectorTaskId) and self._tasks.runs(resource):
            self._later(0, partial(self._tasks.fail, resource, trace))
        else:
            self._later(0, partial(self._failed, resource, trace))

    def _failed(self, resource: str | ConnectorTaskId, trace: str) -> None:
        self._run(self._worker.work_failed(resource, trace, self._now_ms()))

    def _occupy(self, for_us: int) -> None:
        herder = self._worker.herder
        if herder is not None:
            herder.state.add_request(partial(_busy, herder.state, for_us // US_PER_MS))
            self._run(self._worker.expire(self._now_ms()))

    def _thaw(self) -> None:
        super()._thaw()
        self._data.resume()

    # HTTP.

    def request_arrived(self, exchange: int, request: HttpRequest) -> None:
        """Handle a request that reached the REST server."""
        self._later(0, lambda: self._run(self._worker.http(exchange, request, self._now_ms())))

    def _call(self, effect: CallHttp) -> None:
        answered = partial(self._call_answered, effect.token)
        self._world.http.call(self._name, effect.url, effect.request, answered)

    def _call_answered(self, token: int, response: HttpResponse | None, error: str | None) -> None:
        self._later(0, partial(self._answered, token, response, error))

    def _listen(self) -> None:
        self._world.http.listen(self._url, self._name, self)
        self._cluster.listens(self._url, listens=True)

    def _stop_listening(self) -> None:
        self._world.http.stop_listening(self._url)
        self._cluster.listens(self._url, listens=False)

    # Effects of the worker.

    def _carry_out(self, effect: WorkerEffect) -> None:
        if self._data.carry_out(effect):
            return
        match effect:
            case StartConnector() | StartTask() | StopConnector() | StopTask():
                self._change_work(effect)
            case CancelTask(task=task):
                if self._tasks.runs(task):
                    # Its end will not be reported: for the worker, it is over.
                    self._tell(Event.TASKS_STOPPED, task.resource())
                self._tasks.cancel(task)
            case ChangeTargetState(connector=connector, target_state=state):
                self._tasks.keep_still(connector, state is not TargetState.STARTED)
            case Died(reason=reason):
                self._record(Event.LIFECYCLE, reason_text=f"died of {reason}")
                self.kill()
            case _:
                self._carry_out_http(effect)

    def _carry_out_http(self, effect: WorkerEffect) -> None:
        match effect:
            case Listen():
                self._listen()
            case StopListening():
                self._stop_listening()
            case AnswerHttp(exchange=exchange, response=response):
                self._world.http.answer(exchange, response)
            case CallHttp():
                self._call(effect)
            case Ready():
                pass  # a first tick has ended; group members show that by themselves
            case _:
                raise InvariantViolation(f"{type(effect).__name__} is not asked of a driver")

    def _answered(self, token: int, value: object, error: str | None) -> None:
        self._run(self._worker.answered(token, value, error, now_ms=self._now_ms()))

    def _fetched(self, fetched: Fetched) -> None:
        """Hand records over, unless the scenario delays those of the config topic."""
        held_us = self._cluster.held_until_us(self._name) - self._environment.now_us
        if fetched.topic != self._cluster.names.configs or held_us <= 0:
            self._run(self._worker.fetched(fetched, self._now_ms()))
            return
        if not self._late_records:
            self._later(held_us, self._hand_over_late)
        self._late_records.append(fetched)

    def _hand_over_late(self) -> None:
        late, self._late_records = self._late_records, []
        for fetched in late:
            self._run(self._worker.fetched(fetched, self._now_ms()))

    # Work.

    def _change_work(self, effect: StartConnector | StartTask | StopConnector | StopTask) -> None:
        """Start or stop work; without described work its duration is drawn or fixed."""
        starts = isinstance(effect, StartConnector | StartTask)
        if isinstance(effect, StartConnector | StopConnector):
            resource, described = connector_resource(effect.connector), False
        else:
            resource = effect.task.resource()
            described = self._tasks.does(effect.task.connector)
        done = partial(self._work_changed, effect.token, resource, starts=starts)
        if not described:
            self._later(self._change_us(resource, effect), done)
        elif isinstance(effect, StartTask):
            started = partial(self._task_started, effect.task, done)
            self._tasks.start(effect.task, self._task_count(effect.task), started)
        elif isinstance(effect, StopTask):
            self._tasks.stop(effect.task, done)

    def _change_us(
        self, resource: str, effect: StartConnector | StartTask | StopConnector | StopTask
    ) -> int:
        """Return how long the start or stop of undescribed work takes, in microseconds."""
        starts = isinstance(effect, StartConnector | StartTask)
        variety = self._world.variety
        if variety is None:
            return START_WORK_US if starts else STOP_WORK_US
        match effect:
            case StartConnector():
                table = variety.start_connector_ms
            case StartTask():
                table = variety.start_task_ms
            case StopConnector():
                table = variety.stop_connector_ms
            case StopTask():
                table = variety.stop_task_ms
        site = "start-work" if starts else "stop-work"
        return drawn(table, self._world.choices, site, resource) * US_PER_MS

    def _task_started(self, task: ConnectorTaskId, done: Action) -> None:
        """Report a task's start and its topics as active, because its records begin to move."""
        done()
        for topic in self._tasks.topics_of(task.connector):
            self._run(self._worker.topic_used(task, topic, self._now_ms()))

    def _task_count(self, task: ConnectorTaskId) -> int:
        """Return the connector's present number of tasks; if deleted, at least this one."""
        herder = self._worker.herder
        count = 0 if herder is None else herder.state.config_state.task_count(task.connector)
        return max(count, task.task + 1)

    def _task_failed(self, task: ConnectorTaskId, trace: str) -> None:
        self._record(Event.LIFECYCLE, reason_text=f"{task.resource()} failed: {trace}")
        self._later(0, partial(self._failed, task, trace))

    def _work_changed(self, token: int, resource: str, *, starts: bool) -> None:
        self._tell(Event.TASKS_STARTED if starts else Event.TASKS_STOPPED, resource)
        self._answered(token, None, None)

    def _tell(self, event: Event, resource: str) -> None:
        """Record starts or stops; those of one instant are one event."""
        if not self._told:
            self._later(0, self._record_told, even_if_paused=True)
        self._told.setdefault(event, []).append(resource)

    def _record_told(self) -> None:
        told, self._told = self._told, {}
        herder = self._worker.herder
        for event, resources in told.items():
            member = None if herder is None else herder.state.member.coordinator
            self._record(
                event,
                generation=None if member is None else member.generation_id,
                member_id=None if member is None else member.member_id or None,
                attrs={"resources": " ".join(resources)},
            )

    # The end, and hooks that only consumers use.

    def _on_gone(self) -> None:
        self._tasks.crash()
        self._data.kill()
        self._world.http.gone(self._url)
        self._cluster.listens(self._url, listens=False)
        self._cluster.leave(self)
        self._on_exit()

    def _on_poll_returned(self, error: str | None) -> None:
        raise InvariantViolation(f"the worker polls by itself, and told of {error}")

    def _on_callback(self, callback: RunCallback) -> None:
        raise InvariantViolation(f"the worker runs {callback.kind} by itself")

    def _random_bytes(self, count: int) -> bytes:
        """Return bytes for a session key; one choice, whatever the length."""
        drawn = self._world.choices.choose("session-key", self._name, _KEY_CHOICES)
        blocks = -(-count // sha256().digest_size)
        key = b"".join(
            sha256(f"{self._name}/{drawn}/{block}".encode()).digest() for block in range(blocks)
        )
        return key[:count]


def _busy(herder: HerderState, for_ms: int) -> Blocking[Outcome]:
    """Keep the herder's thread busy for the given time, as a request."""
    yield Wait(until_ms=herder.now_ms + for_ms)
    return Done()


def _simulated(class_name: str, kind: PluginType) -> Plugin:
    """Return the class of connectors whose number of tasks the scenario gives."""
    manifest = ConnectorManifest(
        class_name=class_name,
        type="sink" if kind is PluginType.SINK else "source",
        settings=(SettingSpec(name=SHARDS, type="list", default=""),),
        tasks=TasksSpec(rule=TaskRule.SHARE, of=SHARDS),
    )
    return Plugin(class_name=class_name, type=kind, config=manifest.config_def(), manifest=manifest)


_PLUGINS: Final = (
    _simulated(SOURCE_CLASS, PluginType.SOURCE),
    _simulated(SINK_CLASS, PluginType.SINK),
    *file_stream_plugins(),
)


def worker_settings(spec: WorkerSpec, group: ConnectGroupSpec) -> dict[str, str]:
    """Return the settings of one worker by Kafka's names, its own over its cluster's."""
    return {**group.settings, **spec.settings, "connect.protocol": group.connect_protocol}


def worker_properties(
    spec: WorkerSpec, group: ConnectGroupSpec, cluster: ConnectCluster, *, brokers: int
) -> dict[str, str]:
    """Return all properties of one worker, including those that a scenario does not set."""
    converter = "org.apache.kafka.connect.json.JsonConverter"
    topics = group.internal_topics
    return {
        "bootstrap.servers": "simulated:9092",
        "group.id": group.group_id,
        "key.converter": converter,
        "value.converter": converter,
        "listeners": worker_url(spec.name).rstrip("/"),
        "rest.advertised.host.name": spec.name,
        **cluster.names.settings(),
        "config.storage.replication.factor": str(min(3, brokers)),
        "status.storage.replication.factor": str(min(3, brokers)),
        "offset.storage.replication.factor": str(min(3, brokers)),
        "status.storage.partitions": str(topics.status_partitions),
        "offset.storage.partitions": str(topics.offset_partitions),
        **worker_settings(spec, group),
    }
