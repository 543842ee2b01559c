"""Map each request to the function of the herder that answers it, and to the thread it runs on.

Requests that read a store or write one record do not wait for the herder's thread, and so are
answered even while it is stuck in a rebalance or without a coordinator. Offsets of a source
connector are Connect's own; those of a sink are its consumer group's.

Source: kafka trunk, connect/runtime/.../runtime/Herder.java; what is queued is decided in
distributed/DistributedHerder.java; connect/runtime/.../runtime/AbstractHerder.java, pauseConnector
to taskStatus; DistributedHerder.java, setClusterLoggerLevel;
connect/runtime/.../distributed/DistributedHerder.java, connectorOffsets, modifyConnectorOffsets,
modifyConnectorOffsetsChecks; Worker.java, sourceConnectorOffsets, modifySourceConnectorOffsets;
connect/runtime/.../Worker.java, sinkConnectorOffsets, modifySinkConnectorOffsets,
alterSinkConnectorOffsets, resetSinkConnectorOffsets, completeModifyOffsetsCallback;
util/SinkUtils.java.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, assert_never, cast

from coordinator_sim.connect.effects import (
    AlterGroupOffsets,
    DeleteGroup,
    DeleteGroupOffsets,
    ListGroupOffsets,
    TargetState,
)
from coordinator_sim.connect.exceptions import ConnectException, JavaException
from coordinator_sim.connect.herding import requests
from coordinator_sim.connect.herding.config_topic import refresh_config_snapshot
from coordinator_sim.connect.herding.connector_requests import (
    check_signature,
    connector_info,
    delete_connector,
    get_connector_config,
    get_connector_info,
    get_connectors,
    get_task_configs,
    patch_connector_config,
    put_connector_config,
    put_task_configs,
    stop_connector,
)
from coordinator_sim.connect.herding.fencing import (
    do_fence_zombie_source_tasks,
    is_source_connector,
)
from coordinator_sim.connect.herding.herder_state import HerderState
from coordinator_sim.connect.herding.rebalance_listener import reset_connector_active_topics
from coordinator_sim.connect.herding.refusals import (
    BadRequestException,
    NotFoundException,
    NotLeaderException,
    failure_of,
)
from coordinator_sim.connect.herding.request_queue import Action
from coordinator_sim.connect.herding.requests import (
    ActiveTopics,
    AlterOffsets,
    CallersRequest,
    CheckHealth,
    ConnectorOffset,
    ConnectorOffsets,
    ConnectorStateInfo,
    ConnectorType,
    DeleteConnector,
    Done,
    FenceZombies,
    GetActiveTopics,
    GetConnectorConfig,
    GetConnectorInfo,
    GetConnectors,
    GetConnectorStatus,
    GetOffsets,
    GetTaskConfigs,
    GetTaskStatus,
    HerdersRequest,
    ListConnectors,
    Outcome,
    PatchConnectorConfig,
    PauseConnector,
    PluginFailure,
    PutConnectorConfig,
    PutTaskConfigs,
    ReadConnectorInfo,
    Request,
    RequestFailed,
    ResetActiveTopics,
    ResetOffsets,
    RestartConnector,
    RestartConnectorAndTasks,
    RestartTask,
    ResumeConnector,
    SetClusterLoggerLevel,
    StopConnectorRequest,
    TaskState,
    WorkState,
)
from coordinator_sim.connect.herding.restarts import (
    restart_connector,
    restart_connector_and_tasks,
    restart_task,
)
from coordinator_sim.connect.stores.json_converter import from_json
from coordinator_sim.connect.stores.offset_store import offset_key, offset_value
from coordinator_sim.connect.stores.status_records import Status
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.orders.iteration_order import java_hash_order, topic_partition_hash
from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition

TOPIC_KEY: Final = "kafka_topic"
PARTITION_KEY: Final = "kafka_partition"
OFFSET_KEY: Final = "kafka_offset"
REST_REQUEST_TIMEOUT_MS: Final = 90_000
"""RestServer.DEFAULT_REST_REQUEST_TIMEOUT_MS: time limit of a request."""
_NOT_FOUND: Final = "GroupIdNotFoundException"
_HAS_MEMBERS: Final = (
    "UnknownMemberIdException",
    "GroupSubscribedToTopicException",
    "GroupNotEmptyException",
)
"""Errors of a group that still has consuming members."""


def read_sink_offsets(herder: HerderState, connector: str) -> Blocking[requests.ConnectorOffsets]:
    """Return the offsets of a sink's consumer group.

    Raises:
        ConnectException: the offsets cannot be read.
    """
    offsets = yield from _list(
        herder,
        connector,
        f"Failed to retrieve consumer group offsets for sink connector {connector}",
    )
    return requests.ConnectorOffsets(
        tuple(
            requests.ConnectorOffset(
                {TOPIC_KEY: partition.topic, PARTITION_KEY: partition.partition},
                {OFFSET_KEY: offsets[partition]},
            )
            for partition in java_hash_order(offsets, hash_of=topic_partition_hash)
        )
    )


def write_sink_offsets(
    herder: HerderState, request: requests.AlterOffsets | requests.ResetOffsets
) -> Blocking[requests.Message]:
    """Alter or reset the offsets of a sink's consumer group.

    Raises:
        BadRequestException: the offsets are malformed.
        ConnectException: the connector's class or the group refuses the change.
    """
    connector = request.connector
    if isinstance(request, requests.AlterOffsets):
        wanted = parse_sink_offsets(request.offsets)
    else:
        found = yield from _list(
            herder,
            connector,
            f"Failed to list offsets prior to resetting offsets for sink connector {connector}",
        )
        wanted = dict.fromkeys(found)
    vouched = herder.plugins.alter_offsets(transformed_config(herder, connector), ())
    if isinstance(vouched, requests.PluginFailure):
        raise ConnectException(vouched.trace)
    if isinstance(request, requests.AlterOffsets):
        yield from _alter(herder, connector, wanted)
        return modified_message("altered", vouched=vouched)
    group_id = _group_id(herder, connector)
    asked = herder.outbox.ask(lambda token: DeleteGroup(token, group_id))
    # A group that does not exist has no offsets either.
    yield from _changed(herder, connector, "reset", asked, but_for=_NOT_FOUND)
    return modified_message("reset", vouched=vouched)


def modified_message(done: str, *, vouched: bool) -> requests.Message:
    """Return the answer to a request that changed offsets.

    Args:
        done: `altered` or `reset`.
        vouched: Whether the connector's class confirmed that it has done its part.
    """
    if vouched:
        return requests.Message(f"The offsets for this connector have been {done} successfully")
    return requests.Message(
        f"The Connect framework-managed offsets for this connector have been {done} successfully. "
        "However, if this connector manages offsets externally, they will need to be manually "
        f"{done} in the system that the connector uses."
    )


def parse_sink_offsets(
    offsets: tuple[requests.ConnectorOffset, ...],
) -> dict[TopicPartition, int | None]:
    """Return a request's offsets by partition; None where an offset is to be deleted.

    Raises:
        BadRequestException: the offsets are malformed.

    Source: SinkUtils.parseSinkConnectorOffsets.
    """
    return {_partition(each.partition): _offset(each.offset) for each in offsets}


def _partition(partition: Mapping[str, object]) -> TopicPartition:
    if TOPIC_KEY not in partition or PARTITION_KEY not in partition:
        raise BadRequestException(
            "The partition for a sink connector offset must contain the keys "
            f"'{TOPIC_KEY}' and '{PARTITION_KEY}'"
        )
    topic, number = partition[TOPIC_KEY], partition[PARTITION_KEY]
    if topic is None:
        raise BadRequestException("Kafka topic names must be valid strings and may not be null")
    if number is None:
        raise BadRequestException("Kafka partitions must be valid numbers and may not be null")
    if _is_number(number):
        return TopicPartition(str(topic), int(str(number)))
    raise BadRequestException(
        "Failed to parse the following Kafka partition value in the provided offsets: "
        f"'{number}'. Partition values for sink connectors need to be integers."
    )


def _offset(offset: Mapping[str, object] | None) -> int | None:
    if offset is None:
        return None
    if OFFSET_KEY not in offset:
        raise BadRequestException(
            "The offset for a sink connector should either be null or contain "
            f"the key '{OFFSET_KEY}'"
        )
    number = offset[OFFSET_KEY]
    if _is_number(number):
        return int(str(number))
    raise BadRequestException(
        "Failed to parse the following Kafka offset value in the provided offsets: "
        f"'{number}'. Offset values for sink connectors need to be integers."
    )


def _is_number(value: object) -> bool:
    return re.fullmatch(r"[+-]?[0-9]{1,18}", str(value)) is not None


def _alter(
    herder: HerderState, connector: str, wanted: Mapping[TopicPartition, int | None]
) -> Blocking[None]:
    group_id = _group_id(herder, connector)
    altered = {partition: offset for partition, offset in wanted.items() if offset is not None}
    deleted = tuple(partition for partition, offset in wanted.items() if offset is None)
    if altered:
        asked = herder.outbox.ask(lambda token: AlterGroupOffsets(token, group_id, altered))
        yield from _changed(herder, connector, "alter", asked)
    if deleted:
        asked = herder.outbox.ask(lambda token: DeleteGroupOffsets(token, group_id, deleted))
        yield from _changed(herder, connector, "alter", asked)


def _changed(
    herder: HerderState,
    connector: str,
    verb: str,
    asked: Pending[object],
    *,
    but_for: str | None = None,
) -> Blocking[None]:
    """Wait for a change of the group; the error named `but_for` counts as success."""
    yield Wait(asked, until_ms=herder.now_ms + REST_REQUEST_TIMEOUT_MS)
    if asked.done and asked.error in (None, but_for):
        return
    message = f"Failed to {verb} consumer group offsets for connector {connector}"
    if asked.error in _HAS_MEMBERS:
        message += (
            " either because its tasks haven't stopped completely yet or the connector was resumed "
            f"before the request to {verb} its offsets could be successfully completed. If the "
            "connector is in a stopped state, this operation can be safely retried. If it doesn't "
            "eventually succeed, the Connect cluster may need to be restarted to get rid of the "
            "zombie sink tasks."
        )
    raise ConnectException(message, asked.error or "TimeoutException")


def _list(herder: HerderState, connector: str, failure: str) -> Blocking[dict[TopicPartition, int]]:
    group_id = _group_id(herder, connector)
    asked = herder.outbox.ask(lambda token: ListGroupOffsets(token, group_id))
    yield Wait(asked, until_ms=herder.now_ms + REST_REQUEST_TIMEOUT_MS)
    if not asked.done or asked.error is not None:
        raise ConnectException(failure, asked.error or "TimeoutException")
    return cast("dict[TopicPartition, int]", asked.result())


def _group_id(herder: HerderState, connector: str) -> str:
    """Return the consumer group of a sink: its own setting, the worker's, or the default name."""
    own = transformed_config(herder, connector).get("consumer.override.group.id")
    return own or herder.config.properties.get("consumer.group.id") or f"connect-{connector}"


