"""A deploy that restarts the next consumer once the group is stable again, at most a minute later.

coordinator-sim run examples/deploy_when_stable.py
"""

from coordinator_sim.sim.scenario import ConsumerGroupSpec, ConsumerSpec, Scenario, TopicSpec

MEMBERS = tuple(f"consumer-{number}" for number in range(1, 4))
SCENARIO = Scenario(
    name="deploy-when-stable",
    title="A deploy that waits for the group",
    story="The next consumer is restarted once the group is stable again.",
    duration_ms=120_000,
    topics=(TopicSpec(name="orders", partitions=6),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            members=tuple(ConsumerSpec(name=name) for name in MEMBERS),
        ),
    ),
)


def story(world):
    """Restart all members, one after another."""
    yield world.timeout("30s")
    for member in MEMBERS:
        world.restart(member, down="2s")
        yield world.timeout("3s")
        yield world.until("orders-app", "Stable") | world.timeout("1m")
