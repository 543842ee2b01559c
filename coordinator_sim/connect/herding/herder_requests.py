"""Map each request to the function of the herder that answers it, and to the thread it runs on.

Source: kafka trunk, connect/runtime/.../runtime/Herder.java; what is queued is decided in
distributed/DistributedHerder.java.
"""

from functools import partial
from typing import assert_never

from coordinator_sim.connect.exceptions import JavaException
from coordinator_sim.connect.herding.caller_requests import run_on_callers_thread
from coordinator_sim.connect.herding.connector_requests import (
    check_signature,
    delete_connector,
    get_connector_config,
    get_connector_info,
    get_connectors,
    get_task_configs,
    patch_connector_config,
    put_connector_config,
    put_task_configs,
    stop_connector,
)
from coordinator_sim.connect.herding.fencing import do_fence_zombie_source_tasks
from coordinator_sim.connect.herding.herder_state import HerderState
from coordinator_sim.connect.herding.offset_requests import (
    connector_offsets,
    modify_connector_offsets,
)
from coordinator_sim.connect.herding.refusals import failure_of
from coordinator_sim.connect.herding.request_queue import Action
from coordinator_sim.connect.herding.requests import (
    AlterOffsets,
    CallersRequest,
    CheckHealth,
    DeleteConnector,
    Done,
    FenceZombies,
    GetConnectorConfig,
    GetConnectorInfo,
    GetConnectors,
    GetOffsets,
    GetTaskConfigs,
    HerdersRequest,
    Outcome,
    PatchConnectorConfig,
    PutConnectorConfig,
    PutTaskConfigs,
    Request,
    ResetOffsets,
    RestartConnector,
    RestartConnectorAndTasks,
    RestartTask,
    StopConnectorRequest,
)
from coordinator_sim.connect.herding.restarts import (
    restart_connector,
    restart_connector_and_tasks,
    restart_task,
)
from coordinator_sim.connect.thread import Blocking, Pending


def submit(herder: HerderState, request: Request) -> Pending[Outcome]:
    """Submit a request; the result is completed with its outcome. Any thread may call this."""
    answer: Pending[Outcome] = Pending()
    if isinstance(request, PutTaskConfigs | FenceZombies):
        try:
            check_signature(herder, request.signature)
        except JavaException as refusal:
            answer.complete(failure_of(refusal))
            return answer
    if isinstance(request, CallersRequest):
        herder.threads.start(_run(herder, request, answer))
        return answer
    return herder.add_request(_action(herder, request, answer), answer)


def _run(herder: HerderState, request: CallersRequest, answer: Pending[Outcome]) -> Blocking[None]:
    """Run a request on its caller's thread."""
    try:
        outcome = yield from run_on_callers_thread(herder, request)
    except JavaException as exception:
        outcome = failure_of(exception)
    answer.complete(outcome)


def _action(herder: HerderState, request: HerdersRequest, answer: Pending[Outcome]) -> Action:  # noqa: C901, PLR0911, PLR0912 - one line for each request
    match request:
        case PutConnectorConfig():
            return partial(put_connector_config, herder, request, answer)
        case PatchConnectorConfig():
            return partial(patch_connector_config, herder, request, answer)
        case DeleteConnector(connector):
            return partial(delete_connector, herder, connector)
        case StopConnectorRequest(connector):
            return partial(stop_connector, herder, connector)
        case GetConnectors():
            return partial(get_connectors, herder)
        case GetConnectorInfo(connector):
            return partial(get_connector_info, herder, connector)
        case GetConnectorConfig(connector):
            return partial(get_connector_config, herder, connector)
        case GetTaskConfigs(connector):
            return partial(get_task_configs, herder, connector)
        case PutTaskConfigs():
            return partial(put_task_configs, herder, request)
        case FenceZombies(connector=connector):
            return partial(do_fence_zombie_source_tasks, herder, connector, answer)
        case RestartConnector(connector):
            return partial(restart_connector, herder, connector, answer)
        case RestartTask(task):
            return partial(restart_task, herder, task)
        case RestartConnectorAndTasks():
            return partial(restart_connector_and_tasks, herder, request)
        case GetOffsets():
            return partial(connector_offsets, herder, request, answer)
        case AlterOffsets() | ResetOffsets():
            return partial(modify_connector_offsets, herder, request, answer)
        case CheckHealth():
            return _check_health
        case _:
            assert_never(request)


def _check_health() -> Blocking[Outcome]:
    yield from ()
    return Done()
