"""A plan whose dynamic members have become static: `group.instance.id=stable`.

Every process keeps one instance id over its restarts. A static member that stops in good order
sends no LeaveGroup: it falls silent where the trace has it leave, and comes back where the trace
has its successor join. Source: KIP-345; AbstractCoordinator.maybeLeaveGroup.
"""

from dataclasses import replace as changed
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.replay.plan import Actor, Ending, GroupPlan, Step, StepKind
from coordinator_sim.replay.restarts import NOBODY, Passage, Restart, client_of, restarts_in

_GOES: Final = frozenset({Ending.LEFT, Ending.FAILED, Ending.KICKED})
"""Endings after which a process may come back."""


class StablePlan(Struct, frozen=True):
    """A plan of static members.

    Args:
        restarts: Restarts that were recognised, in order of return.
        leavers: Members that would have left and now go silent.
    """

    plan: GroupPlan
    restarts: list[Restart]
    leavers: int


def has_static_members(plan: GroupPlan) -> bool:
    """Whether some member of the source is static."""
    return any(actor.group_instance_id is not None for actor in plan.actors)


def with_stable_ids(plan: GroupPlan, session_timeout_ms: int) -> StablePlan:
    """Return the plan with an instance id for every member; the given one is not changed.

    Args:
        plan: The plan of the source.
        session_timeout_ms: Session timeout of the members: a process that is away for longer has
            lost its membership.
    """
    actors = [changed(actor) for actor in plan.actors]
    restarts = restarts_in(_passages(actors), lambda _: session_timeout_ms - 1)
    followers = {restart.came.index: restart.gone.index for restart in restarts}
    _give_instances(actors, followers)
    returned = set(followers.values())
    dynamic = {each.index for each in plan.actors if each.group_instance_id is None}
    leavers: list[int] = []
    for actor in actors:
        if actor.index in dynamic and actor.ending is Ending.LEFT and actor.ends_ms is not None:
            actor.silent_ms = actor.ends_ms
            leavers.append(actor.ends_ms)
            if actor.index not in returned:
                actor.ending = Ending.FAILED
                actor.session_timeout_ms = session_timeout_ms
                actor.nominal_session_timeout_ms = session_timeout_ms
    turns = [*leavers, *(restart.came.at_ms for restart in restarts)]
    static = changed(
        plan,
        actors=actors,
        steps=_static_steps(plan, dynamic, followers),
        parts_ms=min(turns, default=None),
    )
    return StablePlan(static, restarts, len(leavers))


def _passages(actors: list[Actor]) -> list[Passage]:
    """Return who comes and goes; members that are static already keep to themselves."""
    passages = []
    for actor in actors:
        if actor.group_instance_id is not None or actor.joined is None:
            continue
        client = client_of(actor.name)
        if actor.arrives_ms is not None:
            passages.append(Passage(actor.arrives_ms, actor.index, client, comes=True))
        if actor.ending in _GOES and actor.ends_ms is not None:
            silent_ms = actor.silent_ms if actor.silent_ms is not None else actor.ends_ms
            passages.append(Passage(silent_ms, actor.index, client, comes=False))
    return passages


def _give_instances(actors: list[Actor], followers: dict[int, int]) -> None:
    """Give every process an instance id: its client id, numbered where several share it."""
    taken = {actor.group_instance_id for actor in actors if actor.group_instance_id is not None}
    counts: dict[str, int] = {}
    # A process is named before its successor, because nobody comes before who went.
    for actor in sorted(actors, key=lambda each: (_came_ms(each), each.index)):
        if actor.group_instance_id is not None:
            continue
        former = followers.get(actor.index)
        if former is not None and actors[former].group_instance_id is not None:
            actor.group_instance_id = actors[former].group_instance_id
            continue
        client = client_of(actor.name) or "unnamed"
        name = client if client != NOBODY and client not in taken else ""
        while not name or name in taken:
            counts[client] = counts.get(client, 1) + 1
            name = f"{client}~{counts[client]}"
        taken.add(name)
        actor.group_instance_id = name


def _came_ms(actor: Actor) -> int:
    return -1 if actor.arrives_ms is None else actor.arrives_ms


def _static_steps(plan: GroupPlan, dynamic: set[int], followers: dict[int, int]) -> list[Step]:
    """Return the steps of static members, which ask for no id and do not leave."""
    steps = []
    for step in plan.steps:
        match step.kind:
            case StepKind.ASK_ID if step.actors[0] in dynamic:
                continue
            case StepKind.LEAVE:
                stay = tuple(index for index in step.actors if index not in dynamic)
                if stay:
                    steps.append(replace(step, actors=stay))
            case StepKind.ARRIVE if step.actors[0] in followers:
                steps.append(replace(step, kind=StepKind.REPLACE))
            case _:
                steps.append(step)
    return steps
