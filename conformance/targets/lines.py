"""Targets with the line protocol of `conformance/oracle`: Kafka's own coordinators, and ours.

A channel takes one command and gives its answer: a process behind pipes, or an object.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from typing import Final, Protocol

from coordinator_sim_conformance.requirements import family_of
from coordinator_sim_conformance.targets import target

_DESCRIBE_VERSION = 5
_GENERATION = "generationId"
_ID_LENGTH: Final = 16
_UNSEEN = -1
"""Call id of the target's own requests, whose replies no case sees."""


_COORDINATOR_ALONE = frozenset(target.Capability) - {
    target.Capability.INSIDE,
    target.Capability.CLUSTER,
    target.Capability.RECORDS,
}


class Channel(Protocol):
    """Takes commands and returns answers."""

    def answer(self, command: target.Json) -> target.Json:
        """Return the answer to one command."""
        ...


class Connections:
    """Simulated sockets of a coordinator without a network: one request of each at a time.

    A broker mutes a channel while it works on a request of it, so that requests behind a parked
    JoinGroup wait as well.
    """

    def __init__(self) -> None:
        self._busy: dict[str, int] = {}
        self._waiting: dict[str, list[target.Call]] = {}

    def may_send(self, call: target.Call) -> bool:
        """Whether the call may be sent now; otherwise it waits for its turn."""
        if not call.connection:
            return True
        if call.connection in self._busy:
            self._waiting.setdefault(call.connection, []).append(call)
            return False
        self._busy[call.connection] = call.call_id
        return True

    def answered(self, call_id: int) -> target.Call | None:
        """Return the waiting call that may be sent after this answer."""
        for connection, asked in self._busy.items():
            if asked == call_id:
                del self._busy[connection]
                waiting = self._waiting.get(connection)
                if not waiting:
                    return None
                following = waiting.pop(0)
                self._busy[connection] = following.call_id
                return following
        return None


class LinesTarget:
    """A coordinator behind the line protocol.

    Args:
        name: Name in reports.
        channel: Channel to the coordinator.
        profile: The only Kafka that it is; None for one that can be any.
        producer_generation: Field name of the member's generation in TxnOffsetCommit.
        capabilities: Capabilities it offers.
    """

    delay_ms = 0

    def __init__(
        self,
        name: str,
        channel: Channel,
        *,
        profile: str | None,
        producer_generation: str = _GENERATION,
        capabilities: frozenset[target.Capability] = _COORDINATOR_ALONE,
    ) -> None:
        self.name = name
        self.world = target.World(profile="", settings={})
        self._channel = channel
        self._profile = profile
        self._producer_generation = producer_generation
        self._connections = Connections()
        self._capabilities = capabilities
        self._topic_ids: dict[str, str] = {}

    def offers(self, capability: target.Capability) -> bool:
        """Whether the operations of that capability work."""
        if self.world.profile and not target.has_groups(capability, self.world.profile):
            return False
        return capability in self._capabilities

    def newest(self, api: str, most: int) -> int:  # noqa: ARG002 - an interface of all targets
        """Return the bound: a script's versions are those of the profile."""
        return most

    def start(self, world: target.World) -> None:
        """Create a new world behind the same channel."""
        if self._profile not in (None, world.profile):
            raise target.Unsupported(f"{self.name} is Kafka {self._profile}, not {world.profile}")
        self.world = world
        self._connections = Connections()
        self._topic_ids = {}
        command: target.Json = {
            "op": "init",
            "config": world.settings,
            "partitions": world.partitions,
            "seed": 0,
            "started": world.started,
        }
        if self._profile is None:
            command["profile"] = world.profile
            command["trace"] = world.trace
            command["switches"] = dict.fromkeys(world.switches, True)
        elif world.switches:
            raise target.Unsupported(f"{self.name} has no switches to set by hand")
        self._ask(command)
        if world.topics is not None:
            present = [{"name": name, "partitions": n} for name, n in world.topics.items()]
            self._ask({"op": "topics", "set": self._identified(present)})

    def call(self, call: target.Call) -> target.Outcome:
        """Send a request, once its connection has the answer to the previous one."""
        if not self._connections.may_send(call):
            return target.Outcome()
        return self._send(call)

    def _send(self, call: target.Call) -> target.Outcome:
        data = call.data
        if call.api == "TxnOffsetCommit" and _GENERATION in data:
            data = {**data, self._producer_generation: data[_GENERATION]}
        command: target.Json = {
            "op": "call",
            "id": call.call_id,
            "api": call.api,
            "v": call.version,
            "data": data,
            "clientId": call.client_id,
        }
        return self._ask(command)

    def advance(self, ms: int, *, early: bool = False) -> target.Outcome:
        """Let virtual time pass."""
        del early  # Time is moved by hand, to the millisecond.
        return self._ask({"op": "advance", "ms": ms})

    def late(self, _since_s: float) -> None:
        """Nothing is late: time is moved by hand."""

    def operate(self, operation: target.Json) -> target.Outcome:
        """Run any other op; topics that it creates get ids."""
        if "set" in operation:
            operation = {**operation, "set": self._identified(operation["set"])}
        return self._ask(operation)

    def topic_ids(self) -> dict[str, str]:
        """Return the id of every topic that was created."""
        return dict(self._topic_ids)

    def _identified(self, topics: Iterable[target.Json]) -> list[target.Json]:
        """Return topics with ids, which are their names filled up."""
        found = []
        for topic in topics:
            name = topic["name"]
            filled = name.encode().ljust(_ID_LENGTH, b"\0")[:_ID_LENGTH]
            self._topic_ids[name] = urlsafe_b64encode(filled).decode().rstrip("=")
            found.append({**topic, "id": self._topic_ids[name]})
        return found

    def partition_of(self, group_id: str) -> int:
        """Return the offsets partition of a group."""
        return int(self._channel.answer({"op": "partitionFor", "group": group_id})["partition"])

    def view(self, group_id: str) -> target.GroupView | None:
        """Return the group as DescribeGroups shows it."""
        version = min(_DESCRIBE_VERSION, 0 if family_of(self.world.profile) == "L" else 5)
        data: target.Json = {"groups": [group_id]}
        if version:
            data["includeAuthorizedOperations"] = False
        answer = self._channel.answer(
            {"op": "call", "id": _UNSEEN, "api": "DescribeGroups", "v": version, "data": data}
        )
        for reply in answer.get("replies", ()):
            if reply.get("id") == _UNSEEN and "data" in reply:
                return target.view_of(reply["data"]["groups"][0])
        raise target.Unsupported(
            f"{self.name} does not describe groups: {answer.get('error', 'parked')}"
        )

    def _ask(self, command: target.Json) -> target.Outcome:
        answer = self._channel.answer(command)
        if answer.get("error"):
            raise target.Unsupported(f"{self.name}: {command['op']}: {answer['error']}")
        replies = [_read_reply(reply) for reply in answer.get("replies", ())]
        answers = tuple(reply for reply in replies if reply.call_id != _UNSEEN)
        records = tuple(answer.get("records", ()))
        for reply in answers:
            following = self._connections.answered(reply.call_id)
            if following is not None:
                later = self._send(following)
                answers, records = answers + later.answers, records + later.records
        return target.Outcome(answers, records)


def _read_reply(reply: target.Json) -> target.Answer:
    data = reply.get("data")
    if data is None:
        data = {"error": reply.get("error")}
    return target.Answer(int(reply.get("id", _UNSEEN)), int(reply["at"]), data)
