"""The verbs of the control surface; each function belongs to one route.

`clock_verbs` has those of the clock, `link_verbs` those of the network.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from coordinator_sim.broker.apis.config_validation import topic_error
from coordinator_sim.broker.faults.faults import Fault, FaultState
from coordinator_sim.broker.operations import BrokerStatus
from coordinator_sim.errors import ConfigError, WireFormatError
from coordinator_sim.kafka.topic_names import check_topic_name
from coordinator_sim.server.control import models, views
from coordinator_sim.server.control.clock_verbs import clock_of
from coordinator_sim.server.control.conditions import GroupCondition
from coordinator_sim.server.control.requests import (
    BadRequest,
    ControlRequest,
    NotFound,
    WaitedInVain,
)
from coordinator_sim.trace.events import Event, TraceEvent

if TYPE_CHECKING:
    from coordinator_sim.server.control.control import Control

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
    living = cluster.groups.living.get(broker_id)
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
        coordinates=0 if living is None else len(living.coordinator.group_ids()),
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
    added = _fault(control.cluster.faults.add(fault))
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
