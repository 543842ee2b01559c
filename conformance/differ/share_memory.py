"""What a program knows of its share groups, learnt from the answers alone."""

from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]

_FENCED: Final = (25, 110)


@dataclass(slots=True)
class ShareMemory:
    """What a program knows of its share groups.

    Args:
        members: The epoch of the last answer, by group and member id.
        holds: Whether the share coordinator holds its calls.
    """

    members: dict[str, dict[str, int]] = field(default_factory=dict)
    holds: bool = False

    def of(self, group_id: str) -> dict[str, int]:
        """The known members of a group."""
        return self.members.setdefault(group_id, {})

    def learn(self, request: Json, data: Json) -> None:
        """Learn from the answer to a heartbeat."""
        members = self.of(request["groupId"])
        error = data.get("errorCode")
        if error in _FENCED or (error == 0 and data["memberEpoch"] == -1):
            members.pop(request["memberId"], None)
        elif error == 0 and data.get("memberId"):
            members[data["memberId"]] = data["memberEpoch"]
