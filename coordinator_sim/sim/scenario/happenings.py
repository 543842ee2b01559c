"""Happenings of a scenario's world, each at an instant of virtual time.

`at_ms` is milliseconds since the start of the run; happenings of one instant happen in the order
written. `member` is the name of a consumer or of a Connect worker.
"""

from msgspec import Struct

from coordinator_sim.broker.faults.faults import (
    Action,
    Delay,
    Duplicate,
    Fault,
    Lose,
    Match,
    Phase,
    Reorder,
    delay_of,
    literal,
)


class _Happening(
    Struct, frozen=True, kw_only=True, tag_field="kind", tag=True, forbid_unknown_fields=True
):
    """Base of all happenings, with their instant."""

    at_ms: int


class StartMember(_Happening, frozen=True, kw_only=True):
    """Start a process; ignored while it runs.

    Args:
        settings: Client settings from this incarnation on, over those the member had, also
            `partition.assignment.strategy` or `connect.protocol`.
    """

    member: str
    settings: dict[str, str] = {}


class StopMember(_Happening, frozen=True, kw_only=True):
    """Close the client in an orderly way: a dynamic member leaves its group."""

    member: str


class CrashMember(_Happening, frozen=True, kw_only=True):
    """Kill the process: its connections close, and no LeaveGroup is sent."""

    member: str


class RestartMember(_Happening, frozen=True, kw_only=True):
    """Stop the process and start a new incarnation `down_ms` after it is gone.

    Args:
        graceful: True closes the client as StopMember does, False kills it as CrashMember does.
        settings: Client settings from the new incarnation on, as in StartMember. Old ones that
            another `group.protocol` refuses are taken out.
    """

    member: str
    down_ms: int
    graceful: bool = True
    settings: dict[str, str] = {}


class PauseMember(_Happening, frozen=True, kw_only=True):
    """Freeze the whole process (a long collection, SIGSTOP); afterwards everything is late."""

    member: str
    for_ms: int


class SlowPoll(_Happening, frozen=True, kw_only=True):
    """Keep the application busy for `for_ms` after its next poll; heartbeats go on."""

    member: str
    for_ms: int


class SlowDownstream(_Happening, frozen=True, kw_only=True):
    """Slow the system that a group's members write to: processing takes longer for `for_ms`.

    Polls that return meanwhile take `percent` of their usual time; poison records take theirs.

    Args:
        group_id: A consumer group.
        percent: 400 is four times as long; of several at one time the largest counts.
    """

    group_id: str
    percent: int
    for_ms: int


class SetClock(_Happening, frozen=True, kw_only=True):
    """Step the clock of a member's or a broker's machine, as NTP does, and let it drift.

    The clocks of the other machines stay true. Java clients read the time of day for their timers
    too: a step ahead ends their timeouts, and after a step back their timers stand still until the
    clock has caught up. librdkafka and franz-go feel the drift alone. A broker's timers feel
    neither; it stamps commits and states of groups by its clock, and expires offsets by it.

    Args:
        skew_ms: How far the clock is ahead of the true time from now on; negative for behind.
        drift_ppm: Parts per million by which the clock runs fast from now on; negative for slow.
    """

    member: str | None = None
    broker: int | None = None
    skew_ms: int = 0
    drift_ppm: int = 0


class PartitionNetwork(_Happening, frozen=True, kw_only=True):
    """Cut off a member, a broker, or with both given the link between the two."""

    for_ms: int
    member: str | None = None
    broker: int | None = None


class DegradeNetwork(_Happening, frozen=True, kw_only=True):
    """Delay everything that a member or a broker sends, as Trogdor does with `tc`.

    Each message is late by about `latency_ms`, with a jitter of its square root and netem's
    distribution `paretonormal`; a connection keeps its order. What the end receives is not delayed.

    Args:
        latency_ms: Added to the network's own latency, at least 1.
    """

    latency_ms: int
    for_ms: int
    member: str | None = None
    broker: int | None = None


class DropResponse(_Happening, frozen=True, kw_only=True):
    """Lose the next `count` responses of an API on their way to a member.

    Whose responses: those to `member`, or to whoever has a `role` in a group when they leave.

    Args:
        api: Name of an `ApiKey`, such as `JOIN_GROUP`.
        role: `leader` or `follower`, with the `group_id` and without a `member`.
    """

    member: str | None = None
    api: str
    count: int = 1
    group_id: str | None = None
    role: str | None = None


