"""Formats trace events for people: one event, one aligned line, time first.

Used by transcripts, by the stories of the catalogue and by `coordinator-sim run`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.epoch_members import resources_in
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.rebalances import is_of_epoch_group

_UUID: Final = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_EPOCH_TIMES_FROM_US: Final = 10**15
"""Instants from here (the year 2001) are dates; below, seconds since the simulation's start."""
_SHOWN_BYTES: Final = 24
_SHOWN_OFFSETS: Final = 4
_SHOWN_RUNS: Final = 8
_GROUP_WIDTH: Final = 10
"""Width of the group column unless a longer id needs more."""

Names = Mapping[str, str]
"""Maps a member id to its name in a story."""


def widest_group(events: Iterable[TraceEvent]) -> int:
    """Return the width of the group column that aligns the lines of these events."""
    return max((len(event.group_id or "") for event in events), default=0)


def story_line(
    event: TraceEvent, names: Names | None = None, *, group_width: int = _GROUP_WIDTH
) -> str:
    """Return one event as one line, without a line end.

    Args:
        event: Any event; kinds without a text of their own show their essential columns.
        names: Names of members; by default their ids, cut down to the first part of the UUID.
        group_width: Width of the group column, in characters; a longer id shifts its own line.
    """
    called = {} if names is None else names
    text = _TEXTS.get(event.event, _plain)(event)
    group = event.group_id if event.group_id is not None else "-"
    line = (
        f"{_time(event.ts_us)}  {group:<{group_width}} {event.event.value:<18} "
        f"{_shorten(text, called)}"
    )
    return line.rstrip()


def _time(ts_us: int) -> str:
    if ts_us < _EPOCH_TIMES_FROM_US:
        return f"{ts_us // 1_000_000:>6}.{ts_us // 1_000 % 1_000:03}"
    return datetime.fromtimestamp(ts_us // 1_000_000, UTC).strftime("%m-%d %H:%M:%S") + (
        f".{ts_us // 1_000 % 1_000:03}"
    )


def _shorten(text: str, names: Names) -> str:
    """Replace member ids by names, and shorten the other ids."""
    for member_id, name in names.items():
        text = text.replace(member_id, name)
    return _UUID.sub(r"\1", text)


def _join(*parts: str | None) -> str:
    return "  ".join(part for part in parts if part)


def _member(event: TraceEvent) -> str:
    who = event.member_id or "(no id)"
    instance = event.group_instance_id
    return who if instance is None else f"{who} [{instance}]"


def _error(event: TraceEvent) -> str:
    code = event.error_code
    return "" if code is None or code is ErrorCode.NONE else code.name


def _generation(event: TraceEvent) -> str | None:
    known = event.generation is not None and event.generation >= 0
    return (
        f"{'epoch' if is_of_epoch_group(event) else 'generation'} {event.generation}"
        if known
        else None
    )


def _count(members: int | None) -> str:
    return "1 member" if members == 1 else f"{members} members"


def _bytes(label: str, data: bytes | None) -> str | None:
    if data is None:
        return None
    if data.isascii() and data.decode("ascii").isprintable():
        shown = data.decode("ascii")
    else:
        shown = data.hex()
    if len(shown) > _SHOWN_BYTES:
        shown = f"{shown[:_SHOWN_BYTES]}.. ({len(data)} bytes)"
    return f"{label}={shown}"


def _duration(label: str, ms: int | None) -> str | None:
    return None if ms is None else f"{label}={ms / 1_000:g}s"


def _offsets(event: TraceEvent) -> str:
    shown = [f"{o.topic}-{o.partition}@{o.offset}" for o in event.offsets[:_SHOWN_OFFSETS]]
    more = len(event.offsets) - len(shown)
    return " ".join(shown) + (f" and {more} more" if more else "")


def _join_request(event: TraceEvent) -> str:
    return _join(
        _member(event),
        _duration("session", event.session_timeout_ms),
        _duration("rebalance", event.rebalance_timeout_ms),
        event.client_reason and f"reason: {event.client_reason}",
    )


def _join_response(event: TraceEvent) -> str:
    if _error(event):
        return _join(_member(event), _error(event))
    if event.leader_id is None:
        has = f"has {_partitions(event)}"
        return _join(
            _member(event), f"epoch {event.generation}", has, _copies(event), _status(event)
        )
    role = "leader" if event.leader_id == event.member_id else "follower"
    return _join(_member(event), _generation(event), role, event.protocol_name)


