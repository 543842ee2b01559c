"""One pass over the groups of traces, which makes every table that is made group by group.

An engine brings together what is told of each group, in order; `coordinator_sim_reports.workers`
makes the rows of all tables from it at once, by the functions that the command line uses.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from coordinator_sim.runs.step_holdings import STEP_EVENTS
from coordinator_sim.trace.client_reasons import CLIENT_EVENTS
from coordinator_sim.trace.events import Event
from coordinator_sim.trace.history import (
    CLIENT_SOURCES,
    COORDINATOR_EVENTS,
    ENDS_COORDINATOR,
    home_partition,
)
from coordinator_sim.trace.schema import event_schema
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.engine import Engine, Frame, Pass
from coordinator_sim_reports.workers.group import RunFacts
from coordinator_sim_reports.workers.group_records import (
    DENSE,
    LISTED,
    RECORD_COLUMNS,
    SEEN,
)
from coordinator_sim_reports.workers.group_tables import group_batches, schema_of

_STEP: Final = "MEMBER_STEP"
_WORK: Final = ("TASKS_STARTED", "TASKS_STOPPED")
_RECORDS: Final = (
    *("RECORDS_PROCESSED", "RECORDS_DELIVERED", "RECORDS_ACKNOWLEDGED"),
    *("RECORDS_ARCHIVED", "LOCK_TIMED_OUT"),
)
_MEMBERS: Final = ("JOIN_REQ", "LEAVE_REQ", "MEMBER_FENCED", "PENDING_EXPIRED")
_FAILED: Final = ("MEMBER_FAILED", "MEMBER_KICKED")
_MARKS: Final = ("SYNC_RESP", "MEMBER_LEFT", "LOST", "LIFECYCLE", "ASSIGNED", "MEMBER_ADDED")
_SIGNS_OF_LIFE: Final = ("HEARTBEAT", "OFFSET_COMMIT", "SYNC_REQ")
"""Of use only where a member fails, and most of a trace."""
_KEY: Final = ", ".join(C.GROUP_KEY)
_KINDS: Final = (DENSE, LISTED, SEEN)
"""Columns of records that are no events."""


def group_events(engine: Engine, events: Frame, kinds: Collection[str] | None = None) -> Frame:
    """Return every event of a group, those of its coordinator's partition included.

    Input: events; `kinds`, those among them, or None where that is not known: without any
    resignation there is nothing to repeat, and nothing to find out for it.
    Output: the same columns, no null `group_id`: a broker's resignation of an offsets partition
    is repeated for each group of that partition that the same file has told of before, for one
    trace may hold logs of unrelated brokers. Other events of no group are dropped.
    """
    names = [*event_schema().names, C.CLUSTER_ID]
    columns = ", ".join(f"e.{name}" for name in names)
    own = f"SELECT {columns} FROM {{events}} e WHERE e.group_id IS NOT NULL"
    if kinds is not None and not repeats_events(kinds):
        return engine.sql(own, events=events)
    engine.register("home_partition", home_partition)
    repeated = ", ".join(f"h.{n}" if n == C.GROUP_ID else f"e.{n}" for n in names)
    return engine.sql(
        f"""
        WITH homes AS (
            SELECT {_KEY}, file, home_partition(group_id, named) AS partition, since
            FROM (
                SELECT {_KEY}, coalesce(source_ref, '') AS file, min(ordinal) AS since,
                    min_by(
                        offsets_partition,
                        CASE WHEN offsets_partition IS NOT NULL THEN ordinal END
                    ) AS named
                FROM {{events}} WHERE group_id IS NOT NULL
                GROUP BY {_KEY}, coalesce(source_ref, '')
            )
        )
        {own}
        UNION ALL
        SELECT {repeated}
        FROM {{events}} e JOIN homes h
            ON e.trace_id = h.trace_id AND e.cluster_id = h.cluster_id
            AND e.offsets_partition = h.partition AND coalesce(e.source_ref, '') = h.file
        WHERE e.group_id IS NULL AND e.ordinal > h.since
            AND e.event IN {_listed(event.value for event in ENDS_COORDINATOR)}
        """,
        events=events,
    )


def repeats_events(kinds: Collection[str]) -> bool:
    """Whether `group_events` repeats events of a trace that has these kinds of them."""
    return any(event.value in kinds for event in ENDS_COORDINATOR)


@dataclass(frozen=True, slots=True)
class Records:
    """Events, assignments and members of groups.

    Args:
        events: Events of groups (`group_events`).
        kinds: Kinds of events among them.
        dense_pieces: Assignments of groups (`dense_files`).
        resources: Lists of resources.
        sessions: Member sessions; None where nothing wants to know when members were first seen.
    """

    events: Frame
    kinds: Collection[str]
    dense_pieces: Frame
    resources: Frame
    sessions: Frame | None = None


def group_pass(
    engine: Engine, of: Records, facts: Mapping[str, RunFacts], names: Sequence[str]
) -> Pass:
    """Return the rows of all tables, as one pass over the groups makes them.

    Args:
        engine: What makes it.
        of: Records of the groups.
        facts: Facts of the runs by trace id.
        names: Tables of `GROUP_TABLES` that are wanted, and `groups`.
    """
    make = partial(group_batches, facts=dict(facts), names=tuple(names))
    return engine.by_group(_records(engine, of), make, {name: schema_of(name) for name in names})


def _records(engine: Engine, of: Records) -> Frame:
    """Return all that is told of groups: events, assignments, lists of resources, members."""
    struct = engine.dialect.struct
    pieces = engine.shared(of.dense_pieces)
    parts = [
        *_events(of.kinds),
        _part(DENSE, "SELECT *, dense AS record FROM {pieces}"),
        _part(
            LISTED,
            f"""
            SELECT l.trace_id, l.cluster_id, l.group_id, {struct(("id", "names"))} AS record
            FROM (
                SELECT p.*, r.resources AS names
                FROM (
                    SELECT DISTINCT {_KEY}, id FROM (
                        SELECT {_KEY}, {engine.dialect.exploded("list_ids", "place", "id")}
                        FROM {{pieces}}
                    )
                ) p
                JOIN {{resources}} r ON p.trace_id = r.trace_id AND p.id = r.resource_list_id
            ) l
            """,
        ),
    ]
    frames = {"events": of.events, "pieces": pieces, "resources": of.resources}
    if of.sessions is not None:
        member = struct((C.MEMBER_ID, C.MEMBER_KEY, "first_seen_us"))
        parts.append(_part(SEEN, f"SELECT *, {member} AS record FROM {{sessions}}"))
        frames["sessions"] = of.sessions
    return engine.sql(" UNION ALL ".join(parts), **frames)


def _part(name: str, query: str) -> str:
    """Return a query for the records of one kind, of which the columns of others are null."""
    names = [C.ORDINAL, *(each for each in RECORD_COLUMNS if each != C.GROUP_ID)]
    none = ", ".join(f"NULL AS {each}" for each in names)
    kinds = ("record AS" if each == name else "NULL AS" for each in _KINDS)
    own = ", ".join(f"{kind} {each}" for kind, each in zip(kinds, _KINDS, strict=True))
    return f"SELECT {_KEY}, {none}, {own} FROM ({query})"


def _events(kinds: Collection[str]) -> Iterator[str]:
    """Yield queries for the events that tables are made of."""
    wanted = {event.value for event in COORDINATOR_EVENTS}
    wanted |= {*_MEMBERS, *_FAILED, *_MARKS, *_RECORDS, *_WORK}
    assignment = "CAST(NULL AS BINARY)"
    if _STEP in kinds:
        wanted |= {event.value for event in STEP_EVENTS}
        answers = _listed((Event.SYNC_RESP.value, _STEP))
        assignment = f"CASE WHEN event IN {answers} THEN assignment END"
    names = [
        f"{assignment} AS {name}" if name == "assignment" else f"e.{name}"
        for name in (C.ORDINAL, *RECORD_COLUMNS)
        if name != C.GROUP_ID
    ]
    none = ", ".join(f"NULL AS {each}" for each in _KINDS)
    columns = f"SELECT {_KEY}, {', '.join(names)}, {none} FROM {{events}} e"
    is_clients = (
        f"coalesce(source, '') IN {_listed(source.value for source in CLIENT_SOURCES)}"
        f" AND event IN {_listed(event.value for event in CLIENT_EVENTS)}"
    )
    yield f"{columns} WHERE event IN {_listed(wanted)} OR {is_clients}"
    signs = set(_SIGNS_OF_LIFE) - wanted
    if signs and not set(_FAILED).isdisjoint(kinds):
        failing = f"SELECT {_KEY} FROM {{events}} WHERE event IN {_listed(_FAILED)}"
        yield (
            f"{columns} WHERE event IN {_listed(signs)} AND NOT ({is_clients})"
            f" AND ({_KEY}) IN ({failing})"
        )


def _listed(values: Iterable[str]) -> str:
    quoted = ", ".join(f"'{value}'" for value in sorted(values))
    return f"({quoted})"
