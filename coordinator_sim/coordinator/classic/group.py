"""A classic group and its members: the data, and the changes that keep it consistent.

State changes go through `Group._transition` alone, which checks the transition table, drops the
timers that the old state needed, and tells the trace. Which change a request causes is decided in
`join`, `sync` and `membership`; nothing here knows requests, records or replies.

Members are kept in the table that Kafka keeps them in, because they are listed in its order. A
broker parses consumers' subscriptions only, to find which offsets are in use. It does so when a
generation begins and when a group is loaded, not when a member changes its subscription.

DEVIATION: up to 4.3 a subscription with a truncated name, or a count beyond its end, stops Kafka's
generation half-way and its members never get a reply; here it counts as unreadable.

Source: kafka trunk, group-coordinator/.../classic/ClassicGroup.java and ClassicGroupMember.java;
kafka 3.9, MemberMetadata.scala.
"""

from collections.abc import Collection, Iterable
from typing import Any, Final, Protocol

from msgspec import Struct

from coordinator_sim.clock.clock import WallClock
from coordinator_sim.clock.timer_queue import Timer, TimerKey, TimerKind, TimerQueue
from coordinator_sim.coordinator.effects import Parked
from coordinator_sim.coordinator.scala.group_offsets import NO_OFFSETS, GroupOffsets
from coordinator_sim.errors import IllegalTransition, InvariantViolation, OperationAborted
from coordinator_sim.kafka import states
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.orders.iteration_order import (
    MIN_TABLE_CAPACITY,
    TABLE_ORDERS,
    HashOrder,
    old_scala_map_order,
    old_scala_set_order,
)
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.embedded.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    subscribed_topics,
)
from coordinator_sim.messages.group_records import GroupMetadataValue, MemberMetadata
from coordinator_sim.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember
from coordinator_sim.trace.events import Event, RebalanceReason

Protocols = tuple[JoinGroupRequestProtocol, ...]


class Member(Struct, eq=False):
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
    name_hash: int = 0

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


class MemberTable:
    """Members by id.

    Args:
        hash_order: Whose hash map it is.

    Attributes:
        members: By id, in order of insertion; `ordered` gives the order Kafka lists them in.
    """

    __slots__ = ("_ordered", "_table_capacity", "_table_order", "_table_rank", "members")

    def __init__(self, hash_order: HashOrder) -> None:
        self.members: dict[str, Member] = {}
        self._ordered: list[Member] | None = None
        self._table_capacity = MIN_TABLE_CAPACITY
        self._table_rank = 0
        self._table_order = TABLE_ORDERS[hash_order]

    def ordered(self) -> list[Member]:
        """The members in the order of Kafka's hash map of ids. The list must not be changed."""
        if self._ordered is None:
            capacity = self._table_capacity
            place = self._table_order.place
            listed: Iterable[Member] = self.members.values()
            if self._table_order.newest_first:
                listed = sorted(listed, key=lambda member: -member.table_rank)
            self._ordered = sorted(listed, key=lambda member: place(member.name_hash, capacity))
        return self._ordered

    def _copied(self) -> list[Member]:
        """The members in the order of the map that a leader is told of.

        Source: in 0.10.2 currentMemberMetadata makes another map, and a third that is immutable.
        """
        members = self.ordered()
        if not self._table_order.newest_first:
            return members
        by_id = {member.member_id: member for member in members}
        copied = old_scala_map_order(by_id)
        return [by_id[member_id] for member_id in old_scala_set_order(copied)]

    def _first_member_id(self) -> str | None:
        if not self.members:
            return None
        if self._table_order.newest_first:
            return self.ordered()[0].member_id
        capacity = self._table_capacity
        place = self._table_order.place
        return min(
            self.members.values(), key=lambda member: place(member.name_hash, capacity)
        ).member_id

    def _insert(self, member: Member) -> None:
        members = self.members
        members[member.member_id] = member
        self._ordered = None
        capacity = self._table_order.grown(self._table_capacity, len(members))
        if self._table_order.newest_first:
            self._table_rank += 1
            member.table_rank = self._table_rank
            if capacity != self._table_capacity:
                # QUIRK: the table turns every bucket around when it grows.
                for each in members.values():
                    each.table_rank = -each.table_rank
        self._table_capacity = capacity


