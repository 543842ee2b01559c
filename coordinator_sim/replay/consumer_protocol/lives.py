"""The lives of a recorded group's members, as members of the consumer protocol live them.

A plan tells when each member came and how it went. What a classic member does meanwhile, to rejoin
and to sync, has no counterpart in the consumer protocol.
"""

from enum import Enum, unique

from msgspec import Struct

from coordinator_sim.replay.plan import Actor, Ending, GroupPlan, StepKind
from coordinator_sim.replay.restarts import client_of


@unique
class Departure(Enum):
    """How a member goes."""

    STAYS = "stays"
    LEAVES = "leaves"
    """It closes: a heartbeat of epoch -1."""
    STEPS_ASIDE = "steps aside"
    """It is static and closes: a heartbeat of epoch -2, and another process comes for it."""
    FALLS_SILENT = "falls silent"
    """Its process is dead: the session runs out."""


class Life(Struct, frozen=True, kw_only=True):
    """One member, from its first heartbeat to its last; times are milliseconds of the trace.

    Args:
        index: Index of the actor of the plan.
        member_id: Unique among the lives of a plan.
        client: Client id; empty where no line names the member.
        comes_ms: When it joins; None for a member of the beginning.
        goes_ms: When it acts last; None for a member that stays.
    """

    index: int
    member_id: str
    client: str
    instance_id: str | None
    comes_ms: int | None
    goes_ms: int | None
    departure: Departure


class Lives(Struct, frozen=True):
    """The members of one episode.

    Args:
        lives: In the order of the plan's actors.
        own_rejoins: Rejoins of members for reasons of their own, which the lives do without.
    """

    lives: tuple[Life, ...]
    own_rejoins: int


def lives_of(plan: GroupPlan) -> Lives:
    """Return the lives of a plan's members."""
    comes_ms = {
        step.actors[0]: step.at_ms
        for step in plan.steps
        if step.kind in {StepKind.ARRIVE, StepKind.REPLACE}
    }
    loaded = set(plan.loaded)
    members = [actor for actor in plan.actors if actor.index in loaded or actor.index in comes_ms]
    replaced_ms = _replaced_ms(members, comes_ms)
    lives = []
    for actor in members:
        departure, goes_ms = _departure(actor, replaced_ms.get(actor.index))
        lives.append(
            Life(
                index=actor.index,
                member_id=actor.name or f"unnamed-{actor.index}",
                client=client_of(actor.name),
                instance_id=actor.group_instance_id,
                comes_ms=None if actor.index in loaded else comes_ms[actor.index],
                goes_ms=goes_ms,
                departure=departure,
            )
        )
    own = sum(step.kind is StepKind.REJOIN and step.follows_ms is None for step in plan.steps)
    return Lives(tuple(lives), own)


def _replaced_ms(members: list[Actor], comes_ms: dict[int, int]) -> dict[int, int]:
    """Return when the next process of the same instance id comes, by the index of the former."""
    found: dict[int, int] = {}
    latest: dict[str, int] = {}
    for actor in sorted(members, key=lambda each: (comes_ms.get(each.index, -1), each.index)):
        instance_id = actor.group_instance_id
        if instance_id is None:
            continue
        if instance_id in latest:
            found[latest[instance_id]] = comes_ms.get(actor.index, 0)
        latest[instance_id] = actor.index
    return found


def _departure(actor: Actor, replaced_ms: int | None) -> tuple[Departure, int | None]:
    """Return how a member goes, and when it acts last."""
    ends_ms = actor.ends_ms
    if replaced_ms is not None and actor.ending in {Ending.REPLACED, Ending.LEFT, None}:
        silent_ms = replaced_ms if actor.silent_ms is None else actor.silent_ms
        return Departure.STEPS_ASIDE, silent_ms
    if actor.silent_ms is not None:
        return Departure.FALLS_SILENT, actor.silent_ms
    if ends_ms is None or actor.ending in {None, Ending.ID_EXPIRED}:
        return Departure.STAYS, None
    return Departure.LEAVES, ends_ms
