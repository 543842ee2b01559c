"""Draws requests of classic members where groups change their type.

Subscriptions and assignments are those of consumers, with slips; members report what their
SyncGroups gave them. Ids of consumer members appear in classic requests, and the other way round.
"""

from base64 import b64decode, b64encode
from typing import Any, Final

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.consumer_protocol import (
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription
from coordinator_sim_conformance.differ import consumer_requests, membership
from coordinator_sim_conformance.differ.memory import INSTANCES, Memory

Json = dict[str, Any]
Call = tuple[str, int, Json]

_SUBSCRIPTIONS: Final = (
    *(("t",),) * 5,
    *(("t", "u"),) * 4,
    ("u",),
    ("u", "v"),
    ("nope",),
    ("t", "nope"),
    (),
)
_BLOBS: Final = ("", "00", "ffff00000000ffffffff", "0000", "00000000000100", "0001", "0003000000")
"""Bytes that are no subscription, and no assignment."""
_TURN: Final = 40
"""Commands of one turn of a program."""
_PARTITION_COUNTS: Final = {"t": 4, "u": 6, "v": 6}


def join(memory: Memory) -> Call:
    """Draw a JoinGroup of a consumer."""
    api, version, data = membership.join(memory)
    group_id = data["groupId"]
    if memory.chance(0.04):
        data["memberId"] = memory.pick((*memory.consumers.of(group_id), "m1"))
    if version >= 5 and data["memberId"] == "" and memory.consumers.has_static:
        data["groupInstanceId"] = memory.pick((None, *INSTANCES))
    if data.get("rebalanceTimeoutMs") == 0:
        # A Kafka that waits 0 ms loops for ever over static members.
        data["rebalanceTimeoutMs"] = 1
    subscription = _subscription(memory, data["memberId"])
    blob = encode_subscription(subscription, memory.pick((0, 1, 1, 2, 3)))
    # QUIRK: a name that is cut short stops a classic group of Kafka's for good, so none is.
    least = len(encode_subscription(subscription, 0))
    for protocol in data["protocols"]:
        sent = blob if memory.chance(0.98) else _broken(memory, blob, least)
        protocol["metadata"] = b64encode(sent).decode()
    return api, version, data


def sync(memory: Memory) -> Call:
    """Draw a SyncGroup; a leader's brings assignments of consumers."""
    api, version, data = membership.sync(memory)
    entries = data["assignments"]
    places = [
        TopicPartition(topic, index)
        for topic, count in _PARTITION_COUNTS.items()
        for index in range(count)
        if topic == "t" or memory.chance(0.5)
    ]
    memory.random.shuffle(places)
    is_broken = memory.chance(0.04)
    for number, entry in enumerate(entries):
        own = tuple(places[number :: len(entries)])
        if memory.chance(0.03):
            own = (*own, TopicPartition("nope", 0), *places[:1])
        user_data = b"own" if memory.chance(0.01) else None
        blob = encode_assignment(
            ConsumerAssignment(partitions=own, user_data=user_data), memory.pick((0, 1, 2, 3))
        )
        sent = _broken(memory, blob, 0) if is_broken else blob
        entry["assignment"] = b64encode(sent).decode()
    return api, version, data


def heartbeat(memory: Memory) -> Call:
    """Draw a ConsumerGroupHeartbeat, sometimes of a member that was a classic one.

    In every other turn of a program consumer members mostly leave, and classic ones come instead.
    """
    if memory.number // _TURN % 2 and memory.chance(0.6):
        return _leave(memory) or join(memory)
    api, version, data = consumer_requests.heartbeat(memory)
    group = memory.groups.get(data["groupId"])
    if group is not None and group.members and memory.chance(0.08):
        data["memberId"] = memory.pick(list(group.members))
        if memory.chance(0.4):
            data["memberEpoch"] = group.members[data["memberId"]]
    return api, version, data


def _leave(memory: Memory) -> Call | None:
    """Draw a heartbeat by which a consumer member leaves; None if none is known."""
    group_id = memory.group_id()
    members = memory.consumers.of(group_id)
    if not members:
        return None
    member_id = memory.pick(list(members))
    data = consumer_requests.fields(group_id, member_id, memory.pick((-1, -1, -1, -2)))
    data["instanceId"] = members[member_id].instance
    return "ConsumerGroupHeartbeat", 1, data


def learn(memory: Memory, api: str, request: Json, data: Json) -> None:
    """Learn from a SyncGroup what a classic member was given."""
    if api != "SyncGroup" or data.get("errorCode") != 0:
        return
    try:
        given = decode_assignment(b64decode(data["assignment"]))
    except WireFormatError:
        return
    memory.consumers.classic_owned[request["memberId"]] = given.partitions


def _subscription(memory: Memory, member_id: str) -> Subscription:
    """The subscription of a member, which owns what it was given, some of that, or nothing."""
    owned = memory.consumers.classic_owned.get(member_id, ())
    kind = memory.random.random()
    if kind < 0.4:
        owned = ()
    elif kind < 0.6:
        owned = tuple(place for place in owned if memory.chance(0.5))
    return Subscription(
        topics=memory.pick(_SUBSCRIPTIONS),
        owned_partitions=owned,
        generation_id=memory.pick((-1, 1)),
        rack_id=memory.pick((None, None, "", "r1")),
    )


def _broken(memory: Memory, blob: bytes, least: int) -> bytes:
    """Bytes that cannot be read, or a blob that is cut short behind `least` bytes."""
    if memory.chance(0.5) or least >= len(blob):
        return bytes.fromhex(memory.pick(_BLOBS))
    return blob[: memory.random.randrange(least, len(blob))]