_TRANSITIONS: Final = {
    states.PREPARING_REBALANCE: Event.PREPARE_REBALANCE,
    states.AWAITING_SYNC: Event.JOIN_COMPLETE,
    states.STABLE: Event.GROUP_STABLE,
    states.EMPTY: Event.GROUP_EMPTY,
    states.DEAD: Event.GROUP_DEAD,
}
_CAN_REBALANCE: Final = states.PREDECESSORS[states.PREPARING_REBALANCE]


class GroupRuntime(Protocol):
    """What a group asks of the coordinator that it belongs to; see `Runtime`."""

    now_ms: int
    profile: Profile
    timers: TimerQueue
    tracing: bool
    wall_clock: WallClock

    def emit(self, event: Event, **columns: Any) -> None:  # noqa: ANN401 - columns differ in type
        """Add an event to the trace; the columns are those of `TraceEvent`."""
        ...


class Group(MemberTable):
    """One classic group.

    Attributes:
        static_members: Instance id to member id.
        pending_members: Ids handed out by MEMBER_ID_REQUIRED and not yet joined.
        pending_sync: Members of this generation that have not synced.
        protocol_counts: Protocol name to the number of members that support it.
        awaiting_join_count: Members with a parked JoinGroup.
        is_spinning: Nobody rejoined within a rebalance timeout of 0 ms; the first to join ends it.
        current_state_timestamp_ms: Entry into the state, -1 when unknown (old record).
    """

    __slots__ = (
        "awaiting_join_count",
        "current_state_timestamp_ms",
        "generation_id",
        "group_id",
        "is_spinning",
        "leader_id",
        "new_member_added",
        "offsets",
        "offsets_partition",
        "pending_members",
        "pending_sync",
        "previous_state",
        "protocol_counts",
        "protocol_name",
        "protocol_type",
        "runtime",
        "state",
        "static_members",
        "subscriptions",
    )

    def __init__(self, runtime: GroupRuntime, group_id: str, offsets_partition: int) -> None:
        super().__init__(runtime.profile.hash_order)
        self.runtime = runtime
        self.group_id = group_id
        self.offsets_partition = offsets_partition
        self.state = states.EMPTY
        self.previous_state = states.DEAD
        self.current_state_timestamp_ms = runtime.wall_clock.shown_ms(runtime.now_ms)
        self.generation_id = 0
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.leader_id: str | None = None
        self.static_members: dict[str, str] = {}
        self.pending_members: dict[str, None] = {}
        self.pending_sync: dict[str, None] = {}
        self.protocol_counts: dict[str, int] = {}
        self.awaiting_join_count = 0
        self.is_spinning = False
        self.new_member_added = False
        self.subscriptions = UNKNOWN_SUBSCRIPTIONS
        is_old = runtime.profile.hash_order is HashOrder.SCALA_2_12
        self.offsets = (
            NO_OFFSETS
            if runtime.profile.has_coordinator_runtime
            else GroupOffsets(is_old_scala=is_old)
        )

    # -- questions -------------------------------------------------------------------------

    def can_rebalance(self) -> bool:
        """Whether the group may enter PreparingRebalance. Source: ClassicGroup.canRebalance."""
        return self.state in _CAN_REBALANCE

    def has_all_joined(self) -> bool:
        """Whether every member has a parked JoinGroup and no handed-out id is outstanding."""
        return len(self.members) == self.awaiting_join_count and not self.pending_members

    def rebalance_timeout_ms(self) -> int:
        """The largest rebalance timeout of the members, 0 when there are none."""
        return max([member.rebalance_timeout_ms for member in self.members.values()], default=0)

    def supports_protocols(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member offering these could be in the group. Source: supportsProtocols."""
        if self.state is states.EMPTY:
            if self.runtime.profile.empty_group_takes_any_protocol:
                return True
            return bool(protocol_type) and bool(protocols)
        if protocol_type != self.protocol_type:
            return False
        size = len(self.members)
        counts = self.protocol_counts
        for protocol in protocols:  # noqa: SIM110 - in every join; a generator costs thrice as much
            if counts.get(protocol.name, 0) == size:
                return True
        return False

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether the group may consume that topic; if in doubt, a group of consumers does."""
        topics = self.subscriptions.topics()
        return is_consumer(self.protocol_type) if topics is None else topic in topics

    def validate_member(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        """NONE if the ids name a current member. Source: ClassicGroup.validateMember."""
        if group_instance_id is not None:
            mapped = self.static_members.get(group_instance_id)
            if mapped is not None and mapped != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            if mapped is None and not self.runtime.profile.unknown_instance_passes:
                return ErrorCode.UNKNOWN_MEMBER_ID
        return NO_ERROR if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def select_protocol(self) -> str:
        """The protocol that most members prefer among those all of them support.

        A tie goes to the name that Kafka's map of votes yields first.

        Raises:
            OperationAborted: a member supports no candidate. The counts let that happen only after
                a static replacement that could not be stored and was replaced again meanwhile.

        Source: ClassicGroup.selectProtocol and candidateProtocols.
        """
        size = len(self.members)
        candidates = {name for name, count in self.protocol_counts.items() if count == size}
        votes: dict[str, int] = {}
        for member in self.ordered():
            for protocol in member.protocols:
                if protocol.name in candidates:
                    votes[protocol.name] = votes.get(protocol.name, 0) + 1
                    break
            else:
                raise OperationAborted(f"group {self.group_id} has no common protocol")
        if len(votes) == 1:
            return next(iter(votes))
        return max(self._table_order.votes(votes), key=votes.__getitem__)

    def member_list(self) -> tuple[JoinGroupResponseMember, ...]:
        """The members that a JoinGroup response lists. Source: currentClassicGroupMembers."""
        name = self.protocol_name
        return tuple(
            [
                JoinGroupResponseMember(
                    member.member_id, member.group_instance_id, member.metadata(name)
                )
                for member in self._copied()
            ]
        )

    def as_record(self, assignments: dict[str, bytes]) -> GroupMetadataValue:
        """The generation as stored. Source: GroupCoordinatorRecordHelpers.newGroupMetadataRecord.

        Args:
            assignments: Member id to assignment bytes; a member absent here gets none.
        """
        name = self.protocol_name
        members = tuple(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(name),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in self.ordered()
        )
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation_id,
            protocol=name,
            leader=self.leader_id,
            current_state_timestamp=self.current_state_timestamp_ms,
            members=members,
        )

    # -- members ---------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        """Add a member, parked or (from a load) not. Source: ClassicGroup.add."""
        instance_id = member.group_instance_id
        if instance_id is not None:
            if instance_id in self.static_members:
                raise InvariantViolation(f"instance {instance_id} is already in {self.group_id}")
            self.static_members[instance_id] = member.member_id
        self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self._insert(member)
        self._count_protocols(member.protocols, 1)
        if member.awaiting_join is not None:
            self.awaiting_join_count += 1
        self.pending_members.pop(member.member_id, None)

    def update(self, member: Member, protocols: Protocols, parked: Parked | None) -> None:
        """Replace a member's protocols and its parked JoinGroup.

        A JoinGroup parked before is forgotten and never answered (Kafka does the same).

        Source: ClassicGroup.updateMember.
        """
        self._count_protocols(member.protocols, -1)
        member.protocols = protocols
        self._count_protocols(protocols, 1)
        self.awaiting_join_count += (parked is not None) - (member.awaiting_join is not None)
        member.awaiting_join = parked

    def remove(self, member_id: str) -> None:
        """Forget a member or a pending id. Source: ClassicGroup.remove."""
        self.remove_all((member_id,))

    def remove_all(self, member_ids: Iterable[str]) -> None:
        """Forget members or pending ids, one after the other; no member's JoinGroup is parked.

        The leadership passes to the first remaining member in Kafka's order. Removing one by one
        would end with the same leader, at the price of one search for each.
        """
        for member_id in member_ids:
            member = self.members.pop(member_id, None)
            if member is not None:
                self._ordered = None
                self._count_protocols(member.protocols, -1)
                if member.group_instance_id is not None:
                    self.static_members.pop(member.group_instance_id, None)
            self.pending_members.pop(member_id, None)
            self.pending_sync.pop(member_id, None)
        if self.leader_id is not None and self.leader_id not in self.members:
            self.leader_id = self._first_member_id()

    def replace_static(self, old: Member, new_member_id: str) -> Member:
        """Give a static member a new id; everything else it has is kept, except parked requests.

        In Scala the member itself goes on under the new id, and is "new" still if it was.

        Raises:
            InvariantViolation: the member has no instance id.

        Source: ClassicGroup.replaceStaticMember.
        """
        instance_id = old.group_instance_id
        if instance_id is None:
            raise InvariantViolation(f"member {old.member_id} of {self.group_id} is not static")
        old_member_id = old.member_id
        del self.members[old_member_id]
        if self.runtime.profile.replaces_static_member_in_place:
            new = old
            new.rename(new_member_id)
        else:
            new = Member(
                new_member_id,
                instance_id,
                old.client_id,
                old.client_host,
                old.session_timeout_ms,
                old.rebalance_timeout_ms,
                old.protocol_type,
                old.protocols,
                old.assignment,
            )
        self._insert(new)
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        self.static_members[instance_id] = new_member_id
        return new

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader has rejoined, or pass its role to a member that has.

        Returns:
            False when nobody rejoined or the group is empty.

        Source: ClassicGroup.maybeElectNewJoinedLeader.
        """
        if self.leader_id is None:
            return False
        leader = self.members[self.leader_id]
        if leader.awaiting_join is not None:
            return True
        joined = next((m for m in self.ordered() if m.awaiting_join is not None), None)
        if self.runtime.tracing:
            self._tell_leader_replaced(leader, joined)
        if joined is None:
            return False
        self.leader_id = joined.member_id
        return True

    # -- states ----------------------------------------------------------------------------

    def begin_rebalance(self, reason: RebalanceReason, text: str) -> None:
        """Leave the current generation and wait for every member to rejoin."""
        self.pending_sync.clear()
        self._transition(states.PREPARING_REBALANCE, reason, text)

    def begin_generation(self) -> None:
        """Count up the generation and wait for the leader's assignment, or for members.

        Source: ClassicGroup.initNextGeneration.
        """
        # QUIRK: the generation grows even when nobody is left, so a group that empties and refills
        # skips a number.
        self.generation_id += 1
        self.protocol_name = self.select_protocol() if self.members else None
        self.subscriptions = subscriptions_of(
            self.protocol_type, self.protocol_name, self.members.values()
        )
        self._transition(states.AWAITING_SYNC if self.members else states.EMPTY)

    def stabilise(self) -> None:
        """The assignment is stored and handed out."""
        self._transition(states.STABLE)

    def die(self) -> None:
        """The group is unloaded."""
        self._transition(states.DEAD)

    def bury(self) -> None:
        """The group is removed, and the trace was told why."""
        self._transition(states.DEAD, is_told=True)

    def restore(self, value: GroupMetadataValue) -> None:
        """Take over a stored generation; the members are added by the caller.

        Source: the constructor ClassicGroup(..., initialState, ...) as GroupMetadataManager.replay
        uses it.
        """
        self.generation_id = value.generation
        self.protocol_type = value.protocol_type or None
        if self.runtime.profile.empty_load_forgets_protocol_type and not value.members:
            self.protocol_type = None
        self.protocol_name = value.protocol
        self.leader_id = value.leader
        self.current_state_timestamp_ms = value.current_state_timestamp
        self.state = states.STABLE if value.members else states.EMPTY

    def _transition(
        self,
        to: states.GroupState,
        reason: RebalanceReason | None = None,
        text: str | None = None,
        *,
        is_told: bool = False,
    ) -> None:
        """Enter a state: the one door. Checks the table, drops stale timers, tells the trace.

        Raises:
            IllegalTransition: the table has no such step (a bug here, not a client's error).

        Source: ClassicGroup.transitionTo.
        """
        if self.state not in states.PREDECESSORS[to]:
            raise IllegalTransition(f"{self.group_id}: {self.state.value} to {to.value}")
        self.previous_state = self.state
        self.state = to
        runtime = self.runtime
        self.current_state_timestamp_ms = runtime.wall_clock.shown_ms(runtime.now_ms)
        timers = runtime.timers
        if to is states.PREPARING_REBALANCE:
            timers.cancel(TimerKey(TimerKind.SYNC, self.group_id))
        elif to is not states.STABLE:
            timers.cancel(TimerKey(TimerKind.JOIN, self.group_id))
        if self.runtime.tracing and not is_told:
            self._tell_transition(reason, text)

    # -- trace -----------------------------------------------------------------------------

    def tell(self, event: Event, **columns: Any) -> None:  # noqa: ANN401 - columns differ in type
        """Tell the trace of something in this group, with these columns of `TraceEvent`."""
        self.runtime.emit(
            event,
            group_id=self.group_id,
            offsets_partition=self.offsets_partition,
            generation=self.generation_id,
            **columns,
        )

    def emit(
        self,
        event: Event,
        member: Member | None = None,
        **columns: Any,  # noqa: ANN401 - columns differ in type
    ) -> None:
        """Tell the trace of something in this group in general, or about a member of it."""
        self.tell(
            event,
            protocol_type=self.protocol_type,
            member_id=None if member is None else member.member_id,
            group_instance_id=None if member is None else member.group_instance_id,
            client_id=None if member is None else member.client_id,
            client_host=None if member is None else member.client_host,
            session_timeout_ms=None if member is None else member.session_timeout_ms,
            rebalance_timeout_ms=None if member is None else member.rebalance_timeout_ms,
            **columns,
        )

    def _tell_transition(self, reason: RebalanceReason | None, text: str | None) -> None:
        """Tell that the group has entered its state."""
        self.tell(
            _TRANSITIONS[self.state],
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader_id=self.leader_id,
            members=len(self.members),
            static_members=len(self.static_members),
            reason=reason,
            reason_text=text,
            state_from=self.previous_state,
            state_to=self.state,
        )

    def _tell_leader_replaced(self, leader: Member, joined: Member | None) -> None:
        """Tell that the leader did not rejoin: `joined` leads now, or nobody can."""
        attrs = {"old_leader_id": leader.member_id}
        if leader.group_instance_id is not None:
            attrs["old_instance_id"] = leader.group_instance_id
        if joined is None:
            attrs["outcome"] = "no_member_joined"
            self.tell(Event.LEADER_REPLACED, attrs=attrs)
            return
        attrs["protocols"] = ",".join(protocol.name for protocol in joined.protocols)
        self.emit(
            Event.LEADER_REPLACED,
            joined,
            leader_id=joined.member_id,
            reason_text=f"was {leader.member_id}",
            attrs=attrs,
        )

    def _count_protocols(self, protocols: Protocols, step: int) -> None:
        counts = self.protocol_counts
        for protocol in protocols:
            counts[protocol.name] = counts.get(protocol.name, 0) + step


class Subscriptions:
    """The subscriptions of one generation, read when somebody asks.

    Args:
        metadata: What each member brought for the chosen protocol; None if that is unreadable.
    """

    __slots__ = ("_metadata", "_topics")

    def __init__(self, metadata: Iterable[bytes] | None) -> None:
        self._metadata = None if metadata is None else tuple(metadata)
        self._topics: frozenset[str] | None = None

    def topics(self) -> frozenset[str] | None:
        """Every topic that a member subscribes to; None if not known."""
        if self._metadata is not None:
            found: set[str] | None = set()
            for metadata in self._metadata:
                topics = subscribed_topics(metadata)
                found = None if found is None or topics is None else found.union(topics)
            self._metadata = None
            self._topics = None if found is None else frozenset(found)
        return self._topics


UNKNOWN_SUBSCRIPTIONS: Final = Subscriptions(None)
"""Of a group whose first generation has not begun."""


def is_consumer(protocol_type: str | None) -> bool:
    """Whether the members of such a group are consumers.

    Source: ClassicGroup.usesConsumerGroupProtocol.
    """
    return protocol_type == CONSUMER_PROTOCOL_TYPE


def subscriptions_of(
    protocol_type: str | None, protocol_name: str | None, members: Collection[Member]
) -> Subscriptions:
    """What the members of a group bring for the protocol chosen, as of now."""
    if not is_consumer(protocol_type) or (members and protocol_name is None):
        return UNKNOWN_SUBSCRIPTIONS
    return Subscriptions(member.metadata(protocol_name) for member in members)
