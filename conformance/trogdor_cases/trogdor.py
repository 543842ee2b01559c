"""What a case of Trogdor may do: a coordinator, agents, their clocks and their hosts.

The coordinator's clock stands at 0 when a case begins.
"""

from typing import Any, Protocol

from msgspec import Struct

Json = Any
"""Any JSON value."""


class Reply(Struct, frozen=True):
    """A REST response: its status, and its body as JSON, or as text if it is not JSON."""

    status: int
    body: Json


class Topic(Struct, frozen=True, kw_only=True):
    """A topic of the cluster that workloads use.

    Args:
        partitions: How many.
        records: Records in partition 0 when a case begins.
    """

    partitions: int = 1
    records: int = 0


class Member(Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A member of a group, as the cluster sees it."""

    client_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int


class Setup(Struct, frozen=True, kw_only=True):
    """The nodes of a case.

    Args:
        coordinator: The node with the coordinator.
        agents: The nodes with an agent.
        nodes: Settings of nodes, in place of those that `agents` gives them.
        hostnames: Hosts of nodes; localhost where none is given.
        clock_skew_ms: How far the clock of a node is ahead of the coordinator's.
        command_outputs: What a command prints, by its first word; nothing where none is given.
        files: Files that nodes have, by path.
        restarts: How often agents are started in the case.
        topics: Topics of a cluster for workloads; without any there is no cluster.
    """

    coordinator: str = "node01"
    agents: tuple[str, ...] = ("node02",)
    nodes: dict[str, dict[str, str]] | None = None
    hostnames: dict[str, str] = {}
    clock_skew_ms: dict[str, int] = {}
    command_outputs: dict[str, str] = {}
    files: dict[str, bytes] = {}
    restarts: int = 0
    topics: dict[str, Topic] = {}


class Trogdor(Protocol):
    """A running Trogdor."""

    @property
    def now_ms(self) -> int:
        """The present by the coordinator's clock."""
        ...

    @property
    def slack_ms(self) -> int:
        """Milliseconds by which an event may be later than a case states; 0 in virtual time."""
        ...

    @property
    def late_ms(self) -> int:
        """An instant when what has not happened is taken as never happening."""
        ...

    @property
    def bootstrap(self) -> str:
        """The address of the cluster's brokers."""
        ...

    def members(self, group_id: str) -> list[Member]:
        """The members of a group of the cluster, by client id."""
        ...

    def at(self, at_ms: int) -> None:
        """Let time pass until an instant of the coordinator's clock."""
        ...

    def coordinator(self, method: str, target: str, body: Json = None) -> Reply:
        """Ask the coordinator."""
        ...

    def agent(self, node: str, method: str, target: str, body: Json = None) -> Reply:
        """Ask the agent of a node."""
        ...

    def kill_agent(self, node: str) -> None:
        """End the process of an agent: nobody answers, and its workers are lost."""
        ...

    def start_agent(self, node: str) -> None:
        """Start an agent that was killed; it knows nothing."""
        ...

    def commands(self, node: str) -> list[str]:
        """The commands that were run on a node, in order."""
        ...

    def calls(self, node: str, worker_id: int) -> dict[str, int]:
        """How often the work of a worker was started and stopped: `start` and `stop`."""
        ...

    def status_requests(self, node: str) -> int:
        """How often the coordinator asked the agent of a node for its workers."""
        ...

    def file(self, path: str) -> bytes | None:
        """The content of a file; None without it."""
        ...
