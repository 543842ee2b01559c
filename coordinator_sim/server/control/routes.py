"""The verbs of the control surface, and their paths for the application and the OpenAPI document.

Each function belongs to one route; `clock_verbs` has those of the clock.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import product
from typing import Annotated, Final

from msgspec import Meta, Struct

from coordinator_sim.broker.apis.config_validation import topic_error
from coordinator_sim.broker.faults.faults import Fault, FaultState
from coordinator_sim.broker.operations import BrokerStatus
from coordinator_sim.errors import ConfigError, WireFormatError
from coordinator_sim.kafka.topic_names import check_topic_name
from coordinator_sim.server.control import clock_verbs, models, views
from coordinator_sim.server.control.clock_verbs import clock_of
from coordinator_sim.server.control.conditions import GroupCondition
from coordinator_sim.server.control.control import Control
from coordinator_sim.server.control.models import (
    Advance,
    BrokerView,
    ClockState,
    ClockView,
    CompactedView,
    ConnectionView,
    Count,
    FaultView,
    GroupSummary,
    GroupView,
    Json,
    LeaderView,
    Mark,
    MoveCoordinatorTo,
    Moved,
    NewTopic,
    Port,
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
from coordinator_sim.server.control.requests import (
    BadRequest,
    ControlRequest,
    NotFound,
    WaitedInVain,
)
from coordinator_sim.server.links import PLAIN, Link, Way
from coordinator_sim.trace.events import Event, TraceEvent


class SetLink(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What links let through from now on; what is left out is as if nothing had been set.

    Args:
        broker: Null for all brokers.
        listener: Null for all listeners.
        cut: Whether nothing passes; what is held back arrives when the link is whole again.
        to_broker: Requests.
        to_clients: Responses.
    """

    broker: Count | None = None
    listener: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    cut: bool = False
    to_broker: Way = PLAIN
    to_clients: Way = PLAIN


