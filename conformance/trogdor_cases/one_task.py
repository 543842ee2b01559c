"""An agent that runs one task and ends, as a case sees it; and this project's."""

import asyncio
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from coordinator_sim.errors import MissingDependencyError, needing
from coordinator_sim.live.trogdor.configuration import read_spec
from coordinator_sim.live.trogdor.host_platform import Allowed
from coordinator_sim.trogdor.topology import AGENT_PORT, topology_of
from coordinator_sim_conformance.targets.target import Unsupported
from coordinator_sim_conformance.trogdor_cases.task_specs import NODE
from coordinator_sim_conformance.trogdor_cases.trogdor import Json

_NODES: Final = {NODE: {AGENT_PORT: "8888"}, "node09": {AGENT_PORT: "8888"}}


class Exit(Struct, frozen=True):
    """How an agent ended: its exit code, and what it printed."""

    code: int
    said: str

    @property
    def last_line(self) -> str:
        """The last line that it printed."""
        return self.said.rstrip("\n").rpartition("\n")[2]


class OneTaskAgent(Protocol):
    """Starts agents that run one task; they are on node02, and there is a node09."""

    def run(self, spec: Json) -> Exit:
        """Run a task until it is over."""
        ...


class OwnOneTaskAgent:
    """An agent of this project, in this process."""

    def run(self, spec: Json) -> Exit:
        """Run a task until it is over.

        Raises:
            Unsupported: the server of agents is not installed.
        """
        try:
            with needing("live", "an agent"):
                from coordinator_sim.live.trogdor.daemons import run_task
        except MissingDependencyError as missing:
            raise Unsupported(str(missing)) from None
        said: list[str] = []
        task = run_task(
            topology_of(_NODES),
            NODE,
            read_spec(msgspec.json.encode(spec).decode()),
            allowed=Allowed(commands=True),
            say=said.append,
        )
        succeeded = asyncio.run(task)
        return Exit(0 if succeeded else 1, "".join(f"{line}\n" for line in said))
