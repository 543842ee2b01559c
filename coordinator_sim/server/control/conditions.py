"""Conditions of the control surface: a group that is as wanted, a fault rule that acted.

They only read; the callers wait, on the wall clock or by moving the group clock.
"""

from typing import TYPE_CHECKING, Final

from coordinator_sim.broker.faults.faults import FaultState
from coordinator_sim.errors import ConfigError
from coordinator_sim.server.control.models import GroupSummary, GroupWanted, HitsWanted
from coordinator_sim.server.control.requests import BadRequest, NotFound
from coordinator_sim.server.control.views import group_summary

if TYPE_CHECKING:
    from coordinator_sim.server.control.control import Control

_STATES: Final = {
    "empty": "Empty",
    "preparingrebalance": "PreparingRebalance",
    "awaitingsync": "AwaitingSync",
    "completingrebalance": "CompletingRebalance",
    "stable": "Stable",
    "dead": "Dead",
}
_SYNCING: Final = frozenset({"AwaitingSync", "CompletingRebalance"})


class GroupCondition:
    """A group that is to be as wanted.

    Args:
        control: The server.
        wanted: What the group has to be.

    Raises:
        BadRequest: there is no such state.
    """

    def __init__(self, control: "Control", wanted: GroupWanted) -> None:
        state = wanted.state
        if state is not None and state.lower() not in _STATES:
            raise BadRequest(f"state={state}: wants one of {', '.join(_STATES.values())}")
        self._control = control
        self._wanted = wanted
        self._state = None if state is None else _STATES[state.lower()]

    def is_met(self) -> bool:
        """Whether the group is as wanted."""
        found, wanted, state = self._summary(), self._wanted, self._state
        if found is None:
            return state == "Dead"
        return (
            (state is None or found.state == state or {found.state, state} <= _SYNCING)
            and (wanted.members is None or found.member_count == wanted.members)
            and (wanted.generation is None or found.generation == wanted.generation)
            and (wanted.min_generation is None or found.generation >= wanted.min_generation)
        )

    def told(self) -> int:
        """Number of the newest thing that happened."""
        return self._control.feed.last_seq

    def found(self) -> str:
        """The group as it is."""
        found = self._summary()
        if found is None:
            return f"there is no group {self._wanted.group_id!r}"
        return (
            f"group {found.group_id!r} is {found.state} in generation {found.generation} "
            f"with {found.member_count} members"
        )

    def _summary(self) -> GroupSummary | None:
        return group_summary(self._control.cluster, self._wanted.group_id)


class HitsCondition:
    """A fault rule that is to have acted.

    Args:
        control: The server.
        wanted: Which rule, and how often.

    Raises:
        NotFound: there is no such rule.
        ConfigError: the rule never acts so often.
    """

    def __init__(self, control: "Control", wanted: HitsWanted) -> None:
        self._control = control
        self._wanted = wanted
        state = self._rule()
        if state is None:
            raise NotFound(f"there is no fault rule {wanted.fault_id}")
        times = 1 if state.fault.match.nth is not None else state.fault.times
        if times is not None and wanted.hits > times:
            raise ConfigError(
                f"hits {wanted.hits}: fault rule {wanted.fault_id} acts at most {times} times; "
                "wait for so many, or add a rule without that limit"
            )

    def is_met(self) -> bool:
        """Whether the rule acted so often."""
        state = self._rule()
        return state is not None and state.hits >= self._wanted.hits

    def told(self) -> int:
        """Number of the newest thing that happened."""
        return self._control.feed.last_seq

    def found(self) -> str:
        """The rule as it is."""
        state = self._rule()
        if state is None:
            return f"fault rule {self._wanted.fault_id} is gone"
        return f"fault rule {state.fault_id} acted {state.hits} times"

    def _rule(self) -> FaultState | None:
        rules = self._control.cluster.faults.states()
        return next((each for each in rules if each.fault_id == self._wanted.fault_id), None)


Condition = GroupCondition | HitsCondition
