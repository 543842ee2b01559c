"""The group of `keda-thrash` with as many pods at least as the load needs.

The lag of a group that keeps up says nothing about how many pods it needs, so the autoscaler must
not go below that number: `min_replica_count` is 6. Lag then adds pods for what comes on top.

Look at: ScaleDecision. In ten drawn worlds (`--varied`, seeds 0 to 9), from the tenth minute to the
thirtieth, eight have no change of the replicas and no rebalance, and two have 4 and 7 changes,
where `keda-thrash` has medians of 6.5 and 7.5. A `behavior` that takes pods away slowly, one in
five minutes, is no cure: in 90 minutes three such worlds had 22, 24 and 25 changes, and the same
worlds of `keda-thrash` 35, 37 and 38.
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
