"""Bench of Connect worker cases: a herder, its topics, its group and its work, driven by hand.

Topics are in memory and read at once unless held. The group's coordinator answers at once: this
worker leads and assigns, or follows and gets the case's assignments. No case is here.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from coordinator_sim.clients.effects import Closed, Connect, Disconnect, Send
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.clients.worker_coordinator import ConfigSnapshot, WorkerCoordinator
from coordinator_sim.connect.effects import (
    CallHttp,
    CancelTask,
    ChangeTargetState,
    Died,
    HttpResponse,
    Ready,
    StartConnector,
    StartTask,
    StopConnector,
    StopTask,
    TargetState,
    WorkerEffect,
)
from coordinator_sim.connect.herding.herder import Herder, tick
from coordinator_sim.connect.herding.herder_state import HerderParts, HerderState
from coordinator_sim.connect.herding.requests import (
    ConnectorOffset,
    ConnectorType,
    Outcome,
    PluginFailure,
    Request,
)
from coordinator_sim.connect.rest.internal_requests import InternalRequests
from coordinator_sim.connect.settings.worker_config import DistributedConfig
from coordinator_sim.connect.stores.config_records import (
    commit_tasks_key,
    commit_value,
    connector_key,
    properties_value,
    target_state_key,
    target_state_value,
    task_key,
)
from coordinator_sim.connect.stores.config_store import ConfigStore
from coordinator_sim.connect.stores.offset_store import OffsetStore
from coordinator_sim.connect.stores.status_store import StatusStore
from coordinator_sim.connect.stores.topic_log import InternalTopic
from coordinator_sim.connect.thread import Pending
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import ConnectorTaskId, connector_resource
from coordinator_sim.messages.embedded.connect_protocol import (
    encode_connect_assignment,
    encode_worker_metadata,
)
from coordinator_sim.messages.embedded.contents import ConnectAssignment, WorkerMetadata
from coordinator_sim.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from coordinator_sim.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from coordinator_sim.messages.metadata import MetadataRequest, MetadataResponse
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.requests import Request as GroupRequest
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim_conformance.client_cases.topic_bench import TopicBench
from coordinator_sim_conformance.script.stage import CaseFailed

BROKER: Final = Node(node_id=1, host="broker", port=9092)
CONFIGS: Final = "configs"
STATUSES: Final = "statuses"
OFFSETS: Final = "offsets"
MEMBER: Final = "m"
LEADER: Final = "l"
URL: Final = "http://worker:8083/"
LEADER_URL: Final = "http://leader:8083/"
_PROTOCOL_NAMES: Final = ("default", "compatible", "sessioned")
_LEAST_SETTINGS: Final = {
    "bootstrap.servers": "broker:9092",
    "group.id": "connect",
    "config.storage.topic": CONFIGS,
    "status.storage.topic": STATUSES,
    "offset.storage.topic": OFFSETS,
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}
E = TypeVar("E", bound=WorkerEffect)
R = TypeVar("R", bound=GroupRequest)


class BenchPlugins:
    """Classes named Source and Sink; a connector has as many tasks as its key `tasks` says.

    Attributes:
        failure: Exception of `taskConfigs`; None for none.
    """

    def __init__(self) -> None:
        self.failure: PluginFailure | None = None

    def connector_type(self, config: Mapping[str, str]) -> ConnectorType:
        """Return the type by the name of the class."""
        kinds = {"Source": ConnectorType.SOURCE, "Sink": ConnectorType.SINK}
        return kinds.get(config.get("connector.class", ""), ConnectorType.UNKNOWN)

    def version(self, config: Mapping[str, str]) -> str | None:
        """Return None: classes have no version."""

    def transformed(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return the configuration as it is."""
        return dict(config)

    def start_failure(self, config: Mapping[str, str]) -> PluginFailure | None:
        """Refuse classes of other names as missing."""
        if self.connector_type(config) is ConnectorType.UNKNOWN:
            return PluginFailure("ConnectException: no such class")
        return None

    def validation_errors(self, config: Mapping[str, str]) -> tuple[str, ...] | PluginFailure:
        """Require a class in the configuration."""
        return () if "connector.class" in config else ("connector.class is missing",)

    def alter_offsets(
        self,
        config: Mapping[str, str],  # noqa: ARG002 - of the protocol
        offsets: tuple[ConnectorOffset, ...],  # noqa: ARG002 - of the protocol
    ) -> bool | PluginFailure:
        """Return False: no class vouches for offsets."""
        return False

    def task_configs(
        self, config: Mapping[str, str], max_tasks: int
    ) -> list[dict[str, str]] | PluginFailure:
        """Return as many tasks as the configuration sets, or else the maximum."""
        if self.failure is not None:
            return self.failure
        count = int(config.get("tasks", max_tasks))
        return [{"task": str(number), "of": config.get("value", "")} for number in range(count)]