class ResetLink(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which links have their open connections reset.

    Args:
        broker: Null for all brokers.
        listener: Null for all listeners.
    """

    broker: Count | None = None
    listener: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class LinkReset(Struct, frozen=True, kw_only=True):
    """How many connections were reset."""

    connections: int


class LinkView(Struct, frozen=True, kw_only=True):
    """The network between the clients of a listener and a broker.

    Args:
        connections: Open ones.
        cut: Whether nothing passes.
    """

    broker_id: int
    listener: str
    host: str
    port: Port
    connections: int
    cut: bool
    to_broker: Way
    to_clients: Way


LONGEST_WAIT_MS: Final = 600_000
DEFAULT_WAIT_MS: Final = 30_000
_US_PER_MS: Final = 1_000
_WAITED_NUMBERS: Final = ("members", "generation", "min_generation")


# -- the server ----------------------------------------------------------------------------


def get_server(control: "Control", _: ControlRequest) -> models.ServerView:
    """The cluster as a whole."""
    server, cluster = control.server, control.cluster
    settings = cluster.settings
    return models.ServerView(
        version=control.version,
        profile=settings.profile.name,
        cluster_id=settings.cluster_id,
        seed=settings.seed,
        bootstrap=server.bootstrap(),
        pid=control.pid,
        clock=clock_of(control),
        election_delay_ms=cluster.operations.election_delay_ms,
        topics=len(cluster.image.topics),
        groups=views.group_count(cluster),
        connections=len(server.connections()),
        trace=get_trace(control, _),
    )


def patch_server(control: "Control", request: ControlRequest) -> models.ServerView:
    """Change what may change while the cluster is served."""
    control.cluster.operations.election_delay_ms = request.body.election_delay_ms
    return get_server(control, request)


async def reset(control: "Control", request: ControlRequest) -> models.ServerView:
    """Begin anew: topics, groups and faults are gone, connections are closed.

    The topics of the command line are there again.
    """
    await control.server.reset()
    control.tell("reset", "RESET")
    return get_server(control, request)


# -- brokers -------------------------------------------------------------------------------


def list_brokers(control: "Control", _: ControlRequest) -> tuple[models.BrokerView, ...]:
    """Every broker."""
    return tuple(_broker(control, each) for each in control.cluster.settings.broker_ids)


def get_broker(control: "Control", request: ControlRequest) -> models.BrokerView:
    """One broker."""
    return _broker(control, _broker_id(control, request))


async def stop_broker(control: "Control", request: ControlRequest) -> models.BrokerView:
    """Kill a broker's process; partitions are led by others after the election delay."""
    broker_id = _broker_id(control, request)
    await control.server.stop_broker(broker_id)
    return _told(control, broker_id, "STOPPED")


def pause_broker(control: "Control", request: ControlRequest) -> models.BrokerView:
    """Freeze a broker's process, its timers too; others lead after the election delay."""
    broker_id = _broker_id(control, request)
    control.server.pause_broker(broker_id)
    return _told(control, broker_id, "PAUSED")


def partition_broker(control: "Control", request: ControlRequest) -> models.BrokerView:
    """Cut a broker off from its clients; it goes on and leads what it leads."""
    broker_id = _broker_id(control, request)
    control.server.partition_broker(broker_id)
    return _told(control, broker_id, "PARTITIONED")


async def resume_broker(control: "Control", request: ControlRequest) -> models.BrokerView:
    """Start a stopped broker, thaw a paused one, or heal the network of one cut off."""
    broker_id = _broker_id(control, request)
    await control.server.resume_broker(broker_id)
    return _told(control, broker_id, "RUNNING")


async def restart_broker(control: "Control", request: ControlRequest) -> models.BrokerView:
    """Stop a broker and start it again at once; its clients connect anew."""
    broker_id = _broker_id(control, request)
    if control.cluster.operations.status(broker_id) is not BrokerStatus.STOPPED:
        await control.server.stop_broker(broker_id)
        control.tell("broker", "STOPPED", broker_id)
    await control.server.resume_broker(broker_id)
    return _told(control, broker_id, "RUNNING")


def _told(control: "Control", broker_id: int, event: str) -> models.BrokerView:
    control.tell("broker", event, broker_id)
    return _broker(control, broker_id)


def _broker_id(control: "Control", request: ControlRequest) -> int:
    broker_id = request.number("broker_id")
    if broker_id not in control.cluster.settings.broker_ids:
        raise NotFound(f"there is no broker {broker_id}")
    return broker_id


def _broker(control: "Control", broker_id: int) -> models.BrokerView:
    cluster, server = control.cluster, control.server
    topics = cluster.image.topics.values()
    return models.BrokerView(
        broker_id=broker_id,
        status=cluster.operations.status(broker_id).value,
        fenced=broker_id in cluster.fenced,
        endpoints=tuple(
            models.EndpointView(listener=name, host=found.host, port=found.port)
            for (of, name), found in server.endpoints.items()
            if of == broker_id
        ),
        leads=sum(each.leader_id == broker_id for topic in topics for each in topic.partitions),
        coordinates=views.group_count(cluster, broker_id),
        connections=sum(each.broker_id == broker_id for each in server.connections()),
    )


# -- topics --------------------------------------------------------------------------------


def list_topics(control: "Control", _: ControlRequest) -> tuple[models.TopicView, ...]:
    """Every topic, in order of creation."""
    return views.topic_views(control.cluster)


def get_topic(control: "Control", request: ControlRequest) -> models.TopicView:
    """One topic."""
    return _topic(control, request.path["name"])


def create_topic(control: "Control", request: ControlRequest) -> models.TopicView:
    """Create a topic."""
    wanted: models.NewTopic = request.body
    cluster = control.cluster
    try:
        check_topic_name(wanted.name)
    except ConfigError as error:
        raise BadRequest(str(error)) from None
    if wanted.name in cluster.image.topics:
        raise ConfigError(f"topic {wanted.name!r} is there already")
    wrong = topic_error(cluster.configs, wanted.name, wanted.configs)
    if wrong.is_failure:
        raise BadRequest(str(wrong.message))
    living = len(cluster.groups.living)
    factor = wanted.replication_factor or cluster.settings.default_replication_factor
    if factor > living:
        raise ConfigError(f"replication factor {factor} with {living} living brokers")
    replicas = cluster.topics.spread(wanted.partitions, factor)
    cluster.topics.create(wanted.name, replicas, control.now(), wanted.configs)
    control.tell("topic", "CREATED", topic=wanted.name, partitions=wanted.partitions)
    return _topic(control, wanted.name)


def delete_topic(control: "Control", request: ControlRequest) -> models.TopicView:
    """Delete a topic; the answer is what it was."""
    name = request.path["name"]
    was = _topic(control, name)
    control.cluster.topics.delete(name, control.now())
    control.tell("topic", "DELETED", topic=name)
    return was


def elect_leader(control: "Control", request: ControlRequest) -> models.LeaderView:
    """Let another broker lead a partition, at a higher epoch."""
    topic, partition = request.path["name"], request.number("partition")
    if control.cluster.image.partition(topic, partition) is None:
        raise NotFound(f"there is no partition {topic}-{partition}")
    moved = control.cluster.operations.elect(topic, partition, request.body.to, control.now())
    control.tell("topic", "LEADER", moved.leader_id, topic=topic, partition=partition)
    return _leader(moved)


async def compact(control: "Control", request: ControlRequest) -> models.CompactedView:
    """Close a partition's active segment and clean its log at once, however little is dirty."""
    topic, partition = request.path["name"], request.number("partition")
    log = control.cluster.logs.log_of(topic, partition)
    if log is None:
        raise NotFound(f"there is no partition {topic}-{partition}")
    if "compact" not in str(control.cluster.configs.topic_value(topic, "cleanup.policy")):
        raise ConfigError(f"topic {topic!r} is not compacted: set its cleanup.policy=compact")
    log.begin_compaction(control.now().group_ms)
    try:
        while log.clean_some(control.now().group_ms):  # noqa: ASYNC110 - each call does a part
            await asyncio.sleep(0)
    except WireFormatError as error:
        raise ConfigError(f"{topic}-{partition} cannot be compacted: {error}") from error
    control.tell("topic", "COMPACTED", topic=topic, partition=partition)
    return models.CompactedView(topic=topic, partition=partition, end_offset=log.end_offset)


def slow_appends(control: "Control", request: ControlRequest) -> models.TopicView:
    """Let appends to a topic, or to one partition of it, complete late from now on."""
    topic, wanted = request.path["name"], request.body
    _topic(control, topic)
    control.cluster.operations.slow_appends.set_delay(topic, wanted.partition, wanted.ms)
    control.tell("topic", "SLOWED", topic=topic, partition=wanted.partition, ms=wanted.ms)
    return _topic(control, topic)


def _leader(moved: object) -> models.LeaderView:
    names = models.LeaderView.__struct_fields__
    return models.LeaderView(**{name: getattr(moved, name) for name in names})


def _topic(control: "Control", name: str) -> models.TopicView:
    found = control.cluster.image.topics.get(name)
    if found is None:
        raise NotFound(f"there is no topic {name!r}")
    return views.topic_view(control.cluster, found)


# -- groups --------------------------------------------------------------------------------


def list_groups(control: "Control", _: ControlRequest) -> tuple[models.GroupSummary, ...]:
    """Every group, by id."""
    return views.group_summaries(control.cluster)


def get_group(control: "Control", request: ControlRequest) -> models.GroupView:
    """A group with its members and offsets."""
    group_id = request.path["group_id"]
    control.now()
    found = views.group_view(control.cluster, group_id)
    if found is None:
        raise NotFound(f"there is no group {group_id!r}")
    return found


def move_coordinator(control: "Control", request: ControlRequest) -> models.LeaderView:
    """Let another broker coordinate a group, and all groups of its offsets partition."""
    group_id = request.path["group_id"]
    moved = control.cluster.operations.move_coordinator(group_id, request.body.to, control.now())
    control.tell("broker", "COORDINATOR_MOVED", moved.leader_id, group=group_id)
    return _leader(moved)


async def wait_for_group(control: "Control", request: ControlRequest) -> models.GroupView:
    """Return when a group is as wanted; what is not named may be as it likes."""
    group_id = request.path["group_id"]
    wanted = {name: request.optional_number(name) for name in _WAITED_NUMBERS}
    state = request.query.get("state")
    condition = GroupCondition(
        control, models.GroupWanted(group_id=group_id, state=state, **wanted)
    )
    limit_ms = request.number("timeout_ms", DEFAULT_WAIT_MS)
    if not 0 <= limit_ms <= LONGEST_WAIT_MS:
        raise BadRequest(f"timeout_ms={limit_ms}: wants 0 to {LONGEST_WAIT_MS}")
    try:
        async with asyncio.timeout(limit_ms / 1000):
            while True:
                if condition.is_met():
                    return views.group_view(control.cluster, group_id) or gone(group_id)
                await control.feed.changed()
    except TimeoutError:
        raise WaitedInVain(f"after {limit_ms} ms {condition.found()}") from None


def gone(group_id: str) -> models.GroupView:
    """The view of a group that does not exist any more."""
    return models.GroupView(
        group_id=group_id,
        state="Dead",
        generation=0,
        protocol_type=None,
        protocol_name=None,
        leader_id=None,
        member_count=0,
        coordinator_id=-1,
        offsets_partition=-1,
        members=(),
        offsets=(),
    )


# -- connections ---------------------------------------------------------------------------


def list_connections(control: "Control", _: ControlRequest) -> tuple[models.ConnectionView, ...]:
    """The open connections of clients, the oldest first."""
    return tuple(
        models.ConnectionView(
            connection=each.number,
            broker_id=each.broker_id,
            listener=each.listener,
            client_host=each.client_host.removeprefix("/"),
            principal=each.principal,
            is_working=each.is_working,
        )
        for each in control.server.connections()
    )


def close_connection(control: "Control", request: ControlRequest) -> None:
    """Close a client's connection."""
    number = request.number("connection")
    if not control.server.close_connection(number):
        raise NotFound(f"there is no connection {number}")
    control.tell("connection", "CLOSED", connection=number)


# -- faults --------------------------------------------------------------------------------


def list_faults(control: "Control", _: ControlRequest) -> tuple[models.FaultView, ...]:
    """Every fault rule, in the order in which they are asked."""
    return tuple(_fault(each) for each in control.cluster.faults.states())


def add_fault(control: "Control", request: ControlRequest) -> models.FaultView:
    """Let a rule take part, behind those that are there."""
    fault: Fault = request.body
    _check_connection(control, fault.match.connection)
    added = _fault(control.cluster.add_fault(fault, control.now()))
    control.tell("fault", "ADDED", fault_id=added.fault_id)
    return added


def _check_connection(control: "Control", number: int | None) -> None:
    """Refuse a rule about a connection that is closed."""
    server = control.server
    is_known = number is not None and 1 <= number < server.next_connection
    if is_known and all(each.number != number for each in server.connections()):
        raise ConfigError(
            f"connection {number}: it is closed, and its number is not used again; the next is "
            f"{server.next_connection}: the rule could never act"
        )


def get_fault(control: "Control", request: ControlRequest) -> models.FaultView:
    """One rule with its hits."""
    fault_id = request.number("fault_id")
    for each in control.cluster.faults.states():
        if each.fault_id == fault_id:
            return _fault(each)
    raise NotFound(f"there is no fault rule {fault_id}")


def remove_fault(control: "Control", request: ControlRequest) -> models.FaultView:
    """Take a rule out; the answer is what became of it."""
    was = get_fault(control, request)
    control.cluster.faults.remove(was.fault_id)
    control.tell("fault", "REMOVED", fault_id=was.fault_id, hits=was.hits)
    return was


def clear_faults(control: "Control", _: ControlRequest) -> None:
    """Take every rule out."""
    control.cluster.faults.clear()
    control.tell("fault", "CLEARED")


def _fault(state: FaultState) -> models.FaultView:
    names = models.FaultView.__struct_fields__
    return models.FaultView(**{name: getattr(state, name) for name in names})


# -- traces --------------------------------------------------------------------------------


def get_trace(control: "Control", _: ControlRequest) -> models.TraceView:
    """Whether what is served is recorded, and where."""
    return control.tracing.view()


def get_traced(control: "Control", request: ControlRequest) -> models.TracedEvents:
    """Latest events of the group coordinators, with all columns of a trace."""
    feed, after = control.feed, request.number("after", 0)
    return models.TracedEvents(
        last_seq=feed.last_seq,
        is_whole=not feed.is_gone(after),
        events=tuple(feed.traced_after(after)),
    )


def start_trace(control: "Control", request: ControlRequest) -> models.TraceView:
    """Record what is served from now on."""
    wanted: models.StartTrace = request.body
    control.tracing.start(wanted.directory, overwrite=wanted.overwrite, name=wanted.name)
    control.tell("trace", "STARTED")
    return control.tracing.view()


async def stop_trace(control: "Control", _: ControlRequest) -> models.TraceView:
    """End the recording; the directory is a whole trace then."""
    view = await control.tracing.stop()
    control.tell("trace", "STOPPED")
    return view


def mark(control: "Control", request: ControlRequest) -> models.TraceView:
    """Put a FAULT event into the trace, with the present as its time."""
    wanted: models.Mark = request.body
    event = TraceEvent(
        event=Event.FAULT,
        ts_us=control.now().group_ms * _US_PER_MS,
        reason_text=wanted.what,
        attrs=wanted.attrs,
    )
    control.tracing.take((event,))
    control.tell("trace", "MARKED", what=wanted.what, attrs=wanted.attrs)
    return control.tracing.view()


def list_links(control: "Control", _: ControlRequest) -> tuple[LinkView, ...]:
    """Every link of a listener to a broker, and what it lets through."""
    return _views(control, list(control.server.endpoints))


def set_link(control: "Control", request: ControlRequest) -> tuple[LinkView, ...]:
    """Cut links, make them slow or narrow, or whole again; connections stay open."""
    wanted: SetLink = request.body
    found = _meant(control, wanted.broker, wanted.listener)
    link = Link(cut=wanted.cut, to_broker=wanted.to_broker, to_clients=wanted.to_clients)
    for broker_id, listener in found:
        control.server.set_link(broker_id, listener, link)
        control.tell("broker", "LINKED", broker_id, listener=listener, cut=wanted.cut)
    return _views(control, found)


def reset_link(control: "Control", request: ControlRequest) -> LinkReset:
    """Reset the open connections of links, as a firewall or a failing host does."""
    wanted: ResetLink = request.body
    found = _meant(control, wanted.broker, wanted.listener)
    return LinkReset(connections=sum(control.server.reset_link(*each) for each in found))


def _meant(control: Control, broker_id: int | None, listener: str | None) -> list[tuple[int, str]]:
    """The links of a broker, or of all; on a listener, or on all."""
    brokers = [broker_id] if broker_id is not None else list(control.cluster.settings.broker_ids)
    names = list(dict.fromkeys(name for _, name in control.server.endpoints))
    wanted = names if listener is None else [listener.upper()]
    known = control.server.endpoints
    for each in product(brokers, wanted):
        if each not in known:
            raise NotFound(
                f"there is no broker {each[0]} with a listener {each[1]}; brokers are "
                f"{', '.join(map(str, control.cluster.settings.broker_ids))}, listeners "
                f"{', '.join(names)}"
            )
    return list(product(brokers, wanted))


def _views(control: Control, places: list[tuple[int, str]]) -> tuple[LinkView, ...]:
    links, endpoints = control.server.links, control.server.endpoints
    open_ones = [(each.broker_id, each.listener) for each in control.server.connections()]
    found: list[LinkView] = []
    for broker_id, listener in sorted(places):
        link, at = links.get((broker_id, listener), Link()), endpoints[broker_id, listener]
        found.append(
            LinkView(
                broker_id=broker_id,
                listener=listener,
                host=at.host,
                port=at.port,
                connections=open_ones.count((broker_id, listener)),
                cut=link.cut,
                to_broker=link.to_broker,
                to_clients=link.to_clients,
            )
        )
    return tuple(found)


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
    _get("/v1/server", get_server, ServerView),
    ControlRoute(
        method="PATCH",
        path="/v1/server",
        verb=patch_server,
        answer=ServerView,
        body=ServerPatch,
    ),
    _post("/v1/reset", reset, ServerView),
    _get("/v1/brokers", list_brokers, tuple[BrokerView, ...]),
    _get("/v1/brokers/{broker_id}", get_broker, BrokerView, errors=(404,)),
    _post("/v1/brokers/{broker_id}/stop", stop_broker, BrokerView, errors=(404, 409)),
    _post("/v1/brokers/{broker_id}/pause", pause_broker, BrokerView, errors=(404, 409)),
    _post("/v1/brokers/{broker_id}/partition", partition_broker, BrokerView, errors=(404, 409)),
    _post("/v1/brokers/{broker_id}/resume", resume_broker, BrokerView, errors=(404, 409)),
    _post("/v1/brokers/{broker_id}/restart", restart_broker, BrokerView, errors=(404, 409)),
    _get("/v1/topics", list_topics, tuple[TopicView, ...]),
    _post("/v1/topics", create_topic, TopicView, NewTopic, status=201),
    _get("/v1/topics/{name}", get_topic, TopicView, errors=(404,)),
    _delete("/v1/topics/{name}", delete_topic, TopicView),
    _post(
        "/v1/topics/{name}/partitions/{partition}/elect",
        elect_leader,
        LeaderView,
        MoveCoordinatorTo,
        errors=(404, 409),
    ),
    _post(
        "/v1/topics/{name}/partitions/{partition}/compact",
        compact,
        CompactedView,
        errors=(404, 409),
    ),
    _post(
        "/v1/topics/{name}/slow-appends",
        slow_appends,
        TopicView,
        SlowAppendsTo,
        errors=(404, 409),
    ),
    _get("/v1/groups", list_groups, tuple[GroupSummary, ...]),
    _get(
        "/v1/groups/{group_id:path}/wait",
        wait_for_group,
        GroupView,
        query=_WAIT,
        errors=(408,),
    ),
    _post(
        "/v1/groups/{group_id:path}/move-coordinator",
        move_coordinator,
        LeaderView,
        MoveCoordinatorTo,
    ),
    _get("/v1/groups/{group_id:path}", get_group, GroupView, errors=(404,)),
    _get("/v1/connections", list_connections, tuple[ConnectionView, ...]),
    _delete("/v1/connections/{connection}", close_connection),
    _get("/v1/links", list_links, tuple[LinkView, ...]),
    ControlRoute(
        method="PUT",
        path="/v1/links",
        verb=set_link,
        answer=tuple[LinkView, ...],
        body=SetLink,
        errors=(404,),
    ),
    _post("/v1/links/reset", reset_link, LinkReset, ResetLink, errors=(404,)),
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
    _get("/v1/faults", list_faults, tuple[FaultView, ...]),
    _post("/v1/faults", add_fault, FaultView, Fault, status=201),
    _delete("/v1/faults", clear_faults),
    _get("/v1/faults/{fault_id}", get_fault, FaultView, errors=(404,)),
    _delete("/v1/faults/{fault_id}", remove_fault, FaultView),
    _get("/v1/trace", get_trace, TraceView),
    _get("/v1/trace/events", get_traced, TracedEvents, query=(_AFTER,)),
    _post("/v1/trace/start", start_trace, TraceView, StartTrace),
    _post("/v1/trace/stop", stop_trace, TraceView),
    _post("/v1/trace/mark", mark, TraceView, Mark, errors=()),
)
"""All paths in the OpenAPI document; `app` adds `/events`, health, metrics and the page."""
