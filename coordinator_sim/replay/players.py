"""The members as actors in a replay, and the requests they send.

Properties that no line tells are the same for all: one protocol, an empty subscription.
"""

from dataclasses import dataclass
from typing import Final

from coordinator_sim.kafka.orders.iteration_order import TableOrder
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from coordinator_sim.messages.leave_group import LeaveGroupRequest, MemberIdentity
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from coordinator_sim.replay.names import split_member_id
from coordinator_sim.replay.plan import Actor

PROTOCOL: Final = "unknown"
"""The protocol that every member offers; no broker log names it."""
OTHER_PROTOCOL: Final = "unknown-2"
"""Protocol offered besides, so that a member that drops the first changes the selection."""
DIRECT_JOIN_VERSION: Final = 3
"""JoinGroup version that is admitted without a member id issued first."""
JOIN_VERSION: Final = 9
SYNC_VERSION: Final = 5
HEARTBEAT_VERSION: Final = 4
LEAVE_VERSION: Final = 5
NO_PARTITIONS: Final = b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"
"""ConsumerProtocol subscription or assignment of version 0: no partitions, no user data."""

_UNNAMED: Final = "unnamed"
_SALTS: Final = 64
_CAPACITIES: Final = (16, 32, 64)
"""Buckets of a Java table of up to 12, 24 and 48 members."""


class NamedIds:
    """Issues the member ids that the trace names: the random part is set before each JoinGroup."""

    def __init__(self) -> None:
        self.next_uuid = ""

    def new_uuid(self) -> str:
        """Return the random part that was set."""
        return self.next_uuid


@dataclass(slots=True, eq=False)
class Player:
    """A member in action.

    Attributes:
        member_id: Id the coordinator knows; the trace's id where it can be issued.
        generation: Generation of its last answer.
        is_parked: Whether its JoinGroup is unanswered.
        is_member: Whether it believes to be a member.
        is_over: Whether it has left, failed or was replaced, and acts no more.
        takes_over: Whether it comes under the instance id of a process before it.
        metadata_version: Counter of its subscription's changes.
    """

    actor: Actor
    client_id: str
    uuid: str
    member_id: str = ""
    generation: int = -1
    is_parked: bool = False
    is_member: bool = False
    is_over: bool = False
    metadata_version: int = 0
    has_one_protocol: bool = False
    rejoin_count: int = 0
    takes_over: bool = False

    @property
    def prefix(self) -> str:
        """Prefix of its member id. Source: ClassicGroup.generateMemberId."""
        return self.actor.group_instance_id or self.client_id

    def is_silent(self, now_ms: int) -> bool:
        """Whether its last sign of life has passed."""
        return self.actor.silent_ms is not None and now_ms > self.actor.silent_ms

    def subscription(self) -> bytes:
        """Return its subscription: user data that differs after every change."""
        if not self.metadata_version:
            return NO_PARTITIONS
        mark = str(self.metadata_version).encode()
        return NO_PARTITIONS[:6] + len(mark).to_bytes(4, "big") + mark

    def protocols(self) -> tuple[JoinGroupRequestProtocol, ...]:
        """Return its protocols, in order of preference."""
        names = (OTHER_PROTOCOL,) if self.has_one_protocol else (PROTOCOL, OTHER_PROTOCOL)
        return tuple(JoinGroupRequestProtocol(name, self.subscription()) for name in names)


def player_of(actor: Actor, order: TableOrder) -> Player:
    """Return the player of an actor, with the id that the trace names or a new one.

    Args:
        actor: The actor to play.
        order: Order of the coordinator's table of members: a new id comes late in it, because a
            member that no line names does not lead.
    """
    parts = split_member_id(actor.name) if actor.name is not None else None
    instance_id = actor.group_instance_id
    client_id, uuid = parts or (actor.name or _UNNAMED, _late_uuid(actor, order))
    if instance_id and actor.name is not None and actor.name.startswith(f"{instance_id}-"):
        uuid = actor.name.removeprefix(f"{instance_id}-")
    player = Player(actor=actor, client_id=client_id, uuid=uuid)
    if actor.is_loaded:
        player.member_id = actor.name or f"{client_id}-{uuid}"
    return player


def _late_uuid(actor: Actor, order: TableOrder) -> str:
    """Return a random part for the actor's id that tables of usual sizes put late."""
    prefix = actor.group_instance_id or actor.name or _UNNAMED
    uuids = (f"00000000-{salt:04x}-4000-8000-{actor.index:012d}" for salt in range(_SALTS))

    def places(uuid: str) -> list[tuple[int, int]]:
        hashed = java_string_hash(f"{prefix}-{uuid}")
        return [order.place(hashed, capacity) for capacity in _CAPACITIES]

    return max(uuids, key=places)


def stored(player: Player, session_timeout_ms: int, rebalance_timeout_ms: int) -> MemberMetadata:
    """Return a member of the loaded generation, as the log would hold it."""
    return MemberMetadata(
        member_id=player.member_id,
        group_instance_id=player.actor.group_instance_id,
        client_id=player.client_id,
        client_host="/127.0.0.1",
        rebalance_timeout=rebalance_timeout_ms,
        session_timeout=session_timeout_ms,
        subscription=player.subscription(),
        assignment=NO_PARTITIONS,
    )


def stored_group(
    group_id: str, generation: int, at_ms: int, loaded: list[tuple[Player, tuple[int, int]]]
) -> tuple[GroupMetadataKey, GroupMetadataValue]:
    """Return the record of a loaded generation, its leader first.

    `loaded` are its members, each with its session and rebalance timeout.
    """
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol=PROTOCOL if loaded else None,
        leader=loaded[0][0].member_id if loaded else None,
        current_state_timestamp=at_ms,
        members=tuple(stored(player, *timeouts_ms) for player, timeouts_ms in loaded),
    )
    return GroupMetadataKey(group_id), value


def join(
    player: Player, group_id: str, member_id: str, timeouts_ms: tuple[int, int]
) -> JoinGroupRequest:
    """Return its JoinGroup; `timeouts_ms` are session and rebalance timeout."""
    session_timeout_ms, rebalance_timeout_ms = timeouts_ms
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=player.actor.group_instance_id,
        protocol_type="consumer",
        protocols=player.protocols(),
    )


def sync(player: Player, group_id: str, member_ids: tuple[str, ...]) -> SyncGroupRequest:
    """Return its SyncGroup; the leader's gives every member an assignment without partitions."""
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=player.generation,
        member_id=player.member_id,
        group_instance_id=player.actor.group_instance_id,
        assignments=tuple(SyncGroupRequestAssignment(each, NO_PARTITIONS) for each in member_ids),
    )


def heartbeat(player: Player, group_id: str) -> HeartbeatRequest:
    """Return its Heartbeat."""
    return HeartbeatRequest(
        group_id=group_id,
        generation_id=player.generation,
        member_id=player.member_id,
        group_instance_id=player.actor.group_instance_id,
    )


def leave(players: list[Player], group_id: str) -> LeaveGroupRequest:
    """Return the LeaveGroup of one or several members."""
    return LeaveGroupRequest(
        group_id=group_id,
        members=tuple(
            MemberIdentity(
                member_id=player.member_id, group_instance_id=player.actor.group_instance_id
            )
            for player in players
        ),
    )
