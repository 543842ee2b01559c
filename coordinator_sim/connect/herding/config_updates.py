"""What new records of the config topic make a herder do: rebalance, restart, pause.

The listener, on the log's thread, only sets flags and wakes the herder up; the herder's thread acts
on them in its tick.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, ConfigUpdateListener,
updateConfigsWithEager to stopReconfiguredTasks.
"""

from collections.abc import Iterable

from coordinator_sim.clients.config import ConnectProtocolCompatibility
from coordinator_sim.connect.effects import TargetState
from coordinator_sim.connect.herding.fencing import cancel_fencing
from coordinator_sim.connect.herding.herder_state import HerderState
from coordinator_sim.connect.herding.reconfiguration import request_task_reconfiguration
from coordinator_sim.connect.herding.requests import RestartConnectorAndTasks
from coordinator_sim.connect.herding.starting import connector_starting_callable, start_and_stop
from coordinator_sim.connect.stores.config_records import RestartRequest, SessionKey
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.kafka.resources import ConnectorTaskId


class ConfigUpdateListener:
    """The herder's listener on its config topic.

    Args:
        herder: The herder whose flags are set.
    """

    def __init__(self, herder: HerderState) -> None:
        self._herder = herder

    def on_connector_config_remove(self, connector: str) -> None:
        """Have the work assigned anew when a known connector was deleted."""
        herder = self._herder
        if herder.config_state.contains(connector):
            herder.needs_reconfig_rebalance = True
        else:
            herder.connector_config_updates[connector] = None
        herder.member.wakeup()

    def on_connector_config_update(self, connector: str) -> None:
        """Have a new connector assigned; restart a known one at its owner."""
        herder = self._herder
        if herder.config_state.contains(connector):
            herder.connector_config_updates[connector] = None
        else:
            herder.needs_reconfig_rebalance = True
        herder.member.wakeup()

    def on_task_config_update(self, tasks: tuple[ConnectorTaskId, ...]) -> None:
        """Have committed tasks assigned anew; a round of fencing under way is cancelled."""
        herder = self._herder
        herder.needs_reconfig_rebalance = True
        herder.task_config_updates.update(dict.fromkeys(tasks))
        for connector in dict.fromkeys(task.connector for task in tasks):
            cancel_fencing(herder, connector)
        herder.member.wakeup()

    def on_connector_target_state_change(self, connector: str) -> None:
        """Have the tick pause, resume or stop this worker's part of the connector."""
        self._herder.connector_target_state_changes[connector] = None
        self._herder.member.wakeup()

    def on_session_key_update(self, key: SessionKey) -> None:
        """Sign and verify with the new key from now on. The herder is not woken up."""
        herder = self._herder
        herder.session_key = key
        if herder.config.key_ttl_ms > 0:
            herder.key_expiration_ms = key.creation_timestamp_ms + herder.config.key_ttl_ms

    def on_restart_request(self, request: RestartRequest) -> None:
        """Keep the request for the next tick; of two for one connector, that with more impact."""
        pending = self._herder.pending_restart_requests
        known = pending.get(request.connector)
        if known is None or _impact(request) > _impact(known):
            pending[request.connector] = request
        self._herder.member.wakeup()

    def on_logging_level_update(self, namespace: str, level: str) -> None:
        """Log this namespace at another level."""
        self._herder.logger_levels[namespace] = level


def _impact(request: RestartRequest) -> tuple[bool, bool]:
    return RestartConnectorAndTasks(
        connector=request.connector,
        only_failed=request.only_failed,
        include_tasks=request.include_tasks,
    ).impact


def process_config_updates(herder: HerderState) -> Blocking[bool]:
    """Run step 8 of the tick: act on new config records; return whether the tick ends here."""
    if herder.member.coordinator.connect_protocol is ConnectProtocolCompatibility.EAGER:
        return (yield from _process_with_eager(herder))
    return (yield from _process_with_incremental_cooperative(herder))


