"""The resources under `/connectors` that operate connectors.

Each is a generator that waits for the herder and returns the answer.

Source: kafka trunk, connect/runtime/.../rest/resources/ConnectorsResource.java.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.effects import HttpResponse, TargetState
from coordinator_sim.connect.herding import requests
from coordinator_sim.connect.rest import entities, http
from coordinator_sim.connect.rest.call import Call, Resource, do
from coordinator_sim.connect.rest.forwarding import Forward, ForwardedAnswer, RequestHandler
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
        names: tuple[str, ...] = yield from self._handler.complete(requests.ListConnectors(), tuple)
        expansions = call.target.values("expand")
        if not expansions:
            return http.json_response(http.OK, list(names))
        shown: dict[str, object] = {}
        for name in names:
            try:
                shown[name] = yield from self._expanded(name, expansions)
            except http.RestError as error:
                # The connector was deleted during the listing.
                if error.status != http.NOT_FOUND:
                    raise
        return http.json_response(http.OK, {name: shown[name] for name in java_hash_order(shown)})

    def _expanded(self, name: str, expansions: tuple[str, ...]) -> Blocking[dict[str, object]]:
        expanded: dict[str, object] = {}
        for expansion in expansions:
            if expansion == "status":
                state = yield from self._handler.complete(
                    requests.GetConnectorStatus(name), requests.ConnectorStateInfo
                )
                expanded["status"] = entities.connector_state(state)
            elif expansion == "info":
                info = yield from self._handler.complete(
                    requests.ReadConnectorInfo(name), requests.ConnectorInfo
                )
                expanded["info"] = entities.connector_info(info)
        return expanded

    def get_connector(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}."""
        request = requests.GetConnectorInfo(call.connector)
        info = yield from self._handler.complete(request, requests.ConnectorInfo)
        return http.json_response(http.OK, entities.connector_info(info))

    def get_config(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/config."""
        config = yield from self._handler.complete(
            requests.GetConnectorConfig(call.connector), dict
        )
        return http.json_response(http.OK, config)

    def get_status(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/status."""
        request = requests.GetConnectorStatus(call.connector)
        state = yield from self._handler.complete(request, requests.ConnectorStateInfo)
        return http.json_response(http.OK, entities.connector_state(state))

    def get_tasks(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/tasks."""
        tasks = yield from self._handler.complete(requests.GetTaskConfigs(call.connector), tuple)
        return http.json_response(http.OK, entities.task_infos(tasks))

    def get_tasks_config(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/tasks-config; gone from Kafka since 4.0."""
        tasks = yield from self._handler.complete(requests.GetTaskConfigs(call.connector), tuple)
        return http.json_response(http.OK, entities.tasks_config(tasks))

    def get_task_status(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/tasks/{task}/status."""
        state = yield from self._handler.complete(
            requests.GetTaskStatus(call.task()), requests.TaskState
        )
        return http.json_response(http.OK, entities.task_state(state))

    def get_topics(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/topics."""
        self._check_tracking()
        topics = yield from self._handler.complete(
            requests.GetActiveTopics(call.connector), requests.ActiveTopics
        )
        return http.json_response(http.OK, entities.active_topics(topics))

    def get_offsets(self, call: Call) -> Blocking[HttpResponse]:
        """GET /connectors/{connector}/offsets."""
        offsets = yield from self._handler.complete(
            requests.GetOffsets(call.connector), requests.ConnectorOffsets
        )
        return http.json_response(http.OK, entities.connector_offsets(offsets))

    # Configuring.

    def create(self, call: Call) -> Blocking[HttpResponse]:
        """POST /connectors."""
        body = http.object_in(call.request)
        unknown = sorted(body.keys() - {"name", "config", "initial_state"})
        if unknown or "config" not in body:
            what = f'unrecognized field "{unknown[0]}"' if unknown else "config is missing"
            raise http.RestError(
                http.INTERNAL_SERVER_ERROR, f"Cannot deserialize the request: {what}"
            )
        given = http.string_map({"name": body.get("name")})["name"]
        name = (given or "").strip()
        config = _named(name, http.string_map(body["config"]))
        state = _initial_state(body.get("initial_state"))
        shown: dict[str, object] = {"name": given, "config": config}
        shown["initial_state"] = None if state is None else str(body["initial_state"]).upper()
        request = self._put_request(name, config, allow_replace=False, state=state)
        created = yield from self._created(request, call.forward(body=to_json(shown)))
        return self._configured(created, call, name)

    def put_config(self, call: Call) -> Blocking[HttpResponse]:
        """PUT /connectors/{connector}/config."""
        config = _named(call.connector, http.string_map(http.object_in(call.request)))
        request = self._put_request(call.connector, config, allow_replace=True, state=None)
        created = yield from self._created(request, call.forward(body=to_json(config)))
        return self._configured(created, call, call.connector)

    def patch_config(self, call: Call) -> Blocking[HttpResponse]:
        """PATCH /connectors/{connector}/config."""
        patch = http.string_map(http.object_in(call.request))
        request = requests.PatchConnectorConfig(connector=call.connector, patch=patch)
        created = yield from self._created(request, call.forward(body=to_json(patch)))
        return http.json_response(http.OK, _info_of(created))

    def delete(self, call: Call) -> Blocking[HttpResponse]:
        """DELETE /connectors/{connector}."""
        return (yield from do(self._handler, requests.DeleteConnector(call.connector), call))

    def _put_request(
        self,
        name: str,
        config: dict[str, str | None],
        *,
        allow_replace: bool,
        state: TargetState | None,
    ) -> requests.PutConnectorConfig:
        if None in config.values():
            # A herder's request cannot hold null, so the errors of validation are answered here.
            errors = self._plugins.validation_errors(config)
            if isinstance(errors, requests.PluginFailure):
                raise http.RestError(http.BAD_REQUEST, errors.trace)
            if errors:
                raise http.RestError(http.BAD_REQUEST, invalid_config_message(errors))
        return requests.PutConnectorConfig(
            connector=name,
            config=http.without_nulls(config),
            allow_replace=allow_replace,
            target_state=state,
        )

    def _created(self, request: requests.Request, forward: Forward) -> Blocking[requests.Created]:
        answer = yield from self._handler.complete_or_forward(request, forward)
        match answer:
            case requests.Created():
                return answer
            case ForwardedAnswer(status=status, value=value):
                return requests.Created(
                    created=status == http.CREATED, info=entities.connector_info_from(value)
                )
        raise http.RestError(http.INTERNAL_SERVER_ERROR, f"unexpected outcome {answer}")

    def _configured(self, created: requests.Created, call: Call, name: str) -> HttpResponse:
        response = http.json_response(
            http.CREATED if created.created else http.OK, _info_of(created)
        )
        if not created.created:
            return response
        host = call.request.headers.get("host")
        base = self._url if host is None else f"{call.request.scheme}://{host}"
        headers = {"location": base + http.path_of("connectors", name), **response.headers}
        return HttpResponse(status=http.CREATED, headers=headers, body=response.body)

    # Operating.

    def restart(self, call: Call) -> Blocking[HttpResponse]:
        """POST /connectors/{connector}/restart."""
        tasks = call.target.flag("includeTasks") or False
        failed = call.target.flag("onlyFailed") or False
        if not tasks and not failed:
            return (yield from do(self._handler, requests.RestartConnector(call.connector), call))
        request = requests.RestartConnectorAndTasks(
            connector=call.connector, include_tasks=tasks, only_failed=failed
        )
        flags = {"includeTasks": tasks, "onlyFailed": failed}
        query = tuple((name, str(flags[name]).lower()) for name in java_hash_order(flags))
        answer = yield from self._handler.complete_or_forward(request, call.forward(query=query))
        return _answered(http.ACCEPTED, answer)

    def restart_task(self, call: Call) -> Blocking[HttpResponse]:
        """POST /connectors/{connector}/tasks/{task}/restart."""
        return (yield from do(self._handler, requests.RestartTask(call.task()), call))

    def stop(self, call: Call) -> Blocking[HttpResponse]:
        """PUT /connectors/{connector}/stop."""
        return (yield from do(self._handler, requests.StopConnectorRequest(call.connector), call))

    def pause(self, call: Call) -> Blocking[HttpResponse]:
        """PUT /connectors/{connector}/pause."""
        yield from self._handler.complete(requests.PauseConnector(call.connector), requests.Done)
        return http.empty_response(http.ACCEPTED)

    def resume(self, call: Call) -> Blocking[HttpResponse]:
        """PUT /connectors/{connector}/resume."""
        yield from self._handler.complete(requests.ResumeConnector(call.connector), requests.Done)
        return http.empty_response(http.ACCEPTED)

    def reset_topics(self, call: Call) -> Blocking[HttpResponse]:
        """PUT /connectors/{connector}/topics/reset."""
        self._check_tracking()
        if not self._tracking.allows_reset:
            raise http.RestError(http.FORBIDDEN, "Topic tracking reset is disabled.")
        yield from self._handler.complete(requests.ResetActiveTopics(call.connector), requests.Done)
        return http.empty_response(http.ACCEPTED)

    def alter_offsets(self, call: Call) -> Blocking[HttpResponse]:
        """PATCH /connectors/{connector}/offsets."""
        body = http.json_in(call.request)
        offsets = entities.connector_offsets_from(body)
        if not offsets:
            raise http.RestError(
                http.BAD_REQUEST,
                "Partitions / offsets need to be provided for an alter offsets request",
            )
        request = requests.AlterOffsets(connector=call.connector, offsets=offsets)
        shown = to_json(entities.connector_offsets(requests.ConnectorOffsets(offsets)))
        answer = yield from self._handler.complete_or_forward(request, call.forward(body=shown))
        return _answered(http.OK, answer)

    def reset_offsets(self, call: Call) -> Blocking[HttpResponse]:
        """DELETE /connectors/{connector}/offsets."""
        request = requests.ResetOffsets(call.connector)
        answer = yield from self._handler.complete_or_forward(request, call.forward())
        return _answered(http.OK, answer)

    def _check_tracking(self) -> None:
        if not self._tracking.is_enabled:
            raise http.RestError(http.FORBIDDEN, "Topic tracking is disabled.")


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
        raise http.RestError(
            http.BAD_REQUEST,
            f"Connector name configuration ({included}) doesn't match connector name in the URL "
            f"({name})",
        )
    return {**config, "name": name}


def _initial_state(value: object) -> TargetState | None:
    if value is None:
        return None
    state = _INITIAL_STATES.get(str(value).upper())
    if state is None:
        raise http.RestError(
            http.INTERNAL_SERVER_ERROR,
            f"Cannot deserialize the request: initial_state {value} is none of "
            f"{', '.join(_INITIAL_STATES)}",
        )
    return state


def _info_of(created: requests.Created) -> dict[str, object]:
    if created.info is None:
        raise http.RestError(http.INTERNAL_SERVER_ERROR, "the herder told nothing of the connector")
    return entities.connector_info(created.info)


def _answered(status: int, answer: requests.Outcome | ForwardedAnswer) -> HttpResponse:
    """Return an outcome as JSON, or another worker's answer unchanged."""
    match answer:
        case ForwardedAnswer(value=dict(value)):
            return http.json_response(status, value)
        case requests.ConnectorStateInfo():
            return http.json_response(status, entities.connector_state(answer))
        case requests.Message(message=message):
            return http.json_response(status, {"message": message})
    raise http.RestError(http.INTERNAL_SERVER_ERROR, f"unexpected outcome {answer}")
