"""Requests that read or write the configuration of a connector, on the herder's thread.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, connectorInfo,
taskConfigs, putConnectorConfig, patchConnectorConfig, deleteConnectorConfig, stopConnector,
putTaskConfigs, requestNotSignedProperly; AbstractHerder.java, maybeAddConfigErrors.
"""

from functools import partial

from coordinator_sim.connect.effects import TargetState
from coordinator_sim.connect.exceptions import ConnectException
from coordinator_sim.connect.herding import refusals, requests
from coordinator_sim.connect.herding.config_topic import (
    refresh_config_snapshot,
    write_task_configs,
    write_to_config_topic_as_leader,
)
from coordinator_sim.connect.herding.herder_state import HerderState
from coordinator_sim.connect.herding.key_rotation import is_request_validation_enabled
from coordinator_sim.connect.stores.config_state import ClusterConfigState
from coordinator_sim.connect.thread import Blocking, Pending
from coordinator_sim.kafka.resources import ConnectorTaskId

# -- reading ---------------------------------------------------------------------------------


def connector_info(
    herder: HerderState, state: ClusterConfigState, connector: str
) -> requests.ConnectorInfo | None:
    """Return a connector as a snapshot of the config topic has it; None when it is absent."""
    config = state.connector_config(connector)
    if config is None:
        return None
    return requests.ConnectorInfo(
        name=connector,
        config=dict(config),
        tasks=state.tasks(connector),
        type=herder.work.connector_type(dict(config)),
    )


def get_connectors(herder: HerderState) -> Blocking[requests.Outcome]:
    """Return the names of the connectors.

    Raises:
        RebalanceNeededException: a rebalance is about to begin.
    """
    yield from ()
    herder.check_rebalance_needed()
    return herder.config_state.connectors()


def get_connector_info(herder: HerderState, connector: str) -> Blocking[requests.Outcome]:
    """Return a connector with its configuration and its tasks.

    Raises:
        JavaException: the connector is unknown, or a rebalance is about to begin.
    """
    yield from ()
    return _known(herder, connector)


def get_connector_config(herder: HerderState, connector: str) -> Blocking[requests.Outcome]:
    """Return the configuration of a connector.

    Raises:
        JavaException: the connector is unknown, or a rebalance is about to begin.
    """
    yield from ()
    return _known(herder, connector).config


def _known(herder: HerderState, connector: str) -> requests.ConnectorInfo:
    herder.check_rebalance_needed()
    if not herder.config_state.contains(connector):
        raise refusals.NotFoundException(f"Connector {connector} not found")
    info = connector_info(herder, herder.config_store.snapshot(), connector)
    if info is None:
        # Deleted since the herder looked: Java answers null here, which ends in a 500.
        raise ConnectException(f"Connector {connector} was deleted")
    return info


def get_task_configs(herder: HerderState, connector: str) -> Blocking[requests.Outcome]:
    """Return the tasks of a connector with their configurations.

    Raises:
        JavaException: the connector is unknown, or a rebalance is about to begin.
    """
    yield from ()
    herder.check_rebalance_needed()
    state = herder.config_state
    if not state.contains(connector):
        raise refusals.NotFoundException(f"Connector {connector} not found")
    tasks = (ConnectorTaskId(connector, number) for number in range(state.task_count(connector)))
    return tuple(requests.TaskInfo(task, dict(state.task_config(task) or {})) for task in tasks)


# -- writing ---------------------------------------------------------------------------------


def put_connector_config(
    herder: HerderState, request: requests.PutConnectorConfig, answer: Pending[requests.Outcome]
) -> Blocking[None]:
    """Validate a configuration, then queue a second request that writes it.

    Raises:
        BadRequestException: validation is impossible, for the connector's class is missing.
    """
    yield from ()
    errors = herder.plugins.validation_errors(request.config)
    if isinstance(errors, requests.PluginFailure):
        # Trunk of 2024-10 answers 500 where the class is not installed, 4.3.1 answers 400 (seen).
        raise refusals.BadRequestException(errors.trace)
    herder.add_request(partial(_write_connector_config, herder, request, errors), answer)


def _write_connector_config(
    herder: HerderState, request: requests.PutConnectorConfig, errors: tuple[str, ...]
) -> Blocking[requests.Outcome]:
    if errors:
        listed = "".join(f"\n{error}" for error in errors)
        raise refusals.BadRequestException(
            f"Connector configuration is invalid and contains the following {len(errors)} "
            f"error(s):{listed}\nYou can also find the above list of errors at the endpoint "
            "`/connector-plugins/{connectorType}/config/validate`"
        )
    _check_leader(herder, "Only the leader can set connector configs.")
    connector = request.connector
    exists = herder.config_state.contains(connector)
    if exists and not request.allow_replace:
        raise refusals.AlreadyExistsException(f"Connector {connector} already exists")
    yield from write_to_config_topic_as_leader(
        herder,
        f"writing a config for connector {connector} to the config topic",
        herder.config_store.put_connector_config(connector, request.config, request.target_state),
    )
    # The herder's snapshot is still the old one; the answer shows the connector's present tasks.
    info = requests.ConnectorInfo(
        name=connector,
        config=request.config,
        tasks=herder.config_state.tasks(connector),
        type=herder.work.connector_type(request.config),
    )
    return requests.Created(created=not exists, info=info)


