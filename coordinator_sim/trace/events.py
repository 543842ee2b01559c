"""Trace events: the one row form of everything that happens to a group.

A `TraceEvent` holds the columns that vary from event to event. Facts of the whole run
(trace id, cluster, source) are in `RunInfo` and filled in by the writer.
"""

from enum import Enum, unique

from msgspec import Struct, field

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupState


@unique
class Event(Enum):
    """Kind of event. The names are the canonical ones of the trace schema."""

    # Enum's own hash is a Python function, called whenever a set of kinds is asked for one.
    __hash__ = object.__hash__

    JOIN_REQ = "JOIN_REQ"
    JOIN_RESP = "JOIN_RESP"
    SYNC_REQ = "SYNC_REQ"
    SYNC_RESP = "SYNC_RESP"
    HEARTBEAT = "HEARTBEAT"
    HEARTBEATS_ELIDED = "HEARTBEATS_ELIDED"
    CALM_LEFT_OUT = "CALM_LEFT_OUT"
    LEAVE_REQ = "LEAVE_REQ"
    MEMBER_ID_ASSIGNED = "MEMBER_ID_ASSIGNED"
    MEMBER_ADDED = "MEMBER_ADDED"
    MEMBER_LEFT = "MEMBER_LEFT"
    MEMBER_FAILED = "MEMBER_FAILED"
    MEMBER_KICKED = "MEMBER_KICKED"
    MEMBER_FENCED = "MEMBER_FENCED"
    STATIC_REPLACED = "STATIC_REPLACED"
    PENDING_EXPIRED = "PENDING_EXPIRED"
    LEADER_REPLACED = "LEADER_REPLACED"
    PREPARE_REBALANCE = "PREPARE_REBALANCE"
    JOIN_COMPLETE = "JOIN_COMPLETE"
    SYNC_LEADER = "SYNC_LEADER"
    EPOCH_BUMPED = "EPOCH_BUMPED"
    TARGET_COMPUTED = "TARGET_COMPUTED"
    TARGET_ASSIGNED = "TARGET_ASSIGNED"
    MEMBER_STEP = "MEMBER_STEP"
    TARGET_REACHED = "TARGET_REACHED"
    GROUP_STABLE = "GROUP_STABLE"
    GROUP_EMPTY = "GROUP_EMPTY"
    GROUP_DEAD = "GROUP_DEAD"
    EMPTY_ASSIGNMENT = "EMPTY_ASSIGNMENT"
    STORE_FAILED = "STORE_FAILED"
    COORD_ELECTED = "COORD_ELECTED"
    COORD_RESIGNED = "COORD_RESIGNED"
    LOAD_START = "LOAD_START"
    LOAD_DONE = "LOAD_DONE"
    LOAD_FAILED = "LOAD_FAILED"
    UNLOAD_DONE = "UNLOAD_DONE"
    GROUP_LOADED = "GROUP_LOADED"
    GROUP_UNLOADED = "GROUP_UNLOADED"
    ASSIGNED = "ASSIGNED"
    REVOKED = "REVOKED"
    LOST = "LOST"
    TASKS_STARTED = "TASKS_STARTED"
    TASKS_STOPPED = "TASKS_STOPPED"
    OFFSET_COMMIT = "OFFSET_COMMIT"
    OFFSET_TOMBSTONE = "OFFSET_TOMBSTONE"
    OFFSET_EXPIRED = "OFFSET_EXPIRED"
    OFFSET_FETCH = "OFFSET_FETCH"
    POSITION = "POSITION"
    RECORDS_PROCESSED = "RECORDS_PROCESSED"
    RECORDS_DELIVERED = "RECORDS_DELIVERED"
    RECORDS_ACKNOWLEDGED = "RECORDS_ACKNOWLEDGED"
    RECORDS_ARCHIVED = "RECORDS_ARCHIVED"
    LOCK_TIMED_OUT = "LOCK_TIMED_OUT"
    FAULT = "FAULT"
    LIFECYCLE = "LIFECYCLE"
    UNPARSED = "UNPARSED"
    GAP = "GAP"


