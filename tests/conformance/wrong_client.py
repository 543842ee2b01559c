"""aiokafka with two faults, behind the suite's own driver.

It forgets its member id whenever it has to join again, and repeats a commit in the generation in
which it was refused.
"""

import runpy
import sys
from typing import Any

from aiokafka import errors
from aiokafka.consumer.group_coordinator import GroupCoordinator

from coordinator_sim_conformance.clients.known import DRIVERS

asked_to_rejoin = GroupCoordinator.request_rejoin
commits = GroupCoordinator.commit_offsets


def forgets(self: Any) -> None:  # noqa: ANN401 - without types
    """Ask for a rejoin, as nobody."""
    self.member_id = ""
    asked_to_rejoin(self)


async def insists(self: Any, assignment: Any, offsets: Any) -> None:  # noqa: ANN401 - as above
    """Commit, and once more by the same generation if that was the wrong one."""
    present = (self.generation, self.member_id)
    try:
        await commits(self, assignment, offsets)
    except errors.CommitFailedError:
        self.generation, self.member_id = present
        await commits(self, assignment, offsets)


GroupCoordinator.request_rejoin = forgets
GroupCoordinator.commit_offsets = insists
sys.argv[1:1] = ["aiokafka"]
runpy.run_path(str(DRIVERS / "python_clients.py"), run_name="__main__")
