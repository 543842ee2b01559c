"""What replay does to a group so that the lines of its episode come true.

Data only: who takes part and when each acts. `planner` derives it, `driver` carries it out.
"""

from dataclasses import dataclass, field
from enum import Enum, IntEnum, unique
from typing import Final

from msgspec import Struct

from coordinator_sim.trace.rebalances import Episode, Rebalance

NEVER_MS: Final = 2**31 - 1
"""A timeout that no line ends: Kafka's largest int, 24.8 days. Heartbeats come before it."""


@unique
class Ending(Enum):
    """How a member ceases to be one."""

    LEFT = "left"
    FAILED = "failed"
    KICKED = "kicked"
    REPLACED = "replaced"
    ID_EXPIRED = "id expired"


@dataclass(slots=True, eq=False)
class Actor:
    """One member as replay plays it; times are milliseconds on the trace's clock.

    Attributes:
        index: Position in the plan; numbers the members that no line names.
        name: Member id, where a line names it.
        joined: Index of the rebalance that it joined in; -1 for the generation that is loaded.
        ended: Index of the rebalance that its end began or fell into; None while a member.
        asked_ms: When it was given an id to rejoin with, where a line says so.
        arrives_ms: When the JoinGroup that makes it a member comes.
        ends_ms: When its membership ends.
        session_timeout_ms: Chosen so that it expires at `ends_ms` when it fails, never otherwise.
        nominal_session_timeout_ms: The configured value that stands for; the chosen one is less
            by what lines are written late.
        silent_ms: When its last sign of life comes; None for a member that does not fail.
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
        """Whether the group is loaded with it, and it did not take another's place since."""
        return self.joined == -1 and self.arrives_ms is None


@unique
class StepKind(Enum):
    """What happens to a group from outside."""

    ASK_ID = "ask for a member id"
    ARRIVE = "join"
    LEAVE = "leave"
    REJOIN = "rejoin"
    REPLACE = "replace"
    UNLOAD = "unload"
    CLEAN_UP = "clean up"


@unique
class After(IntEnum):
    """What of the running rebalance the lines of the same millisecond put before a step."""

    NOTHING = 0
    JOIN = 1
    SYNC = 2


class Step(Struct, frozen=True, kw_only=True):
    """One outside cause at its line.

    Args:
        after: What happens first, of all that happens in its millisecond.
        actors: Who acts, by index; several leave in one request.
        changes_protocol: The JoinGroup no longer offers the selected protocol.
    """

    at_ms: int
    kind: StepKind
    after: After = After.NOTHING
    actors: tuple[int, ...] = ()
    changes_protocol: bool = False


@dataclass(slots=True, eq=False)
class Script:
    """How the members behave in one rebalance of the source.

    Attributes:
        is_initial: The group was Empty, so that the initial delay ends the join phase.
        start_ms: When it begins; its first line's time when no line says it.
        done_ms: When its join phase ends; None while open.
        rejoiners: Members of the old generation that come back, the one that ends the join last.
        members: Members of the new generation.
        synced: Those of them that send SyncGroup.
        sync_ms: When the leader's assignment comes; None when it never does.
        fails_to_store: The append of the assignment fails.
        waits_for_replicas: It fails because no replica follows until the commit times out.
        rebalance_timeout_ms: Its join timer, chosen to fire at `done_ms` when it kicks members.
        sync_timeout_ms: Its sync timer, chosen to fire where members are evicted for it.
    """

    rebalance: Rebalance
    start_ms: int
    is_initial: bool = False
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
        """Whether the join timer ends its join phase, so that nobody's JoinGroup does."""
        return self.rebalance_timeout_ms != NEVER_MS

    @property
    def is_cut_off(self) -> bool:
        """Whether the trace ends before its leader assigns."""
        return self.sync_ms is None and not self.rebalance.followed


@dataclass(slots=True, eq=False)
class GroupPlan:
    """Everything needed to replay one episode of a group.

    Attributes:
        load_generation: The generation that is loaded first; None for a group that is new.
        loaded: Members of the loaded generation, its leader first.
        assumed: What the episode does not tell and replay had to choose, one sentence each.
        unexplained: Lines that no choice of members explains, one sentence each.
        is_over_capacity: It is loaded with one member more than `group.max.size`.
        commit_timeout_ms: How long an assignment that cannot be stored waits for replicas; None
            where none waits.
        assumed_session_timeout_ms: Of members that fail, where no line tells it.
        assumed_initial_delay_ms: Of join phases of a group that was Empty; None without any.
    """

    episode: Episode
    load_generation: int | None
    load_ms: int
    loaded: tuple[int, ...] = ()
    actors: list[Actor] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    scripts: list[Script] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    assumed_session_timeout_ms: int | None = None
    assumed_initial_delay_ms: int | None = None
    is_over_capacity: bool = False
    commit_timeout_ms: int | None = None

    @property
    def group_max_size(self) -> int:
        """The largest group that the broker allows, as far as the trace tells."""
        return len(self.loaded) - 1 if self.is_over_capacity else NEVER_MS
