"""One member's next step towards its target: what it keeps, gives up and gets.

Only the member whose heartbeat is handled moves. A partition is given to it when nobody has it, and
is free when its owner has told that it gave it up.

Source: kafka 4.4, group-coordinator/.../modern/consumer/CurrentAssignmentBuilder.java.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.coordinator.modern.consumer.group import (
    NONE_OWNED,
    UNOWNED,
    ConsumerGroupMember,
    Epochs,
    Owned,
    Target,
    owns_any,
)
from coordinator_sim.coordinator.modern.group import MemberState
from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.kafka.profiles import Profile

_EMPTY: Final[dict[int, int]] = {}


class MemberTarget(Struct, frozen=True):
    """Where a member shall go.

    Args:
        epoch: Of the target.
        partitions: What the member shall have.
        names: Of the topics that it subscribes to, existing or not.
        is_new: Whether its subscription has changed with this heartbeat.
    """

    epoch: int
    partitions: Target
    names: frozenset[str]
    is_new: bool


class CurrentAssignmentBuilder(Struct, frozen=True):
    """A heartbeat that moves its member.

    Args:
        profile: Of the coordinator.
        topics: Of the cluster.
        member: As it is, its subscription updated.
        target: Where it shall go.
        owned: What it reports to have; None when it reports nothing.
        partition_epoch: The epoch of whoever has a partition, or UNOWNED.
    """

    profile: Profile
    topics: KnownTopics
    member: ConsumerGroupMember
    target: MemberTarget
    owned: Owned | None
    partition_epoch: Callable[[bytes, int], int]

    def build(self) -> ConsumerGroupMember | None:
        """The member after the step; None for one that must abandon all and join again."""
        member, target = self.member, self.target
        watches = target.is_new and self.profile.consumer_trims_assignment
        match member.state:
            case MemberState.STABLE:
                if member.member_epoch != target.epoch:
                    return self._next(member.member_epoch)
                return self._trimmed() if watches else member
            case MemberState.UNREVOKED_PARTITIONS:
                if owns_any(self.owned, member.pending_revocation):
                    return self._trimmed() if watches else member
                step = 0 if self.profile.consumer_keeps_epoch_on_revocation else 1
                return self._next(member.member_epoch + step)
            case MemberState.UNRELEASED_PARTITIONS:
                return self._next(member.member_epoch)
            case MemberState.UNKNOWN:
                return None if self.owned is None or self.owned else self._next(target.epoch)

    def _next(self, epoch: int) -> ConsumerGroupMember:
        """Go towards the target; `epoch` is kept while partitions are to be given up.

        Source: CurrentAssignmentBuilder.computeNextAssignment.
        """
        member, target = self.member, self.target
        topics = self.topics.ids_of(target.names)
        kept: dict[bytes, dict[int, int]] = {}
        revoked: dict[bytes, dict[int, int]] = {}
        granted: dict[bytes, list[int]] = {}
        is_unreleased = False
        for topic_id in dict.fromkeys((*target.partitions, *member.assigned)):
            wanted = target.partitions.get(topic_id, ())
            if self.profile.consumer_trims_assignment and topic_id not in topics:
                wanted = ()
            held = member.assigned.get(topic_id, _EMPTY)
            keep = {index: epoch for index, epoch in held.items() if index in set(wanted)}
            leave = {index: epoch for index, epoch in held.items() if index not in keep}
            missing = [index for index in wanted if index not in keep]
            free = [index for index in missing if self._is_free(topic_id, index)]
            is_unreleased = is_unreleased or len(free) < len(missing)
            for found, part in ((kept, keep), (revoked, leave)):
                if part:
                    found[topic_id] = part
            if free:
                granted[topic_id] = free
        if revoked and owns_any(self.owned, revoked):
            return self._stepped(epoch, MemberState.UNREVOKED_PARTITIONS, kept, revoked)
        for topic_id, indexes in granted.items():
            kept.setdefault(topic_id, {}).update(dict.fromkeys(indexes, target.epoch))
        state = MemberState.UNRELEASED_PARTITIONS if is_unreleased else MemberState.STABLE
        return self._stepped(target.epoch, state, kept, NONE_OWNED)

    def _is_free(self, topic_id: bytes, index: int) -> bool:
        """Whether nobody else has a partition."""
        if self.partition_epoch(topic_id, index) == UNOWNED:
            return True
        return index in self.member.pending_revocation.get(topic_id, _EMPTY)

    def _stepped(
        self, epoch: int, state: MemberState, assigned: Epochs, pending: Epochs
    ) -> ConsumerGroupMember:
        return replace(
            self.member.moved(epoch), state=state, assigned=assigned, pending_revocation=pending
        )

    def _trimmed(self) -> ConsumerGroupMember:
        """Give up what the member no longer subscribes to, before there is another target.

        Source: CurrentAssignmentBuilder.updateCurrentAssignment.
        """
        member = self.member
        if not self.target.names and not member.pending_revocation:
            # QUIRK: a member that no record has given anything yet takes no step, one whose record
            # says that it has nothing does: the maps are compared by identity.
            if member.assigned is NONE_OWNED:
                return member
            kept: Epochs = NONE_OWNED
            pending = member.assigned
        else:
            topics = self.topics.ids_of(self.target.names)
            gone = {
                topic_id: held
                for topic_id, held in member.assigned.items()
                if topic_id not in topics
            }
            if not gone:
                return member
            kept = {
                topic_id: held for topic_id, held in member.assigned.items() if topic_id not in gone
            }
            before = member.pending_revocation
            pending = {
                **before,
                **{topic: {**before.get(topic, _EMPTY), **held} for topic, held in gone.items()},
            }
        counted = self.profile.consumer_trim_is_a_step
        moved = member.moved(member.member_epoch) if counted else member
        if pending and owns_any(self.owned, pending):
            state = MemberState.UNREVOKED_PARTITIONS
            return replace(moved, state=state, assigned=kept, pending_revocation=pending)
        return replace(moved, assigned=kept)
