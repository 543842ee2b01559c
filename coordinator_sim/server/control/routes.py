"""The paths of the control surface: one list for the application and the OpenAPI document."""

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from coordinator_sim.broker.faults.faults import Fault
from coordinator_sim.server.control import clock_verbs, link_verbs, verbs
from coordinator_sim.server.control.control import Control
from coordinator_sim.server.control.link_models import LinkReset, LinkView, ResetLink, SetLink
from coordinator_sim.server.control.models import (
    Advance,
    BrokerView,
    ClockState,
    ClockView,
    CompactedView,
    ConnectionView,
    FaultView,
    GroupSummary,
    GroupView,
    Json,
    LeaderView,
    Mark,
    MoveCoordinatorTo,
    Moved,
    NewTopic,
    RunUntil,
    ServerPatch,
    ServerView,
    SetClock,
    SlowAppendsTo,
    StartTrace,
    TopicView,
    TracedEvents,
    TraceView,
)
from coordinator_sim.server.control.requests import ControlRequest

Verb = Callable[[Control, ControlRequest], "Json | Awaitable[Json]"]


class Query(Struct, frozen=True, kw_only=True):
    """A parameter of a query."""

    name: str
    text: str
    is_number: bool = True


class ControlRoute(Struct, frozen=True, kw_only=True):
    """One path with one method.

    Args:
        path: Variable parts in braces; `:path` lets one have slashes.
        verb: Function that is called; the first line of its docstring is the summary.
        answer: Type of the answer; None for no content.
        body: Type of the body; None for no body.
        errors: Statuses of refusals beside 400.
    """

    method: str
    path: str
    verb: Verb
    answer: Json
    body: type[Struct] | None = None
    query: tuple[Query, ...] = ()
    errors: tuple[int, ...] = ()
    status: int = 200


def _get(
    path: str,
    verb: Verb,
    answer: Json,
    *,
    query: tuple[Query, ...] = (),
    errors: tuple[int, ...] = (),
) -> ControlRoute:
    return ControlRoute(
        method="GET", path=path, verb=verb, answer=answer, query=query, errors=errors
    )


def _post(
    path: str,
    verb: Verb,
    answer: Json,
    body: type[Struct] | None = None,
    *,
    status: int = 200,
    errors: tuple[int, ...] = (409,),
) -> ControlRoute:
    return ControlRoute(
        method="POST",
        path=path,
        verb=verb,
        answer=answer,
        body=body,
        errors=errors,
        status=status,
    )


def _delete(path: str, verb: Verb, answer: Json = None) -> ControlRoute:
    status = 204 if answer is None else 200
    return ControlRoute(
        method="DELETE", path=path, verb=verb, answer=answer, errors=(404,), status=status
    )


_WAIT: Final = (
    Query(name="state", text="The state it has to be in.", is_number=False),
    Query(name="members", text="How many members it has to have."),
    Query(name="generation", text="The generation it has to be in."),
    Query(name="min_generation", text="The generation it has to be in or past."),
    Query(name="timeout_ms", text="How long to wait at most; 30000 if not said."),
)
_AFTER: Final = Query(name="after", text="Number of the last thing known; 0 if not said.")

