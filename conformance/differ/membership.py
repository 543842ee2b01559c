"""Draws requests of members: JoinGroup, SyncGroup, Heartbeat, LeaveGroup."""

from base64 import b64encode
from typing import Any, Final

from coordinator_sim_conformance.differ.memory import INSTANCES, Member, Memory

Json = dict[str, Any]
Call = tuple[str, int, Json]

SUBSCRIPTION: Final = b64encode(bytes.fromhex("000000000001000174ffffffff")).decode()
"""A consumer's subscription, version 0, to the topic `t`."""
OTHER_SUBSCRIPTION: Final = b64encode(bytes.fromhex("000000000001000175ffffffff")).decode()
"""A subscription to the topic `u`, of a member that changed its topics."""
_TWO_TOPICS: Final = b64encode(bytes.fromhex("00010000000200017400017500000000ffffffff")).decode()
_JUNK: Final = "AAE="
_USUAL_PROTOCOLS: Final = (
    *(("range",),) * 4,
    ("range", "roundrobin"),
    ("roundrobin", "range"),
    ("sticky", "range", "roundrobin"),
    ("cooperative-sticky", "range"),
)
_PROTOCOLS: Final = (*_USUAL_PROTOCOLS, ("sticky",), ())
_METADATA: Final = (*(SUBSCRIPTION,) * 12, OTHER_SUBSCRIPTION, _TWO_TOPICS, _JUNK, "")


def join(memory: Memory) -> Call:
    """Draw a JoinGroup."""
    who = memory.member()
    version = memory.join_version()
    tempo = memory.reference.tempo
    sessions = tempo.patient_sessions if memory.is_patient else tempo.sessions
    if memory.chance(0.03):
        sessions = (tempo.refused_session,)
    usual = memory.is_orderly and memory.chance(0.95)
    names = memory.pick(_USUAL_PROTOCOLS if usual else _PROTOCOLS)
    if not names and memory.always_has_protocols:
        names = _USUAL_PROTOCOLS[0]
    metadata = memory.pick(_METADATA)
    data: Json = {
        "groupId": memory.pick([who.group_id] * 40 + [""]),
        "sessionTimeoutMs": memory.pick(sessions),
        "memberId": who.member_id,
        "protocolType": memory.pick(
            ["consumer"] * (80 if memory.is_orderly else 14) + ["connect", ""]
        ),
        "protocols": [{"name": name, "metadata": metadata} for name in names],
    }
    if version >= 1:
        timeout_ms = memory.pick(tempo.rebalances)
        if timeout_ms == 1 and not memory.is_orderly and _is_dynamic(who):
            timeout_ms = 0
        data["rebalanceTimeoutMs"] = timeout_ms
    if version >= 5:
        data["groupInstanceId"] = who.instance if memory.has_static_members else None
    if version >= 8:
        data["reason"] = memory.pick((None, "", "why"))
    return "JoinGroup", version, data


def _is_dynamic(who: Member) -> bool:
    """Whether it is surely not static: a Kafka that waits 0 ms loops for ever over static ones.

    Ids of static members begin with their instance id.
    """
    return who.instance is None and (not who.member_id or who.member_id.startswith("c"))


def sync(memory: Memory) -> Call:
    """Draw a SyncGroup, mostly with assignments when it is the leader's."""
    who = memory.member()
    group = memory.groups[who.group_id]
    version = memory.version("SyncGroup")
    if memory.focus is None and memory.chance(0.3):
        who = Member(
            who.group_id,
            group.leader or who.member_id,
            group.members.get(group.leader, who.generation),
            group.instances.get(group.leader),
        )
    assigns = memory.chance(0.9 if group.leader == who.member_id else 0.1)
    data: Json = {
        "groupId": memory.pick([who.group_id] * 40 + [""]),
        "generationId": who.generation,
        "memberId": who.member_id,
        "assignments": _assignments(memory, list(group.members)) if assigns else [],
    }
    if version >= 3:
        data["groupInstanceId"] = memory.pick((None, None, None, who.instance))
    if version >= 5:
        right_type, right_name = group.protocol_type, group.protocol_name
        data["protocolType"] = memory.pick([right_type] * 12 + ["consumer", "connect", None])
        data["protocolName"] = memory.pick([right_name] * 12 + ["sticky", "range", None])
    return "SyncGroup", version, data


def _assignments(memory: Memory, members: list[str]) -> list[Json]:
    """Draw assignments of every member, of all but one, or of a stranger too."""
    if members and memory.chance(0.1):
        members = members[:-1]
    if memory.chance(0.05):
        members = [*members, "stranger"]
    return [
        {"memberId": name, "assignment": b64encode(name[-4:].encode()).decode()} for name in members
    ]


def heartbeat(memory: Memory) -> Call:
    """Draw a Heartbeat."""
    who = memory.member()
    version = memory.version("Heartbeat")
    data: Json = {
        "groupId": memory.pick([who.group_id] * 40 + [""]),
        "generationId": who.generation,
        "memberId": who.member_id,
    }
    if version >= 3:
        data["groupInstanceId"] = memory.pick((None, None, who.instance))
    return "Heartbeat", version, data


def leave(memory: Memory) -> Call:
    """Draw a LeaveGroup of one member or several, by member id or by instance id."""
    who = memory.member()
    version = memory.version("LeaveGroup")
    group_id = memory.pick([who.group_id] * 40 + [""])
    if version < 3:
        return "LeaveGroup", version, {"groupId": group_id, "memberId": who.member_id}
    known = memory.candidates(memory.groups[who.group_id])
    most = 0 if memory.leaves_alone else len(known)
    more = memory.random.sample(known, k=min(most, memory.pick((0, 0, 1, 2))))
    entries: list[Json] = []
    for name in [who.member_id, *more]:
        entry: Json = {"memberId": name, "groupInstanceId": None}
        if memory.chance(0.2):
            entry = {
                "memberId": memory.pick((name, "")),
                "groupInstanceId": memory.pick(INSTANCES),
            }
        if version >= 5:
            entry["reason"] = memory.pick((None, "bye"))
        entries.append(entry)
    if memory.chance(0.02):
        entries = []
    return "LeaveGroup", version, {"groupId": group_id, "members": entries}
