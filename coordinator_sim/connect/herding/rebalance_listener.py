"""What the herder does inside its membership's poll: keep an assignment, stop what is revoked.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, RebalanceListener,
updateDeletedConnectorStatus, updateDeletedTaskStatus.
"""

from collections.abc import Sequence

from coordinator_sim.clients.config import ConnectProtocolCompatibility
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.exceptions import JavaException
from coordinator_sim.connect.herding.herder_state import HeldAssignment, HerderState
from coordinator_sim.connect.herding.starting import (
    connector_stopping_callable,
    start_and_stop,
    task_stopping_callable,
)
from coordinator_sim.connect.thread import Blocking
from coordinator_sim.kafka.resources import ConnectorTaskId


def on_assigned(herder: HerderState) -> Blocking[None]:
    """Keep the assignment; the woken-up poll lets the next tick handle it."""
    coordinator = herder.member.coordinator
    herder.protocol_version = coordinator.connect_protocol
    assignment = herder.assignment = HeldAssignment(coordinator.assignment)
    herder.generation = coordinator.last_completed_generation_id
    herder.scheduled_rebalance_ms = (
        herder.now_ms + assignment.delay_ms if assignment.delay_ms > 0 else FOREVER
    )
    herder.rebalance_resolved = False
    if herder.is_leader:
        # Not earlier: the previous generation may still have written UNASSIGNED for stopped work.
        _purge_statuses(herder)
        try:
            yield from herder.config_store.claim_write_privileges()
        except JavaException:
            herder.fenced_from_config_topic = True
    herder.member.wakeup()


def _purge_statuses(herder: HerderState) -> None:
    """Delete the statuses of connectors and tasks that are no longer configured."""
    snapshot = herder.config_store.snapshot()
    for connector in herder.status_store.connectors():
        if not snapshot.contains(connector):
            herder.statuses.on_connector_deletion(connector)
    for connector in herder.status_store.connectors():
        remaining = snapshot.tasks(connector)
        for status in herder.status_store.get_all(connector):
            if isinstance(status.subject, ConnectorTaskId) and status.subject not in remaining:
                herder.statuses.on_task_deletion(status.subject)


def on_revoked(
    herder: HerderState, connectors: Sequence[str], tasks: Sequence[ConnectorTaskId]
) -> Blocking[None]:
    """Stop revoked work, so that others may start it; leadership is kept.

    An eager assignment that was not resolved yet had started no work.
    """
    is_eager = herder.protocol_version == ConnectProtocolCompatibility.EAGER
    if is_eager and not herder.rebalance_resolved:
        return
    callables = [connector_stopping_callable(herder, connector) for connector in connectors]
    callables += [task_stopping_callable(herder, task) for task in tasks]
    yield from start_and_stop(
        herder, callables, f"stopping {len(connectors)} and {len(tasks)} tasks"
    )
    herder.remove(herder.running_assignment, connectors, tasks)
    if herder.config.topic_tracking_enable:
        # After the stop, because running tasks would write the topics again.
        _reset_active_topics(herder, connectors, tasks)
    with herder.in_stage("flushing updates to the status topic"):
        yield from herder.status_store.flush()


def _reset_active_topics(
    herder: HerderState, connectors: Sequence[str], tasks: Sequence[ConnectorTaskId]
) -> None:
    stopped = (*connectors, *dict.fromkeys(task.connector for task in tasks))
    for connector in stopped:
        if not herder.config_state.contains(connector):
            reset_connector_active_topics(herder, connector)


def reset_connector_active_topics(herder: HerderState, connector: str) -> None:
    """Delete the records of the topics that a connector uses."""
    for status in herder.status_store.get_all_topics(connector):
        herder.status_store.delete_topic(status.connector, status.topic)