class DelayResponse(_Happening, frozen=True, kw_only=True):
    """Delay the next `count` responses of an API to a member, as in DropResponse, by `by_ms`.

    Later responses on the same connection are delayed with them, as TCP keeps its order.

    Args:
        api: Name of an `ApiKey`, such as `HEARTBEAT`.
    """

    member: str | None = None
    api: str
    by_ms: int
    count: int = 1
    group_id: str | None = None
    role: str | None = None


class DuplicateResponse(_Happening, frozen=True, kw_only=True):
    """Send the next `count` responses of an API to a member twice, as a broken proxy may.

    Whose responses is said as in DropResponse. A Java client meets an IllegalStateException, which
    ends most applications; franz-go closes the connection, and librdkafka notices nothing.

    Args:
        api: Name of an `ApiKey` that members of groups use, such as `HEARTBEAT`.
    """

    member: str | None = None
    api: str
    count: int = 1
    group_id: str | None = None
    role: str | None = None


class ReorderResponses(_Happening, frozen=True, kw_only=True):
    """Send the next `count` responses of an API behind the next one of their connection.

    No broker does this, and clients that expect answers in order fail as after DuplicateResponse.
    Whose responses is said as in DropResponse.

    Args:
        api: Name of an `ApiKey` that members of groups use, such as `SYNC_GROUP`.
        within_ms: Time after which a response leaves alone, where no other overtook it.
    """

    member: str | None = None
    api: str
    count: int = 1
    within_ms: int = 1_000
    group_id: str | None = None
    role: str | None = None


class FaultRule(_Happening, frozen=True, kw_only=True):
    """Mistreat requests by a rule of the same form as a served cluster's, from `at_ms` on.

    `rule.for_ms` ends it, `rule.times` bounds it. A member is known by `client_id`, its name. An
    answer that phase `after` delays is late on the network: the broker goes on meanwhile.
    """

    rule: Fault


class LagConfigTopic(_Happening, frozen=True, kw_only=True):
    """Stop a Connect worker from reading new records of the config topic for `for_ms`."""

    member: str
    for_ms: int


class RestRequest(_Happening, frozen=True, kw_only=True):
    """Send a request to the REST API of a Connect worker, as an operator does.

    Args:
        method: HTTP method, such as PUT.
        target: Path and query, such as `/connectors/orders/pause`.
        body: JSON text; empty for none.
    """

    member: str
    method: str
    target: str
    body: str = ""


class HoldReplication(_Happening, frozen=True, kw_only=True):
    """Leave appends to an offsets partition uncommitted for `for_ms`.

    The partition is given itself or by a group of it. Writes that wait longer than
    `offsets.commit.timeout.ms` are refused.
    """

    for_ms: int
    group_id: str | None = None
    partition: int | None = None


class MoveCoordinator(_Happening, frozen=True, kw_only=True):
    """Elect another leader for an offsets partition, given itself or by a group of it.

    Args:
        to_broker: The new leader; None takes the next living broker by id.
    """

    group_id: str | None = None
    partition: int | None = None
    to_broker: int | None = None


class PauseBroker(_Happening, frozen=True, kw_only=True):
    """Freeze a broker's process (SIGSTOP, a long collection) for `for_ms`.

    Its kernel goes on: it accepts connections and keeps what clients send. After the scenario's
    `failover_ms` its partitions move, of which it hears last. When it goes on, requests that wait
    and timers that are overdue run at once; which of them first is drawn.
    """

    broker: int
    for_ms: int


class CrashBroker(_Happening, frozen=True, kw_only=True):
    """Kill a broker; its partitions move after the scenario's `failover_ms`."""

    broker: int
    for_ms: int


class FailOffsetsReads(_Happening, frozen=True, kw_only=True):
    """Make a broker's reads of its `__consumer_offsets` files fail, as Kibosh does, for `for_ms`.

    A leader reads such a file when a follower fetches what was appended, and when its coordinator
    loads the partition. The first read that fails takes the broker's log directory offline, and
    the broker halts, as it has no other; what was appended is lost. It is down until the end.

    Args:
        prefix: How the names of the folders begin whose files cannot be read.
    """

    broker: int
    for_ms: int
    prefix: str = "__consumer_offsets"


