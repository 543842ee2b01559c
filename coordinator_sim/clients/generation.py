"""A member's place in its group: its state, and the generation it believes to be in."""

from enum import Enum, unique
from typing import Final, NamedTuple

from coordinator_sim.kafka.context import NO_GENERATION_ID, UNKNOWN_MEMBER_ID


@unique
class MemberState(Enum):
    """State of a member in its join.

    Source: kafka trunk, AbstractCoordinator.MemberState.
    """

    UNJOINED = "UNJOINED"
    PREPARING_REBALANCE = "PREPARING_REBALANCE"
    COMPLETING_REBALANCE = "COMPLETING_REBALANCE"
    STABLE = "STABLE"


class Generation(NamedTuple):
    """The generation triple; two are the same when all three parts are equal.

    Source: kafka trunk, AbstractCoordinator.Generation.
    """

    generation_id: int
    member_id: str
    protocol_name: str | None

    @property
    def is_reset(self) -> bool:
        """Whether the triple names no generation; the member id may still be valid.

        Source: kafka trunk, AbstractCoordinator.hasGenerationReset.
        """
        return self.generation_id == NO_GENERATION_ID and self.protocol_name is None


NO_GENERATION: Final = Generation(NO_GENERATION_ID, UNKNOWN_MEMBER_ID, None)
