"""Reconfigure a connector's tasks: ask the connector, compare, then write or send to the leader.

Equal configurations are not written, which is what keeps a rebalance from causing the next.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java,
requestTaskReconfiguration to publishConnectorTaskConfigs; AbstractHerder.java, taskConfigsChanged.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from coordinator_sim.clients.backoff import NO_JITTER, ExponentialBackoff
from coordinator_sim.connect.effects import TargetState
from coordinator_sim.connect.exceptions import ConnectException, JavaException
from coordinator_sim.connect.herding.config_topic import write_task_configs
from coordinator_sim.connect.herding.herder_state import HerderState
from coordinator_sim.connect.herding.refusals import TooManyTasksException
from coordinator_sim.connect.herding.requests import Done, Outcome
from coordinator_sim.connect.stores.config_state import ClusterConfigState
from coordinator_sim.connect.thread import Blocking
from coordinator_sim.kafka.resources import ConnectorTaskId

RECONFIGURE_CONNECTOR_TASKS_BACKOFF: Final = ExponentialBackoff(initial_ms=250, max_ms=60_000)
"""DistributedHerder.RECONFIGURE_CONNECTOR_TASKS_BACKOFF_INITIAL_MS and _MAX_MS; without jitter."""

_Completed = Callable[[JavaException | None], None]


def request_task_reconfiguration(herder: HerderState, connector: str) -> None:
    """Have the herder's thread ask a connector for its tasks. Any thread may call this."""
    herder.add_request(partial(reconfigure_with_retry, herder, connector))


def reconfigure_with_retry(
    herder: HerderState, connector: str, attempts: int = 0
) -> Blocking[Outcome]:
    """Ask a connector for its tasks and have them written, retrying until that succeeds.

    Too many tasks end the retries: the connector has failed then.
    """

    def completed(error: JavaException | None) -> None:
        if error is not None and not isinstance(error, TooManyTasksException):
            herder.add_request(
                partial(reconfigure_with_retry, herder, connector, attempts + 1),
                delay_ms=RECONFIGURE_CONNECTOR_TASKS_BACKOFF.backoff_ms(
                    attempts, NO_JITTER, site="reconfigure-connector-tasks", key=""
                ),
            )

    try:
        yield from _reconfigure_connector(herder, connector, completed)
    except JavaException as exception:
        completed(exception)
    return Done()


def _reconfigure_connector(
    herder: HerderState, connector: str, completed: _Completed
) -> Blocking[None]:
    """Ask a connector that runs here for its tasks, and publish them.

    Raises:
        JavaException: anything that failed on this thread.
    """
    config = herder.config_state.connector_config(connector)
    if not herder.work.is_running(connector) or config is None:
        return
    if herder.config_state.target_state(connector) is not TargetState.STARTED:
        return
    with herder.in_stage(f"generating task configs for connector {connector}"):
        configs = herder.work.connector_task_configs(connector, dict(config))
    if not task_configs_changed(herder.config_state, connector, configs):
        return
    if herder.is_leader:
        yield from write_task_configs(herder, connector, configs)
    else:
        # Java must not wait for the leader here: a rebalance of the leader needs this thread to
        # end.
        herder.forward_requests.submit(
            partial(_forward_task_configs, herder, connector, configs, completed)
        )


def _forward_task_configs(
    herder: HerderState,
    connector: str,
    configs: list[dict[str, str]],
    completed: _Completed,
) -> Blocking[None]:
    """Send a connector's tasks to the leader, on the forwarding thread."""
    leader_url = herder.leader_url
    if not leader_url:
        completed(
            ConnectException(
                "Request to leader to reconfigure connector tasks failed because the URL of the "
                "leader's REST interface is empty!"
            )
        )
        return
    try:
        yield from herder.requests.put_task_configs(
            leader_url, connector, configs, herder.session_key
        )
    except JavaException as exception:
        completed(exception)


def task_configs_changed(
    state: ClusterConfigState, connector: str, configs: Sequence[dict[str, str]]
) -> bool:
    """Whether a connector's task configurations have to be written.

    True also when the connector's own configuration is not the one that the present tasks
    were made from, so that tasks that read it are restarted.
    """
    count = state.task_count(connector)
    if len(configs) != count:
        return True
    stored = (state.task_config(ConnectorTaskId(connector, number)) for number in range(count))
    if any(new != old for new, old in zip(configs, stored, strict=True)):
        return True
    return state.applied_connector_config(connector) != state.connector_config(connector)
