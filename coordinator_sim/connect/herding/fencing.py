"""Fencing the tasks of older generations before exactly-once source tasks start.

A task count record says how many producers the previous generation of tasks may have. They are
fenced by their transactional ids, and the new count is written, before a new task begins to write.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java,
fenceZombieSourceTasks, doFenceZombieSourceTasks, ZombieFencing, verifyTaskGenerationAndOwnership.
"""

from functools import partial

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.effects import FenceProducers
from coordinator_sim.connect.exceptions import ConnectException, JavaException, thrown
from coordinator_sim.connect.herding import refusals, requests
from coordinator_sim.connect.herding.config_topic import (
    refresh_config_snapshot,
    write_to_config_topic_as_leader,
)
from coordinator_sim.connect.herding.herder_state import HerderState, ZombieFencing
from coordinator_sim.connect.herding.worker_task import ProducerChecks
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.resources import ConnectorTaskId


def transactional_id(group_id: str, task: ConnectorTaskId) -> str:
    """Return the transactional id of a source task. Source: Worker.taskTransactionalId."""
    return f"{group_id}-{task.connector}-{task.task}"


def is_source_connector(herder: HerderState, connector: str) -> bool:
    """Whether the configured connector is a source."""
    config = herder.config_state.connector_config(connector)
    kind = herder.work.connector_type(None if config is None else dict(config))
    return kind is requests.ConnectorType.SOURCE


# -- the leader's part, on the herder's thread -----------------------------------------------


def do_fence_zombie_source_tasks(
    herder: HerderState, connector: str, answer: Pending[requests.Outcome]
) -> Blocking[requests.Outcome | None]:
    """Begin fencing the older tasks of a connector, or find that no task has to be fenced.

    Returns:
        `Done` when no fencing was needed; None when `answer` is completed later.

    Raises:
        JavaException: the worker does not lead, or the connector is no source to be fenced.
    """
    if not herder.is_leader:
        raise refusals.NotLeaderException(
            "Only the leader may perform zombie fencing.", herder.leader_url
        )
    if not herder.config_state.contains(connector):
        raise refusals.NotFoundException(f"Connector {connector} not found")
    if not is_source_connector(herder, connector):
        raise refusals.BadRequestException(f"Connector {connector} is not a source connector")
    if not (yield from refresh_config_snapshot(herder)):
        raise ConnectException(
            "Failed to read to end of config topic before performing zombie fencing"
        )
    fencing = _fencing_of(herder, connector)
    if fencing is not None:
        herder.threads.start(_pass_on(fencing, answer))
        return None
    if herder.config_state.pending_fencing(connector):
        # The first tasks with exactly-once support have no predecessors to fence, and a single task
        # fences a single predecessor by starting its producer. The count is written all the same.
        yield from _write_task_count(herder, connector, herder.config_state.task_count(connector))
    return requests.Done()


def _fencing_of(herder: HerderState, connector: str) -> ZombieFencing | None:
    """Return the connector's round of fencing, begun if need be; None when none is needed."""
    state = herder.config_state
    task_count = state.task_count(connector)
    record = state.task_count_record(connector)
    if not state.pending_fencing(connector) or record is None or (record == 1 and task_count == 1):
        return None
    fencing = herder.active_zombie_fencings.get(connector)
    if fencing is None:
        fencing = ZombieFencing(
            connector,
            tasks_to_fence=record,
            tasks_to_record=task_count,
            task_generation=state.task_config_generation(connector) or 0,
        )
        herder.active_zombie_fencings[connector] = fencing
        herder.threads.start(_fence(herder, fencing))
    return fencing


def _fence(herder: HerderState, fencing: ZombieFencing) -> Blocking[None]:
    """Run the round of fencing on the admin client's thread."""
    connector = fencing.connector
    ids = tuple(
        transactional_id(herder.config.group_id, ConnectorTaskId(connector, number))
        for number in range(fencing.tasks_to_fence)
    )
    fenced = herder.outbox.ask(partial(FenceProducers, transactional_ids=ids))
    yield Wait(fenced)
    if fenced.error is not None:
        error = thrown(fenced.error)
        outcome: requests.Outcome = refusals.failure_of(
            ConnectException(f"Failed to perform zombie fencing: {error}", error.name)
        )
    else:
        herder.add_request(partial(_after_fencing, herder, fencing), fencing.followup)
        yield Wait(fencing.followup)
        outcome = fencing.followup.result()
    herder.active_zombie_fencings.pop(connector, None)
    fencing.ended.complete(outcome)


