"""Ownership intervals of consumer and streams groups, from member callbacks or coordinator steps.

A target assignment gives no ownership. A member holds the partitions of its last heartbeat answer,
and those it must revoke until it has revoked them. Where members report the partitions that they
get, revoke and lose, the reports count instead. A classic member, in a group that migrates to the
protocol or back, holds the assignment of its SyncGroup answer until its eager rejoin or its next
answer. Reports read their ownership from here, too.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.embedded.contents import is_cooperative
from coordinator_sim.trace.epoch_members import held_at_step
from coordinator_sim.trace.epoch_records import SHARE
from coordinator_sim.trace.events import Event, TraceEvent

_OWN: Final = frozenset({Event.ASSIGNED, Event.REVOKED, Event.LOST})
_GONE: Final = frozenset({Event.MEMBER_LEFT, Event.MEMBER_FAILED, Event.MEMBER_KICKED})
_FAILED: Final = frozenset({Event.MEMBER_FAILED, Event.MEMBER_KICKED})
_ALIVE: Final = frozenset(
    {Event.HEARTBEAT, Event.OFFSET_COMMIT, Event.JOIN_REQ, Event.LEAVE_REQ, Event.MEMBER_STEP}
)
_ENDS_OF_PROCESS: Final = ("crashed", "gone")
STEP_EVENTS: Final = (
    _OWN
    | _GONE
    | _ALIVE
    | {Event.LIFECYCLE, Event.GROUP_DEAD, Event.STATIC_REPLACED, Event.SYNC_RESP}
)
"""Events that holdings are read from."""


class StepHolding(Struct, frozen=True, kw_only=True):
    """One stretch of time in which a member held a resource.

    Args:
        first_generation: The member's epoch when it began; None where nothing tells.
        last_generation: The member's epoch when it ended.
    """

    resource: str
    member_key: str
    from_us: int
    to_us: int
    first_generation: int | None
    last_generation: int | None


class _Open(Struct):
    since_us: int
    generation: int | None


class _Holder(Struct):
    """A member while its events pass."""

    held: dict[str, _Open]
    epoch: int | None = None
    client_id: str | None = None
    alive_us: int | None = None


def tells_holdings(event: TraceEvent) -> bool:
    """Whether an event is a step after which a member alone holds what it has.

    Members of a share group hold partitions together: such a group has no owners.
    """
    return event.event is Event.MEMBER_STEP and event.protocol_type != SHARE


def step_holdings(events: Iterable[TraceEvent], ends_us: int) -> Iterator[StepHolding]:
    """Yield the holdings of one group's members, each when it ends.

    Args:
        events: Of the group, in order; those that are not `STEP_EVENTS` do not count.
        ends_us: End of the trace, until which the last holdings last.
    """
    telling = [event for event in events if event.event in STEP_EVENTS]
    instances = {
        event.member_id: event.group_instance_id
        for event in telling
        if event.member_id and event.group_instance_id
    }
    own = {
        event.member_id
        for event in telling
        if event.event is Event.ASSIGNED and "resources" in event.attrs
    }
    classic = {event.member_id for event in telling if _is_answer(event)}
    holders: dict[str, _Holder] = {}
    for event in telling:
        if event.event is Event.GROUP_DEAD:
            for key, holder in holders.items():
                yield from _let_go(key, holder, list(holder.held), event.ts_us)
        elif event.event is Event.LIFECYCLE:
            yield from _ended(holders, event)
        elif event.member_id or event.group_instance_id:
            member_id = event.member_id or ""
            key = event.group_instance_id or instances.get(member_id) or member_id
            holder = holders.setdefault(key, _Holder({}))
            if member_id in classic:
                yield from _of_classic_member(key, holder, event)
            yield from _of_member(key, holder, event, is_own=member_id in own | classic)
    for key, holder in holders.items():
        yield from _let_go(key, holder, list(holder.held), ends_us)


def _of_member(
    key: str, holder: _Holder, event: TraceEvent, *, is_own: bool
) -> Iterator[StepHolding]:
    """Follow a member: its own words count where it has any, or else its steps."""
    kind = event.event
    holder.client_id = event.client_id or holder.client_id
    if kind in _ALIVE:
        holder.alive_us = event.ts_us
    if kind is Event.MEMBER_STEP:
        holder.epoch = event.generation
        if not is_own:
            yield from _becomes(key, holder, held_at_step(event), event.ts_us)
    elif kind in _OWN and "resources" in event.attrs:
        named = event.attrs["resources"].split()
        if kind is Event.ASSIGNED:
            for resource in named:
                holder.held.setdefault(resource, _Open(event.ts_us, holder.epoch))
        else:
            yield from _let_go(key, holder, named, event.ts_us)
    elif kind in _GONE:
        yield from _let_go(key, holder, list(holder.held), _gone_us(holder, event))


def _of_classic_member(key: str, holder: _Holder, event: TraceEvent) -> Iterator[StepHolding]:
    """Follow a classic member: its answers give, and its eager rejoins take."""
    if _is_answer(event):
        holder.epoch = event.generation
        yield from _becomes(key, holder, held_at_step(event), event.ts_us)
    elif event.event is Event.JOIN_REQ and _is_eager(event):
        yield from _let_go(key, holder, list(holder.held), event.ts_us)


def _is_answer(event: TraceEvent) -> bool:
    """Whether a classic member is told here what it has."""
    is_ok = event.error_code in {None, ErrorCode.NONE}
    return event.event is Event.SYNC_RESP and is_ok and event.assignment is not None


def _is_eager(event: TraceEvent) -> bool:
    """Whether a member gives up everything before it sends this JoinGroup.

    A member is cooperative if all its assignors are. Source: kafka 4.4, ConsumerCoordinator, where
    the rebalance protocol is chosen.
    """
    names = event.attrs.get("protocols", "").split(",")
    return not all(map(is_cooperative, names))


def _becomes(key: str, holder: _Holder, wanted: list[str], at_us: int) -> Iterator[StepHolding]:
    stays = set(wanted)
    yield from _let_go(key, holder, [name for name in holder.held if name not in stays], at_us)
    for resource in wanted:
        holder.held.setdefault(resource, _Open(at_us, holder.epoch))


def _let_go(
    key: str, holder: _Holder, resources: Iterable[str], at_us: int
) -> Iterator[StepHolding]:
    for resource in resources:
        opened = holder.held.pop(resource, None)
        if opened is not None and at_us > opened.since_us:
            yield StepHolding(
                resource=resource,
                member_key=key,
                from_us=opened.since_us,
                to_us=at_us,
                first_generation=opened.generation,
                last_generation=holder.epoch,
            )


def _ended(holders: dict[str, _Holder], event: TraceEvent) -> Iterator[StepHolding]:
    """A process has ended, and what its member held with it."""
    if event.reason_text not in _ENDS_OF_PROCESS or event.client_id is None:
        return
    for key, holder in holders.items():
        if holder.client_id == event.client_id:
            yield from _let_go(key, holder, list(holder.held), event.ts_us)


def _gone_us(holder: _Holder, event: TraceEvent) -> int:
    """When a member went: a silent one at its last sign of life, a session before at the latest."""
    if event.event not in _FAILED or holder.alive_us is None:
        return event.ts_us
    session_us = (event.session_timeout_ms or 0) * 1_000
    silent_since_us = event.ts_us - session_us if session_us else event.ts_us
    return min(event.ts_us, max(holder.alive_us, silent_since_us))
