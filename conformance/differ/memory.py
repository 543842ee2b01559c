"""What a program knows of the world it drives: learnt from the answers, never assumed.

Draws are made here too, so that everything random of a program comes from one source.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar

from conformance.differ.references import Reference

Json = dict[str, Any]
T = TypeVar("T")

INSTANCES: Final = ("i1", "i2", "i3")
PROTOCOL_TYPES: Final = ("consumer", "connect", "")
_UNKNOWN_MEMBER: Final = 25
_FENCED: Final = 82
_MEMBER_ID_REQUIRED: Final = 79
_RECENT: Final = 8
"""Ids of members that are used again."""


@dataclass(slots=True)
class GroupMemory:
    """One group as its answers tell it.

    Args:
        members: The last generation of each member id that was given out; 0 before the first.
        instances: The instance id of each static member.
    """

    members: dict[str, int] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    leader: str = ""
    protocol_name: str = "range"
    protocol_type: str = "consumer"


@dataclass(slots=True)
class Member:
    """Who a request says it is."""

    group_id: str
    member_id: str
    generation: int
    instance: str | None


class Memory:
    """A program's random source and what it knows.

    Args:
        reference: Whose API versions are used.
        seed: Of everything drawn.
    """

    __slots__ = (
        "epoch",
        "fetchable",
        "groups",
        "is_held",
        "is_orderly",
        "is_patient",
        "is_settled",
        "number",
        "partitions",
        "random",
        "reference",
        "resigned",
        "topic_count",
        "topics",
    )

    def __init__(self, reference: Reference, seed: int) -> None:
        self.reference = reference
        self.random = Random(seed)  # noqa: S311 - draws programs, guards nothing
        self.groups: dict[str, GroupMemory] = {}
        self.fetchable: tuple[str, ...] = ()
        self.partitions = 1
        self.epoch = 1
        self.topic_count = 0
        self.is_orderly = self.random.random() < 0.6
        self.is_patient = self.random.random() < 0.5
        self.topics: dict[str, tuple[int, str]] = {}
        self.resigned: list[int] = []
        self.is_held = False
        self.is_settled = True
        self.number = 0

    def start(self, groups: Sequence[str], partitions: int) -> None:
        """Name the groups in play and the number of partitions of `__consumer_offsets`."""
        self.groups = {group: GroupMemory() for group in groups}
        self.fetchable = (*groups, "other")
        self.partitions = partitions

    # -- draws -----------------------------------------------------------------------------

    def pick(self, options: Sequence[T]) -> T:
        """One of them."""
        return self.random.choice(options)

    def chance(self, probability: float) -> bool:
        """True with that probability."""
        return self.random.random() < probability

    def version(self, api: str) -> int:
        """A version of that API; the newest most often."""
        low, high = self.reference.versions[api]
        return high if self.random.random() < 0.35 else self.random.randint(low, high)

    def group_id(self) -> str:
        """A group in play."""
        return self.random.choice(list(self.groups))

    def member(self) -> Member:
        """A member of a group: mostly as it is known, sometimes a stranger or out of date."""
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

    def candidates(self, group: GroupMemory) -> list[str]:
        """Ids to use again; an orderly program keeps to those that may still be members."""
        recent = list(group.members)[-_RECENT:]
        if not self.is_orderly or not recent:
            return recent
        latest = max(group.members.values())
        return [name for name in recent if group.members[name] in (0, latest)] or recent

    # -- lessons ---------------------------------------------------------------------------

    def learn(self, api: str, request: Json, data: Json) -> None:
        """Remember who is in, and forget who is told that it is not."""
        group = self.groups.get(request.get("groupId", ""))
        if group is None:
            return
        error = data.get("errorCode")
        if api == "JoinGroup" and error in (0, _MEMBER_ID_REQUIRED):
            group.members[data["memberId"]] = max(data["generationId"], 0)
            if error == 0:
                group.leader = data["leader"]
                group.protocol_name = data["protocolName"] or "range"
                group.protocol_type = request["protocolType"]
                if request.get("groupInstanceId") is not None:
                    group.instances[data["memberId"]] = request["groupInstanceId"]
        elif self.is_orderly and error in (_UNKNOWN_MEMBER, _FENCED):
            group.members.pop(request.get("memberId", ""), None)
