"""`ToldGroup`: what requests and their answers have told of a group so far."""

from dataclasses import dataclass, field
from typing import Any

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from coordinator_sim.trace.events import RebalanceReason
from coordinator_sim.trace.exchange import Exchange
from coordinator_sim.trace.silences import Silences


@dataclass(slots=True)
class ToldGroup:
    """One group, as its members' requests and the answers to them show it."""

    generation: int | None = None
    members: dict[str, str | None] = field(default_factory=dict)
    """Members of the generation, with their instance ids."""
    subscriptions: dict[str, bytes] = field(default_factory=dict)
    leader_id: str = ""
    synced: int | None = None
    """The generation whose assignment was received."""
    began_us: int | None = None
    """First sign that the generation ended."""
    reason: RebalanceReason | None = None
    cause: dict[str, Any] = field(default_factory=dict)
    joins: dict[int, tuple[int, Exchange]] = field(default_factory=dict)
    silences: Silences = field(default_factory=Silences)

    def begin(self, at_us: int, reason: RebalanceReason | None, cause: dict[str, Any]) -> None:
        """Note a sign that the generation ended; the first one counts."""
        if self.began_us is None or at_us < self.began_us:
            self.began_us = at_us
            self.reason, self.cause = reason, cause

    def holder(self, instance_id: str | None) -> str | None:
        """Return the member that has an instance id; None without one."""
        held = {name: member_id for member_id, name in self.members.items() if name is not None}
        return None if instance_id is None else held.get(instance_id)

    def take_over(self, instance_id: str, member_id: str) -> str | None:
        """Give a static member its new id, and return its old one; None where it has no other."""
        old_id = self.holder(instance_id)
        if old_id is None or old_id == member_id:
            return None
        self.members = {
            member_id if each == old_id else each: name for each, name in self.members.items()
        }
        self.silences.forget(old_id)
        return old_id

    def remove(self, member_id: str | None) -> bool:
        """Remove a member; False if the group has no such member."""
        if member_id is None or member_id not in self.members:
            return False
        del self.members[member_id]
        self.silences.forget(member_id)
        return True

    def empty(self, generation: int) -> None:
        """Note the generation in which nobody is left."""
        self.generation, self.members = generation, {}
        self.began_us, self.reason, self.cause = None, None, {}

    def was_empty_before(self, generation: int, failed: int) -> bool:
        """Whether the group was empty for a generation that no request is in.

        Args:
            generation: The generation that comes.
            failed: How many members of the last one failed since.
        """
        skipped = self.generation is not None and generation == self.generation + 2
        return skipped and 0 < failed == len(self.members)

    def failures(self, members: dict[str, str | None], at_us: int) -> list[tuple[str, int]]:
        """Return who is not in the next generation as its session ran out, and when it did.

        A member that was removed before its session ran out is omitted: a join timeout did that.

        Args:
            members: Members of the next generation, with their instance ids.
            at_us: When that generation was complete.

        Returns:
            Member ids and instants, in the order of the instants.
        """
        stay = {*members, *filter(None, members.values())}
        found = []
        for member_id, name in self.members.items():
            ran_out_us = self.silences.ran_out_us(member_id, at_us)
            if not {member_id, name} & stay and ran_out_us is not None:
                found.append((member_id, ran_out_us))
        return sorted(found, key=lambda entry: entry[1])

    def cause_of(
        self, first: Exchange, members: dict[str, str | None]
    ) -> tuple[RebalanceReason, dict[str, Any]]:
        """Return why the group rebalanced, as far as its members show it.

        Args:
            first: The first JoinGroup of the next generation.
            members: Members of that generation, with their instance ids.

        Returns:
            The reason, and what tells more of it, by columns of an event.
        """
        # Who joins an empty group first leads it.
        joined = first.response.member_id if self.members else first.response.leader
        known = {*self.members, *filter(None, self.members.values())}
        new = [each for each, name in members.items() if not {each, name} & known]
        if self.members and new and joined not in new:
            # A member that is told of a rebalance may be answered before the one that caused it.
            named = {"member_id": new[0]} if len(new) == 1 else {}
            return RebalanceReason.MEMBER_JOINED, named
        is_known = joined in self.members
        said = first.request.reason if joined == first.response.member_id else None
        reason = RebalanceReason.UNKNOWN if is_known else RebalanceReason.MEMBER_JOINED
        return reason, {"member_id": joined, "client_reason": said}


def leave_errors(request: LeaveGroupRequest, response: LeaveGroupResponse) -> dict[int, ErrorCode]:
    """Return what was answered for each member of a LeaveGroup, by its place."""
    if response.error_code is not ErrorCode.NONE or not response.members:
        return dict.fromkeys(range(len(request.members)), response.error_code)
    return {
        index: answered.error_code
        for index, answered in enumerate(response.members[: len(request.members)])
    }
