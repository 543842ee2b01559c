"""The members of a plan in the making: names bound to members, counts met.

The meaning of lines and the timeouts are in `planner`.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from coordinator_sim.replay.plan import NEVER_MS, Actor, Ending, GroupPlan, Step, StepKind
from coordinator_sim.trace.history import LINE_SKEW_MS


class Roster:
    """The members at one point of an episode.

    Args:
        plan: Receives actors and steps.
        mentions: Member id -> times of the lines that name it, ascending.
        never_members: Ids that expired or left before they were used.

    Attributes:
        present: Present members, in order of arrival.
        position: Index of the running or last rebalance; -1 before the first.
        is_open: Whether that rebalance's join phase is running.
        last_gone: Index of the last rebalance that some earlier member did not survive.
        rejoined: Members that rejoined unprompted in the running rebalance, by index: they are
            parked and cannot fail before it is over.
        open_since: Index of the first rebalance after the last counted one, -1 for the loaded
            generation: members may still be added to it.
    """

    def __init__(
        self, plan: GroupPlan, mentions: dict[str, list[int]], never_members: frozenset[str]
    ) -> None:
        self.present: list[Actor] = []
        self.position = -1
        self.is_open = False
        self.last_gone = -1
        self.rejoined: set[int] = set()
        self.open_since = 0 if plan.load_generation is None else -1
        self._plan = plan
        self._mentions = mentions
        self._never_members = never_members
        self._candidates: dict[str, Actor] = {}
        self._ended: dict[str, Actor] = {}
        self._names: set[str] = set()
        self._last_change_ms: int | None = None
        self._last_unnamed_ms: dict[str, int] = {}

    # -- questions -------------------------------------------------------------------------

    @property
    def has_unnamed(self) -> bool:
        """Whether some member has no name yet."""
        return any(actor.name is None for actor in self.present)

    @property
    def may_add(self) -> bool:
        """Whether a member can be added for all past time without contradicting a count."""
        return self.open_since <= self.position

    @property
    def may_add_before(self) -> bool:
        """Whether a member can be added before the running rebalance."""
        return self.open_since < self.position

    def changed_near(self, at_ms: int, *, since_ms: int = -NEVER_MS) -> bool:
        """Whether a member came or left just before: the cause of a rebalance without a reason.

        Args:
            at_ms: When the rebalance begins.
            since_ms: Changes up to then have caused another one.
        """
        changed_ms = self._last_change_ms
        return (
            changed_ms is not None and changed_ms > since_ms and at_ms - changed_ms <= LINE_SKEW_MS
        )

    def member(self, name: str) -> Actor | None:
        """Return the present member with this id; None if absent."""
        return next((actor for actor in self.present if actor.name == name), None)

    def is_candidate(self, name: str) -> bool:
        """Whether the id was issued and has not been used."""
        return name in self._candidates

    def static_member(self, group_instance_id: str | None) -> Actor | None:
        """Return the present member with this instance id; None if absent."""
        if group_instance_id is None:
            return None
        return next(
            (actor for actor in self.present if actor.group_instance_id == group_instance_id), None
        )

    # -- coming ----------------------------------------------------------------------------

    def ask(self, names: Iterable[str | None], at_ms: int) -> None:
        """Record ids issued to clients; whether a client rejoins with one is seen later."""
        for name in names:
            if name is not None and name not in self._names:
                self._candidates[name] = self._new(name, asked_ms=at_ms)

    def admit(
        self, names: Iterable[str | None], at_ms: int, group_instance_id: str | None = None
    ) -> None:
        """Add a member now, unless an earlier line did."""
        for name in names:
            if name is None:
                if not self._is_repeated("came", at_ms):
                    self._come(self._new(None), at_ms)
            elif name in self._candidates:
                self._come(self._candidates.pop(name), at_ms)
            elif self.member(name) is None and name not in self._ended:
                actor = self._new(name)
                self._take_over(actor, group_instance_id, at_ms)
                self._come(actor, at_ms)

    def admit_leader(self, name: str, start_ms: int) -> None:
        """Add a leader that no line told of as the first member of the running rebalance."""
        arrivals = [
            actor.arrives_ms
            for actor in self.present
            if actor.joined == self.position and actor.arrives_ms is not None
        ]
        self._come(self._new(name), min([start_ms, *(at_ms - 1 for at_ms in arrivals)]))

    def admit_waiting(self, start_ms: int, last_ms: int, limit: int | None) -> None:
        """Have clients with issued ids join silently, as many as the limit allows.

        Args:
            start_ms: When the rebalance began; members join after it and after their id was issued.
            last_ms: When the last one joins; an unused id keeps the join phase open.
            limit: Largest number; None lets all join whose id is not said to have expired.
        """
        waiting = [
            actor for name, actor in self._candidates.items() if name not in self._never_members
        ][:limit]
        for actor in waiting:
            del self._candidates[actor.name or ""]
            at_ms = last_ms if actor is waiting[-1] else start_ms
            self._come(actor, max(at_ms, actor.asked_ms or at_ms))

    def arrive_unnamed(self, count: int, start_ms: int, done_ms: int, *, waits: bool) -> None:
        """Have unnamed members join in the running rebalance.

        Members join when it starts. Where it `waits` for them, their JoinGroup comes at the end
        of the join phase; the id issued before keeps the phase open until then.
        """
        for _ in range(count):
            actor = self._new(None, asked_ms=start_ms if waits else None)
            self._come(actor, done_ms if waits else start_ms)

    def add(self, name: str | None = None) -> Actor:
        """Add a member for all past time: loaded, or joined where members were last uncounted."""
        actor = self._new(name)
        actor.joined = self.open_since
        self.present.insert(0, actor)
        if self.open_since >= 0:
            actor.arrives_ms = self._plan.scripts[self.open_since].start_ms
            self._arrive_step(actor)
        return actor

    def counted(self) -> None:
        """Record that a line told the number of members of the completed rebalance."""
        self.open_since = self.position + 1

    # -- going -----------------------------------------------------------------------------

    def end(
        self, names: Iterable[str | None], at_ms: int, ending: Ending, *, is_pending: bool = False
    ) -> None:
        """Remove members, unless an earlier line did."""
        gone = []
        for name in names:
            actor = self._leaver(name, at_ms, ending, is_pending=is_pending)
            if actor is not None:
                self._forget(actor, at_ms, ending)
                gone.append(actor.index)
        if gone and ending is Ending.LEFT:
            self._plan.steps.append(Step(at_ms=at_ms, kind=StepKind.LEAVE, actors=tuple(gone)))

    def go(self, actor: Actor, at_ms: int, ending: Ending) -> None:
        """Remove a member now."""
        self._forget(actor, at_ms, ending)
        if ending is Ending.LEFT:
            self._plan.steps.append(Step(at_ms=at_ms, kind=StepKind.LEAVE, actors=(actor.index,)))

    def expire_ids(self, names: Iterable[str | None], at_ms: int) -> None:
        """Expire ids that were issued and not used in time."""
        for name in names:
            actor = self._candidates.pop(name or "", None)
            if actor is not None:
                actor.ends_ms, actor.ending = at_ms, Ending.ID_EXPIRED
                self._ask_step(actor)

    def kick(self, count: int, at_ms: int) -> None:
        """Remove members that did not rejoin in time: unnamed first, then those not named later."""
        for actor in sorted(self.present, key=_KickOrder(self._mentions, at_ms))[:count]:
            self.go(actor, at_ms, Ending.KICKED)

    def replace_static(
        self, old: Actor, new_name: str | None, at_ms: int, *, rebalances: bool
    ) -> Actor:
        """Handle a static member's return under a new id.

        `rebalances` is set when the group was rebalancing or begins to because of it.
        """
        new = self._new(new_name)
        new.group_instance_id = old.group_instance_id
        new.arrives_ms = at_ms
        new.joined = self.position if self.is_open or not rebalances else self.position + 1
        self.go(old, at_ms, Ending.REPLACED)
        self.present.append(new)
        self._plan.steps.append(Step(at_ms=at_ms, kind=StepKind.REPLACE, actors=(new.index,)))
        return new

    def change_protocol(self, at_ms: int) -> None:
        """Have the static member that has just returned offer other protocols."""
        steps = self._plan.steps
        for index in reversed(range(len(steps))):
            step = steps[index]
            if step.kind is StepKind.REPLACE and at_ms - step.at_ms <= LINE_SKEW_MS:
                steps[index] = replace(step, changes_protocol=True)
                actor = self._plan.actors[step.actors[0]]
                actor.joined = self.position + 1
                return

    def may_be_static(self, actor: Actor, group_instance_id: str) -> bool:
        """Whether no other member had that instance id while this one was a member."""
        joined = actor.joined if actor.joined is not None else self.position
        return not any(
            other.group_instance_id == group_instance_id
            and other is not actor
            and (other.ended is None or other.ended > joined)
            for other in self._plan.actors
        )

    # -- parts -----------------------------------------------------------------------------

    def _take_over(self, actor: Actor, group_instance_id: str | None, at_ms: int) -> None:
        """Remove a member whose instance id a new static member takes over without a line."""
        actor.group_instance_id = group_instance_id
        old = self.static_member(group_instance_id)
        if old is not None:
            self._forget(old, at_ms, Ending.REPLACED)

    def _new(self, name: str | None, asked_ms: int | None = None) -> Actor:
        """Return a new actor; a name in use by another actor is dropped."""
        if name in self._names:
            name = None
        if name is not None:
            self._names.add(name)
        actor = Actor(index=len(self._plan.actors), name=name, asked_ms=asked_ms)
        self._plan.actors.append(actor)
        return actor

    def _come(self, actor: Actor, at_ms: int) -> None:
        actor.arrives_ms = at_ms
        actor.joined = self.position if self.is_open else self.position + 1
        self.present.append(actor)
        self._last_change_ms = at_ms
        self._ask_step(actor)
        self._arrive_step(actor)

    def _arrive_step(self, actor: Actor) -> None:
        at_ms = actor.arrives_ms or 0
        self._plan.steps.append(Step(at_ms=at_ms, kind=StepKind.ARRIVE, actors=(actor.index,)))

    def _ask_step(self, actor: Actor) -> None:
        """Add a step for an issued id; an unused one gets none, as it would hold the join phase."""
        if actor.asked_ms is not None:
            self._plan.steps.append(
                Step(at_ms=actor.asked_ms, kind=StepKind.ASK_ID, actors=(actor.index,))
            )

    def _forget(self, actor: Actor, at_ms: int, ending: Ending) -> None:
        actor.ends_ms, actor.ending = at_ms, ending
        actor.ended = self.position if self.is_open else self.position + 1
        if actor.joined is not None and actor.joined < actor.ended:
            self.last_gone = actor.ended
        if actor in self.present:
            self.present.remove(actor)
        if actor.name is not None:
            self._ended[actor.name] = actor
        self._last_change_ms = at_ms

    def _leaver(
        self, name: str | None, at_ms: int, ending: Ending, *, is_pending: bool
    ) -> Actor | None:
        """Return the member that a line says is leaving; None when it cannot be one."""
        if name is None:
            repeated = self._is_repeated(ending.value, at_ms)
            return None if repeated else self._anyone()
        if name in self._ended:
            return None
        actor = self.member(name)
        if actor is None and name in self._candidates:
            actor = self._candidates.pop(name)
            if is_pending:
                self._ask_step(actor)
            else:
                self._come(actor, max(actor.asked_ms or at_ms, at_ms - LINE_SKEW_MS))
        actor = actor or self.bind(name, fails=ending is Ending.FAILED)
        if actor is None:
            self._plan.unexplained.append(
                f"{name} {ending.value}, who by the counts before was no member"
            )
        return actor

    def bind(self, name: str, *, fails: bool = False) -> Actor | None:
        """Find the unnamed member behind a name that is new.

        One that `fails` is not waiting for the running rebalance, if another is possible.
        """
        if name in self._names:
            return None
        unnamed = [actor for actor in self.present if actor.name is None]
        if fails and self.is_open:
            idle = [actor for actor in unnamed if not self._waits(actor)]
            unnamed = idle if idle or self.may_add_before else unnamed
        actor = unnamed[0] if unnamed else None
        if actor is not None:
            actor.name = name
            self._names.add(name)
        elif self.may_add:
            actor = self.add(name)
        return actor

    def _waits(self, actor: Actor) -> bool:
        """Whether its JoinGroup is parked in the running rebalance since it began."""
        return actor.joined == self.position or actor.index in self.rejoined

    def _anyone(self) -> Actor | None:
        if self.present:
            return self.present[0]
        return self.add() if self.may_add else None

    def _is_repeated(self, what: str, at_ms: int) -> bool:
        """Whether a line that names no member repeats one from just before."""
        last_ms = self._last_unnamed_ms.get(what)
        self._last_unnamed_ms[what] = at_ms
        return last_ms is not None and at_ms - last_ms <= LINE_SKEW_MS


class _KickOrder:
    """Sort key that puts the members least likely to have stayed first."""

    def __init__(self, mentions: dict[str, list[int]], at_ms: int) -> None:
        self._mentions = mentions
        self._at_ms = at_ms

    def __call__(self, actor: Actor) -> int:
        """Return 0 for an unnamed member, 1 for one that no later line names, 2 for others."""
        if actor.name is None:
            return 0
        times = self._mentions.get(actor.name, ())
        return 2 if times and times[-1] > self._at_ms else 1