def transformed_config(herder: HerderState, connector: str) -> dict[str, str]:
    """Return a connector's settings with the values that they refer to; none without the connector.

    Raises:
        ConfigException: a provider cannot read a path.
    """
    return herder.plugins.transformed(herder.config_state.connector_config(connector) or {})


def connector_offsets(
    herder: HerderState, request: GetOffsets, answer: Pending[Outcome]
) -> Blocking[None]:
    """Read the offsets of a connector on a thread of their own.

    Raises:
        NotFoundException: the connector is not configured.
    """
    yield from ()
    if not herder.config_store.snapshot().contains(request.connector):
        raise NotFoundException(f"Connector {request.connector} not found")
    herder.threads.start(_answered(_read_offsets(herder, request.connector), answer))


def _read_offsets(herder: HerderState, connector: str) -> Blocking[Outcome]:
    if _is_sink(herder, connector):
        return (yield from read_sink_offsets(herder, connector))
    store = herder.offset_store
    yield from store.get((), REST_REQUEST_TIMEOUT_MS)
    offsets = []
    for partition in store.connector_partitions(connector):
        value = from_json(store.offset_of(offset_key(connector, partition)))
        if isinstance(value, dict):
            offsets.append(ConnectorOffset(partition, {**value}))
    return ConnectorOffsets(tuple(offsets))


