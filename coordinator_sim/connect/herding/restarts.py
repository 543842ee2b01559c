"""Restarting by request: a connector or a task at its owner, or both wherever they are.

To restart both, the leader writes the request to the config topic, and every worker restarts its
own part.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, restartConnector,
restartTask, restartConnectorAndTasks, processRestartRequests, doRestartConnectorAndTasks;
AbstractHerder.java, buildRestartPlan; RestartPlan.java.
"""

from contextlib import suppress
from typing import NoReturn

from coordinator_sim.connect.exceptions import ConnectException, JavaException
from coordinator_sim.connect.herding.herder_state import HerderState
from coordinator_sim.connect.herding.refusals import (
    NotAssignedException,
    NotFoundException,
    NotLeaderException,
)
from coordinator_sim.connect.herding.requests import (
    ConnectorStateInfo,
    Done,
    Outcome,
    RestartConnectorAndTasks,
    TaskState,
    WorkState,
)
from coordinator_sim.connect.herding.starting import start_connector, start_task
from coordinator_sim.connect.stores.config_records import RestartRequest
from coordinator_sim.connect.stores.status_records import State, Status
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.resources import ConnectorTaskId


def restart_connector(
    herder: HerderState, connector: str, answer: Pending[Outcome]
) -> Blocking[None]:
    """Restart a connector that runs on this worker; `answer` is completed once it has started.

    Raises:
        JavaException: the connector is unknown, or another worker has to be asked.
    """
    herder.check_rebalance_needed()
    if not herder.config_state.contains(connector):
        raise NotFoundException(f"Unknown connector: {connector}")
    if connector not in herder.held().connectors:
        _redirect(
            herder,
            connector,
            by_leader="Cannot restart connector since it is not assigned to this member",
            by_follower="Only the leader can process restart requests.",
        )
    with herder.in_stage(f"stopping restarted connector {connector}"):
        yield from herder.work.stop_and_await_connector(connector)
    herder.threads.start(_pass_on(start_connector(herder, connector), answer))


def restart_task(herder: HerderState, task: ConnectorTaskId) -> Blocking[Outcome]:
    """Restart a task that runs on this worker.

    Raises:
        JavaException: the task is unknown, belongs to another worker, or cannot be started.
    """
    herder.check_rebalance_needed()
    text = f"{task.connector}-{task.task}"
    if not herder.config_state.contains(task.connector):
        raise NotFoundException(f"Unknown connector: {task.connector}")
    if herder.config_state.task_config(task) is None:
        raise NotFoundException(f"Unknown task: {text}")
    if task not in herder.held().tasks:
        refusal = "Cannot restart task since it is not assigned to this member"
        _redirect(herder, task, by_leader=refusal, by_follower=refusal)
    with herder.in_stage(f"restarting task {text}"):
        yield from herder.work.stop_and_await_task(task)
        if not start_task(herder, task):
            raise ConnectException(f"Failed to start task: {text}")
    return Done()


def _redirect(
    herder: HerderState, resource: str | ConnectorTaskId, *, by_leader: str, by_follower: str
) -> NoReturn:
    """Refuse, naming the worker to ask: the owner if this worker leads, else the leader."""
    if herder.is_leader:
        raise NotAssignedException(by_leader, herder.member.owner_url(resource))
    raise NotLeaderException(by_follower, herder.leader_url)


def _pass_on(started: Pending[Outcome], answer: Pending[Outcome]) -> Blocking[None]:
    yield Wait(started)
    answer.complete(started.result())


def restart_connector_and_tasks(
    herder: HerderState, request: RestartConnectorAndTasks
) -> Blocking[Outcome]:
    """Write a restart request for all workers, and answer with the expected states.

    Raises:
        JavaException: the connector is unknown, the worker does not lead, or the write failed.
    """
    herder.check_rebalance_needed()
    connector = request.connector
    if not herder.config_state.contains(connector):
        raise NotFoundException(f"Unknown connector: {connector}")
    if not herder.is_leader:
        raise NotLeaderException("Only the leader can process restart requests.", herder.leader_url)
    with herder.in_stage(f"writing restart request for connector {connector} to the config topic"):
        yield from herder.config_store.put_restart_request(
            RestartRequest(connector, request.only_failed, request.include_tasks)
        )
    plan = build_restart_plan(herder, request)
    if plan is None:
        raise NotFoundException(f"Status for connector {connector} not found")
    return plan


def process_restart_requests(herder: HerderState) -> Blocking[None]:
    """Execute every pending request; one that fails is skipped."""
    requests = tuple(herder.pending_restart_requests.values())
    herder.pending_restart_requests.clear()
    for request in requests:
        with (
            herder.in_stage(f"handling restart request for connector {request.connector}"),
            suppress(JavaException),
        ):
            yield from _restart(herder, request)


def build_restart_plan(
    herder: HerderState, request: RestartRequest | RestartConnectorAndTasks
) -> ConnectorStateInfo | None:
    """Return the states expected, RESTARTING included; None when no status is known."""
    status = herder.status_store.get(request.connector)
    if status is None:
        return None
    config = herder.config_state.connector_config(request.connector)
    tasks = [
        TaskState(
            task=each.subject.task,
            state=_state(each, restarts=request.include_tasks and _is_eligible(request, each)),
            worker_id=each.worker_id,
            trace=each.trace or "",
            version=each.version,
        )
        for each in herder.status_store.get_all(request.connector)
        if isinstance(each.subject, ConnectorTaskId)
    ]
    return ConnectorStateInfo(
        name=request.connector,
        connector=WorkState(
            state=_state(status, restarts=_is_eligible(request, status)),
            worker_id=status.worker_id,
            trace=status.trace or "",
            version=status.version,
        ),
        tasks=tuple(tasks),
        type=herder.work.connector_type(None if config is None else dict(config)),
    )


def _is_eligible(request: RestartRequest | RestartConnectorAndTasks, status: Status) -> bool:
    return not request.only_failed or status.state is State.FAILED


def _state(status: Status, *, restarts: bool) -> str:
    return (State.RESTARTING if restarts else status.state).value


def _restart(herder: HerderState, request: RestartRequest) -> Blocking[None]:
    """Stop and start this worker's part of the plan."""
    plan = build_restart_plan(herder, request)
    if plan is None:
        return
    connector, assignment = request.connector, herder.held()
    restarting = State.RESTARTING.value
    named = (
        ConnectorTaskId(connector, each.task) for each in plan.tasks if each.state == restarting
    )
    tasks = [task for task in named if task in assignment.tasks]
    restarts_connector = plan.connector.state == restarting and connector in assignment.connectors
    if restarts_connector:
        with herder.in_stage(f"stopping to-be-restarted connector {connector}"):
            yield from herder.work.stop_and_await_connector(connector)
        herder.statuses.on_connector_restart(connector)
    if tasks:
        with herder.in_stage(
            f"stopping {len(tasks)} to-be-restarted tasks for connector {connector}"
        ):
            yield from herder.work.stop_and_await_tasks(tasks)
        for task in tasks:
            herder.statuses.on_task_restart(task)
    if restarts_connector:
        start_connector(herder, connector)
    for task in tasks:
        _start_again(herder, task)


def _start_again(herder: HerderState, task: ConnectorTaskId) -> None:
    """Start a task; a failure to start is ignored, as Java only logs it."""
    with suppress(JavaException):
        start_task(herder, task)
