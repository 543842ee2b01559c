"""A group with epochs, followed record by record: consumer, share and streams groups.

Everything that a coordinator decides about such a group is a batch of records. The coordinator's
own trace and the offsets topic's are therefore one derivation: an `EpochGroupStory` is the state of
one group by its records, and `epoch_batches` derives the events of each batch. Callers pass facts
that records lack, such as why a member left, as a `Beside`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.messages.consumer_group_records import ConsumerGroupMetadataValue
from coordinator_sim.messages.embedded.contents import SERVER_PREFIX
from coordinator_sim.messages.share_group_records import ShareGroupMetadataValue
from coordinator_sim.messages.streams_group_records import StreamsGroupMetadataValue
from coordinator_sim.trace.epoch_members import Part, SeenMember, TopicName, id_text
from coordinator_sim.trace.epoch_records import SHARE, STREAMS
from coordinator_sim.trace.events import Event

GROUP_TYPE: Final = "group_type"
"""Attribute of the events that groups without epochs have too, with the group's type."""
SCANNED: Final = "topics"
"""Attribute of the LIFECYCLE event of a scan for expressions: how many topics were looked at."""
TEMPORARY: Final = "temporary"
"""Attribute of a static member that left for a while."""
AWAY: Final = "temporarily"
"""Its value, as brokers log it."""
FROM_TYPE: Final = "from_type"
"""Attribute of a conversion: the type that the group had."""
TO_TYPE: Final = "to_type"
"""Attribute of a conversion: the type that the group has from then on."""
DELAY: Final = "delay_ms"
"""Attribute of the first target of a streams group: how long it has waited for more members."""
CONVERTED: Final = "group converted"
"""Reason of the LIFECYCLE event of a group that is of another type from then on."""
_NOTHING: Final[Mapping[str, Any]] = {}
_DEFAULT_ASSIGNOR: Final = "default"
"""Where no member asks for an assignor, and nobody tells which is the broker's first."""
_ONLY_ASSIGNORS: Final = {SHARE: "simple", STREAMS: "sticky"}
"""Of types of groups that have one assignor alone. Source: SimpleAssignor, StickyTaskAssignor."""
SHARE_PROTOCOL: Final = f"{SERVER_PREFIX}{_ONLY_ASSIGNORS[SHARE]}"
"""Protocol name of every target of a share group, and of no other group."""
NO_EPOCH: Final = -1
EpochValue = ConsumerGroupMetadataValue | ShareGroupMetadataValue | StreamsGroupMetadataValue
"""What a record says of a group's epoch."""

Told = tuple[Event, dict[str, Any]]
"""An event and its columns, those of time and group left out."""

UNTOLD_CONFIDENCE: Final = 0.5
"""Confidence of a departure of which nothing shows whether the member left or failed."""
LEFT_OR_FAILED: Final = "left or failed"


def is_evident(confidence: float) -> bool:
    """Whether a departure of this confidence shows whether the member left or failed."""
    return confidence > UNTOLD_CONFIDENCE


class Beside(Struct, frozen=True, kw_only=True, gc=False):
    """Facts about a batch that its records lack.

    Args:
        departure: The event of members that go: they left, failed, or were removed.
        departed: More columns of that event, such as the session timeout.
        assignor: Who computed a target; None where members' wishes decide.
        delay_ms: How long the first target of a streams group has waited for more members.
        name_of: The names of topics.
        had_members: Whether the classic group that this one was until now had any.
        has_hash: Whether the release has a hash of topics, be it 0.
        judge: Says of a member that goes what `departure` and `departed` say of all, for readers
            that can only infer it.
    """

    departure: Event = Event.MEMBER_LEFT
    departed: Mapping[str, Any] = _NOTHING
    assignor: str | None = None
    delay_ms: int = 0
    name_of: TopicName = id_text
    had_members: bool = False
    has_hash: bool = False
    judge: Callable[[SeenMember], tuple[Event, Mapping[str, Any]]] | None = None


NOTHING_BESIDE: Final = Beside()
"""No facts beyond the records."""


