"""Handling of a new assignment: catch up with the config topic, then start the work.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java,
handleRebalanceCompleted, startWork, assignmentDifference.
"""

from collections.abc import Iterable

from coordinator_sim.clients.config import ConnectProtocolCompatibility
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.herding.config_topic import read_config_to_end
from coordinator_sim.connect.herding.herder_state import HeldAssignment, HerderState
from coordinator_sim.connect.herding.starting import (
    connector_starting_callable,
    start_and_stop,
    task_starting_callable,
)
from coordinator_sim.connect.thread import Blocking
from coordinator_sim.kafka.orders.iteration_order import connector_task_hash, java_hash_order
from coordinator_sim.kafka.resources import ConnectorTaskId


def handle_rebalance_completed(herder: HerderState) -> Blocking[bool]:
    """Handle the last assignment; return whether it is resolved, so that the tick may go on."""
    if herder.rebalance_resolved:
        return True
    assignment = herder.held()
    is_behind = herder.config_state.offset < assignment.offset
    needs_rejoin = assignment.failed
    # A leader that could not assign leads the next round as well: it must be up to date first.
    needs_read_to_end = is_behind or (assignment.failed and herder.is_leader)
    if herder.scheduled_rebalance_ms <= herder.now_ms:
        needs_rejoin = True
        herder.scheduled_rebalance_ms = FOREVER
    if needs_read_to_end:
        herder.can_read_configs = yield from read_config_to_end(herder)
        needs_rejoin = needs_rejoin or not herder.can_read_configs
    if needs_rejoin:
        herder.member.request_rejoin()
        return False
    if herder.config_state.offset != assignment.offset:
        # The snapshot is past the assignment, which may name deleted work: nothing is started.
        herder.member.request_rejoin()
        return False
    yield from _start_work(herder, assignment)
    herder.rebalance_resolved = True
    if assignment.revoked_connectors or assignment.revoked_tasks:
        # Revoked work is assigned to others by a rebalance of its own.
        assignment.revoked_connectors, assignment.revoked_tasks = (), ()
        herder.member.coordinator.forget_revoked()
        herder.member.request_rejoin()
        return False
    return True


def _start_work(herder: HerderState, assignment: HeldAssignment) -> Blocking[None]:
    """Start assigned work that does not run yet."""
    running = herder.running_assignment
    connectors = _difference(assignment.connectors, running.connectors)
    # Tasks stopped because of new configurations start again if they are still assigned here.
    herder.remove(running, (), herder.tasks_to_restart)
    herder.tasks_to_restart.clear()
    tasks = _task_difference(assignment.tasks, running.tasks)
    callables = [connector_starting_callable(herder, connector) for connector in connectors]
    callables += [task_starting_callable(herder, task) for task in tasks]
    yield from start_and_stop(
        herder,
        callables,
        f"starting {len(callables)} connector(s) and task(s) after a rebalance",
    )
    is_eager = herder.member.coordinator.connect_protocol is ConnectProtocolCompatibility.EAGER
    herder.running_assignment = HeldAssignment() if is_eager else assignment


def _difference(update: Iterable[str], running: dict[str, None]) -> Iterable[str]:
    """Return the new connectors, in the order of Java's set unless nothing runs."""
    if not running:
        return tuple(update)
    return java_hash_order([each for each in update if each not in running])


def _task_difference(
    update: Iterable[ConnectorTaskId], running: dict[ConnectorTaskId, None]
) -> Iterable[ConnectorTaskId]:
    if not running:
        return tuple(update)
    new = [each for each in update if each not in running]
    return java_hash_order(new, hash_of=connector_task_hash)
