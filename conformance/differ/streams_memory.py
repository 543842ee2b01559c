"""What a program knows of its streams groups, learnt from the answers alone."""

from dataclasses import dataclass, field
from typing import Any, Final

Json = dict[str, Any]
Tasks = dict[str, set[int]]
"""Numbers of tasks by subtopology."""

ROLES: Final = ("activeTasks", "standbyTasks", "warmupTasks")
_FENCED: Final = (25, 110, 111, 82)


@dataclass(slots=True)
class KnownStreams:
    """A streams member's state by the answers that it received.

    Args:
        epoch: Member epoch of its last answer.
        owned: Tasks that it was assigned and has not revoked, by role.
        wanted: Tasks of its last assignment, by role.
        instance: Its instance id.
        endpoint_epoch: Epoch of the endpoints that it received last.
    """

    epoch: int = 0
    owned: dict[str, Tasks] = field(default_factory=lambda: {role: {} for role in ROLES})
    wanted: dict[str, Tasks] = field(default_factory=lambda: {role: {} for role in ROLES})
    instance: str | None = None
    endpoint_epoch: int = 0


@dataclass(slots=True)
class StreamsMemory:
    """What a program knows of its streams groups.

    Args:
        members: By group and member id.
        topologies: What each group mostly runs.
        internal: Partitions of internal topics that groups asked for, by name.
        has_static: Whether members may have instance ids.
        has_offsets: Whether members report how far their copies are.
        has_endpoints: Whether members answer interactive queries.
        is_smooth: Whether groups run one topology, and get the topics that they ask for.
    """

    members: dict[str, dict[str, KnownStreams]] = field(default_factory=dict)
    topologies: dict[str, int] = field(default_factory=dict)
    internal: dict[str, int] = field(default_factory=dict)
    has_static: bool = False
    has_offsets: bool = False
    has_endpoints: bool = False
    is_smooth: bool = False

    def of(self, group_id: str) -> dict[str, KnownStreams]:
        """The known members of a group."""
        return self.members.setdefault(group_id, {})

    def learn(self, request: Json, reply: Json) -> None:
        """Learn from the answer to a heartbeat."""
        data = reply["data"]
        for topic in reply.get("internalTopics", ()):
            self.internal[topic["name"]] = topic["partitions"]
        members = self.of(request["groupId"])
        error, epoch = data.get("errorCode"), data.get("memberEpoch")
        if error in _FENCED or (error == 0 and epoch == -1):
            members.pop(request["memberId"], None)
        if error != 0 or epoch < 0:
            return
        self._learn_member(request, data, members.setdefault(data["memberId"], KnownStreams()))

    def _learn_member(self, request: Json, data: Json, known: KnownStreams) -> None:
        known.epoch = data["memberEpoch"]
        known.instance = request["instanceId"] or known.instance
        if data.get("partitionsByUserEndpoint") is not None:
            known.endpoint_epoch = data["endpointInformationEpoch"]
        if request["memberEpoch"] == 0:
            known.owned = {role: {} for role in ROLES}
        if data.get("activeTasks") is None:
            return
        for role in ROLES:
            known.wanted[role] = {
                each["subtopologyId"]: set(each["partitions"]) for each in data[role]
            }
            for name, numbers in known.wanted[role].items():
                known.owned[role].setdefault(name, set()).update(numbers)