class EpochGroupStory:
    """State of one group, followed record by record.

    Args:
        group_type: One of `epoch_records.GROUP_TYPES`.

    Attributes:     said: Value of the group's last epoch record; None before the first.
    target_epoch: Epoch of the last target.     members: Members by id, in the order in which they
    came.     topic_names: Topic names by id, for topics that records name.     sources: The topics
    that each subtopology of a streams group reads.
    """

    group_type: str
    said: EpochValue | None
    target_epoch: int
    members: dict[str, SeenMember]
    targets: dict[str, Part]
    topic_names: dict[bytes, str]
    sources: dict[str, tuple[str, ...]]
    _changed: dict[str, None]
    _reconciled: set[str]
    _was_settled: bool

    def __init__(self, group_type: str) -> None:
        self.group_type = group_type
        self.said = None
        self.target_epoch = NO_EPOCH
        self.members = {}
        self.targets = {}
        self.topic_names = {}
        self.sources = {}
        self._changed = {}
        """Members whose targets were written since the last target's epoch was."""
        self._reconciled = set()
        self._was_settled = True

    @property
    def group_epoch(self) -> int:
        """The group epoch of the last epoch record; NO_EPOCH before the first."""
        return NO_EPOCH if self.said is None else self.said.epoch

    @property
    def is_stable(self) -> bool:
        """Whether there are members, and all have reached the newest target."""
        return (
            bool(self.members)
            and self.target_epoch >= self.group_epoch
            and len(self._reconciled) == len(self.members)
        )

    def is_as(self, other: "EpochGroupStory") -> bool:
        """Whether both states have the same epochs and equal members."""
        epochs = self.group_epoch, self.target_epoch
        return epochs == (other.group_epoch, other.target_epoch) and self.members == other.members

    def begin_loaded(self, said: EpochValue, target_epoch: int) -> None:
        """Its members were loaded: take over where it was."""
        self.said = said
        self.new_target(target_epoch)
        self._was_settled = self.is_stable or not self.members

    # -- how it changes ----------------------------------------------------------------------

    def put(self, member: SeenMember) -> None:
        """Add or replace a member."""
        self.members[member.member_id] = member
        if member.is_at(self.target_epoch):
            self._reconciled.add(member.member_id)
        else:
            self._reconciled.discard(member.member_id)

    def remove(self, member_id: str) -> SeenMember | None:
        """Remove a member, and return it."""
        self._reconciled.discard(member_id)
        return self.members.pop(member_id, None)

    def put_target(self, member_id: str, target: Part | None, *, is_new: bool) -> None:
        """Set what a member shall have; None where it shall have nothing any more.

        Args:
            member_id: The member.
            target: Of the record; None for a tombstone.
            is_new: Whether it is part of a new target, and not of one that was taken over.
        """
        self._changed.pop(member_id, None)
        if target is None:
            self.targets.pop(member_id, None)
            return
        self.targets[member_id] = target
        if is_new:
            self._changed[member_id] = None

    def new_target(self, epoch: int) -> list[str]:
        """Another target is complete; return the members whose part has changed."""
        self.target_epoch = epoch
        self._reconciled = {name for name, each in self.members.items() if each.is_at(epoch)}
        changed = [name for name in self._changed if name in self.members]
        self._changed.clear()
        return changed

    def settles(self) -> bool:
        """Whether every member has reached the newest target since this was asked last."""
        is_settled = self.is_stable
        has_settled = is_settled and not self._was_settled
        self._was_settled = is_settled or not self.members
        return has_settled

    def unsettle(self) -> None:
        """Another epoch begins: the next target is to be reached."""
        self._was_settled = False

    # -- what its events have ----------------------------------------------------------------

    def size(self) -> dict[str, Any]:
        """How many members there are, as columns of an event."""
        members = self.members.values()
        return {
            "members": len(members),
            "static_members": sum(each.instance_id is not None for each in members),
        }

    def wished(self) -> str | None:
        """The assignor that most members ask for; None where nobody asks for one."""
        wishes = Counter(each.assignor for each in self.members.values() if each.assignor)
        return max(sorted(wishes), key=wishes.__getitem__, default=None)

    def protocol_name(self, assignor: str | None = None) -> str:
        """The assignor of the group's targets: the given one, or the one that most ask for."""
        known = assignor or _ONLY_ASSIGNORS.get(self.group_type) or self.wished()
        return SERVER_PREFIX + (known or _DEFAULT_ASSIGNOR)

    def name_of(self, known: TopicName) -> TopicName:
        """Return the names of topics: as records tell them, or else as `known` does."""
        names = self.topic_names
        return lambda topic_id: names.get(topic_id) or known(topic_id)