ROUTES: Final = (
    _get("/v1/server", verbs.get_server, ServerView),
    ControlRoute(
        method="PATCH",
        path="/v1/server",
        verb=verbs.patch_server,
        answer=ServerView,
        body=ServerPatch,
    ),
    _post("/v1/reset", verbs.reset, ServerView),
    _get("/v1/brokers", verbs.list_brokers, tuple[BrokerView, ...]),
    _get("/v1/brokers/{broker_id}", verbs.get_broker, BrokerView, errors=(404,)),
    _post("/v1/brokers/{broker_id}/stop", verbs.stop_broker, BrokerView, errors=(404, 409)),
    _post("/v1/brokers/{broker_id}/pause", verbs.pause_broker, BrokerView, errors=(404, 409)),
    _post(
        "/v1/brokers/{broker_id}/partition", verbs.partition_broker, BrokerView, errors=(404, 409)
    ),
    _post("/v1/brokers/{broker_id}/resume", verbs.resume_broker, BrokerView, errors=(404, 409)),
    _post("/v1/brokers/{broker_id}/restart", verbs.restart_broker, BrokerView, errors=(404, 409)),
    _get("/v1/topics", verbs.list_topics, tuple[TopicView, ...]),
    _post("/v1/topics", verbs.create_topic, TopicView, NewTopic, status=201),
    _get("/v1/topics/{name}", verbs.get_topic, TopicView, errors=(404,)),
    _delete("/v1/topics/{name}", verbs.delete_topic, TopicView),
    _post(
        "/v1/topics/{name}/partitions/{partition}/elect",
        verbs.elect_leader,
        LeaderView,
        MoveCoordinatorTo,
        errors=(404, 409),
    ),
    _post(
        "/v1/topics/{name}/partitions/{partition}/compact",
        verbs.compact,
        CompactedView,
        errors=(404, 409),
    ),
    _post(
        "/v1/topics/{name}/slow-appends",
        verbs.slow_appends,
        TopicView,
        SlowAppendsTo,
        errors=(404, 409),
    ),
    _get("/v1/groups", verbs.list_groups, tuple[GroupSummary, ...]),
    _get(
        "/v1/groups/{group_id:path}/wait",
        verbs.wait_for_group,
        GroupView,
        query=_WAIT,
        errors=(408,),
    ),
    _post(
        "/v1/groups/{group_id:path}/move-coordinator",
        verbs.move_coordinator,
        LeaderView,
        MoveCoordinatorTo,
    ),
    _get("/v1/groups/{group_id:path}", verbs.get_group, GroupView, errors=(404,)),
    _get("/v1/connections", verbs.list_connections, tuple[ConnectionView, ...]),
    _delete("/v1/connections/{connection}", verbs.close_connection),
    _get("/v1/links", link_verbs.list_links, tuple[LinkView, ...]),
    ControlRoute(
        method="PUT",
        path="/v1/links",
        verb=link_verbs.set_link,
        answer=tuple[LinkView, ...],
        body=SetLink,
        errors=(404,),
    ),
    _post("/v1/links/reset", link_verbs.reset_link, LinkReset, ResetLink, errors=(404,)),
    _get("/v1/clock", clock_verbs.get_clock, ClockState),
    ControlRoute(
        method="PUT",
        path="/v1/clock",
        verb=clock_verbs.set_clock,
        answer=ClockView,
        body=SetClock,
        errors=(409,),
    ),
    _post("/v1/clock/advance", clock_verbs.advance, Moved, Advance),
    _post("/v1/clock/run-until", clock_verbs.run_until, Moved, RunUntil, errors=(404, 409)),
    _post("/v1/clock/stop", clock_verbs.stop_clock, ClockView),
    _get("/v1/faults", verbs.list_faults, tuple[FaultView, ...]),
    _post("/v1/faults", verbs.add_fault, FaultView, Fault, status=201),
    _delete("/v1/faults", verbs.clear_faults),
    _get("/v1/faults/{fault_id}", verbs.get_fault, FaultView, errors=(404,)),
    _delete("/v1/faults/{fault_id}", verbs.remove_fault, FaultView),
    _get("/v1/trace", verbs.get_trace, TraceView),
    _get("/v1/trace/events", verbs.get_traced, TracedEvents, query=(_AFTER,)),
    _post("/v1/trace/start", verbs.start_trace, TraceView, StartTrace),
    _post("/v1/trace/stop", verbs.stop_trace, TraceView),
    _post("/v1/trace/mark", verbs.mark, TraceView, Mark, errors=()),
)
"""All paths in the OpenAPI document; `app` adds `/events`, health, metrics and the page."""