def _after_fencing(herder: HerderState, fencing: ZombieFencing) -> Blocking[requests.Outcome]:
    """Write the new task count once old producers are fenced, unless there are newer tasks."""
    if not (yield from refresh_config_snapshot(herder)):
        raise ConnectException("Failed to read to end of config topic")
    connector = fencing.connector
    if fencing.task_generation < (herder.config_state.task_config_generation(connector) or 0):
        raise refusals.ConnectRestException(
            refusals.CONFLICT,
            "Fencing failed because new task configurations were generated for the connector",
        )
    if not fencing.followup.done:
        yield from _write_task_count(herder, connector, fencing.tasks_to_record)
    return requests.Done()


def _write_task_count(herder: HerderState, connector: str, count: int) -> Blocking[None]:
    yield from write_to_config_topic_as_leader(
        herder,
        f"writing a task count record for connector {connector} to the config topic",
        herder.config_store.put_task_count_record(connector, count),
    )


def _pass_on(fencing: ZombieFencing, answer: Pending[requests.Outcome]) -> Blocking[None]:
    yield Wait(fencing.ended)
    answer.complete(fencing.ended.result())


def cancel_fencing(herder: HerderState, connector: str) -> None:
    """Fail a round of fencing under way: new tasks were committed. Any thread may call this."""
    fencing = herder.active_zombie_fencings.get(connector)
    if fencing is not None:
        conflict = refusals.ConnectRestException(
            refusals.CONFLICT,
            "Failed to complete zombie fencing because a new set of task configs was generated",
        )
        fencing.followup.complete(refusals.failure_of(conflict))


# -- the task's part, on the task's own thread -----------------------------------------------


def producer_checks(herder: HerderState, task: ConnectorTaskId) -> ProducerChecks:
    """What a source task with exactly-once support does around the start of its producer."""
    generation = herder.config_state.task_config_generation(task.connector)
    return ProducerChecks(
        before=partial(_fence_for_task, herder, task),
        transactional_id=transactional_id(herder.config.group_id, task),
        after=partial(_verify_generation_and_ownership, herder, task, generation),
    )


def _fence_for_task(herder: HerderState, task: ConnectorTaskId) -> Blocking[None]:
    """Have the leader fence older tasks of the connector.

    Raises:
        JavaException: the fencing failed.
    """
    answer: Pending[requests.Outcome] = Pending()
    herder.add_request(
        partial(do_fence_zombie_source_tasks, herder, task.connector, answer), answer
    )
    yield Wait(answer)
    outcome = answer.result()
    if not isinstance(outcome, requests.RequestFailed):
        return
    if outcome.kind is not requests.ErrorKind.NOT_LEADER:
        raise ConnectException(outcome.message, outcome.kind.value)
    if not outcome.forward_url:
        raise ConnectException("Failed to perform zombie fencing: the leader's URL is not known")
    yield from _forward_fencing(herder, task.connector, outcome.forward_url)


def _forward_fencing(herder: HerderState, connector: str, leader_url: str) -> Blocking[None]:
    forwarded: Pending[requests.Outcome] = Pending()

    def forward() -> Blocking[None]:
        try:
            yield from herder.requests.fence_zombies(leader_url, connector, herder.session_key)
        except JavaException as exception:
            forwarded.complete(refusals.failure_of(exception))
        else:
            forwarded.complete(requests.Done())

    herder.forward_requests.submit(forward)
    yield Wait(forwarded)
    outcome = forwarded.result()
    if isinstance(outcome, requests.RequestFailed):
        raise ConnectException(outcome.message, outcome.kind.value)


def _verify_generation_and_ownership(
    herder: HerderState, task: ConnectorTaskId, generation: int | None
) -> Blocking[None]:
    """Check that the task still belongs to this worker after its producer has fenced others.

    Raises:
        ConnectException: the task was reassigned or reconfigured meanwhile.
    """
    if not (yield from refresh_config_snapshot(herder, FOREVER - herder.now_ms)):
        raise ConnectException("Failed to read to end of config topic")
    verified = herder.add_request(partial(_verify, herder, task, generation))
    yield Wait(verified)
    outcome = verified.result()
    if isinstance(outcome, requests.RequestFailed):
        raise ConnectException(outcome.message, outcome.kind.value)


def _verify(
    herder: HerderState, task: ConnectorTaskId, generation: int | None
) -> Blocking[requests.Outcome]:
    yield from ()
    if herder.config_state.task_config_generation(task.connector) != generation:
        raise ConnectException(
            f"Cannot start source task {task.connector}-{task.task} with exactly-once support as "
            "the connector has already generated a new set of task configs"
        )
    if task not in herder.held().tasks:
        raise ConnectException(
            f"Cannot start source task {task.connector}-{task.task} as it has already been revoked "
            "from this worker"
        )
    return requests.Done()
