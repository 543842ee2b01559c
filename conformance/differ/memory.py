"""A program's knowledge of its world, learnt from the answers alone.

Random draws are made here too, so that all randomness of a program has one source.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

from coordinator_sim_conformance.differ.consumer_memory import ConsumerMemory
from coordinator_sim_conformance.differ.references import Reference
from coordinator_sim_conformance.differ.share_memory import ShareMemory
from coordinator_sim_conformance.differ.streams_memory import StreamsMemory

Json = dict[str, Any]
T = TypeVar("T")

INSTANCES: Final = ("i1", "i2", "i3")
_UNKNOWN_MEMBER: Final = 25
_FENCED: Final = 82
_MEMBER_ID_REQUIRED: Final = 79
_REBALANCE_IN_PROGRESS: Final = 27
_ILLEGAL_GENERATION: Final = 22
_QUIET: Final = {
    "SyncGroup": ("Heartbeat", "OffsetCommit"),
    "Heartbeat": ("Heartbeat", "OffsetCommit", "TxnOffsetCommit", "LeaveGroup", "JoinGroup"),
}
"""Next request of a member of a quiet group after each of these."""
_PLANS: Final = 6
"""Number of plans kept; older ones are dropped."""
_RECENT: Final = 8
"""Number of member ids that are used again."""


@dataclass(slots=True)
class GroupMemory:
    """One group as its answers describe it.

    Args:
        members: Last generation of each issued member id; 0 before the first.
        instances: Instance id of each static member.
    """

    members: dict[str, int] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    leader: str = ""
    protocol_name: str = "range"
    protocol_type: str = "consumer"


@dataclass(slots=True)
class Member:
    """Identity of a member in a request."""

    group_id: str
    member_id: str
    generation: int
    instance: str | None


class Plan(NamedTuple):
    """The next request of a well-behaved client."""

    api: str
    group_id: str
    member_id: str


class Memory:
    """A program's random source and its knowledge.

    Attributes:
        consumers: Its knowledge of consumer groups.
        shares: Its knowledge of share groups.
        streams: Its knowledge of streams groups.
        always_has_protocols: Whether every JoinGroup names a protocol.
        ends: Offsets partition -> ends of batches that may be committed one by one.
        focus: Group and member of the next request; None lets the next draw choose.
        leaves_alone: Whether a LeaveGroup is of one member: in which order Kafka removes several of
            a consumer group is up to a hash that differs from run to run, which shows once such a
            removal is taken back.
        longest_metadata: Bytes of metadata that a commit may have.
        owns_nameless_group: Whether the group of the empty id is this world's alone.
        is_lingering: Whether batches wait some milliseconds for more records.
        plans: Next requests of well-behaved clients, as the answers suggest.

    Args:
        reference: Reference whose API versions are used.
        seed: Seed of all draws.
    """

    def __init__(self, reference: Reference, seed: int) -> None:
        self.reference = reference
        self.random = Random(seed)  # noqa: S311 - draws programs, guards nothing
        self.groups: dict[str, GroupMemory] = {}
        self.consumers = ConsumerMemory()
        self.shares = ShareMemory()
        self.streams = StreamsMemory()
        self.fetchable: tuple[str, ...] = ()
        self.focus: Member | None = None
        self.plans: list[Plan] = []
        self.partitions = 1
        self.ends: dict[int, list[int]] = {}
        self.epoch = 1
        self.topic_count = 0
        self.is_orderly = self.random.random() < 0.6
        self.leaves_alone = False
        self.is_patient = self.random.random() < 0.5
        self.has_static_members = not reference.static_members_join_from or self.chance(0.5)
        self.topics: dict[str, tuple[int, str]] = {}
        self.resigned: list[int] = []
        self.is_held = False
        self.is_lingering = False
        self.is_settled = True
        self.longest_metadata = 0
        self.always_has_protocols = False
        self.owns_nameless_group = True
        self.number = 0

    def start(self, groups: Sequence[str], partitions: int) -> None:
        """Name the groups in play and the number of partitions of `__consumer_offsets`."""
        self.groups = {group: GroupMemory() for group in groups}
        self.fetchable = (*groups, "other")
        self.partitions = partitions

    # -- draws -----------------------------------------------------------------------------

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options."""
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        """Return True with that probability."""
        return self.random.random() < probability

    def version(self, api: str) -> int:
        """Return a version of that API; the newest most often."""
        low, high = self.reference.versions[api]
        return high if self.random.random() < 0.35 else self.random.randint(low, high)

    def join_version(self) -> int:
        """Return a version of JoinGroup that the reference supports in this world."""
        version = self.version("JoinGroup")
        lowest = self.reference.static_members_join_from if self.has_static_members else 0
        return max(version, lowest)

    def group_id(self) -> str:
        """Return a group in play."""
        return self.random.choice(list(self.groups))

    def own_group(self, drawn: str, own: str) -> str:
        """Return the group of a request that Kafka also takes for the empty id.

        Args:
            drawn: The group that was drawn; perhaps empty.
            own: Group in its place where the empty id's group is shared with others.
        """
        return drawn if drawn or self.owns_nameless_group else own

    def member(self) -> Member:
        """Return a member of a group: mostly a known one, sometimes a stranger or out of date."""
        if self.focus is not None:
            return self.focus
        group_id = self.group_id()
        group = self.groups[group_id]
        known = self.candidates(group)
        strangers = ("", "", "ghost") if not self.is_orderly or not known else ("",)
        member_id = self.pick([*known, *known, *known, *strangers])
        slips = [0] * (60 if self.is_orderly else 12)
        generation = group.members.get(member_id, 1) + self.pick([*slips, 1, -1])
        instance = self.pick([None] * 6 + list(INSTANCES))
        if self.is_orderly and member_id and self.chance(0.95):
            instance = group.instances.get(member_id)
        return Member(group_id, member_id, generation, instance)

    def follow_plan(self) -> str | None:
        """Take up one of the plans; return the API of its request, or None without a plan."""
        if not self.plans:
            return None
        plan = self.plans.pop(self.random.randrange(len(self.plans)))
        group = self.groups[plan.group_id]
        generation = group.members.get(plan.member_id, 0)
        instance = group.instances.get(plan.member_id)
        self.focus = Member(plan.group_id, plan.member_id, generation, instance)
        return plan.api

    def candidates(self, group: GroupMemory) -> list[str]:
        """Return ids to use again; an orderly program uses those that may still be members."""
        recent = list(group.members)[-_RECENT:]
        if not self.is_orderly or not recent:
            return recent
        latest = max(group.members.values())
        return [name for name in recent if group.members[name] in (0, latest)] or recent

    # -- learning --------------------------------------------------------------------------

    def learn_records(self, records: Sequence[Json]) -> None:
        """Remember the end of each partition's log, until it is committed."""
        for partition, offset in {each["partition"]: each["offset"] for each in records}.items():
            if self.is_held:
                self.ends.setdefault(partition, []).append(offset + 1)
            else:
                self.ends.pop(partition, None)

    def learn(self, api: str, request: Json, data: Json) -> None:
        """Update the known members from an answer, and plan the next requests."""
        group_id = request.get("groupId", "")
        group = self.groups.get(group_id)
        if group is None:
            return
        error = data.get("errorCode")
        if api == "JoinGroup" and error in (0, _MEMBER_ID_REQUIRED):
            self._learn_join(group, request, data)
            next_api = "SyncGroup" if error == 0 else "JoinGroup"
            self._plan(next_api, group_id, data["memberId"])
            return
        member_id = request.get("memberId", "")
        if error in (_UNKNOWN_MEMBER, _FENCED):
            if self.is_orderly:
                group.members.pop(member_id, None)
        elif error in (_REBALANCE_IN_PROGRESS, _ILLEGAL_GENERATION) and member_id:
            self._plan("JoinGroup", group_id, member_id)
        elif error == 0 and api in _QUIET:
            self._plan(self.pick(_QUIET[api]), group_id, member_id)

    def _learn_join(self, group: GroupMemory, request: Json, data: Json) -> None:
        member_id = data["memberId"]
        group.members[member_id] = max(data["generationId"], 0)
        if request.get("groupInstanceId") is not None:
            group.instances[member_id] = request["groupInstanceId"]
        if data["errorCode"] == 0:
            group.leader = data["leader"]
            group.protocol_name = data["protocolName"] or "range"
            group.protocol_type = request["protocolType"]

    def _plan(self, api: str, group_id: str, member_id: str) -> None:
        self.plans.append(Plan(api, group_id, member_id))
        del self.plans[:-_PLANS]