class AddPartitions(_Happening, frozen=True, kw_only=True):
    """Grow a topic to `to` partitions."""

    topic: str
    to: int


class DeleteTopic(_Happening, frozen=True, kw_only=True):
    """Delete a topic with its records, as DeleteTopics does; its offsets are deleted with it."""

    topic: str


class ChangeConfig(_Happening, frozen=True, kw_only=True):
    """Set configs of a topic, of a broker or all brokers, or of a group by IncrementalAlterConfigs.

    Args:
        broker: Id of the broker, as text; empty for the default of all brokers.
        configs: Value by name; None deletes the config.
    """

    topic: str | None = None
    broker: str | None = None
    group_id: str | None = None
    configs: dict[str, str | None]


class DenyAccess(_Happening, frozen=True, kw_only=True):
    """Deny an operation on a topic or a group for `for_ms`, by an ACL that CreateAcls adds.

    Everything else stays allowed. DeleteAcls removes the rule afterwards. Consumers fetch without
    being asked for rights: a denied READ of a topic shows in their commits alone.

    Args:
        operation: Kafka's name, such as READ.
        member: Whom it is denied, by the address of its machine; None for everybody.
    """

    for_ms: int
    operation: str
    topic: str | None = None
    group_id: str | None = None
    member: str | None = None


class CreateTopic(_Happening, frozen=True, kw_only=True):
    """Create a topic; consumers that subscribe by a pattern may match it."""

    topic: str
    partitions: int


class AddConnector(_Happening, frozen=True, kw_only=True):
    """Create a connector in a Connect cluster."""

    group_id: str
    connector: str
    tasks: int


class RemoveConnector(_Happening, frozen=True, kw_only=True):
    """Delete a connector from a Connect cluster."""

    group_id: str
    connector: str


class ChangeTaskCount(_Happening, frozen=True, kw_only=True):
    """Reconfigure a connector to another number of tasks."""

    group_id: str
    connector: str
    tasks: int


class FailWork(_Happening, frozen=True, kw_only=True):
    """Make a connector or one of its tasks fail where it runs, as if it had raised an exception.

    Args:
        task: Number of the task; None makes the connector itself fail.
        trace: Text that the FAILED status shows.
    """

    group_id: str
    connector: str
    task: int | None = None
    trace: str = "org.apache.kafka.connect.errors.ConnectException: the scenario asks for a failure"


class ChangeSubscription(_Happening, frozen=True, kw_only=True):
    """Make a consumer subscribe to other topics."""

    member: str
    topics: tuple[str, ...]


class RollOut(_Happening, frozen=True, kw_only=True):
    """Replace the pods of a workload one after another by those of a new revision.

    Args:
        workload: Name of a Deployment or StatefulSet of `kubernetes`.
        settings: Client settings of the new pods, over those of the old ones.
    """

    workload: str
    settings: dict[str, str] = {}


class ScaleWorkload(_Happening, frozen=True, kw_only=True):
    """Set the replicas of a workload by hand; its autoscaler goes on from there."""

    workload: str
    replicas: int


class EvictPod(_Happening, frozen=True, kw_only=True):
    """End the pod of a member as a drained node does, or a spot node with notice.

    The pod gets SIGTERM and its grace period, and its controller makes another. A node that is lost
    without notice is a CrashMember.
    """

    member: str


class DrainNode(_Happening, frozen=True, kw_only=True):
    """Drain a node with `kubectl drain`, or take it back as a spot node, with notice.

    New pods go to other nodes, and wait while there is none. A drain evicts the node's pods as far
    as budgets allow, and asks again every 5 s. With a notice all pods end at once.

    Args:
        node: Number of the node, from 1.
        for_ms: Until the drain gives up (`--timeout`), and the node, or another one in its place,
            takes pods again.
        notice_ms: Until the machine is gone, with what runs on it; None for a drain.
    """

    node: int
    for_ms: int
    notice_ms: int | None = None


