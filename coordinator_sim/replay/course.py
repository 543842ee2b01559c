"""The course of a replay: who was a member in each generation, and who was away when.

A driver notes it; `strategies` and `figures` read it. Times are milliseconds on the trace's clock.
"""

from dataclasses import dataclass, field

from msgspec import Struct

from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.replay.players import Player
from coordinator_sim.replay.restarts import client_of
from coordinator_sim.trace.events import Event, TraceEvent


class Seat(Struct, frozen=True):
    """A member of one generation.

    Args:
        key: Its instance id, or its member id.
        member_id: Its member id in this generation.
        client: Its client id; empty for a member that no line names.
        is_static: Whether it has an instance id.
    """

    key: str
    member_id: str
    client: str
    is_static: bool


@dataclass(slots=True, eq=False)
class Round:
    """One rebalance that formed a generation.

    Attributes:
        start_ms: When the group began to prepare.
        generation: Generation that it formed; 0 until then.
        done_ms: When the join phase ended; None while it is open or when it left no members.
        sync_ms: When the leader's assignment came; None when it never does.
        seats: Members of the generation, its leader first; empty until they are told.
        is_empty: Whether it left the group without members.
        is_follow_up: Whether the source's rebalance only continues the one before.
        rejoins: When each member of the old generation rejoined, by its key.
    """

    start_ms: int
    generation: int = 0
    done_ms: int | None = None
    sync_ms: int | None = None
    seats: tuple[Seat, ...] = ()
    is_empty: bool = False
    is_follow_up: bool = False
    rejoins: dict[str, int] = field(default_factory=dict)


class Absence(Struct, frozen=True):
    """Time in which a process was gone and the group still counted on its member.

    Args:
        key: Key of the member.
        is_dead: Whether the coordinator removed it in the end; otherwise its process came back.
    """

    key: str
    from_ms: int
    until_ms: int
    is_dead: bool

    @property
    def length_ms(self) -> int:
        """Length; 0 for a member that was removed before its last sign of life."""
        return max(0, self.until_ms - self.from_ms)


@dataclass(slots=True, eq=False)
class Course:
    """Rounds and absences of one run of one episode, in order of time.

    Attributes:
        returns_ms: When processes came back after a restart that caused no rebalance.
    """

    rounds: list[Round] = field(default_factory=list)
    absences: list[Absence] = field(default_factory=list)
    returns_ms: list[int] = field(default_factory=list)

    def begin(self, at_ms: int, *, is_follow_up: bool) -> None:
        """Note that a rebalance begins."""
        self.rounds.append(Round(start_ms=at_ms, is_follow_up=is_follow_up))

    def tell(self, event: TraceEvent, at_ms: int) -> None:
        """Note what the coordinator tells of the rebalance that began last."""
        if not self.rounds:
            return
        match event.event:
            case Event.JOIN_COMPLETE:
                self.rounds[-1].done_ms = at_ms
                self.rounds[-1].generation = event.generation or 0
            case Event.GROUP_EMPTY:
                self.rounds[-1].is_empty = True
            case Event.SYNC_LEADER:
                self.rounds[-1].sync_ms = at_ms
            case Event.STATIC_REPLACED if event.attrs.get("rebalance") == "0":
                self.returns_ms.append(at_ms)
            case _:
                pass

    def rejoin(self, player: Player, at_ms: int) -> None:
        """Note that a member sends another JoinGroup in the rebalance that began last."""
        if self.rounds:
            key = player.actor.group_instance_id or player.member_id
            self.rounds[-1].rejoins.setdefault(key, at_ms)

    def seat(self, response: JoinGroupResponse) -> None:
        """Note the members of a new generation, which only its leader is told."""
        if not response.members or not self.rounds or self.rounds[-1].seats:
            return
        if self.rounds[-1].generation == response.generation_id:
            members = sorted(response.members, key=lambda each: each.member_id != response.leader)
            self.rounds[-1].seats = tuple(
                Seat(
                    key=member.group_instance_id or member.member_id,
                    member_id=member.member_id,
                    client=client_of(member.member_id),
                    is_static=member.group_instance_id is not None,
                )
                for member in members
            )

    def absent(self, player: Player, until_ms: int, *, is_dead: bool) -> None:
        """Note that a silent process is removed, or has come back; others are left out."""
        silent_ms = player.actor.silent_ms
        if silent_ms is not None:
            key = player.actor.group_instance_id or player.member_id
            self.absences.append(Absence(key, silent_ms, until_ms, is_dead))
