"""Connect's REST server: routes requests to resources and answers some by itself.

Until the resources are initialized, every path is 404. Each request is one thread of the worker,
from the arrival of the request to the `AnswerHttp` effect.

Source: kafka trunk, connect/runtime/.../rest/RestServer.java, ConnectRestServer.java,
resources/RootResource.java, ConnectorPluginsResource.java, LoggingResource.java.
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.effects import AnswerHttp, HttpRequest, HttpResponse
from coordinator_sim.connect.exceptions import ConfigException
from coordinator_sim.connect.herding.requests import CheckHealth, Done, SetClusterLoggerLevel
from coordinator_sim.connect.loggers import LEVELS, LoggerLevel, Loggers
from coordinator_sim.connect.plugins.registry import PluginNotFound, PluginType
from coordinator_sim.connect.plugins.standard_plugins import SHOWN_COMMIT, SHOWN_VERSION
from coordinator_sim.connect.rest import http
from coordinator_sim.connect.rest.call import Call, Resource
from coordinator_sim.connect.rest.connectors import (
    ConnectorsResource,
    TopicTracking,
    connector_routes,
)
from coordinator_sim.connect.rest.entities import config_infos, logger_level, plugin_info
from coordinator_sim.connect.rest.filters import CrossOrigin, HeaderRule, refused, with_headers
from coordinator_sim.connect.rest.forwarding import RequestHandler, RestHerder
from coordinator_sim.connect.rest.internal import InternalResource
from coordinator_sim.connect.settings.connector_config import CONNECTOR_CLASS
from coordinator_sim.connect.settings.validation import InstalledPlugins, NoConnectorClass
from coordinator_sim.connect.thread import Blocking, Outbox

_LISTED: Final = (
    PluginType.SINK,
    PluginType.SOURCE,
    PluginType.TRANSFORMATION,
    PluginType.PREDICATE,
    PluginType.CONVERTER,
    PluginType.HEADER_CONVERTER,
)
"""Kinds of plugins in the order in which they are listed."""
_CONFIG_EXCEPTION: Final = "org.apache.kafka.common.config.ConfigException: "
_TEXT: Final = "text/plain"
_BAD_REQUEST_EXCEPTION: Final = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException: "


class RestSettings(Struct, frozen=True, kw_only=True):
    """Configuration of the server.

    Args:
        url: Advertised URL, ending with a slash.
        tracking: Whether active topics are tracked.
        has_admin: Whether `/admin/loggers` is among the resources of the ordinary listeners.
        cross_origin: Origins whose pages may use the ordinary listeners; None for no such headers.
        response_headers: Further headers of their responses.
        credentials: Passwords by user, where the basic authentication extension is registered.
        has_tasks_config: Whether `tasks-config` exists; releases since 4.0 lack it.
        version: Version of the worker, as `GET /` shows it.
        commit: Commit id of the worker's source.
    """

    url: str
    tracking: TopicTracking = TopicTracking()
    has_admin: bool = True
    cross_origin: CrossOrigin | None = None
    response_headers: tuple[HeaderRule, ...] = ()
    credentials: Mapping[str, str] | None = None
    has_tasks_config: bool = False
    version: str = SHOWN_VERSION
    commit: str = SHOWN_COMMIT


class RestServer:
    """The REST server of one worker.

    Args:
        settings: Configuration of the server.
        outbox: The worker's outbox.
        loggers: The worker's loggers.
    """

    def __init__(self, settings: RestSettings, outbox: Outbox, loggers: Loggers) -> None:
        self._settings = settings
        self._outbox = outbox
        self._loggers = loggers
        self._routes: dict[str, dict[str, Resource]] | None = None
        self._admin_routes: dict[str, dict[str, Resource]] = {}
        self._cluster_levels: dict[str, str] = {}

    def initialize_resources(
        self, herder: RestHerder, plugins: InstalledPlugins, *, cluster_id: str
    ) -> None:
        """Make the resources reachable. Source: RestServer.initializeResources."""
        handler = RequestHandler(herder, self._outbox)
        connectors = ConnectorsResource(
            handler, plugins, url=self._settings.url, tracking=self._settings.tracking
        )
        routes = connector_routes(connectors, InternalResource(handler))
        if not self._settings.has_tasks_config:
            del routes["/connectors/*/tasks-config"]
        routes.update(_root_routes(handler, self._settings, cluster_id))
        routes.update(_plugin_routes(plugins))
        self._admin_routes = self._logger_routes(handler)
        if self._settings.has_admin:
            routes.update(self._admin_routes)
        self._routes = routes

    def serve(self, exchange: int, request: HttpRequest) -> Blocking[None]:
        """Run the thread of one request."""
        response = yield from self.respond(request)
        if request.method == "HEAD":
            response = HttpResponse(status=response.status, headers=response.headers)
        self._outbox.tell(AnswerHttp(exchange=exchange, response=response))

    def respond(self, request: HttpRequest) -> Blocking[HttpResponse]:
        """Return the answer to one request."""
        routes = self._routes
        if routes is None:
            url = self._settings.url.rstrip("/") + request.target
            return http.server_page(http.NOT_FOUND, url, "Not Found")
        try:
            target = http.parse_target(request.target)
        except http.RestError as error:
            return http.server_page(error.status, "/badURI", error.message)
        if request.is_admin:
            return (yield from self._answered(self._admin_routes, target, request))
        settings, now_ms = self._settings, self._outbox.now_ms
        response = yield from self._answered(routes, target, request, settings.credentials)
        own = settings.cross_origin.headers(request) if settings.cross_origin is not None else {}
        return with_headers(response, own, settings.response_headers, now_ms)

    def _answered(
        self,
        routes: dict[str, dict[str, Resource]],
        target: http.Target,
        request: HttpRequest,
        credentials: Mapping[str, str] | None = None,
    ) -> Blocking[HttpResponse]:
        """Return the answer of a resource, where there is one and the sender may use it."""
        try:
            found = _find(routes, target.segments)
            if found is None:
                raise http.unmatched(http.NOT_FOUND)
            methods, names = found
            is_options = request.method == "OPTIONS"
            resource = methods.get("GET" if request.method == "HEAD" else request.method)
            if is_options:
                resource = _at_once(lambda _: _options(methods))
            if resource is None:
                raise http.unmatched(http.METHOD_NOT_ALLOWED)
            if credentials is not None:
                refusal = refused(credentials, request, _TEXT if is_options else http.JSON)
                if refusal is not None:
                    return refusal
            return (yield from resource(Call(names, target, request)))
        except http.RestError as error:
            return http.error_response(error)

    # Loggers.

    def _logger_routes(self, handler: RequestHandler) -> dict[str, dict[str, Resource]]:
        def list_loggers(_: Call) -> HttpResponse:
            self._follow_cluster(handler)
            levels = self._loggers.all_levels()
            return http.json_response(
                http.OK, {name: _level(level) for name, level in levels.items()}
            )

        def get_logger(call: Call) -> HttpResponse:
            self._follow_cluster(handler)
            level = self._loggers.level(call.names[0])
            if level is None:
                raise http.RestError(http.NOT_FOUND, f"Logger {call.names[0]} not found.")
            return http.json_response(http.OK, _level(level))

        def set_logger(call: Call) -> Blocking[HttpResponse]:
            level = http.string_map(http.object_in(call.request)).get("level")
            if level is None:
                raise http.RestError(
                    http.BAD_REQUEST, "Desired 'level' parameter was not specified in request."
                )
            if level.upper() not in LEVELS:
                raise http.RestError(http.NOT_FOUND, f"invalid log level '{level}'.")
            namespace = call.names[0]
            if (call.target.first("scope") or "worker").lower() != "cluster":
                names = self._loggers.set_level(namespace, level, self._outbox.now_ms)
                return http.json_response(http.OK, list(names))
            request = SetClusterLoggerLevel(namespace=namespace, level=level)
            yield from handler.complete(request, Done)
            return HttpResponse(status=http.NO_CONTENT)

        return {
            "/admin/loggers": {"GET": _at_once(list_loggers)},
            "/admin/loggers/*": {"GET": _at_once(get_logger), "PUT": set_logger},
        }

    def _follow_cluster(self, handler: RequestHandler) -> None:
        """Apply the log levels read from the config topic since the last request."""
        for namespace, level in handler.herder.logger_levels.items():
            if self._cluster_levels.get(namespace) != level:
                self._cluster_levels[namespace] = level
                self._loggers.set_level(namespace, level, self._outbox.now_ms)


def _at_once(answer: Callable[[Call], HttpResponse]) -> Resource:
    """Make a resource of a function that answers without waiting."""

    def resource(call: Call) -> Blocking[HttpResponse]:
        yield from ()
        return answer(call)

    return resource


def _level(level: LoggerLevel) -> Mapping[str, object]:
    return logger_level(level.level, level.last_modified_ms)


def _find(
    routes: dict[str, dict[str, Resource]], segments: tuple[str, ...]
) -> tuple[dict[str, Resource], tuple[str, ...]] | None:
    """Return the methods of the path, and the names in it."""
    for path, methods in routes.items():
        pattern = tuple(segment for segment in path.split("/") if segment)
        if len(pattern) == len(segments) and all(
            wanted in ("*", given) for wanted, given in zip(pattern, segments, strict=True)
        ):
            names = tuple(
                given for wanted, given in zip(pattern, segments, strict=True) if wanted == "*"
            )
            return methods, names
    return None


def _options(methods: dict[str, Resource]) -> HttpResponse:
    """Answer OPTIONS with the methods of a path. Source: Jersey's OptionsMethodProcessor."""
    allowed = [*(("HEAD",) if "GET" in methods else ()), *methods, "OPTIONS"]
    return HttpResponse(
        status=http.OK,
        headers={"content-type": _TEXT, "allow": ",".join(allowed)},
        body=", ".join(allowed).encode(),
    )


