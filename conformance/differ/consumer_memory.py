"""What a program knows of its consumer groups, learnt from the answers alone."""

from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_sim.kafka.resources import TopicPartition

Json = dict[str, Any]
Owned = dict[str, set[int]]
"""Partitions by topic id."""

_FENCED: Final = (25, 110, 111, 82)


@dataclass(slots=True)
class Known:
    """A member's state by the answers that it received.

    Args:
        epoch: Member epoch of its last answer.
        owned: Partitions that it was assigned and has not revoked.
        wanted: Partitions of its last assignment.
        instance: Its instance id.
    """

    epoch: int = 0
    owned: Owned = field(default_factory=dict)
    wanted: Owned = field(default_factory=dict)
    instance: str | None = None


@dataclass(slots=True)
class ConsumerMemory:
    """What a program knows of its consumer groups.

    Args:
        members: By group and member id.
        classic_owned: What classic members were given last, by member id.
        has_static: Whether members may have instance ids.
        has_regex: Whether members may subscribe by expressions.
    """

    members: dict[str, dict[str, Known]] = field(default_factory=dict)
    classic_owned: dict[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    has_static: bool = False
    has_regex: bool = False

    def of(self, group_id: str) -> dict[str, Known]:
        """The known members of a group."""
        return self.members.setdefault(group_id, {})

    def learn(self, request: Json, data: Json) -> None:
        """Learn from the answer to a heartbeat."""
        members = self.of(request["groupId"])
        error = data.get("errorCode")
        if error in _FENCED:
            members.pop(request["memberId"], None)
        if error != 0 or not data.get("memberId"):
            return
        if data["memberEpoch"] < 0:
            if data["memberEpoch"] == -1:
                members.pop(data["memberId"], None)
            return
        known = members.setdefault(data["memberId"], Known())
        known.epoch = data["memberEpoch"]
        known.instance = request["instanceId"] or known.instance
        if request["memberEpoch"] == 0:
            known.owned = {}
        if data.get("assignment") is not None:
            known.wanted = {
                topic["topicId"]: set(topic["partitions"])
                for topic in data["assignment"]["topicPartitions"]
            }
            for topic_id, partitions in known.wanted.items():
                known.owned.setdefault(topic_id, set()).update(partitions)
