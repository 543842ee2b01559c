"""A task file as it is run for real: a served cluster, its nodes, tasks, and what else happens.

Times count from the beginning, in milliseconds.
"""

from typing import Any

from msgspec import Struct

from coordinator_sim.trogdor.specs import TaskSpec


class PlannedTask(Struct, frozen=True):
    """A task of Trogdor's."""

    id: str
    spec: TaskSpec


class PlannedMember(Struct, frozen=True, kw_only=True):
    """A member of a group, which a command joins.

    Args:
        id: Id of its task.
        kind: Class of its task.
        node: Where it runs.
        words: Options of `coordinator-sim member`, but for the brokers.
    """

    id: str
    kind: str
    node: str
    start_ms: int
    duration_ms: int
    words: tuple[str, ...]


class ControlCall(Struct, frozen=True):
    """A request to the control surface of the served cluster.

    Args:
        at_ms: When.
        path: With the version, such as `/v1/brokers/1/stop`.
        body: Any JSON value; None for none.
    """

    at_ms: int
    method: str
    path: str
    body: Any = None


class Operation(Struct, frozen=True):
    """A task that is no task of Trogdor's: the operator of the cluster does it.

    Args:
        id: Its id in the file.
        kind: Its class.
        end_ms: When the last of its effects is over.
        calls: What to do, in the order of time.
    """

    id: str
    kind: str
    start_ms: int
    end_ms: int
    calls: tuple[ControlCall, ...]


class Plan(Struct, frozen=True, kw_only=True):
    """What is served, and what happens to it.

    Args:
        name: Of the file's scenario.
        brokers: How many.
        profile: The Kafka to behave like.
        broker_settings: Settings by Kafka's names.
        topics: Topics to begin with: name -> partitions.
        nodes: Node -> the brokers that are on it; clients are on any node.
        duration_ms: When it ends at the latest.
    """

    name: str
    brokers: int
    profile: str
    broker_settings: dict[str, str]
    topics: dict[str, int]
    nodes: dict[str, tuple[int, ...]]
    tasks: tuple[PlannedTask, ...]
    members: tuple[PlannedMember, ...]
    operations: tuple[Operation, ...]
    duration_ms: int
