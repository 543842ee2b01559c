"""The resources under `/connectors` that operate connectors.

Each is a generator that waits for the herder and returns the answer.

Source: kafka trunk, connect/runtime/.../rest/resources/ConnectorsResource.java.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.effects import HttpResponse, TargetState
from coordinator_sim.connect.herding.requests import (
    ActiveTopics,
    AlterOffsets,
    ConnectorInfo,
    ConnectorOffsets,
    ConnectorStateInfo,
    Created,
    DeleteConnector,
    Done,
    GetActiveTopics,
    GetConnectorConfig,
    GetConnectorInfo,
    GetConnectorStatus,
    GetOffsets,
    GetTaskConfigs,
    GetTaskStatus,
    ListConnectors,
    Message,
    Outcome,
    PatchConnectorConfig,
    PauseConnector,
    PluginFailure,
    PutConnectorConfig,
    ReadConnectorInfo,
    Request,
    ResetActiveTopics,
    ResetOffsets,
    RestartConnector,
    RestartConnectorAndTasks,
    RestartTask,
    ResumeConnector,
    StopConnectorRequest,
    TaskState,
)
from coordinator_sim.connect.rest.call import Call, Resource, do
from coordinator_sim.connect.rest.entities import (
    active_topics,
    connector_info,
    connector_info_from,
    connector_offsets,
    connector_offsets_from,
    connector_state,
    task_infos,
    task_state,
    tasks_config,
)
from coordinator_sim.connect.rest.forwarding import Forward, ForwardedAnswer, RequestHandler
from coordinator_sim.connect.rest.http import (
    ACCEPTED,
    BAD_REQUEST,
    CREATED,
    FORBIDDEN,
    INTERNAL_SERVER_ERROR,
    NOT_FOUND,
    OK,
    RestError,
    empty_response,
    json_in,
    json_response,
    object_in,
    path_of,
    string_map,
    without_nulls,
)
from coordinator_sim.connect.rest.internal import InternalResource
from coordinator_sim.connect.settings.validation import InstalledPlugins, invalid_config_message
from coordinator_sim.connect.stores.json_converter import to_json
from coordinator_sim.connect.thread import Blocking
from coordinator_sim.kafka.orders.iteration_order import java_hash_order

_INITIAL_STATES: Final = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}


class TopicTracking(Struct, frozen=True):
    """`topic.tracking.enable` and `topic.tracking.allow.reset`."""

    is_enabled: bool = True
    allows_reset: bool = True


class ConnectorsResource:
    """Handlers of the requests under `/connectors`.

    Args:
        handler: Waits for the herder.
        plugins: The plugins installed on this worker.
        url: Advertised URL of this worker; locations of new connectors begin with it.
        tracking: Whether active topics are tracked.
    """

    __slots__ = ("_handler", "_plugins", "_tracking", "_url")

    def __init__(
        self,
        handler: RequestHandler,
        plugins: InstalledPlugins,
        *,
        url: str,
        tracking: TopicTracking,
    ) -> None:
        self._handler = handler
        self._plugins = plugins
        self._url = url.rstrip("/")
        self._tracking = tracking

    # Reading.

    def list_connectors(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors."""
        names: tuple[str, ...] = yield from self._handler.complete(ListConnectors(), tuple)
        expansions = call.target.values("expand")
        if not expansions:
            return json_response(OK, list(names))
        shown: dict[str, object] = {}
        for name in names:
            try:
                shown[name] = yield from self._expanded(name, expansions)
            except RestError as error:
                # The connector was deleted during the listing.
                if error.status != NOT_FOUND:
                    raise
        return json_response(OK, {name: shown[name] for name in java_hash_order(shown)})

    def _expanded(self, name: str, expansions: tuple[str, ...]) -> Blocking[dict[str, object]]:
        expanded: dict[str, object] = {}
        for expansion in expansions:
            if expansion == "status":
                state = yield from self._handler.complete(
                    GetConnectorStatus(name), ConnectorStateInfo
                )
                expanded["status"] = connector_state(state)
            elif expansion == "info":
                info = yield from self._handler.complete(ReadConnectorInfo(name), ConnectorInfo)
                expanded["info"] = connector_info(info)
        return expanded

    def get_connector(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}."""
        request = GetConnectorInfo(call.connector)
        info = yield from self._handler.complete(request, ConnectorInfo)
        return json_response(OK, connector_info(info))

    def get_config(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/config."""
        config = yield from self._handler.complete(GetConnectorConfig(call.connector), dict)
        return json_response(OK, config)

    def get_status(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/status."""
        request = GetConnectorStatus(call.connector)
        state = yield from self._handler.complete(request, ConnectorStateInfo)
        return json_response(OK, connector_state(state))

    def get_tasks(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/tasks."""
        tasks = yield from self._handler.complete(GetTaskConfigs(call.connector), tuple)
        return json_response(OK, task_infos(tasks))

    def get_tasks_config(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/tasks-config; gone from Kafka since 4.0."""
        tasks = yield from self._handler.complete(GetTaskConfigs(call.connector), tuple)
        return json_response(OK, tasks_config(tasks))

    def get_task_status(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/tasks/{task}/status."""
        state = yield from self._handler.complete(GetTaskStatus(call.task()), TaskState)
        return json_response(OK, task_state(state))

    def get_topics(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/topics."""
        self._check_tracking()
        topics = yield from self._handler.complete(GetActiveTopics(call.connector), ActiveTopics)
        return json_response(OK, active_topics(topics))

    def get_offsets(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/offsets."""
        offsets = yield from self._handler.complete(GetOffsets(call.connector), ConnectorOffsets)
        return json_response(OK, connector_offsets(offsets))

    # Configuring.

    def create(self, call: Call) -> Blocking[HttpResponse]:
        """POST /connectors."""
        body = object_in(call.request)
        unknown = sorted(body.keys() - {"name", "config", "initial_state"})
        if unknown or "config" not in body:
            what = f'unrecognized field "{unknown[0]}"' if unknown else "config is missing"
            raise RestError(INTERNAL_SERVER_ERROR, f"Cannot deserialize the request: {what}")
        given = string_map({"name": body.get("name")})["name"]
        name = (given or "").strip()
        config = _named(name, string_map(body["config"]))
        state = _initial_state(body.get("initial_state"))
        shown: dict[str, object] = {"name": given, "config": config}
        shown["initial_state"] = None if state is None else str(body["initial_state"]).upper()
        request = self._put_request(name, config, allow_replace=False, state=state)
        created = yield from self._created(request, call.forward(body=to_json(shown)))
        return self._configured(created, call, name)

    def put_config(self, call: Call) -> Blocking[HttpResponse]:
        """PUT /connectors/{connector}/config."""
        config = _named(call.connector, string_map(object_in(call.request)))
        request = self._put_request(call.connector, config, allow_replace=True, state=None)
        created = yield from self._created(request, call.forward(body=to_json(config)))
        return self._configured(created, call, call.connector)

    def patch_config(self, call: Call) -> Blocking[HttpResponse]:
        """PATCH /connectors/{connector}/config."""
        patch = string_map(object_in(call.request))
        request = PatchConnectorConfig(connector=call.connector, patch=patch)
        created = yield from self._created(request, call.forward(body=to_json(patch)))
        return json_response(OK, _info_of(created))

    def delete(self, call: Call) -> Blocking[HttpResponse]:
        """DELETE /connectors/{connector}."""
        return (yield from do(self._handler, DeleteConnector(call.connector), call))

    def _put_request(
        self,
        name: str,
        config: dict[str, str | None],
        *,
        allow_replace: bool,
        state: TargetState | None,
    ) -> PutConnectorConfig:
        if None in config.values():
            # A herder's request cannot hold null, so the errors of validation are answered here.
            errors = self._plugins.validation_errors(config)
            if isinstance(errors, PluginFailure):
                raise RestError(BAD_REQUEST, errors.trace)
            if errors:
                raise RestError(BAD_REQUEST, invalid_config_message(errors))
        return PutConnectorConfig(
            connector=name,
            config=without_nulls(config),
            allow_replace=allow_replace,
            target_state=state,
        )

    def _created(self, request: Request, forward: Forward) -> Blocking[Created]:
        answer = yield from self._handler.complete_or_forward(request, forward)
        match answer:
            case Created():
                return answer
            case ForwardedAnswer(status=status, value=value):
                return Created(created=status == CREATED, info=connector_info_from(value))
        raise RestError(INTERNAL_SERVER_ERROR, f"unexpected outcome {answer}")

    def _configured(self, created: Created, call: Call, name: str) -> HttpResponse:
        response = json_response(CREATED if created.created else OK, _info_of(created))
        if not created.created:
            return response
        host = call.request.headers.get("host")
        base = self._url if host is None else f"{call.request.scheme}://{host}"
        headers = {"location": base + path_of("connectors", name), **response.headers}
        return HttpResponse(status=CREATED, headers=headers, body=response.body)

    # Operating.

    def restart(self, call: Call) -> Blocking[HttpResponse]:
        """POST /connectors/{connector}/restart."""
        tasks = call.target.flag("includeTasks") or False
        failed = call.target.flag("onlyFailed") or False
        if not tasks and not failed:
            return (yield from do(self._handler, RestartConnector(call.connector), call))
        request = RestartConnectorAndTasks(
            connector=call.connector, include_tasks=tasks, only_failed=failed
        )
        flags = {"includeTasks": tasks, "onlyFailed": failed}
        query = tuple((name, str(flags[name]).lower()) for name in java_hash_order(flags))
        answer = yield from self._handler.complete_or_forward(request, call.forward(query=query))
        return _answered(ACCEPTED, answer)

    def restart_task(self, call: Call) -> Blocking[HttpResponse]:
        """POST /connectors/{connector}/tasks/{task}/restart."""
        return (yield from do(self._handler, RestartTask(call.task()), call))

    def stop(self, call: Call) -> Blocking[HttpResponse]:
        """PUT /connectors/{connector}/stop."""
        return (yield from do(self._handler, StopConnectorRequest(call.connector), call))

    def pause(self, call: Call) -> Blocking[HttpResponse]:
        """PUT /connectors/{connector}/pause."""
        yield from self._handler.complete(PauseConnector(call.connector), Done)
        return empty_response(ACCEPTED)

    def resume(self, call: Call) -> Blocking[HttpResponse]:
        """PUT /connectors/{connector}/resume."""
        yield from self._handler.complete(ResumeConnector(call.connector), Done)
        return empty_response(ACCEPTED)

    def reset_topics(self, call: Call) -> Blocking[HttpResponse]:
        """PUT /connectors/{connector}/topics/reset."""
        self._check_tracking()
        if not self._tracking.allows_reset:
            raise RestError(FORBIDDEN, "Topic tracking reset is disabled.")
        yield from self._handler.complete(ResetActiveTopics(call.connector), Done)
        return empty_response(ACCEPTED)

    def alter_offsets(self, call: Call) -> Blocking[HttpResponse]:
        """PATCH /connectors/{connector}/offsets."""
        body = json_in(call.request)
        offsets = connector_offsets_from(body)
        if not offsets:
            raise RestError(
                BAD_REQUEST,
                "Partitions / offsets need to be provided for an alter offsets request",
            )
        request = AlterOffsets(connector=call.connector, offsets=offsets)
        shown = to_json(connector_offsets(ConnectorOffsets(offsets)))
        answer = yield from self._handler.complete_or_forward(request, call.forward(body=shown))
        return _answered(OK, answer)

    def reset_offsets(self, call: Call) -> Blocking[HttpResponse]:
        """DELETE /connectors/{connector}/offsets."""
        request = ResetOffsets(call.connector)
        answer = yield from self._handler.complete_or_forward(request, call.forward())
        return _answered(OK, answer)

    def _check_tracking(self) -> None:
        if not self._tracking.is_enabled:
            raise RestError(FORBIDDEN, "Topic tracking is disabled.")


def connector_routes(
    resource: ConnectorsResource, internal: InternalResource
) -> dict[str, dict[str, Resource]]:
    """Return path -> method -> resource; `*` in a path stands for a name."""
    return {
        "/connectors": {"POST": resource.create, "GET": resource.list_connectors},
        "/connectors/*": {"GET": resource.get_connector, "DELETE": resource.delete},
        "/connectors/*/config": {
            "GET": resource.get_config,
            "PUT": resource.put_config,
            "PATCH": resource.patch_config,
        },
        "/connectors/*/tasks-config": {"GET": resource.get_tasks_config},
        "/connectors/*/status": {"GET": resource.get_status},
        "/connectors/*/topics": {"GET": resource.get_topics},
        "/connectors/*/topics/reset": {"PUT": resource.reset_topics},
        "/connectors/*/restart": {"POST": resource.restart},
        "/connectors/*/stop": {"PUT": resource.stop},
        "/connectors/*/pause": {"PUT": resource.pause},
        "/connectors/*/resume": {"PUT": resource.resume},
        "/connectors/*/tasks": {"GET": resource.get_tasks, "POST": internal.put_task_configs},
        "/connectors/*/fence": {"PUT": internal.fence},
        "/connectors/*/tasks/*/status": {"GET": resource.get_task_status},
        "/connectors/*/tasks/*/restart": {"POST": resource.restart_task},
        "/connectors/*/offsets": {
            "GET": resource.get_offsets,
            "PATCH": resource.alter_offsets,
            "DELETE": resource.reset_offsets,
        },
    }


def _named(name: str, config: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the settings, with the connector's name added.

    Raises:
        RestError: the settings name another connector.
    """
    included = config.get("name")
    if included is not None and included != name:
        raise RestError(
            BAD_REQUEST,
            f"Connector name configuration ({included}) doesn't match connector name in the URL "
            f"({name})",
        )
    return {**config, "name": name}


def _initial_state(value: object) -> TargetState | None:
    if value is None:
        return None
    state = _INITIAL_STATES.get(str(value).upper())
    if state is None:
        raise RestError(
            INTERNAL_SERVER_ERROR,
            f"Cannot deserialize the request: initial_state {value} is none of "
            f"{', '.join(_INITIAL_STATES)}",
        )
    return state


def _info_of(created: Created) -> dict[str, object]:
    if created.info is None:
        raise RestError(INTERNAL_SERVER_ERROR, "the herder told nothing of the connector")
    return connector_info(created.info)


def _answered(status: int, answer: Outcome | ForwardedAnswer) -> HttpResponse:
    """Return an outcome as JSON, or another worker's answer unchanged."""
    match answer:
        case ForwardedAnswer(value=dict(value)):
            return json_response(status, value)
        case ConnectorStateInfo():
            return json_response(status, connector_state(answer))
        case Message(message=message):
            return json_response(status, {"message": message})
    raise RestError(INTERNAL_SERVER_ERROR, f"unexpected outcome {answer}")