@unique
class RebalanceReason(Enum):
    """Reason why a group left its generation, or began another epoch."""

    MEMBER_JOINED = "MEMBER_JOINED"
    METADATA_CHANGED = "METADATA_CHANGED"
    LEADER_REJOIN = "LEADER_REJOIN"
    MEMBER_REJOIN = "MEMBER_REJOIN"
    MEMBER_LEFT = "MEMBER_LEFT"
    MEMBER_FAILED = "MEMBER_FAILED"
    SYNC_TIMEOUT = "SYNC_TIMEOUT"
    STATIC_PROTOCOL_CHANGE = "STATIC_PROTOCOL_CHANGE"
    STORE_ERROR = "STORE_ERROR"
    OVER_CAPACITY = "OVER_CAPACITY"
    DOWNGRADE = "DOWNGRADE"
    REBALANCE_TIMEOUT = "REBALANCE_TIMEOUT"
    TOPICS_CHANGED = "TOPICS_CHANGED"
    ASSIGNOR_CHANGED = "ASSIGNOR_CHANGED"
    TOPOLOGY_CHANGED = "TOPOLOGY_CHANGED"
    SETTINGS_CHANGED = "SETTINGS_CHANGED"
    TARGET_REFINED = "TARGET_REFINED"
    PARTITIONS_INITIALIZED = "PARTITIONS_INITIALIZED"
    UNKNOWN = "UNKNOWN"


@unique
class TimeKind(Enum):
    """Meaning of an event's time: exact, a log line's, a record's, or inferred."""

    EVENT = "event"
    LOGGED = "logged"
    RECORD = "record"
    INFERRED = "inferred"


@unique
class Source(Enum):
    """Origin of a trace."""

    SIM = "sim"
    WIRE = "wire"
    BROKER_LOG = "broker_log"
    REQUEST_LOG = "request_log"
    OFFSETS_TOPIC = "offsets_topic"
    OFFSETS_SEGMENT = "offsets_segment"
    FORMATTER_TEXT = "formatter_text"
    FORMATTER_JSON = "formatter_json"
    DUMP_LOG = "dump_log"
    CONSUMER_LOG = "consumer_log"
    CONNECT_LOG = "connect_log"
    GROUP_DESCRIPTION = "group_description"


class OffsetEntry(Struct, frozen=True, gc=False):
    """One partition of an offset event; the writer makes a row of each."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = None
    commit_ts_us: int | None = None
    expire_ts_us: int | None = None


class TraceEvent(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event of a trace. `docs/trace-schema.md` defines the columns; None means not known.

    `ts_us` is microseconds since the Unix epoch (UTC), or since the start of a simulation.
    `seq`, `trace_id`, `cluster_id` and `source` are added by the writer; `source`, `source_ref`
    and `seq` are set here only by importers, whose events carry their own.
    `offsets` is not a column: an offset event becomes one row per entry.
    """

    event: Event
    ts_us: int
    seq: int = -1
    group_id: str | None = None
    generation: int | None = None
    broker_id: int | None = None
    offsets_partition: int | None = None
    incarnation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    member_id: str | None = None
    group_instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    leader_id: str | None = None
    members: int | None = None
    static_members: int | None = None
    reason: RebalanceReason | None = None
    reason_text: str | None = None
    client_reason: str | None = None
    state_from: GroupState | None = None
    state_to: GroupState | None = None
    api_key: int | None = None
    api_version: int | None = None
    correlation_id: int | None = None
    error_code: ErrorCode | None = None
    latency_us: int | None = None
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    subscription: bytes | None = None
    assignment: bytes | None = None
    offsets: tuple[OffsetEntry, ...] = ()
    position: int | None = None
    ts_kind: TimeKind = TimeKind.EVENT
    ts_err_us: int = 0
    confidence: float = 1.0
    source: Source | None = None
    source_ref: str | None = None
    attrs: dict[str, str] = field(default_factory=dict)
    raw: str | None = None


class RunInfo(Struct, frozen=True, kw_only=True):
    """Facts of a whole run; `run.json` is this plus digest and counts.

    Args:
        trace_id: For a simulated run, derived from scenario, seed, profile and options.
        source: Source of the events that do not name their own.
        options: Every setting that differs from its default.
    """

    trace_id: str
    source: Source
    cluster_id: str
    version: str
    profile: str
    seed: int | None = None
    scenario: str | None = None
    assignor: str | None = None
    options: dict[str, str] = field(default_factory=dict)
