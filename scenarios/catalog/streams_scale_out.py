"""A Kafka Streams application is scaled out from three instances to five.

The application of `streams-deploy`. Two further instances start with empty disks at 60 s, and each
is given some of the tasks. Without copies a counting task stands still while its new owner reads
500 MB of its changelog.

Look at: `without_ms` of the TASKS_STARTED after 60 s. A task is given up with the heartbeat of its
old owner and taken over with one of the new owner, up to a heartbeat interval (5 s) later; a
counting task then restores for 10 s more.
"""

from typing import Final

from msgspec import structs

from coordinator_sim.sim.scenario import ConsumerSpec
from coordinator_sim_scenarios.catalog.streams_deploy import GROUP
from coordinator_sim_scenarios.catalog.streams_deploy import SCENARIO as DEPLOY

SCENARIO: Final = structs.replace(
    DEPLOY,
    name="streams-scale-out",
    title="A Kafka Streams application grows from three instances to five",
    story="Two more instances with empty disks join three that have 500 MB of state a task.",
    duration_ms=180_000,
    groups=(
        structs.replace(
            GROUP,
            members=(
                *GROUP.members,
                *(
                    ConsumerSpec(name=f"streams-{number}", processing_ms=10, start_ms=60_000)
                    for number in (4, 5)
                ),
            ),
        ),
    ),
    happenings=(),
)
