"""The state of a record that was handed out: with whom it is, how often, and what may follow.

Source: kafka 4.3.1, server/.../share/fetch/InFlightState.java and RecordState.java.
"""

from enum import IntEnum, unique
from typing import Final, NamedTuple

from coordinator_sim.broker.shares.acquisition_locks import AcquisitionLock
from coordinator_sim.errors import InvariantViolation, OperationAborted

NO_MEMBER: Final = ""
"""The member of a record that nobody works on."""


@unique
class RecordState(IntEnum):
    """Delivery states of a record, numbered as in the share coordinator's log."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        """Whether the record is done with. Source: SharePartition.isStateTerminal."""
        return self is RecordState.ACKNOWLEDGED or self is RecordState.ARCHIVED


class DeliveryLimit(NamedTuple):
    """How often a record is handed out, and what it becomes then.

    Args:
        max_count: `share.delivery.count.limit`.
        at_limit: ARCHIVED, or ARCHIVING where the group has a queue for dead letters.
    """

    max_count: int
    at_limit: RecordState = RecordState.ARCHIVED

    @property
    def has_queue(self) -> bool:
        """Whether there is a queue, which takes records one by one."""
        return self.at_limit is RecordState.ARCHIVING


class _Before(NamedTuple):
    """The state before a transition that is not sure yet."""

    state: RecordState
    delivery_count: int
    member_id: str
    delivery_count_limit: int


class InFlightState:
    """The state of one record, or of several in a row.

    A transition is under way from `start_transition` to `complete_transition`: while the share
    coordinator writes it. Nothing else changes the state meanwhile, but `archive`.

    Args:
        state: Where it begins.
        delivery_count: How often it was handed out.
        member_id: Who works on it; `NO_MEMBER` for nobody.
        lock: The member's time.
    """

    __slots__ = ("_before", "_is_archived", "delivery_count", "lock", "member_id", "state")

    def __init__(
        self,
        state: RecordState,
        delivery_count: int,
        member_id: str,
        lock: AcquisitionLock | None = None,
    ) -> None:
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id
        self.lock = lock
        self._before: _Before | None = None
        self._is_archived = False

    @property
    def is_in_transition(self) -> bool:
        """Whether a transition is under way."""
        return self._before is not None

    @property
    def is_acquired(self) -> bool:
        """Whether a member works on it; then it has a member, and no transition is under way."""
        return self.state is RecordState.ACQUIRED

    @property
    def is_acquirable(self) -> bool:
        """Whether a member may have it now."""
        return self.state is RecordState.AVAILABLE and self._before is None

    def copy(self) -> "InFlightState":
        """The same for some of the records, which may change alone from now on."""
        other = InFlightState(self.state, self.delivery_count, self.member_id, self.lock)
        other._before = self._before
        other._is_archived = self._is_archived
        if self.lock is not None:
            self.lock.holder_count += 1
        return other

    def is_like(self, other: "InFlightState") -> bool:
        """Whether nothing tells records with these states apart, now or later."""
        return (
            self.state is other.state is not RecordState.ARCHIVING
            and self.delivery_count == other.delivery_count
            and self.member_id == other.member_id
            and self.lock is other.lock is None
            and not (self.is_in_transition or other.is_in_transition)
        )

    def set_lock(self, lock: AcquisitionLock) -> None:
        """Set the member's time.

        Raises:
            OperationAborted: There is one. Kafka throws too: a batch that was split while its
                release was under way leaves its records available, each with a time.
        """
        if self.lock is not None:
            raise OperationAborted("Existing acquisition lock timeout exists, cannot override.")
        self.lock = lock

    def clear_lock(self) -> None:
        """Stop the member's time, if any."""
        if self.lock is not None:
            self.lock.drop()
            self.lock = None

    def acquire(self, member_id: str) -> None:
        """Hand it to a member once more; it must be acquirable.

        Source: InFlightState.tryUpdateState.
        """
        if not self.is_acquirable:
            raise InvariantViolation("the record is not to be had", self.state.name)
        self.state = RecordState.ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id

    def give_up(self, to: RecordState, limit: DeliveryLimit) -> None:
        """Take it from its member for good; there must be one.

        A record that was handed out as often as may be is archived where it would be available.

        Source: InFlightState.tryUpdateState.
        """
        if not self.is_acquired:
            raise InvariantViolation("nobody works on the record", self.state.name)
        if to is RecordState.AVAILABLE and self.delivery_count >= limit.max_count:
            to = limit.at_limit
        self.state = to
        self.member_id = NO_MEMBER

    def start_transition(self, to: RecordState, limit: DeliveryLimit) -> None:
        """Take it from its member, not for good yet; there must be one.

        Source: InFlightState.startStateTransition.
        """
        before = _Before(self.state, self.delivery_count, self.member_id, limit.max_count)
        self.give_up(to, limit)
        self._before = before

    def complete_transition(self, *, is_written: bool) -> None:
        """End the transition: it is for good, or it is undone.

        Undone, the record is the member's again, or nobody's where the time was over meanwhile.

        Source: InFlightState.completeStateTransition.
        """
        before = self._before
        self._before = None
        if is_written or self._is_archived:
            self.clear_lock()
            return
        if before is None:
            raise InvariantViolation("no transition is under way", self.state.name)
        if self.lock is not None and self.lock.has_expired:
            is_last = before.delivery_count >= before.delivery_count_limit
            self.state = RecordState.ARCHIVED if is_last else RecordState.AVAILABLE
            self.member_id = NO_MEMBER
            self.clear_lock()
        else:
            self.state = before.state
            self.member_id = before.member_id

    def archive(self) -> None:
        """Archive it whatever it is; a transition that is undone leaves it so."""
        self._is_archived = True
        self.state = RecordState.ARCHIVED
        self.member_id = NO_MEMBER
        self.clear_lock()
