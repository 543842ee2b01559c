"""The group of `keda-thrash` with as many pods at least as the load needs.

The lag of a group that keeps up says nothing about how many pods it needs, so the autoscaler must
not go below that number: `min_replica_count` is 6. Lag then adds pods for what comes on top.

Look at: ScaleDecision. In ten drawn worlds (`--varied`, seeds 0 to 9), from the tenth minute to the
thirtieth, nine have no change of the replicas and no rebalance, and one has one of each, where
`keda-thrash` has medians of 7.5 and 8.5. A `behavior` that takes pods away slowly, one in five
minutes, is no cure: in 90 minutes three such worlds had 17, 17 and 18 changes, and the same worlds
of `keda-thrash` 25, 31 and 39.
"""

from typing import Final

from msgspec import structs

from coordinator_sim.sim.scenario import with_settings
from coordinator_sim_scenarios.catalog.keda_thrash import SCENARIO as THRASH

SCENARIO: Final = structs.replace(
    with_settings(THRASH, {"keda.minReplicaCount": "6"}),
    name="keda-thrash-cured",
    title="KEDA keeps as many pods as the load needs",
    story="The group of keda-thrash, which needs six pods; KEDA keeps between six and twelve.",
)
