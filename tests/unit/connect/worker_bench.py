"""One whole Connect worker by its verbs: topics in memory, a group that it leads, quick work.

Effects of a kind in `held` are not answered; `asked` keeps every effect.
"""

from collections.abc import Mapping
from typing import Final

from coordinator_sim.clients.effects import Connect, Send
from coordinator_sim.connect.effects import (
    AlterGroupOffsets,
    AnswerHttp,
    CallHttp,
    CreateTopic,
    DeleteGroup,
    DeleteGroupOffsets,
    DescribeCluster,
    DescribeTopic,
    DescribeTopicConfig,
    Fetched,
    HttpRequest,
    HttpResponse,
    ListEndOffsets,
    ListGroupOffsets,
    Produce,
    StartConnector,
    StartReading,
    StartTask,
    StopConnector,
    StopTask,
    TopicRecord,
    WorkerEffect,
)
from coordinator_sim.connect.plugins.registry import Plugin
from coordinator_sim.connect.plugins.standard_plugins import file_stream_plugins
from coordinator_sim.connect.settings.config_transformer import Provider
from coordinator_sim.connect.start_up import AT_ONCE, StartUpTimes
from coordinator_sim.connect.worker import ConnectWorker, WorkerParts
from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition
from coordinator_sim.messages import find_coordinator, join_group
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from coordinator_sim.messages.metadata import MetadataRequest, MetadataResponse
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.requests import Response
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse

BROKER: Final = Node(node_id=1, host="broker", port=9092)
CLUSTER_ID: Final = "kVi2G3kvTe6GZ0Xgq4WSVQ"
FILE_STREAM: Final = file_stream_plugins(location="file:/plugins/file/")
STRINGS: Final = "org.apache.kafka.connect.storage.StringConverter"
LEAST_SETTINGS: Final = {
    "group.id": "connect",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "key.converter": STRINGS,
    "value.converter": STRINGS,
    "listeners": "http://127.0.0.1:8083",
    "plugin.discovery": "service_load",
}