class RollBrokers(_Happening, frozen=True, kw_only=True):
    """Restart all brokers one after another by controlled shutdowns, as Strimzi's KafkaRoller does.

    A replica is in sync as soon as its broker is back: for `min.insync.replicas` the roll waits
    while brokers are down or frozen, but for none that has yet to fetch what was written. A roll
    begins when the one before is over.

    Args:
        down_ms: From the end of a broker's process until the next one has registered.
        readiness_ms: From there until its pod is Ready.
        controller: The active controller, which comes last; 0 if controllers are separate nodes.
    """

    down_ms: int = 20_000
    readiness_ms: int = 10_000
    controller: int = 0


ProcessHappening = StartMember | StopMember | CrashMember | RestartMember
MemberHappening = PauseMember | SlowPoll | ChangeSubscription | LagConfigTopic | RestRequest
ResponseHappening = DropResponse | DelayResponse | DuplicateResponse | ReorderResponses
ConnectorHappening = AddConnector | RemoveConnector | ChangeTaskCount | FailWork
WorkloadHappening = RollOut | ScaleWorkload | EvictPod | DrainNode
ClusterHappening = (
    PartitionNetwork
    | DegradeNetwork
    | MoveCoordinator
    | HoldReplication
    | PauseBroker
    | CrashBroker
    | FailOffsetsReads
    | RollBrokers
)
AdminHappening = AddPartitions | CreateTopic | DeleteTopic | ChangeConfig | DenyAccess
Happening = (
    ProcessHappening
    | MemberHappening
    | SetClock
    | SlowDownstream
    | ResponseHappening
    | FaultRule
    | ConnectorHappening
    | WorkloadHappening
    | ClusterHappening
    | AdminHappening
)


def rolling_bounce(
    members: tuple[str, ...],
    *,
    first_at_ms: int,
    every_ms: int,
    down_ms: int,
    graceful: bool = True,
    settings: dict[str, str] | None = None,
) -> tuple[RestartMember, ...]:
    """Restart the members one after another, as a deploy does.

    Args:
        members: Names, in the order of the deploy.
        first_at_ms: When the first one is stopped.
        every_ms: Time between two stops.
        down_ms: Time without a process.
        graceful: Whether the clients close in an orderly way.
        settings: Settings of each new incarnation, over its old ones.
    """
    return tuple(
        RestartMember(
            at_ms=first_at_ms + index * every_ms,
            member=member,
            down_ms=down_ms,
            graceful=graceful,
            settings=settings or {},
        )
        for index, member in enumerate(members)
    )


def scale_out(
    members: tuple[str, ...], *, first_at_ms: int, every_ms: int
) -> tuple[StartMember, ...]:
    """Start the members one after another, `every_ms` apart (0: all at once)."""
    return tuple(
        StartMember(at_ms=first_at_ms + index * every_ms, member=member)
        for index, member in enumerate(members)
    )


def rule_of(happening: ResponseHappening) -> Fault:
    """The fault rule of a happening about responses."""
    match happening:
        case DelayResponse(by_ms=by_ms):
            action: Action = Delay(by_ms)
        case ReorderResponses(within_ms=within_ms):
            action = Reorder(within_ms)
        case DropResponse():
            action = Lose()
        case DuplicateResponse():
            action = Duplicate()
    match = Match(
        api=happening.api,
        client_id=literal(happening.member),
        group=literal(happening.group_id),
        role=happening.role,
    )
    return Fault(action=action, match=match, phase=Phase.AFTER, times=happening.count)


def end_of(happening: Happening) -> int:
    """Return the instant in ms at which a happening's direct effect is over."""
    match happening:
        case RestartMember():
            return happening.at_ms + happening.down_ms
        case PauseMember() | SlowPoll() | PartitionNetwork() | DegradeNetwork() | DenyAccess():
            return happening.at_ms + happening.for_ms
        case PauseBroker() | CrashBroker() | LagConfigTopic() | HoldReplication():
            return happening.at_ms + happening.for_ms
        case SlowDownstream() | DrainNode():
            return happening.at_ms + happening.for_ms
        case FailOffsetsReads():
            return happening.at_ms + happening.for_ms + 1
        case DelayResponse() | ReorderResponses():
            return happening.at_ms + delay_of(rule_of(happening).action)
        case FaultRule(rule=rule):
            return happening.at_ms + (rule.for_ms or 0) + delay_of(rule.action)
        case _:
            return happening.at_ms