def patch_connector_config(
    herder: HerderState, request: requests.PatchConnectorConfig, answer: Pending[requests.Outcome]
) -> Blocking[None]:
    """Change some keys of a configuration.

    Raises:
        JavaException: the connector is unknown, or the worker does not lead.
    """
    _check_leader(herder, "Only the leader can set connector configs.")
    info = connector_info(herder, herder.config_store.snapshot(), request.connector)
    if info is None:
        raise refusals.NotFoundException(f"Connector {request.connector} not found")
    changed: dict[str, str | None] = {**info.config, **request.patch}
    config = {name: value for name, value in changed.items() if value is not None}
    put = requests.PutConnectorConfig(connector=request.connector, config=config)
    yield from put_connector_config(herder, put, answer)


def delete_connector(herder: HerderState, connector: str) -> Blocking[requests.Outcome]:
    """Delete a connector.

    Raises:
        JavaException: the connector is unknown, the worker does not lead, or the write failed.
    """
    _check_leader(herder, "Only the leader can delete connector configs.")
    if not herder.config_state.contains(connector):
        raise refusals.NotFoundException(f"Connector {connector} not found")
    yield from write_to_config_topic_as_leader(
        herder,
        f"removing the config for connector {connector} from the config topic",
        herder.config_store.remove_connector_config(connector),
    )
    return requests.Created(created=False)


def stop_connector(herder: HerderState, connector: str) -> Blocking[requests.Outcome]:
    """Remove a connector's tasks, then give it the target state STOPPED.

    The tasks go first: if the second write fails, a connector without tasks whose target state is
    STARTED does no harm.

    Raises:
        JavaException: the connector is unknown, the worker does not lead, or a write failed.
    """
    if not herder.config_state.contains(connector):
        raise refusals.NotFoundException(f"Unknown connector {connector}")
    _check_leader(herder, "Only the leader can transition connectors to the STOPPED state.")
    yield from write_task_configs(herder, connector, ())
    with herder.in_stage(
        f"writing the STOPPED target stage for connector {connector} to the config topic"
    ):
        yield from herder.config_store.put_target_state(connector, TargetState.STOPPED)
    yield from refresh_config_snapshot(herder)
    return requests.Done()


def put_task_configs(
    herder: HerderState, request: requests.PutTaskConfigs
) -> Blocking[requests.Outcome]:
    """Write the task configurations of a connector, as the worker that runs it asked.

    Raises:
        JavaException: the connector is unknown, the worker does not lead, or the write failed.
    """
    _check_leader(herder, "Only the leader may write task configurations.")
    if not herder.config_state.contains(request.connector):
        raise refusals.NotFoundException(f"Connector {request.connector} not found")
    yield from write_task_configs(herder, request.connector, request.configs)
    return requests.Done()


def _check_leader(herder: HerderState, message: str) -> None:
    if not herder.is_leader:
        raise refusals.NotLeaderException(message, herder.leader_url)


def check_signature(
    herder: HerderState, signature: requests.InternalRequestSignature | None
) -> None:
    """Refuse an internal request that is not signed as the protocol demands.

    The eager and the compatible protocol demand no signature.

    Raises:
        ConnectRestException: 400 without a signature or with an algorithm that is not allowed, 503
            before there is a key, 403 for a wrong signature.
    """
    if not is_request_validation_enabled(herder):
        return
    allowed = herder.config.verification_algorithms
    if signature is None:
        raise refusals.BadRequestException("Internal request missing required signature")
    if signature.key_algorithm not in allowed:
        raise refusals.BadRequestException(
            f"This worker does not support the '{signature.key_algorithm}' key signing algorithm "
            "used by other workers. This worker is currently configured to use: "
            f"[{', '.join(allowed)}]. Check that all workers' configuration files permit the same "
            "set of signature algorithms, and correct any misconfigured worker and restart it."
        )
    if herder.session_key is None:
        raise refusals.ConnectRestException(
            refusals.SERVICE_UNAVAILABLE,
            "This worker is still starting up and has not been able to read a session key from "
            "the config topic yet",
        )
    if not signature.is_valid(herder.session_key.key):
        raise refusals.ConnectRestException(
            refusals.FORBIDDEN, "Internal request contained invalid signature."
        )