def _process_with_eager(herder: HerderState) -> Blocking[bool]:
    """Apply all changes by a rebalance, which stops and starts everything in this protocol."""
    if not (
        herder.needs_reconfig_rebalance
        or herder.connector_config_updates
        or herder.connector_target_state_changes
    ):
        return False
    herder.config_state = herder.config_store.snapshot()
    if herder.needs_reconfig_rebalance:
        herder.member.request_rejoin()
        herder.needs_reconfig_rebalance = False
        herder.connector_config_updates.clear()
        herder.connector_target_state_changes.clear()
        return True
    connectors, herder.connector_config_updates = herder.connector_config_updates, {}
    changes, herder.connector_target_state_changes = herder.connector_target_state_changes, {}
    yield from _process_connector_config_updates(herder, java_hash_order(connectors))
    _process_target_state_changes(herder, java_hash_order(changes))
    return False


def _process_with_incremental_cooperative(herder: HerderState) -> Blocking[bool]:
    """Apply changes of connectors and tasks before the rebalance, because work runs through it."""
    if not (
        herder.needs_reconfig_rebalance
        or herder.connector_config_updates
        or herder.connector_target_state_changes
        or herder.task_config_updates
    ):
        return False
    herder.config_state = herder.config_store.snapshot()
    ends_tick = herder.needs_reconfig_rebalance
    if herder.needs_reconfig_rebalance:
        herder.member.request_rejoin()
        herder.needs_reconfig_rebalance = False
    connectors, herder.connector_config_updates = herder.connector_config_updates, {}
    changes, herder.connector_target_state_changes = herder.connector_target_state_changes, {}
    tasks, herder.task_config_updates = herder.task_config_updates, {}
    yield from _process_connector_config_updates(herder, java_hash_order(connectors))
    _process_target_state_changes(herder, java_hash_order(changes))
    yield from _stop_reconfigured_tasks(herder, dict.fromkeys(task.connector for task in tasks))
    return ends_tick


def _process_connector_config_updates(
    herder: HerderState, connectors: Iterable[str]
) -> Blocking[None]:
    """Restart the connectors that run on this worker; one that was deleted only stops."""
    assignment = herder.assignment
    restarted = []
    for connector in connectors:
        if assignment is None or connector not in assignment.connectors:
            continue
        with herder.in_stage(f"stopping connector {connector}"):
            yield from herder.work.stop_and_await_connector(connector)
        if herder.config_state.contains(connector):
            restarted.append(connector_starting_callable(herder, connector))
    yield from start_and_stop(
        herder, restarted, f"restarting {len(restarted)} reconfigured connectors"
    )


def _process_target_state_changes(herder: HerderState, connectors: Iterable[str]) -> None:
    """Pause, resume or stop what this worker runs of each connector."""
    for connector in connectors:
        target_state = herder.config_state.target_state(connector)
        if target_state is None or not herder.config_state.contains(connector):
            continue
        change = herder.work.set_target_state(connector, target_state)
        if change is not None:
            herder.threads.start(_after_change(herder, connector, change))


def _after_change(
    herder: HerderState, connector: str, change: Pending[TargetState]
) -> Blocking[None]:
    """Ask for new tasks once resumed: the connector may have been reconfigured meanwhile."""
    yield Wait(change)
    if change.error is None and change.result() is TargetState.STARTED:
        request_task_reconfiguration(herder, connector)


def _stop_reconfigured_tasks(herder: HerderState, connectors: dict[str, None]) -> Blocking[None]:
    """Stop tasks that have new configurations; the following rebalance starts them again."""
    if herder.assignment is None:
        return
    tasks = [task for task in herder.assignment.tasks if task.connector in connectors]
    if not tasks:
        return
    with herder.in_stage(f"stopping {len(tasks)} reconfigured tasks"):
        yield from herder.work.stop_and_await_tasks(tasks)
    herder.tasks_to_restart.update(dict.fromkeys(tasks))
