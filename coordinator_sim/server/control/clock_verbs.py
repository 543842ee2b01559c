"""The verbs of the control surface for the clock; each function belongs to one route."""

from typing import TYPE_CHECKING, Final

from msgspec import structs

from coordinator_sim.errors import ConfigError
from coordinator_sim.server.control import models
from coordinator_sim.server.control.conditions import Condition, GroupCondition, HitsCondition
from coordinator_sim.server.control.requests import BadRequest, ControlRequest
from coordinator_sim.server.control.views import clock_view, deadline_views, parked_views
from coordinator_sim.server.timekeeper import parse_clock

if TYPE_CHECKING:
    from coordinator_sim.server.control.control import Control

SHOWN_DEADLINES: Final = 1_000
DEFAULT_WITHIN_MS: Final = 600_000
"""Bound of a move with a condition: longer than the longest that a group takes by default.

That is a session of 45 s and a rebalance of `max.poll.interval.ms`, 5 minutes.
"""


def get_clock(control: "Control", _: ControlRequest) -> models.ClockState:
    """Both clocks, every parked request with its deadline, and the next deadlines."""
    view, cluster = clock_of(control), control.cluster
    return models.ClockState(
        **{name: getattr(view, name) for name in view.__struct_fields__},
        parked=parked_views(cluster, view.group_ms),
        deadlines=deadline_views(cluster, view.group_ms)[:SHOWN_DEADLINES],
    )


def set_clock(control: "Control", request: ControlRequest) -> models.ClockView:
    """Go on with another clock; group time never goes back."""
    wanted: models.SetClock = request.body
    control.timekeeper.set_clock(parse_clock(wanted.clock))
    control.tell("clock", "SET", clock=wanted.clock)
    return clock_of(control)


async def advance(control: "Control", request: ControlRequest) -> models.Moved:
    """Move a virtual clock on; the answer is what happened meanwhile, in order.

    Other requests are answered meanwhile. The clock shows how far it is, and may be stopped.
    """
    wanted: models.Advance = request.body
    keeper, before = control.timekeeper, control.feed.last_seq
    if wanted.ms is None:
        keeper.step()
        return _moved(control, before, is_there=True)
    return _moved(control, before, is_there=await keeper.advance(wanted.ms))


async def run_until(control: "Control", request: ControlRequest) -> models.Moved:
    """Move a virtual clock to an instant, or until a condition holds; the answer is as advance's.

    A state that a group leaves again at the same instant is not seen.
    """
    wanted: models.RunUntil = request.body
    keeper, before = control.timekeeper, control.feed.last_seq
    condition = _condition(control, wanted)
    if condition is None:
        is_there = await keeper.run_until(wanted.group_ms or 0)
        return _moved(control, before, is_there=is_there)
    within_ms = DEFAULT_WITHIN_MS if wanted.within_ms is None else wanted.within_ms
    is_there = await keeper.run_until_met(condition, within_ms)
    moved = _moved(control, before, is_there=is_there)
    return structs.replace(moved, is_met=condition.is_met(), found=condition.found())


def _condition(control: "Control", wanted: models.RunUntil) -> Condition | None:
    """The condition that is asked for; None where it is an instant.

    Raises:
        BadRequest: it is not one instant or one condition, or the condition wants nothing.
    """
    named = [each for each in (wanted.group_ms, wanted.group, wanted.fault) if each is not None]
    if len(named) != 1:
        raise BadRequest(f"run-until wants one of group_ms, group and fault, not {len(named)}")
    if wanted.fault is not None:
        return HitsCondition(control, wanted.fault)
    if wanted.group is None:
        if wanted.within_ms is not None:
            raise BadRequest("within_ms bounds a condition: leave it out beside group_ms")
        return None
    if wanted.group == models.GroupWanted(group_id=wanted.group.group_id):
        raise BadRequest(
            f"group {wanted.group.group_id!r}: wants a state, members, generation or min_generation"
        )
    return GroupCondition(control, wanted.group)


def stop_clock(control: "Control", _: ControlRequest) -> models.ClockView:
    """Call off the advance that is under way; the clock stays where it is then."""
    if not control.timekeeper.call_off():
        raise ConfigError("no advance is under way")
    return clock_of(control)


def _moved(control: "Control", before: int, *, is_there: bool) -> models.Moved:
    """The result of a move, with the events after an item of the feed."""
    fired, is_whole = tuple(control.feed.after(before)), not control.feed.is_gone(before)
    control.tell("clock", "MOVED" if is_there else "STOPPED", fired=len(fired))
    return models.Moved(clock=clock_of(control), fired=fired, is_there=is_there, is_whole=is_whole)


def clock_of(control: "Control") -> models.ClockView:
    """Both clocks, and the advance that is under way."""
    return clock_view(control.cluster, control.timekeeper, control.now())
