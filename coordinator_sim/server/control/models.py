"""The messages of the control surface. Field names are those of its JSON."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from coordinator_sim.broker.faults.faults import Fault
from coordinator_sim.server.timekeeper import FARTHEST_MS, LATEST_MS
from coordinator_sim.trace.events import TraceEvent

Port = Annotated[int, Meta(ge=0, le=65_535)]
Positive = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0, le=2_147_483_647)]
Duration = Annotated[int, Meta(ge=0, le=86_400_000)]
"""Milliseconds, up to a day."""
_NO_NUL: Final = r"\A[^\x00]*\Z"
"""No path has a NUL."""
Json = Any
"""Any JSON value."""


class Problem(Struct, frozen=True, kw_only=True):
    """Why something was not done."""

    error: str


class EndpointView(Struct, frozen=True, kw_only=True):
    """Where a broker is reached on one listener."""

    listener: str
    host: str
    port: Port


class BrokerView(Struct, frozen=True, kw_only=True):
    """One broker.

    Args:
        status: `running`, `paused`, `partitioned` or `stopped`.
        fenced: Whether the cluster has given it up.
        leads: Partitions that it leads.
        coordinates: Groups that it coordinates.
        connections: Open ones.
    """

    broker_id: int
    status: str
    fenced: bool
    endpoints: tuple[EndpointView, ...]
    leads: int
    coordinates: int
    connections: int


class ServerView(Struct, frozen=True, kw_only=True):
    """The cluster as a whole."""

    version: str
    profile: str
    cluster_id: str
    seed: int
    bootstrap: str
    pid: int
    clock: "ClockView"
    election_delay_ms: Duration
    topics: int
    groups: int
    connections: int
    trace: "TraceView"


class ServerPatch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that may change while the cluster is served.

    Args:
        election_delay_ms: Group time from the loss of a broker to its successors.
    """

    election_delay_ms: Duration


class PartitionView(Struct, frozen=True, kw_only=True):
    """A partition of a topic; `leader_id` is -1 while it has no leader.

    Args:
        end_offset: Where the next record goes; null where no records are kept.
        append_delay_ms: Wall time by which appends complete late, on purpose.
    """

    partition: int
    leader_id: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    end_offset: int | None = None
    append_delay_ms: Duration = 0


class TopicView(Struct, frozen=True, kw_only=True):
    """A topic. `topic_id` as Kafka prints it."""

    name: str
    topic_id: str
    internal: bool
    partitions: tuple[PartitionView, ...]
    configs: dict[str, str]


