"""A rack is lost: two of six members at once, and the broker that coordinates their group.

Three racks hold a broker and two consumers of the consumer protocol each. At 30 s the rack of the
coordinator is without power for 90 s. The group's offsets partition has another leader two
seconds later, which reads the group's records and goes on with its epochs.

Look at: the survivors learn that their coordinator is gone and find the new one, without losing
anything; what the dead members had is handed out when their sessions are over, 45 s after the new
coordinator has loaded the group; and when the rack is back, its members get a share again, from
members that give up one partition each.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    CrashBroker,
    RestartMember,
    Scenario,
    TopicSpec,
)

_OUTAGE_MS: Final = 90_000

SCENARIO: Final = Scenario(
    name="new-rack-lost",
    title="A rack with the coordinator and two members of a new group is lost",
    story="Six consumers with group.protocol=consumer in three racks; at 30 s the rack with the "
    "coordinator and two of them is without power for 90 s.",
    duration_ms=180_000,
    brokers=3,
    failover_ms=2_000,
    topics=(TopicSpec(name="orders", partitions=12),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            settings={"group.protocol": "consumer"},
            members=tuple(
                ConsumerSpec(name=f"consumer-{rack}{number}", rack=f"rack-{rack}")
                for rack in ("a", "b", "c")
                for number in (1, 2)
            ),
        ),
    ),
    happenings=(
        CrashBroker(at_ms=30_000, broker=3, for_ms=_OUTAGE_MS),
        *(
            RestartMember(at_ms=30_000, member=name, down_ms=_OUTAGE_MS, graceful=False)
            for name in ("consumer-c1", "consumer-c2")
        ),
    ),
)
