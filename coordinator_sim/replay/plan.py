"""The plan of a replay: actions on a group that reproduce the lines of its episode.

Data only: who takes part and when each acts. `planner` makes the plan, `driver` runs it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum, unique
from typing import Final

from msgspec import Struct

from coordinator_sim.trace.rebalances import Episode, Rebalance

NEVER_MS: Final = 2**31 - 1
"""A timeout that no line ends: Kafka's largest int, 24.8 days. Heartbeats come before it."""


@unique
class Ending(Enum):
    """How a membership ends."""

    LEFT = "left"
    FAILED = "failed"
    KICKED = "kicked"
    REPLACED = "replaced"
    ID_EXPIRED = "id expired"


@dataclass(slots=True, eq=False)
class Actor:
    """One member as the replay plays it; times are milliseconds on the trace's clock.

    Attributes:
        index: Position in the plan; also names members that no line names.
        name: Member id, where a line names it.
        joined: Index of the rebalance it joined in; -1 for the loaded generation.
        ended: Index of the rebalance that its end began or fell into; None while a member.
        asked_ms: When it got a member id to rejoin with, where a line says so.
        arrives_ms: When the JoinGroup that makes it a member arrives.
        ends_ms: When its membership ends.
        session_timeout_ms: Chosen so that it expires at `ends_ms` when it fails, never otherwise.
        nominal_session_timeout_ms: Configured value behind the chosen one, which is shorter by the
            delay of log lines.
        silent_ms: Time of its last sign of life; None for a member that does not fail.
    """

    index: int
    name: str | None = None
    group_instance_id: str | None = None
    joined: int | None = None
    ended: int | None = None
    asked_ms: int | None = None
    arrives_ms: int | None = None
    ends_ms: int | None = None
    ending: Ending | None = None
    session_timeout_ms: int = NEVER_MS
    nominal_session_timeout_ms: int = NEVER_MS
    silent_ms: int | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether it belongs to the loaded generation and replaced no other member since."""
        return self.joined == -1 and self.arrives_ms is None


@unique
class StepKind(Enum):
    """Kind of an external event of a group."""

    ASK_ID = "ask for a member id"
    ARRIVE = "join"
    LEAVE = "leave"
    REJOIN = "rejoin"
    REPLACE = "replace"
    UNLOAD = "unload"
    CLEAN_UP = "clean up"


@unique
class After(IntEnum):
    """Events of the running rebalance that lines of the same millisecond put before a step."""

    NOTHING = 0
    JOIN = 1
    SYNC = 2


class Step(Struct, frozen=True, kw_only=True):
    """One external event at its line.

    Args:
        after: What happens first within the same millisecond.
        actors: Acting members, by index; several leave in one request.
        changes_protocol: Whether the JoinGroup no longer offers the selected protocol.
        follows_ms: Start of the rebalance whose result makes the member rejoin, as cooperative
            members do; None for a member that rejoins for reasons of its own.
    """

    at_ms: int
    kind: StepKind
    after: After = After.NOTHING
    actors: tuple[int, ...] = ()
    changes_protocol: bool = False
    follows_ms: int | None = None


@dataclass(slots=True, eq=False)
class Script:
    """Behaviour of the members in one rebalance of the source.

    Attributes:
        is_initial: Whether the group was Empty, so that the initial delay ends the join phase.
        is_follow_up: Whether it only continues the rebalance before, as cooperative members do.
        start_ms: Start; the time of its first line when no line tells.
        done_ms: End of the join phase; None while open.
        rejoiners: Members of the old generation that rejoin, the one that ends the join phase last.
        members: Members of the new generation.
        synced: Members that send SyncGroup.
        sync_ms: When the leader's assignment comes; None when it never does.
        fails_to_store: Whether the append of the assignment fails.
        waits_for_replicas: Whether it fails because no replica follows until the commit times out.
        rebalance_timeout_ms: Join timer, chosen to fire at `done_ms` when it kicks members.
        sync_timeout_ms: Sync timer, chosen to fire where members are evicted for it.
    """

    rebalance: Rebalance
    start_ms: int
    is_initial: bool = False
    is_follow_up: bool = False
    done_ms: int | None = None
    rejoiners: tuple[int, ...] = ()
    members: tuple[int, ...] = ()
    synced: tuple[int, ...] = ()
    sync_ms: int | None = None
    fails_to_store: bool = False
    waits_for_replicas: bool = False
    rebalance_timeout_ms: int = NEVER_MS
    sync_timeout_ms: int = NEVER_MS

    @property
    def kicks(self) -> bool:
        """Whether the join timer ends its join phase, instead of a JoinGroup."""
        return self.rebalance_timeout_ms != NEVER_MS

    @property
    def is_cut_off(self) -> bool:
        """Whether the trace ends before its leader assigns."""
        return self.sync_ms is None and not self.rebalance.followed


@dataclass(slots=True, eq=False)
class GroupPlan:
    """Everything needed to replay one episode of a group.

    Attributes:
        load_generation: Generation that is loaded first; None for a new group.
        loaded: Members of the loaded generation, its leader first.
        assumed: Choices of replay that the episode does not determine, one sentence each.
        printed: Settings that clients printed, and that count instead of an assumption.
        unexplained: Lines that no choice of members explains, one sentence each.
        is_over_capacity: Whether it is loaded with one member more than `group.max.size`.
        commit_timeout_ms: How long an assignment that cannot be stored waits for replicas; None
            when no assignment waits.
        assumed_session_timeout_ms: Session timeout of failing members, where no line tells it.
        assumed_initial_delay_ms: Initial delay of a group that was Empty; None without one.
        heartbeat_interval_ms: Heartbeat interval of the members; None where no line tells.
        rejoins_ms: When each member sent a JoinGroup, by its id; empty where no line tells.
        is_reproduced: Whether the core reproduces all rows of it that the source determines.
        parts_ms: When members first act otherwise than the source tells; None for never.
        session_timeout_ms: Largest session timeout that a line tells; None where none does.
    """

    episode: Episode
    load_generation: int | None
    load_ms: int
    loaded: tuple[int, ...] = ()
    actors: list[Actor] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    scripts: list[Script] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    assumed_session_timeout_ms: int | None = None
    assumed_initial_delay_ms: int | None = None
    is_over_capacity: bool = False
    commit_timeout_ms: int | None = None
    heartbeat_interval_ms: int | None = None
    session_timeout_ms: int | None = None
    rejoins_ms: Mapping[str, Sequence[int]] = field(default_factory=dict)
    parts_ms: int | None = None
    is_reproduced: bool = True

    @property
    def group_max_size(self) -> int:
        """The broker's `group.max.size` if the trace shows that it was exceeded, else no limit."""
        return len(self.loaded) - 1 if self.is_over_capacity else NEVER_MS