def _sync_response(event: TraceEvent) -> str:
    return _join(_member(event), _error(event) or _bytes("assignment", event.assignment))


def _request(event: TraceEvent) -> str:
    given = event.event is Event.HEARTBEAT and event.assignment is not None
    return _join(
        _member(event),
        _generation(event),
        _error(event),
        event.client_reason,
        f"has {_partitions(event)}" if given else None,
        _copies(event),
        _status(event),
    )


def _membership(event: TraceEvent) -> str:
    old_id = event.attrs.get("old_member_id")
    return _join(
        _member(event),
        event.reason_text,
        "for a while" if "temporary" in event.attrs else None,
        f"in the place of {old_id}" if old_id and event.attrs.get("group_type") else None,
    )


def _prepare(event: TraceEvent) -> str:
    reason = None if event.reason is None else event.reason.value
    before = None if event.state_from is None else f"from {event.state_from.value}"
    return _join(f"after {_generation(event)}", before, reason)


def _joined(event: TraceEvent) -> str:
    static = f", {event.static_members} static" if event.static_members else ""
    return _join(
        _generation(event),
        f"{_count(event.members)}{static}",
        f"leader {event.leader_id}",
        event.protocol_name,
    )


def _sync_leader(event: TraceEvent) -> str:
    return f"{event.leader_id} assigns to {_count(event.members)}"


def _assigned(event: TraceEvent) -> str:
    return _join(_member(event), _bytes("assignment", event.assignment) or event.reason_text)


def _epoch(event: TraceEvent) -> str:
    reason = None if event.reason is None else event.reason.value
    who = _member(event) if event.member_id else None
    return _join(f"epoch {event.generation}", _count(event.members), reason, who)


def _target(event: TraceEvent) -> str:
    changed, delay_ms = event.attrs.get("changed"), event.attrs.get("delay_ms")
    return _join(
        f"epoch {event.generation}",
        event.protocol_name,
        _count(event.members),
        changed and f"{changed} with another part",
        _duration("delayed", None if delay_ms is None else int(delay_ms)),
    )


def _target_part(event: TraceEvent) -> str:
    shall = f"shall have {_partitions(event)}"
    return _join(_member(event), f"epoch {event.generation}", shall, _copies(event))


def _step(event: TraceEvent) -> str:
    """Where a member stands: what it has, gives up, and waits for."""
    revoking = event.attrs.get("revoking")
    waiting = int(event.attrs.get("waiting", 0))
    return _join(
        _member(event),
        f"epoch {event.generation}",
        event.attrs.get("state"),
        f"has {_partitions(event)}",
        _copies(event),
        revoking and f"gives up {_ranges(revoking.split(' '))}",
        _copies(event, "revoking_", "gives up "),
        f"waits for {waiting}" if waiting else None,
    )


def _partitions(event: TraceEvent) -> str:
    try:
        found = resources_in(event.assignment or b"", event.protocol_type)
    except WireFormatError:
        return _bytes("bytes", event.assignment) or "something"
    return _ranges(found) or "nothing"


def _copies(event: TraceEvent, prefix: str = "", before: str = "") -> str | None:
    """Tasks of which a member of a streams group has copies, by their role."""
    roles = ("standby", "warmup")
    told = ((role, event.attrs.get(prefix + role)) for role in roles)
    return _join(*(f"{before}{role} {_ranges(names.split(' '))}" for role, names in told if names))


def _status(event: TraceEvent) -> str | None:
    """The status in a streams group's heartbeat response, from the event's attributes."""
    return event.attrs.get("status")


def _ranges(resources: Iterable[str]) -> str:
    """Partitions as `topic-0..5`, tasks as `0_0..5`, in their order; of many topics the first."""
    runs: list[tuple[str, int, int]] = []
    for resource in resources:
        kind, _, name = resource.partition(":")
        mark = "_" if kind == "s" else "-"
        stem, _, number = name.rpartition(mark)
        topic, index = stem + mark, int(number)
        if runs and runs[-1][0] == topic and runs[-1][2] == index - 1:
            runs[-1] = (topic, runs[-1][1], index)
        else:
            runs.append((topic, index, index))
    shown = [
        f"{topic}{first}" if first == last else f"{topic}{first}..{last}"
        for topic, first, last in runs[:_SHOWN_RUNS]
    ]
    more = len(runs) - len(shown)
    return " ".join(shown) + (f" and {more} more" if more else "")


