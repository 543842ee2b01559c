"""Reading and changing the offsets of a connector by request.

Only offsets that Connect keeps, those of source connectors, are here; a sink's offsets are its
consumer group's (`sink_offsets`).

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, connectorOffsets,
modifyConnectorOffsets, modifyConnectorOffsetsChecks; Worker.java, sourceConnectorOffsets,
modifySourceConnectorOffsets.
"""

from collections.abc import Sequence
from typing import Final

from coordinator_sim.connect.effects import TargetState
from coordinator_sim.connect.exceptions import ConnectException, JavaException
from coordinator_sim.connect.herding.config_topic import refresh_config_snapshot
from coordinator_sim.connect.herding.fencing import (
    do_fence_zombie_source_tasks,
    is_source_connector,
)
from coordinator_sim.connect.herding.herder_state import HerderState
from coordinator_sim.connect.herding.refusals import (
    BadRequestException,
    NotFoundException,
    NotLeaderException,
    failure_of,
)
from coordinator_sim.connect.herding.requests import (
    AlterOffsets,
    ConnectorOffset,
    ConnectorOffsets,
    ConnectorType,
    GetOffsets,
    Outcome,
    PluginFailure,
    RequestFailed,
    ResetOffsets,
)
from coordinator_sim.connect.herding.sink_offsets import (
    modified_message,
    read_sink_offsets,
    transformed_config,
    write_sink_offsets,
)
from coordinator_sim.connect.stores.json_converter import from_json
from coordinator_sim.connect.stores.offset_store import offset_key, offset_value
from coordinator_sim.connect.thread import Blocking, Pending, Wait

REST_REQUEST_TIMEOUT_MS: Final = 90_000
"""RestServer.DEFAULT_REST_REQUEST_TIMEOUT_MS: time limit of a whole change of offsets."""


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
