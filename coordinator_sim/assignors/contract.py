"""What an assignor is given and what it answers."""

from collections.abc import Mapping, Sequence
from enum import IntEnum, unique
from typing import Protocol

from msgspec import Struct

from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.protocol.embedded import ConsumerAssignment, Subscription
from coordinator_sim.protocol.resources import ConnectorTaskId, TopicPartition


class AssignmentFailed(CoordinatorSimError):
    """An assignor cannot finish, where Java's would throw: its input contradicts itself.

    The message names the exception Java would throw.
    """


TopicRacks = Mapping[str, Sequence[tuple[str, ...]]]
"""Topic -> for each partition, ascending, the racks of its replicas (empty tuple: unknown)."""


@unique
class RebalanceProtocol(IntEnum):
    """How a consumer gives partitions up; the highest that all its assignors support wins."""

    EAGER = 0
    COOPERATIVE = 1


class AssignorMember(Struct, frozen=True, kw_only=True):
    """A member of the group as the leader sees it, in JoinGroup order."""

    member_id: str
    subscription: Subscription
    group_instance_id: str | None = None


class ConsumerAssignor(Protocol):
    """A client-side consumer assignor. One instance lives as long as its consumer."""

    @property
    def name(self) -> str:
        """The protocol name in JoinGroup."""
        ...

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """The rebalance protocols it can work under."""
        ...

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """The user data for the next JoinGroup."""
        ...

    def on_assignment(self, assignment: ConsumerAssignment, generation_id: int) -> None:
        """Remember what this member was given."""
        ...

    def assign(
        self, topics: TopicRacks, members: Sequence[AssignorMember]
    ) -> dict[str, list[TopicPartition]]:
        """Partitions of each member, every member present, lists in Java's order."""
        ...


class ConnectMember(Struct, frozen=True, kw_only=True):
    """A worker as the Connect leader sees it: its last assignment, in wire order."""

    member_id: str
    connectors: tuple[str, ...] = ()
    tasks: tuple[ConnectorTaskId, ...] = ()


class WorkerLoad(Struct, frozen=True, kw_only=True):
    """Connectors and tasks of one worker, in list order."""

    connectors: tuple[str, ...] = ()
    tasks: tuple[ConnectorTaskId, ...] = ()


class ConnectAssignmentPlan(Struct, frozen=True, kw_only=True):
    """What the Connect leader decided.

    Args:
        assigned: New work of every worker: all of it (eager) or what is added (incremental).
        revoked: Work that a worker must stop; workers without any are absent.
        delay_ms: Until the scheduled rebalance; 0 for none.
    """

    assigned: dict[str, WorkerLoad]
    revoked: dict[str, WorkerLoad]
    delay_ms: int = 0


class ConnectAssignor(Protocol):
    """A Connect assignor. One instance lives as long as its worker process."""

    def assign(
        self,
        *,
        configured: Mapping[str, int],
        members: Sequence[ConnectMember],
        generation_id: int,
        last_completed_generation_id: int,
        now_ms: int,
    ) -> ConnectAssignmentPlan:
        """Decide; `configured` is connector -> number of its tasks."""
        ...
