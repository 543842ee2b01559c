"""The rolling deploy of `consumer-rolling-deploy`, with the consumer protocol (KIP-848).

The same eight consumers of 32 partitions are restarted one after the other, with
`group.protocol=consumer`: the group's coordinator assigns, and every member works towards its own
part of the target on its own. Nobody waits for anybody but the previous owner of a partition.

Look at: only what moves is given up; a partition that moves from one living member to another is
without an owner from its revocation to the new owner's next heartbeat, which is up to
`group.consumer.heartbeat.interval.ms` (5 s) later. Compare with `consumer-rolling-deploy`.

As written this is an exact world: members act in the same millisecond. What a deploy costs is told
by worlds that are drawn, `run --varied`.
"""

from typing import Final

from msgspec import structs

from coordinator_sim.sim.scenario.scenario import with_settings
from coordinator_sim_scenarios.catalog.consumer_rolling_deploy import SCENARIO as CLASSIC

SCENARIO: Final = structs.replace(
    with_settings(CLASSIC, {"group.protocol": "consumer"}),
    name="new-rolling-deploy",
    title="Rolling deploy of a group of the consumer protocol",
    story="Eight consumers of 32 partitions with group.protocol=consumer are restarted one by one, "
    "30 s apart, each away for 8 s.",
)
