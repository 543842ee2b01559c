"""Row forms of a trace on disk, and their Arrow schemas.

An event becomes rows (an offset event one row per partition); the assignment of a generation is
one dense row. Nothing here reads or writes files. Arrow is imported inside the functions that
need it, because importing it costs more than a short simulation.
"""

from collections.abc import Iterator
from datetime import date
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct, field

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.trace import events
from coordinator_sim.trace.sources_read import Skew, SourceFile

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION: Final = 1
"""Changes when a reader of older traces would misread a newer one."""
EVENTS_DIR: Final = "events"
GENERATIONS_DIR: Final = "generations"
RESOURCES_DIR: Final = "resources"
MANIFEST_NAME: Final = "run.json"
METRICS_NAME: Final = "metrics.json"
"""File with the brokers' metrics at the end of a simulated run, beside its events."""
APPENDABLE_NAME: Final = "appendable.bin"
"""File beside an ingested trace: what further files are appended to."""

DAY_US: Final = 86_400_000_000
EARLIEST_US: Final = -62_135_596_800_000_000
LATEST_US: Final = 253_402_300_799_999_999
"""The instants that a date can show: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999Z."""
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()


class EventRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One row of `events`, with the columns of `docs/trace-schema.md`; None means unknown.

    `ordinal` is the event's position in the run, shared by the rows of one offset event: the only
    order that needs no clock.
    """

    trace_id: str
    source: events.Source
    source_ref: str | None = None
    seq: int
    ordinal: int
    ts_us: Annotated[int, Meta(ge=EARLIEST_US, le=LATEST_US)]
    ts_kind: events.TimeKind = events.TimeKind.EVENT
    ts_err_us: int = 0
    broker_id: int | None = None
    offsets_partition: int | None = None
    group_id: str | None = None
    incarnation: int = 0
    generation: int | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    event: events.Event
    member_id: str | None = None
    group_instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    leader_id: str | None = None
    members: int | None = None
    static_members: int | None = None
    reason: events.RebalanceReason | None = None
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
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    leader_epoch: int | None = None
    commit_ts_us: int | None = None
    metadata: str | None = None
    expire_ts_us: int | None = None
    position: int | None = None
    confidence: float = 1.0
    attrs: dict[str, str] = field(default_factory=dict)
    raw: str | None = None


class GenerationRow(Struct, frozen=True, kw_only=True):
    """The assignment of one generation in dense form, one row of `generations`.

    Args:
        join_done_us: When the join phase ended; None where the source does not say.
        sync_us: When the leader's assignment was accepted.
        subscriptions_equal: Whether every member may own every resource; None is unknown.
        delay_ms: Connect's scheduled rebalance delay announced with the assignment; 0 is none.
        member_ids: Every member, those without resources included, sorted.
        member_keys: Group instance id, or else the member id; parallel to `member_ids`.
        loads: Resources of each member; parallel to `member_ids`.
        resource_list_id: Id of the row of `resources` that `owners` is parallel to.
        owners: Index into `member_ids` per resource; -1 is nobody.
    """

    trace_id: str
    cluster_id: str
    group_id: str
    incarnation: int
    generation: int
    join_done_us: int | None
    sync_us: int | None
    protocol_type: str
    protocol_name: str | None
    leader_id: str | None
    subscriptions_equal: bool | None
    delay_ms: int
    member_ids: tuple[str, ...]
    member_keys: tuple[str, ...]
    loads: tuple[int, ...]
    resource_list_id: int
    owners: tuple[int, ...]


class ResourceRow(Struct, frozen=True, kw_only=True):
    """One list of resource names. Within an incarnation a later list extends an earlier one."""

    trace_id: str
    resource_list_id: int
    resources: tuple[str, ...]


class RunManifest(events.RunInfo, frozen=True, kw_only=True):
    """Content of `run.json`: the run's facts, its digest and what was written.

    Args:
        format: `parquet` or `jsonl`.
        digest: See `coordinator_sim.trace.digest.TraceDigest`.
        counts: Rows written per table, events, and what could not be decoded.
        first_ts_us: Smallest event time; None for an empty trace.
        last_ts_us: Largest event time; None for an empty trace.
        files: What an import read; empty for other traces.
        skews: How far the clocks of an import's sources are apart.
    """

    format: str
    digest: str
    counts: dict[str, int]
    first_ts_us: int | None = None
    last_ts_us: int | None = None
    schema_version: int = SCHEMA_VERSION
    files: list[SourceFile] = field(default_factory=list)
    skews: list[Skew] = field(default_factory=list)


_ROW_ONLY: Final = frozenset({"trace_id", "source", "ordinal"})
_OFFSET_COLUMNS: Final = tuple(events.OffsetEntry.__struct_fields__)
_SHARED: Final = tuple(
    name
    for name in EventRow.__struct_fields__
    if name not in _ROW_ONLY and name not in _OFFSET_COLUMNS
)


def rows_of(event: events.TraceEvent, ordinal: int, info: events.RunInfo) -> Iterator[EventRow]:
    """Yield the rows of one event: one, or one per offset entry in their order."""
    shared: dict[str, Any] = {name: getattr(event, name) for name in _SHARED}
    shared["trace_id"] = info.trace_id
    shared["source"] = event.source or info.source
    shared["ordinal"] = ordinal
    if not event.offsets:
        yield EventRow(**shared)
        return
    for entry in event.offsets:
        yield EventRow(**shared, **msgspec.structs.asdict(entry))


def event_of(rows: list[EventRow], info: events.RunInfo) -> events.TraceEvent:
    """Rebuild the event from its rows by `rows_of`. There is at least one row."""
    first = rows[0]
    values: dict[str, Any] = {name: getattr(first, name) for name in _SHARED}
    values["source"] = None if first.source is info.source else first.source
    if first.topic is not None:
        values["offsets"] = tuple(
            events.OffsetEntry(**{name: getattr(row, name) for name in _OFFSET_COLUMNS})
            for row in rows
        )
    return events.TraceEvent(**values)


def day_of(ts_us: int) -> str:
    """Return the UTC date of an instant, as `YYYY-MM-DD`; simulated runs start on 1970-01-01."""
    return date.fromordinal(_EPOCH_ORDINAL + ts_us // DAY_US).isoformat()


def plain(value: object) -> object:
    """Convert a column's value for Arrow: an enum to its value."""
    return value.value if isinstance(value, Enum) else value


