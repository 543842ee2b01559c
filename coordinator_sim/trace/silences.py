"""`Silences`: when the sessions of a group's members ran out, as their requests show it.

A coordinator removes a member that it heard nothing of for a session timeout. Requests and answers
show both: the last sign of life, and the timeout that the member asked for.

Source: kafka 4.4, GroupMetadataManager.rescheduleClassicGroupMemberHeartbeat and its callers.
"""

from typing import Final

from coordinator_sim.kafka.errors import ErrorCode

_MS: Final = 1_000
"""Microseconds of a millisecond."""
_HEARD: Final = frozenset({ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS})
"""Answers to a member whose session began anew."""


class Silences:
    """Last signs of life of the members of one group."""

    _heard_us: dict[str, int]
    _session_us: dict[str, int]

    def __init__(self) -> None:
        self._heard_us = {}
        self._session_us = {}

    def joined(self, member_id: str, session_timeout_ms: int, at_us: int) -> None:
        """Note a member that is in a generation from an instant on."""
        self._session_us[member_id] = session_timeout_ms * _MS
        self._heard_us[member_id] = at_us

    def heard(self, member_id: str, error: ErrorCode | None, at_us: int) -> None:
        """Note an answered request; those of unknown members and refused ones say nothing."""
        if error in _HEARD and member_id in self._session_us:
            self._heard_us[member_id] = max(at_us, self._heard_us[member_id])

    def ran_out_us(self, member_id: str, until_us: int) -> int | None:
        """Return when a member's session ran out; None if not by then, or if it never joined."""
        session_us = self._session_us.get(member_id)
        if session_us is None:
            return None
        at_us = self._heard_us[member_id] + session_us
        return at_us if at_us <= until_us else None

    def session_timeout_ms(self, member_id: str) -> int | None:
        """Return the session timeout that a member asked for; None if it never joined."""
        session_us = self._session_us.get(member_id)
        return None if session_us is None else session_us // _MS

    def forget(self, member_id: str) -> None:
        """Stop following a member that has left the group."""
        self._heard_us.pop(member_id, None)
        self._session_us.pop(member_id, None)