def modify_connector_offsets(
    herder: HerderState, request: AlterOffsets | ResetOffsets, answer: Pending[Outcome]
) -> Blocking[None]:
    """Change the offsets of a stopped connector.

    With exactly-once support the previous tasks are fenced first.

    Raises:
        JavaException: a check failed.
    """
    if isinstance(request, AlterOffsets) and not request.offsets:
        raise ConnectException("The offsets to be altered may not be null or empty")
    connector = request.connector
    yield from _check(herder, connector)
    if is_source_connector(herder, connector) and herder.exactly_once_source_enabled:
        fenced: Pending[Outcome] = Pending()
        outcome = yield from do_fence_zombie_source_tasks(herder, connector, fenced)
        if outcome is not None:
            fenced.complete(outcome)
        herder.threads.start(_modify_after_fencing(herder, request, fenced, answer))
    else:
        herder.threads.start(_answered(_write_offsets(herder, request), answer))


def _modify_after_fencing(
    herder: HerderState,
    request: AlterOffsets | ResetOffsets,
    fenced: Pending[Outcome],
    answer: Pending[Outcome],
) -> Blocking[None]:
    yield Wait(fenced)
    if isinstance(fenced.result(), RequestFailed):
        failed = ConnectException(
            "Failed to perform zombie fencing for source connector prior to modifying offsets"
        )
        answer.complete(failure_of(failed))
        return

    def modify() -> Blocking[None]:
        # The state checked before may have changed while producers were fenced.
        yield from _check(herder, request.connector)
        herder.threads.start(_answered(_write_offsets(herder, request), answer))

    herder.add_request(modify, answer)


