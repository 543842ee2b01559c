"""A correct history of one group, written by hand, and histories that each break one invariant.

In the correct one, a dynamic consumer leads and a static one follows; the static one dies and is
expired; then the coordinator moves. Times are milliseconds in the builder, microseconds in events.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import encode_assignment
from coordinator_sim.messages.embedded.contents import ConsumerAssignment
from coordinator_sim.trace.events import Event, OffsetEntry, RebalanceReason, TraceEvent

GROUP: Final = "orders"
LEADER: Final = "c1-0001"
STATIC: Final = "i2-0002"
SESSION_MS: Final = 6_000
REBALANCE_MS: Final = 10_000

History = list[TraceEvent]
Edit = Callable[[History], History]


class Scribe:
    """Writes events in order, with the columns that every event of a stretch shares."""

    def __init__(self) -> None:
        self.events: History = []
        self.broker_id = 1

    def note(self, at_ms: int, event: Event, **columns: Any) -> None:  # noqa: ANN401 - any column
        """Write one event of the group, by its coordinator unless `broker_id` is given."""
        shared = {"group_id": GROUP, "broker_id": self.broker_id, "offsets_partition": 7}
        self.events.append(
            TraceEvent(
                event=event, ts_us=at_ms * 1_000, seq=len(self.events), **{**shared, **columns}
            )
        )

    def world(self, at_ms: int, event: Event, what: str) -> None:
        """Write a disturbance of the world."""
        self.note(at_ms, event, group_id=None, broker_id=None, reason_text=what)


def assignment_of(*partitions: int) -> bytes:
    """Return the assignment bytes for partitions of the topic `events`."""
    owned = tuple(TopicPartition("events", partition) for partition in partitions)
    return encode_assignment(ConsumerAssignment(partitions=owned))


def correct_history() -> History:
    """Return a history that every checker judges and finds correct."""
    scribe = Scribe()
    _first_generation(scribe)
    _static_member_dies(scribe)
    _coordinator_moves(scribe)
    return scribe.events


def _first_generation(scribe: Scribe) -> None:
    timeouts = {"session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": REBALANCE_MS}
    join: dict[str, Any] = {"protocol_type": "consumer", **timeouts}
    scribe.world(0, Event.LIFECYCLE, "start c1")
    scribe.note(10, Event.JOIN_REQ, member_id="", client_id="c1", correlation_id=1, **join)
    scribe.note(10, Event.MEMBER_ID_ASSIGNED, member_id=LEADER, client_id="c1")
    _answer(scribe, 10, correlation_id=1, member_id=LEADER, error_code=ErrorCode.MEMBER_ID_REQUIRED)
    scribe.note(12, Event.JOIN_REQ, member_id=LEADER, client_id="c1", correlation_id=2, **join)
    scribe.note(12, Event.MEMBER_ADDED, member_id=LEADER, client_id="c1", **timeouts)
    scribe.note(
        12, Event.PREPARE_REBALANCE, generation=0, reason=RebalanceReason.MEMBER_JOINED, members=1
    )
    static: dict[str, Any] = {"group_instance_id": "i2", "client_id": "c2"}
    scribe.note(20, Event.JOIN_REQ, member_id="", correlation_id=3, **static, **join)
    scribe.note(20, Event.MEMBER_ADDED, member_id=STATIC, **static, **timeouts)
    scribe.note(3_012, Event.JOIN_COMPLETE, generation=1, leader_id=LEADER, members=2)
    _admit(scribe, 3_012, correlation_id=2, member_id=LEADER, generation=1, members=2)
    _admit(scribe, 3_012, correlation_id=3, member_id=STATIC, generation=1, members=0)
    _sync(scribe, 3_020, generation=1, owned={STATIC: (2, 3), LEADER: (0, 1)}, first_token=4)
    for at_ms in (6_000, 9_000):
        _heartbeat(scribe, at_ms, LEADER)
        _heartbeat(scribe, at_ms, STATIC)
    _commit(scribe, 9_500, offset=41)
    _commit(scribe, 10_000, offset=42)


def _static_member_dies(scribe: Scribe) -> None:
    scribe.world(10_500, Event.FAULT, "crash c2")
    _heartbeat(scribe, 12_000, LEADER)
    scribe.note(15_000, Event.MEMBER_FAILED, member_id=STATIC, group_instance_id="i2")
    scribe.note(15_000, Event.PREPARE_REBALANCE, generation=1, reason=RebalanceReason.MEMBER_FAILED)
    _heartbeat(scribe, 15_100, LEADER, ErrorCode.REBALANCE_IN_PROGRESS)
    timeouts = {"session_timeout_ms": SESSION_MS, "rebalance_timeout_ms": REBALANCE_MS}
    scribe.note(15_110, Event.JOIN_REQ, member_id=LEADER, correlation_id=6, **timeouts)
    scribe.note(15_110, Event.JOIN_COMPLETE, generation=2, leader_id=LEADER, members=1)
    _admit(scribe, 15_110, correlation_id=6, member_id=LEADER, generation=2, members=1)
    _sync(scribe, 15_120, generation=2, owned={LEADER: (0, 1, 2, 3)}, first_token=7)
    _fetch(scribe, 15_200, offset=42)


def _coordinator_moves(scribe: Scribe) -> None:
    scribe.world(20_000, Event.FAULT, "move coordinator")
    scribe.note(20_000, Event.GROUP_UNLOADED)
    scribe.broker_id = 2
    scribe.note(20_050, Event.LOAD_START, group_id=None)
    scribe.note(20_050, Event.GROUP_LOADED, generation=2, members=1)
    scribe.note(20_050, Event.LOAD_DONE, group_id=None)
    _heartbeat(scribe, 21_000, LEADER)
    _fetch(scribe, 21_500, offset=42)
    scribe.note(22_000, Event.SYNC_REQ, member_id=LEADER, generation=2, correlation_id=1)
    scribe.note(
        22_000,
        Event.SYNC_RESP,
        member_id=LEADER,
        generation=2,
        correlation_id=1,
        error_code=ErrorCode.NONE,
    )
    _heartbeat(scribe, 600_000, LEADER)


def _answer(scribe: Scribe, at_ms: int, **columns: Any) -> None:  # noqa: ANN401 - any column
    scribe.note(at_ms, Event.JOIN_RESP, **columns)


def _admit(scribe: Scribe, at_ms: int, **columns: Any) -> None:  # noqa: ANN401 - any column
    if columns["member_id"] == STATIC:
        columns["group_instance_id"] = "i2"
    _answer(scribe, at_ms, error_code=ErrorCode.NONE, leader_id=LEADER, **columns)


def _sync(
    scribe: Scribe,
    at_ms: int,
    *,
    generation: int,
    owned: dict[str, tuple[int, ...]],
    first_token: int,
) -> None:
    tokens = {member_id: first_token + index for index, member_id in enumerate(owned)}
    common: dict[str, Any] = {"generation": generation}
    for member_id, token in tokens.items():
        scribe.note(at_ms, Event.SYNC_REQ, member_id=member_id, correlation_id=token, **common)
    scribe.note(at_ms, Event.SYNC_LEADER, leader_id=LEADER, members=len(owned), **common)
    for member_id, partitions in owned.items():
        assignment = assignment_of(*partitions)
        scribe.note(
            at_ms,
            Event.ASSIGNED,
            member_id=member_id,
            protocol_type="consumer",
            assignment=assignment,
            **common,
        )
    scribe.note(at_ms, Event.GROUP_STABLE, **common)
    for member_id, token in tokens.items():
        scribe.note(
            at_ms,
            Event.SYNC_RESP,
            member_id=member_id,
            correlation_id=token,
            error_code=ErrorCode.NONE,
            **common,
        )


def _heartbeat(
    scribe: Scribe, at_ms: int, member_id: str, error_code: ErrorCode = ErrorCode.NONE
) -> None:
    instance_id = "i2" if member_id == STATIC else None
    scribe.note(
        at_ms,
        Event.HEARTBEAT,
        member_id=member_id,
        group_instance_id=instance_id,
        error_code=error_code,
    )


def _commit(scribe: Scribe, at_ms: int, *, offset: int) -> None:
    entry = OffsetEntry("events", 0, offset)
    scribe.note(at_ms, Event.OFFSET_COMMIT, member_id=LEADER, offsets=(entry,))


def _fetch(scribe: Scribe, at_ms: int, *, offset: int) -> None:
    entry = OffsetEntry("events", 0, offset)
    scribe.note(at_ms, Event.OFFSET_FETCH, offsets=(entry,))


def _nth(history: History, event: Event, nth: int = 0) -> int:
    found = [index for index, written in enumerate(history) if written.event is event]
    return found[nth]


def _changed(event: Event, nth: int = 0, **columns: Any) -> Edit:  # noqa: ANN401 - any column
    """Return an edit that replaces columns of the nth event of a kind."""

    def edit(history: History) -> History:
        index = _nth(history, event, nth)
        history[index] = msgspec.structs.replace(history[index], **columns)
        return history

    return edit


def _without(event: Event, nth: int = 0) -> Edit:
    """Return an edit that removes the nth event of a kind."""

    def edit(history: History) -> History:
        del history[_nth(history, event, nth)]
        return history

    return edit


def _inserted(after: Event, nth: int, event: Event, **columns: Any) -> Edit:  # noqa: ANN401 - any
    """Return an edit that adds an event after the nth of a kind, a millisecond later."""

    def edit(history: History) -> History:
        index = _nth(history, after, nth)
        before = history[index]
        extra = TraceEvent(
            event=event,
            ts_us=before.ts_us + 1_000,
            seq=len(history),
            group_id=GROUP,
            broker_id=before.broker_id,
            offsets_partition=7,
            **columns,
        )
        history.insert(index + 1, extra)
        return history

    return edit


def _stuck_generation(history: History) -> History:
    """Give the second generation the number of the first, in every event."""
    return [
        msgspec.structs.replace(event, generation=1) if event.generation == 2 else event  # noqa: PLR2004
        for event in history
    ]


def _second_generation_after_load(history: History) -> History:
    return _inserted(Event.HEARTBEAT, -2, Event.GROUP_EMPTY, generation=5)(history)


BROKEN: Final[dict[str, tuple[str, Edit]]] = {
    "two members own one partition": (
        "I1",
        _changed(Event.ASSIGNED, 0, assignment=assignment_of(1, 2)),
    ),
    "a generation number is used twice": ("I2", _stuck_generation),
    "a generation number goes down": ("I2", _changed(Event.JOIN_COMPLETE, 1, generation=0)),
    "generations do not continue from the load": ("I2", _second_generation_after_load),
    "a parked JoinGroup is never answered": ("I3", _without(Event.JOIN_RESP, 2)),
    "a parked SyncGroup is never answered": ("I3", _without(Event.SYNC_RESP, -1)),
    "a JoinGroup is answered too late": (
        "I3",
        _changed(Event.JOIN_REQ, 1, ts_us=-20_000_000),
    ),
    "a generation has two leaders": (
        "I4",
        _changed(Event.JOIN_RESP, 2, leader_id=STATIC, members=2),
    ),
    "a follower receives the members": ("I4", _changed(Event.JOIN_RESP, 2, members=2)),
    "the leader receives no members": ("I4", _changed(Event.JOIN_RESP, 1, members=0)),
    "a member id comes from nowhere": ("I5", _without(Event.MEMBER_ID_ASSIGNED)),
    "an admitted member id comes from nowhere": (
        "I5",
        _changed(Event.SYNC_RESP, 0, member_id="c9-0009"),
    ),
    "a member that heartbeats is expired": (
        "I6",
        _changed(Event.HEARTBEAT, 3, ts_us=14_999_000),
    ),
    "a member is expired right after its generation began": (
        "I6",
        lambda history: _without(Event.HEARTBEAT, 3)(
            _without(Event.HEARTBEAT, 1)(_changed(Event.MEMBER_FAILED, 0, ts_us=9_011_000)(history))
        ),
    ),
    "the group rebalances long after calm": (
        "I7",
        _inserted(Event.HEARTBEAT, -1, Event.PREPARE_REBALANCE, generation=2),
    ),
    "the group stays in a join phase": (
        "I7",
        _inserted(Event.SYNC_RESP, -1, Event.PREPARE_REBALANCE, generation=2),
    ),
    "an older commit is fetched": (
        "I8",
        _changed(Event.OFFSET_FETCH, 0, offsets=(OffsetEntry("events", 0, 41),)),
    ),
    "a commit is forgotten by a failover": (
        "I8",
        _changed(Event.OFFSET_FETCH, 1, offsets=(OffsetEntry("events", 0, -1),)),
    ),
    "a load goes back to an older generation": ("I9", _changed(Event.GROUP_LOADED, generation=1)),
    "an instance id stands for two members": (
        "I10",
        _inserted(
            Event.HEARTBEAT, 0, Event.MEMBER_ADDED, member_id="i2-0003", group_instance_id="i2"
        ),
    ),
    "a fenced member is still heard": (
        "I10",
        _inserted(
            Event.HEARTBEAT, 0, Event.STATIC_REPLACED, member_id="i2-0003", group_instance_id="i2"
        ),
    ),
}
"""Description -> the invariant that it breaks, and the edit of the correct history."""


def broken_history(name: str) -> History:
    """Return the correct history with one fault, as named in `BROKEN`."""
    _, edit = BROKEN[name]
    return edit(correct_history())
