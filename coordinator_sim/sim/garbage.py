"""Garbage collections of a varied world: each freezes one member's process, repeatedly."""

from collections.abc import Mapping
from functools import partial

from coordinator_sim.sim.members import Member
from coordinator_sim.sim.scenario.quantiles import drawn
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim.sim.world import US_PER_MS, World


def schedule_collections(world: World, variety: Variety, members: Mapping[str, Member]) -> None:
    """Freeze every member at instants and for durations drawn by its name.

    The instants do not depend on what the member does, so they are the same under every assignor;
    a member that does not run misses its collection.
    """
    if variety.pause_ms:
        for name, member in members.items():
            _schedule_next(world, variety, name, member)


def _schedule_next(world: World, variety: Variety, name: str, member: Member) -> None:
    gap_ms = drawn(variety.pause_gap_ms, world.choices, "collection-gap", name)
    at_us = world.environment.now_us + gap_ms * US_PER_MS
    world.environment.call_at(at_us, partial(_collect, world, variety, name, member))


def _collect(world: World, variety: Variety, name: str, member: Member) -> None:
    for_ms = drawn(variety.pause_ms, world.choices, "collection", name)
    member.pause(for_ms)
    at_us = world.environment.now_us + for_ms * US_PER_MS
    world.environment.call_at(at_us, partial(_schedule_next, world, variety, name, member))
