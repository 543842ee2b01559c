"""Judges answers to SyncGroup, and whoever is served in a generation or under an id of before."""

from collections.abc import Iterator

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.proxy import rules
from coordinator_sim_conformance.proxy.exchanges import NEVER, Exchange, Flag, flag
from coordinator_sim_conformance.proxy.groups import Floor, Generation, Gone, GroupModel


def note_sync(group: GroupModel, exchange: Exchange) -> None:
    """Remember what a leader hands in, when it is sent: others may be answered first."""
    generation = group.generations.get(exchange.generation)
    if generation is None or generation.told is None:
        return
    if exchange.member_id == generation.told.reply["leader"]:
        generation.handed_in.append(exchange)


def judge_sync(group: GroupModel, exchange: Exchange) -> Iterator[Flag]:
    """Flag an assignment that is not the leader's."""
    generation = group.generations.get(exchange.generation)
    answered = generation and generation.answered.get(exchange.member_id)
    if exchange.error or generation is None or not answered or exchange.sent < answered.replied:
        return
    if generation.synced == NEVER:
        generation.synced = exchange.replied
    _raise_floor(group, exchange)
    if any(each is exchange for each in generation.handed_in):
        generation.confirmed = True
    generation.given.append(exchange)
    if generation.confirmed:
        for given in generation.given:
            yield from _not_handed_in(generation, given, exchange)
        generation.given.clear()


def judge_served(group: GroupModel, exchange: Exchange) -> Iterator[Flag]:
    """Flag a member that is served although its generation or its id is over."""
    member_id, number, floor = exchange.member_id, exchange.generation, group.floor
    gone, member = group.gone.get(member_id), group.members.get(member_id)
    if gone is not None and exchange.sent > gone.at and _is_over(gone, exchange, floor):
        said = f"{exchange.api} of {member_id}, which has ended, is answered without error"
        yield flag(rules.FENCED_ID, exchange, said, (gone.exchange,))
    if member is None or number < 0 or exchange.api == "JoinGroup":
        return
    synced = member.synced if exchange.sent > member.synced_at else NEVER
    if floor is not None and member.told_at < floor.join_sent and exchange.sent > floor.synced_at:
        synced = max(synced, floor.generation)
    if number < synced:
        said = f"{exchange.api} of {member_id} in generation {number}, the group synced {synced}"
        yield flag(rules.FENCED_GENERATION, exchange, said)


def note_error(group: GroupModel, exchange: Exchange) -> None:
    """Remember an id that the coordinator said is over."""
    member_id = exchange.member_id
    if not member_id:
        return
    if exchange.error == ErrorCode.FENCED_INSTANCE_ID and exchange.instance_id is not None:
        instance_id = exchange.instance_id
        group.gone.put(member_id, Gone(exchange.replied, exchange, instance_id))
    elif exchange.error == ErrorCode.UNKNOWN_MEMBER_ID and member_id not in group.gone:
        group.gone.put(member_id, Gone(exchange.replied, exchange))


def note_leave(group: GroupModel, exchange: Exchange) -> None:
    """Remember ids that have left."""
    if exchange.error:
        return
    left = exchange.reply.get("members")
    if left is None:
        left = [{"memberId": exchange.member_id, "errorCode": 0}]
    for each in left:
        if each["memberId"] and not each["errorCode"]:
            group.gone.put(each["memberId"], Gone(exchange.replied, exchange))


def note_joined(group: GroupModel, exchange: Exchange) -> None:
    """Forget that an id was unknown: it was handed out, and is a member only now."""
    gone = group.gone.get(exchange.reply["memberId"])
    if gone is not None and gone.instance_id is None:
        del group.gone[exchange.reply["memberId"]]


def _is_over(gone: Gone, exchange: Exchange, floor: Floor | None) -> bool:
    """Whether no coordinator can know the id, one that loaded the group from the log neither."""
    if gone.instance_id is not None:
        return exchange.instance_id == gone.instance_id
    if floor is None or exchange.api == "JoinGroup":
        return False
    return floor.join_sent > gone.at and exchange.sent > floor.synced_at


def _raise_floor(group: GroupModel, exchange: Exchange) -> None:
    member = group.members.get(exchange.member_id)
    if member is None or exchange.sent < member.told_at:
        return
    if exchange.generation > member.synced:
        member.synced, member.synced_at = exchange.generation, exchange.replied
    if group.floor is None or member.join_sent > group.floor.join_sent:
        group.floor = Floor(exchange.generation, member.join_sent, exchange.replied)


def _not_handed_in(generation: Generation, given: Exchange, latest: Exchange) -> Iterator[Flag]:
    handed_in = [
        next((one["assignment"] for one in each.request["assignments"] if _is_for(one, given)), "")
        for each in generation.handed_in
    ]
    got = given.reply["assignment"] or ""
    if all(got != (assignment or "") for assignment in handed_in):
        said = (
            f"{given.member_id} is given {len(got)} characters of base64 in generation "
            f"{generation.number} that the leader did not hand in for it"
        )
        evidence = [*generation.handed_in, *(() if given is latest else (given,))]
        yield flag(rules.LEADER_ASSIGNS, latest, said, evidence)


def _is_for(assignment: dict[str, str], given: Exchange) -> bool:
    return assignment["memberId"] == given.member_id