class NewTopic(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A topic to create.

    Args:
        replication_factor: 0 for the brokers' default.
    """

    name: str
    partitions: Annotated[int, Meta(ge=1, le=100_000)] = 1
    replication_factor: Annotated[int, Meta(ge=0, le=32_767)] = 0
    configs: dict[str, str] = {}


class SlowAppendsTo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How late appends to a topic complete.

    Args:
        ms: Wall time; 0 for on time again.
        partition: Null for all partitions.
    """

    ms: Duration
    partition: Count | None = None


class MemberView(Struct, frozen=True, kw_only=True):
    """A member.

    Args:
        rebalance_timeout_ms: Null in groups with epochs, whose brokers do not show it.
        subscription: Topics that it takes, where its metadata can be read, and its expression.
        assignment: What it owns: `topic-partition`, a connector, `connector-task`, or the task
            `subtopology_n` of a streams group that it runs.
        waits_for: `JoinGroup` or `SyncGroup` while such a request of it is parked.
        session_ends_ms: Group time of the end of its session, unless it is heard of before.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int | None
    is_leader: bool
    subscription: tuple[str, ...]
    assignment: tuple[str, ...]
    waits_for: str | None
    session_ends_ms: int | None


class OffsetView(Struct, frozen=True, kw_only=True):
    """A committed offset.

    Args:
        end_offset: Of the partition; null where no records are kept.
        lag: What is left to read; null likewise.
        owner: Member id of the partition's owner.
    """

    topic: str
    partition: int
    offset: int
    metadata: str | None
    end_offset: int | None
    lag: int | None
    owner: str | None


class GroupSummary(Struct, frozen=True, kw_only=True):
    """A group in a list.

    Args:
        coordinator_id: Broker id.
        offsets_partition: Of `__consumer_offsets`.
        state: As the profile's Kafka calls it.
        generation: The epoch of a consumer, share or streams group.
        protocol_name: The server-side assignor of such a group.
    """

    group_id: str
    state: str
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str | None
    member_count: int
    coordinator_id: int
    offsets_partition: int


class GroupView(GroupSummary, frozen=True, kw_only=True):
    """A group with its members and offsets."""

    members: tuple[MemberView, ...]
    offsets: tuple[OffsetView, ...]


class MoveCoordinatorTo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to: a broker id, or null for the next broker that runs."""

    to: Annotated[int, Meta(ge=0, le=2_147_483_647)] | None = None


class LeaderView(Struct, frozen=True, kw_only=True):
    """Where a partition is led now."""

    topic: str
    partition: int
    leader_id: int
    leader_epoch: int


class CompactedView(Struct, frozen=True, kw_only=True):
    """A partition whose log was cleaned, up to the end that it had."""

    topic: str
    partition: int
    end_offset: int


class ParkedView(Struct, frozen=True, kw_only=True):
    """A request that waits for an answer, and for what.

    Args:
        api: `JoinGroup` or `SyncGroup`.
        deadline_ms: Group time at which it is answered at the latest; null when none is set.
        remaining_ms: From now on the group clock.
        waits_for: What that deadline is: of the `join` phase, or of the `sync` phase.
    """

    group_id: str
    member_id: str
    api: str
    waits_for: str
    deadline_ms: int | None
    remaining_ms: int | None


class DeadlineView(Struct, frozen=True, kw_only=True):
    """A deadline of a group coordinator.

    Args:
        kind: `session`, `join`, `sync`, `transaction`, ...
        in_ms: From now on the group clock.
    """

    broker_id: int
    kind: str
    group_id: str
    member_id: str
    deadline_ms: int
    in_ms: int


class AdvanceView(Struct, frozen=True, kw_only=True):
    """An advance of the group clock that is under way, milliseconds since 1970.

    Args:
        now_ms: How far the clock has come.
    """

    from_ms: int
    target_ms: int
    now_ms: int


class ClockView(Struct, frozen=True, kw_only=True):
    """Both clocks, milliseconds since 1970.

    Args:
        clock: `wall`, `scaled F`, `virtual` or `virtual auto`.
        next_deadline_ms: The earliest deadline on the group clock.
        advance: What is under way; null while nothing is.
    """

    clock: str
    group_ms: int
    wall_ms: int
    next_deadline_ms: int | None
    advance: AdvanceView | None = None


class ClockState(ClockView, frozen=True, kw_only=True):
    """Both clocks, and what waits for group time."""

    parked: tuple[ParkedView, ...]
    deadlines: tuple[DeadlineView, ...]


class SetClock(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another clock: `wall`, `scaled F` with F from 0.001 to 1000000, `virtual`, `virtual auto`."""

    clock: Annotated[str, Meta(max_length=100)]


class Advance(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far to move a virtual clock, ten years at most; null moves it to the next deadline."""

    ms: Annotated[int, Meta(ge=0, le=FARTHEST_MS)] | None = None


class GroupWanted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a group has to be; a field that is left out may be anything.

    Args:
        state: `Stable`, `Empty`, `PreparingRebalance`, ...; `Dead` also of an unknown group.
        members: Number of members.
        min_generation: The generation that the group is in or past.
    """

    group_id: str
    state: str | None = None
    members: Count | None = None
    generation: Count | None = None
    min_generation: Count | None = None


class HitsWanted(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a fault rule has to have acted, counted from its addition."""

    fault_id: Positive
    hits: Annotated[int, Meta(ge=1, le=2_147_483_647)] = 1


class RunUntil(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to move a virtual clock: to `group_ms`, or until `group` or `fault` is as wanted.

    Args:
        group_ms: Milliseconds since 1970; ten years on at most.
        within_ms: The bound of a condition, group time from now on; 600000 if not said.
    """

    group_ms: Annotated[int, Meta(ge=0, le=LATEST_MS)] | None = None
    group: GroupWanted | None = None
    fault: HitsWanted | None = None
    within_ms: Annotated[int, Meta(ge=0, le=FARTHEST_MS)] | None = None


class FeedItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened.

    Args:
        seq: Counts from 1 over the server's life.
        kind: `group` for the events of the trace; `fault`, `clock`, `broker`, `topic`,
            `connection`, `reset`, `trace` for what came from outside.
        event: What: of a group the trace's name of it.
        details: Other columns that are known.
    """

    seq: int
    kind: str
    event: str
    group_ms: int
    wall_ms: int
    broker_id: int | None = None
    group_id: str | None = None
    member_id: str | None = None
    generation: int | None = None
    details: dict[str, Json] = {}


class Moved(Struct, frozen=True, kw_only=True):
    """What happened while a clock was moved, in order.

    Args:
        fired: The newest 10,000 things at most.
        is_there: Whether the clock came to where it was to go; false where that was called off.
        is_whole: Whether `fired` has all that happened.
        is_met: Whether the condition of the move came true; null without a condition.
        found: What the condition is about, as it is now; null without a condition.
    """

    clock: ClockView
    fired: tuple[FeedItem, ...]
    is_there: bool
    is_whole: bool
    is_met: bool | None = None
    found: str | None = None


class FaultView(Struct, frozen=True, kw_only=True):
    """A fault rule and how often it acted.

    Args:
        fitting: Requests that it fitted, whether or not it acted.
    """

    fault_id: int
    fault: Fault
    fitting: int
    hits: int


class ConnectionView(Struct, frozen=True, kw_only=True):
    """An open connection of a client.

    Args:
        is_working: Whether a request of it is unanswered.
    """

    connection: int
    broker_id: int
    listener: str
    client_host: str
    principal: str
    is_working: bool


class TraceView(Struct, frozen=True, kw_only=True):
    """Whether what is served is recorded.

    Args:
        directory: Where, if it is.
        events: Recorded so far.
        stalls: How often the cluster had to wait for the recording.
    """

    recording: bool
    directory: str | None = None
    events: int = 0
    stalls: int = 0


class TracedEvents(Struct, frozen=True, kw_only=True):
    """Events of the group coordinators, in the form of a trace.

    Args:
        last_seq: Of the newest thing that happened; ask for what is behind that next.
        is_whole: Whether all is there; only the newest 10,000 things are kept.
    """

    last_seq: int
    is_whole: bool
    events: tuple[TraceEvent, ...]


class Mark(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something from outside, for the trace: a FAULT event.

    Args:
        what: Its name, such as `TaskRunning`.
        attrs: What is to be known of it.
    """

    what: Annotated[str, Meta(min_length=1, max_length=200)]
    attrs: Annotated[dict[str, str], Meta(max_length=50)] = {}


class StartTrace(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to record.

    Args:
        directory: Null for a directory of its own in the system's temporary one.
        overwrite: Whether an earlier trace there is replaced.
        name: What reports call the run; null for the cluster's id.
    """

    directory: Annotated[str, Meta(min_length=1, max_length=4_096, pattern=_NO_NUL)] | None = None
    overwrite: bool = False
    name: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


class Health(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether the server is well.

    Args:
        error: What is wrong.
    """

    status: str
    error: str | None = None
