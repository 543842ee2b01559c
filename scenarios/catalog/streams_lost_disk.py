"""The deploy of `streams-deploy` with instances that lose their disks.

As containers without a volume: each new process begins with an empty state directory, and with a
process id of its own.

Look at: `without_ms` of counting tasks that come back to a restarted instance. In `streams-deploy`
it finds their state; here every task that it is given is read from its changelog again.
"""

from typing import Final

from msgspec import structs

from coordinator_sim_scenarios.catalog.streams_deploy import GROUP
from coordinator_sim_scenarios.catalog.streams_deploy import SCENARIO as DEPLOY

SCENARIO: Final = structs.replace(
    DEPLOY,
    name="streams-lost-disk",
    title="Rolling deploy of a Kafka Streams application without its disks",
    story="Three instances with 500 MB of state a task are restarted one by one, 60 s apart, each "
    "away for 8 s; each starts with an empty disk.",
    groups=(structs.replace(GROUP, persistent_volume=False),),
)