def _check(herder: HerderState, connector: str) -> Blocking[None]:
    """Check that this worker may change the connector's offsets now."""
    herder.check_rebalance_needed()
    if not herder.is_leader:
        raise NotLeaderException(
            "Only the leader can process external offsets modification requests",
            herder.leader_url,
        )
    if not (yield from refresh_config_snapshot(herder)):
        raise ConnectException(
            "Failed to read to end of config topic before modifying connector offsets"
        )
    state = herder.config_state
    if not state.contains(connector):
        raise NotFoundException(f"Connector {connector} not found")
    if state.target_state(connector) is not TargetState.STOPPED or state.task_count(connector):
        raise BadRequestException(
            "Connectors must be in the STOPPED state before their offsets can be modified. This "
            "can be done for the specified connector by issuing a 'PUT' request to the "
            f"'/connectors/{connector}/stop' endpoint"
        )


def _write_offsets(herder: HerderState, request: AlterOffsets | ResetOffsets) -> Blocking[Outcome]:
    connector = request.connector
    if _is_sink(herder, connector):
        return (yield from write_sink_offsets(herder, request))
    store = herder.offset_store
    yield from store.get((), REST_REQUEST_TIMEOUT_MS)
    if isinstance(request, AlterOffsets):
        done, offsets = "altered", request.offsets
    else:
        partitions: Sequence[dict[str, object]] = store.connector_partitions(connector)
        done, offsets = "reset", tuple(ConnectorOffset(each, None) for each in partitions)
    vouched = herder.plugins.alter_offsets(transformed_config(herder, connector), offsets)
    if isinstance(vouched, PluginFailure):
        raise ConnectException(vouched.trace)
    records = [
        (offset_key(connector, each.partition), offset_value(each.offset)) for each in offsets
    ]
    if records:
        yield from store.await_put(store.put(records), REST_REQUEST_TIMEOUT_MS)
    return modified_message(done, vouched=vouched)


def _is_sink(herder: HerderState, connector: str) -> bool:
    """Whether the connector is a sink.

    Raises:
        ConnectException: the connector's class is not installed on this worker.
        ConfigException: a provider cannot read a path.
    """
    config = transformed_config(herder, connector)
    failure = herder.plugins.start_failure(config)
    if failure is not None:
        raise ConnectException(failure.trace.splitlines()[0])
    return herder.work.connector_type(config) is ConnectorType.SINK


def _answered(doing: Blocking[Outcome], answer: Pending[Outcome]) -> Blocking[None]:
    """Run an operation on a thread of its own, and complete `answer` with its outcome."""
    try:
        outcome = yield from doing
    except JavaException as exception:
        outcome = failure_of(exception)
    answer.complete(outcome)


def run_on_callers_thread(herder: HerderState, request: CallersRequest) -> Blocking[Outcome]:  # noqa: PLR0911 - one for each request
    """Run one request that does not need the herder's thread, and return its outcome.

    Raises:
        JavaException: the request fails.
    """
    match request:
        case PauseConnector(connector):
            return (yield from _put_target_state(herder, connector, TargetState.PAUSED))
        case ResumeConnector(connector):
            return (yield from _put_target_state(herder, connector, TargetState.STARTED))
        case ListConnectors():
            return herder.config_store.snapshot().connectors()
        case ReadConnectorInfo(connector):
            return _connector_info(herder, connector)
        case GetConnectorStatus(connector):
            return connector_status(herder, connector)
        case GetTaskStatus(task):
            return _task_status(herder, task)
        case GetActiveTopics(connector):
            used = herder.status_store.get_all_topics(connector)
            return ActiveTopics(connector, tuple(each.topic for each in used))
        case ResetActiveTopics(connector):
            reset_connector_active_topics(herder, connector)
            return Done()
        case SetClusterLoggerLevel(namespace=namespace, level=level):
            yield from herder.config_store.put_logger_level(namespace, level)
            return Done()
        case _:
            assert_never(request)


