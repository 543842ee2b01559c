"""Inputs and results of assignors."""

from collections.abc import Mapping, Sequence
from enum import IntEnum, unique
from typing import Protocol

from msgspec import Struct

from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition
from coordinator_sim.messages.embedded.contents import ConsumerAssignment, Subscription


class AssignmentFailed(CoordinatorSimError):
    """An assignor cannot finish, where Java's would throw: its input is contradictory.

    The message names the exception Java would throw.
    """


TopicRacks = Mapping[str, Sequence[tuple[str, ...]]]
"""Topic -> for each partition, ascending, the racks of its replicas (empty tuple: unknown)."""


@unique
class RebalanceProtocol(IntEnum):
    """Way in which a consumer gives partitions up; the highest common to its assignors applies."""

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
        """Protocol name in JoinGroup."""
        ...

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        """Rebalance protocols it can work under."""
        ...

    def subscription_user_data(self, topics: Sequence[str]) -> bytes | None:
        """Return the user data for the next JoinGroup."""
        ...

    def on_assignment(self, assignment: ConsumerAssignment, generation_id: int) -> None:
        """Remember this member's assignment."""
        ...

    def assign(
        self, topics: TopicRacks, members: Sequence[AssignorMember]
    ) -> dict[str, list[TopicPartition]]:
        """Return the partitions of each member, every member present, lists in Java's order."""
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
    """Decision of the Connect leader.

    Args:
        assigned: New work of every worker: all of it (eager) or the additions (incremental).
        revoked: Work that a worker must stop; workers without any are absent.
        delay_ms: Time until the scheduled rebalance; 0 for none.
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
        """Assign work; `configured` is connector -> number of its tasks."""
        ...