def _group(event: TraceEvent) -> str:
    state = None if event.state_to is None else f"as {event.state_to.value}"
    loaded = state if event.event is Event.GROUP_LOADED else None
    members = _count(event.members) if event.members else None
    return _join(_generation(event), loaded, members)


def _partition(event: TraceEvent) -> str:
    return _join(f"offsets partition {event.offsets_partition}", _error(event), event.reason_text)


def _offset_event(event: TraceEvent) -> str:
    who = _member(event) if event.member_id else None
    return _join(who, _offsets(event), _error(event))


def _world(event: TraceEvent) -> str:
    attrs = " ".join(f"{key}={value}" for key, value in event.attrs.items())
    who = event.client_id or event.member_id
    return _join(who, event.reason_text, attrs)


def _processed(event: TraceEvent) -> str:
    end = "" if event.position is None else f"..{event.position}"
    attrs = " ".join(f"{key}={value}" for key, value in event.attrs.items())
    return _join(event.client_id, f"{_offsets(event)}{end}", attrs)


def _elided(event: TraceEvent) -> str:
    until_us = int(event.attrs["until_us"])
    return f"{int(event.attrs['heartbeats']):,} heartbeats, until {_time(until_us).strip()}"


def _left_out(event: TraceEvent) -> str:
    return f"calm time left out, until {_time(int(event.attrs['until_us'])).strip()}"


def _plain(event: TraceEvent) -> str:
    who = _member(event) if event.member_id else event.client_id
    attrs = " ".join(f"{key}={value}" for key, value in event.attrs.items())
    return _join(who, _generation(event), _error(event), event.reason_text, attrs, event.raw)


_TEXTS: Final[dict[Event, Callable[[TraceEvent], str]]] = {
    Event.JOIN_REQ: _join_request,
    Event.JOIN_RESP: _join_response,
    Event.SYNC_REQ: _request,
    Event.SYNC_RESP: _sync_response,
    Event.HEARTBEAT: _request,
    Event.HEARTBEATS_ELIDED: _elided,
    Event.CALM_LEFT_OUT: _left_out,
    Event.LEAVE_REQ: _request,
    Event.MEMBER_ID_ASSIGNED: _membership,
    Event.MEMBER_ADDED: _membership,
    Event.MEMBER_LEFT: _membership,
    Event.MEMBER_FAILED: _membership,
    Event.MEMBER_KICKED: _membership,
    Event.MEMBER_FENCED: _membership,
    Event.STATIC_REPLACED: _membership,
    Event.PENDING_EXPIRED: _membership,
    Event.LEADER_REPLACED: _membership,
    Event.EPOCH_BUMPED: _epoch,
    Event.TARGET_COMPUTED: _target,
    Event.TARGET_ASSIGNED: _target_part,
    Event.MEMBER_STEP: _step,
    Event.TARGET_REACHED: _epoch,
    Event.PREPARE_REBALANCE: _prepare,
    Event.JOIN_COMPLETE: _joined,
    Event.SYNC_LEADER: _sync_leader,
    Event.GROUP_STABLE: _group,
    Event.GROUP_EMPTY: _group,
    Event.GROUP_DEAD: _group,
    Event.GROUP_LOADED: _group,
    Event.GROUP_UNLOADED: _group,
    Event.ASSIGNED: _assigned,
    Event.EMPTY_ASSIGNMENT: _assigned,
    Event.REVOKED: _assigned,
    Event.LOST: _assigned,
    Event.LOAD_START: _partition,
    Event.LOAD_DONE: _partition,
    Event.LOAD_FAILED: _partition,
    Event.UNLOAD_DONE: _partition,
    Event.COORD_ELECTED: _partition,
    Event.COORD_RESIGNED: _partition,
    Event.OFFSET_COMMIT: _offset_event,
    Event.OFFSET_FETCH: _offset_event,
    Event.OFFSET_TOMBSTONE: _offset_event,
    Event.OFFSET_EXPIRED: _offset_event,
    Event.RECORDS_PROCESSED: _processed,
    Event.RECORDS_DELIVERED: _processed,
    Event.RECORDS_ACKNOWLEDGED: _processed,
    Event.RECORDS_ARCHIVED: _processed,
    Event.LOCK_TIMED_OUT: _processed,
    Event.FAULT: _world,
    Event.LIFECYCLE: _world,
}
