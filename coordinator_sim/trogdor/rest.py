"""Trogdor's REST: requests of a coordinator or an agent as values, answered now or later.

Whoever listens passes each request on, and sends the answer that comes.

Source: kafka trunk, trogdor/.../trogdor: coordinator/CoordinatorRestResource.java,
agent/AgentRestResource.java, rest/RestExceptionMapper.java; codes as a 4.3.1 gave them.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar
from urllib.parse import parse_qs, unquote

from msgspec import Struct

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.trogdor import jackson, messages
from coordinator_sim.trogdor.agent import Agent
from coordinator_sim.trogdor.agent_status import StatusWriter
from coordinator_sim.trogdor.coordinator_driver import CoordinatorDriver
from coordinator_sim.trogdor.refusals import TrogdorRefusal

T = TypeVar("T", bound=Struct)

Respond = Callable[[HttpResponse], None]
"""Takes the answer to a request, once."""
Handler = Callable[["Exchange"], None]

_JSON: Final = "application/json"
_OK, _INVALID, _NOT_FOUND, _FAILED = 200, 400, 404, 500


class Exchange:
    """A request, and the way to answer it.

    Args:
        request: The request.
        query: Its query.
        last: The last part of its path, decoded: the id in `/coordinator/tasks/{id}`.
        respond: Takes the answer.
    """

    __slots__ = ("_request", "_respond", "last", "query")

    def __init__(
        self, request: HttpRequest, query: messages.Query, last: str, respond: Respond
    ) -> None:
        self._request = request
        self._respond = respond
        self.query = query
        self.last = last

    def body(self, kind: type[T]) -> T:
        """Read the body.

        Raises:
            TrogdorRefusal: 415 of another type, as 500; whatever JSON of that type refuses.
        """
        media = self._request.headers.get("content-type", "").partition(";")[0].strip()
        if self._request.body and media != _JSON:
            raise TrogdorRefusal(_FAILED, "HTTP 415 Unsupported Media Type")
        return jackson.read(self._request.body, kind)

    def answer(self, value: object = None) -> None:
        """Answer with JSON; None is an empty object."""
        self.answer_json(b"{}" if value is None else jackson.write(value))

    def answer_json(self, body: bytes) -> None:
        """Answer with JSON that is written already."""
        self._respond(_json(_OK, body))


class Rest:
    """The resources of one process.

    Args:
        routes: Path -> method -> handler; a path that ends in `*` takes one more part.
    """

    def __init__(self, routes: Mapping[str, Mapping[str, Handler]]) -> None:
        self._routes = routes

    def handle(self, request: HttpRequest, respond: Respond) -> None:
        """Answer a request, now or later."""
        target, _, queried = request.target.partition("?")
        if "%2f" in target.lower():
            # Jetty refuses it before Trogdor sees it.
            page = b"<html><body><h2>HTTP ERROR 400 Ambiguous URI path separator</h2></body></html>"
            respond(HttpResponse(status=_INVALID, headers={"content-type": "text/html"}, body=page))
            return
        path = target.rstrip("/") or "/"
        front, _, last = path.rpartition("/")
        methods = self._routes.get(path) or self._routes.get(f"{front}/*")
        if methods is None:
            respond(refused(_NOT_FOUND, "HTTP 404 Not Found"))
            return
        if request.method == "OPTIONS":
            respond(_options(methods))
            return
        is_head = request.method == "HEAD"
        handler = methods.get("GET" if is_head else request.method)
        if handler is None:
            respond(refused(_FAILED, "HTTP 405 Method Not Allowed"))
            return
        query = parse_qs(queried, keep_blank_values=True)
        sent = partial(_without_body, respond) if is_head else respond
        try:
            handler(Exchange(request, query, unquote(last), sent))
        except messages.PlainTextRefusal as refusal:
            sent(HttpResponse(status=refusal.code, body=refusal.message.encode()))
        except TrogdorRefusal as refusal:
            sent(refused(refusal.code, refusal.message))


class CoordinatorRest(Rest):
    """The resources of a coordinator.

    Args:
        coordinator: The coordinator.
        ended: Called after the answer to a shutdown: the process ends.
    """

    def __init__(self, coordinator: CoordinatorDriver, ended: Callable[[], None]) -> None:
        self._coordinator = coordinator
        self._ended = ended
        super().__init__(
            {
                "/coordinator/status": {"GET": self._status},
                "/coordinator/uptime": {"GET": self._uptime},
                "/coordinator/task/create": {"POST": self._create},
                "/coordinator/task/stop": {"PUT": self._stop},
                "/coordinator/tasks": {"GET": self._tasks, "DELETE": self._destroy},
                "/coordinator/tasks/*": {"GET": self._task},
                "/coordinator/shutdown": {"PUT": self._shut_down},
            }
        )

    def _status(self, exchange: Exchange) -> None:
        exchange.answer(
            messages.CoordinatorStatusResponse(server_start_ms=self._coordinator.machine.started_ms)
        )

    def _uptime(self, exchange: Exchange) -> None:
        coordinator = self._coordinator
        exchange.answer(
            messages.UptimeResponse(
                server_start_ms=coordinator.machine.started_ms, now_ms=coordinator.now_ms
            )
        )

    def _create(self, exchange: Exchange) -> None:
        asked = exchange.body(messages.CreateTaskRequest)
        if asked.id is None or asked.spec is None:
            raise TrogdorRefusal(_FAILED, "the request has no id or no spec")
        self._coordinator.create_task(asked.id, asked.spec)
        exchange.answer()

    def _stop(self, exchange: Exchange) -> None:
        self._coordinator.stop_task(exchange.body(messages.StopTaskRequest).id)
        exchange.answer()

    def _destroy(self, exchange: Exchange) -> None:
        self._coordinator.destroy_task(messages.DestroyTaskRequest.of_query(exchange.query).id)
        exchange.answer()

    def _task(self, exchange: Exchange) -> None:
        found = self._coordinator.machine.task(exchange.last)
        if found is None:
            raise TrogdorRefusal(_NOT_FOUND, f'No task with ID "{exchange.last}" exists.')
        exchange.answer(found)

    def _tasks(self, exchange: Exchange) -> None:
        wanted = messages.TasksRequest.of_query(exchange.query)
        exchange.answer(
            messages.TasksResponse(tasks=self._coordinator.machine.tasks(wanted.matches))
        )

    def _shut_down(self, exchange: Exchange) -> None:
        asked = exchange.body(messages.CoordinatorShutdownRequest)
        self._coordinator.shut_down(stop_agents=asked.stop_agents)
        exchange.answer()
        self._ended()


class AgentRest(Rest):
    """The resources of an agent.

    Args:
        agent: The agent.
        ended: Called after the answer to a shutdown: the process ends when all work is over.
    """

    def __init__(self, agent: Agent, ended: Callable[[], None]) -> None:
        self._agent = agent
        self._status_writer = StatusWriter()
        self._ended = ended
        super().__init__(
            {
                "/agent/status": {"GET": self._status},
                "/agent/uptime": {"GET": self._uptime},
                "/agent/worker/create": {"POST": self._create},
                "/agent/worker/stop": {"PUT": self._stop},
                "/agent/worker": {"DELETE": self._destroy},
                "/agent/shutdown": {"PUT": self._shut_down},
            }
        )

    def _status(self, exchange: Exchange) -> None:
        agent = self._agent
        exchange.answer_json(self._status_writer.write(agent.started_ms, agent.workers()))

    def _uptime(self, exchange: Exchange) -> None:
        agent = self._agent
        exchange.answer(
            messages.UptimeResponse(server_start_ms=agent.started_ms, now_ms=agent.now_ms)
        )

    def _create(self, exchange: Exchange) -> None:
        asked = exchange.body(messages.CreateWorkerRequest)
        task_id = asked.task_id or ""
        self._agent.create_worker(asked.worker_id, task_id, asked.spec, exchange.answer)

    def _stop(self, exchange: Exchange) -> None:
        self._agent.stop_worker(exchange.body(messages.StopWorkerRequest).worker_id)
        exchange.answer()

    def _destroy(self, exchange: Exchange) -> None:
        asked = messages.DestroyWorkerRequest.of_query(exchange.query)
        self._agent.stop_worker(asked.worker_id, must_destroy=True)
        exchange.answer()

    def _shut_down(self, exchange: Exchange) -> None:
        self._agent.shut_down()
        exchange.answer()
        self._ended()


def _json(status: int, body: bytes) -> HttpResponse:
    return HttpResponse(status=status, headers={"content-type": _JSON}, body=body)


def refused(code: int, message: str) -> HttpResponse:
    """The answer that tells an error as Kafka's daemons do."""
    return _json(code, jackson.write(messages.ErrorResponse(code=code, message=message)))


def _options(methods: Mapping[str, Handler]) -> HttpResponse:
    allowed = ", ".join(("HEAD", "GET", "OPTIONS") if "GET" in methods else (*methods, "OPTIONS"))
    headers = {"content-type": "text/plain", "allow": allowed}
    return HttpResponse(status=_OK, headers=headers, body=allowed.encode())


def _without_body(respond: Respond, response: HttpResponse) -> None:
    respond(HttpResponse(status=response.status, headers=response.headers))
