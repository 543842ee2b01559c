"""Targets that speak the line protocol of `conformance/oracle`: Kafka's own coordinators, and ours.

A channel takes one command and gives its answer: a process behind pipes, or an object.
"""

from typing import Protocol

from conformance.requirements import family_of
from conformance.script.bodies import text
from conformance.targets.target import (
    Answer,
    Call,
    Capability,
    GroupView,
    Json,
    Outcome,
    Unsupported,
    World,
)
from coordinator_sim.harness.kafka_json.records import read_records
from coordinator_sim.protocol.records import LogRecord
from coordinator_sim.wire.offsets_records import encode_key, encode_value

_DESCRIBE_VERSION = 5
_GENERATION = "generationId"
_UNSEEN = -1
"""Names the target's own requests, whose replies no case sees."""


class Channel(Protocol):
    """Where commands go and answers come from."""

    def answer(self, command: Json) -> Json:
        """The answer to one command."""
        ...


class LinesTarget:
    """A coordinator behind the line protocol.

    Args:
        name: What a report calls it.
        channel: Where it listens.
        profile: The only Kafka it is; None for one that can be any.
        producer_generation: What its TxnOffsetCommit calls the member's generation.
        capabilities: What it offers.
    """

    def __init__(
        self,
        name: str,
        channel: Channel,
        *,
        profile: str | None,
        producer_generation: str = _GENERATION,
        capabilities: frozenset[Capability] = frozenset(Capability) - {Capability.INSIDE},
    ) -> None:
        self.name = name
        self.world = World(profile="", settings={})
        self._channel = channel
        self._profile = profile
        self._producer_generation = producer_generation
        self._capabilities = capabilities

    def offers(self, capability: Capability) -> bool:
        """Whether the operations of that capability work."""
        return capability in self._capabilities

    def start(self, world: World) -> None:
        """A new world behind the same channel."""
        if self._profile not in (None, world.profile):
            raise Unsupported(f"{self.name} is Kafka {self._profile}, not {world.profile}")
        self.world = world
        command: Json = {
            "op": "init",
            "config": world.settings,
            "partitions": world.partitions,
            "seed": 0,
        }
        if self._profile is None:
            command["profile"] = world.profile
            command["trace"] = world.trace
        self._ask(command)
        if world.topics is not None:
            present = [{"name": name, "partitions": n} for name, n in world.topics.items()]
            self._ask({"op": "topics", "set": present})

    def call(self, call: Call) -> Outcome:
        """Send a request."""
        data = call.data
        if call.api == "TxnOffsetCommit" and _GENERATION in data:
            data = {**data, self._producer_generation: data[_GENERATION]}
        command: Json = {
            "op": "call",
            "id": call.call_id,
            "api": call.api,
            "v": call.version,
            "data": data,
            "clientId": call.client_id,
        }
        if call.connection:
            command["connection"] = call.connection
        return self._ask(command)

    def advance(self, ms: int) -> Outcome:
        """Let virtual time pass."""
        return self._ask({"op": "advance", "ms": ms})

    def operate(self, operation: Json) -> Outcome:
        """Any other op; records go as bytes, the one form that every process reads."""
        if operation["op"] == "append":
            records = [_encoded(record) for record in read_records(operation["records"])]
            return self._ask(operation | {"records": records})
        return self._ask(operation)

    def partition_of(self, group_id: str) -> int:
        """The offsets partition of a group."""
        return int(self._channel.answer({"op": "partitionFor", "group": group_id})["partition"])

    def view(self, group_id: str) -> GroupView | None:
        """The group as DescribeGroups shows it."""
        version = min(_DESCRIBE_VERSION, 0 if family_of(self.world.profile) == "L" else 5)
        data: Json = {"groups": [group_id]}
        if version:
            data["includeAuthorizedOperations"] = False
        answer = self._channel.answer(
            {"op": "call", "id": _UNSEEN, "api": "DescribeGroups", "v": version, "data": data}
        )
        for reply in answer.get("replies", ()):
            if reply.get("id") == _UNSEEN and "data" in reply:
                return _described(reply["data"]["groups"][0])
        raise Unsupported(f"{self.name} does not describe groups: {answer.get('error', 'parked')}")

    def _ask(self, command: Json) -> Outcome:
        answer = self._channel.answer(command)
        if answer.get("error"):
            raise Unsupported(f"{self.name}: {command['op']}: {answer['error']}")
        replies = [_read_reply(reply) for reply in answer.get("replies", ())]
        return Outcome(
            tuple(reply for reply in replies if reply.call_id != _UNSEEN),
            tuple(answer.get("records", ())),
        )


def _encoded(record: LogRecord) -> Json:
    value = None if record.value is None else encode_value(record.value, record.value_version)
    return {"key": text(encode_key(record.key)), "value": None if value is None else text(value)}


def _read_reply(reply: Json) -> Answer:
    data = reply.get("data")
    if data is None:
        data = {"error": reply.get("error")}
    return Answer(int(reply.get("id", _UNSEEN)), int(reply["at"]), data)


def _described(group: Json) -> GroupView | None:
    state = group["groupState"]
    if state == "Dead":
        return None
    return GroupView(
        state="AwaitingSync" if state == "CompletingRebalance" else state,
        protocol_type=group["protocolType"],
        member_ids=tuple(member["memberId"] for member in group["members"]),
    )
