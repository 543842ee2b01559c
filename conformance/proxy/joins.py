"""Judges answers to JoinGroup."""

from collections.abc import Iterator

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.proxy import rules
from coordinator_sim_conformance.proxy.exchanges import NEVER, Exchange, Flag, flag
from coordinator_sim_conformance.proxy.groups import Generation, GroupModel, Member


def judge_join(group: GroupModel, exchange: Exchange) -> Iterator[Flag]:
    """Flag an answer to JoinGroup by its own fields, and against its generation's answers."""
    reply = exchange.reply
    has_id = exchange.member_id or exchange.instance_id is not None
    if exchange.error == ErrorCode.MEMBER_ID_REQUIRED and (has_id or not reply["memberId"]):
        said = f"MEMBER_ID_REQUIRED with {reply['memberId']!r} to {exchange.member_id!r}"
        yield flag(rules.ID_REQUIRED, exchange, said)
    if exchange.error:
        return
    yield from _by_itself(exchange)
    member_id: str = reply["memberId"]
    before = group.members.get(member_id)
    synced = before.synced if before is not None and exchange.sent > before.synced_at else NEVER
    if reply["generationId"] < synced:
        said = f"generation {reply['generationId']} to {member_id}, which synced in {synced}"
        yield flag(rules.GENERATION_GROWS, exchange, said)
    if not reply["leader"]:  # A group with assignments by the coordinator has none.
        return
    group.members.put(
        member_id,
        Member(
            join_sent=exchange.sent,
            told_at=exchange.replied,
            synced=NEVER if before is None else before.synced,
            synced_at=NEVER if before is None else before.synced_at,
        ),
    )
    generation = group.generation_of(exchange)
    if generation is not None:
        yield from _beside_others(generation, exchange)


def _by_itself(exchange: Exchange) -> Iterator[Flag]:
    reply, asked = exchange.reply, exchange.member_id
    member_id, leader = reply["memberId"], reply["leader"]
    if leader and reply["generationId"] < 1:  # Without a leader it is a member's epoch.
        said = f"JoinGroup is answered with generation {reply['generationId']}"
        yield flag(rules.GENERATION_COUNTS, exchange, said)
    if reply["members"] and member_id != leader:
        said = f"{member_id} is told {len(reply['members'])} members, the leader is {leader}"
        yield flag(rules.LEADER_SEES, exchange, said)
    elif member_id == leader and all(each["memberId"] != leader for each in reply["members"]):
        yield flag(rules.LEADER_SEES, exchange, f"the leader {leader} is not told its own entry")
    offered = [each["name"] for each in exchange.request["protocols"]]
    if reply["protocolName"] not in offered:
        said = f"protocol {reply['protocolName']!r}, offered are {', '.join(offered)}"
        yield flag(rules.OFFERED_PROTOCOL, exchange, said)
    if asked and member_id != asked:
        yield flag(rules.KEEPS_ID, exchange, f"{asked} is answered as {member_id}")


def _beside_others(generation: Generation, exchange: Exchange) -> Iterator[Flag]:
    """Flag what contradicts another answer of the generation, and remember this one."""
    reply = exchange.reply
    member_id: str = reply["memberId"]
    generation.last = exchange.replied
    kind, name = generation.protocol
    own = (reply.get("protocolType"), reply["protocolName"])
    if name != own[1] or (None not in {kind, own[0]} and kind != own[0]):
        said = f"protocol {own} in generation {generation.number}, others have {kind, name}"
        yield flag(rules.ONE_PROTOCOL, exchange, said, _first(generation))
    generation.answered.setdefault(member_id, exchange)
    if generation.told is None and reply["members"] and member_id == reply["leader"]:
        generation.told = exchange
        for answered in generation.answered.values():
            yield from _beside_list(generation, answered, exchange)
    elif generation.told is not None:
        yield from _beside_list(generation, exchange, exchange)


def _beside_list(generation: Generation, answered: Exchange, latest: Exchange) -> Iterator[Flag]:
    """Flag an answer that the leader's list does not allow for."""
    told = generation.told
    if told is None or answered is told:
        return
    members = told.reply["members"]
    has_static = any(each.get("groupInstanceId") is not None for each in members)
    leader, member_id = answered.reply["leader"], answered.reply["memberId"]
    beside = (answered,) if latest is told else (told,)
    if leader != told.reply["leader"] and not has_static:
        said = f"leaders {leader} and {told.reply['leader']} in generation {generation.number}"
        yield flag(rules.ONE_PROTOCOL, latest, said, beside)
    if answered.instance_id is None and all(each["memberId"] != member_id for each in members):
        said = f"{member_id} is in generation {generation.number}, its leader was not told"
        yield flag(rules.ALL_LISTED, latest, said, beside)


def _first(generation: Generation) -> tuple[Exchange, ...]:
    return tuple(list(generation.answered.values())[:1])
