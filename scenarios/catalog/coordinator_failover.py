"""Coordinator failover during a rebalance.

A fifth consumer starts, and while the coordinator waits for the four others to rejoin, its
partition of `__consumer_offsets` moves to another broker. Parked JoinGroups are answered
NOT_COORDINATOR. The new coordinator loads what was stored: the old generation, Stable. The
newcomer's member id was never stored, so it is unknown there; the old members' ids are valid.

Look at: the generation that the interrupted rebalance would have had is issued by the new
coordinator; UNKNOWN_MEMBER_ID for the newcomer, which then asks for a new id; no partition is
lost on the way, because nobody had synced.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    MoveCoordinator,
    Scenario,
    StartMember,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="coordinator-failover",
    title="Coordinator failover during a rebalance",
    story="A fifth consumer joins at 30 s; half a second into the rebalance the coordinator moves "
    "to another broker, which knows only the last stored generation.",
    duration_ms=90_000,
    topics=(TopicSpec(name="orders", partitions=12),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            members=(
                *(ConsumerSpec(name=f"consumer-{number}") for number in range(1, 5)),
                ConsumerSpec(name="consumer-5", start_ms=None),
            ),
        ),
    ),
    happenings=(
        StartMember(at_ms=30_000, member="consumer-5"),
        MoveCoordinator(at_ms=30_500, group_id="orders-app"),
    ),
)
