"""A server-side assignor that always fails, for targets whose core runs in this process."""

from coordinator_sim.assignors.foreign.contract import Answer, Member, Topics
from coordinator_sim.assignors.registry import register_server_assignor
from coordinator_sim_conformance.targets.asked import ASSIGNORS, FAILING
from coordinator_sim_conformance.targets.target import World


def register_failing_assignor(world: World) -> None:
    """Register the assignor, if the broker of that world is to have it."""
    if FAILING in world.settings.get(ASSIGNORS, ""):
        register_server_assignor(FAILING, _fail)


def _fail(topics: Topics, members: tuple[Member, ...]) -> Answer:
    raise ValueError(f"asked for {len(topics)} topics and {len(members)} members")
