"""Requests that do not wait for the herder's thread: they read a store, or write one record.

So they are answered even while the herder is stuck in a rebalance or without a coordinator.

Source: kafka trunk, connect/runtime/.../runtime/AbstractHerder.java, pauseConnector to taskStatus;
DistributedHerder.java, setClusterLoggerLevel.
"""

from typing import assert_never

from coordinator_sim.connect.effects import TargetState
from coordinator_sim.connect.herding.connector_requests import connector_info
from coordinator_sim.connect.herding.herder_state import HerderState
from coordinator_sim.connect.herding.rebalance_listener import reset_connector_active_topics
from coordinator_sim.connect.herding.refusals import NotFoundException
from coordinator_sim.connect.herding.requests import (
    ActiveTopics,
    CallersRequest,
    ConnectorStateInfo,
    Done,
    GetActiveTopics,
    GetConnectorStatus,
    GetTaskStatus,
    ListConnectors,
    Outcome,
    PauseConnector,
    ReadConnectorInfo,
    ResetActiveTopics,
    ResumeConnector,
    SetClusterLoggerLevel,
    TaskState,
    WorkState,
)
from coordinator_sim.connect.stores.status_records import Status
from coordinator_sim.connect.thread import Blocking
from coordinator_sim.kafka.resources import ConnectorTaskId


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
