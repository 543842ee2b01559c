"""The online upgrade of a group to the consumer protocol (KIP-848), and the way back.

The eight consumers of `consumer-rolling-deploy`, with `cooperative-sticky`, are restarted one after
the other with `group.protocol=consumer`. The first one converts the group: from then on its
coordinator assigns, also to the classic members that are left. A second deploy restarts them with
the classic protocol, and when the last member of the new protocol leaves, the group is a classic
one again and rebalances.

Look at: `group converted`, twice; what is given up by members that stay, before, during and after;
nobody ever waits for the whole group. Compare with `consumer-rolling-deploy`, a deploy without an
upgrade, and with `new-rolling-deploy`, a deploy after it.

As written this is an exact world: members act in the same millisecond. What an upgrade costs is
told by worlds that are drawn, `run --varied`.
"""

from typing import Final

from msgspec import structs

from coordinator_sim.sim.scenario import rolling_bounce
from coordinator_sim_scenarios.catalog.consumer_rolling_deploy import MEMBERS
from coordinator_sim_scenarios.catalog.consumer_rolling_deploy import SCENARIO as DEPLOY

UPGRADE_MS: Final = 60_000
BACK_MS: Final = 360_000

SCENARIO: Final = structs.replace(
    DEPLOY,
    name="online-upgrade",
    title="Online upgrade to the consumer protocol, and back",
    story="Eight consumers of 32 partitions are restarted one by one, 30 s apart, each away for "
    "8 s: first with group.protocol=consumer, five minutes later with classic again.",
    duration_ms=660_000,
    groups=(structs.replace(DEPLOY.groups[0], assignors=("cooperative-sticky",)),),
    happenings=tuple(
        restart
        for first_at_ms, protocol in ((UPGRADE_MS, "consumer"), (BACK_MS, "classic"))
        for restart in rolling_bounce(
            MEMBERS,
            first_at_ms=first_at_ms,
            every_ms=30_000,
            down_ms=8_000,
            settings={"group.protocol": protocol},
        )
    ),
)