def event_schema() -> "pa.Schema":
    """Return the Arrow schema of `events`, without its partition columns `cluster_id` and `day`."""
    import pyarrow as pa

    special = {
        "trace_id": pa.string(),
        "broker_id": pa.int32(),
        "offsets_partition": pa.int32(),
        "incarnation": pa.int32(),
        "generation": pa.int32(),
        "members": pa.int32(),
        "static_members": pa.int32(),
        "api_key": pa.int16(),
        "api_version": pa.int16(),
        "correlation_id": pa.int32(),
        "error_code": pa.int16(),
        "session_timeout_ms": pa.int32(),
        "rebalance_timeout_ms": pa.int32(),
        "subscription": pa.binary(),
        "assignment": pa.binary(),
        "partition": pa.int32(),
        "leader_epoch": pa.int32(),
        "confidence": pa.float64(),
        "attrs": pa.map_(pa.string(), pa.string()),
    }
    longs = {
        "seq",
        "ordinal",
        "ts_us",
        "ts_err_us",
        "latency_us",
        "offset",
        "commit_ts_us",
        "expire_ts_us",
        "position",
    }
    return pa.schema(
        [
            (name, special.get(name, pa.int64() if name in longs else pa.string()))
            for name in EventRow.__struct_fields__
        ]
    )


def generation_schema() -> "pa.Schema":
    """Return the Arrow schema of `generations`."""
    import pyarrow as pa

    strings = pa.list_(pa.string())
    ints = pa.list_(pa.int32())
    return pa.schema(
        [
            ("trace_id", pa.string()),
            ("cluster_id", pa.string()),
            ("group_id", pa.string()),
            ("incarnation", pa.int32()),
            ("generation", pa.int32()),
            ("join_done_us", pa.int64()),
            ("sync_us", pa.int64()),
            ("protocol_type", pa.string()),
            ("protocol_name", pa.string()),
            ("leader_id", pa.string()),
            ("subscriptions_equal", pa.bool_()),
            ("delay_ms", pa.int32()),
            ("member_ids", strings),
            ("member_keys", strings),
            ("loads", ints),
            ("resource_list_id", pa.int64()),
            ("owners", ints),
        ]
    )


def resource_schema() -> "pa.Schema":
    """Return the Arrow schema of `resources`."""
    import pyarrow as pa

    return pa.schema(
        [
            ("trace_id", pa.string()),
            ("resource_list_id", pa.int64()),
            ("resources", pa.list_(pa.string())),
        ]
    )
