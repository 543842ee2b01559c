"""The verbs of the control surface for the clock; each function belongs to one route."""

from typing import TYPE_CHECKING, Final

from coordinator_sim.errors import ConfigError
from coordinator_sim.server.clocks import parse_clock
from coordinator_sim.server.control.models import (
    Advance,
    ClockState,
    ClockView,
    Moved,
    RunUntil,
    SetClock,
)
from coordinator_sim.server.control.requests import ControlRequest
from coordinator_sim.server.control.views import clock_view, deadline_views, parked_views

if TYPE_CHECKING:
    from coordinator_sim.server.control.control import Control

SHOWN_DEADLINES: Final = 1_000


def get_clock(control: "Control", _: ControlRequest) -> ClockState:
    """Both clocks, every parked request with its deadline, and the next deadlines."""
    view, cluster = clock_of(control), control.cluster
    return ClockState(
        **{name: getattr(view, name) for name in view.__struct_fields__},
        parked=parked_views(cluster, view.group_ms),
        deadlines=deadline_views(cluster, view.group_ms)[:SHOWN_DEADLINES],
    )


def set_clock(control: "Control", request: ControlRequest) -> ClockView:
    """Go on with another clock; group time never goes back."""
    wanted: SetClock = request.body
    control.timekeeper.set_clock(parse_clock(wanted.clock))
    control.tell("clock", "SET", clock=wanted.clock)
    return clock_of(control)


async def advance(control: "Control", request: ControlRequest) -> Moved:
    """Move a virtual clock on; the answer is what happened meanwhile, in order.

    Other requests are answered meanwhile. The clock shows how far it is, and may be stopped.
    """
    wanted: Advance = request.body
    keeper, before = control.timekeeper, control.feed.last_seq
    if wanted.ms is None:
        keeper.step()
        return _moved(control, before, is_there=True)
    return _moved(control, before, is_there=await keeper.advance(wanted.ms))


async def run_until(control: "Control", request: ControlRequest) -> Moved:
    """Move a virtual clock to an instant; the answer is what happened meanwhile, in order."""
    wanted: RunUntil = request.body
    before = control.feed.last_seq
    is_there = await control.timekeeper.run_until(wanted.group_ms)
    return _moved(control, before, is_there=is_there)


def stop_clock(control: "Control", _: ControlRequest) -> ClockView:
    """Call off the advance that is under way; the clock stays where it is then."""
    if not control.timekeeper.call_off():
        raise ConfigError("no advance is under way")
    return clock_of(control)


def _moved(control: "Control", before: int, *, is_there: bool) -> Moved:
    """The result of a move, with the events after an item of the feed."""
    fired, is_whole = tuple(control.feed.after(before)), not control.feed.is_gone(before)
    control.tell("clock", "MOVED" if is_there else "STOPPED", fired=len(fired))
    return Moved(clock=clock_of(control), fired=fired, is_there=is_there, is_whole=is_whole)


def clock_of(control: "Control") -> ClockView:
    """Both clocks, and the advance that is under way."""
    return clock_view(control.cluster, control.timekeeper, control.now())