def _put_target_state(herder: HerderState, connector: str, state: TargetState) -> Blocking[Outcome]:
    if not herder.config_store.contains(connector):
        raise NotFoundException(f"Unknown connector {connector}")
    yield from herder.config_store.put_target_state(connector, state)
    return Done()


def _connector_info(herder: HerderState, connector: str) -> Outcome:
    info = connector_info(herder, herder.config_store.snapshot(), connector)
    if info is None:
        raise NotFoundException(f"Connector {connector} not found")
    return info


def connector_status(herder: HerderState, connector: str) -> ConnectorStateInfo:
    """The state of a connector and its tasks, as last read from the status topic.

    Raises:
        NotFoundException: the status topic has no status of the connector.
    """
    status = herder.status_store.get(connector)
    if status is None:
        raise NotFoundException(f"No status found for connector {connector}")
    config = herder.config_state.connector_config(connector)
    tasks = (
        _task_state(each.subject, each)
        for each in herder.status_store.get_all(connector)
        if isinstance(each.subject, ConnectorTaskId)
    )
    return ConnectorStateInfo(
        name=connector,
        connector=WorkState(
            state=status.state.value,
            worker_id=status.worker_id,
            trace=status.trace or "",
            version=status.version,
        ),
        tasks=tuple(sorted(tasks, key=lambda task: task.task)),
        type=herder.work.connector_type(None if config is None else dict(config)),
    )


def _task_status(herder: HerderState, task: ConnectorTaskId) -> TaskState:
    status = herder.status_store.get(task)
    if status is None:
        raise NotFoundException(f"No status found for task {task.connector}-{task.task}")
    return _task_state(task, status)


def _task_state(task: ConnectorTaskId, status: Status) -> TaskState:
    return TaskState(
        task=task.task,
        state=status.state.value,
        worker_id=status.worker_id,
        trace=status.trace or "",
        version=status.version,
    )


def submit(herder: HerderState, request: Request) -> Pending[Outcome]:
    """Submit a request; the result is completed with its outcome. Any thread may call this."""
    answer: Pending[Outcome] = Pending()
    if isinstance(request, PutTaskConfigs | FenceZombies):
        try:
            check_signature(herder, request.signature)
        except JavaException as refusal:
            answer.complete(failure_of(refusal))
            return answer
    if isinstance(request, CallersRequest):
        herder.threads.start(_run(herder, request, answer))
        return answer
    return herder.add_request(_action(herder, request, answer), answer)


def _run(herder: HerderState, request: CallersRequest, answer: Pending[Outcome]) -> Blocking[None]:
    """Run a request on its caller's thread."""
    try:
        outcome = yield from run_on_callers_thread(herder, request)
    except JavaException as exception:
        outcome = failure_of(exception)
    answer.complete(outcome)


def _action(herder: HerderState, request: HerdersRequest, answer: Pending[Outcome]) -> Action:  # noqa: C901, PLR0911, PLR0912 - one line for each request
    match request:
        case PutConnectorConfig():
            return partial(put_connector_config, herder, request, answer)
        case PatchConnectorConfig():
            return partial(patch_connector_config, herder, request, answer)
        case DeleteConnector(connector):
            return partial(delete_connector, herder, connector)
        case StopConnectorRequest(connector):
            return partial(stop_connector, herder, connector)
        case GetConnectors():
            return partial(get_connectors, herder)
        case GetConnectorInfo(connector):
            return partial(get_connector_info, herder, connector)
        case GetConnectorConfig(connector):
            return partial(get_connector_config, herder, connector)
        case GetTaskConfigs(connector):
            return partial(get_task_configs, herder, connector)
        case PutTaskConfigs():
            return partial(put_task_configs, herder, request)
        case FenceZombies(connector=connector):
            return partial(do_fence_zombie_source_tasks, herder, connector, answer)
        case RestartConnector(connector):
            return partial(restart_connector, herder, connector, answer)
        case RestartTask(task):
            return partial(restart_task, herder, task)
        case RestartConnectorAndTasks():
            return partial(restart_connector_and_tasks, herder, request)
        case GetOffsets():
            return partial(connector_offsets, herder, request, answer)
        case AlterOffsets() | ResetOffsets():
            return partial(modify_connector_offsets, herder, request, answer)
        case CheckHealth():
            return _check_health
        case _:
            assert_never(request)


def _check_health() -> Blocking[Outcome]:
    yield from ()
    return Done()