class HerderBench(TopicBench):
    """A herder and everything around it.

    Args:
        settings: Worker settings by Kafka's names.

    Attributes:
        plugins: Classes installed on it.
        leads: Whether this worker leads its group.
        others: Member id -> metadata of other members, while this worker leads.
        assignments: Next SyncGroup assignments, while it follows; a JoinGroup waits for one.
        heartbeat: Error code of heartbeat answers.
        join_error: Error code of JoinGroup answers; NONE for success.
        is_mute: Whether the brokers answer nothing.
        requests: Requests to the brokers, and when.
        work: Starts and stops of work, in words, and when.
        http: Answers of other workers; the last one stays.
        endings: `Ready`, `Died` and `Closed`, as they came.
    """

    def __init__(self, **settings: str) -> None:
        super().__init__()
        self.plugins = BenchPlugins()
        self.leads = False
        self.others: dict[str, WorkerMetadata] = {}
        self.assignments: list[ConnectAssignment] = []
        self.heartbeat = ErrorCode.NONE
        self.join_error = ErrorCode.NONE
        self.is_mute = False
        self.requests: list[tuple[int, GroupRequest]] = []
        self.work: list[tuple[int, str]] = []
        self.http: list[HttpResponse] = [HttpResponse(status=204)]
        self.endings: list[Ready | Died | Closed] = []
        self._generation_id = 0
        self._keys = 0
        self._waiting_joins: list[int] = []
        properties = {name.replace("_", "."): value for name, value in settings.items()}
        self.config = DistributedConfig.from_properties({**_LEAST_SETTINGS, **properties})
        for name in (CONFIGS, STATUSES, OFFSETS):
            self.make_topic(name)
        self.herder = self._make_herder()

    def _make_herder(self) -> Herder:
        is_exactly_once = self.config.exactly_once.value != "disabled"
        config_store = ConfigStore(
            self.outbox,
            self.spawn,
            topic=_topic(CONFIGS),
            transactional_id=self.config.transactional_id if is_exactly_once else None,
        )
        status_store = StatusStore(self.outbox, self.spawn, topic=_topic(STATUSES))
        offset_store = OffsetStore(self.outbox, self.spawn, topic=_topic(OFFSETS))
        for store in (config_store, status_store, offset_store):
            self.serve(store.log)
        parts = HerderParts(
            config=self.config,
            outbox=self.outbox,
            threads=self.threads,
            config_store=config_store,
            status_store=status_store,
            offset_store=offset_store,
            plugins=self.plugins,
            requests=InternalRequests(self.outbox, self.config.signature_algorithm),
            worker_id="worker:8083",
            random_bytes=self._random_bytes,
        )
        return Herder(parts, self._make_coordinator)

    def _make_coordinator(self, snapshot: Callable[[], ConfigSnapshot]) -> WorkerCoordinator:
        return WorkerCoordinator(
            self.config.member,
            client_id="worker",
            group_id=self.config.group_id,
            url=URL,
            config_snapshot=snapshot,
            bootstrap=(BROKER,),
        )

    def _random_bytes(self, count: int) -> bytes:
        self._keys += 1
        return bytes([self._keys]) * count

    @property
    def state(self) -> HerderState:
        """Fields of the herder."""
        return self.herder.state

    @property
    def now_ms(self) -> int:
        """The present instant."""
        return self.outbox.now_ms

    # Time.

    def start(self) -> "HerderBench":
        """Start the herder, and let it run as far as it can at once."""
        self.herder.start()
        self.settle()
        return self

    def start_services(self) -> None:
        """Read the topics to their ends, as the herder does before its first tick."""
        for store in (self.state.offset_store, self.state.status_store, self.state.config_store):
            self.call(store.start())

    def tick(self) -> bool:
        """Run one tick as far as it can run at once; return whether it has ended."""
        thread = self.threads.start(tick(self.state))
        self.settle()
        return thread.is_finished

    def run(self, for_ms: int) -> None:
        """Let time pass; everything that is due happens at its instant."""
        until_ms = self.now_ms + for_ms
        while True:
            self.settle()
            deadline_ms = self._deadline_ms()
            if deadline_ms > until_ms:
                break
            self.outbox.now_ms = max(self.now_ms, deadline_ms)
            self.state.member.carry_out(self._coordinator.expire(self.now_ms))
        self.outbox.now_ms = until_ms
        self.settle()

    def _deadline_ms(self) -> int:
        own_ms = self._coordinator.next_deadline_ms()
        return min(self.threads.deadline_ms, FOREVER if own_ms is None else own_ms)

    @property
    def _coordinator(self) -> WorkerCoordinator:
        return self.state.member.coordinator

    # The config topic, as other workers write it.

    def write_connector(self, connector: str, **config: str) -> None:
        """Write a connector's configuration."""
        properties = {"name": connector, "connector.class": "Source", "tasks.max": "1", **config}
        self.write(CONFIGS, connector_key(connector), properties_value(properties))

    def write_tasks(self, connector: str, *values: str) -> None:
        """Write tasks made from a connector with this `value`, and their commit."""
        for number, value in enumerate(values):
            config = {"task": str(number), "of": value}
            self.write(
                CONFIGS, task_key(ConnectorTaskId(connector, number)), properties_value(config)
            )
        self.write(CONFIGS, commit_tasks_key(connector), commit_value(len(values)))

    def write_target_state(self, connector: str, state: TargetState) -> None:
        """Write a connector's target state."""
        self.write(CONFIGS, target_state_key(connector), target_state_value(state))

    def config_offset(self) -> int:
        """Return one past the last record of the config topic."""
        return len(self.records(CONFIGS))

    # The group.

    def assign(self, *resources: str | ConnectorTaskId, **fields: object) -> None:
        """Set a follower's next assignment: this work, at the topic's present end."""
        said = {
            "version": int(self.config.member.connect_protocol),
            "leader": LEADER,
            "leader_url": LEADER_URL,
            "config_offset": self.config_offset() or -1,
            "connectors": tuple(each for each in resources if isinstance(each, str)),
            "tasks": tuple(each for each in resources if not isinstance(each, str)),
        }
        self.assignments.append(ConnectAssignment(**{**said, **fields}))  # type: ignore[arg-type] # fields of ConnectAssignment
        self._answer_waiting_joins()

    def rebalance(self, *resources: str | ConnectorTaskId, **fields: object) -> None:
        """Announce a rebalance by the next heartbeat, which ends in this assignment."""
        self.assign(*resources, **fields)
        self.heartbeat = ErrorCode.REBALANCE_IN_PROGRESS
        self.run(self.config.member.heartbeat_interval_ms)

    def sent(self, kind: type[R]) -> list[R]:
        """Return the requests of one kind so far."""
        return [request for _, request in self.requests if isinstance(request, kind)]

    def sent_at(self, kind: type[GroupRequest]) -> list[int]:
        """Return when they were sent."""
        return [at_ms for at_ms, request in self.requests if isinstance(request, kind)]

    # What the worker asks for.

    def all_asked(self, kind: type[E]) -> list[E]:
        """Return the effects of one kind so far."""
        return [effect for effect in self.asked if isinstance(effect, kind)]

    def done(self, *words: str) -> list[str]:
        """Return starts and stops since the last call."""
        seen = [text for _, text in self.work if not words or text.split()[0] in words]
        self.work.clear()
        return seen

    def ask(self, request: Request) -> Pending[Outcome]:
        """Submit a request to the herder, and let it run as far as it can at once."""
        answer = self.herder.submit(request)
        self.settle()
        return answer

    def answer(self, request: Request) -> Outcome:
        """Submit a request that the herder answers at once.

        Raises:
            CaseFailed: no answer came at once.
        """
        answer = self.ask(request)
        if not answer.done:
            raise CaseFailed(f"{request} is not answered at once", ())
        return answer.result()

    def carry_out_other(self, effect: WorkerEffect) -> None:
        """Carry out all effects except those of topics."""
        match effect:
            case Connect(node_id=node_id):
                self.state.member.carry_out(self._coordinator.on_connected(node_id, self.now_ms))
            case Send():
                self.requests.append((self.now_ms, effect.request))
                self._answer_group(effect)
            case Disconnect():
                pass
            case Ready() | Died() | Closed():
                self.endings.append(effect)
            case CallHttp(token=token):
                response = self.http.pop(0) if len(self.http) > 1 else self.http[0]
                self.outbox.answered(token, response)
            case _:
                self._carry_out_work(effect)

    def _carry_out_work(self, effect: WorkerEffect) -> None:
        match effect:
            case StartConnector(connector=connector):
                self._work("start", connector_resource(connector))
            case StopConnector(connector=connector):
                self._work("stop", connector_resource(connector))
            case StartTask(task=task):
                self._work("start", task.resource())
            case StopTask(task=task):
                self._work("stop", task.resource())
            case CancelTask(task=task):
                self._work("cancel", task.resource())
            case ChangeTargetState(connector=connector, target_state=state):
                self._work(state.value.lower(), connector_resource(connector))
            case _:
                super().carry_out_other(effect)
        if isinstance(effect, StartConnector | StopConnector | StartTask | StopTask):
            self.outbox.answered(effect.token)

    def _work(self, word: str, resource: str) -> None:
        self.work.append((self.now_ms, f"{word} {resource}"))

    # The brokers.

    def _answer_group(self, send: Send) -> None:
        if self.is_mute:
            return
        response = self._response(send)
        if response is not None:
            effects = self._coordinator.on_response(send.correlation_id, response, self.now_ms)
            self.state.member.carry_out(effects)

    def _response(self, send: Send) -> Response | None:
        match send.request:
            case MetadataRequest():
                return MetadataResponse(brokers=(BROKER,), topics=())
            case FindCoordinatorRequest():
                found = Coordinator(
                    key=self.config.group_id,
                    node_id=BROKER.node_id,
                    host=BROKER.host,
                    port=BROKER.port,
                    error_message=None,
                )
                return FindCoordinatorResponse(coordinators=(found,))
            case JoinGroupRequest():
                return self._join(send.request, send.correlation_id)
            case SyncGroupRequest():
                return SyncGroupResponse(assignment=self._assignment(send.request))
            case HeartbeatRequest():
                return HeartbeatResponse(error_code=self.heartbeat)
            case LeaveGroupRequest():
                return LeaveGroupResponse()
        return None

    def _join(self, request: JoinGroupRequest, correlation_id: int) -> JoinGroupResponse | None:
        if self.join_error is not ErrorCode.NONE:
            return JoinGroupResponse(error_code=self.join_error, protocol_name=None)
        if not self.leads and not self.assignments:
            self._waiting_joins.append(correlation_id)
            return None
        self.heartbeat = ErrorCode.NONE
        self._generation_id += 1
        if not self.leads:
            return JoinGroupResponse(
                generation_id=self._generation_id,
                protocol_name=_PROTOCOL_NAMES[self.assignments[0].version],
                leader=LEADER,
                member_id=MEMBER,
            )
        own = request.protocols[0]
        version = _PROTOCOL_NAMES.index(own.name)
        members = [JoinGroupResponseMember(MEMBER, None, own.metadata)]
        for name, metadata in self.others.items():
            offered = WorkerMetadata(
                version=version,
                url=metadata.url,
                config_offset=metadata.config_offset,
                allocation=metadata.allocation,
            )
            members.append(JoinGroupResponseMember(name, None, encode_worker_metadata(offered)))
        return JoinGroupResponse(
            generation_id=self._generation_id,
            protocol_name=own.name,
            leader=MEMBER,
            member_id=MEMBER,
            members=tuple(members),
        )

    def _answer_waiting_joins(self) -> None:
        waiting, self._waiting_joins = self._waiting_joins, []
        for correlation_id in waiting:
            response = self._join(self.sent(JoinGroupRequest)[-1], correlation_id)
            if response is not None:
                effects = self._coordinator.on_response(correlation_id, response, self.now_ms)
                self.state.member.carry_out(effects)
        self.settle()

    def _assignment(self, request: SyncGroupRequest) -> bytes:
        if not self.leads:
            return encode_connect_assignment(self.assignments.pop(0))
        own = (each.assignment for each in request.assignments if each.member_id == MEMBER)
        return next(own)


def _topic(name: str) -> InternalTopic:
    return InternalTopic(name=name, setting=f"{name}.storage.topic", purpose=name)