class WorkerBench:
    """A worker and what is around it.

    Args:
        settings: Over the least ones; None takes one away.
        times: Of its start.
        plugins: On its plugin path; FileStream by default.
        credentials: Passwords of its REST API.
        providers: Of values that its connectors refer to.
    """

    def __init__(
        self,
        settings: Mapping[str, str | None] | None = None,
        *,
        times: StartUpTimes = AT_ONCE,
        plugins: tuple[Plugin, ...] | None = None,
        credentials: Mapping[str, str] | None = None,
        providers: Mapping[str, Provider] | None = None,
    ) -> None:
        given = {**LEAST_SETTINGS, **(settings or {})}
        self.topics: dict[str, list[TopicRecord]] = {}
        self.asked: list[WorkerEffect] = []
        self.asked_at: list[int] = []
        self.held: set[type] = set()
        self.errors: dict[type, str] = {}
        self.answers: dict[int, HttpResponse] = {}
        self.group_offsets: dict[TopicPartition, int] = {}
        self.now_ms = 0
        self._reading: dict[str, int] = {}
        self._generation_id = 0
        self._exchange = 0
        self.worker = ConnectWorker(
            WorkerParts(
                properties={name: value for name, value in given.items() if value is not None},
                plugins=FILE_STREAM if plugins is None else plugins,
                bootstrap=(BROKER,),
                machine="machine",
                client_name="worker",
                random_bytes=bytes,
                times=times,
                credentials=credentials,
                providers=providers or {},
            )
        )

    def start(self) -> "WorkerBench":
        """Begin the process, and let it come as far as it comes at once."""
        self._carry_out(self.worker.start(self.now_ms))
        return self

    def run(self, for_ms: int) -> None:
        """Let time pass."""
        until_ms = self.now_ms + for_ms
        while True:
            deadline_ms = self.worker.next_deadline_ms()
            if deadline_ms is None or deadline_ms > until_ms:
                break
            self.now_ms = max(self.now_ms, deadline_ms)
            self._carry_out(self.worker.expire(self.now_ms))
        self.now_ms = until_ms

    def send(self, request: HttpRequest) -> int:
        """Hand a request to the worker; its number."""
        self._exchange += 1
        self._carry_out(self.worker.http(self._exchange, request, self.now_ms))
        return self._exchange

    def ask(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request that is answered at once."""
        return self.answers[self.send(request)]

    def ask_for_tasks(self, connector: str) -> None:
        """A running connector wants its tasks configured anew."""
        self._carry_out(self.worker.reconfiguration_asked(connector, self.now_ms))

    def write(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Append a record as another worker does."""
        self._append(topic, key, value)
        self._carry_out(self._deliver(topic))

    def fail(self, task: ConnectorTaskId, trace: str) -> None:
        """Have a task fail."""
        self._carry_out(self.worker.work_failed(task, trace, self.now_ms))

    def use(self, task: ConnectorTaskId, topic: str) -> None:
        """Have a task write to a topic for the first time."""
        self._carry_out(self.worker.topic_used(task, topic, self.now_ms))

    def stop(self) -> None:
        """Shut the worker down."""
        self._carry_out(self.worker.stop(self.now_ms))

    def times_of(self, kind: type) -> list[int]:
        """When effects of a kind were asked for."""
        pairs = zip(self.asked, self.asked_at, strict=True)
        return [at_ms for effect, at_ms in pairs if isinstance(effect, kind)]

    def _carry_out(self, effects: tuple[WorkerEffect, ...]) -> None:
        queue = list(effects)
        while queue:
            effect = queue.pop(0)
            self.asked.append(effect)
            self.asked_at.append(self.now_ms)
            queue.extend(self._answer(effect))
            for topic in tuple(self._reading):
                queue.extend(self._deliver(topic))

    def _answer(self, effect: WorkerEffect) -> tuple[WorkerEffect, ...]:
        kind = type(effect)
        if kind in self.held:
            return ()
        worker, now_ms = self.worker, self.now_ms
        match effect:
            case Connect(node_id=node_id):
                return worker.on_connected(node_id, now_ms)
            case Send():
                response = self._response(effect)
                return worker.on_response(effect.correlation_id, response, now_ms)
            case AnswerHttp(exchange=exchange, response=response):
                self.answers[exchange] = response
                return ()
            case StartReading(topic=topic):
                self._reading[topic] = 0
                return ()
        token = getattr(effect, "token", None)
        if token is None:
            return ()
        error = self.errors.get(kind)
        value = self._value(effect) if error is None else None
        return worker.answered(token, value, error, now_ms=now_ms)

    def _value(self, effect: WorkerEffect) -> object:
        match effect:
            case ListGroupOffsets():
                return self.group_offsets
            case AlterGroupOffsets() | DeleteGroupOffsets() | DeleteGroup():
                return None
            case CallHttp():
                return HttpResponse(status=204)
            case StartConnector() | StartTask() | StopConnector() | StopTask():
                return None
            case DescribeCluster():
                return CLUSTER_ID
        return self._topic_value(effect)

    def _topic_value(self, effect: WorkerEffect) -> object:
        match effect:
            case CreateTopic(topic=topic):
                return self.topics.setdefault(topic, []) == []
            case DescribeTopic(topic=topic):
                return 1 if topic in self.topics else 0
            case DescribeTopicConfig():
                return "compact"
            case ListEndOffsets(topic=topic):
                return {0: len(self.topics[topic])}
            case Produce(topic=topic, key=key, value=value):
                return self._append(topic, key, value)
        raise AssertionError(effect)

    def _append(self, topic: str, key: bytes | None, value: bytes | None) -> int:
        records = self.topics[topic]
        offset = len(records)
        record = TopicRecord(
            partition=0, offset=offset, key=key, value=value, timestamp_ms=self.now_ms
        )
        records.append(record)
        return offset

    def _deliver(self, topic: str) -> tuple[WorkerEffect, ...]:
        records = self.topics.get(topic, [])
        first = self._reading[topic]
        if first >= len(records):
            return ()
        self._reading[topic] = len(records)
        fetched = Fetched(topic=topic, records=tuple(records[first:]), positions={0: len(records)})
        return self.worker.fetched(fetched, self.now_ms)

    def _response(self, send: Send) -> Response:
        match send.request:
            case MetadataRequest():
                return MetadataResponse(brokers=(BROKER,), topics=())
            case find_coordinator.FindCoordinatorRequest():
                found = find_coordinator.Coordinator(
                    key="connect", node_id=1, host="broker", port=9092, error_message=None
                )
                return find_coordinator.FindCoordinatorResponse(coordinators=(found,))
            case join_group.JoinGroupRequest(protocols=protocols):
                self._generation_id += 1
                return join_group.JoinGroupResponse(
                    generation_id=self._generation_id,
                    protocol_name=protocols[0].name,
                    leader="m",
                    member_id="m",
                    members=(join_group.JoinGroupResponseMember("m", None, protocols[0].metadata),),
                )
            case SyncGroupRequest(assignments=assignments):
                return SyncGroupResponse(assignment=assignments[0].assignment)
            case HeartbeatRequest():
                return HeartbeatResponse()
            case LeaveGroupRequest():
                return LeaveGroupResponse()
        raise AssertionError(send)