def _root_routes(
    handler: RequestHandler, settings: RestSettings, cluster_id: str
) -> dict[str, dict[str, Resource]]:
    def server_info(_: Call) -> HttpResponse:
        info = {
            "version": settings.version,
            "commit": settings.commit,
            "kafka_cluster_id": cluster_id,
        }
        return http.json_response(http.OK, info)

    def health(_: Call) -> Blocking[HttpResponse]:
        if (yield from handler.is_healthy(CheckHealth())):
            message = "Worker has completed startup and is ready to handle requests."
            return http.json_response(http.OK, {"status": "healthy", "message": message})
        doing = handler.stage_text()
        if handler.herder.is_ready:
            status, state = http.INTERNAL_SERVER_ERROR, "unhealthy"
            message = (
                "Worker was unable to handle this request and may be unable to handle other "
                "requests."
            )
        else:
            status, state = http.SERVICE_UNAVAILABLE, "starting"
            message = "Worker is still starting up."
        return http.json_response(
            status, {"status": state, "message": f"{message} {doing}".rstrip()}
        )

    return {"/": {"GET": _at_once(server_info)}, "/health": {"GET": health}}


def _plugin_routes(plugins: InstalledPlugins) -> dict[str, dict[str, Resource]]:
    def list_plugins(call: Call) -> HttpResponse:
        connectors_only = call.target.flag("connectorsOnly") is not False
        kinds = _LISTED[:2] if connectors_only else _LISTED
        listed = [each for kind in kinds for each in plugins.plugins.of_type(kind)]
        unique = {(each.class_name, each.type, each.version): each for each in listed}
        return http.json_response(http.OK, [plugin_info(each) for each in unique.values()])

    def get_config(call: Call) -> HttpResponse:
        definition = plugins.config_definition(call.names[0])
        if definition is None:
            raise http.RestError(http.NOT_FOUND, f"Unknown plugin {call.names[0]}.")
        return http.json_response(http.OK, list(definition))

    def validate(call: Call) -> HttpResponse:
        config = http.string_map(http.object_in(call.request))
        given, asked = config.get(CONNECTOR_CLASS), call.names[0]
        if given is not None and not _alias(given).endswith(_alias(asked)):
            raise http.RestError(
                http.BAD_REQUEST,
                f"Included connector type {given} does not match request type {asked}",
            )
        try:
            return http.json_response(http.OK, config_infos(plugins.validate(config)))
        # QUIRK: what the validating thread throws reaches the caller wrapped in the exception of
        # waiting for it, so that the status is 500 and the message begins with a class name.
        except NoConnectorClass as error:
            raise http.RestError(
                http.INTERNAL_SERVER_ERROR, f"{_BAD_REQUEST_EXCEPTION}{error}"
            ) from error
        except PluginNotFound as error:
            raise http.RestError(
                http.INTERNAL_SERVER_ERROR, f"{_BAD_REQUEST_EXCEPTION}{error}"
            ) from error
        except ConfigException as error:
            text = f"{_CONFIG_EXCEPTION}{error.message}"
            raise http.RestError(http.INTERNAL_SERVER_ERROR, text) from error

    return {
        "/connector-plugins": {"GET": _at_once(list_plugins)},
        "/connector-plugins/*/config": {"GET": _at_once(get_config)},
        "/connector-plugins/*/config/validate": {"PUT": _at_once(validate)},
    }


def _alias(name: str) -> str:
    """Return a class name without the suffix Connector. Source: normalizedPluginName."""
    short = name.removesuffix("Connector")
    return short or name
