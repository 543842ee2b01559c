"""A trace as text in a test's report."""

from typing import TYPE_CHECKING, Final

from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.trace.story import story_line, widest_group

if TYPE_CHECKING:
    from coordinator_sim_pytest.assertions import Traced

MAX_LINES: Final = 400
"""Largest number of lines shown, the last ones."""


def story_of(traced: "Traced") -> str:
    """Return the last `MAX_LINES` events as lines; the reason where there are none."""
    try:
        events = list(traced.events)
    except (OSError, CoordinatorSimError) as error:
        return f"the trace cannot be had: {error}"
    left_out = max(0, len(events) - MAX_LINES)
    shown = events[left_out:]
    width = widest_group(shown)
    lines = [story_line(event, group_width=width) for event in shown]
    if left_out:
        lines.insert(0, f"... {left_out} events before")
    return "\n".join(lines) or "no event"
