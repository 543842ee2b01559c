"""Timeouts in the JoinGroups of a replay: those of the plan, or the known ones of the user."""

from coordinator_sim.replay.plan import NEVER_MS, Ending, GroupPlan
from coordinator_sim.replay.players import Player
from coordinator_sim.replay.settings import Settings
from coordinator_sim.trace.history import LINE_SKEW_MS


class JoinTimeouts:
    """Chooses the timeouts of JoinGroups: they fire where the trace, or a known value, says so."""

    def __init__(self, plan: GroupPlan, settings: Settings) -> None:
        self._plan = plan
        self._session_ms = settings.session_timeout_ms
        self._rebalance_ms = settings.rebalance_timeout_ms

    def session_ms(self, player: Player) -> int:
        """Return its session timeout; one that never fires spares a living member heartbeats."""
        known_ms, actor = self._session_ms, player.actor
        if known_ms is None or actor.ending not in {Ending.FAILED, Ending.ID_EXPIRED}:
            return actor.session_timeout_ms
        return max(1, actor.session_timeout_ms + known_ms - actor.nominal_session_timeout_ms)

    def rebalance_ms(self, position: int, running: int) -> int:
        """Return the timeout of a JoinGroup in a rebalance, which counts for the next one.

        A JoinGroup that begins a rebalance counts for that one too.

        Args:
            position: Index of the rebalance that the JoinGroup belongs to.
            running: Index of the rebalance that began last.
        """
        fitted_ms = self._fitted_ms(position, running)
        known_ms = self._rebalance_ms
        if known_ms is None or abs(known_ms - fitted_ms) <= LINE_SKEW_MS:
            return fitted_ms
        return known_ms

    def _fitted_ms(self, position: int, running: int) -> int:
        """Return the timeout that fires where the trace shows a timeout."""
        scripts = self._plan.scripts
        chosen_ms = NEVER_MS
        if 0 <= position < len(scripts):
            chosen_ms = scripts[position].sync_timeout_ms
        if position + 1 < len(scripts) and chosen_ms == NEVER_MS:
            chosen_ms = scripts[position + 1].rebalance_timeout_ms
        begins = 0 <= position < len(scripts) and position > running
        return min(chosen_ms, scripts[position].rebalance_timeout_ms) if begins else chosen_ms
