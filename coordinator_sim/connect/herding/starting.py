"""Starting and stopping connectors and tasks as the herder does it, many at a time.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, startAndStop,
startConnector, startTask and the callables that are made of them.
"""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from coordinator_sim.connect.effects import TargetState
from coordinator_sim.connect.exceptions import ConnectException, JavaException, trace_of
from coordinator_sim.connect.herding.fencing import producer_checks
from coordinator_sim.connect.herding.herder_state import HerderState
from coordinator_sim.connect.herding.reconfiguration import reconfigure_with_retry
from coordinator_sim.connect.herding.refusals import failure_of
from coordinator_sim.connect.herding.requests import ConnectorType, Done, Outcome
from coordinator_sim.connect.herding.worker_task import TaskSpec
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.resources import ConnectorTaskId

START_STOP_THREAD_POOL_SIZE: Final = 8
"""DistributedHerder.START_STOP_THREAD_POOL_SIZE."""

Callables = Sequence[Callable[[], Blocking[None]]]


def start_and_stop(herder: HerderState, callables: Callables, stage: str) -> Blocking[None]:
    """Run all callables on the pool, and wait for the last."""
    if not callables:
        return
    waiting = deque(callables)
    ends: list[Pending[object]] = []
    for _ in range(min(START_STOP_THREAD_POOL_SIZE, len(callables))):
        ended: Pending[object] = Pending()
        ends.append(ended)
        herder.threads.start(_pool_thread(waiting, ended))
    with herder.in_stage(stage):
        for ended in ends:
            yield Wait(ended)


def _pool_thread(
    waiting: deque[Callable[[], Blocking[None]]], ended: Pending[object]
) -> Blocking[None]:
    while waiting:
        yield from waiting.popleft()()
    ended.complete()


# -- connectors ------------------------------------------------------------------------------


def start_connector(herder: HerderState, connector: str) -> Pending[Outcome]:
    """Start a connector; done once it has started and its tasks were requested, or has failed.

    Raises:
        ConfigException: a provider cannot read what its settings refer to.
    """
    config = herder.config_state.connector_config(connector)
    target_state = herder.config_state.target_state(connector)
    answer: Pending[Outcome] = Pending()
    if config is None or target_state is None:
        answer.complete(
            failure_of(ConnectException(f"Failed to start connector: {connector} has no config"))
        )
        return answer
    transformed = herder.plugins.transformed(config)
    started = herder.work.start_connector(connector, transformed, target_state)
    herder.threads.start(_after_start(herder, connector, started, answer))
    return answer


def _after_start(
    herder: HerderState,
    connector: str,
    started: Pending[TargetState],
    answer: Pending[Outcome],
) -> Blocking[None]:
    """Continue on the connector's own thread once its first state is reached."""
    yield Wait(started)
    if started.error is not None:
        cause = ConnectException(f"Failed to start connector: {connector}", started.error)
        answer.complete(failure_of(cause))
    elif started.result() is TargetState.STARTED:
        # A brand new connector has no tasks yet; for one that only moved here nothing is written.
        herder.add_request(partial(reconfigure_with_retry, herder, connector), answer)
    else:
        answer.complete(Done())


def connector_starting_callable(
    herder: HerderState, connector: str
) -> Callable[[], Blocking[None]]:
    """Return a callable that starts a connector without waiting for it."""

    def start() -> Blocking[None]:
        yield from ()
        try:
            start_connector(herder, connector)
        except JavaException as exception:
            herder.statuses.on_connector_failure(connector, trace_of(exception))

    return start


def connector_stopping_callable(
    herder: HerderState, connector: str
) -> Callable[[], Blocking[None]]:
    """Return a callable that stops a connector, waiting at most the graceful timeout."""
    return partial(herder.work.stop_and_await_connector, connector)


# -- tasks -----------------------------------------------------------------------------------


def start_task(herder: HerderState, task: ConnectorTaskId) -> bool:
    """Start a task; return whether it could be instantiated.

    Raises:
        ConnectException: the connector is neither a source nor a sink, or the task is not
        configured, or runs here already.
    """
    state = herder.config_state
    connector_config = state.connector_config(task.connector)
    kind = herder.work.connector_type(None if connector_config is None else dict(connector_config))
    if kind is ConnectorType.UNKNOWN or connector_config is None:
        raise ConnectException(
            f"Failed to start task {task.connector}-{task.task} since it is not a recognizable "
            "type (source or sink)"
        )
    config = state.task_config(task)
    if config is None:
        raise ConnectException(f"Task {task.connector}-{task.task} has no configuration")
    is_exactly_once = kind is ConnectorType.SOURCE and herder.exactly_once_source_enabled
    spec = TaskSpec(
        task=task,
        config=herder.plugins.transformed(config),
        connector_config=herder.plugins.transformed(connector_config),
        generation=herder.generation,
        checks=producer_checks(herder, task) if is_exactly_once else None,
    )
    return herder.work.start_task(
        spec,
        state.target_state(task.connector) or TargetState.STARTED,
        task_count=state.task_count(task.connector),
    )


def task_starting_callable(
    herder: HerderState, task: ConnectorTaskId
) -> Callable[[], Blocking[None]]:
    """Return a callable that starts a task without waiting; an error becomes its failure."""

    def start() -> Blocking[None]:
        yield from ()
        try:
            start_task(herder, task)
        except JavaException as exception:
            herder.statuses.on_task_failure(task, trace_of(exception))

    return start


def task_stopping_callable(
    herder: HerderState, task: ConnectorTaskId
) -> Callable[[], Blocking[None]]:
    """Return a callable that stops a task, waiting at most the graceful timeout."""
    return partial(herder.work.stop_and_await_task, task)
