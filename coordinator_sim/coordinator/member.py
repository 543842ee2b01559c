"""A member of a classic group: what it is, what it offers, what it waits for.

Source: kafka trunk, group-coordinator/.../classic/ClassicGroupMember.java; kafka 3.9,
MemberMetadata.scala.
"""

from dataclasses import dataclass, field

from coordinator_sim.clock.timer_queue import Timer
from coordinator_sim.coordinator.effects import Parked
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.messages.join_group import JoinGroupRequestProtocol

Protocols = tuple[JoinGroupRequestProtocol, ...]


@dataclass(slots=True, eq=False)
class Member:
    """One member of a classic group.

    Args:
        client_host: As in the request that created the member; never refreshed.
        protocols: In the member's order of preference.
        awaiting_join: The JoinGroup parked for the next generation.
        awaiting_sync: The SyncGroup parked for the leader's assignment.
        is_new: Joined in this rebalance, and so has no session yet.
        session: The session timer; inactive once fired or cancelled.
        table_rank: Grows with each insertion into the group's table; only old tables look at it.
        name_hash: Java's hash of the id, which decides the member's place in every listing.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    assignment: bytes = b""
    awaiting_join: Parked | None = None
    awaiting_sync: Parked | None = None
    is_new: bool = False
    session: Timer | None = None
    table_rank: int = 0
    name_hash: int = field(init=False)

    def __post_init__(self) -> None:
        self.name_hash = java_string_hash(self.member_id)

    def rename(self, member_id: str) -> None:
        """Go on under another id; the session timer of the old one runs out in vain."""
        self.member_id = member_id
        self.name_hash = java_string_hash(member_id)
        self.session = None

    def metadata(self, protocol_name: str | None) -> bytes:
        """The member's subscription for that protocol.

        Raises:
            OperationAborted: the member does not support it, which Kafka finds out as late.
        """
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise OperationAborted(f"member {self.member_id} does not support {protocol_name!r}")

    def has_satisfied_heartbeat(self) -> bool:
        """Whether a session expiry must be ignored: the member waits for the coordinator.

        Source: ClassicGroupMember.hasSatisfiedHeartbeat.
        """
        return not self.is_new and (
            self.awaiting_join is not None or self.awaiting_sync is not None
        )
